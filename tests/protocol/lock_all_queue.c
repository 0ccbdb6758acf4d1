/* src/internode/target/lock_all_queue.c (J1 to J4), origin_sync.c: lock_all epochs acquire locks of
 * several targets on another node, while exclusive locks wait at those targets. The targets are the
 * ranks of node 0, the origins the ranks of node 1. */
#include "simulated_nodes.h"
#include "exclusion_check.h"

#include "sync/lock_all_gate.h"

#include <sched.h>
#include <unistd.h>

enum { TIMES = 5, ROUNDS = 300, HOLDER = 2, SETTLE_US = 50000 };

/* The rank with this index on a node. */
static int32_t one_of(int32_t node, int which)
{
    int32_t rank = 0;
    while (nodes_node_of(rank) != node || which-- > 0)
        rank++;
    return rank;
}

/* The index of this rank there, or -1. */
static int index_on(int32_t node)
{
    int index = 0;
    for (int32_t rank = 0; rank < team_rank; rank++)
        index += nodes_node_of(rank) == node;
    return nodes_node_of(team_rank) == node ? index : -1;
}

static uint32_t writers(const struct oriel_window *whole, int32_t target)
{
    return (uint32_t)(atomic_load(nodes_queue(whole, target)) >> 32);
}

static uint32_t readers(const struct oriel_window *whole, int32_t target)
{
    return (uint32_t)atomic_load(nodes_queue(whole, target));
}

static void await_writer(const struct oriel_window *whole, int32_t target, uint32_t before)
{
    while (writers(whole, target) == before)
        sched_yield();
}

static void take(struct oriel_window *window, int32_t target)
{
    uint64_t got = UINT64_MAX;
    team_expect(nodes_get(window, target, 0, &got) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, target) == ORIEL_OK && got == 0);
}

static void begin(struct oriel_window *window, int32_t first)
{
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    take(window, first);
}

static void lock_once(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_lock(window, target, true) == ORIEL_OK &&
                oriel_unlock(window, target) == ORIEL_OK);
}

static void lock_and_count(struct oriel_window *window, int32_t target, _Atomic uint32_t *inside)
{
    team_expect(oriel_lock(window, target, true) == ORIEL_OK);
    atomic_fetch_add(inside, 1);
    team_expect(oriel_unlock(window, target) == ORIEL_OK);
}

/* Each origin holds one target's lock and wants the other's. An exclusive lock of that target
 * itself, or of a rank on a third node, waits for it by then. */
