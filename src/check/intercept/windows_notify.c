/* Notified access (include/oriel/ext.h): its operations are accesses like those of MPI that give
 * order to their target, and the calls that take notifications take it (notified.c). A rank that
 * waits for notifications needs any other rank of the window. */
#include "check/intercept/messages_waits.h"
#include "check/intercept/operation_fields.h"
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"
#include "check/window/notified.h"

#include "oriel/ext.h"

#include <stdlib.h>

/* As OPERATION in windows_operate.c, without a fast path. */
#define NOTIFIED(name, access_kind, parameters, arguments, ...)                                    \
    ORIEL_CHECK_WRAP_X(name, parameters)                                                           \
    {                                                                                              \
        if (!oriel_window_look())                                                                  \
            return NEXT_X(name) arguments;                                                         \
        struct oriel_operation operation =                                                         \
            GIVEN(name, access_kind, .notifies = true, .number = number, __VA_ARGS__);             \
        target_rank = oriel_operation_check(&operation);                                           \
        oriel_notified_give(&operation);                                                           \
        int code = NEXT_X(name) arguments;                                                         \
        oriel_notified_ended(&operation, code);                                                    \
        code = oriel_operation_finish(&operation, code);                                           \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }

NOTIFIED(Put_notify, ORIEL_ACCESS_PUT,
         (ORIGIN(const, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win), ORIGIN_FIELDS, TARGET_FIELDS)
NOTIFIED(Get_notify, ORIEL_ACCESS_GET,
         (ORIGIN(, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, number, win), ORIGIN_FIELDS, TARGET_FIELDS)
NOTIFIED(Accumulate_notify, ORIEL_ACCESS_ACCUMULATE,
         (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Op op, int number, MPI_Win win),
         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, number, win), ORIGIN_FIELDS, TARGET_FIELDS,
         UPDATE_FIELDS)

/* --- taking --- */

/* Not if processes may notify that are no members of the window. */
static bool is_searched(const struct oriel_checked *window)
{
    return window != NULL && window->progress != NULL && !window->lends;
}

static bool wait_for_notification(const struct oriel_checked *window, const void *address,
                                  enum oriel_call call)
{
    if (!is_searched(window))
        return false;
    const struct oriel_wait_need need = oriel_need_notification(window->progress);
    return oriel_window_wait(window, &need, address, call);
}

ORIEL_CHECK_WRAP_X(Win_notify_wait, (MPI_Win win, int number, MPI_Count count))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_wait)(win, number, count);
    struct oriel_checked *window = oriel_checked_find(win);
    const bool waits = wait_for_notification(window, ORIEL_CALLER, ORIEL_CALL_Win_notify_wait);
    const int code = NEXT_X(Win_notify_wait)(win, number, count);
    oriel_wait_done(waits);
    if (window != NULL && code == MPI_SUCCESS)
        oriel_notified_take(window, number, (uint64_t)count);
    oriel_check_leave();
    return code;
}

ORIEL_CHECK_WRAP_X(Win_notify_test, (MPI_Win win, int number, MPI_Count count, int *flag))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_test)(win, number, count, flag);
    struct oriel_checked *window = oriel_checked_find(win);
    const int code = NEXT_X(Win_notify_test)(win, number, count, flag);
    if (window != NULL && code == MPI_SUCCESS && *flag)
        oriel_notified_take(window, number, (uint64_t)count);
    oriel_check_leave();
    return code;
}

ORIEL_CHECK_WRAP_X(Win_notify_wait_any, (MPI_Win win, int n, const int numbers[], int *index))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_wait_any)(win, n, numbers, index);
    struct oriel_checked *window = oriel_checked_find(win);
    const bool waits = wait_for_notification(window, ORIEL_CALLER, ORIEL_CALL_Win_notify_wait_any);
    const int code = NEXT_X(Win_notify_wait_any)(win, n, numbers, index);
    oriel_wait_done(waits);
    if (window != NULL && code == MPI_SUCCESS)
        oriel_notified_take(window, numbers[*index], 1);
    oriel_check_leave();
    return code;
}

/* --- requests that take --- */

struct notify_request {
    struct oriel_startable startable; /* first */
    MPI_Win win;
    int number;
    MPI_Count count;
};

static void request_begin(struct oriel_startable *startable, const void *address, uint16_t call)
{
    (void)startable, (void)address, (void)call;
}

static int request_started(struct oriel_startable *startable, int code)
{
    (void)startable;
    return code;
}

/* A cancelled request has taken nothing. */
static void request_done(void *closure, const MPI_Status *status)
{
    const struct notify_request *own = closure;
    struct oriel_checked *window = oriel_checked_find(own->win);
    int cancelled = 0;
    if (status != NULL && status != MPI_STATUS_IGNORE)
        oriel_host()->Test_cancelled(status, &cancelled);
    if (window != NULL && !cancelled)
        oriel_notified_take(window, own->number, (uint64_t)own->count);
}

static void request_drop(struct oriel_startable *startable)
{
    free(startable);
}

static const struct oriel_request_kind request_kind = {.done = request_done};

int oriel_notify_request_needs(const struct oriel_request_record *record,
                               struct oriel_wait_need *need)
{
    const struct notify_request *own = oriel_request_closure(record, &request_kind);
    const struct oriel_checked *window = own == NULL ? NULL : oriel_checked_find(own->win);
    if (!is_searched(window))
        return 0;
    *need = oriel_need_notification(window->progress);
    return 1;
}

ORIEL_CHECK_WRAP_X(Win_notify_init,
                   (MPI_Win win, int number, MPI_Count count, MPI_Request *request))
{
    if (!oriel_window_look())
        return NEXT_X(Win_notify_init)(win, number, count, request);
    const int code = NEXT_X(Win_notify_init)(win, number, count, request);
    struct notify_request *own = code == MPI_SUCCESS ? calloc(1, sizeof *own) : NULL;
    if (own != NULL) { /* else its completion gives no order */
        *own = (struct notify_request){{request_begin, request_started, &request_kind, request_drop,
                                        &own->win,
                                        oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Win_notify_init)},
                                       win,
                                       number,
                                       count};
        oriel_checked_request_add_persistent(*request, &own->startable);
    }
    oriel_check_leave();
    return code;
}
