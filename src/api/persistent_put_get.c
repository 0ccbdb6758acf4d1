/* MPIX_Put_init and MPIX_Get_init, and their forms that notify. If the CPU reaches the target, the
 * addresses and the copy are prepared once, and a start only checks the epoch. */
#include "api/api.h"
#include "api/notified_operation.h"
#include "api/persistent_operation.h"
#include "api/put_get_fast.h"
#include "api/requests.h"
#include "rma/deferred.h"
#include "rma/transfer_cache.h"
#include "transport/shared/copy.h"

#include <stdlib.h>

struct persistent_transfer {
    struct oriel_persistent_operation operation; /* first */
    char *here;
    struct oriel_side origin;
    char *there;                     /* NULL: the rest is not prepared */
    bool is_word;                    /* 8 bytes in one run on both sides */
    struct oriel_copy_prepared copy; /* between there and here */
};

/* --- start --- */

static enum oriel_status put_issue(struct oriel_persistent_operation *operation,
                                   struct oriel_window *window)
{
    struct persistent_transfer *transfer = (struct persistent_transfer *)operation;
    const enum oriel_status status =
        oriel_put(window, &operation->target, transfer->here, &transfer->origin);
    return status == ORIEL_OK ? oriel_deferred_copies_end(window) : status;
}

static enum oriel_status get_issue(struct oriel_persistent_operation *operation,
                                   struct oriel_window *window)
{
    struct persistent_transfer *transfer = (struct persistent_transfer *)operation;
    const enum oriel_status status =
        oriel_get(window, &operation->target, transfer->here, &transfer->origin);
    return status == ORIEL_OK ? oriel_deferred_copies_end(window) : status;
}

/* Layouts get a plan when they are copied for the second time. */
static __attribute__((noinline)) enum oriel_status copy_by_plan(struct oriel_copy_prepared *copy,
                                                                char *to, const char *from)
{
    if (!oriel_copy_general(copy, to, from))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    if (copy->plan == NULL) {
        const struct oriel_items to_items = copy->to, from_items = copy->from;
        oriel_copy_prepare(copy, &to_items, &from_items);
    }
    return ORIEL_OK;
}

static inline enum oriel_status copy_prepared_once(struct persistent_transfer *transfer,
                                                   bool to_target)
{
    char *to = to_target ? transfer->there : transfer->here;
    const char *from = to_target ? transfer->here : transfer->there;
    if (oriel_likely(transfer->is_word)) {
        oriel_copy(to, from, 8);
        return ORIEL_OK;
    }
    struct oriel_copy_prepared *copy = &transfer->copy;
    if (oriel_unlikely(copy->loop == NULL))
        return copy_by_plan(copy, to, from);
    if (to_target && copy->count == 1)
        oriel_copy_premap(oriel_at(to, copy->to_bytes), copy->len_bytes);
    oriel_copy_loop(copy, to, from);
    return ORIEL_OK;
}

static inline __attribute__((always_inline)) enum oriel_status
transfer_start(struct oriel_persistent *request, struct oriel_window *window, bool to_target,
               bool notifies)
{
    struct persistent_transfer *transfer = (struct persistent_transfer *)request;
    const struct oriel_span *target = &transfer->operation.target;
    if (oriel_unlikely(transfer->there == NULL) ||
        oriel_unlikely(!oriel_fast_allowed(window, (uint32_t)target->rank)))
        return oriel_persistent_operation_start(&transfer->operation, window);
    if (to_target)
        oriel_tls_cache_mark();
    const enum oriel_status status = copy_prepared_once(transfer, to_target);
    return status != ORIEL_OK || !notifies ? status : oriel_notified_end(window, target, true);
}

static enum oriel_status put_start(struct oriel_persistent *request, struct oriel_window *window)
{
    return transfer_start(request, window, true, false);
}

static enum oriel_status put_notify_start(struct oriel_persistent *request,
                                          struct oriel_window *window)
{
    return transfer_start(request, window, true, true);
}

static enum oriel_status get_start(struct oriel_persistent *request, struct oriel_window *window)
{
    return transfer_start(request, window, false, false);
}

static enum oriel_status get_notify_start(struct oriel_persistent *request,
                                          struct oriel_window *window)
{
    return transfer_start(request, window, false, true);
}

/* --- creation --- */

