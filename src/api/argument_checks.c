/* The full checks of operations; put_get_fast.h has the short form of the checks that usually
 * pass. */
#include "api/argument_checks.h"

#include "internode/internode.h"
#include "rma/region_lookup.h"

static enum oriel_status out_of_range(const struct oriel_target *there, MPI_Aint target_disp,
                                      const struct oriel_span *target)
{
    return oriel_fail(ORIEL_E_RANGE,
                      "displacement %ld in units of %ld with %lu items of %lu bytes exceeds rank "
                      "%d's window of %lu bytes",
                      (long)target_disp, (long)there->disp_unit, (unsigned long)target->side.count,
                      (unsigned long)target->side.type->size_bytes, target->rank,
                      (unsigned long)there->size_bytes);
}

static enum oriel_status not_attached(uint64_t address, uint64_t len_bytes, int32_t target)
{
    return oriel_fail(ORIEL_E_RANGE, "%lu bytes at address %#lx are not all attached at rank %d",
                      (unsigned long)len_bytes, (unsigned long)address, (int)target);
}

/* Checks every run of the target's items separately: the holes between them need not be
 * attached. */
static enum oriel_status check_runs(const struct oriel_window *window, uint64_t address,
                                    const struct oriel_span *target)
{
    struct oriel_cursor cursor;
    enum oriel_status status = ORIEL_OK;
    const struct oriel_type *type = target->side.type;
    if (!oriel_cursor_open(&cursor, type->layout, target->side.count, type->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    while (status == ORIEL_OK && oriel_cursor_fill(&cursor)) {
        const struct oriel_batch *batch = &cursor.batch;
        uint64_t run = address + (uint64_t)batch->at_bytes;
        uint64_t len_bytes = batch->run_bytes - oriel_kind_tail_bytes(&oriel_kinds[batch->kind]);
        if (!oriel_region_lookup_hold(window, target->rank, run, len_bytes))
            status = not_attached(run, len_bytes, target->rank);
        oriel_batch_use_runs(&cursor.batch, 1);
    }
    oriel_cursor_close(&cursor);
    return status;
}

/* For a dynamic window: the displacement is an address, and all accessed bytes must be attached
 * (MPI-4.1, 13.2.4). */
static enum oriel_status check_attached(const struct oriel_window *window, MPI_Aint target_disp,
                                        struct oriel_span *target)
{
    int64_t low_bytes;
    int64_t high_bytes;
    const struct oriel_type *type = target->side.type;
    uint64_t address = (uint64_t)target_disp;
    target->offset_bytes = address;
    if (oriel_is_internode(window, target->rank))
        return ORIEL_OK; /* the target has the table and checks it */
    if (!oriel_layout_bounds(type->layout, target->side.count, type->extent_bytes, &low_bytes,
                             &high_bytes))
        return not_attached(address, type->size_bytes, target->rank);
    uint64_t low = address + (uint64_t)low_bytes;
    uint64_t len_bytes = (uint64_t)high_bytes - (uint64_t)low_bytes;
    if (oriel_region_lookup_hold(window, target->rank, low, len_bytes))
        return ORIEL_OK;
    return type->dense ? not_attached(low, len_bytes, target->rank)
                       : check_runs(window, address, target);
}

enum oriel_status oriel_check_rank(const struct oriel_window *window, int rank)
{
    if (oriel_likely((uint32_t)rank < (uint32_t)window->n))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_RANK, "rank %d is outside the window (ranks 0 to %d)", rank,
                      window->n - 1);
}

enum oriel_status oriel_check_target(struct oriel_window *window, int target_rank,
                                     MPI_Aint target_disp, enum oriel_issue issue,
                                     struct oriel_span *target)
{
    if (target_rank < 0 || target_rank >= window->n)
        return oriel_fail(ORIEL_E_RANK, "target rank %d is outside the window (ranks 0 to %d)",
                          target_rank, window->n - 1);
    if (issue == ORIEL_ISSUE_NOW && !oriel_access_allowed(window, target_rank))
        return oriel_fail(ORIEL_E_SYNC, "no access epoch to rank %d is open", target_rank);
    return oriel_check_range(window, target_rank, target_disp, issue, target);
}

enum oriel_status oriel_check_range(struct oriel_window *window, int target_rank,
                                    MPI_Aint target_disp, enum oriel_issue issue,
                                    struct oriel_span *target)
{
    int64_t low_bytes;
    int64_t high_bytes;
    int64_t offset_bytes;
    const struct oriel_type *type = target->side.type;
    const struct oriel_target *there = &window->targets[target_rank];
    target->rank = target_rank;
    target->offset_bytes = 0;
    target->notifies = 0;
    if (target->side.count == 0 || type->elements == 0)
        return ORIEL_OK; /* nothing is accessed at any displacement */
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC)
        return issue == ORIEL_ISSUE_NOW ? check_attached(window, target_disp, target) : ORIEL_OK;
    if (target_disp < 0)
        return oriel_fail(ORIEL_E_DISP, "displacement %ld in rank %d's window is negative",
                          (long)target_disp, target_rank);
    if (__builtin_mul_overflow(target_disp, there->disp_unit, &offset_bytes) ||
        !oriel_layout_bounds(type->layout, target->side.count, type->extent_bytes, &low_bytes,
                             &high_bytes) ||
        __builtin_add_overflow(low_bytes, offset_bytes, &low_bytes) ||
        __builtin_add_overflow(high_bytes, offset_bytes, &high_bytes) || low_bytes < 0 ||
        (uint64_t)high_bytes > there->size_bytes)
        return out_of_range(there, target_disp, target);
    target->offset_bytes = (uint64_t)offset_bytes;
    return ORIEL_OK;
}

