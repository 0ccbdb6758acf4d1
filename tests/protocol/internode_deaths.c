/* src/internode/origin/origin_sync.c: a rank on another node is killed, and each waiting rank gets
 * its name. Covers barriers (also for ranks that never talked to it), flushes and PSCW epochs. */
#include "internode_victim.h"
#include "internode/target/am_dispatch.h"

/* --- barriers --- */

static void barrier_of_all(struct oriel_window *whole, bool has_barrier)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (has_barrier)
        team_expect(oriel_barrier(window) == ORIEL_OK);
    if (window->rank == victim)
        die_waited_for((uint32_t)window->n - 1);
    announce_wait();
    expect_named(oriel_barrier(window));
    expect_named(oriel_barrier(window)); /* and every later one */
    end(window);
}

static void first_barrier(struct oriel_window *whole)
{
    barrier_of_all(whole, false);
}

static void later_barrier(struct oriel_window *whole)
{
    barrier_of_all(whole, true);
}

static void each_victim(int32_t n, int32_t nodes, team_body *body)
{
    for (victim = 0; victim < n; victim++)
        nodes_run(n, nodes, body);
    victim = VICTIM;
}

static void internode_killed_rank_is_reported_by_barrier(void **state)
{
    (void)state;
    each_victim(3, 3, first_barrier);
    each_victim(3, 3, later_barrier);
    each_victim(4, 2, first_barrier);
    victim = 2;
    nodes_run(5, 5, first_barrier);
    nodes_run(5, 5, later_barrier);
    nodes_run(6, 3, first_barrier);
    victim = 4;
    nodes_run(6, 3, later_barrier);
    nodes_run(8, 4, first_barrier);
    victim = VICTIM;
}

/* It is known to be dead before any rank arrives. */
static void late_barrier(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    team_expect(oriel_barrier(window) == ORIEL_OK);
    team_barrier();
    if (window->rank == victim)
        team_die();
    while (oriel_identity_alive(&team->members[victim].process))
        usleep(1000);
    struct oriel_net_peer *peer =
        window->group->ids == NULL ? NULL : atomic_load(&window->group->net_peers[victim]);
    while (peer != NULL && oriel_net_check(peer) == ORIEL_OK)
        usleep(1000);
    (void)whole;
    /* with one rank on each node, the one that sends to the victim tells the others the name */
    if (nodes_count == window->n && (window->rank + 1) % window->n != victim)
        while (atomic_load(&window->common->broken) == 0)
            usleep(1000);
    expect_named(oriel_barrier(window));
    end(window);
}

static void internode_dead_rank_is_reported_by_barrier(void **state)
{
    (void)state;
    victim = 3;
    nodes_run(5, 5, late_barrier);
    nodes_run(6, 3, late_barrier);
    each_victim(3, 3, late_barrier);
    /* The first of its node: others send to it without effect, and their neighbours have never
     * talked to it. */
    victim = 2;
    nodes_run(6, 3, late_barrier);
    victim = VICTIM;
}

/* The victim had arrived; the other rank of its node, which meets the other node, now does that
 * alone. Messages that it sent before it knew of the death may end a barrier of the others. Their
 * next barrier fails. */
static void on_own_node(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (victim = 1; nodes_node_of(victim) != nodes_node_of(0);)
        victim++;
    if (window->rank == 0)
        while (atomic_load(&window->common->arrivals.value) == 0)
            sched_yield();
    if (window->rank == 0)
        team_flag_set(READY, 1);
    if (nodes_node_of(window->rank) != nodes_node_of(0)) {
        team_flag_await(READY, 1);
        if (window->rank == (nodes_node_of(1) != nodes_node_of(0) ? 1 : 2)) {
            usleep(20000);
            team_kill(victim);
        }
        team_flag_await(READY, 2);
    }
    enum oriel_status status = oriel_barrier(window);
    if (status == ORIEL_OK && nodes_node_of(window->rank) != nodes_node_of(0))
        status = oriel_barrier(window);
    expect_named(status);
    if (window->rank == 0)
        team_flag_set(READY, 2);
    end(window);
}

static void internode_killed_rank_is_reported_by_leaders(void **state)
{
    (void)state;
    nodes_run(4, 2, on_own_node);
    victim = VICTIM;
}

/* A rank has abandoned the window because another one died. In this test that one lives, but does
 * not arrive. */
static void abandon(struct oriel_window *whole, bool starts)
{
    static const int32_t other = OTHER;
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == OTHER) {
        oriel_am_dispatch_record_death(window, VICTIM);
        oriel_am_dispatch_remove(window);
    }
    team_barrier();
    if (window->rank == SURVIVOR) {
        expect_named(starts ? oriel_start(window, window_ranks(&other, 1), 1)
                            : oriel_barrier(window));
        team_flag_set(READY, 1);
    }
    team_flag_await(READY, 1);
    end(window);
}

static void given_up_before_a_barrier(struct oriel_window *whole)
{
    abandon(whole, false);
}

static void given_up_before_a_post(struct oriel_window *whole)
{
    abandon(whole, true);
}

