/* src/internode/origin/lazy_lock.c, deferred_queue.c: locks of internode targets for which epochs
 * do not wait. */
#include "simulated_nodes.h"
#include "no_memory.h"

#include <sched.h>
#include <unistd.h>

enum { ROUNDS = 1000, LOCKED = 0, ASKED = 1 };

static int32_t any_rank(const struct oriel_window *window)
{
    return (int32_t)(team_random() % (uint64_t)window->n);
}

/* The lock as a program acquires it that waits for it, after one that did not. */
static void lock_now(struct oriel_window *window, int32_t target, bool exclusive)
{
    oriel_lazy_lock_await();
    team_expect(oriel_lock(window, target, exclusive) == ORIEL_OK);
}

static void finish(struct oriel_window *window)
{
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

/* Epochs that do not wait write two words of a target; all ranks that read under the lock find them
 * equal. */
static void write_pairs(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        const int32_t target = any_rank(window);
        uint64_t value = team_random();
        if (value % 2 == 0) {
            team_expect(oriel_lock_lazy(window, target, true) == ORIEL_OK);
            team_expect(nodes_put(window, target, 0, value) == ORIEL_OK);
            oriel_delay();
            team_expect(nodes_put(window, target, 1, value) == ORIEL_OK);
        } else {
            lock_now(window, target, value % 4 == 1);
            team_expect(nodes_read(window, target, 0) == nodes_read(window, target, 1));
        }
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
    }
    finish(window);
}

static void lazy_lock_k2_epochs_are_atomic(void **state)
{
    (void)state;
    nodes_run_sizes(write_pairs);
}

/* Two targets, always in one order: no rank that waits for the first has the second. */
static void lock_in_order(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        team_expect(oriel_lock_lazy(window, 0, true) == ORIEL_OK);
        team_expect(nodes_put(window, 0, 0, (uint64_t)i) == ORIEL_OK);
        oriel_delay();
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, (uint64_t)i) == ORIEL_OK);
        team_expect(nodes_read(window, 0, 0) == (uint64_t)i); /* inside both locks */
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
        team_expect(oriel_unlock(window, 0) == ORIEL_OK);
    }
    finish(window);
}

static void lazy_lock_k4_preserves_the_order_of_locks(void **state)
{
    (void)state;
    nodes_run(2, 2, lock_in_order);
    nodes_run(4, 2, lock_in_order);
    nodes_run(6, 3, lock_in_order);
}

/* Rank 1 holds its own lock until the operations of rank 0's epoch have arrived. */
static void wait_with_lazy_lock(struct oriel_window *window)
{
    if (window->rank != 1)
        return;
    team_expect(oriel_lock(window, 1, true) == ORIEL_OK);
    team_flag_set(LOCKED, 1);
    while (*(volatile uint32_t *)&window->internode->lazy_locks == 0)
        sched_yield();
    usleep(30000);
    team_expect(nodes_load(window, 0) == 0);
    team_expect(oriel_unlock(window, 1) == ORIEL_OK);
}

static void do_in_turn(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    uint64_t got[2] = {0, 0};
    (void)whole;
    wait_with_lazy_lock(window);
    if (window->rank == 0) {
        team_flag_await(LOCKED, 1);
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, 5) == ORIEL_OK);
        team_expect(nodes_get(window, 1, 0, &got[0]) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, 6) == ORIEL_OK);
        team_expect(nodes_get(window, 1, 0, &got[1]) == ORIEL_OK);
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
        team_expect(got[0] == 5 && got[1] == 6);
    }
    finish(window);
}

static void lazy_lock_k2_deferred_operations_execute_in_order(void **state)
{
    (void)state;
    nodes_run(2, 2, do_in_turn);
}

/* Operations beyond the target's queue limit wait at their origin. */
static void do_much(struct oriel_window *whole)
{
    enum { MANY = 3 * ORIEL_LAZY_LOCK_BYTES / sizeof(struct oriel_internode_head) };
    struct oriel_window *window = nodes_open();
    (void)whole;
    wait_with_lazy_lock(window);
    if (window->rank == 0) {
        team_flag_await(LOCKED, 1);
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        for (uint64_t i = 1; i <= MANY; i++)
            team_expect(nodes_put(window, 1, i % 2, i) == ORIEL_OK);
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
    }
    team_barrier();
    team_expect(window->rank != 1 || nodes_load(window, MANY % 2) == MANY);
    finish(window);
}

static void lazy_lock_k5_defers_a_bounded_length(void **state)
{
    (void)state;
    nodes_run(2, 2, do_much);
}

/* The target has memory for only one lock: no operation of the next epoch is executed, and each
 * call that ends it fails. Later epochs work as usual. */
static void be_refused(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    if (window->rank == 0) {
        lock_now(window, 1, true); /* both sides know each other */
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
    }
    team_barrier();
    atomic_store(&no_heap_of_agent, window->rank == 1);
    team_barrier();
    if (window->rank == 0) {
        uint64_t got = 7;
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, 9) == ORIEL_OK);
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, 1) == ORIEL_OK);
        team_expect(oriel_internode_flush(window, 1) == ORIEL_E_NO_MEM);
        team_expect(oriel_internode_rdma_put(window, 1, NULL, 0, &got, sizeof got) ==
                    ORIEL_E_OTHER); /* no request went to a device */
        team_expect(nodes_put(window, 1, 0, 2) == ORIEL_OK);
        team_expect(nodes_get(window, 1, 0, &got) == ORIEL_OK);
        team_expect(oriel_unlock(window, 1) == ORIEL_E_OTHER && got == 7);
        team_expect(oriel_lock_lazy(window, 1, false) == ORIEL_OK);
        team_expect(oriel_internode_rdma_put(window, 1, NULL, 0, &got, sizeof got) ==
                    ORIEL_E_OTHER);
        team_expect(oriel_unlock(window, 1) == ORIEL_E_NO_MEM);
        team_expect((window->internode->target_flags[1] & ORIEL_INTERNODE_LOCK_REFUSED) == 0);
        team_expect(nodes_peek(whole, 1, 0) == 9 && !oriel_access_allowed(window, 1));
    }
    team_barrier();
    atomic_store(&no_heap_of_agent, false);
    team_barrier();
    if (window->rank == 0) {
        team_expect(oriel_lock_lazy(window, 1, true) == ORIEL_OK);
        team_expect(nodes_put(window, 1, 0, 3) == ORIEL_OK);
        team_expect(oriel_unlock(window, 1) == ORIEL_OK);
        team_expect(nodes_peek(whole, 1, 0) == 3);
    }
    finish(window);
}

static void lazy_lock_k3_refused_epoch_does_nothing(void **state)
{
    (void)state;
    nodes_run(2, 2, be_refused);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lazy_lock_k2_epochs_are_atomic),
        cmocka_unit_test(lazy_lock_k4_preserves_the_order_of_locks),
        cmocka_unit_test(lazy_lock_k2_deferred_operations_execute_in_order),
        cmocka_unit_test(lazy_lock_k5_defers_a_bounded_length),
        cmocka_unit_test(lazy_lock_k3_refused_epoch_does_nothing),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
