/* The fast path: an operation on target memory that the CPU reaches, with one datatype without
 * holes on both sides. It makes all checks, in few instructions. A call that fails one, invalid or
 * merely unusual, takes the general path, which reports the reason. */
#ifndef ORIEL_API_PUT_GET_FAST_H
#define ORIEL_API_PUT_GET_FAST_H

#include "datatype/datatype.h"
#include "sync/sync.h"
#include "window/handle.h"

/* Whether this is the window that the thread used last. */
static inline __attribute__((always_inline)) bool oriel_fast_window(MPI_Win win)
{
    return oriel_likely(oriel_tls_cache_is_valid()) &&
           oriel_likely(oriel_tls_cache.window_key == oriel_handle_key(win));
}

/* And whether this is the datatype that it used last. */
static inline __attribute__((always_inline)) bool oriel_fast_known(MPI_Win win,
                                                                   MPI_Datatype datatype)
{
    return oriel_fast_window(win) &&
           oriel_likely(oriel_tls_cache.type_key == oriel_type_key(datatype));
}

/* The same, returning both. */
static inline __attribute__((always_inline)) bool oriel_fast_find(MPI_Win win,
                                                                  MPI_Datatype datatype,
                                                                  struct oriel_window **window,
                                                                  const struct oriel_type **type)
{
    *window = oriel_tls_cache.window;
    *type = oriel_tls_cache.type;
    return oriel_fast_known(win, datatype);
}

/* The recent datatype, where the caller did not preserve the arguments. */
static inline MPI_Datatype oriel_fast_datatype(void)
{
    return (MPI_Datatype)(uintptr_t)oriel_tls_cache.type_key;
}

/* Whether an epoch to this rank of the recent window is open. False for the first operation of a
 * fence epoch, which must mark the epoch as used. */
static inline __attribute__((always_inline)) bool
oriel_fast_allowed(const struct oriel_window *window, uint32_t rank)
{
    return oriel_likely(oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_ALL_TARGETS) ||
           atomic_load_explicit(&oriel_window_access(window)[rank], memory_order_relaxed) >=
               ORIEL_ACCESS_STATE_SHARED;
}

/* The address of a displacement at a target of the recent window, if all of count * each_bytes from
 * low_bytes around it (at most 0) is loaded and stored. False for the general path. A negative
 * displacement or length exceeds direct_bytes as an unsigned number. each_bytes is loaded late to
 * save a register. */
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

/* The same for count items of the recent datatype. A datatype with holes or padding has plain_bytes
 * INT64_MAX. */
static inline __attribute__((always_inline)) bool oriel_fast_place(int64_t count, int target_rank,
                                                                   int64_t target_disp,
                                                                   char **there,
                                                                   uint64_t *len_bytes)
{
    return oriel_fast_range(target_rank, target_disp, 0, count, &oriel_tls_cache.plain_bytes, there,
                            len_bytes);
}

#endif
