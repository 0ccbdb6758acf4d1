/* The window and the datatype that this thread used last, with the fields that the data path needs
 * of both, so it finds everything in a few loads. An entry is valid only while its generation
 * equals the process's. Every free of a window or of a derived datatype increments that generation.
 */
#ifndef ORIEL_BASE_TLS_CACHE_H
#define ORIEL_BASE_TLS_CACHE_H

#include "base/atomic.h"

#include <stdbool.h>

struct oriel_tls_cache {
    uint64_t generation; /* 0, which is not a valid generation, in a new thread */
    uint64_t window_key; /* the host's handle */
    void *window;        /* struct oriel_window */
    /* size of the window's group; 0 if operations may be outstanding (window/handle.c) */
    uint32_t ranks;
    /* countdown to the host's next turn, and mark for flushes (see below); stays when the entry is
     * dropped */
    uint32_t turns;
    uint64_t type_key;   /* the host's handle */
    const void *type;    /* struct oriel_type */
    int64_t plain_bytes; /* the type's plain_bytes */
    /* For accumulates. They need no generation: handles of predefined operators and datatypes never
     * change. */
    void *single; /* this thread's slot (sync/atomic_mode.h); NULL before it has one */
    /* the last operator and single-element datatype with a native kernel; NO_KEY before the first,
     * and while there is no slot */
    uint64_t operator_key;
    uint64_t element_key;
    void (*kernel)(void);  /* oriel_element */
    void (*plain)(void);   /* oriel_kernel, for many elements of that operator and datatype */
    uint64_t element_mask; /* element size - 1 */
};

/* Hidden, so the compiler knows that they are defined in this library. */
extern _Thread_local struct oriel_tls_cache oriel_tls_cache __attribute__((visibility("hidden")));
extern _Atomic uint64_t oriel_tls_cache_generation __attribute__((visibility("hidden")));

#define ORIEL_TLS_CACHE_NO_KEY                                                                     \
    UINT64_C(0xffffffff00000000) /* neither a widened int nor a valid pointer */

static inline bool oriel_tls_cache_is_valid(void)
{
    return oriel_tls_cache.generation ==
           atomic_load_explicit(&oriel_tls_cache_generation, memory_order_relaxed);
}

/* The current generation, to be read before the table whose result is cached. The result is valid
 * only for this generation. */
static inline uint64_t oriel_tls_cache_begin(void)
{
    return atomic_load_explicit(&oriel_tls_cache_generation, memory_order_acquire);
}

void oriel_tls_cache_set_window(uint64_t generation, uint64_t key, void *window, uint32_t ranks);
void oriel_tls_cache_set_type(uint64_t generation, uint64_t key, const void *type,
                              int64_t plain_bytes);

/* Invalidates the entries of all threads. */
void oriel_tls_cache_invalidate(void);

/* Flushes. A flush must order the stores of operations before the loads of later ones. That needs a
 * full fence: a locked instruction that waits until the store buffer is empty. On x86-64 no fence
 * is needed if this thread executed only loads, or nothing, since its last fence:
 * F1: an operation that may store into a window marks the thread. Exceptions are stores by a locked
 *     instruction of the operation, and stores that precede one.
 * F2: a flush of a marked thread executes the fence and clears the mark.
 * F3: a flush of an unmarked thread does nothing.
 *
 * Stores of this thread: F1 precedes F2 or F3 in program order. So each store precedes a fence
 * before the flush returns, or was made by a locked instruction, which is itself a fence, or
 * preceded one. If memmove streams a long copy with non-temporal stores, it executes its own fence.
 *
 * Loads of this thread: x86-64 executes them in program order, before later loads and later stores.
 *
 * Stores of another thread of the process, which MPI's flush also completes: if the flush is
 * ordered after them at all, the storing thread has signalled this one. The signal is a later
 * store, or goes through the kernel, which fences, and this thread has seen it. x86-64 makes a
 * thread's stores visible in order, and a store that one other thread sees is visible to all. So a
 * thread that sees the later store can rely on the earlier ones being in memory. All its later
 * loads are ordered after them.
 *
 * C11 has no such rule: a store that happened before a load of another location may still be
 * invisible to third parties. Some processors make a store visible to some others earlier than to
 * the rest, and some execute loads out of order. On those, F3 also executes the fence.
 *
 * The program's own stores into its window are not operations: MPI_Win_sync covers them and always
 * fences. If the buffer of a get or the result of a fetch_and_op is in a window, the stores of the
 * result are such stores, too.
 *
 * turns: the lower 30 bits count down to the host's next turn, and both upper bits are the mark. So
 * the sign shows whether there is anything to do, also when a marked count goes below 0. */
#define ORIEL_TLS_CACHE_TURNS 4096u
#define ORIEL_TLS_CACHE_COUNT 0x3fffffffu
#define ORIEL_TLS_CACHE_MARK  (~ORIEL_TLS_CACHE_COUNT)

static inline void oriel_tls_cache_mark(void)
{
    oriel_tls_cache.turns |= ORIEL_TLS_CACHE_MARK; /* F1 */
}

void oriel_tls_cache_host_turn(void) __attribute__((cold));

/* F2, F3. Returns whether it is the host's turn. */
static inline __attribute__((always_inline)) bool oriel_tls_cache_flush_fence(void)
{
    if (oriel_likely((int32_t)--oriel_tls_cache.turns >= 0) && ORIEL_STORES_IN_ORDER)
        return false;   /* F3 */
    oriel_fence_full(); /* F2 */
    oriel_tls_cache.turns &= ORIEL_TLS_CACHE_COUNT;
    return oriel_unlikely(oriel_tls_cache.turns > ORIEL_TLS_CACHE_TURNS);
}

/* The same, and every ORIEL_TLS_CACHE_TURNS flushes the host's turn. */
static inline __attribute__((always_inline)) void oriel_tls_cache_flush(void)
{
    if (oriel_tls_cache_flush_fence())
        oriel_tls_cache_host_turn();
}

/* Only the host's turn, for other calls that programs use for polling. */
static inline void oriel_tls_cache_count_turn(void)
{
    if (oriel_unlikely((--oriel_tls_cache.turns & ORIEL_TLS_CACHE_COUNT) > ORIEL_TLS_CACHE_TURNS))
        oriel_tls_cache_host_turn();
}

/* The same after a locked instruction or a full fence: also clears the mark. */
static inline void oriel_tls_cache_fenced(void)
{
    oriel_tls_cache.turns = (oriel_tls_cache.turns - 1) & ORIEL_TLS_CACHE_COUNT;
    if (oriel_unlikely(oriel_tls_cache.turns > ORIEL_TLS_CACHE_TURNS))
        oriel_tls_cache_host_turn();
}

#endif
