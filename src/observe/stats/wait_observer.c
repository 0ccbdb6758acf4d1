/* Observes all waits: this thread's waiting time, and the rank it waited for. Nothing here runs
 * without observation, or before a wait has found that it must wait. The library's own threads are
 * never observed. */
#include "observe/stats/observed_window.h"

#include "base/wait.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"

#include <stdlib.h>

_Thread_local struct oriel_thread_waits oriel_thread_waits = {.rank = -1};
_Thread_local struct oriel_current_call oriel_current_call;

static void attribute_wait(const struct oriel_observed *observed, enum oriel_counted_cause cause,
                           int32_t rank, uint64_t waited_ns)
{
    if (waited_ns >= oriel_thread_waits.longest_ns) {
        oriel_thread_waits.longest_ns = waited_ns;
        oriel_thread_waits.cause = (uint8_t)cause;
        oriel_thread_waits.rank = rank;
    }
    if ((uint32_t)rank < observed->n)
        oriel_count(observed, &observed->toward[rank].caused_ns[cause], waited_ns);
}

/* --- barriers --- */

/* The number of barriers at which this rank has arrived; sync/barrier.c defines the arrivals of
 * each. */
static uint32_t barriers_of(const struct oriel_window *window)
{
    return window->arrivals / ((uint32_t)window->here + (window->internode != NULL));
}

void oriel_waiting_arrive(const struct oriel_observed *observed, uint64_t now_ns)
{
    if (observed->window != NULL)
        atomic_store_explicit(
            &observed->first->record->arrived_ns[(barriers_of(observed->window) + 1) % 2], now_ns,
            memory_order_relaxed);
}

/* The record of a rank of this node, which has the same clock. NULL for other ranks, and for one
 * without a record. */
static const struct oriel_window_record *record_of(const struct oriel_window *window,
                                                   int32_t win_rank)
{
    if (window->control_bases[win_rank] == NULL)
        return NULL;
    uint64_t offset = atomic_load_explicit(&oriel_window_control(window, win_rank)->record_offset,
                                           memory_order_acquire);
    return offset == 0 ? NULL : (const void *)(window->control_bases[win_rank] + offset);
}

/* A rank that has left the last barrier frees its control block while others still leave that
 * barrier. Its record stays. */
const struct oriel_window_record **oriel_waiting_find_others(const struct oriel_observed *observed)
{
    const struct oriel_window *window = observed->window;
    if (window == NULL || window->parted)
        return NULL;
    const struct oriel_window_record **others =
        calloc((uint32_t)window->n, sizeof(const struct oriel_window_record *));
    for (int32_t i = 0; others != NULL && i < window->n; i++)
        others[i] = record_of(window, i);
    return others;
}

static int32_t find_latest(const struct oriel_window *window, unsigned turn, uint64_t *latest_ns)
{
    bool is_last = oriel_current_call.site->kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_free;
    int32_t latest = -1;
    *latest_ns = 0;
    for (int32_t i = 0; i < window->n && (!is_last || oriel_current_call.others != NULL); i++) {
        const struct oriel_window_record *record =
            is_last ? oriel_current_call.others[i] : record_of(window, i);
        uint64_t arrived_ns =
            record == NULL ? 0
                           : atomic_load_explicit(&record->arrived_ns[turn], memory_order_relaxed);
        if (arrived_ns > *latest_ns) {
            *latest_ns = arrived_ns;
            latest = i;
        }
    }
    return latest;
}

/* An internode rank, or one without a record, may have been the last. Then the latest known arrival
 * was not in the second half of the wait. */
static void attribute_wait_to_latest(const struct oriel_observed *observed, uint64_t waited_ns)
{
    const struct oriel_window *window = observed->window;
    uint64_t latest_ns;
    unsigned turn = barriers_of(window) % 2; /* of the current barrier of this rank */
    int32_t latest = find_latest(window, turn, &latest_ns);
    uint64_t own_ns =
        atomic_load_explicit(&observed->first->record->arrived_ns[turn], memory_order_relaxed);
    bool explains = latest != window->rank && latest_ns >= own_ns + waited_ns / 2;
    attribute_wait(observed, ORIEL_CAUSE_late_fence, explains ? latest : -1, waited_ns);
}

/* --- the observer --- */

/* The rank that holds the lock, or else is in its queue, as their words show; -1: none any more. */
static int32_t find_blocker(const struct oriel_watch *watch)
{
    const struct oriel_watched *watched = watch->context;
    const struct oriel_window *window = watched->window;
    for (int queued = 0; queued < 2; queued++)
        for (int32_t i = 0; i < window->n; i++)
            if (i != window->rank && oriel_liveness_blocks(watch, i, queued))
                return i;
    return -1;
}

static bool is_for_lock(const struct oriel_watch *watch)
{
    return watch != NULL &&
           (watch->what == ORIEL_WAITING_LOCK || watch->what == ORIEL_WAITING_LOCK_ALL);
}

/* The blocking rank is known only while it blocks. */
static void observer_wait_begin(const struct oriel_watch *watch)
{
    if (oriel_current_call.observed != NULL && is_for_lock(watch))
        oriel_current_call.blocker = find_blocker(watch);
}

static int32_t watched_rank(const struct oriel_watch *watch)
{
    return ((const struct oriel_watched *)watch->context)->win_rank;
}

/* A notification, or a value in memory, may be of any rank. In a window of two ranks it is of the
 * other one. */
static int32_t notifying_rank(const struct oriel_window *window)
{
    return window->n == 2 ? 1 - window->rank : -1;
}

/* The watch has the cause and the rank of the wait. Without them it was a target's agent or
 * node. */
static void observer_wait_end(const struct oriel_watch *watch, uint64_t waited_ns)
{
    const struct oriel_observed *observed = oriel_current_call.observed;
    oriel_thread_waits.total_ns += waited_ns;
    if (observed == NULL)
        return;
    switch (watch == NULL ? ORIEL_WAITING_NOTHING : watch->what) {
    case ORIEL_WAITING_FENCE:
    case ORIEL_WAITING_FREE: attribute_wait_to_latest(observed, waited_ns); break;
    case ORIEL_WAITING_POST:
        attribute_wait(observed, ORIEL_CAUSE_late_post, watched_rank(watch), waited_ns);
        break;
    case ORIEL_WAITING_COMPLETE:
        attribute_wait(observed, ORIEL_CAUSE_late_complete, watched_rank(watch), waited_ns);
        break;
    case ORIEL_WAITING_NOTIFICATION:
    case ORIEL_WAITING_MEMORY:
        attribute_wait(observed, ORIEL_CAUSE_late_notification, notifying_rank(observed->window),
                       waited_ns);
        break;
    case ORIEL_WAITING_LOCK:
    case ORIEL_WAITING_LOCK_ALL:
        attribute_wait(observed, ORIEL_CAUSE_busy_lock, oriel_current_call.blocker, waited_ns);
        break;
    case ORIEL_WAITING_UPDATE:
        attribute_wait(observed, ORIEL_CAUSE_busy_lock, watched_rank(watch), waited_ns);
        break;
    case ORIEL_WAITING_NODE:
        attribute_wait(observed, ORIEL_CAUSE_busy_target, watched_rank(watch), waited_ns);
        break;
    default:
        attribute_wait(observed, ORIEL_CAUSE_busy_target, oriel_current_call.target, waited_ns);
        break;
    }
}

void oriel_waiting_start(void)
{
    static const struct oriel_wait_observer observer = {observer_wait_begin, observer_wait_end};
    oriel_wait_set_observer(&observer);
}
