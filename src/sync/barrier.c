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
 * M1: over several machines arrivals counts the ranks of this one and, once more, all others: the last rank to arrive meets the
 * other machines (internode/origin/origin_sync.c) and adds that.  Its messages to them carry what release and acquire carry here: all before a
 * message is sent is before what follows its arrival.
 *
 * Death.  A rank that leaves because another died stays counted; it sets broken before it returns, and whoever comes later
 * gets the error at once.  If the dead one had not arrived, this barrier does not open.  If it had, it may still open for ranks
 * that were past their look at broken, while others left with the error: what all of them wrote is there then, and each rank
 * that goes on meets broken, or its own watch, at the next one.  Nobody hangs: who waits asks its watch again and again, and
 * one of the window's ranks is dead.
 *
 * One counter and not log2(n) rounds of pairwise flags: where ranks outnumber cores every round costs a turn of the
 * scheduler, the counter costs one.  One word and not a counter and a generation: the arrival that opens needs the cache
 * line once, where a second write would find it gone to those who wait.  broken lies on a line that only frees write. */
#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/sync.h"

#include <stdio.h>

/* The barrier never opens. */
static enum oriel_status leave(struct oriel_window *window, const struct oriel_watched *watched,
                               enum oriel_status status)
{
    oriel_internode_break(window, watched->dead);
    return status;
}

/* One arrives; the one whose arrival makes it so many opens. */
static bool arrive(struct oriel_common *common, uint32_t all)
{
    /* B1 */
    uint32_t arrived =
        atomic_fetch_add_explicit(&common->arrivals.value, 1, memory_order_seq_cst) + 1;
    if (arrived != all)
        return false;
    oriel_delay();
    oriel_wake(&common->arrivals.value, &common->arrivals.sleepers);
    return true;
}

static enum oriel_status await_all(struct oriel_window *window, struct oriel_watched *watched)
{
    struct oriel_watch watch = {oriel_liveness_all, watched, ORIEL_WAITING_FENCE};
    /* B2 */
    enum oriel_status status =
        oriel_internode_event_wait(window, &window->common->arrivals, window->arrivals, &watch);
    return oriel_likely(status == ORIEL_OK) ? ORIEL_OK : leave(window, watched, status);
}

/* M1 */
static enum oriel_status meet_machines(struct oriel_window *window, struct oriel_watched *watched)
{
    struct oriel_common *common = window->common;
    uint32_t number = ++window->far->barriers;
    uint32_t all = window->arrivals += (uint32_t)window->here + 1;
    /* B1 */
    uint32_t arrived =
        atomic_fetch_add_explicit(&common->arrivals.value, 1, memory_order_seq_cst) + 1;
    if (arrived != all - 1)
        return await_all(window, watched);
    enum oriel_status status = oriel_internode_barrier(window, number, &watched->dead);
    if (status != ORIEL_OK)
        return leave(window, watched, status);
    (void)arrive(common, all);
    return ORIEL_OK;
}

static enum oriel_status flush_and_meet(struct oriel_window *window, struct oriel_watched *watched)
{
    char message[400];
    enum oriel_status flushed = oriel_internode_flush(window, -1);
    snprintf(message, sizeof message, "%s", oriel_fail_message());
    /* the others wait also when an operation has failed */
    enum oriel_status status = meet_machines(window, watched);
    return status != ORIEL_OK || flushed == ORIEL_OK ? status : oriel_fail(flushed, "%s", message);
}

enum oriel_status oriel_barrier(struct oriel_window *window)
{
    struct oriel_common *common = window->common;
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    if (oriel_unlikely(oriel_load_acquire(&common->broken) != 0))
        return oriel_liveness_all(&watched);
    if (oriel_unlikely(window->far != NULL))
        return flush_and_meet(window, &watched);
    uint32_t all = window->arrivals += (uint32_t)window->n;
    oriel_delay();
    return arrive(common, all) ? ORIEL_OK : await_all(window, &watched);
}
