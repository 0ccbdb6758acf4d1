/* The barrier that fence, free and creation stand on: one counter per window, last one opens.
 *
 * Argument.  A rank reads generation (B1) before it arrives (B2, one read-modify-write).  The generation cannot move on
 * before all n ranks have arrived, this one included, so B1 reads the current one.  The last to arrive resets the counter
 * (B3) before it moves the generation on (B4, release); nobody arrives at the next barrier before it has seen B4, hence
 * after B3.  Stores before B2 (release) of any rank come before B4 through the counter's chain of read-modify-writes, and
 * so before what any rank does after it has acquired the new generation.
 *
 * Death.  A rank that leaves because another died stays counted in arrived, so the barrier must never open again: it sets
 * broken before it returns, and whoever comes later gets the error at once.
 *
 * One counter and not log2(n) rounds of pairwise flags: where ranks outnumber cores every round costs a turn of the
 * scheduler, the counter costs one. */
#include "base/delay.h"
#include "sync/sync.h"
#include "sync/watch.h"

enum oriel_status oriel_barrier(struct oriel_window *window)
{
    struct oriel_common *common = window->common;
    struct oriel_watched watched = {window, -1};
    struct oriel_watch watch = {oriel_watch_all, &watched};
    if (oriel_unlikely(oriel_load_acquire(&common->broken) != 0)) {
        enum oriel_status dead = oriel_watch_all(&watched);
        return dead != ORIEL_OK ? dead : oriel_fail(ORIEL_E_PEER, "a rank of the window has died");
    }
    uint32_t generation = oriel_load_acquire(&common->generation.value); /* B1 */
    oriel_delay();
    uint32_t arrived = atomic_fetch_add_explicit(&common->arrived, 1, memory_order_seq_cst) + 1; /* B2 */
    if (arrived == (uint32_t)window->n) {
        oriel_store_relaxed(&common->arrived, 0); /* B3 */
        oriel_delay();
        oriel_event_signal(&common->generation); /* B4 */
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_wait(&common->generation.value, &common->generation.sleepers, ORIEL_WAIT_NOT_EQUAL,
                                          generation, &watch);
    if (status != ORIEL_OK)
        oriel_store_release(&common->broken, 1);
    return status;
}
