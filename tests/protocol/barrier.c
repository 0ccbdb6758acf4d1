/* src/sync/barrier.c: nobody leaves before all have come, and what was stored before is seen after.  Barriers follow each
 * other at once, which is where a counter that is reset too late would be caught. */
#include "fabricate.h"

enum { ROUNDS = 8000 };

/* Each round has one of two words, so that a single barrier lies between a store and the next one to the same word. */
static void publish(struct oriel_window *window, uint32_t rounds)
{
    for (uint32_t round = 1; round <= rounds && team_goes_on(round); round++) {
        fabricate_memory(window, window->rank)[round % 2] = round;
        team_expect(oriel_barrier(window) == ORIEL_OK);
        for (int32_t i = 0; i < window->n; i++)
            team_expect(fabricate_memory(window, i)[round % 2] == round);
    }
}

static void publish_often(struct oriel_window *window)
{
    publish(window, (uint32_t)team_rounds(ROUNDS));
    team_meet();
    team_expect(window->common->arrived == 0);
}

static void barrier_b4_publishes_stores(void **state)
{
    (void)state;
    team_run_sizes(publish_often);
}

static void barrier_b3_is_before_b4(void **state)
{
    (void)state;
    team_run(2, publish_often);
}

static void publish_across_the_wrap(struct oriel_window *window)
{
    if (window->rank == 0)
        window->common->generation.value = UINT32_MAX - 5;
    team_meet();
    publish(window, 30);
    for (int i = 0; i < 10; i++)
        team_expect(oriel_barrier(window) == ORIEL_OK);
    team_expect(window->common->generation.value < 60);
}

static void barrier_generation_wraps(void **state)
{
    (void)state;
    team_run(3, publish_across_the_wrap);
}

/* Long enough for the others to sleep and to ask whether everybody lives, twice. */
static void come_late(struct oriel_window *window)
{
    for (int32_t late = 0; late < window->n; late++) {
        if (window->rank == late)
            usleep(250000);
        team_expect(oriel_barrier(window) == ORIEL_OK);
    }
    team_meet();
    team_expect(window->common->generation.sleepers == 0);
}

static void barrier_waits_for_the_late(void **state)
{
    (void)state;
    team_run(3, come_late);
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
        cmocka_unit_test(barrier_b4_publishes_stores),
        cmocka_unit_test(barrier_b3_is_before_b4),
        cmocka_unit_test(barrier_generation_wraps),
        cmocka_unit_test(barrier_waits_for_the_late),
        cmocka_unit_test(barrier_of_one_never_waits),
    };
    return team_main(tests, argc, argv);
}
