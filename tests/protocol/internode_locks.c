/* src/internode/origin/origin_sync.c, target_sync.c: a target's own process acquires its lock for
 * ranks on other nodes, among locks of ranks on its node. Each target's memory in the team's own
 * window has a room for its lock. */
#include "apart.h"
#include "room.h"
#include "sync/lock_all_gate.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1500 };

static int32_t any_rank(const struct oriel_window *window)
{
    return (int32_t)(team_random() % (uint64_t)window->n);
}

static void with_target(struct oriel_window *whole, struct oriel_window *window, bool exclusive)
{
    int32_t target = any_rank(window);
    team_expect(oriel_lock(window, target, exclusive) == ORIEL_OK);
    team_expect(oriel_access_allowed(window, target) && oriel_passive_epoch(window, target));
    if (exclusive)
        room_write(room_at(whole, target, 0));
    else
        room_read(room_at(whole, target, 0));
    team_expect(oriel_unlock(window, target) == ORIEL_OK);
    team_expect(!oriel_access_allowed(window, target) && !oriel_passive_epoch(window, -1));
}

/* The first operation acquires the lock of a target on another node, and the epoch keeps it. On
 * this rank's node the gate excludes exclusive locks. */
static void with_all(struct oriel_window *whole, struct oriel_window *window)
{
    uint64_t got[2] = {UINT64_MAX, UINT64_MAX};
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    for (int i = 0; i < 2; i++) {
        int32_t target = any_rank(window);
        team_expect(apart_get(window, target, 0, &got[i]) == ORIEL_OK);
        room_read(room_at(whole, target, 0));
    }
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
    team_expect(got[0] == 0 && got[1] == 0);
}

