/* Single accumulates and bulk ones on the same target. One element is updated by one instruction of the CPU, and so are
 * elements of different origins at the same time; many at once are updated by plain loops, which nobody may disturb. Each
 * target of a window is in one of two modes: while bulk is 0 its singles are free, while it is 1 they take the accumulate lock
 * as bulk updates do. The window's bulk_targets counts those at 1, so that a single need not look for its target's words where
 * there are none.
 *
 * A single, each thread with a slot of its own in its process's memory file:
 *
 *   S1  slot = 1 (seq_cst)
 *   S2  looks at bulk_targets, and where that is not 0 at bulk (both seq_cst): if either is 0, it goes on; else slot = 0, and it
 *       updates under the accumulate lock
 *   S3  updates its element by a native kernel
 *   S4  slot = 0 (release)
 *
 * Who holds the accumulate lock, for a bulk update:
 *
 *   B1  bulk_targets += 1, then bulk = 1 (both seq_cst), if it is 0
 *   B2  then waits at each slot of each rank of the window until it has seen it 0 (seq_cst)
 *   B3  updates by plain kernels
 *
 * Who holds it for a single:
 *
 *   C1  updates its element by a native kernel
 *   C2  after so many of these, with no bulk update in between, as the target has learnt: bulk = 0, then bulk_targets -= 1
 *       (release)
 *
 * P1  No single is at S3 during B3.  In the one order of seq_cst operations both looks of S2 follow both steps of B1, and the
 *     single goes to the lock; or S1 comes before a look that found 0, before B1, before B2's look at that slot, which sees 1 or
 *     what S4 wrote.  A slot that was seen free may be taken again: by those who find bulk at 1.  Singles under the lock are kept
 *     out by the lock.
 * P2  S4 -> B2: bulk updates see what singles have done.  B3 -> C2 -> S2, by the lock and by bulk: the other way round, too.
 * P3  Behind C2 singles are free again, at most one of them under the lock: native kernels do not disturb each other.
 *
 * A slot says nothing of the target, so B2 may wait for singles elsewhere; they are a few instructions long.  Threads beyond the
 * slots of a process update under the lock, always.  Death: a slot that its process leaves at 1 is passed over as soon as the
 * process is known to be dead; whether that single's update was done nobody can tell.  Whoever dies between B1 and the end of
 * B3 holds the lock for ever, and bulk stays 1: all later updates of that target find the death.
 *
 * The seq_cst store S1 is a full fence, a third of what a fetch_and_op costs.  rma/ and api/ call. */
#ifndef ORIEL_SYNC_ATOMIC_MODE_H
#define ORIEL_SYNC_ATOMIC_MODE_H

#include "base/delay.h"
#include "base/tls_cache.h"
#include "memory/file.h"
#include "window/window.h"

/* At first, and at most: doubled each time that a bulk update follows after all, since raising bulk costs a look at all
 * threads. */
enum { ORIEL_SINGLES_IN_A_ROW = 64, ORIEL_SINGLES_MOST = 4096 };

/* S1 and S2 of a thread that has a slot, where no target of the window is updated in bulk: whether it may update elements by
 * native kernels.  Then S4 must follow: 0 in its slot (release). */
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

/* S1 and S2 of any thread for elements of target: the word that S4 must set, or NULL. */
_Atomic uint32_t *oriel_atomic_mode_enter(const struct oriel_window *window, int32_t target);

/* Gives the thread a slot, if it has none and there is one, until it ends. */
void oriel_atomic_mode_claim_slow(void);

static inline void oriel_atomic_mode_claim(void)
{
    if (oriel_unlikely(oriel_tls_cache.single == NULL))
        oriel_atomic_mode_claim_slow();
}

/* C2: the holder of target's accumulate lock has updated one element. */
void oriel_atomic_mode_count(const struct oriel_window *window, int32_t target);

/* B1 and B2: the holder of target's accumulate lock may update by plain kernels when it returns, until it unlocks. */
void oriel_bulk_begin(const struct oriel_window *window, int32_t target);

#endif
