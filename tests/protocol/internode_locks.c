/* src/internode/origin/origin_sync.c, target_sync.c: a target's own process acquires its lock for
 * ranks on other nodes, among locks of ranks on its node. Each target's memory in the team's own
 * window has an exclusion check for its lock. */
#include "simulated_nodes.h"
#include "exclusion_check.h"
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
        exclusion_check_writer(exclusion_at(whole, target, 0));
    else
        exclusion_check_reader(exclusion_at(whole, target, 0));
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
        team_expect(nodes_get(window, target, 0, &got[i]) == ORIEL_OK);
        exclusion_check_reader(exclusion_at(whole, target, 0));
    }
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
    team_expect(got[0] == 0 && got[1] == 0);
}

static void mix(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        uint64_t kind = team_random() % 4;
        if (kind == 0)
            with_all(whole, window);
        else
            with_target(whole, window, kind < 3);
        oriel_delay();
    }
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_kinds_exclude_as_in_the_standard(void **state)
{
    (void)state;
    nodes_run_sizes(mix);
}

/* A counter is read, flushed and written back under the lock. All operations are executed and
 * visible when the next rank holds the lock. */
static void count_up_after(struct oriel_window *whole,
                           enum oriel_status (*lock)(struct oriel_window *, int32_t, bool))
{
    struct oriel_window *window = nodes_open();
    _Atomic uint64_t *all = (_Atomic uint64_t *)window_memory(whole, 0);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        int32_t target = (int32_t)(team_random() % 2);
        team_expect(lock(window, target, true) == ORIEL_OK);
        uint64_t count = nodes_read(window, target, 0);
        team_expect(nodes_put(window, target, 0, count + 1) == ORIEL_OK);
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
        atomic_fetch_add(&all[target], 1);
    }
    team_barrier();
    if (window->rank < 2)
        team_expect(nodes_load(window, 0) == atomic_load(&all[window->rank]));
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void count_up(struct oriel_window *whole)
{
    count_up_after(whole, oriel_lock);
}

static void count_up_later(struct oriel_window *whole)
{
    count_up_after(whole, oriel_lock_lazy);
}

static void internode_unlock_publishes_and_excludes(void **state)
{
    (void)state;
    nodes_run_sizes(count_up);
    nodes_run_sizes(count_up_later);
}

