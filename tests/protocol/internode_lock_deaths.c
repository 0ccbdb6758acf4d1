/* src/internode/target/target_sync.c: a rank on another node is killed while it holds a lock or
 * waits for one. Each rank that waits for the lock gets its name; the other ranks continue. */
#include "internode_victim.h"

/* The victim dies when all others want the lock, or are about to; the others return. */
static void die_with_the_lock(struct oriel_window *window, bool exclusive)
{
    if (window->rank == victim) {
        team_expect(oriel_lock(window, OTHER, exclusive) == ORIEL_OK);
        team_flag_set(READY, 1);
        die_waited_for((uint32_t)window->n - 1);
    }
    team_flag_await(READY, 1);
    announce_wait();
}

/* The victim has the lock of OTHER; the other ranks, and OTHER itself, want it. */
static void holder(struct oriel_window *whole, bool holds_exclusive, bool wants_exclusive)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    die_with_the_lock(window, holds_exclusive);
    expect_named(oriel_lock(window, OTHER, wants_exclusive));
    expect_named(oriel_lock(window, OTHER, wants_exclusive));
    end(window);
}

static void exclusive_for_exclusive(struct oriel_window *whole)
{
    holder(whole, true, true);
}

static void exclusive_for_shared(struct oriel_window *whole)
{
    holder(whole, true, false);
}

static void shared_for_exclusive(struct oriel_window *whole)
{
    holder(whole, false, true);
}

/* Operations inside a lazy lock, which does not wait, are not executed. */
static void holder_of_lazy_locks(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    die_with_the_lock(window, true);
    for (uint64_t i = 1; window->rank != OTHER && i <= 2; i++) {
        if (nodes_node_of(window->rank) == nodes_node_of(OTHER)) {
            expect_named(oriel_lock_lazy(window, OTHER, true));
            continue;
        }
        team_expect(oriel_lock_lazy(window, OTHER, i == 1) == ORIEL_OK);
        team_expect(nodes_put(window, OTHER, 0, i) == ORIEL_OK);
        if (i == 1)
            expect_named(oriel_internode_flush(window, OTHER));
        team_expect(nodes_put(window, OTHER, 0, i) == ORIEL_OK);
        enum oriel_status status = oriel_unlock(window, OTHER);
        team_expect(status == (i == 1 ? ORIEL_E_OTHER : ORIEL_E_PEER));
    }
    team_expect(nodes_peek(whole, OTHER, 0) == 0);
    end(window);
}

static void internode_killed_holder_is_reported_to_lazy_locks(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, holder_of_lazy_locks);
    nodes_run(5, 3, holder_of_lazy_locks);
}

static void internode_killed_holder_is_reported_to_all_waits(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, exclusive_for_exclusive);
    nodes_run(TEAM, 3, exclusive_for_shared);
    nodes_run(TEAM, 3, shared_for_exclusive);
    nodes_run(5, 3, exclusive_for_exclusive);
    nodes_run(5, 3, shared_for_exclusive);
}

static void holder_of_all(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    uint64_t got = 1;
    (void)whole;
    if (window->rank == victim) {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(nodes_get(window, OTHER, 0, &got) == ORIEL_OK &&
                    oriel_internode_flush(window, -1) == ORIEL_OK && got == 0);
        team_flag_set(READY, 1);
        die_waited_for((uint32_t)window->n - 1);
    }
    team_flag_await(READY, 1);
    announce_wait();
    expect_named(oriel_lock(window, OTHER, true));
    end(window);
}

static void internode_killed_holder_of_lock_all_is_reported(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, holder_of_all);
}

/* lock_all on the node of a target whose lock a rank of another node held exclusively. */
static void holder_against_all(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    die_with_the_lock(window, true);
    if (nodes_node_of(window->rank) == nodes_node_of(OTHER)) {
        expect_named(oriel_lock_all(window));
    } else {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    end(window);
}

static void internode_killed_exclusive_holder_is_reported_to_lock_all(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, holder_against_all);
    nodes_run(6, 3, holder_against_all);
}

/* The victim is killed while it waits for the lock of another rank, which then unlocks. Operations
 * that it has sent meanwhile are not executed. */
static void waiter_by(struct oriel_window *whole,
                      enum oriel_status (*lock)(struct oriel_window *, int32_t, bool))
{
    struct oriel_window *window = nodes_open();
    if (window->rank == OTHER) {
        team_expect(oriel_lock(window, OTHER, true) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (atomic_load(nodes_queue(whole, OTHER)) < UINT64_C(2) << 32)
            sched_yield();
        team_kill(VICTIM);
        usleep(200000);
        team_expect(oriel_unlock(window, OTHER) == ORIEL_OK);
        team_flag_set(READY, 2);
        expect_named(oriel_lock(window, OTHER, true));
        team_expect(nodes_load(window, 0) == 0);
    } else if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        (void)lock(window, OTHER, true);
        (void)nodes_put(window, OTHER, 0, 1);
        (void)oriel_unlock(window, OTHER);
        team_expect(false);
    } else {
        team_flag_await(READY, 2);
        expect_named(oriel_lock(window, OTHER, true));
    }
    end(window);
}

