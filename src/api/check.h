/* The checks of every operation before anything moves: counts, datatypes, rank, epoch, range.  They are always on.  The entry
 * points of put, get and the accumulates call. */
#ifndef ORIEL_API_CHECK_H
#define ORIEL_API_CHECK_H

#include "ops/datatype.h"
#include "ops/ops.h"
#include "sync/sync.h"

/* The arguments that all operations share, counts widened. */
struct oriel_sides {
    MPI_Count origin_count;
    MPI_Datatype origin_datatype;
    int target_rank;
    MPI_Aint target_disp;
    MPI_Count target_count;
    MPI_Datatype target_datatype;
};

/* ORIEL_E_RANK, _SYNC or _RANGE with the message, from the one place where they are found. */
enum oriel_status oriel_check_refuse(const struct oriel_window *window, int target_rank, MPI_Aint target_disp,
                                     const struct oriel_span *span);

/* Both datatypes differ in handle or count: finds what moves.  to_target says which side is the source. */
enum oriel_status oriel_check_conversion(const struct oriel_sides *sides, const struct oriel_type *target, bool to_target,
                                         struct oriel_span *out);

/* The bytes from the first to the last of a span; false when that overflows. */
static inline bool oriel_span_bytes(const struct oriel_span *span, uint64_t *out)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[span->kind];
    if (oriel_unlikely(__builtin_mul_overflow(span->count, (uint64_t)kind->extent_bytes, out)))
        return false;
    if (oriel_unlikely(kind->padded) && span->count > 0)
        *out -= kind->extent_bytes - kind->index_offset - kind->index_bytes;
    return true;
}

/* Rank, epoch and range of span->count elements of span->kind; fills in target and offset. */
static inline enum oriel_status oriel_check_target(struct oriel_window *window, int target_rank, MPI_Aint target_disp,
                                                   struct oriel_span *span)
{
    uint64_t len_bytes;
    uint64_t offset_bytes;
    uint64_t end_bytes;
    if (oriel_unlikely((uint32_t)target_rank >= (uint32_t)window->n) ||
        oriel_unlikely(!oriel_access_allowed(window, target_rank)))
        return oriel_check_refuse(window, target_rank, target_disp, span);
    const struct oriel_target *target = &window->targets[target_rank];
    span->target = target_rank;
    span->offset_bytes = 0;
    if (oriel_unlikely(span->count == 0))
        return ORIEL_OK; /* nothing is accessed at any displacement */
    if (oriel_unlikely(!oriel_span_bytes(span, &len_bytes) || target_disp < 0 ||
                       __builtin_mul_overflow((uint64_t)target_disp, (uint64_t)target->disp_unit, &offset_bytes) ||
                       __builtin_add_overflow(offset_bytes, len_bytes, &end_bytes) || end_bytes > target->size_bytes))
        return oriel_check_refuse(window, target_rank, target_disp, span);
    span->offset_bytes = offset_bytes;
    return ORIEL_OK;
}

/* Put (to_target) and get: all checks. */
static inline enum oriel_status oriel_check_transfer(struct oriel_window *window, const struct oriel_sides *sides,
                                                     bool to_target, struct oriel_span *span)
{
    const struct oriel_type *target;
    enum oriel_status status = oriel_type_find(sides->target_datatype, &target);
    if (oriel_unlikely(status != ORIEL_OK))
        return status;
    if (oriel_likely(sides->origin_datatype == sides->target_datatype && sides->origin_count == sides->target_count &&
                     sides->target_count >= 0)) {
        span->kind = target->kind;
        if (oriel_unlikely(__builtin_mul_overflow((uint64_t)sides->target_count, target->elements, &span->count)))
            span->count = UINT64_MAX; /* cannot be in range */
    } else {
        status = oriel_check_conversion(sides, target, to_target, span);
        if (status != ORIEL_OK)
            return status;
    }
    return oriel_check_target(window, sides->target_rank, sides->target_disp, span);
}

/* The accumulates: one predefined type on both sides.  needs_origin is false for MPI_NO_OP, whose origin is ignored. */
enum oriel_status oriel_check_accumulate(struct oriel_window *window, const struct oriel_sides *sides, bool needs_origin,
                                         struct oriel_span *span);

/* The operator on the kind; ORIEL_E_OP when it is the user's or not allowed there. */
enum oriel_status oriel_check_operator(MPI_Op op, enum oriel_kind kind, enum oriel_operator *out);

/* ORIEL_E_ASSERT when assert has bits that are none of the five assertions. */
enum oriel_status oriel_check_assert(int assert);

#endif
