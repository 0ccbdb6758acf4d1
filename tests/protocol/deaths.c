/* A process is killed while others wait for it: each of them gets ORIEL_E_PEER with the dead rank's
 * name, and so does every later call. Rank VICTIM dies in every test. "Within a second" is counted
 * in sleeps, none longer than 100 ms (team.c checks that); at most SLEEPS of them may pass. The
 * dead stay zombies unless a test says otherwise: a launcher may be slow to reap. */
#include "make_window.h"
#include "sync/accumulate_mutex.h"

#include <sched.h>
#include <string.h>

enum { SURVIVOR, VICTIM, OTHER, TEAM, SLEEPS = 10 };

enum { READY }; /* flag: the victim is where it will die */

/* The victim's last step: it dies while the others sleep. */
static void die_waited_for(void)
{
    team_flag_set(READY, 1);
    usleep(120000);
    team_die();
}

static void expect_named(enum oriel_status status)
{
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), "rank 1 (process ") != NULL);
    team_expect(strstr(oriel_fail_message(), "has died") != NULL);
    team_expect(team_timeouts <= SLEEPS);
    team_timeouts = 0;
}

/* Two ranks wait for the victim at once, and one of them again. */
static void expect_named_by(struct oriel_window *window,
                            enum oriel_status (*wait)(struct oriel_window *window))
{
    team_flag_await(READY, 1);
    expect_named(wait(window));
    if (window->rank == SURVIVOR)
        expect_named(wait(window));
}

static enum oriel_status wait_exclusive(struct oriel_window *window)
{
    return oriel_lock(window, SURVIVOR, true);
}

static enum oriel_status wait_shared(struct oriel_window *window)
{
    return oriel_lock(window, SURVIVOR, false);
}

static enum oriel_status wait_mutex(struct oriel_window *window)
{
    return oriel_accumulate_mutex_lock(window, OTHER);
}

static void barrier(struct oriel_window *window)
{
    if (window->rank == VICTIM)
        die_waited_for();
    team_flag_await(READY, 1);
    expect_named(oriel_barrier(window));
    /* a rank that arrived and left without success does not count as arrived */
    expect_named(oriel_barrier(window));
}

static void killed_rank_is_reported_by_barrier(void **state)
{
    (void)state;
    team_run(TEAM, barrier);
    team_leaves_zombies = false;
    team_run(TEAM, barrier);
    team_leaves_zombies = true;
}

static void exclusive_holder(struct oriel_window *window)
{
    if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, SURVIVOR, true) == ORIEL_OK);
        die_waited_for();
    }
    expect_named_by(window, window->rank == SURVIVOR ? wait_exclusive : wait_shared);
}

static void killed_exclusive_holder_is_reported_to_lockers(void **state)
{
    (void)state;
    team_run(TEAM, exclusive_holder);
    team_leaves_zombies = false;
    team_run(TEAM, exclusive_holder);
    team_leaves_zombies = true;
}

static void exclusive_holder_against_all(struct oriel_window *window)
{
    if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, OTHER, true) == ORIEL_OK);
        die_waited_for();
    }
    expect_named_by(window, oriel_lock_all);
}

static void killed_exclusive_holder_is_reported_to_lock_all(void **state)
{
    (void)state;
    team_run(TEAM, exclusive_holder_against_all);
}

static void shared_holder(struct oriel_window *window)
{
    if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, SURVIVOR, false) == ORIEL_OK);
        die_waited_for();
    }
    expect_named_by(window, wait_exclusive);
}

static void killed_shared_holder_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, shared_holder);
}

static void lock_all_holder(struct oriel_window *window)
{
    if (window->rank == VICTIM) {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        die_waited_for();
    }
    expect_named_by(window, wait_exclusive);
}

static void killed_lock_all_holder_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, lock_all_holder);
}

/* The victim dies in the queue, and the holder before it unlocks after that. Without detection, the
 * rank queued after it would wait forever. */