/* All hold the lock at the same time. */
static void share(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (int32_t target = 0; target < window->n; target++) {
        team_expect(oriel_lock(window, target, false) == ORIEL_OK);
        team_barrier();
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(nodes_put(window, target, (uint64_t)window->rank, 1) == ORIEL_OK);
        team_barrier();
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_shared_locks_are_held_together(void **state)
{
    (void)state;
    nodes_run(2, 2, share);
    nodes_run(6, 3, share);
}

/* The number of occupied positions in a target's queue. */
static uint32_t queue_length(const struct oriel_window *whole, int32_t target)
{
    uint64_t queue = atomic_load(nodes_queue(whole, target));
    return (uint32_t)(queue >> 32) + (uint32_t)queue;
}

/* Ranks 1 to n - 1 arrive one after the other while rank 0 has the lock, and acquire it in that
 * order. */
static void enter_in_order(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)window_memory(whole, 0);
    for (int round = 0; round < 6; round++) {
        int32_t target = (int32_t)(round % window->n);
        if (window->rank == 0) {
            team_expect(oriel_lock(window, target, true) == ORIEL_OK);
            uint32_t before = queue_length(whole, target);
            atomic_store(inside, 0);
            team_barrier();
            for (int32_t i = 1; i < window->n; i++) {
                team_flag_set(0, (uint32_t)(round * 100 + i));
                while (queue_length(whole, target) - before < (uint32_t)i)
                    sched_yield();
            }
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        } else {
            bool exclusive = (window->rank + round) % 3 != 0;
            team_barrier();
            team_flag_await(0, (uint32_t)(round * 100 + window->rank));
            team_expect(oriel_lock(window, target, exclusive) == ORIEL_OK);
            uint32_t order = atomic_fetch_add(inside, 1) + 1;
            if (exclusive) /* readers that arrived together enter together */
                team_expect(order == (uint32_t)window->rank);
            oriel_delay();
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        }
        team_barrier();
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_waiting_lock_is_not_overtaken(void **state)
{
    (void)state;
    nodes_run(3, 3, enter_in_order);
    nodes_run(6, 2, enter_in_order);
    nodes_run(7, 4, enter_in_order);
}

static _Atomic enum { NOTHING, ASKED, HOLDS, LEFT } agent_step;

/* Holds the agent's thread of rank 0 when asked, until that rank has left. */
static void hold_the_agent(void)
{
    if (gettid() == getpid() || atomic_load(&agent_step) != ASKED)
        return;
    atomic_store(&agent_step, HOLDS);
    while (atomic_load(&agent_step) != LEFT)
        sched_yield();
}

static void leave_between_two_looks(struct oriel_window *window)
{
    atomic_store(&agent_step, ASKED);
    while (atomic_load(&agent_step) != HOLDS)
        sched_yield();
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
    atomic_store(&agent_step, LEFT);
}

/* The same while rank 0 is inside lock_all: they have no positions yet, and get them in that order
 * when rank 0 has left. It leaves after its agent has checked the gate for one of them, mostly
 * not the last one. */
static void arrive_at_the_gate(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)window_memory(whole, 0);
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
            leave_between_two_looks(window);
        } else {
            team_flag_await(0, round * 100 + (uint32_t)window->rank);
            team_expect(oriel_lock(window, 0, true) == ORIEL_OK);
            team_expect(atomic_fetch_add(inside, 1) + 1 == (uint32_t)window->rank);
            team_expect(oriel_unlock(window, 0) == ORIEL_OK);
        }
        team_barrier();
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_at_the_gate_is_not_overtaken(void **state)
{
    (void)state;
    team_at_delay = hold_the_agent;
    nodes_run(4, 4, arrive_at_the_gate);
    team_at_delay = NULL;
}

/* A stream of exclusive locks from another node, without a pause, does not exclude lock_all. */
static void stream_against_all(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t target = window->rank == 0 ? nodes_remote_rank(window) : 0;
    (void)whole;
    if (nodes_node_of(window->rank) == nodes_node_of(0)) {
        for (int i = 0; i < 20; i++) {
            team_expect(oriel_lock_all(window) == ORIEL_OK);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_flag_set(window->rank % TEAM_FLAGS, 1);
        for (int32_t i = 0; i < window->n && i < TEAM_FLAGS; i++)
            if (nodes_node_of(i) == nodes_node_of(0))
                team_flag_await(i, 1);
        team_flag_set(TEAM_FLAGS - 1, 2);
    } else {
        while (atomic_load(&team->flags[TEAM_FLAGS - 1]) < 2) {
            team_expect(oriel_lock(window, target, true) == ORIEL_OK);
            team_expect(oriel_unlock(window, target) == ORIEL_OK);
        }
    }
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_exclusive_locks_leave_lock_all_its_turn(void **state)
{
    (void)state;
    nodes_run(4, 2, stream_against_all);
    nodes_run(6, 3, stream_against_all);
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
    struct oriel_window *window = nodes_open();
    _Atomic uint32_t *inside = (_Atomic uint32_t *)window_memory(whole, 0);
    int32_t neighbour = nodes_node_of(1) == nodes_node_of(0) ? 1 : 2;
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
        } else if (window->rank == neighbour) {
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
        team_barrier();
    }
    team_expect(window->rank != neighbour || first > TIMES / 2);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_is_courteous(void **state)
{
    (void)state;
    nodes_run(4, 2, be_courteous);
}

/* An operation of an earlier epoch has failed, and the failure is not reported yet: the lock is
 * held nevertheless. */
static void lock_after_a_failure(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (int i = 0; i < 10; i++) {
        int32_t target = nodes_remote_rank(window);
        team_expect(nodes_put(window, target, NODES_BEYOND, 1) == ORIEL_OK);
        team_expect(oriel_lock(window, target, true) == ORIEL_OK);
        team_expect(oriel_unlock(window, target) == ORIEL_E_RANGE);
    }
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_after_a_failure_is_held(void **state)
{
    (void)state;
    nodes_run(2, 2, lock_after_a_failure);
    nodes_run(4, 2, lock_after_a_failure);
}

static void misuse(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == 2) /* the other rank has it all the time */
        team_expect(oriel_lock(window, 1, false) == ORIEL_OK);
    team_barrier();
    if (window->rank == 0) {
        int32_t target = nodes_remote_rank(window);
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
    team_barrier();
    if (window->rank == 2)
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
    for (int32_t i = 0; i < window->n; i++)
        team_expect(oriel_lock(window, i, true) == ORIEL_OK && oriel_unlock(window, i) == ORIEL_OK);
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_misuse_is_refused_and_leaves_no_trace(void **state)
{
    (void)state;
    nodes_run(3, 3, misuse);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_lock_kinds_exclude_as_in_the_standard),
        cmocka_unit_test(internode_unlock_publishes_and_excludes),
        cmocka_unit_test(internode_shared_locks_are_held_together),
        cmocka_unit_test(internode_waiting_lock_is_not_overtaken),
        cmocka_unit_test(internode_lock_at_the_gate_is_not_overtaken),
        cmocka_unit_test(internode_exclusive_locks_leave_lock_all_its_turn),
        cmocka_unit_test(internode_lock_is_courteous),
        cmocka_unit_test(internode_lock_after_a_failure_is_held),
        cmocka_unit_test(internode_lock_misuse_is_refused_and_leaves_no_trace),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
