/* The rare halves of the checks: sides that differ, and saying what is wrong.  The first thing found wrong is reported, in
 * the order rank, epoch, range.  The entry points of the operations call. */
#include "api/check.h"

enum oriel_status oriel_check_refuse(const struct oriel_window *window, int target_rank, MPI_Aint target_disp,
                                     const struct oriel_span *span)
{
    if (target_rank < 0 || target_rank >= window->n)
        return oriel_fail(ORIEL_E_RANK, "target rank %d, the window has ranks 0 to %d", target_rank, window->n - 1);
    const struct oriel_target *target = &window->targets[target_rank];
    if (!oriel_access_allowed((struct oriel_window *)(uintptr_t)window, target_rank))
        return oriel_fail(ORIEL_E_SYNC, "no access epoch to rank %d is open", target_rank);
    return oriel_fail(ORIEL_E_RANGE,
                      "displacement %ld in units of %ld with %lu elements of %u bytes leaves rank %d's window of %lu bytes",
                      (long)target_disp, (long)target->disp_unit, (unsigned long)span->count,
                      oriel_kinds[span->kind].extent_bytes, target_rank, (unsigned long)target->size_bytes);
}

static enum oriel_status check_counts(const struct oriel_sides *sides)
{
    if (sides->origin_count < 0)
        return oriel_fail(ORIEL_E_COUNT, "origin count %lld is negative", (long long)sides->origin_count);
    if (sides->target_count < 0)
        return oriel_fail(ORIEL_E_COUNT, "target count %lld is negative", (long long)sides->target_count);
    return ORIEL_OK;
}

/* Elements of count items; UINT64_MAX, which no window holds, when that overflows. */
static uint64_t elements_of(MPI_Count count, const struct oriel_type *type)
{
    uint64_t elements;
    return __builtin_mul_overflow((uint64_t)count, type->elements, &elements) ? UINT64_MAX : elements;
}

static uint64_t bytes_of(MPI_Count count, const struct oriel_type *type)
{
    uint64_t bytes;
    return __builtin_mul_overflow((uint64_t)count, type->extent_bytes, &bytes) ? UINT64_MAX : bytes;
}

static enum oriel_status check_fits(uint64_t source, uint64_t destination, const char *unit)
{
    if (source <= destination)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_TRUNCATE, "%lu %s do not fit into a buffer of %lu", (unsigned long)source, unit,
                      (unsigned long)destination);
}

enum oriel_status oriel_check_conversion(const struct oriel_sides *sides, const struct oriel_type *target, bool to_target,
                                         struct oriel_span *out)
{
    const struct oriel_type *origin;
    enum oriel_status status = check_counts(sides);
    if (status == ORIEL_OK)
        status = oriel_type_find(sides->origin_datatype, &origin);
    if (status != ORIEL_OK)
        return status;
    bool by_element = origin->kind == target->kind;
    if (!by_element && (origin->padded || target->padded))
        return oriel_fail(ORIEL_E_TYPE, "a pair type on one side only");
    uint64_t at_origin = by_element ? elements_of(sides->origin_count, origin) : bytes_of(sides->origin_count, origin);
    uint64_t at_target = by_element ? elements_of(sides->target_count, target) : bytes_of(sides->target_count, target);
    out->kind = by_element ? target->kind : ORIEL_KIND_BYTE;
    out->count = to_target ? at_origin : at_target;
    return check_fits(out->count, to_target ? at_target : at_origin, by_element ? "elements" : "bytes");
}

enum oriel_status oriel_check_accumulate(struct oriel_window *window, const struct oriel_sides *sides, bool needs_origin,
                                         struct oriel_span *span)
{
    const struct oriel_type *origin;
    const struct oriel_type *target;
    enum oriel_status status = check_counts(sides);
    if (status == ORIEL_OK)
        status = oriel_type_find(sides->target_datatype, &target);
    if (status != ORIEL_OK)
        return status;
    span->kind = target->kind;
    span->count = elements_of(sides->target_count, target);
    if (needs_origin) {
        status = oriel_type_find(sides->origin_datatype, &origin);
        if (status != ORIEL_OK)
            return status;
        if (origin->kind != target->kind)
            return oriel_fail(ORIEL_E_TYPE, "origin and target are not of one predefined datatype");
        uint64_t at_origin = elements_of(sides->origin_count, origin);
        status = check_fits(at_origin, span->count, "elements");
        if (status != ORIEL_OK)
            return status;
        span->count = at_origin;
    }
    return oriel_check_target(window, sides->target_rank, sides->target_disp, span);
}

enum oriel_status oriel_check_operator(MPI_Op op, enum oriel_kind kind, enum oriel_operator *out)
{
    *out = oriel_operator_find(op);
    if (*out == ORIEL_OPERATOR_NONE)
        return oriel_fail(ORIEL_E_OP, "only predefined operators can be used");
    if (oriel_kinds[kind].plain[*out] == NULL)
        return oriel_fail(ORIEL_E_OP, "the operator is not defined on this datatype");
    return ORIEL_OK;
}

enum oriel_status oriel_check_assert(int assert)
{
    int known = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    return (assert & ~known) == 0 ? ORIEL_OK : oriel_fail(ORIEL_E_ASSERT, "assertion %d is not one of MPI's", assert);
}
