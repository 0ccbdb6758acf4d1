/* The observer of all waits: how long this thread has waited, and for whom.  Nothing here is called in a run that nobody
 * observes, and nothing before a wait has found that it must wait; threads of the library's own are in no call that is observed. */
#include "observe/count.h"

#include "base/wait.h"
#include "sync/far.h"
#include "sync/watch.h"

_Thread_local struct oriel_waited oriel_waited = {.rank = -1};
_Thread_local struct oriel_doing oriel_doing;

static void blame(const struct oriel_observed *observed, enum oriel_counted_cause cause, int32_t rank, uint64_t waited_ns)
{
    oriel_waited.cause = (uint8_t)cause;
    oriel_waited.rank = rank;
    if ((uint32_t)rank < observed->n)
        oriel_count(observed, &observed->toward[rank].caused_ns[cause], waited_ns);
}

/* --- barriers --- */

/* The barriers that this rank has come to so far; sync/barrier.c says how many arrivals each has. */
static uint32_t barriers_of(const struct oriel_window *window)
{
    return window->arrivals / ((uint32_t)window->here + (window->far != NULL));
}

void oriel_waiting_arrive(const struct oriel_observed *observed, uint64_t now_ns)
{
    if (observed->window != NULL)
        atomic_store_explicit(&observed->first->record->arrived_ns[(barriers_of(observed->window) + 1) % 2], now_ns,
                              memory_order_relaxed);
}

/* Of this machine, since the clock is its own. */
static int32_t find_latest(const struct oriel_window *window, unsigned turn, uint64_t *latest_ns)
{
    int32_t latest = -1;
    *latest_ns = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (window->control_bases[i] == NULL)
            continue;
        uint64_t offset = atomic_load_explicit(&oriel_window_control(window, i)->record_offset, memory_order_acquire);
        if (offset == 0)
            continue;
        const struct oriel_window_record *record = (const void *)(window->control_bases[i] + offset);
        uint64_t arrived_ns = atomic_load_explicit(&record->arrived_ns[turn], memory_order_relaxed);
        if (arrived_ns > *latest_ns) {
            *latest_ns = arrived_ns;
            latest = i;
        }
    }
    return latest;
}

/* A rank of another machine, or one that keeps no record, may have been the last: then the latest that is known did not come in
 * the second half of the wait. */
static void blame_latest(const struct oriel_observed *observed, uint64_t waited_ns)
{
    const struct oriel_window *window = observed->window;
    uint64_t latest_ns;
    unsigned turn = barriers_of(window) % 2; /* of the barrier that this rank is at */
    int32_t latest = find_latest(window, turn, &latest_ns);
    uint64_t own_ns = atomic_load_explicit(&observed->first->record->arrived_ns[turn], memory_order_relaxed);
    bool explains = latest != window->rank && latest_ns >= own_ns + waited_ns / 2;
    blame(observed, ORIEL_CAUSE_late_fence, explains ? latest : -1, waited_ns);
}

/* --- the observer --- */

/* Why this thread has waited, and for which rank. */
static void find_cause(const struct oriel_watch *watch, enum oriel_counted_cause *cause, int32_t *rank)
{
    const struct oriel_watched *watched = watch != NULL ? watch->context : NULL;
    *rank = oriel_doing.target;
    *cause = ORIEL_CAUSE_busy_target;
    if (watch == NULL)
        return; /* another machine's answer */
    if (watch->check == oriel_watch_rank) {
        *rank = watched->win_rank;
        *cause = oriel_doing.call == ORIEL_COUNTED_CALLS      ? ORIEL_CAUSE_busy_lock /* of accumulates */
                 : oriel_doing.call == ORIEL_CALL_OF_wait     ? ORIEL_CAUSE_late_complete
                 : oriel_doing.call == ORIEL_CALL_OF_start    ? ORIEL_CAUSE_late_post
                 : oriel_doing.call == ORIEL_CALL_OF_complete ? ORIEL_CAUSE_late_post
                                                              : ORIEL_CAUSE_busy_target;
    } else if (watch->check == oriel_watch_lock || watch->check == oriel_watch_reads || watch->check == oriel_watch_locks) {
        *cause = ORIEL_CAUSE_busy_lock;
        *rank = -1;
    }
}

static void begin(const struct oriel_watch *watch)
{
    (void)watch;
}

static void end(const struct oriel_watch *watch, uint64_t waited_ns)
{
    const struct oriel_observed *observed = oriel_doing.observed;
    enum oriel_counted_cause cause;
    int32_t rank;
    oriel_waited.total_ns += waited_ns;
    if (observed == NULL)
        return;
    if (watch != NULL && watch->check == oriel_watch_all) {
        blame_latest(observed, waited_ns);
        return;
    }
    find_cause(watch, &cause, &rank);
    blame(observed, cause, rank, waited_ns);
}

void oriel_waiting_start(void)
{
    static const struct oriel_wait_observer observer = {begin, end};
    oriel_wait_set_observer(&observer);
}