static void waiting_ticket(struct oriel_window *window)
{
    struct oriel_ticket *lock = &oriel_window_control(window, OTHER)->lock;
    if (window->rank == OTHER) {
        team_expect(oriel_lock(window, OTHER, false) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (atomic_load(&lock->queue) >> 32 == 0) /* the victim has its ticket */
            sched_yield();
        team_kill(VICTIM);
        team_expect(oriel_unlock(window, OTHER) == ORIEL_OK);
        team_flag_set(READY, 2);
    } else if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, VICTIM, true) ==
                    ORIEL_OK); /* the first takes another path: sync/lock.h */
        team_expect(oriel_unlock(window, VICTIM) == ORIEL_OK);
        team_flag_await(READY, 1);
        oriel_lock(window, OTHER, true);
        team_expect(false); /* the lock is never free before the victim dies */
    } else {
        team_flag_await(READY, 2);
        team_timeouts = 0;
        expect_named(oriel_lock(window, OTHER, false));
        expect_named(oriel_lock(window, OTHER, true));
    }
}

static void killed_waiting_ticket_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, waiting_ticket);
}

/* The victim waits at the gate, counted as a writer, for a lock_all that ends after its death. */
static void waiting_writer(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    if (window->rank == OTHER) {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (atomic_load(&gate->half.writers) == 0)
            sched_yield();
        team_kill(VICTIM);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_flag_set(READY, 2);
    } else if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        oriel_lock(window, OTHER, true);
        team_expect(false);
    } else {
        team_flag_await(READY, 2);
        expect_named(oriel_lock_all(window));
    }
}

static void killed_waiting_writer_is_reported_to_lock_all(void **state)
{
    (void)state;
    team_run(TEAM, waiting_writer);
}

static void mutex_holder(struct oriel_window *window)
{
    if (window->rank == VICTIM) {
        team_expect(oriel_accumulate_mutex_lock(window, OTHER) == ORIEL_OK);
        die_waited_for();
    }
    expect_named_by(window, wait_mutex);
}

static void killed_mutex_holder_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, mutex_holder);
}

static const int32_t victim = VICTIM;

static void poster(struct oriel_window *window)
{
    static const int32_t both[] = {OTHER, VICTIM};
    static const int32_t survivor = SURVIVOR;
    if (window->rank == VICTIM)
        die_waited_for();
    if (window->rank == OTHER) {
        team_expect(oriel_post(window, window_ranks(&survivor, 1), 1) == ORIEL_OK);
        expect_named(oriel_start(window, window_ranks(&victim, 1), 1));
    } else {
        expect_named(oriel_start(window, window_ranks(both, 2), 2));
        expect_named(oriel_start(window, window_ranks(&victim, 1), 1));
    }
}

static void killed_poster_is_reported_by_start(void **state)
{
    (void)state;
    team_run(TEAM, poster);
}

/* Two ranks expose themselves to the victim, which dies before its complete; or, if it does not
 * start, before its first epoch. */
static void expose(struct oriel_window *window, bool starts)
{
    if (window->rank == VICTIM) {
        static const int32_t both[] = {SURVIVOR, OTHER};
        if (starts)
            team_expect(oriel_start(window, window_ranks(both, 2), 2) == ORIEL_OK);
        die_waited_for();
    }
    team_expect(oriel_post(window, window_ranks(&victim, 1), 1) == ORIEL_OK);
    enum oriel_status status = ORIEL_OK;
    bool done = false;
    if (window->rank == OTHER)
        status = oriel_wait_exposure(window);
    while (window->rank == SURVIVOR && status == ORIEL_OK && !done)
        status = oriel_test_exposure(window, &done);
    team_expect(!done);
    expect_named(status);
}

/* The same after all have met before, so each rank knows the others' counters. */
static void after_an_epoch(struct oriel_window *window)
{
    const int32_t other = window->rank == VICTIM ? SURVIVOR : VICTIM;
    if (window->rank == OTHER)
        return;
    team_expect(oriel_post(window, window_ranks(&other, 1), 1) == ORIEL_OK);
    team_expect(oriel_start(window, window_ranks(&other, 1), 1) == ORIEL_OK);
    team_expect(oriel_complete(window) == ORIEL_OK && oriel_wait_exposure(window) == ORIEL_OK);
    if (window->rank == VICTIM)
        die_waited_for();
    team_expect(oriel_post(window, window_ranks(&other, 1), 1) == ORIEL_OK);
    expect_named(oriel_start(window, window_ranks(&other, 1), 1));
    expect_named(oriel_wait_exposure(window));
}

