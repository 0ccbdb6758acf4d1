/* src/sync/accumulate_mutex.c: one owner at a time on each target, stores are published, and a
 * sleeper is woken. The mutexes are those of the accumulates. */
#include "exclusion_check.h"
#include "sync/accumulate_mutex.h"

#include <sched.h>

enum { ROUNDS = 8000, WAKES = 12 };

static struct oriel_accumulate_mutex *mutex_of(const struct oriel_window *window, int32_t target)
{
    return &oriel_window_control(window, target)->accumulate;
}

static void count_up(struct oriel_window *window)
{
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        int32_t target = i % 8 == 0 ? window->n - 1 : 0;
        if (target == 0)
            atomic_fetch_add(&team->flags[0], 1);
        team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
        exclusion_check_writer(exclusion_at(window, target, 0));
        oriel_accumulate_mutex_unlock(window, target);
        oriel_delay();
    }
    team_barrier();
    team_expect(mutex_of(window, 0)->word == 0);
    team_expect(exclusion_at(window, 0, 0)->plain[0] == atomic_load(&team->flags[0]));
}

static void mutex_p1_publishes_stores(void **state)
{
    (void)state;
    team_run_sizes(count_up);
}

static void hold_both(struct oriel_window *window)
{
    team_expect(oriel_accumulate_mutex_lock(window, window->rank) == ORIEL_OK);
    team_barrier(); /* each owns its own target's mutex */
    oriel_accumulate_mutex_unlock(window, window->rank);
}

static void mutex_of_one_target_leaves_others_alone(void **state)
{
    (void)state;
    team_run(4, hold_both);
}

/* Of many sleeps few last to the time limit. */
static void hand_over(struct oriel_window *window)
{
    _Atomic uint32_t *word = &mutex_of(window, 0)->word;
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 0)
            team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        team_barrier();
        if (window->rank == 0) {
            while (!(atomic_load(word) & UINT32_C(0x80000000)))
                sched_yield();
            usleep(3000);
        } else {
            team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        }
        oriel_accumulate_mutex_unlock(window, 0);
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void mutex_m3_wakes_a_sleeper(void **state)
{
    (void)state;
    team_run(2, hand_over);
}

/* Two ranks sleep; the one woken first must wake the other when it unlocks. */
static void wake_in_turn(struct oriel_window *window)
{
    _Atomic uint32_t *word = &mutex_of(window, 0)->word;
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 0)
            team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        team_barrier();
        if (window->rank == 0) {
            while (!(atomic_load(word) & UINT32_C(0x80000000)))
                sched_yield();
            usleep(10000); /* both have given up spinning */
        } else {
            team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
            usleep(2000);
        }
        oriel_accumulate_mutex_unlock(window, 0);
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 3);
}

static void mutex_woken_holder_wakes_the_next(void **state)
{
    (void)state;
    team_run(3, wake_in_turn);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mutex_p1_publishes_stores),
        cmocka_unit_test(mutex_of_one_target_leaves_others_alone),
        cmocka_unit_test(mutex_m3_wakes_a_sleeper),
        cmocka_unit_test(mutex_woken_holder_wakes_the_next),
    };
    return team_main(tests, argc, argv);
}
