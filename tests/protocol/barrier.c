/* src/sync/barrier.c: no rank leaves before all have arrived, and stores before the barrier are
 * visible after it. Barriers follow each other at once, so fast ranks arrive at the next one while
 * slow ranks still wait for the last one to open. */
#include "make_window.h"

#include <sched.h>

enum { ROUNDS = 8000, WAKES = 24 };

/* Each round uses one of two words, so a single barrier separates a store from the next store to
 * the same word. */
static void publish(struct oriel_window *window, uint32_t rounds)
{
    for (uint32_t round = 1; round <= rounds && team_continues(round); round++) {
        window_memory(window, window->rank)[round % 2] = round;
        team_expect(oriel_barrier(window) == ORIEL_OK);
        for (int32_t i = 0; i < window->n; i++)
            team_expect(window_memory(window, i)[round % 2] == round);
    }
}

static void publish_often(struct oriel_window *window)
{
    publish(window, (uint32_t)team_rounds(ROUNDS));
    team_barrier();
    team_expect(window->common->arrivals.value == window->arrivals);
}

static void barrier_b2_publishes_stores(void **state)
{
    (void)state;
    team_run_sizes(publish_often);
}

static void barrier_of_two_publishes_stores(void **state)
{
    (void)state;
    team_run(2, publish_often);
}

static void publish_across_the_wrap(struct oriel_window *window)
{
    window->arrivals = UINT32_MAX - 5;
    if (window->rank == 0)
        window->common->arrivals.value = window->arrivals;
    team_barrier();
    publish(window, 30);
    for (int i = 0; i < 10; i++)
        team_expect(oriel_barrier(window) == ORIEL_OK);
    team_expect(window->common->arrivals.value == window->arrivals && window->arrivals < 40 * 3);
}

static void barrier_arrivals_wrap(void **state)
{
    (void)state;
    team_run(3, publish_across_the_wrap);
}

/* Long enough for the others to sleep and to check twice whether all ranks live. */
static void arrive_late(struct oriel_window *window)
{
    for (int32_t late = 0; late < window->n; late++) {
        if (window->rank == late)
            usleep(250000);
        team_expect(oriel_barrier(window) == ORIEL_OK);
    }
    team_barrier();
    team_expect(window->common->arrivals.sleepers == 0);
}

static void barrier_waits_for_the_late(void **state)
{
    (void)state;
    team_run(3, arrive_late);
}

/* The last rank arrives long after the others fell asleep. Some of them slept through an arrival
 * that was not the last. */
static void wake_all(struct oriel_window *window)
{
    for (int32_t wake = 0; wake < WAKES; wake++) {
        if (window->rank == wake % window->n) {
            while (atomic_load(&window->common->arrivals.sleepers) != (uint32_t)window->n - 1)
                sched_yield();
            usleep(3000);
        }
        team_expect(oriel_barrier(window) == ORIEL_OK);
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void barrier_wakes_all_sleepers(void **state)
{
    (void)state;
    team_run(3, wake_all);
}

static void leave_alone(struct oriel_window *window)
{
    for (int i = 0; i < 100; i++)
        team_expect(oriel_barrier(window) == ORIEL_OK);
    team_expect(team_timeouts == 0);
}

static void barrier_of_one_never_waits(void **state)
{
    (void)state;
    team_run(1, leave_alone);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barrier_b2_publishes_stores),
        cmocka_unit_test(barrier_of_two_publishes_stores),
        cmocka_unit_test(barrier_arrivals_wrap),
        cmocka_unit_test(barrier_waits_for_the_late),
        cmocka_unit_test(barrier_wakes_all_sleepers),
        cmocka_unit_test(barrier_of_one_never_waits),
    };
    return team_main(tests, argc, argv);
}
