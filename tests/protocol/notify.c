/* src/sync/notify.c across processes: stores before a notification are visible after it is taken,
 * each notification is taken once, none is missed by a sleeper, and a death ends a wait. A lost
 * wake costs a sleep to the time limit, which team_timeouts counts. */
#include "make_window.h"
#include "sync/notify.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { COUNTERS = 4, ROUNDS = 2000, SLEEPS = 100, TAKERS = 3, VICTIM = 1 };

static struct oriel_notify_area *open_counters(struct oriel_window *window)
{
    team_expect(oriel_notifications_make(window, COUNTERS, true) == ORIEL_OK);
    team_barrier();
    return oriel_notify_area(window, window->rank);
}

/* Ends with a barrier, since the others may still look at this rank's counters. */
static void close_counters(struct oriel_window *window)
{
    team_barrier();
    oriel_notifications_close(window);
}

static void await(struct oriel_window *window, uint32_t number, uint32_t count)
{
    team_expect(oriel_notify_wait(window, number, count) == ORIEL_OK);
}

/* Every rank stores into its place of rank 0, which answers when it has read all. */
static void pass_words(struct oriel_window *window)
{
    volatile uint64_t *words = window_memory(window, 0);
    const uint32_t others = (uint32_t)window->n - 1;
    open_counters(window);
    for (uint32_t round = 1; round <= ROUNDS && team_continues(round); round++) {
        if (window->rank != 0) {
            words[window->rank] = round * 100 + (uint32_t)window->rank;
            oriel_notify_signal(oriel_notify_area(window, 0), 2);
            await(window, 1, 1);
            continue;
        }
        await(window, 2, others);
        for (uint32_t i = 1; i <= others; i++)
            team_expect(words[i] == round * 100 + i);
        for (int32_t i = 1; i < window->n; i++)
            oriel_notify_signal(oriel_notify_area(window, i), 1);
    }
    close_counters(window);
}

static void notify_p1_publishes_stores(void **state)
{
    (void)state;
    team_run_sizes(pass_words);
}

struct taker {
    struct oriel_window *window;
    int32_t rank;
    uint32_t taken;
};

/* Takes in turn one, two and three until all ROUNDS * n are taken; the last few one by one. */
static void *take(void *context)
{
    struct taker *taker = context;
    struct oriel_window *window = taker->window;
    const uint64_t all = (uint64_t)ROUNDS * (uint64_t)(window->n - 1);
    team_rank = taker->rank;
    for (uint32_t i = 0; atomic_load(&window->notifications->taken[3]) < all; i++) {
        uint32_t count = 1 + i % 3;
        if (oriel_notify_take(window->notifications, 3, count))
            taker->taken += count;
        else
            sched_yield();
    }
    return NULL;
}

static void take_in_threads(struct oriel_window *window)
{
    struct oriel_notify_area *own = open_counters(window);
    pthread_t threads[TAKERS];
    struct taker takers[TAKERS];
    uint64_t taken = 0;
    for (int i = 0; i < TAKERS && window->rank == 0; i++) {
        takers[i] = (struct taker){window, team_rank, 0};
        team_expect(pthread_create(&threads[i], NULL, take, &takers[i]) == 0);
    }
    for (int i = 0; i < ROUNDS && window->rank != 0; i++)
        oriel_notify_signal(oriel_notify_area(window, 0), 3);
    for (int i = 0; i < TAKERS && window->rank == 0; i++) {
        team_expect(pthread_join(threads[i], NULL) == 0);
        taken += takers[i].taken;
    }
    if (window->rank == 0)
        team_expect(taken == (uint64_t)ROUNDS * (uint64_t)(window->n - 1) &&
                    taken == atomic_load(&own->counters[3].arrived));
    close_counters(window);
}

static void notify_p2_each_is_taken_once(void **state)
{
    (void)state;
    team_run(2, take_in_threads);
    team_run(4, take_in_threads);
}

/* Notifies just as rank 0 falls asleep: it has announced that, and may or may not have looked once
 * more. */
static void notify_around_the_sleep(struct oriel_window *window, const int numbers[], int n)
{
    open_counters(window);
    struct oriel_notify_area *area = oriel_notify_area(window, 0);
    for (uint32_t round = 1; round <= SLEEPS; round++) {
        int number = numbers[(int)round % n], index = -1;
        team_barrier();
        if (window->rank == 0 && n == 1) {
            await(window, (uint32_t)number, 1);
        } else if (window->rank == 0) {
            team_expect(oriel_notify_wait_any(window, n, numbers, &index) == ORIEL_OK);
            team_expect(index == (int)round % n);
        } else {
            while (atomic_load(&area->counters[number].sleepers) == 0)
                sched_yield();
            uint64_t end_ns = oriel_now_ns() + team_random() % 300000;
            while (oriel_now_ns() < end_ns)
                oriel_cpu_relax();
            oriel_notify_signal(area, (uint32_t)number);
        }
    }
    team_expect(team_timeouts < SLEEPS / 10);
    for (int i = 0; i < n; i++)
        team_expect(atomic_load(&area->counters[numbers[i]].sleepers) == 0 || window->rank != 0);
    close_counters(window);
}

