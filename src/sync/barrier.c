/* The barrier of fence and free: one counter per window that only grows. The last arrival opens the
 * barrier.
 *
 * Argument. Each rank arrives (B1) by adding one to arrivals. It leaves when arrivals has reached n
 * for each barrier so far, including this one (B2, acquire); each rank counts the barriers itself,
 * in its window. At most n arrivals belong to each barrier, and no rank arrives at the next one
 * before it has seen all n of this one. So arrivals reaches n times k when all have arrived at the
 * k-th barrier, not earlier, and is never n ahead of a waiter: B2 compares modulo 2^32.
 *
 * Stores before B1 of any rank happen before B2 of every rank, through the counter's chain of
 * read-modify-writes (B1 releases and acquires). For the last rank, which does not wait, they
 * happen before its steps after B1. Only the last arrival wakes sleepers. A rank that sleeps
 * through an earlier arrival counted itself as a sleeper before it read the word, as wait.h argues.
 *
 * M1: for a window that spans nodes, arrivals counts the ranks of this node and one more for all
 *     others. The last rank to arrive synchronises with the other nodes
 *     (internode/origin/origin_sync.c) and adds that one. Its messages to them replace release and
 *     acquire: everything before a message is sent happens before everything after its arrival.
 *
 * Death. A rank that leaves because another died stays counted. It sets broken before it returns,
 * and a rank that arrives later gets the error at once. If the dead rank had not arrived, this
 * barrier does not open. If it had, the barrier may still open for ranks that were past their check
 * of broken, while others left with the error. Then the stores of all of them are visible, and each
 * rank that continues finds broken, or its own watch fails, at the next barrier. No rank hangs: a
 * waiter checks its watch repeatedly, and one of the window's ranks is dead.
 *
 * Why one counter instead of log2(n) rounds of pairwise flags: where ranks outnumber cores, every
 * round costs a turn of the scheduler, and the counter costs one in all. Why one word instead of a
 * counter and a generation: the opening arrival needs the cache line once. The line would have
 * moved to the waiters before a second write. broken is on a line that only frees write. */
#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/sync.h"

#include <stdio.h>

/* The barrier never opens. */
static enum oriel_status barrier_break(struct oriel_window *window,
                                       const struct oriel_watched *watched,
                                       enum oriel_status status)
{
    oriel_internode_window_break(window, watched->dead);
    return status;
}

/* One rank arrives. The arrival that reaches all opens the barrier. */
static bool barrier_arrive(struct oriel_common *common, uint32_t all)
{
    uint32_t arrived =
        atomic_fetch_add_explicit(&common->arrivals.value, 1, memory_order_seq_cst) + 1; /* B1 */
    if (arrived != all)
        return false;
    oriel_delay();
    oriel_wake(&common->arrivals.value, &common->arrivals.sleepers);
    return true;
}

static enum oriel_status barrier_await(struct oriel_window *window, struct oriel_watched *watched)
{
    struct oriel_watch watch = {oriel_liveness_all, watched, ORIEL_WAITING_FENCE};
    enum oriel_status status = oriel_internode_event_wait(window, &window->common->arrivals,
                                                          window->arrivals, &watch); /* B2 */
    return oriel_likely(status == ORIEL_OK) ? ORIEL_OK : barrier_break(window, watched, status);
}

/* M1 */
static enum oriel_status barrier_internode(struct oriel_window *window,
                                           struct oriel_watched *watched)
{
    struct oriel_common *common = window->common;
    uint32_t number = ++window->internode->barriers;
    uint32_t all = window->arrivals += (uint32_t)window->here + 1;
    uint32_t arrived =
        atomic_fetch_add_explicit(&common->arrivals.value, 1, memory_order_seq_cst) + 1; /* B1 */
    if (arrived != all - 1)
        return barrier_await(window, watched);
    enum oriel_status status = oriel_internode_barrier(window, number, &watched->dead);
    if (status != ORIEL_OK)
        return barrier_break(window, watched, status);
    (void)barrier_arrive(common, all);
    return ORIEL_OK;
}

static enum oriel_status flush_and_barrier(struct oriel_window *window,
                                           struct oriel_watched *watched)
{
    char message[400];
    enum oriel_status flushed = oriel_internode_flush(window, -1);
    snprintf(message, sizeof message, "%s", oriel_fail_message());
    /* the others wait even if an operation has failed */
    enum oriel_status status = barrier_internode(window, watched);
    return status != ORIEL_OK || flushed == ORIEL_OK ? status : oriel_fail(flushed, "%s", message);
}

enum oriel_status oriel_barrier(struct oriel_window *window)
{
    struct oriel_common *common = window->common;
    struct oriel_watched watched = {.window = window, .win_rank = -1};
    if (oriel_unlikely(oriel_load_acquire(&common->broken) != 0))
        return oriel_liveness_all(&watched);
    if (oriel_unlikely(window->internode != NULL))
        return flush_and_barrier(window, &watched);
    uint32_t all = window->arrivals += (uint32_t)window->n;
    oriel_delay();
    return barrier_arrive(common, all) ? ORIEL_OK : barrier_await(window, &watched);
}