static void killed_origin_or_poster_after_an_epoch_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, after_an_epoch);
}

static void origin(struct oriel_window *window)
{
    expose(window, true);
}

static void killed_origin_is_reported_by_wait_and_test(void **state)
{
    (void)state;
    team_run(TEAM, origin);
}

static void idle_origin(struct oriel_window *window)
{
    expose(window, false);
}

static void killed_origin_without_an_epoch_is_reported_by_wait_and_test(void **state)
{
    (void)state;
    team_run(TEAM, idle_origin);
}

/* A rank that blocks no other may die unnoticed: without a lock, or waiting for a lock_all that
 * never arrived. The latter does not exclude others from a lock that living ranks hold. */
static void bystander(struct oriel_window *window, bool waits, bool exclusive)
{
    if (window->rank == OTHER) {
        team_expect(oriel_lock(window, OTHER, true) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (waits && atomic_load(&window->common->gate.readers_waiting) == 0)
            sched_yield();
        team_kill(VICTIM);
        team_flag_set(READY, 2);
        usleep(400000); /* longer than courtesy and one liveness check */
        team_expect(oriel_unlock(window, OTHER) == ORIEL_OK);
    } else if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        if (waits)
            oriel_lock_all(window);
        for (;;)
            pause();
    } else {
        team_flag_await(READY, 2);
        team_expect(oriel_lock(window, OTHER, exclusive) == ORIEL_OK); /* held by living ranks */
        team_expect(oriel_unlock(window, OTHER) == ORIEL_OK);
        team_expect(oriel_lock(window, SURVIVOR, true) == ORIEL_OK); /* free */
        team_expect(oriel_unlock(window, SURVIVOR) == ORIEL_OK);
        team_expect(oriel_lock_all(window) == ORIEL_OK);
    }
}

static void idle_bystander(struct oriel_window *window)
{
    bystander(window, false, true);
}

static void waiting_bystander(struct oriel_window *window)
{
    bystander(window, true, true);
}

static void waiting_bystander_of_a_reader(struct oriel_window *window)
{
    bystander(window, true, false);
}

static void killed_bystander_raises_no_alarm(void **state)
{
    (void)state;
    team_run(TEAM, idle_bystander);
    team_run(TEAM, waiting_bystander);
    team_run(TEAM, waiting_bystander_of_a_reader);
}

/* Rank VICTIM does its part of the second barrier and ends its process. OTHER arrives so late that
 * SURVIVOR checks for deaths. */
static void leave_in_good_order(struct oriel_window *window)
{
    team_expect(oriel_barrier(window) == ORIEL_OK);
    if (window->rank == VICTIM) {
        atomic_fetch_add(&window->common->arrivals.value, 1);
        return;
    }
    while (oriel_identity_alive(&team->members[VICTIM].process))
        usleep(1000);
    if (window->rank == OTHER)
        usleep(250000);
    team_expect(oriel_barrier(window) == ORIEL_OK);
}

static void rank_that_left_in_good_order_raises_no_alarm(void **state)
{
    (void)state;
    team_run(TEAM, leave_in_good_order);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_rank_is_reported_by_barrier),
        cmocka_unit_test(killed_exclusive_holder_is_reported_to_lockers),
        cmocka_unit_test(killed_exclusive_holder_is_reported_to_lock_all),
        cmocka_unit_test(killed_shared_holder_is_reported),
        cmocka_unit_test(killed_lock_all_holder_is_reported),
        cmocka_unit_test(killed_waiting_ticket_is_reported),
        cmocka_unit_test(killed_waiting_writer_is_reported_to_lock_all),
        cmocka_unit_test(killed_mutex_holder_is_reported),
        cmocka_unit_test(killed_poster_is_reported_by_start),
        cmocka_unit_test(killed_origin_or_poster_after_an_epoch_is_reported),
        cmocka_unit_test(killed_origin_is_reported_by_wait_and_test),
        cmocka_unit_test(killed_origin_without_an_epoch_is_reported_by_wait_and_test),
        cmocka_unit_test(killed_bystander_raises_no_alarm),
        cmocka_unit_test(rank_that_left_in_good_order_raises_no_alarm),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: a rank that dies needs a process of its own");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