static enum oriel_status find_side(const char *which, MPI_Count count, MPI_Datatype datatype,
                                   struct oriel_side *out)
{
    if (count < 0)
        return oriel_fail(ORIEL_E_COUNT, "%s count %lld is negative", which, (long long)count);
    out->count = (uint64_t)count;
    return oriel_type_find(datatype, &out->type);
}

/* count * each; on overflow UINT64_MAX, which no buffer can hold. */
static uint64_t multiply_saturated(uint64_t count, uint64_t each)
{
    uint64_t product;
    return __builtin_mul_overflow(count, each, &product) ? UINT64_MAX : product;
}

static enum oriel_status check_fits(uint64_t source, uint64_t destination, const char *unit)
{
    if (source <= destination)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_TRUNCATE, "%lu %s do not fit into a buffer of %lu",
                      (unsigned long)source, unit, (unsigned long)destination);
}

enum oriel_status oriel_check_transfer(struct oriel_window *window, const struct oriel_sides *sides,
                                       bool to_target, enum oriel_issue issue,
                                       struct oriel_span *target, struct oriel_side *origin)
{
    enum oriel_status status =
        find_side("origin", sides->origin_count, sides->origin_datatype, origin);
    if (status == ORIEL_OK)
        status = find_side("target", sides->target_count, sides->target_datatype, &target->side);
    if (status != ORIEL_OK)
        return status;
    uint64_t at_origin = multiply_saturated(origin->count, origin->type->size_bytes);
    uint64_t at_target = multiply_saturated(target->side.count, target->side.type->size_bytes);
    status =
        check_fits(to_target ? at_origin : at_target, to_target ? at_target : at_origin, "bytes");
    return status != ORIEL_OK
               ? status
               : oriel_check_target(window, sides->target_rank, sides->target_disp, issue, target);
}

static uint64_t side_elements(const struct oriel_side *side)
{
    return multiply_saturated(side->count, side->type->elements);
}

static uint64_t side_bytes(const struct oriel_side *side)
{
    return multiply_saturated(side->count, side->type->size_bytes);
}

static bool have_one_kind(const struct oriel_type *here, const struct oriel_type *target)
{
    return here->kind != ORIEL_KIND_NONE && here->kind == target->kind;
}

/* Bytes can be moved one by one between the types. */
static bool can_move_as_bytes(const struct oriel_type *here, const struct oriel_type *target)
{
    return !here->layout->padded && !target->layout->padded;
}

static bool may_be_on_pairs(MPI_Op op)
{
    return op == MPI_MINLOC || op == MPI_MAXLOC || op == MPI_REPLACE || op == MPI_NO_OP;
}

/* Pairs on both sides: describes them as such. */
static void sides_take_pairs(struct oriel_side *here, struct oriel_side *target)
{
    const struct oriel_type *pair = target->type->as_pair;
    if (pair == NULL || here->type->as_pair == NULL || here->type->as_pair->kind != pair->kind)
        return;
    here->type = here->type->as_pair;
    target->type = pair;
}

/* The target and the origin. */
static enum oriel_status check_operands(struct oriel_window *window,
                                        const struct oriel_sides *sides, MPI_Op op,
                                        enum oriel_issue issue, struct oriel_span *target,
                                        struct oriel_side *origin, struct oriel_elements *elements)
{
    enum oriel_status status = ORIEL_OK;
    struct oriel_side *source = op != MPI_NO_OP ? origin : &target->side;
    if (op != MPI_NO_OP)
        status = find_side("origin", sides->origin_count, sides->origin_datatype, origin);
    if (status == ORIEL_OK)
        status = find_side("target", sides->target_count, sides->target_datatype, &target->side);
    if (status != ORIEL_OK)
        return status;
    if (may_be_on_pairs(op))
        sides_take_pairs(source, &target->side);
    uint64_t at_target = side_elements(&target->side);
    *elements = (struct oriel_elements){target->side.type->kind, side_elements(source)};
    if (elements->count > 0 && at_target > 0 && !have_one_kind(source->type, target->side.type)) {
        if ((op != MPI_REPLACE && op != MPI_NO_OP) ||
            !can_move_as_bytes(source->type, target->side.type))
            return oriel_fail(ORIEL_E_TYPE,
                              "origin and target do not have one predefined datatype");
        *elements = (struct oriel_elements){ORIEL_KIND_CHAR, side_bytes(source)};
        at_target = side_bytes(&target->side);
    }
    status = check_fits(elements->count, at_target,
                        elements->kind == ORIEL_KIND_CHAR ? "bytes" : "elements");
    return status != ORIEL_OK
               ? status
               : oriel_check_target(window, sides->target_rank, sides->target_disp, issue, target);
}