static void close_cycle(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int origin = index_on(1);
    int writer = index_on(nodes_count == 2 ? 0 : 2);
    _Atomic uint32_t *inside = (_Atomic uint32_t *)window_memory(whole, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        const int32_t targets[] = {one_of(0, 0), one_of(0, 1)};
        const uint32_t before[] = {writers(whole, targets[0]), writers(whole, targets[1])};
        const uint32_t readers_before = readers(whole, targets[origin == 0]);
        team_barrier();
        if (origin >= 0)
            begin(window, targets[origin]);
        team_barrier();
        if (writer >= 0)
            lock_and_count(window, targets[writer], inside);
        if (origin >= 0) {
            await_writer(whole, targets[0], before[0]);
            await_writer(whole, targets[1], before[1]);
            take(window, targets[1 - origin]);
            /* it shares the position of the other: by its own it would wait until J5 */
            team_expect(readers(whole, targets[1 - origin]) - readers_before == 1);
            team_expect(atomic_load(inside) == 2 * (i - 1));
            team_flag_set(origin, i);
            team_flag_await(1 - origin, i);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_barrier();
        team_expect(atomic_load(inside) == 2 * i);
    }
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

/* Two windows with one order: each origin holds the target's lock in one window and wants that in
 * the other. */
static void close_cycle_of_windows(struct oriel_window *whole)
{
    struct oriel_window *windows[2];
    _Atomic uint64_t *queues[2];
    int32_t target = one_of(0, 0);
    int origin = index_on(1);
    int writer = index_on(0);
    for (int i = 0; i < 2; i++) {
        windows[i] = nodes_open();
        queues[i] = nodes_queue(whole, target);
        team_barrier();
    }
    for (int i = 0; i < TIMES; i++) {
        const uint64_t before[] = {*queues[0], *queues[1]};
        team_barrier();
        if (origin >= 0) {
            team_expect(oriel_lock_all(windows[0]) == ORIEL_OK &&
                        oriel_lock_all(windows[1]) == ORIEL_OK);
            take(windows[origin], target);
        }
        team_barrier();
        if (writer >= 0)
            lock_once(windows[writer], target);
        if (origin >= 0) {
            while (*queues[0] >> 32 == before[0] >> 32 || *queues[1] >> 32 == before[1] >> 32)
                sched_yield();
            take(windows[1 - origin], target);
            /* it shares the position of the other: by its own it would wait until J5 */
            team_expect((uint32_t)(*queues[1 - origin] - before[1 - origin]) == 1);
            team_flag_set(origin, (uint32_t)i + 1);
            team_flag_await(1 - origin, (uint32_t)i + 1);
            team_expect(oriel_unlock_all(windows[1]) == ORIEL_OK &&
                        oriel_unlock_all(windows[0]) == ORIEL_OK);
        }
        team_barrier();
    }
    for (int i = 0; i < 2; i++) {
        nodes_await_turns(windows[i]);
        nodes_expect_free(windows[i]);
        nodes_close(windows[i]);
    }
    nodes_stop();
}

static void internode_lock_all_of_two_windows_makes_no_cycle(void **state)
{
    (void)state;
    nodes_run(4, 2, close_cycle_of_windows);
}

static void internode_lock_all_and_waiting_locks_make_no_cycle(void **state)
{
    (void)state;
    nodes_run(4, 2, close_cycle);
    nodes_run(6, 3, close_cycle);
}

/* Exclusive locks of the targets themselves wait for the holder, and others overtake them. Messages
 * ask the holder to begin its next epoch with both locks, each in its own order. */
static void follow(struct oriel_window *whole, struct oriel_window *window)
{
    const int32_t targets[] = {one_of(0, 0), one_of(0, 1)};
    const uint32_t before[] = {writers(whole, targets[0]), writers(whole, targets[1])};
    int origin = index_on(1);
    team_barrier();
    if (origin == HOLDER) {
        begin(window, targets[0]);
        take(window, targets[1]);
    }
    team_barrier();
    if (team_rank == targets[0] || team_rank == targets[1])
        lock_once(window, team_rank);
    if (origin == 0 || origin == 1) {
        await_writer(whole, targets[0], before[0]);
        await_writer(whole, targets[1], before[1]);
        begin(window, targets[origin]);
        take(window, targets[1 - origin]);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_flag_set(origin, 1);
    }
    if (origin == HOLDER) {
        team_flag_await(0, 1);
        team_flag_await(1, 1);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
}

/* Both wait for the first target within lock_all, after one exclusive lock and before another. With
 * different orders, each would wait so for the other. */
static void begin_in_turn(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    const int32_t targets[] = {one_of(0, 0), one_of(0, 1)};
    int origin = index_on(1);
    int writer = index_on(0);
    follow(whole, window);
    const uint32_t writers_before[] = {writers(whole, targets[0]), writers(whole, targets[1])};
    const uint32_t readers_before[] = {readers(whole, targets[0]), readers(whole, targets[1])};
    team_barrier();
    if (origin == HOLDER) {
        begin(window, targets[0]);
        take(window, targets[1]);
    }
    team_barrier();
    if (writer == 2 || writer == 3) {
        while (readers(whole, targets[0]) - readers_before[0] < 2)
            sched_yield();
        usleep(SETTLE_US); /* the rank with the other order waits by then, too */
    }
    if (writer >= 0)
        lock_once(window, targets[writer % 2]);
    if (origin == HOLDER) {
        for (int i = 0; i < 2; i++)
            while (writers(whole, targets[i]) - writers_before[i] < 2)
                sched_yield();
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    } else if (origin == 0 || origin == 1) {
        for (int i = 0; i < 2; i++)
            await_writer(whole, targets[i], writers_before[i]);
        while (origin == 1 && readers(whole, targets[0]) - readers_before[0] < 2)
            team_expect(readers(whole, targets[1]) - readers_before[1] < 2); /* of origin 0 */
        team_expect(oriel_lock_all(window) == ORIEL_OK && oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_in_turn_acquires_by_rank(void **state)
{
    (void)state;
    nodes_run(8, 2, begin_in_turn);
}

/* The epoch of a node's last rank is notified that another lock is queued after its lock of the
 * other node's first rank. */
static void learn_of_writer(struct oriel_window *whole, struct oriel_window *window, int32_t node,
                            uint32_t time)
{
    int32_t target = one_of(1 - node, 0);
    uint32_t before = writers(whole, target);
    team_barrier();
    if (team_rank == one_of(node, 1))
        begin(window, target);
    team_barrier();
    if (team_rank == target) {
        lock_once(window, target);
    } else if (team_rank == one_of(node, 2)) {
        await_writer(whole, target, before);
        begin(window, target);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_flag_set((int)node, time);
    } else if (team_rank == one_of(node, 1)) {
        team_flag_await((int)node, time);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
}

/* The last rank of each node begins lock_all with the lock of the other node's first rank. The gate
 * of its own node is closed, by the second rank and then by the first. It would block the first
 * rank's lock if it had already acquired the other lock. */
static void wait_at_gates(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int node = (int)nodes_node_of(team_rank);
    int index = index_on(node);
    int32_t first = one_of(node, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        learn_of_writer(whole, window, 0, i);
        learn_of_writer(whole, window, 1, i);
        uint32_t before = writers(whole, first);
        if (index == 1)
            team_expect(oriel_lock(window, team_rank, true) == ORIEL_OK);
        team_barrier();
        if (index == 2) {
            team_expect(oriel_lock_all(window) == ORIEL_OK && oriel_unlock_all(window) == ORIEL_OK);
        } else if (index == 1) {
            await_writer(whole, first, before);
            team_expect(oriel_unlock(window, team_rank) == ORIEL_OK);
        } else {
            while (!oriel_gate_has_waiting_readers(&window->common->gate))
                sched_yield();
            team_flag_set(2 + node, i);
            team_flag_await(3 - node, i);
            lock_once(window, first);
        }
        team_barrier();
    }
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_in_turn_waits_at_the_gate_first(void **state)
{
    (void)state;
    nodes_run(6, 2, wait_at_gates);
}

/* One target's lock is always held, by one of two epochs that also hold the other target's lock,
 * while its own rank waits for it. */
static void overtake(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t target = one_of(0, 0);
    int32_t other = one_of(0, 1);
    _Atomic uint32_t *inside = (_Atomic uint32_t *)window_memory(whole, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        uint32_t writers_before = writers(whole, target);
        uint32_t readers_before = readers(whole, target);
        team_barrier();
        if (team_rank == target) {
            team_flag_await(0, i * 10);
            lock_and_count(window, target, inside);
        } else if (index_on(1) == 0) {
            begin(window, other);
            take(window, target);
            team_flag_set(0, i * 10);
            team_flag_await(1, i * 10);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
            begin(window, other);
            take(window, target); /* its first epoch arrived before */
            team_expect(atomic_load(inside) == i - 1);
            team_flag_set(0, i * 10 + 1);
            while (readers(whole, target) - readers_before <
                   2) /* the other's second epoch is queued after it */
                sched_yield();
            team_expect(atomic_load(inside) == i - 1);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        } else if (index_on(1) == 1) {
            await_writer(whole, target, writers_before);
            begin(window, other);
            take(window, target);
            team_expect(atomic_load(inside) == i - 1);
            team_flag_set(1, i * 10);
            team_flag_await(0, i * 10 + 1);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
            begin(window, other);
            take(window, target);
            team_expect(atomic_load(inside) == i);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_barrier();
    }
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_overtakes_once(void **state)
{
    (void)state;
    nodes_run(4, 2, overtake);
}

/* All at random: half of the locks are exclusive; the others' epochs acquire four targets' locks in
 * any order. */
static void mix(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        bool exclusive = team_random() % 2 != 0;
        int32_t first = (int32_t)(team_random() % (uint64_t)window->n);
        if (exclusive) {
            team_expect(oriel_lock(window, first, true) == ORIEL_OK);
            exclusion_check_writer(exclusion_at(whole, first, 0));
            team_expect(oriel_unlock(window, first) == ORIEL_OK);
            continue;
        }
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        for (int32_t step = 0; step < 4; step++) {
            int32_t target = (first + step * 3) % window->n;
            take(window, target);
            exclusion_check_reader(exclusion_at(whole, target, 0));
        }
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_of_many_targets_excludes_and_ends(void **state)
{
    (void)state;
    nodes_run(4, 2, mix);
    nodes_run(5, 3, mix);
    nodes_run(8, 4, mix);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_lock_all_and_waiting_locks_make_no_cycle),
        cmocka_unit_test(internode_lock_all_of_two_windows_makes_no_cycle),
        cmocka_unit_test(internode_lock_all_in_turn_acquires_by_rank),
        cmocka_unit_test(internode_lock_all_in_turn_waits_at_the_gate_first),
        cmocka_unit_test(internode_lock_all_overtakes_once),
        cmocka_unit_test(internode_lock_all_of_many_targets_excludes_and_ends),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
