/* Put, get and the accumulates, with requests and without, of either width of counts (MPI-4.1,
 * 13.3). An operation with wrong arguments or in a wrong epoch is reported and passed on without a
 * fatal error handler. A correct one is an access. */
#include "check/intercept/operation_fields.h"
#include "check/intercept/pending_slot.h"

#include "oriel/mpi_rma.h"

/* An operation on MPI_PROC_NULL is nothing. */
static struct oriel_checked *operation_window(const struct oriel_operation *operation)
{
    return operation->target_rank == MPI_PROC_NULL ? NULL : oriel_checked_find(operation->win);
}

/* Whether the epoch allows it. A request in the wrong kind of epoch is reported, and the operation
 * is done nevertheless. */
static __attribute__((noinline)) bool epoch_is_right(struct oriel_operation *operation)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_checked *window = operation->window;
    oriel_window_enter(window);
    enum oriel_verdict verdict =
        oriel_epochs_operation(&window->epochs, operation->target_rank,
                               operation->request != NULL && !operation->persists, &finding);
    const struct oriel_site *opening =
        oriel_epochs_opening(&window->epochs, operation->target_rank);
    operation->site.epoch = opening == NULL ? 0 : opening->epoch;
    oriel_window_leave(window);
    if (verdict == ORIEL_VERDICT_WRONG) {
        oriel_argument_place(operation, &finding);
        finding.init = oriel_site_numbered(operation->init, operation->site.world_rank);
        oriel_window_report(window, &finding, &operation->site);
    }
    return verdict == ORIEL_VERDICT_RIGHT ||
           (verdict == ORIEL_VERDICT_WRONG && finding.rule == ORIEL_RULE_REQUEST_IN_ACTIVE_EPOCH);
}

/* Under a lock every operation is right. */
static bool epoch_allows(struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    if (oriel_unlikely(window->threaded ||
                       !oriel_epochs_passive(&window->epochs, operation->target_rank)))
        return epoch_is_right(operation);
    operation->site.epoch = oriel_epochs_opening(&window->epochs, operation->target_rank)->epoch;
    return true;
}

static bool arguments_are_right(struct oriel_operation *operation)
{
    if ((uint32_t)operation->target_rank < (uint32_t)operation->window->n &&
        oriel_callsite_fill(operation))
        return true;
    operation->site = oriel_site_make(operation->address, operation->call);
    if (!oriel_argument_rank(operation->window, operation->target_rank, &operation->site) ||
        !oriel_argument_operation(operation))
        return false;
    oriel_callsite_keep(operation);
    return true;
}

__attribute__((noinline)) int oriel_operation_check(struct oriel_operation *operation)
{
    operation->window = operation_window(operation);
    if (operation->window == NULL)
        return operation->target_rank;
    if (oriel_unlikely(!arguments_are_right(operation) || !epoch_allows(operation) ||
                       !oriel_argument_range(operation))) {
        oriel_quiet_begin(&operation->quiet, operation->win);
        return operation->withheld ? MPI_PROC_NULL : operation->target_rank;
    }
    operation->allowed = true;
    if (operation->init != 0)
        operation->site.epoch = oriel_site_number_started(operation->site.epoch, operation->init);
    if (operation->kind != ORIEL_ACCESS_GET)
        oriel_promises_no_put(operation);
    oriel_access_begin(operation);
    return operation->target_rank;
}

static void epoch_note_operation(struct oriel_operation *operation)
{
    struct oriel_checked *window = operation->window;
    oriel_window_enter(window);
    oriel_epochs_operated(&window->epochs, operation->target_rank);
    oriel_window_leave(window);
}

__attribute__((noinline)) int oriel_operation_finish(struct oriel_operation *operation, int code)
{
    if (operation->window == NULL)
        return code;
    if (operation->accessed)
        oriel_access_end(operation, code);
    if (operation->allowed && code == MPI_SUCCESS && operation->window->epochs.fence.open)
        epoch_note_operation(operation);
    if (operation->accessed && oriel_unlikely(code != MPI_SUCCESS))
        oriel_window_refused(operation->window, operation->target_rank);
    if (!operation->quiet.quiet)
        return code;
    if (code != MPI_SUCCESS && operation->request != NULL)
        *operation->request = MPI_REQUEST_NULL;
    return oriel_quiet_end(&operation->quiet, code);
}

/* One exported function: parameters and arguments as in functions.def, and the fields of the
 * operation. The fast path uses the parameters themselves and does not build the operation. */
