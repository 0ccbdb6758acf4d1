/* MPIX_Compare_and_swap_init. A start on an element that the CPU updates only checks the epoch and
 * announces itself (sync/atomic_mode.h). */
#include "api/api.h"
#include "api/atomic_fast.h"
#include "api/persistent_operation.h"
#include "api/requests.h"
#include "reduce/cpu_swap.h"

#include <stdlib.h>

struct persistent_swap {
    struct oriel_persistent_operation operation; /* first */
    const void *origin;
    const void *compare;
    void *result;
    char *there; /* of an element that the CPU updates; else NULL */
};

/* --- start --- */

static enum oriel_status swap_issue(struct oriel_persistent_operation *operation,
                                    struct oriel_window *window)
{
    const struct persistent_swap *swap = (const struct persistent_swap *)operation;
    oriel_atomic_mode_claim();
    return oriel_compare_and_swap(window, &operation->target, swap->origin, swap->compare,
                                  swap->result);
}

static enum oriel_status swap_start(struct oriel_persistent *request, struct oriel_window *window)
{
    struct persistent_swap *swap = (struct persistent_swap *)request;
    struct oriel_atomic_mode *slot = oriel_tls_cache.single;
    if (oriel_unlikely(swap->there == NULL) ||
        oriel_unlikely(!oriel_fast_allowed(window, (uint32_t)request->target_rank)) ||
        oriel_unlikely(slot == NULL) || oriel_unlikely(!oriel_atomic_mode_announce(window, slot)))
        return oriel_persistent_operation_start(&swap->operation, window);
    oriel_swap_native(swap->there, swap->origin, swap->compare, swap->result, request->len_bytes);
    oriel_store_release(&slot->inside, 0); /* S4 */
    return ORIEL_OK;
}

/* --- creation --- */

/* The address of the element, if the CPU updates it. */
static char *swap_prepare(const struct oriel_window *window, const struct oriel_span *target)
{
    const int64_t len_bytes = target->side.type->extent_bytes;
    if (len_bytes > ORIEL_SWAP_NATIVE_BYTES || window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return NULL;
    char *there = oriel_persistent_direct(window, target, 0, len_bytes);
    return (uintptr_t)there % (uintptr_t)len_bytes == 0 ? there : NULL;
}

static enum oriel_status swap_plan(struct persistent_swap *swap, struct oriel_window *window,
                                   const struct oriel_swap_arguments *given, MPI_Datatype datatype)
{
    struct oriel_persistent_operation *operation = &swap->operation;
    const struct oriel_type *type;
    enum oriel_status status = oriel_check_swap_type(datatype, &type);
    if (status == ORIEL_OK)
        status = oriel_check_swap(window, given, type, ORIEL_ISSUE_LATER, &operation->target);
    if (status != ORIEL_OK)
        return status;
    operation->types[0] = type;
    operation->request.len_bytes = (uint64_t)type->extent_bytes;
    swap->there = swap_prepare(window, &operation->target);
    return ORIEL_OK;
}

int oriel_entry_Compare_and_swap_init(const void *origin_addr, const void *compare_addr,
                                      void *result_addr, MPI_Datatype datatype, int target_rank,
                                      MPI_Aint target_disp, MPI_Win win, MPI_Request *request)
{
    static const char call[] = "MPIX_Compare_and_swap_init";
    static const struct oriel_persistent_kind kind = ORIEL_PERSISTENT_OPERATION_KIND(swap_start);
    const struct oriel_swap_arguments given = {origin_addr, compare_addr, result_addr, target_rank,
                                               target_disp};
    int code;
    struct oriel_window *window = oriel_request_window(call, win, request, &code);
    if (window == NULL)
        return code;
    struct persistent_swap *swap = calloc(1, sizeof *swap);
    if (swap == NULL)
        return oriel_error_raise(window, call,
                                 oriel_fail(ORIEL_E_NO_MEM, "no memory for a request"));
    struct oriel_persistent_operation *operation = &swap->operation;
    operation->request.kind = &kind;
    operation->request.counted = ORIEL_PERSISTENT_COMPARE_AND_SWAP;
    operation->issue = swap_issue;
    operation->returns_data = true;
    swap->origin = origin_addr;
    swap->compare = compare_addr;
    swap->result = result_addr;
    enum oriel_status status =
        target_rank == MPI_PROC_NULL ? ORIEL_OK : swap_plan(swap, window, &given, datatype);
    status = oriel_persistent_operation_create(operation, window, target_rank, target_disp, status,
                                               request);
    return oriel_error_raise(window, call, status);
}