static void internode_abandoned_window_is_reported(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, given_up_before_a_barrier);
    nodes_run(TEAM, 3, given_up_before_a_post);
}

/* --- operations --- */

static void operations(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    team_expect(oriel_barrier(window) == ORIEL_OK);
    if (window->rank == VICTIM)
        die_waited_for(2);
    team_expect(nodes_put(window, VICTIM, (uint64_t)window->rank, 1) == ORIEL_OK);
    announce_wait();
    enum oriel_status status = ORIEL_OK;
    while (status == ORIEL_OK) {
        status = nodes_put(window, VICTIM, (uint64_t)window->rank, 1);
        if (status == ORIEL_OK)
            status = oriel_internode_flush(window, VICTIM);
    }
    expect_named(status);
    int32_t other = window->rank == SURVIVOR ? OTHER : SURVIVOR;
    team_expect(nodes_put(window, other, 0, 1) == ORIEL_OK &&
                oriel_internode_flush(window, other) == ORIEL_OK);
    expect_named(nodes_put(window, VICTIM, 0, 1));
    end(window);
}

static void internode_killed_target_is_reported_by_flush(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, operations);
}

/* --- PSCW epochs --- */

/* The victim should have posted, and never talked to the rank that waits. */
static void poster(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == victim)
        die_waited_for((uint32_t)window->n - 1);
    announce_wait();
    expect_named(oriel_start(window, window_ranks(&victim, 1), 1));
    end(window);
}

static void internode_killed_poster_is_reported_by_start(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, poster);
    victim = 0;
    nodes_run(4, 2, poster);
    victim = 3;
    nodes_run(4, 2, poster);
    victim = VICTIM;
}

/* Two ranks expose themselves to it; one tests and one waits. */
static void origin(struct oriel_window *whole, bool starts)
{
    static const int32_t both[] = {SURVIVOR, OTHER};
    struct oriel_window *window = nodes_open();
    bool done = false;
    enum oriel_status status = ORIEL_OK;
    (void)whole;
    if (window->rank == VICTIM) {
        if (starts)
            team_expect(oriel_start(window, window_ranks(both, 2), 2) == ORIEL_OK);
        die_waited_for(2);
    }
    team_expect(oriel_post(window, window_ranks(&victim, 1), 1) == ORIEL_OK);
    announce_wait();
    if (window->rank == OTHER)
        status = oriel_wait_exposure(window);
    while (window->rank == SURVIVOR && status == ORIEL_OK && !done)
        status = oriel_test_exposure(window, &done);
    team_expect(!done);
    expect_named(status);
    end(window);
}

static void origin_that_starts(struct oriel_window *whole)
{
    origin(whole, true);
}

static void origin_that_does_not(struct oriel_window *whole)
{
    origin(whole, false);
}

static void internode_killed_origin_is_reported_by_wait_and_test(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, origin_that_starts);
    nodes_run(TEAM, 3, origin_that_does_not);
}

/* One of two targets dies: the other one still receives the complete. Then one of two origins dies:
 * likewise. */
static void one_of_two(struct oriel_window *whole)
{
    static const int32_t both[] = {VICTIM, OTHER};
    static const int32_t survivor = SURVIVOR;
    struct oriel_window *window = nodes_open();
    (void)whole;
    if (window->rank == SURVIVOR) {
        team_expect(oriel_start(window, window_ranks(both, 2), 2) == ORIEL_OK);
        team_expect(nodes_put(window, OTHER, 0, 1) == ORIEL_OK);
        team_kill(VICTIM);
        enum oriel_status status = ORIEL_OK;
        while (status == ORIEL_OK) { /* until it is known */
            status = nodes_put(window, VICTIM, 0, 1);
            usleep(1000);
        }
        expect_named(status);
        expect_named(oriel_complete(window));
        expect_named(oriel_post(window, window_ranks(both, 2), 2));
    } else {
        team_expect(oriel_post(window, window_ranks(&survivor, 1), 1) == ORIEL_OK);
        if (window->rank == VICTIM)
            for (;;)
                usleep(1000);
        team_expect(oriel_wait_exposure(window) == ORIEL_OK);
        team_expect(nodes_load(window, 0) == 1);
        team_expect(oriel_start(window, window_ranks(&survivor, 1), 1) == ORIEL_OK);
        team_expect(oriel_complete(window) == ORIEL_OK);
    }
    end(window);
}

static void internode_killed_rank_blocks_no_epoch_of_others(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, one_of_two);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_killed_rank_is_reported_by_barrier),
        cmocka_unit_test(internode_dead_rank_is_reported_by_barrier),
        cmocka_unit_test(internode_killed_rank_is_reported_by_leaders),
        cmocka_unit_test(internode_abandoned_window_is_reported),
        cmocka_unit_test(internode_killed_target_is_reported_by_flush),
        cmocka_unit_test(internode_killed_poster_is_reported_by_start),
        cmocka_unit_test(internode_killed_origin_is_reported_by_wait_and_test),
        cmocka_unit_test(internode_killed_rank_blocks_no_epoch_of_others),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