#define OPERATION(name, access_kind, parameters, arguments, ...)                                   \
    ORIEL_EXPORT int PMPI_##name parameters                                                        \
    {                                                                                              \
        if (!oriel_pending_slot_look(ORIEL_CALLER))                                                \
            return oriel_host()->name arguments;                                                   \
        int code;                                                                                  \
        const struct oriel_operation asked = GIVEN(name, access_kind, __VA_ARGS__);                \
        struct oriel_callsite *again = oriel_pending_slot_begin(&asked);                           \
        if (oriel_likely(again != NULL)) {                                                         \
            code = oriel_host_calls.name arguments;                                                \
            oriel_pending_slot_end(again, &asked, code);                                           \
        } else {                                                                                   \
            oriel_check_call.function = __func__;                                                  \
            oriel_pending_slot_let_go();                                                           \
            oriel_check_change();                                                                  \
            struct oriel_operation operation = GIVEN(name, access_kind, __VA_ARGS__);              \
            target_rank = oriel_operation_check(&operation);                                       \
            code = oriel_operation_finish(&operation, oriel_host()->name arguments);               \
        }                                                                                          \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name parameters __attribute__((weak, alias("PMPI_" #name)));

#define PLAIN_PARAMETERS(qualifier, Count) (ORIGIN(qualifier, Count), TARGET(Count), MPI_Win win)
#define PLAIN_ARGUMENTS                    (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win)
OPERATION(Put, ORIEL_ACCESS_PUT, PLAIN_PARAMETERS(const, int), PLAIN_ARGUMENTS, ORIGIN_FIELDS,
          TARGET_FIELDS)
OPERATION(Put_c, ORIEL_ACCESS_PUT, PLAIN_PARAMETERS(const, MPI_Count), PLAIN_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS)
OPERATION(Get, ORIEL_ACCESS_GET, PLAIN_PARAMETERS(, int), PLAIN_ARGUMENTS, ORIGIN_FIELDS,
          TARGET_FIELDS)
OPERATION(Get_c, ORIEL_ACCESS_GET, PLAIN_PARAMETERS(, MPI_Count), PLAIN_ARGUMENTS, ORIGIN_FIELDS,
          TARGET_FIELDS)

#define REQUEST_PARAMETERS(qualifier, Count)                                                       \
    (ORIGIN(qualifier, Count), TARGET(Count), MPI_Win win, MPI_Request * request)
#define REQUEST_ARGUMENTS (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win, request)
OPERATION(Rput, ORIEL_ACCESS_PUT, REQUEST_PARAMETERS(const, int), REQUEST_ARGUMENTS, ORIGIN_FIELDS,
          TARGET_FIELDS, .request = request)
OPERATION(Rput_c, ORIEL_ACCESS_PUT, REQUEST_PARAMETERS(const, MPI_Count), REQUEST_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, .request = request)
OPERATION(Rget, ORIEL_ACCESS_GET, REQUEST_PARAMETERS(, int), REQUEST_ARGUMENTS, ORIGIN_FIELDS,
          TARGET_FIELDS, .request = request)
OPERATION(Rget_c, ORIEL_ACCESS_GET, REQUEST_PARAMETERS(, MPI_Count), REQUEST_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, .request = request)

#define UPDATE_PARAMETERS(Count) (ORIGIN(const, Count), TARGET(Count), MPI_Op op, MPI_Win win)
#define UPDATE_ARGUMENTS         (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win)
OPERATION(Accumulate, ORIEL_ACCESS_ACCUMULATE, UPDATE_PARAMETERS(int), UPDATE_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, UPDATE_FIELDS)
OPERATION(Accumulate_c, ORIEL_ACCESS_ACCUMULATE, UPDATE_PARAMETERS(MPI_Count), UPDATE_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, UPDATE_FIELDS)

#define RUPDATE_PARAMETERS(Count)                                                                  \
    (ORIGIN(const, Count), TARGET(Count), MPI_Op op, MPI_Win win, MPI_Request * request)
#define RUPDATE_ARGUMENTS (ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, op, win, request)
OPERATION(Raccumulate, ORIEL_ACCESS_ACCUMULATE, RUPDATE_PARAMETERS(int), RUPDATE_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, UPDATE_FIELDS, .request = request)
OPERATION(Raccumulate_c, ORIEL_ACCESS_ACCUMULATE, RUPDATE_PARAMETERS(MPI_Count), RUPDATE_ARGUMENTS,
          ORIGIN_FIELDS, TARGET_FIELDS, UPDATE_FIELDS, .request = request)

#define FETCH_PARAMETERS(Count)                                                                    \
    (ORIGIN(const, Count), RESULT(Count), TARGET(Count), MPI_Op op, MPI_Win win)
#define FETCH_ARGUMENTS (ORIGIN_ARGUMENTS, RESULT_ARGUMENTS, TARGET_ARGUMENTS, op, win)
OPERATION(Get_accumulate, ORIEL_ACCESS_ACCUMULATE, FETCH_PARAMETERS(int), FETCH_ARGUMENTS,
          ORIGIN_FIELDS, RESULT_FIELDS, TARGET_FIELDS, UPDATE_FIELDS)
OPERATION(Get_accumulate_c, ORIEL_ACCESS_ACCUMULATE, FETCH_PARAMETERS(MPI_Count), FETCH_ARGUMENTS,
          ORIGIN_FIELDS, RESULT_FIELDS, TARGET_FIELDS, UPDATE_FIELDS)

#define RFETCH_PARAMETERS(Count)                                                                   \
    (ORIGIN(const, Count), RESULT(Count), TARGET(Count), MPI_Op op, MPI_Win win,                   \
     MPI_Request * request)
#define RFETCH_ARGUMENTS (ORIGIN_ARGUMENTS, RESULT_ARGUMENTS, TARGET_ARGUMENTS, op, win, request)
OPERATION(Rget_accumulate, ORIEL_ACCESS_ACCUMULATE, RFETCH_PARAMETERS(int), RFETCH_ARGUMENTS,
          ORIGIN_FIELDS, RESULT_FIELDS, TARGET_FIELDS, UPDATE_FIELDS, .request = request)
OPERATION(Rget_accumulate_c, ORIEL_ACCESS_ACCUMULATE, RFETCH_PARAMETERS(MPI_Count),
          RFETCH_ARGUMENTS, ORIGIN_FIELDS, RESULT_FIELDS, TARGET_FIELDS, UPDATE_FIELDS,
          .request = request)

OPERATION(Fetch_and_op, ORIEL_ACCESS_ACCUMULATE,
          (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
           MPI_Aint target_disp, MPI_Op op, MPI_Win win),
          (origin_addr, result_addr, datatype, target_rank, target_disp, op, win), ELEMENT_FIELDS,
          UPDATE_FIELDS)
OPERATION(Compare_and_swap, ORIEL_ACCESS_ACCUMULATE,
          (const void *origin_addr, const void *compare_addr, void *result_addr,
           MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win),
          (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win),
          ELEMENT_FIELDS, SWAP_FIELDS)