static void waiter(struct oriel_window *whole)
{
    waiter_by(whole, oriel_lock);
}

static void waiter_with_lazy_lock(struct oriel_window *whole)
{
    waiter_by(whole, oriel_lock_lazy);
}

static void internode_killed_waiter_is_reported_to_later_waits(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, waiter);
    nodes_run(TEAM, 3, waiter_with_lazy_lock);
}

/* It is killed at the gate, where it is not in the queue yet, while it waits for a lock_all
 * that ends after its death. No rank is blocked then. */
static void waiter_at_the_gate(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == OTHER) {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (atomic_load(&window->common->gate.half.writers) == 0)
            sched_yield();
        team_kill(VICTIM);
        while (atomic_load(&window->common->gate.half.writers) != 0)
            sched_yield();
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_flag_set(READY, 2);
        team_expect(oriel_lock_all(window) == ORIEL_OK && oriel_unlock_all(window) == ORIEL_OK);
    } else if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        oriel_lock(window, OTHER, true);
        team_expect(false);
    } else {
        team_flag_await(READY, 2);
        team_expect(oriel_lock(window, OTHER, true) == ORIEL_OK &&
                    oriel_unlock(window, OTHER) == ORIEL_OK);
    }
    end(window);
}

static void internode_killed_waiter_at_the_gate_blocks_no_rank(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, waiter_at_the_gate);
}

/* The dead rank on the target's node keeps an internode lock at the gate: that lock is refused, and
 * does not exclude lock_all. */
static void refused_at_the_gate(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t neighbour = nodes_node_of(1) == nodes_node_of(0) ? 1 : 2;
    victim = neighbour;
    (void)whole;
    if (window->rank == neighbour) {
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        team_flag_set(READY, 1);
        while (atomic_load(&window->common->gate.half.writers) == 0)
            sched_yield();
        team_die();
    }
    team_flag_await(READY, 1);
    if (window->rank == 3) {
        expect_named(oriel_lock(window, 0, true));
        team_flag_set(READY, 2);
    }
    team_flag_await(READY, 2);
    if (window->rank == 0) {
        while (atomic_load(&window->common->gate.half.writers) !=
               0) /* lock_all would run out of patience with it */
            sched_yield();
        team_expect(oriel_lock_all(window) == ORIEL_OK && oriel_unlock_all(window) == ORIEL_OK);
    }
    end(window);
}

static void internode_lock_refused_at_the_gate_blocks_no_rank(void **state)
{
    (void)state;
    nodes_run(4, 2, refused_at_the_gate);
    victim = VICTIM;
}

/* The target dies, with its lock held and with a rank waiting for it. */
static void target(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, VICTIM, true) == ORIEL_OK);
        team_flag_set(READY, 1);
        die_waited_for(1);
    }
    team_flag_await(READY, 1);
    if (window->rank == OTHER) {
        announce_wait();
        expect_named(oriel_lock(window, VICTIM, false));
        team_flag_set(READY, 2);
    }
    team_flag_await(READY, 2);
    expect_named(oriel_lock(window, VICTIM, true));
    end(window);
}

static void internode_killed_target_is_reported(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, target);
}

/* SURVIVOR has kept the victim's own lock waiting, so its next lock_all requests a position in that
 * queue. The request fails, and the first operation on that target reports it. */
static void target_in_turn(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    uint64_t got = 1;
    if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        oriel_lock(window, VICTIM, true);
        team_expect(false);
    }
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    if (window->rank == OTHER) {
        team_expect(nodes_get(window, VICTIM, 0, &got) == ORIEL_OK &&
                    oriel_internode_flush(window, -1) == ORIEL_OK);
        team_flag_set(READY, 1);
        team_flag_await(READY, 2);
        team_kill(VICTIM);
        team_flag_set(READY, 3);
    } else {
        while (atomic_load(nodes_queue(whole, VICTIM)) >> 32 == 0)
            sched_yield();
        team_expect(nodes_get(window, VICTIM, 0, &got) == ORIEL_OK &&
                    oriel_internode_flush(window, -1) == ORIEL_OK);
        team_expect(window->internode->target_flags[VICTIM] & ORIEL_INTERNODE_WRITER_WAITS);
        team_flag_set(READY, 2);
        team_flag_await(READY, 3);
    }
    expect_named(oriel_unlock_all(window));
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    expect_named(nodes_get(window, VICTIM, 0, &got));
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
    end(window);
}

static void internode_killed_target_is_left_to_operations(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, target_in_turn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_killed_holder_is_reported_to_all_waits),
        cmocka_unit_test(internode_killed_holder_is_reported_to_lazy_locks),
        cmocka_unit_test(internode_killed_holder_of_lock_all_is_reported),
        cmocka_unit_test(internode_killed_exclusive_holder_is_reported_to_lock_all),
        cmocka_unit_test(internode_killed_waiter_is_reported_to_later_waits),
        cmocka_unit_test(internode_killed_waiter_at_the_gate_blocks_no_rank),
        cmocka_unit_test(internode_lock_refused_at_the_gate_blocks_no_rank),
        cmocka_unit_test(internode_killed_target_is_reported),
        cmocka_unit_test(internode_killed_target_is_left_to_operations),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
