/* The branch ahead of everything: an operation whose target is memory that the CPU reaches, with one datatype without holes
 * on both sides.  All checks are made, in few instructions; whatever does not pass, wrong or merely unusual, takes the general
 * way, which finds out what it is.  put_get.c and accumulate.c call. */
#ifndef ORIEL_API_FAST_H
#define ORIEL_API_FAST_H

#include "ops/datatype.h"
#include "sync/sync.h"
#include "window/handle.h"

/* The window and the datatype that the thread used last, if they are these; false for the general way. */
static inline __attribute__((always_inline)) bool oriel_fast_find(MPI_Win win, MPI_Datatype datatype,
                                                                  struct oriel_window **window,
                                                                  const struct oriel_type **type)
{
    *window = oriel_recent.window;
    *type = oriel_recent.type;
    return oriel_likely(oriel_recent_is_valid()) && oriel_likely(oriel_recent.window_key == oriel_handle_key(win)) &&
           oriel_likely(oriel_recent.type_key == oriel_type_key(datatype));
}

/* Where count items of type at a displacement of a target are loaded and stored, and how many bytes they are; NULL for the
 * general way.  A negative displacement is above direct_bytes as an unsigned number, and so is a negative length; a padded
 * type has INT64_MAX plain_bytes. */
static inline __attribute__((always_inline)) char *oriel_fast_address(struct oriel_window *window,
                                                                      const struct oriel_type *type, int64_t count,
                                                                      int target_rank, int64_t target_disp,
                                                                      uint64_t *len_bytes)
{
    int64_t offset_bytes;
    int64_t wanted_bytes;
    if (oriel_unlikely((uint32_t)target_rank >= (uint32_t)window->n))
        return NULL;
    uint32_t rank = (uint32_t)target_rank;
    if (oriel_unlikely(!(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_ALL_TARGETS)) &&
        atomic_load_explicit(&window->access[rank], memory_order_relaxed) < ORIEL_ACCESS_SHARED)
        return NULL; /* the first operation of a fence epoch, which must mark it as used, or none */
    const struct oriel_target *target = &window->targets[rank];
    if (oriel_unlikely(__builtin_mul_overflow(count, type->plain_bytes, &wanted_bytes)) ||
        oriel_unlikely(__builtin_mul_overflow(target_disp, target->disp_unit, &offset_bytes)))
        return NULL;
    uint64_t direct_bytes = (uint64_t)offset_bytes - target->direct_low; /* from the first that is reached so */
    if (oriel_unlikely(direct_bytes > target->direct_bytes) ||
        oriel_unlikely((uint64_t)wanted_bytes > target->direct_bytes - direct_bytes))
        return NULL;
    *len_bytes = (uint64_t)wanted_bytes;
    return window->memory_bases[rank] + target->offset + offset_bytes;
}

#endif
