/* src/sync/lock.c: locks of one target and of all, as MPI programs use them, mixed at random. Each
 * target's window has an exclusion check for its own lock. One on rank 0 checks lock_all against
 * exclusive locks of any target. */
#include "exclusion_check.h"
#include "sync/lock.h"

#include <sched.h>

enum { ROUNDS = 8000, WAKES = 12 };

static void with_target(struct oriel_window *window, bool exclusive)
{
    int32_t target = (int32_t)(team_random() % (uint64_t)window->n);
    team_expect(oriel_lock(window, target, exclusive) == ORIEL_OK);
    team_expect(oriel_access_allowed(window, target) && oriel_passive_epoch(window, target));
    if (exclusive) {
        exclusion_check_gate_writer(exclusion_at(window, 0, 1));
        exclusion_check_writer(exclusion_at(window, target, 0));
    } else {
        exclusion_check_reader(exclusion_at(window, target, 0));
    }
    team_expect(oriel_unlock(window, target) == ORIEL_OK);
    team_expect(!oriel_access_allowed(window, target) && !oriel_passive_epoch(window, -1));
}

static void with_all(struct oriel_window *window)
{
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    team_expect(oriel_access_allowed(window, 0) && oriel_passive_epoch(window, -1));
    exclusion_check_reader(exclusion_at(window, 0, 1));
    exclusion_check_reader(exclusion_at(window, (int32_t)(team_random() % (uint64_t)window->n), 0));
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
}

static void mix(struct oriel_window *window)
{
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        uint64_t kind = team_random() % 4;
        if (kind == 0)
            with_all(window);
        else
            with_target(window, kind == 1);
        oriel_delay();
    }
    team_barrier();
    team_expect(oriel_epochs_closed(window) == ORIEL_OK);
    team_expect(window->common->gate.word == 0);
    uint64_t queue = atomic_load(&window->control->lock.queue);
    team_expect(window->control->lock.serving == oriel_ticket_number(queue));
    team_expect(window->control->lock.departed == oriel_ticket_readers(queue));
}

static void lock_kinds_exclude_as_in_the_standard(void **state)
{
    (void)state;
    team_run_sizes(mix);
}

/* Several targets at once, in the order of ranks. */
static void hold_two(struct oriel_window *window)
{
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        int32_t first = (int32_t)(team_random() % (uint64_t)(window->n - 1));
        bool exclusive = team_random() % 2 == 0;
        team_expect(oriel_lock(window, first, true) == ORIEL_OK);
        team_expect(oriel_lock(window, first + 1, exclusive) == ORIEL_OK);
        exclusion_check_writer(exclusion_at(window, first, 0));
        if (exclusive)
            exclusion_check_writer(exclusion_at(window, first + 1, 0));
        else
            exclusion_check_reader(exclusion_at(window, first + 1, 0));
        team_expect(oriel_unlock(window, first) == ORIEL_OK);
        team_expect(oriel_unlock(window, first + 1) == ORIEL_OK);
    }
}

static void lock_of_two_targets_in_one_order_ends(void **state)
{
    (void)state;
    team_run_sizes(hold_two);
}

/* A rank whose exclusive lock is in the queue sees each other rank enter at most once
 * before its own turn. So no rank gets more than twice another's share while both want the lock.
 * Visits are counted inside. */
static void count_visits(struct oriel_window *window, bool exclusive)
{
    _Atomic uint32_t *visits = (_Atomic uint32_t *)window_memory(window, 0);
    uint32_t before[TEAM_MOST];
    uint64_t position;
    for (int round = team_rounds(ROUNDS); round > 0 && !team_time_is_up(); round--) {
        if (exclusive) {
            enum oriel_lock_step step = oriel_lock_begin(window, 0, &position);
            for (int32_t i = 0; i < window->n; i++)
                before[i] = atomic_load(&visits[i]);
            if (step != ORIEL_LOCK_TAKEN)
                team_expect(oriel_lock_finish(window, 0, step, position) == ORIEL_OK);
            for (int32_t i = 0; i < window->n && step == ORIEL_LOCK_QUEUED; i++)
                team_expect(atomic_load(&visits[i]) - before[i] <= 1);
        } else {
            team_expect(oriel_lock(window, 0, false) == ORIEL_OK);
        }
        atomic_fetch_add(&visits[window->rank], 1);
        oriel_delay();
        team_expect(oriel_unlock(window, 0) == ORIEL_OK);
    }
}

