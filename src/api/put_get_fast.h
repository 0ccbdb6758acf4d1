/* The branch ahead of everything: an operation whose target is memory that the CPU reaches, with one datatype without holes
 * on both sides.  All checks are made, in few instructions; whatever does not pass, wrong or merely unusual, takes the general
 * way, which finds out what it is.  put_get.c and accumulate.c call. */
#ifndef ORIEL_API_PUT_GET_FAST_H
#define ORIEL_API_PUT_GET_FAST_H

#include "datatype/datatype.h"
#include "sync/sync.h"
#include "window/handle.h"

/* Whether the window that the thread used last is this one. */
static inline __attribute__((always_inline)) bool oriel_fast_window(MPI_Win win)
{
    return oriel_likely(oriel_tls_cache_is_valid()) &&
           oriel_likely(oriel_tls_cache.window_key == oriel_handle_key(win));
}

/* And whether the datatype is. */
static inline __attribute__((always_inline)) bool oriel_fast_known(MPI_Win win,
                                                                   MPI_Datatype datatype)
{
    return oriel_fast_window(win) &&
           oriel_likely(oriel_tls_cache.type_key == oriel_type_key(datatype));
}

/* The same, with both. */
static inline __attribute__((always_inline)) bool oriel_fast_find(MPI_Win win,
                                                                  MPI_Datatype datatype,
                                                                  struct oriel_window **window,
                                                                  const struct oriel_type **type)
{
    *window = oriel_tls_cache.window;
    *type = oriel_tls_cache.type;
    return oriel_fast_known(win, datatype);
}

/* The recent datatype, where win and all else that the program gave need not be kept. */
static inline MPI_Datatype oriel_fast_datatype(void)
{
    return (MPI_Datatype)(uintptr_t)oriel_tls_cache.type_key;
}

/* Whether an epoch to this rank of the recent window is open.  Not the first operation of a fence epoch, which must mark it as
 * used. */
static inline __attribute__((always_inline)) bool
oriel_fast_allowed(const struct oriel_window *window, uint32_t rank)
{
    return oriel_likely(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_ALL_TARGETS) ||
           atomic_load_explicit(&oriel_window_access(window)[rank], memory_order_relaxed) >=
               ORIEL_ACCESS_SHARED;
}

/* Where a displacement of a target of the recent window is, if count times each_bytes from low_bytes around it, at most 0, on are
 * loaded and stored; false for the general way.  A negative displacement is above direct_bytes as an unsigned number, and so is a
 * negative length.  That each_bytes is loaded late spares a register. */
static inline __attribute__((always_inline)) bool
oriel_fast_range(int target_rank, int64_t target_disp, int64_t low_bytes, int64_t count,
                 const int64_t *each_bytes, char **there, uint64_t *len_bytes)
{
    int64_t offset_bytes;
    int64_t wanted_bytes;
    uint32_t rank = (uint32_t)target_rank;
    const struct oriel_window *window = oriel_tls_cache.window;
    if (oriel_unlikely(rank >= (uint32_t)window->n) ||
        oriel_unlikely(!oriel_fast_allowed(window, rank)))
        return false;
    const struct oriel_target *target = &window->targets[rank];
    if (oriel_unlikely(__builtin_mul_overflow(count, *each_bytes, &wanted_bytes)) ||
        oriel_unlikely(__builtin_mul_overflow(target_disp, target->disp_unit, &offset_bytes)))
        return false;
    uint64_t end;
    const uint64_t start = (uint64_t)offset_bytes + (uint64_t)low_bytes - target->direct_low;
    if (oriel_unlikely(__builtin_add_overflow(start, (uint64_t)wanted_bytes, &end)) ||
        oriel_unlikely(end > target->direct_bytes))
        return false;
    *there = window->memory_bases[rank] + target->offset + offset_bytes;
    *len_bytes = (uint64_t)wanted_bytes;
    return true;
}

/* The same for count items of the recent datatype; one with holes or padding has INT64_MAX plain_bytes. */
static inline __attribute__((always_inline)) bool oriel_fast_place(int64_t count, int target_rank,
                                                                   int64_t target_disp,
                                                                   char **there,
                                                                   uint64_t *len_bytes)
{
    return oriel_fast_range(target_rank, target_disp, 0, count, &oriel_tls_cache.plain_bytes, there,
                            len_bytes);
}

#endif
