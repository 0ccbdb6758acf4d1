/* The fast path for elements that the CPU updates: one by accumulate, fetch_and_op or
 * compare_and_swap, or many in one run by accumulate. It makes all checks. A call that fails one,
 * invalid or merely unusual, takes the general path. */
#ifndef ORIEL_API_ATOMIC_FAST_H
#define ORIEL_API_ATOMIC_FAST_H

#include "api/put_get_fast.h"
#include "rma/rma.h"
#include "sync/atomic_mode.h"

/* Records for the fast path that elements of target's datatype were updated with this operator. */
static inline void oriel_element_remember(const struct oriel_type *type, MPI_Datatype datatype,
                                          MPI_Op op, enum oriel_operator oriel_op)
{
    oriel_element *kernel = type->predefined ? oriel_kinds[type->kind].native[oriel_op] : NULL;
    oriel_atomic_mode_claim();
    if (kernel == NULL || oriel_tls_cache.single == NULL)
        return;
    oriel_tls_cache.operator_key = (uint64_t)(uintptr_t)op;
    oriel_tls_cache.element_key = oriel_type_key(datatype);
    oriel_tls_cache.kernel = (void (*)(void))kernel;
    oriel_tls_cache.plain = (void (*)(void))oriel_kinds[type->kind].plain[oriel_op];
    oriel_tls_cache.element_mask = (uint64_t)type->extent_bytes - 1;
}

/* The address of an element of mask + 1 bytes, a power of two, that the CPU may update; NULL for
 * the general path. It makes all checks. */
static inline __attribute__((always_inline)) char *
oriel_element_place(const struct oriel_window *window, int target_rank, int64_t target_disp,
                    uint64_t mask)
{
    uint32_t rank = (uint32_t)target_rank;
    int64_t offset_bytes;
    uint64_t last_byte;
    if (oriel_unlikely(rank >= (uint32_t)window->n) ||
        oriel_unlikely(!oriel_fast_allowed(window, rank)))
        return NULL;
    const struct oriel_target *target = &window->targets[rank];
    if (oriel_unlikely(__builtin_mul_overflow(target_disp, target->disp_unit, &offset_bytes)) ||
        oriel_unlikely(__builtin_add_overflow((uint64_t)offset_bytes - target->direct_low, mask,
                                              &last_byte)) ||
        oriel_unlikely(last_byte >= target->direct_bytes))
        return NULL;
    char *there = window->memory_bases[rank] + target->offset + offset_bytes;
    if (oriel_unlikely(((uintptr_t)there & mask) != 0))
        return NULL;
    if (there == NULL)
        __builtin_unreachable(); /* removes the callers' comparison */
    return there;
}

/* Whether these are the window, operator and datatype that the thread last updated an element with.
 * Then the caller need not preserve them. */
static inline __attribute__((always_inline)) bool oriel_element_known(MPI_Win win, MPI_Op op,
                                                                      MPI_Datatype datatype)
{
    return oriel_likely(oriel_tls_cache_is_valid()) &&
           oriel_likely(oriel_tls_cache.window_key == oriel_handle_key(win)) &&
           oriel_likely(oriel_tls_cache.operator_key == (uint64_t)(uintptr_t)op) &&
           oriel_likely(oriel_tls_cache.element_key == oriel_type_key(datatype));
}

/* The address of an element for the kernel that the thread used last; NULL for the general path. If
 * it is not NULL, S1 and S2 are done and oriel_element_update must follow. */
static inline __attribute__((always_inline)) char *
oriel_element_enter(const void *origin_addr, int target_rank, MPI_Aint target_disp)
{
    const struct oriel_window *window = oriel_tls_cache.window;
    if (oriel_unlikely(origin_addr == NULL))
        return NULL;
    char *there =
        oriel_element_place(window, target_rank, target_disp, oriel_tls_cache.element_mask);
    if (oriel_unlikely(there == NULL) ||
        oriel_unlikely(!oriel_atomic_mode_announce(window, oriel_tls_cache.single)))
        return NULL;
    return there;
}

/* Whether the last plain kernel may update count elements in bulk, from a displacement of the
 * recent window on. Then *there is the address of the first. The flush after them needs no mark
 * (base/tls_cache.h), since a locked instruction releases the lock. */
static inline bool oriel_element_bulk(const void *origin_addr, int count, int target_rank,
                                      MPI_Aint target_disp, char **there)
{
    uint64_t len_bytes;
    const int64_t extent_bytes = (int64_t)oriel_tls_cache.element_mask + 1;
    return count >= ORIEL_BULK_ELEMENTS && origin_addr != NULL &&
           oriel_fast_range(target_rank, target_disp, 0, count, &extent_bytes, there, &len_bytes) &&
           len_bytes <= ORIEL_BULK_BYTES && ((uintptr_t)*there & oriel_tls_cache.element_mask) == 0;
}

/* The kernel does S4 (sync/atomic_mode.h). */
static inline __attribute__((always_inline)) int
oriel_element_update(char *there, const void *origin_addr, void *result_addr)
{
    struct oriel_atomic_mode *slot = oriel_tls_cache.single;
    return ((oriel_element *)oriel_tls_cache.kernel)(there, origin_addr, result_addr,
                                                     &slot->inside);
}

/* The recent datatype and operator, where the caller did not preserve the program's. */
static inline MPI_Datatype oriel_element_datatype(void)
{
    return (MPI_Datatype)(uintptr_t)oriel_tls_cache.element_key;
}

static inline MPI_Op oriel_element_operator(void)
{
    return (MPI_Op)(uintptr_t)oriel_tls_cache.operator_key;
}

#endif