static void mix(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        uint64_t kind = team_random() % 4;
        if (kind == 0)
            with_all(whole, window);
        else
            with_target(whole, window, kind < 3);
        oriel_delay();
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_kinds_exclude_as_the_standard_says(void **state)
{
    (void)state;
    apart_run_sizes(mix);
}

/* A counter is read, flushed and written back under the lock. All operations are executed and
 * visible when the next rank holds the lock. */
static void count_up_behind(struct oriel_window *whole,
                            enum oriel_status (*lock)(struct oriel_window *, int32_t, bool))
{
    struct oriel_window *window = apart_open();
    _Atomic uint64_t *all = (_Atomic uint64_t *)fabricate_memory(whole, 0);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        int32_t target = (int32_t)(team_random() % 2);
        team_expect(lock(window, target, true) == ORIEL_OK);
        uint64_t count = apart_read(window, target, 0);
        team_expect(apart_put(window, target, 0, count + 1) == ORIEL_OK);
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
        atomic_fetch_add(&all[target], 1);
    }
    team_meet();
    if (window->rank < 2)
        team_expect(apart_look(window, 0) == atomic_load(&all[window->rank]));
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void count_up(struct oriel_window *whole)
{
    count_up_behind(whole, oriel_lock);
}

static void count_up_later(struct oriel_window *whole)
{
    count_up_behind(whole, oriel_lock_lazy);
}

static void far_unlock_publishes_and_excludes(void **state)
{
    (void)state;
    apart_run_sizes(count_up);
    apart_run_sizes(count_up_later);
}

/* All hold the lock at the same time. */
static void share(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    (void)whole;
    for (int32_t target = 0; target < window->n; target++) {
        team_expect(oriel_lock(window, target, false) == ORIEL_OK);
        team_meet();
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(apart_put(window, target, (uint64_t)window->rank, 1) == ORIEL_OK);
        team_meet();
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_shared_locks_are_held_together(void **state)
{
    (void)state;
    apart_run(2, 2, share);
    apart_run(6, 3, share);
}

/* The number of occupied places in a target's queue. */
static uint32_t places(const struct oriel_window *whole, int32_t target)
{
    uint64_t queue = atomic_load(apart_queue(whole, target));
    return (uint32_t)(queue >> 32) + (uint32_t)queue;
}

/* Ranks 1 to n - 1 arrive one after the other while rank 0 has the lock, and acquire it in that
 * order. */
static void come_in_order(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    for (int round = 0; round < 6; round++) {
        int32_t target = (int32_t)(round % window->n);
        if (window->rank == 0) {
            team_expect(oriel_lock(window, target, true) == ORIEL_OK);
            uint32_t before = places(whole, target);
            atomic_store(inside, 0);
            team_meet();
            for (int32_t i = 1; i < window->n; i++) {
                team_flag_set(0, (uint32_t)(round * 100 + i));
                while (places(whole, target) - before < (uint32_t)i)
                    sched_yield();
            }
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        } else {
            bool exclusive = (window->rank + round) % 3 != 0;
            team_meet();
            team_flag_await(0, (uint32_t)(round * 100 + window->rank));
            team_expect(oriel_lock(window, target, exclusive) == ORIEL_OK);
            uint32_t order = atomic_fetch_add(inside, 1) + 1;
            if (exclusive) /* readers that arrived together enter together */
                team_expect(order == (uint32_t)window->rank);
            oriel_delay();
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        }
        team_meet();
    }
    apart_close(window);
    apart_stop();
}

static void far_lock_that_waits_is_overtaken_by_nobody(void **state)
{
    (void)state;
    apart_run(3, 3, come_in_order);
    apart_run(6, 2, come_in_order);
    apart_run(7, 4, come_in_order);
}

/* The same while rank 0 is inside lock_all: they have no places yet, and get them in that order
 * when rank 0 has left. */
static void come_to_the_gate(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    for (uint32_t round = 0; round < 5; round++) {
        if (window->rank == 0) {
            team_expect(oriel_lock_all(window) == ORIEL_OK);
            atomic_store(inside, 0);
            for (uint32_t i = 1; i < (uint32_t)window->n; i++) {
                team_flag_set(0, round * 100 + i);
                while (atomic_load(&window->common->gate.half.writers) < i)
                    sched_yield();
            }
            team_expect(atomic_load(inside) == 0);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        } else {
            team_flag_await(0, round * 100 + (uint32_t)window->rank);
            team_expect(oriel_lock(window, 0, true) == ORIEL_OK);
            team_expect(atomic_fetch_add(inside, 1) + 1 == (uint32_t)window->rank);
            team_expect(oriel_unlock(window, 0) == ORIEL_OK);
        }
        team_meet();
    }
    apart_close(window);
    apart_stop();
}

static void far_lock_at_the_gate_is_overtaken_by_nobody(void **state)
{
    (void)state;
    apart_run(4, 4, come_to_the_gate);
}

/* A stream of exclusive locks from another node, without a pause, does not exclude lock_all. */
static void stream_against_all(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    int32_t target = window->rank == 0 ? apart_elsewhere(window) : 0;
    (void)whole;
    if (apart_machine(window->rank) == apart_machine(0)) {
        for (int i = 0; i < 20; i++) {
            team_expect(oriel_lock_all(window) == ORIEL_OK);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_flag_set(window->rank % TEAM_FLAGS, 1);
        for (int32_t i = 0; i < window->n && i < TEAM_FLAGS; i++)
            if (apart_machine(i) == apart_machine(0))
                team_flag_await(i, 1);
        team_flag_set(TEAM_FLAGS - 1, 2);
    } else {
        while (atomic_load(&team->flags[TEAM_FLAGS - 1]) < 2) {
            team_expect(oriel_lock(window, target, true) == ORIEL_OK);
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        }
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_exclusive_locks_leave_lock_all_its_turn(void **state)
{
    (void)state;
    apart_run(4, 2, stream_against_all);
    apart_run(6, 3, stream_against_all);
}

/* Whether a lock request from another node has arrived. Reads the agent's list without
 * synchronisation. */
__attribute__((noinline, no_sanitize("thread"))) static bool
is_asked_for(const struct oriel_window *window)
{
    return *(struct oriel_internode_lock *volatile *)&window->internode->locks != NULL;
}

/* An exclusive lock that arrives while a rank on the target's node waits for lock_all is courteous
 * for 100 ms: lock_all enters first, unless all this took longer. */
static void be_courteous(struct oriel_window *whole)
{
    enum { TIMES = 10 };
    struct oriel_window *window = apart_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    int32_t beside = apart_machine(1) == apart_machine(0) ? 1 : 2;
    int first = 0;
    for (uint32_t i = 1; i <= TIMES; i++) {
        if (window->rank == 0) {
            team_expect(oriel_lock(window, 0, true) == ORIEL_OK);
            atomic_store(inside, 0);
            team_flag_set(0, i);
            while (!oriel_gate_has_waiting_readers(&window->common->gate))
                sched_yield();
            team_flag_set(1, i);
            while (!is_asked_for(window))
                sched_yield();
            team_expect(oriel_unlock(window, 0) == ORIEL_OK);
        } else if (window->rank == beside) {
            team_flag_await(0, i);
            team_expect(oriel_lock_all(window) == ORIEL_OK);
            first += atomic_load(inside) == 0;
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        } else if (window->rank == 3) {
            team_flag_await(1, i);
            team_expect(oriel_lock(window, 0, true) == ORIEL_OK);
            atomic_store(inside, 1);
            team_expect(oriel_unlock(window, 0) == ORIEL_OK);
        }
        team_meet();
    }
    team_expect(window->rank != beside || first > TIMES / 2);
    apart_close(window);
    apart_stop();
}

static void far_lock_is_courteous(void **state)
{
    (void)state;
    apart_run(4, 2, be_courteous);
}

/* An operation of an earlier epoch has failed, and the failure is not reported yet: the lock is
 * held all the same. */
static void lock_after_a_failure(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    (void)whole;
    for (int i = 0; i < 10; i++) {
        int32_t target = apart_elsewhere(window);
        team_expect(apart_put(window, target, APART_BEYOND, 1) == ORIEL_OK);
        team_expect(oriel_lock(window, target, true) == ORIEL_OK);
        team_expect(oriel_unlock(window, target) == ORIEL_E_RANGE);
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_after_a_failure_is_held(void **state)
{
    (void)state;
    apart_run(2, 2, lock_after_a_failure);
    apart_run(4, 2, lock_after_a_failure);
}

static void misuse(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    (void)whole;
    if (window->rank == 2) /* the other rank has it all the time */
        team_expect(oriel_lock(window, 1, false) == ORIEL_OK);
    team_meet();
    if (window->rank == 0) {
        int32_t target = apart_elsewhere(window);
        team_expect(oriel_unlock(window, target) == ORIEL_E_SYNC);
        team_expect(oriel_unlock_all(window) == ORIEL_E_SYNC);
        team_expect(oriel_lock(window, target, false) == ORIEL_OK);
        team_expect(oriel_lock(window, target, true) == ORIEL_E_SYNC);
        team_expect(oriel_lock_all(window) == ORIEL_E_SYNC);
        team_expect(oriel_fence(window, false) == ORIEL_E_SYNC);
        team_expect(oriel_epochs_closed(window) == ORIEL_E_SYNC);
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
        bool is_given_back;
        team_expect(oriel_internode_unlock(window, target, false, &is_given_back) ==
                    ORIEL_E_SYNC); /* nor at the target */
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(oriel_lock(window, target, false) == ORIEL_E_SYNC);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_meet();
    if (window->rank == 2)
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
    for (int32_t i = 0; i < window->n; i++)
        team_expect(oriel_lock(window, i, true) == ORIEL_OK && oriel_unlock(window, i) == ORIEL_OK);
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_misuse_is_refused_and_leaves_no_trace(void **state)
{
    (void)state;
    apart_run(3, 3, misuse);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_lock_kinds_exclude_as_the_standard_says),
        cmocka_unit_test(far_unlock_publishes_and_excludes),
        cmocka_unit_test(far_shared_locks_are_held_together),
        cmocka_unit_test(far_lock_that_waits_is_overtaken_by_nobody),
        cmocka_unit_test(far_lock_at_the_gate_is_overtaken_by_nobody),
        cmocka_unit_test(far_exclusive_locks_leave_lock_all_its_turn),
        cmocka_unit_test(far_lock_is_courteous),
        cmocka_unit_test(far_lock_after_a_failure_is_held),
        cmocka_unit_test(far_lock_misuse_is_refused_and_leaves_no_trace),
    };
    apart_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
