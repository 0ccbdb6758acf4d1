/* Persistent operations, which are extensions of Oriel. The creation checks the arguments. Each
 * start is an operation with a request (windows_requests.c), at the line of the start. */
#include "check/intercept/operation_fields.h"
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"
#include "check/window/notified.h"

#include "oriel/ext.h"

#include <stdlib.h>

enum { TYPES = 3 };

struct persistent_operation {
    struct oriel_startable startable; /* first */
    struct oriel_operation planned;   /* the arguments */
    MPI_Datatype made[TYPES];         /* its own datatypes among them */
    struct oriel_operation started;   /* the last start */
    MPI_Request unused;               /* the request of the start, which has no handle of its own */
};

/* --- each start --- */

static void operation_begin(struct oriel_startable *startable, const void *address, uint16_t call)
{
    struct persistent_operation *persistent = (struct persistent_operation *)startable;
    struct oriel_operation *started = &persistent->started;
    *started = persistent->planned;
    started->address = address;
    started->call = (enum oriel_call)call;
    started->request = &persistent->unused;
    oriel_operation_check(started);
    oriel_notified_give(started);
}

static int operation_started(struct oriel_startable *startable, int code)
{
    struct oriel_operation *started = &((struct persistent_operation *)startable)->started;
    oriel_notified_ended(started, code);
    return oriel_operation_finish(started, code);
}

/* --- the end --- */

static void started_done(void *closure, const MPI_Status *status)
{
    struct persistent_operation *persistent = closure;
    struct oriel_window_request *asked = persistent->started.asked;
    (void)status;
    persistent->started.asked = NULL;
    if (asked != NULL)
        oriel_window_request_end(asked);
}

static void started_release(void *closure)
{
    const struct persistent_operation *persistent = closure;
    if (persistent->started.asked != NULL)
        oriel_window_request_release(persistent->started.asked);
}

static const struct oriel_request_kind started_kind = {started_done, started_release};

/* --- creation and end --- */

static void persistent_drop(struct oriel_startable *startable)
{
    struct persistent_operation *persistent = (struct persistent_operation *)startable;
    for (int i = 0; i < TYPES; i++)
        if (persistent->made[i] != MPI_DATATYPE_NULL)
            oriel_host()->Type_free(&persistent->made[i]);
    free(persistent);
}

/* The program may free a derived datatype before a start: then the record has its own, which is
 * resized to the same extent. Unlike a contiguous one it still counts as a pair, and unlike a
 * duplicate it calls none of the program's functions. */
static void datatype_keep(MPI_Datatype *datatype, MPI_Datatype *made)
{
    const struct oriel_type *type;
    MPI_Aint low, extent;
    *made = MPI_DATATYPE_NULL;
    if (oriel_type_find(*datatype, &type) != ORIEL_OK || type->predefined ||
        oriel_host()->Type_get_extent(*datatype, &low, &extent) != MPI_SUCCESS ||
        oriel_host()->Type_create_resized(*datatype, low, extent, made) != MPI_SUCCESS)
        return;
    oriel_host()->Type_commit(made);
    *datatype = *made;
}

/* Before the creation: reports wrong arguments. */
static void plan_check(struct oriel_operation *planned)
{
    planned->window =
        planned->target_rank == MPI_PROC_NULL ? NULL : oriel_checked_find(planned->win);
    if (planned->window == NULL)
        return;
    planned->site = oriel_site_make(planned->address, planned->call);
    if (!oriel_argument_rank(planned->window, planned->target_rank, &planned->site) ||
        !oriel_argument_operation(planned) ||
        (planned->window->flavour != ORIEL_CHECK_DYNAMIC && !oriel_argument_range(planned)))
        oriel_quiet_begin(&planned->quiet, planned->win);
}

