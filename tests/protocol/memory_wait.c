/* src/sync/memory_wait.c across processes: an origin's completion wakes the sleeper, no wake is
 * lost between a comparison and a sleep, and stores need none. A lost wake costs a sleep to the
 * time limit, which team_timeouts counts. */
#include "make_window.h"
#include "sync/memory_wait.h"

#include <sched.h>

enum { ROUNDS = 100, WAKES = 12 };

static enum oriel_status await_word(struct oriel_window *window, int at, uint64_t value)
{
    const struct oriel_awaited_value awaited = {.at = window_memory(window, window->rank) + at,
                                                .size_bytes = 8,
                                                .comparison = ORIEL_COMPARE_EQ,
                                                .value = value};
    return oriel_memory_wait(window, &awaited);
}

static void store_word(const struct oriel_window *window, int target, int at, uint64_t value)
{
    atomic_store_explicit((_Atomic uint64_t *)(window_memory(window, target) + at), value,
                          memory_order_relaxed);
}

/* As MPI_Win_flush. */
static void complete_one(const struct oriel_window *window, int target)
{
    char *base = window->control_bases[target];
    oriel_delay();
    oriel_fence_full();                                                  /* W2 */
    if (oriel_load_has(&oriel_file_life(base)->word, ORIEL_LIFE_SLEEPS)) /* W3 */
        oriel_memory_wake(base);
}

/* As MPI_Win_flush_all. */
static void complete_all(const struct oriel_window *window, int target)
{
    (void)target;
    oriel_delay();
    oriel_fence_full();
    oriel_memory_changed(window);
}

typedef void complete_fn(const struct oriel_window *window, int target);

/* Completes just as the other rank falls asleep: it has announced that, and may or may not have
 * compared once more. */
static void complete_around_the_sleep(struct oriel_window *window, complete_fn *complete)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        team_barrier();
        if (window->rank == 0) {
            team_expect(await_word(window, 0, round) == ORIEL_OK);
            continue;
        }
        while (atomic_load(&window->common->memory_sleepers) == 0)
            sched_yield();
        uint64_t end_ns = oriel_now_ns() + team_random() % 300000;
        while (oriel_now_ns() < end_ns)
            oriel_cpu_relax();
        store_word(window, 0, 0, round);
        complete(window, 0);
    }
    team_expect(team_timeouts < ROUNDS / 10);
}

static void one_around_the_sleep(struct oriel_window *window)
{
    complete_around_the_sleep(window, complete_one);
}

static void all_around_the_sleep(struct oriel_window *window)
{
    complete_around_the_sleep(window, complete_all);
}

static void memory_wait_w3_m3_lose_no_wake(void **state)
{
    (void)state;
    team_run(2, one_around_the_sleep);
    team_run(2, all_around_the_sleep);
}

static char *sleeper_base;

/* Of rank 0: the second delay after M3 is between M4 and M5. */
static void hold_before_the_sleep(void)
{
    static int since_m3;
    if (team_rank != 0 || !oriel_load_has(&oriel_file_life(sleeper_base)->word, ORIEL_LIFE_SLEEPS))
        return;
    if (++since_m3 == 2) {
        team_flag_set(0, 1);
        team_flag_await(1, 1);
    }
}

static void complete_before_the_sleep(struct oriel_window *window)
{
    if (window->rank == 0) {
        sleeper_base = window->control_bases[0];
        team_expect(await_word(window, 0, 1) == ORIEL_OK);
        team_expect(atomic_load(&team->flags[0]) == 1 && team_timeouts == 0);
    } else {
        team_flag_await(0, 1);
        store_word(window, 0, 0, 1);
        complete_one(window, 0);
        team_flag_set(1, 1);
    }
}

static void memory_wait_w5_prevents_a_sleep_that_begins(void **state)
{
    (void)state;
    team_at_delay = hold_before_the_sleep;
    team_run(2, complete_before_the_sleep);
    team_at_delay = NULL;
}

/* All others sleep before rank 0 changes the words of all. */
static void wake_every_rank(struct oriel_window *window)
{
    for (uint64_t round = 1; round <= WAKES; round++) {
        team_barrier();
        if (window->rank == 0) {
            while (atomic_load(&window->common->memory_sleepers) != (uint32_t)window->n - 1)
                sched_yield();
            usleep(3000);
            for (int i = 1; i < window->n; i++)
                store_word(window, i, 0, round);
            complete_all(window, -1);
        } else {
            team_expect(await_word(window, 0, round) == ORIEL_OK);
        }
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void memory_wait_w6_wakes_all_sleepers(void **state)
{
    (void)state;
    team_run_sizes(wake_every_rank);
}

/* What precedes the change is visible after the wait, in both directions. */
static void pass_words(struct oriel_window *window)
{
    enum { TURN = 0, DATA = 8 };
    const int other = 1 - window->rank;
    for (uint64_t round = 1; round <= 2000 && team_continues((uint32_t)round); round++) {
        if (window->rank == 1) {
            team_expect(await_word(window, TURN, round) == ORIEL_OK);
            team_expect(window_memory(window, 1)[DATA] == round);
        }
        window_memory(window, other)[DATA] = round;
        atomic_store_explicit((_Atomic uint64_t *)window_memory(window, other), round,
                              memory_order_release);
        if (round % 2)
            complete_one(window, other);
        if (window->rank == 0) {
            team_expect(await_word(window, TURN, round) == ORIEL_OK);
            team_expect(window_memory(window, 0)[DATA] == round);
        }
    }
}

static void memory_wait_m4_sees_what_precedes(void **state)
{
    (void)state;
    team_run(2, pass_words);
}

static void wait_for_the_dead(struct oriel_window *window)
{
    team_barrier();
    if (window->rank == 1)
        team_die();
    team_expect(await_word(window, 0, 1) == ORIEL_E_PEER);
}

static void killed_rank_is_reported_by_memory_wait(void **state)
{
    (void)state;
    if (!team_has_threads())
        team_run(3, wait_for_the_dead);
}

/* The kernel marks the life word of a process that dies, and only then. */
static void look_at_the_dead(struct oriel_window *window)
{
    const _Atomic uint32_t *word = &oriel_file_life(window->control_bases[1])->word;
    team_expect((atomic_load(word) & ORIEL_LIFE_DIED) == 0);
    team_barrier();
    if (window->rank == 1)
        team_die();
    uint64_t end_ns = oriel_now_ns() + UINT64_C(5000000000);
    while (!oriel_load_has(word, ORIEL_LIFE_DIED) && oriel_now_ns() < end_ns)
        sched_yield();
    team_expect(oriel_load_has(word, ORIEL_LIFE_DIED));
    team_expect(!oriel_load_has(&oriel_file_life(window->control_bases[0])->word, ORIEL_LIFE_DIED));
}

static void life_word_shows_a_death(void **state)
{
    (void)state;
    if (!team_has_threads())
        team_run(2, look_at_the_dead);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_wait_w3_m3_lose_no_wake),
        cmocka_unit_test(memory_wait_w5_prevents_a_sleep_that_begins),
        cmocka_unit_test(memory_wait_w6_wakes_all_sleepers),
        cmocka_unit_test(memory_wait_m4_sees_what_precedes),
        cmocka_unit_test(killed_rank_is_reported_by_memory_wait),
        cmocka_unit_test(life_word_shows_a_death),
    };
    return team_main(tests, argc, argv);
}