static void count_writers(struct oriel_window *window)
{
    count_visits(window, true);
}

static void count_writers_and_readers(struct oriel_window *window)
{
    count_visits(window, window->rank % 2 == 0);
}

static void waiting_lock_is_not_overtaken(void **state)
{
    (void)state;
    team_run_sizes(count_writers);
    team_run_sizes(count_writers_and_readers);
}

/* A rank that sleeps in the queue is woken when the lock is released: of many sleeps few last to
 * the time limit. */
static void sleep_after(struct oriel_window *window, bool holder_is_exclusive, bool exclusive)
{
    struct oriel_ticket *lock = &oriel_window_control(window, 0)->lock;
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 1)
            team_barrier();
        team_expect(oriel_lock(window, 0, window->rank == 0 ? holder_is_exclusive : exclusive) ==
                    ORIEL_OK);
        if (window->rank == 0) {
            team_barrier();
            while (atomic_load(&lock->serving_sleepers) + atomic_load(&lock->departed_sleepers) ==
                   0)
                sched_yield();
            usleep(3000);
        }
        team_expect(oriel_unlock(window, 0) == ORIEL_OK);
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void sleep_for_exclusive(struct oriel_window *window)
{
    sleep_after(window, true, true);
}

static void sleep_for_shared(struct oriel_window *window)
{
    sleep_after(window, true, false);
}

static void sleep_after_shared(struct oriel_window *window)
{
    sleep_after(window, false, true);
}

static void lock_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, sleep_for_exclusive);
    team_run(2, sleep_for_shared);
    team_run(2, sleep_after_shared);
}

/* Wrong use is refused and changes nothing: after it, another rank gets an exclusive lock of every
 * target. */
static void misuse(struct oriel_window *window)
{
    if (window->rank == 0) {
        team_expect(oriel_unlock(window, 1) == ORIEL_E_SYNC);
        team_expect(oriel_unlock_all(window) == ORIEL_E_SYNC);
        team_expect(oriel_lock(window, 1, false) == ORIEL_OK);
        team_expect(oriel_lock(window, 1, true) == ORIEL_E_SYNC);
        team_expect(oriel_lock_all(window) == ORIEL_E_SYNC);
        team_expect(oriel_start(window, window_ranks(NULL, 0), 0) == ORIEL_E_SYNC);
        team_expect(oriel_fence(window, false) == ORIEL_E_SYNC);
        team_expect(oriel_epochs_closed(window) == ORIEL_E_SYNC);
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(oriel_lock(window, 1, false) == ORIEL_E_SYNC);
        team_expect(oriel_lock_all(window) == ORIEL_E_SYNC);
        team_expect(oriel_unlock(window, 1) == ORIEL_E_SYNC);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_expect(oriel_epochs_closed(window) == ORIEL_OK);
    }
    team_barrier();
    for (int32_t i = 0; i < window->n; i++) {
        team_expect(oriel_lock(window, i, true) == ORIEL_OK);
        team_expect(oriel_unlock(window, i) == ORIEL_OK);
    }
}

static void lock_misuse_is_refused_and_leaves_no_trace(void **state)
{
    (void)state;
    team_run(2, misuse);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_kinds_exclude_as_in_the_standard),
        cmocka_unit_test(lock_of_two_targets_in_one_order_ends),
        cmocka_unit_test(waiting_lock_is_not_overtaken),
        cmocka_unit_test(lock_wakes_sleepers),
        cmocka_unit_test(lock_misuse_is_refused_and_leaves_no_trace),
    };
    return team_main(tests, argc, argv);
}
