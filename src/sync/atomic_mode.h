/* Single and bulk accumulates on the same target. One CPU instruction updates one element, also
 * concurrently with other origins. Plain loops update many elements at once, and nothing else may
 * update the target meanwhile. Each target of a window is in one of two modes. While bulk is 0,
 * single updates run without a lock. While it is 1, they acquire the accumulate lock, as bulk
 * updates do. The window's bulk_targets counts the targets with bulk at 1. While it is 0, a single
 * update need not read its target's words.
 *
 * A single update; each thread has a slot of its own in its process's memory file:
 *
 *   S1: slot = 1 (seq_cst)
 *   S2: reads bulk_targets, and if that is not 0 reads bulk (both seq_cst). If either is 0, it
 *       continues; else slot = 0, and it updates under the accumulate lock.
 *   S3: updates its element by a native kernel
 *   S4: slot = 0 (release)
 *
 * The holder of the accumulate lock, for a bulk update:
 *
 *   B1: bulk_targets += 1, then bulk = 1 (both seq_cst), if bulk is 0
 *   B2: then waits at each slot of each rank of the window until it has read 0 (seq_cst)
 *   B3: updates by plain kernels
 *
 * The holder of the accumulate lock, for a single update:
 *
 *   C1: updates its element by a native kernel
 *   C2: after N of these with no bulk update in between, where N is learnt per target: bulk = 0,
 *       then bulk_targets -= 1 (release)
 *
 *   P1: No single update is at S3 during B3. There are two cases in the one order of seq_cst
 *       operations. Either both reads of S2 follow both steps of B1, and the single update acquires
 *       the lock. Or S1 precedes a read that found 0, which precedes B1 and B2's read of that slot:
 *       B2 reads 1 or the value that S4 wrote. A slot that was read as free may be set again, but
 *       only by threads that then find bulk at 1. The lock excludes single updates under the lock.
 *   P2: S4 -> B2: bulk updates see the results of single updates. B3 -> C2 -> S2, by the lock and
 *       by bulk: the reverse holds, too.
 *   P3: After C2 single updates run without the lock again, at most one of them under it. Native
 *       kernels do not disturb each other.
 *
 * Elements without native kernels are updated by plain kernels under the lock alone: no native
 * kernel touches them. Two kinds of update break that rule, because they cover several elements.
 * Pairs whose fields are elements of their own (kinds.def) always do B1 and B2 first. A swap of 16
 * bytes by one CPU instruction is a single update, S1 to S4, after
 *
 *   W1: if wide is 0: acquires the accumulate lock, wide = 1, releases the lock
 *
 * and the holder of the lock, before it updates elements without native kernels by plain kernels:
 *
 *   W2: if wide is 1: B1 and B2
 *
 *   P4: No swap is at S3 during such an update. The lock orders W1 and W2. If W2 is first, the
 *       swap's S1 follows that update. Else W2 reads 1, and P1 holds.
 *
 * A slot does not name its target, so B2 may wait for single updates of other targets; these take a
 * few instructions. Threads beyond the slots of a process always update under the lock. Death: B2
 * ignores a slot that is left at 1 once its process is known to be dead; whether that update was
 * done is unknown. A process that dies between B1 and the end of B3 holds the lock permanently, and
 * bulk stays 1: all later updates of that target find the death.
 *
 * The seq_cst store S1 is a full fence and a third of the cost of a fetch_and_op. */
#ifndef ORIEL_SYNC_ATOMIC_MODE_H
#define ORIEL_SYNC_ATOMIC_MODE_H

#include "base/delay.h"
#include "base/tls_cache.h"
#include "memory/file.h"
#include "window/window.h"

/* N of C2, at first and at most. It doubles each time that a bulk update follows, since B1 and B2
 * read the slots of all threads. */
enum { ORIEL_SINGLES_IN_A_ROW = 64, ORIEL_SINGLES_MOST = 4096 };

/* S1 and S2 of a thread that has a slot, for a window without bulk targets. Returns whether the
 * thread may update elements by native kernels. Then S4 must follow: 0 in its slot (release). */
static inline __attribute__((always_inline)) bool
oriel_atomic_mode_announce(const struct oriel_window *window, struct oriel_atomic_mode *slot)
{
    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */
    oriel_delay();
    if (oriel_likely(atomic_load_explicit(&window->common->bulk_targets, memory_order_seq_cst) ==
                     0)) /* S2 */
        return true;
    oriel_store_release(&slot->inside, 0);
    return false;
}

/* S1 and S2 of any thread for elements of target. Returns the word that S4 must clear, or NULL. */
_Atomic uint32_t *oriel_atomic_mode_enter(const struct oriel_window *window, int32_t target);

/* Gives the thread a slot until it ends, if it has none and one is free. */
void oriel_atomic_mode_claim_slow(void);

static inline void oriel_atomic_mode_claim(void)
{
    if (oriel_unlikely(oriel_tls_cache.single == NULL))
        oriel_atomic_mode_claim_slow();
}

/* C2: the holder of target's accumulate lock has updated one element. */
void oriel_atomic_mode_count(const struct oriel_window *window, int32_t target);

/* B1 and B2: when it returns, the holder of target's accumulate lock may update by plain kernels
 * until it unlocks. */
void oriel_bulk_begin(const struct oriel_window *window, int32_t target);

/* W1, by a caller without the lock: before it swaps 16 bytes of target. */
enum oriel_status oriel_atomic_mode_widen(struct oriel_window *window, int32_t target);

/* Whether swaps of 16 bytes may be at S3: then the holder of the lock, too, must begin bulk mode
 * (W2). */
static inline bool oriel_atomic_mode_is_wide(const struct oriel_window *window, int32_t target)
{
    return oriel_load_acquire(&oriel_window_control(window, target)->wide) != 0;
}

#endif
