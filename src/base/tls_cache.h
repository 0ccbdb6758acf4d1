/* What this thread used last: one window and one datatype, with what the data path needs of both, so that it finds all in a few
 * loads.  An entry counts only while its generation is the process's, which every free of a window or of a derived datatype
 * moves on.  window/ and rma/ fill it, the data path reads it. */
#ifndef ORIEL_BASE_TLS_CACHE_H
#define ORIEL_BASE_TLS_CACHE_H

#include "base/atomic.h"

#include <stdbool.h>

struct oriel_tls_cache {
    uint64_t generation; /* 0, which is no generation, in a fresh thread */
    uint64_t window_key; /* the host's handle */
    void *window;        /* struct oriel_window */
    uint32_t ranks;      /* the window's */
    uint32_t turns;      /* of flushes, see below; not dropped with the entry */
    uint64_t type_key;   /* the host's handle */
    const void *type;    /* struct oriel_type */
    int64_t plain_bytes; /* the type's */
    /* of accumulates, without generations: handles of predefined operators and datatypes are for ever */
    void *single; /* this thread's slot (sync/atomic_mode.h); NULL before it has one */
    uint64_t
        operator_key; /* the last operator and datatype of one element that have a native kernel; NO_KEY before, and where
                             * there is no slot */
    uint64_t element_key;
    void (*kernel)(void);  /* oriel_element */
    void (*plain)(void);   /* oriel_kernel, for many elements of that operator and datatype */
    uint64_t element_mask; /* its size - 1 */
};

/* Hidden, so that the compiler knows that they are the library's own. */
extern _Thread_local struct oriel_tls_cache oriel_tls_cache __attribute__((visibility("hidden")));
extern _Atomic uint64_t oriel_tls_cache_generation __attribute__((visibility("hidden")));

#define ORIEL_TLS_CACHE_NO_KEY                                                                     \
    UINT64_C(0xffffffff00000000) /* neither a widened int nor a pointer of a program */

static inline bool oriel_tls_cache_is_valid(void)
{
    return oriel_tls_cache.generation ==
           atomic_load_explicit(&oriel_tls_cache_generation, memory_order_relaxed);
}

/* The generation that a table must be read in for its answer to be kept; to be read before the table. */
static inline uint64_t oriel_tls_cache_begin(void)
{
    return atomic_load_explicit(&oriel_tls_cache_generation, memory_order_acquire);
}

void oriel_tls_cache_keep_window(uint64_t generation, uint64_t key, void *window, uint32_t ranks);
void oriel_tls_cache_keep_type(uint64_t generation, uint64_t key, const void *type,
                               int64_t plain_bytes);

/* No thread may use what it has kept any more. */
void oriel_tls_cache_invalidate(void);

/* Flushes.  A flush must order the stores of operations before the loads of later ones, which takes a full fence: a locked
 * instruction that waits until the store buffer is empty.  Where there were only loads, or nothing, since this thread's last
 * fence, x86-64 needs none:
 *   F1: an operation that may store into a window, other than by a locked instruction or ahead of one that is its own, marks the
 *       thread.
 *   F2: a flush of a marked thread fences and takes the mark away.
 *   F3: a flush of an unmarked thread does nothing.
 * Stores of this thread: F1 precedes F2 or F3 in the program, so each is before a fence before the flush returns, or was made by
 * a locked instruction, which is a fence itself, or came before one.  Where memmove streams a long copy past the order of stores,
 * it fences that itself.
 * Loads of this thread: x86-64 does them in the program's order, before later loads and later stores.
 * Stores of another thread of the process, which MPI's flush completes too: if the flush comes after them at all, the thread that
 * stored has told this one so by a later store (or by the kernel, which fences), and this one has seen it.  x86-64 makes the
 * stores of a thread visible in their order, and a store that one other thread sees all see: so whoever sees the later store may
 * rely on the earlier ones being in memory, and all that this thread loads after that is loaded after them.
 * C11 has no such rule (a store that happened before a load of another location may still be invisible to third parties), nor
 * have machines whose stores reach some before others; and others yet do loads out of order.  There, F3 fences as well.
 * The program's own stores into its window are no operations: MPI_Win_sync is for them and always fences.  Where the buffer of a
 * get or the result of a fetch_and_op lies in a window, what arrives there is such a store, too.
 *
 * turns: the lower 30 bits count down to the host's next turn, both upper bits are the mark: so the sign tells whether there is
 * anything to do, also when a marked count goes below 0. */
#define ORIEL_TLS_CACHE_TURNS 4096u
#define ORIEL_TLS_CACHE_COUNT 0x3fffffffu
#define ORIEL_TLS_CACHE_MARK  (~ORIEL_TLS_CACHE_COUNT)

static inline void oriel_tls_cache_mark(void)
{
    oriel_tls_cache.turns |= ORIEL_TLS_CACHE_MARK; /* F1 */
}

void oriel_tls_cache_give_turn(void) __attribute__((cold));

/* F2, F3, and now and then the host's turn. */
static inline __attribute__((always_inline)) void oriel_tls_cache_flush(void)
{
    if (oriel_likely((int32_t)--oriel_tls_cache.turns >= 0) && ORIEL_STORES_IN_ORDER)
        return;         /* F3 */
    oriel_fence_full(); /* F2 */
    oriel_tls_cache.turns &= ORIEL_TLS_CACHE_COUNT;
    if (oriel_unlikely(oriel_tls_cache.turns > ORIEL_TLS_CACHE_TURNS))
        oriel_tls_cache_give_turn();
}

/* The host's turn alone, for other calls that programs poll with. */
static inline void oriel_tls_cache_take_turn(void)
{
    if (oriel_unlikely((--oriel_tls_cache.turns & ORIEL_TLS_CACHE_COUNT) > ORIEL_TLS_CACHE_TURNS))
        oriel_tls_cache_give_turn();
}

/* The same for those that have just done a locked instruction or a full fence: the mark goes. */
static inline void oriel_tls_cache_fenced(void)
{
    oriel_tls_cache.turns = (oriel_tls_cache.turns - 1) & ORIEL_TLS_CACHE_COUNT;
    if (oriel_unlikely(oriel_tls_cache.turns > ORIEL_TLS_CACHE_TURNS))
        oriel_tls_cache_give_turn();
}

#endif