static void transfer_prepare(struct persistent_transfer *transfer,
                             const struct oriel_window *window, bool to_target)
{
    int64_t low_bytes, span_bytes;
    struct oriel_copy_prepared *copy = &transfer->copy;
    const struct oriel_items here = oriel_side_items(&transfer->origin);
    const struct oriel_items there = oriel_side_items(&transfer->operation.target.side);
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC ||
        !oriel_transfer_prepare(&here, &there, to_target, &low_bytes, &span_bytes, copy))
        return;
    transfer->there =
        oriel_persistent_direct(window, &transfer->operation.target, low_bytes, span_bytes);
    transfer->is_word = copy->loop != NULL && copy->count == 1 && copy->len_bytes == 8 &&
                        copy->to_bytes == 0 && copy->from_bytes == 0;
}

/* One of the four functions. */
struct transfer_form {
    const char *call;
    struct oriel_persistent_kind kind;
    bool to_target;
    bool notifies;
};

static const struct transfer_form put_form = {
    "MPIX_Put_init", ORIEL_PERSISTENT_OPERATION_KIND(put_start), true, false};
static const struct transfer_form put_notify_form = {
    "MPIX_Put_notify_init", ORIEL_PERSISTENT_OPERATION_KIND(put_notify_start), true, true};
static const struct transfer_form get_form = {
    "MPIX_Get_init", ORIEL_PERSISTENT_OPERATION_KIND(get_start), false, false};
static const struct transfer_form get_notify_form = {
    "MPIX_Get_notify_init", ORIEL_PERSISTENT_OPERATION_KIND(get_notify_start), false, true};

static enum oriel_status transfer_plan(struct persistent_transfer *transfer,
                                       struct oriel_window *window, const struct oriel_sides *sides,
                                       const struct transfer_form *form)
{
    struct oriel_persistent_operation *operation = &transfer->operation;
    enum oriel_status status = oriel_check_transfer(
        window, sides, form->to_target, ORIEL_ISSUE_LATER, &operation->target, &transfer->origin);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", transfer->here, &transfer->origin);
    if (status != ORIEL_OK)
        return status;
    operation->types[0] = transfer->origin.type;
    operation->types[1] = operation->target.side.type;
    operation->request.len_bytes =
        operation->target.side.count * operation->target.side.type->size_bytes;
    const struct oriel_side *source = form->to_target ? &transfer->origin : &operation->target.side;
    operation->moves = source->count * source->type->size_bytes > 0;
    transfer_prepare(transfer, window, form->to_target);
    return ORIEL_OK;
}

/* number: of a notification. */
static int transfer_init(const struct transfer_form *form, void *origin_addr,
                         const struct oriel_sides *sides, int number, MPI_Win win,
                         MPI_Request *request)
{
    int code;
    struct oriel_window *window = oriel_request_window(form->call, win, request, &code);
    if (window == NULL)
        return code;
    struct persistent_transfer *transfer = calloc(1, sizeof *transfer);
    if (transfer == NULL)
        return oriel_error_raise(window, form->call,
                                 oriel_fail(ORIEL_E_NO_MEM, "no memory for a request"));
    struct oriel_persistent_operation *operation = &transfer->operation;
    operation->request.kind = &form->kind;
    operation->request.counted = form->to_target ? ORIEL_PERSISTENT_PUT : ORIEL_PERSISTENT_GET;
    operation->issue = form->to_target ? put_issue : get_issue;
    operation->returns_data = !form->to_target;
    operation->notifies = form->notifies;
    operation->number = number;
    transfer->here = origin_addr;
    enum oriel_status status = sides->target_rank == MPI_PROC_NULL
                                   ? ORIEL_OK
                                   : transfer_plan(transfer, window, sides, form);
    status = oriel_persistent_operation_create(operation, window, sides->target_rank,
                                               sides->target_disp, status, request);
    return oriel_error_raise(window, form->call, status);
}

int oriel_entry_Put_init(const void *origin_addr, MPI_Count origin_count,
                         MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                         MPI_Request *request)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_init(&put_form, (void *)(uintptr_t)origin_addr, &sides, 0, win, request);
}

int oriel_entry_Put_notify_init(const void *origin_addr, MPI_Count origin_count,
                                MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                                MPI_Count target_count, MPI_Datatype target_datatype, int number,
                                MPI_Win win, MPI_Request *request)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_init(&put_notify_form, (void *)(uintptr_t)origin_addr, &sides, number, win,
                         request);
}

int oriel_entry_Get_init(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                         int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                         MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_init(&get_form, origin_addr, &sides, 0, win, request);
}

int oriel_entry_Get_notify_init(void *origin_addr, MPI_Count origin_count,
                                MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                                MPI_Count target_count, MPI_Datatype target_datatype, int number,
                                MPI_Win win, MPI_Request *request)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_init(&get_notify_form, origin_addr, &sides, number, win, request);
}
