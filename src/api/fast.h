/* The branch ahead of everything: an operation whose target is memory that the CPU reaches, with one datatype without holes
 * on both sides.  All checks are made, in few instructions; whatever does not pass, wrong or merely unusual, takes the general
 * way, which finds out what it is.  put_get.c and accumulate.c call. */
#ifndef ORIEL_API_FAST_H
#define ORIEL_API_FAST_H

#include "ops/datatype.h"
#include "sync/sync.h"

/* Where count items of type at a displacement of a target are loaded and stored, and how many bytes they are; NULL for the
 * general way.  Numbers that are negative, and products that overflow, fail the comparison with direct_bytes: a negative
 * count or displacement is a huge unsigned one, and a padded type has UINT64_MAX plain_bytes. */
static inline __attribute__((always_inline)) char *oriel_fast_address(struct oriel_window *window,
                                                                      const struct oriel_type *type, int64_t count,
                                                                      int target_rank, int64_t target_disp,
                                                                      uint64_t *len_bytes)
{
    uint64_t offset_bytes;
    uint64_t end_bytes;
    if (oriel_unlikely((uint32_t)target_rank >= (uint32_t)window->n))
        return NULL;
    if (oriel_unlikely(!(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_LOCK_ALL)) &&
        atomic_load_explicit(&window->access[target_rank], memory_order_relaxed) < ORIEL_ACCESS_SHARED)
        return NULL; /* a fence epoch, which must be marked as used, or none */
    const struct oriel_target *target = &window->targets[target_rank];
    if (oriel_unlikely(__builtin_mul_overflow((uint64_t)count, type->plain_bytes, len_bytes)) ||
        oriel_unlikely(__builtin_mul_overflow((uint64_t)target_disp, (uint64_t)target->disp_unit, &offset_bytes)) ||
        oriel_unlikely(__builtin_add_overflow(offset_bytes, *len_bytes, &end_bytes)) ||
        oriel_unlikely(end_bytes > target->direct_bytes))
        return NULL;
    return window->memory_bases[target_rank] + target->offset + offset_bytes;
}

#endif
