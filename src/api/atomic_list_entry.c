/* MPIX_Fetch_and_op_list (include/oriel/ext.h): fetch_and_op on a list of displacements. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "rma/rma.h"
#include "window/handle.h"

_Static_assert(sizeof(MPI_Aint) == sizeof(int64_t), "a displacement has 64 bits");

/* Whether all elements are inside the target's window. */
static bool all_inside(const struct oriel_target *there, const MPI_Aint *disps, uint64_t count,
                       uint64_t len_bytes)
{
    bool inside = len_bytes <= there->size_bytes;
    for (uint64_t i = 0; i < count; i++) {
        int64_t offset_bytes;
        inside &= !__builtin_mul_overflow(disps[i], there->disp_unit, &offset_bytes) &&
                  (uint64_t)offset_bytes <= there->size_bytes - len_bytes;
    }
    return inside;
}

/* Checks each displacement by itself if it must, for the message or a dynamic window. */
static enum oriel_status check_displacements(struct oriel_window *window, int target_rank,
                                             const MPI_Aint *disps, uint64_t count,
                                             const struct oriel_type *type)
{
    struct oriel_span target = {.side = {type, count > 0}};
    if (count > 0 && disps == NULL)
        return oriel_fail(ORIEL_E_ARG, "the array of displacements is NULL");
    enum oriel_status status =
        oriel_check_target(window, target_rank, count > 0 ? disps[0] : 0, ORIEL_ISSUE_NOW, &target);
    if (status != ORIEL_OK || (window->flavour != ORIEL_FLAVOUR_DYNAMIC &&
                               all_inside(&window->targets[target_rank], disps, count,
                                          (uint64_t)type->layout->high_bytes)))
        return status;
    for (uint64_t i = 1; i < count && status == ORIEL_OK; i++)
        status = oriel_check_target(window, target_rank, disps[i], ORIEL_ISSUE_NOW, &target);
    return status;
}

static enum oriel_status fetch_list(struct oriel_window *window, MPI_Count count,
                                    MPI_Datatype datatype, MPI_Op op, const MPI_Aint *disps,
                                    struct oriel_element_list *list)
{
    if (count < 0)
        return oriel_fail(ORIEL_E_COUNT, "count %lld is negative", (long long)count);
    enum oriel_status status = oriel_check_element_type(datatype, &list->type);
    if (status != ORIEL_OK)
        return status;
    const struct oriel_side side = {list->type, (uint64_t)count};
    status = check_displacements(window, list->rank, disps, side.count, list->type);
    if (status == ORIEL_OK)
        status = oriel_check_operator(op, list->type->kind, &list->op);
    if (status == ORIEL_OK && list->op != ORIEL_OPERATOR_NO_OP)
        status = oriel_check_buffer("origin", list->origin, &side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", list->result, &side);
    if (status != ORIEL_OK)
        return status;
    oriel_check_passed(window);
    list->count = side.count;
    list->unit_bytes = window->targets[list->rank].disp_unit;
    list->disps = (const int64_t *)disps;
    return oriel_fetch_and_op_list(window, list);
}

int oriel_entry_Fetch_and_op_list(const void *origin_addr, void *result_addr, MPI_Count count,
                                  MPI_Datatype datatype, int target_rank,
                                  const MPI_Aint target_disps[], MPI_Op op, MPI_Win win)
{
    static const char call[] = "MPIX_Fetch_and_op_list";
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_error_no_extension(call, win);
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    struct oriel_element_list list = {
        .rank = target_rank, .origin = origin_addr, .result = result_addr};
    return oriel_error_raise(window, call,
                             fetch_list(window, count, datatype, op, target_disps, &list));
}