enum oriel_status oriel_check_buffer(const char *which, const void *address,
                                     const struct oriel_side *side)
{
    int64_t low_bytes;
    int64_t high_bytes;
    if (side->count == 0 || side->type->elements == 0)
        return ORIEL_OK;
    if (!oriel_layout_bounds(side->type->layout, side->count, side->type->extent_bytes, &low_bytes,
                             &high_bytes))
        return oriel_fail(ORIEL_E_BUFFER, "the %s buffer exceeds the address space", which);
    if (address == NULL && low_bytes <= 0)
        return oriel_fail(ORIEL_E_BUFFER, "the %s buffer is NULL", which);
    return ORIEL_OK;
}

static enum oriel_status check_result(const struct oriel_side *target,
                                      struct oriel_elements elements, MPI_Count count,
                                      MPI_Datatype datatype, struct oriel_side *result)
{
    enum oriel_status status = find_side("result", count, datatype, result);
    if (status != ORIEL_OK || elements.count == 0)
        return status;
    if (result->type->as_pair != NULL && result->type->as_pair->kind == target->type->kind)
        result->type = result->type->as_pair;
    if (have_one_kind(result->type, target->type))
        return check_fits(side_elements(target), side_elements(result), "elements of the target");
    status = check_fits(side_bytes(target), side_bytes(result), "bytes of the target");
    if (status == ORIEL_OK && !can_move_as_bytes(result->type, target->type))
        return oriel_fail(ORIEL_E_TYPE, "result and target do not have one predefined datatype");
    return status;
}

enum oriel_status oriel_check_operator(MPI_Op op, enum oriel_kind kind, enum oriel_operator *out)
{
    *out = oriel_operator_find(op);
    if (*out == ORIEL_OPERATOR_NONE)
        return oriel_fail(ORIEL_E_OP, "only predefined operators can be used");
    if (kind != ORIEL_KIND_NONE && oriel_kinds[kind].plain[*out] == NULL)
        return oriel_fail(ORIEL_E_OP, "the operator is not defined on this datatype");
    return ORIEL_OK;
}

enum oriel_status oriel_check_accumulate(struct oriel_window *window,
                                         const struct oriel_accumulate_arguments *given,
                                         bool has_result, enum oriel_issue issue,
                                         struct oriel_accumulate_operands *out)
{
    const bool reads_origin = given->op != MPI_NO_OP;
    out->origin.here = (char *)(uintptr_t)given->origin;
    out->result.here = given->result;
    if (!reads_origin && !has_result)
        return oriel_fail(ORIEL_E_OP, "MPI_NO_OP is for get_accumulate and fetch_and_op only");
    enum oriel_status status = check_operands(window, &given->sides, given->op, issue, &out->target,
                                              &out->origin.side, &out->elements);
    if (status == ORIEL_OK)
        status = oriel_check_operator(
            given->op, out->elements.count > 0 ? out->elements.kind : ORIEL_KIND_NONE, &out->op);
    if (status == ORIEL_OK && has_result)
        status = check_result(&out->target.side, out->elements, given->result_count,
                              given->result_datatype, &out->result.side);
    if (status == ORIEL_OK && reads_origin)
        status = oriel_check_buffer("origin", given->origin, &out->origin.side);
    if (status == ORIEL_OK && has_result && out->elements.count > 0)
        status = oriel_check_buffer("result", given->result, &out->result.side);
    return status;
}

enum oriel_status oriel_check_element_type(MPI_Datatype datatype, const struct oriel_type **type)
{
    const enum oriel_status status = oriel_type_find(datatype, type);
    if (status != ORIEL_OK)
        return status;
    if ((*type)->as_pair != NULL)
        *type = (*type)->as_pair;
    else if (!(*type)->predefined)
        return oriel_fail(ORIEL_E_TYPE, "the datatype must be predefined");
    return ORIEL_OK;
}

enum oriel_status oriel_check_swap_type(MPI_Datatype datatype, const struct oriel_type **type)
{
    const enum oriel_status status = oriel_check_element_type(datatype, type);
    return status == ORIEL_OK && !oriel_kind_is_swapped((*type)->kind)
               ? oriel_fail(ORIEL_E_TYPE, "compare_and_swap is not defined on this datatype")
               : status;
}

enum oriel_status oriel_check_swap(struct oriel_window *window,
                                   const struct oriel_swap_arguments *given,
                                   const struct oriel_type *type, enum oriel_issue issue,
                                   struct oriel_span *target)
{
    target->side = (struct oriel_side){type, 1};
    enum oriel_status status =
        oriel_check_target(window, given->target_rank, given->target_disp, issue, target);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", given->origin, &target->side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("compare", given->compare, &target->side);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("result", given->result, &target->side);
    return status;
}

enum oriel_status oriel_check_assert(int assert, int taken)
{
    return (assert & ~taken) == 0
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_ASSERT, "assertion %d is not valid for this call", assert);
}
