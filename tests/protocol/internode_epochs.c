/* src/sync/barrier.c (M), origin_sync.c, pscw.c (Internode): barriers and PSCW epochs between ranks
 * on several nodes. */
#include "simulated_nodes.h"

#include <stdlib.h>

enum { ROUNDS = 1000 };

/* No rank leaves before all have arrived, and all that ranks have put by then is there. */
static void barrier_and_check(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    _Atomic uint64_t *arrived = (_Atomic uint64_t *)window_memory(whole, 0);
    int32_t n = window->n;
    bool goes_on = true;
    for (uint64_t round = 1; goes_on && round <= ROUNDS; round++) {
        int32_t shift = 1 + (int32_t)(round % (uint64_t)(n - 1));
        int32_t from = (window->rank + n - shift) % n;
        if (team_random() % 8 == 0)
            usleep((useconds_t)(team_random() % 500));
        team_expect(nodes_put(window, (window->rank + shift) % n, (uint64_t)window->rank, round) ==
                    ORIEL_OK);
        if (window->rank == 0)
            atomic_store(&arrived[n], team_time_is_up()); /* all read it after the barrier */
        atomic_store(&arrived[window->rank], round);
        team_expect(oriel_barrier(window) == ORIEL_OK);
        for (int32_t i = 0; i < n; i++) {
            uint64_t other = atomic_load(&arrived[i]);
            team_expect(other == round || other == round + 1);
        }
        team_expect(nodes_load(window, (uint64_t)from) == round);
        goes_on = atomic_load(&arrived[n]) == 0;
        team_expect(oriel_barrier(window) == ORIEL_OK);
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_barrier_opens_when_all_have_arrived(void **state)
{
    (void)state;
    nodes_run_sizes(barrier_and_check);
    nodes_run(5, 5, barrier_and_check);
}

/* Barriers follow each other directly, so messages of the next one overtake those of the one
 * before. */
static void barriers_only(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    _Atomic uint64_t *arrived = (_Atomic uint64_t *)window_memory(whole, 0);
    for (uint64_t round = 1; round <= 60; round++) {
        atomic_store(&arrived[window->rank], round);
        team_expect(oriel_barrier(window) == ORIEL_OK);
        for (int32_t i = 0; i < window->n; i++)
            team_expect(atomic_load(&arrived[i]) >= round);
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_barriers_follow_each_other(void **state)
{
    (void)state;
    nodes_run_sizes(barriers_only);
    nodes_run(7, 4, barriers_only);
    nodes_run(8, 7, barriers_only);
}

static void fences(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    team_expect(oriel_fence(window, false) == ORIEL_OK);
    for (uint64_t round = 1; round <= 20; round++) {
        for (int32_t i = 0; i < window->n; i++) {
            team_expect(oriel_access_allowed(window, i));
            team_expect(nodes_put(window, i, (uint64_t)window->rank, round) == ORIEL_OK);
        }
        team_expect(oriel_fence(window, round == 20) == ORIEL_OK);
        for (int32_t i = 0; i < window->n; i++)
            team_expect(nodes_load(window, (uint64_t)i) == round);
        if (round < 20)
            team_expect(oriel_fence(window, false) == ORIEL_OK);
    }
    team_expect(!oriel_access_allowed(window, 0));
    nodes_close(window);
    nodes_stop();
}

static void internode_fence_publishes_operations(void **state)
{
    (void)state;
    nodes_run(4, 2, fences);
    nodes_run(5, 3, fences);
}

static void fence_in_vain(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    uint64_t got = 7;
    (void)whole;
    team_expect(oriel_fence(window, false) == ORIEL_OK);
    team_expect(nodes_get(window, nodes_remote_rank(window), NODES_BEYOND, &got) == ORIEL_OK);
    team_expect(oriel_fence(window, true) == ORIEL_E_RANGE && got == 7);
    team_expect(!oriel_access_allowed(window, 0));
    team_expect(oriel_fence(window, true) == ORIEL_OK);
    nodes_close(window);
    nodes_stop();
}

static void internode_fence_that_reports_a_failure_ends_its_epoch(void **state)
{
    (void)state;
    nodes_run(4, 2, fence_in_vain);
}

/* --- pairs --- */

static int32_t *list(const int32_t *ranks, int32_t count)
{
    return window_ranks(ranks, count);
}

/* One rank exposes itself repeatedly, and the other one follows: posts may be early, completes are
 * not. */
static void stream(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t elsewhere = nodes_node_of(0) == nodes_node_of(window->n - 1) ? 1 : window->n - 1;
    int32_t other = window->rank == 0 ? elsewhere : 0;
    (void)whole;
    for (uint64_t round = 1; round <= 200 && window->rank == 0; round++) {
        atomic_store_explicit((_Atomic uint64_t *)window->base + 2, round, memory_order_relaxed);
        team_expect(oriel_post(window, list(&other, 1), 1) == ORIEL_OK);
        bool done = round % 2 == 0;
        if (done)
            team_expect(oriel_wait_exposure(window) == ORIEL_OK);
        while (!done)
            team_expect(oriel_test_exposure(window, &done) == ORIEL_OK);
        team_expect(nodes_load(window, 0) == round && nodes_load(window, 1) == 1000 + round);
    }
    for (uint64_t round = 1; round <= 200 && window->rank == elsewhere; round++) {
        uint64_t got = 0;
        if (round % 32 == 1)
            usleep(3000); /* the post is early */
        team_expect(oriel_start(window, list(&other, 1), 1) == ORIEL_OK);
        team_expect(oriel_access_allowed(window, other));
        team_expect(nodes_get(window, other, 2, &got) == ORIEL_OK);
        team_expect(nodes_put(window, other, 0, round) == ORIEL_OK);
        team_expect(nodes_put(window, other, 1, 1000 + round) == ORIEL_OK);
        team_expect(oriel_complete(window) == ORIEL_OK);
        team_expect(got == round);
        team_expect(!oriel_access_allowed(window, other));
    }
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_post_start_complete_wait_publish(void **state)
{
    (void)state;
    nodes_run(2, 2, stream);
    nodes_run(4, 2, stream);
}

/* The complete that should deliver the gets reports that they failed, and the target still receives
 * the complete. */
static void get_in_vain(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t other = 1 - window->rank;
    (void)whole;
    for (int round = 0; round < 8 && window->rank == 0; round++) {
        team_expect(oriel_post(window, list(&other, 1), 1) == ORIEL_OK);
        team_expect(oriel_wait_exposure(window) == ORIEL_OK);
    }
    for (int round = 0; round < 8 && window->rank == 1; round++) {
        uint64_t got = 7;
        team_expect(oriel_start(window, list(&other, 1), 1) == ORIEL_OK);
        team_expect(nodes_get(window, other, round % 2 == 0 ? NODES_BEYOND : 0, &got) == ORIEL_OK);
        team_expect(oriel_complete(window) == (round % 2 == 0 ? ORIEL_E_RANGE : ORIEL_OK));
        team_expect(got == (round % 2 == 0 ? 7 : 0));
    }
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_complete_reports_failed_operations(void **state)
{
    (void)state;
    nodes_run(2, 2, get_in_vain);
}

/* A lack of memory for a counter does not cause an endless wait. */
static void refuse_counters(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t other = 1 - window->rank;
    (void)whole;
    atomic_store(&nodes_refuse_counters, window->rank == 1);
    team_barrier();
    if (window->rank == 0) {
        team_expect(oriel_post(window, list(&other, 1), 1) == ORIEL_OK);
        (void)nodes_read(window, 1, 0); /* after the post */
        team_flag_set(0, 1);
    } else {
        team_flag_await(0, 1);
        atomic_store(&nodes_refuse_counters, false);
        team_expect(oriel_start(window, list(&other, 1), 1) == ORIEL_E_NO_MEM);
    }
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_post_that_cannot_be_counted_is_reported(void **state)
{
    (void)state;
    nodes_run(2, 2, refuse_counters);
}

/* All ranks post to all others and start towards all others, on this node and on others. */
static void all_to_all(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t others[TEAM_MOST];
    int32_t count = 0;
    (void)whole;
    for (int32_t i = 1; i < window->n; i++)
        others[count++] = (window->rank + i) % window->n;
    for (uint64_t round = 1; round <= 40; round++) {
        team_expect(oriel_post(window, list(others, count), count) == ORIEL_OK);
        team_expect(oriel_start(window, list(others, count), count) == ORIEL_OK);
        for (int32_t i = 0; i < count; i++)
            team_expect(nodes_put(window, others[i], (uint64_t)window->rank, round) == ORIEL_OK);
        oriel_delay();
        team_expect(oriel_complete(window) == ORIEL_OK);
        team_expect(oriel_wait_exposure(window) == ORIEL_OK);
        for (int32_t i = 0; i < count; i++)
            team_expect(nodes_load(window, (uint64_t)others[i]) == round);
    }
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_epochs_of_all_with_all_publish(void **state)
{
    (void)state;
    nodes_run_sizes(all_to_all);
}

/* Each rank exposes itself to its predecessor and accesses its successor, at its own pace. */
static void ring(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t n = window->n;
    int32_t next = (window->rank + 1) % n;
    int32_t before = (window->rank + n - 1) % n;
    (void)whole;
    for (uint64_t round = 1; round <= 100; round++) {
        team_expect(oriel_post(window, list(&before, 1), 1) == ORIEL_OK);
        if (team_random() % 16 == 0)
            usleep((useconds_t)(team_random() % 1000));
        team_expect(oriel_start(window, list(&next, 1), 1) == ORIEL_OK);
        team_expect(nodes_put(window, next, 0, round) == ORIEL_OK);
        team_expect(oriel_complete(window) == ORIEL_OK);
        team_expect(oriel_wait_exposure(window) == ORIEL_OK);
        team_expect(nodes_load(window, 0) == round);
    }
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_epochs_in_a_ring_publish(void **state)
{
    (void)state;
    nodes_run_sizes(ring);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_barrier_opens_when_all_have_arrived),
        cmocka_unit_test(internode_barriers_follow_each_other),
        cmocka_unit_test(internode_fence_publishes_operations),
        cmocka_unit_test(internode_fence_that_reports_a_failure_ends_its_epoch),
        cmocka_unit_test(internode_post_start_complete_wait_publish),
        cmocka_unit_test(internode_complete_reports_failed_operations),
        cmocka_unit_test(internode_post_that_cannot_be_counted_is_reported),
        cmocka_unit_test(internode_epochs_of_all_with_all_publish),
        cmocka_unit_test(internode_epochs_in_a_ring_publish),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
