/* Post, start, complete, wait: per-pair counters that only grow, so that an early post of the next epoch is kept and a
 * start is matched by peer and not by count.  api/ calls; the group lists belong to the window while an epoch is open.
 *
 * Argument.  Target T posts to origin O by adding one to posts in O's control, in T's pair (C1, release); O's start waits
 * until posts exceeds what it has taken from T (C2, acquire), and takes one.  O completes by adding one to completes in T's
 * control, in O's pair (C3, release: O's stores are published); T's wait waits for one more than taken (C4, acquire).
 * Each counter has one writer and one taker, taken never passes the counter, and differences stay below 2^31: every
 * exposure epoch waits for its completes.  MPI_MODE_NOCHECK changes nothing: the counters must advance all the same. */
#include "base/delay.h"
#include "sync/epoch.h"
#include "sync/sync.h"
#include "sync/watch.h"

#include <sched.h>
#include <stdlib.h>

/* What peer counts for the owner of control. */
static struct oriel_pair *pair_of(struct oriel_control *control, int32_t peer)
{
    return &control->pairs[peer];
}

enum oriel_status oriel_post(struct oriel_window *window, int32_t *ranks, int32_t count)
{
    uint32_t closed = 0;
    if (!atomic_compare_exchange_strong_explicit(&window->exposed, &closed, 1, memory_order_seq_cst,
                                                 memory_order_relaxed)) {
        free(ranks);
        return oriel_fail(ORIEL_E_SYNC, "a post inside the exposure epoch of another post");
    }
    window->posted = ranks;
    window->posted_count = count;
    for (int32_t i = 0; i < count; i++) {
        oriel_delay();
        oriel_event_signal(&pair_of(oriel_window_control(window, ranks[i]), window->rank)->posts); /* C1 */
    }
    return ORIEL_OK;
}

static enum oriel_status may_start(struct oriel_window *window)
{
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "a start inside the access epoch of another start");
    if ((epoch & ORIEL_EPOCH_LOCK_ALL) || oriel_locks_held(window))
        return oriel_fail(ORIEL_E_SYNC, "a start inside a lock");
    return oriel_epoch_leave_fence(window);
}

static void set_accesses(struct oriel_window *window, const int32_t *ranks, int32_t count, enum oriel_access access)
{
    for (int32_t i = 0; i < count; i++)
        atomic_store_explicit(&window->access[ranks[i]], (uint8_t)access, memory_order_relaxed);
}

enum oriel_status oriel_start(struct oriel_window *window, int32_t *ranks, int32_t count)
{
    enum oriel_status status = may_start(window);
    for (int32_t i = 0; i < count && status == ORIEL_OK; i++) {
        struct oriel_watched watched = {window, ranks[i]};
        struct oriel_watch watch = {oriel_watch_rank, &watched};
        struct oriel_pair *pair = pair_of(window->control, ranks[i]);
        status = oriel_event_wait(&pair->posts, pair->posts_taken + 1, &watch); /* C2 */
    }
    if (status != ORIEL_OK) {
        free(ranks);
        return status;
    }
    for (int32_t i = 0; i < count; i++)
        pair_of(window->control, ranks[i])->posts_taken++;
    set_accesses(window, ranks, count, ORIEL_ACCESS_STARTED);
    window->started = ranks;
    window->started_count = count;
    atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_START, memory_order_relaxed);
    return ORIEL_OK;
}

enum oriel_status oriel_complete(struct oriel_window *window)
{
    uint32_t before = atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_START, memory_order_relaxed);
    if (!(before & ORIEL_EPOCH_START))
        return oriel_fail(ORIEL_E_SYNC, "complete without start");
    set_accesses(window, window->started, window->started_count, ORIEL_ACCESS_NONE);
    for (int32_t i = 0; i < window->started_count; i++) {
        oriel_delay();
        oriel_event_signal(&pair_of(oriel_window_control(window, window->started[i]), window->rank)->completes); /* C3 */
    }
    free(window->started);
    window->started = NULL;
    window->started_count = 0;
    return ORIEL_OK;
}

/* Takes the completes of all posted origins and closes the exposure epoch. */
static void close_exposure(struct oriel_window *window)
{
    for (int32_t i = 0; i < window->posted_count; i++)
        pair_of(window->control, window->posted[i])->completes_taken++;
    free(window->posted);
    window->posted = NULL;
    window->posted_count = 0;
    oriel_store_release(&window->exposed, 0);
}

enum oriel_status oriel_wait_exposure(struct oriel_window *window)
{
    if (!oriel_load_acquire(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "wait without post");
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->posted_count && status == ORIEL_OK; i++) {
        struct oriel_watched watched = {window, window->posted[i]};
        struct oriel_watch watch = {oriel_watch_rank, &watched};
        struct oriel_pair *pair = pair_of(window->control, window->posted[i]);
        status = oriel_event_wait(&pair->completes, pair->completes_taken + 1, &watch); /* C4 */
    }
    if (status == ORIEL_OK)
        close_exposure(window);
    return status;
}

/* The program polls: lets those run that it waits for and, every 100 ms, looks whether origin still lives. */
static enum oriel_status test_in_vain(struct oriel_window *window, int32_t origin)
{
    struct oriel_watched watched = {window, origin};
    oriel_wait_progress();
    if (++window->tests_in_vain % 64 != 0)
        return ORIEL_OK;
    sched_yield();
    uint64_t now_ns = oriel_now_ns();
    if (now_ns - window->looked_ns < 100000000)
        return ORIEL_OK;
    window->looked_ns = now_ns;
    return oriel_watch_rank(&watched);
}

enum oriel_status oriel_test_exposure(struct oriel_window *window, bool *done)
{
    *done = false;
    if (!oriel_load_acquire(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "test without post");
    for (int32_t i = 0; i < window->posted_count; i++) {
        struct oriel_pair *pair = pair_of(window->control, window->posted[i]);
        if (!oriel_wait_reached(oriel_load_acquire(&pair->completes.value), ORIEL_WAIT_AT_LEAST,
                                pair->completes_taken + 1)) /* C4 */
            return test_in_vain(window, window->posted[i]);
    }
    close_exposure(window);
    *done = true;
    return ORIEL_OK;
}
