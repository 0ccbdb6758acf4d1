/* src/internode/target/lock_all_queue.c, J5: a lock_all that has waited long for locks of another
 * node's targets joins the epochs that are inside. The target is rank 0 of node 0; the origins are
 * the two ranks of node 1. */
#include "simulated_nodes.h"

#include <sched.h>
#include <unistd.h>

enum { TIMES = 3, SETTLE_US = 50000 };

static void take(struct oriel_window *window, int32_t target)
{
    uint64_t got = UINT64_MAX;
    team_expect(nodes_get(window, target, 0, &got) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, target) == ORIEL_OK && got == 0);
}

static void begin(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    take(window, target);
}

static void end(struct oriel_window *window)
{
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
}

static uint32_t writers(_Atomic uint64_t *queue)
{
    return (uint32_t)(atomic_load(queue) >> 32);
}

/* The first rank of the two nodes, and the second. */
struct cast {
    int32_t target;
    int index;
    bool is_origin;
};

static struct cast cast(void)
{
    struct cast cast = {.target = 0, .is_origin = nodes_node_of(team_rank) == 1};
    while (nodes_node_of(cast.target) != 0)
        cast.target++;
    for (int32_t rank = 0; rank < team_rank; rank++)
        cast.index += nodes_node_of(rank) == nodes_node_of(team_rank);
    return cast;
}

/* Each origin has the target's lock in one window and then requests the lock of the other window;
 * exclusive locks wait for both. In the first round it knows of no such waiters; later it queues
 * after them. Flags count the ranks inside. */
static void begin_in_opposite_orders(struct oriel_window *whole)
{
    const struct cast own = cast();
    struct oriel_window *windows[2];
    _Atomic uint64_t *queues[2];
    for (int i = 0; i < 2; i++) {
        windows[i] = nodes_open();
        queues[i] = nodes_queue(whole, own.target);
        team_barrier();
    }
    for (int i = 0; i < TIMES; i++) {
        const uint32_t before[] = {writers(queues[0]), writers(queues[1])};
        team_barrier();
        if (own.is_origin) {
            begin(windows[own.index], own.target);
            atomic_fetch_add(&team->flags[own.index], 1);
        }
        team_barrier();
        if (own.is_origin) {
            while (writers(queues[0]) == before[0] || writers(queues[1]) == before[1])
                sched_yield();
            begin(windows[1 - own.index], own.target);
            atomic_fetch_add(&team->flags[1 - own.index], 1);
            usleep(SETTLE_US); /* the exclusive locks could be acquired by then */
            for (int w = 0; w < 2; w++) {
                atomic_fetch_sub(&team->flags[w], 1);
                end(windows[w]);
            }
        } else {
            team_expect(oriel_lock(windows[own.index], own.target, true) == ORIEL_OK);
            team_expect(atomic_load(&team->flags[own.index]) == 0);
            team_expect(oriel_unlock(windows[own.index], own.target) == ORIEL_OK);
        }
        team_barrier();
        nodes_await_turns(windows[0]);
        nodes_await_turns(windows[1]);
    }
    for (int i = 0; i < 2; i++) {
        nodes_expect_free(windows[i]);
        nodes_close(windows[i]);
    }
    nodes_stop();
}

static void internode_lock_all_in_opposite_orders_makes_no_cycle(void **state)
{
    (void)state;
    nodes_run(4, 2, begin_in_opposite_orders);
}

/* One of the origins is always inside, unless the other's patience lasts longer than its epoch. */
static void read_in_turns(struct oriel_window *whole)
{
    enum { EPOCH_US = 300000, EPOCHS = 14, BEGUN = 0, WRITTEN = 1, ENDED = 2 };
    struct oriel_window *window = nodes_open();
    const struct cast own = cast();
    (void)whole;
    if (team_rank == own.target) {
        team_flag_await(BEGUN, 1);
        usleep(EPOCH_US / 4);
        team_expect(oriel_lock(window, own.target, true) == ORIEL_OK);
        team_expect(atomic_load(&team->flags[ENDED]) == 0);
        team_flag_set(WRITTEN, 1);
        team_expect(oriel_unlock(window, own.target) == ORIEL_OK);
    } else if (own.is_origin) {
        if (own.index == 1) {
            team_flag_await(BEGUN, 1);
            usleep(EPOCH_US / 2);
        }
        for (int i = 0; i < EPOCHS && atomic_load(&team->flags[WRITTEN]) == 0; i++) {
            begin(window, own.target);
            team_flag_set(BEGUN, 1);
            usleep(EPOCH_US);
            if (i == EPOCHS - 1)
                team_flag_set(ENDED, 1);
            end(window);
        }
    }
    team_barrier();
    nodes_await_turns(window);
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_without_patience_does_not_starve_locks(void **state)
{
    (void)state;
    nodes_run(4, 2, read_in_turns);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_lock_all_in_opposite_orders_makes_no_cycle),
        cmocka_unit_test(internode_lock_all_without_patience_does_not_starve_locks),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