static void sleep_for_one(struct oriel_window *window)
{
    static const int numbers[] = {1};
    notify_around_the_sleep(window, numbers, 1);
}

static void sleep_for_any(struct oriel_window *window)
{
    static const int numbers[] = {3, 0, 2};
    notify_around_the_sleep(window, numbers, 3);
}

static void notify_n3_wakes_a_sleeper(void **state)
{
    (void)state;
    team_run(2, sleep_for_one);
}

static void notify_p4_wait_any_misses_none(void **state)
{
    (void)state;
    team_run(2, sleep_for_any);
}

/* Random counters of rank 0, as many notifications as it takes by both calls. */
static void take_any(struct oriel_window *window)
{
    static const int numbers[] = {2, 0, 1};
    uint64_t seen[COUNTERS] = {0};
    struct oriel_notify_area *own = open_counters(window);
    int rounds = team_rounds(ROUNDS);
    if (window->rank != 0) {
        for (int i = 0; i < rounds; i++)
            oriel_notify_signal(oriel_notify_area(window, 0), (uint32_t)(team_random() % 3));
    } else {
        for (int i = 0; i < rounds * (window->n - 1); i++) {
            int index = -1;
            team_expect(oriel_notify_wait_any(window, 3, numbers, &index) == ORIEL_OK);
            seen[numbers[index]]++;
        }
        for (int i = 0; i < 3; i++)
            team_expect(seen[i] == atomic_load(&own->counters[i].arrived) &&
                        seen[i] == atomic_load(&window->notifications->taken[i]));
    }
    close_counters(window);
}

static void notify_wait_any_takes_each_once(void **state)
{
    (void)state;
    team_run_sizes(take_any);
}

/* P3: a counter passes 2^32, and one that has many untaken notifications is no problem. */
static void pass_32_bits(struct oriel_window *window)
{
    struct oriel_notify_area *own = open_counters(window);
    const uint64_t begin = UINT32_MAX - 5;
    atomic_store(&own->counters[0].arrived, begin);
    atomic_store(&window->notifications->taken[0], begin);
    atomic_store(&own->counters[1].arrived, UINT64_C(3) << 32);
    team_barrier();
    for (int i = 0; i < 20; i++) {
        if (window->rank == 1) {
            usleep(2000);
            oriel_notify_signal(oriel_notify_area(window, 0), 0);
        } else {
            await(window, 0, 1);
        }
    }
    await(window, 1, INT32_MAX);
    await(window, 1, INT32_MAX);
    await(window, 1, INT32_MAX);
    team_expect(oriel_notify_take(window->notifications, 1, INT32_MAX));
    close_counters(window);
}

static void notify_counters_have_64_bits(void **state)
{
    (void)state;
    team_run(2, pass_32_bits);
}

static void expect_named(enum oriel_status status)
{
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), "rank 1 (process ") != NULL);
    team_expect(team_timeouts <= 10);
    team_timeouts = 0;
}

/* A notification that is there is taken, also after a death. */
static void origin_dies(struct oriel_window *window)
{
    static const int numbers[] = {1, 2};
    int index;
    open_counters(window);
    if (window->rank == VICTIM) {
        for (int32_t i = 0; i < window->n; i++)
            oriel_notify_signal(oriel_notify_area(window, i), 0);
        team_flag_set(0, 1);
        usleep(120000);
        team_die();
    }
    team_flag_await(0, 1);
    expect_named(oriel_notify_wait(window, 0, 2));
    expect_named(oriel_notify_wait_any(window, 2, numbers, &index));
    team_expect(atomic_load(&window->notifications->area->counters[1].sleepers) == 0);
    await(window, 0, 1);
}

static void killed_origin_is_reported_to_those_who_wait(void **state)
{
    (void)state;
    if (team_has_threads())
        skip();
    team_run(3, origin_dies);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notify_p1_publishes_stores),
        cmocka_unit_test(notify_p2_each_is_taken_once),
        cmocka_unit_test(notify_n3_wakes_a_sleeper),
        cmocka_unit_test(notify_p4_wait_any_misses_none),
        cmocka_unit_test(notify_wait_any_takes_each_once),
        cmocka_unit_test(notify_counters_have_64_bits),
        cmocka_unit_test(killed_origin_is_reported_to_those_who_wait),
    };
    return team_main(tests, argc, argv);
}