/* After it, with its code; returns the program's code. */
static int plan_keep(struct oriel_operation *planned, int code, const MPI_Request *request)
{
    const int programs = planned->quiet.quiet ? oriel_quiet_end(&planned->quiet, code) : code;
    struct persistent_operation *persistent =
        code == MPI_SUCCESS && planned->window != NULL ? calloc(1, sizeof *persistent) : NULL;
    if (persistent == NULL)
        return programs; /* its starts are not seen */
    persistent->planned = *planned;
    persistent->startable =
        (struct oriel_startable){operation_begin, operation_started,        &started_kind,
                                 persistent_drop, &persistent->planned.win, planned->site};
    persistent->planned.quiet = (struct oriel_quiet){.quiet = false};
    persistent->planned.persists = true;
    persistent->planned.init = oriel_site_number(&planned->site);
    datatype_keep(&persistent->planned.origin_datatype, &persistent->made[0]);
    datatype_keep(&persistent->planned.target_datatype, &persistent->made[1]);
    persistent->made[2] = MPI_DATATYPE_NULL;
    if (persistent->planned.result_addr != NULL)
        datatype_keep(&persistent->planned.result_datatype, &persistent->made[2]);
    oriel_checked_request_add_persistent(*request, &persistent->startable);
    return programs;
}

#define INIT(name, access_kind, parameters, arguments, ...)                                        \
    ORIEL_CHECK_WRAP_X(name, parameters)                                                           \
    {                                                                                              \
        if (!oriel_check_looks())                                                                  \
            return NEXT_X(name) arguments;                                                         \
        struct oriel_operation planned = GIVEN(name, access_kind, __VA_ARGS__);                    \
        plan_check(&planned);                                                                      \
        oriel_check_enter();                                                                       \
        const int code = NEXT_X(name) arguments;                                                   \
        oriel_check_leave();                                                                       \
        return plan_keep(&planned, code, request);                                                 \
    }

INIT(Put_init, ORIEL_ACCESS_PUT,
     (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Win win, MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win, request), ORIGIN_FIELDS, TARGET_FIELDS)
INIT(Put_notify_init, ORIEL_ACCESS_PUT,
     (ORIGIN(const, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win, MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win, request), ORIGIN_FIELDS, TARGET_FIELDS,
     .notifies = true, .number = number)
INIT(Get_init, ORIEL_ACCESS_GET,
     (ORIGIN(, MPI_Count), TARGET(MPI_Count), MPI_Win win, MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win, request), ORIGIN_FIELDS, TARGET_FIELDS)
INIT(Get_notify_init, ORIEL_ACCESS_GET,
     (ORIGIN(, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win, MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win, request), ORIGIN_FIELDS, TARGET_FIELDS,
     .notifies = true, .number = number)
INIT(Accumulate_init, ORIEL_ACCESS_ACCUMULATE,
     (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Op op, MPI_Win win, MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win, request), ORIGIN_FIELDS, TARGET_FIELDS,
     UPDATE_FIELDS)
INIT(Accumulate_notify_init, ORIEL_ACCESS_ACCUMULATE,
     (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Op op, int number, MPI_Win win,
      MPI_Request *request),
     (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, number, win, request), ORIGIN_FIELDS, TARGET_FIELDS,
     UPDATE_FIELDS, .notifies = true, .number = number)
INIT(Get_accumulate_init, ORIEL_ACCESS_ACCUMULATE,
     (ORIGIN(const, MPI_Count), RESULT(MPI_Count), TARGET(MPI_Count), MPI_Op op, MPI_Win win,
      MPI_Request *request),
     (ORIGIN_ARGUMENTS, RESULT_ARGUMENTS, TARGET_ARGUMENTS, op, win, request), ORIGIN_FIELDS,
     RESULT_FIELDS, TARGET_FIELDS, UPDATE_FIELDS)
INIT(Fetch_and_op_init, ORIEL_ACCESS_ACCUMULATE,
     (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
      MPI_Aint target_disp, MPI_Op op, MPI_Win win, MPI_Request *request),
     (origin_addr, result_addr, datatype, target_rank, target_disp, op, win, request),
     ELEMENT_FIELDS, UPDATE_FIELDS)
INIT(Compare_and_swap_init, ORIEL_ACCESS_ACCUMULATE,
     (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
      int target_rank, MPI_Aint target_disp, MPI_Win win, MPI_Request *request),
     (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win, request),
     ELEMENT_FIELDS, SWAP_FIELDS)
