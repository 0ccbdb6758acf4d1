/* The barrier that fence and free stand on: one counter per window that only grows, whoever comes last opens by coming.
 *
 * Argument.  Each rank arrives (B1) by adding one to arrivals, and leaves when that has come up to n for each barrier so far,
 * this one included (B2, acquire): each rank counts them for itself, in its window.  At most n arrivals belong to each
 * barrier, and nobody arrives at the next one before it has seen all n of this one.  So arrivals reaches n times k when all
 * have arrived at the k-th, not earlier, and is never n ahead of who waits: B2 compares modulo 2^32.
 * Stores before B1 of any rank come before B2 of every rank through the counter's chain of read-modify-writes (B1 releases
 * and acquires), and for the last one, who does not wait, before what follows its B1.
 * Only the last arrival wakes sleepers.  Who sleeps over an earlier one has counted itself as a sleeper before it looked at
 * the word, as wait.h argues.
 *
 * Death.  A rank that leaves because another died stays counted, but the dead one's arrival is missing for ever, so the
 * barrier does not open: it sets broken before it returns, and whoever comes later gets the error at once.
 *
 * One counter and not log2(n) rounds of pairwise flags: where ranks outnumber cores every round costs a turn of the
 * scheduler, the counter costs one.  One word and not a counter and a generation: the arrival that opens needs the cache
 * line once, where a second write would find it gone to those who wait.  broken lies on a line that only frees write. */
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
    uint32_t all = window->arrivals += (uint32_t)window->n;
    oriel_delay();
    uint32_t arrived = atomic_fetch_add_explicit(&common->arrivals.value, 1, memory_order_seq_cst) + 1; /* B1 */
    if (arrived == all) {
        oriel_delay();
        oriel_wake(&common->arrivals.value, &common->arrivals.sleepers);
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_event_wait(&common->arrivals, all, &watch); /* B2 */
    if (status != ORIEL_OK)
        oriel_store_release(&common->broken, 1);
    return status;
}
