/* src/base/wait.h across processes: a signal wakes all sleepers, and none is lost between a check
 * and a sleep. A lost wake costs a sleep to the time limit, which team_timeouts counts. */
#include "make_window.h"

#include <sched.h>

enum { ROUNDS = 100, WAKES = 12 };

/* Two events in the memory of rank 0, one for each direction. */
static struct oriel_event *event_of(const struct oriel_window *window, int which)
{
    return (struct oriel_event *)(window_memory(window, 0) + 8 * which);
}

/* Signals just as the other rank falls asleep: it has announced that, and may or may not have
 * checked once more. */
static void signal_around_the_sleep(struct oriel_window *window)
{
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        team_barrier();
        if (window->rank == 0) {
            team_expect(oriel_event_wait(event_of(window, 0), round, NULL) == ORIEL_OK);
            continue;
        }
        while (atomic_load(&event_of(window, 0)->sleepers) == 0)
            sched_yield();
        uint64_t end_ns = oriel_now_ns() + team_random() % 300000;
        while (oriel_now_ns() < end_ns)
            oriel_cpu_relax();
        oriel_event_signal(event_of(window, 0));
    }
    team_expect(team_timeouts < ROUNDS / 10);
}

static void event_w1_s1_lose_no_wake(void **state)
{
    (void)state;
    team_run(2, signal_around_the_sleep);
}

/* All others sleep before rank 0 signals. */
static void wake_all(struct oriel_window *window)
{
    struct oriel_event *event = event_of(window, 0);
    for (uint32_t round = 1; round <= WAKES; round++) {
        team_barrier();
        if (window->rank == 0) {
            while (atomic_load(&event->sleepers) != (uint32_t)window->n - 1)
                sched_yield();
            usleep(3000);
            oriel_event_signal(event);
        } else {
            team_expect(oriel_event_wait(event, round, NULL) == ORIEL_OK);
        }
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void event_w2_wakes_all_sleepers(void **state)
{
    (void)state;
    team_run_sizes(wake_all);
}

/* Stores before a signal are visible after it, in both directions, without any other ordering. */
static void pass_words(struct oriel_window *window)
{
    volatile uint64_t *word = window_memory(window, 0) + 24;
    for (uint32_t round = 1; round <= 4000 && team_continues(round); round++) {
        if (window->rank == 0) {
            *word = round;
            oriel_event_signal(event_of(window, 0));
            team_expect(oriel_event_wait(event_of(window, 1), round, NULL) == ORIEL_OK);
            team_expect(*word == UINT64_MAX - round);
        } else {
            team_expect(oriel_event_wait(event_of(window, 0), round, NULL) == ORIEL_OK);
            team_expect(*word == round);
            *word = UINT64_MAX - round;
            oriel_event_signal(event_of(window, 1));
        }
    }
}

static void event_publishes_stores(void **state)
{
    (void)state;
    team_run(2, pass_words);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_w1_s1_lose_no_wake),
        cmocka_unit_test(event_w2_wakes_all_sleepers),
        cmocka_unit_test(event_publishes_stores),
    };
    return team_main(tests, argc, argv);
}
