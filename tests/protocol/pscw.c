/* src/sync/pscw.c: a start is matched by peer, early posts are stored, and each step publishes the
 * stores before it. Every pair of ranks has its own words in the windows, so only post, start,
 * complete and wait order them. pscw_counters.c tests how partners find each other's counters. */
#include "make_window.h"
#include "sync/pscw_counters.h"

#include <sched.h>

enum { ROUNDS = 600, WAKES = 12 };

static void post(struct oriel_window *window, const int32_t *ranks, int32_t count)
{
    team_expect(oriel_post(window, window_ranks(ranks, count), count) == ORIEL_OK);
}

static void start(struct oriel_window *window, const int32_t *ranks, int32_t count)
{
    team_expect(oriel_start(window, window_ranks(ranks, count), count) == ORIEL_OK);
}

static void complete(struct oriel_window *window)
{
    team_expect(oriel_complete(window) == ORIEL_OK);
}

static void wait_all(struct oriel_window *window)
{
    team_expect(oriel_wait_exposure(window) == ORIEL_OK);
}

/* Polls instead of waiting. */
static void test_all(struct oriel_window *window)
{
    bool done = false;
    while (!done)
        team_expect(oriel_test_exposure(window, &done) == ORIEL_OK);
}

/* Whether origin accesses target in this round: the same answer on all ranks. */
static bool accesses(int32_t origin, int32_t target, uint64_t round)
{
    uint64_t mixed = (team->seed + round) * UINT64_C(0x9e3779b97f4a7c15) +
                     (uint64_t)(origin * TEAM_MOST + target);
    mixed = (mixed ^ (mixed >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (mixed >> 40) % 3 == 0;
}

/* The word that origin writes at target. It is not written again before the exposure of its round
 * has ended. */
static volatile uint64_t *word_of(struct oriel_window *window, int32_t target, int32_t origin)
{
    return window_memory(window, target) + origin;
}

/* The target stores it before its post; origins check it after their start. */
static volatile uint64_t *mark_of(struct oriel_window *window, int32_t target)
{
    return window_memory(window, target) + TEAM_MOST;
}

static void access_targets(struct oriel_window *window, uint64_t round)
{
    int32_t targets[TEAM_MOST];
    int32_t count = 0;
    for (int32_t i = window->n - 1; i >= 0; i--)
        if (accesses(window->rank, i, round))
            targets[count++] = i;
    start(window, targets, count);
    for (int32_t i = 0; i < window->n; i++)
        team_expect(oriel_access_allowed(window, i) == accesses(window->rank, i, round));
    for (int32_t i = 0; i < count; i++) {
        team_expect(*mark_of(window, targets[i]) == round); /* C1 -> C2 */
        *word_of(window, targets[i], window->rank) = round;
    }
    complete(window);
}

static void random_groups(struct oriel_window *window)
{
    for (uint64_t round = 1; round <= (uint64_t)team_rounds(ROUNDS); round++) {
        int32_t origins[TEAM_MOST];
        int32_t count = 0;
        for (int32_t i = 0; i < window->n; i++)
            if (accesses(i, window->rank, round))
                origins[count++] = i;
        *mark_of(window, window->rank) = round;
        post(window, origins, count);
        access_targets(window, round);
        if (round % 2 == 0)
            wait_all(window);
        else
            test_all(window);
        for (int32_t i = 0; i < count; i++)
            team_expect(*word_of(window, window->rank, origins[i]) == round); /* C3 -> C4 */
    }
    team_expect(oriel_epochs_closed(window) == ORIEL_OK);
}

static void pscw_c1_c3_publish_stores(void **state)
{
    (void)state;
    team_run_sizes(random_groups);
}

/* All counters of all pairs are about to wrap around. */
static void random_groups_across_the_wrap(struct oriel_window *window)
{
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_pscw_counter *own;
        team_expect(oriel_pscw_counters_make(window, i, &own) == ORIEL_OK);
        own->posts.value = own->completes.value = UINT32_MAX - 20;
    }
    team_barrier();
    random_groups(window);
}

static void pscw_counts_across_the_wrap(void **state)
{
    (void)state;
    team_run(4, random_groups_across_the_wrap);
}

/* Rank 0 starts towards rank 1; rank 2's post must not end its wait. */
static void post_of_another(struct oriel_window *window)
{
    const int32_t zero = 0;
    const int32_t one = 1;
    const int32_t two = 2;
    for (uint32_t round = 1; round <= 5; round++) {
        if (window->rank == 0) {
            start(window, &one, 1);
            team_expect(atomic_load(&team->flags[1]) == round); /* rank 1 was about to post */
            complete(window);
            start(window, &two, 1);
            complete(window);
        } else if (window->rank == 1) {
            team_flag_await(0, round);
            usleep(30000);
            team_flag_set(1, round);
            post(window, &zero, 1);
            wait_all(window);
        } else {
            post(window, &zero, 1);
            team_flag_set(0, round);
            wait_all(window);
        }
        team_barrier();
    }
}

static void pscw_matches_by_peer(void **state)
{
    (void)state;
    team_run(3, post_of_another);
}

/* Rank 1 posts its next epoch while rank 0 is busy with rank 2. Rank 0 finds that post when it
 * returns, and one post for each start. */
static void post_early(struct oriel_window *window)
{
    const int32_t zero = 0;
    const int32_t one = 1;
    const int32_t two = 2;
    volatile uint64_t *word = word_of(window, 1, 0);
    for (uint32_t round = 1; round <= 50; round++) {
        if (window->rank == 0) {
            start(window, &one, 1);
            *word = 2 * round;
            complete(window);
            team_flag_await(0, round); /* rank 1 has posted again */
            start(window, &two, 1);
            complete(window);
            start(window, &one, 1);
            *word = 2 * round + 1;
            complete(window);
        } else if (window->rank == 1) {
            post(window, &zero, 1);
            wait_all(window);
            team_expect(*word == 2 * round);
            post(window, &zero, 1);
            team_flag_set(0, round);
            wait_all(window);
            team_expect(*word == 2 * round + 1);
        } else {
            post(window, &zero, 1);
            wait_all(window);
        }
    }
}

static void pscw_stores_early_posts(void **state)
{
    (void)state;
    team_run(3, post_early);
}

/* One post allows one start: the second waits for the second post. */
static void start_twice(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    for (uint32_t round = 1; round <= 10; round++) {
        if (window->rank == 0) {
            start(window, &other, 1);
            team_expect(atomic_load(&team->flags[0]) == round);
            complete(window);
        } else {
            usleep(2000);
            team_flag_set(0, round);
            post(window, &other, 1);
            wait_all(window);
        }
    }
}

static void pscw_c2_consumes_one_post_for_each_start(void **state)
{
    (void)state;
    team_run(2, start_twice);
}

/* And one complete ends one exposure: wait and test, in turn, return after the origin's stores of
 * their own epoch. */
static void expose_twice(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    for (uint64_t round = 1; round <= 20; round++) {
        if (window->rank == 0) {
            start(window, &other, 1);
            usleep(1000);
            *word_of(window, 1, 0) = round;
            complete(window);
        } else {
            post(window, &other, 1);
            if (round % 2 == 0)
                wait_all(window);
            else
                test_all(window);
            team_expect(*word_of(window, 1, 0) == round);
        }
    }
}

static void pscw_c4_consumes_one_complete_for_each_wait(void **state)
{
    (void)state;
    team_run(2, expose_twice);
}

static void test_once(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    bool done = true;
    if (window->rank == 0) {
        post(window, &other, 1);
        team_expect(oriel_post(window, window_ranks(&other, 1), 1) == ORIEL_E_SYNC);
        team_expect(oriel_test_exposure(window, &done) == ORIEL_OK && !done);
        team_expect(oriel_epochs_closed(window) == ORIEL_E_SYNC);
        team_flag_set(0, 1);
        test_all(window);
        team_expect(oriel_epochs_closed(window) == ORIEL_OK);
        team_expect(oriel_wait_exposure(window) == ORIEL_E_SYNC);
        team_expect(oriel_test_exposure(window, &done) == ORIEL_E_SYNC);
        post(window, NULL, 0);
        wait_all(window);
    } else {
        start(window, &other, 1);
        team_expect(oriel_start(window, window_ranks(&other, 1), 1) == ORIEL_E_SYNC);
        team_flag_await(0, 1);
        complete(window);
        team_expect(oriel_complete(window) == ORIEL_E_SYNC);
        start(window, NULL, 0);
        complete(window);
    }
}

static void pscw_test_that_succeeds_ends_the_epoch(void **state)
{
    (void)state;
    team_run(2, test_once);
}

/* Six epochs with the other rank, two with the rank itself, and so on: the first of each kind names
 * the members. */
static void same_members_again(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const int32_t peer = round % 8 < 6 ? other : window->rank;
        const bool again = round % 8 != 6 && round % 8 != 0 && round > 1;
        team_expect(again || (window->started.group = window->posted.group = round));
        team_expect(oriel_post(window, again ? NULL : window_ranks(&peer, 1), 1) == ORIEL_OK);
        team_expect(oriel_start(window, again ? NULL : window_ranks(&peer, 1), 1) == ORIEL_OK);
        team_expect(again || (window->started.group == 0 && window->posted.group == 0));
        team_expect(oriel_start(window, window_ranks(NULL, 0), 0) == ORIEL_E_SYNC);
        team_expect(oriel_post(window, window_ranks(NULL, 0), 0) == ORIEL_E_SYNC);
        *word_of(window, peer, window->rank) = round;
        complete(window);
        wait_all(window);
        team_expect(*word_of(window, window->rank, peer) == round);
    }
}

/* As another thread would find them halfway through a call. */
static void half_way(struct oriel_window *window)
{
    const uint32_t before = window->epoch;
    window->accessing = 1;
    team_expect(oriel_start(window, window_ranks(NULL, 0), 0) == ORIEL_E_SYNC);
    team_expect(window->epoch == before);
    window->accessing = 0;
    window->epoch = ORIEL_EPOCH_START;
    team_expect(oriel_complete(window) == ORIEL_E_SYNC && window->epoch == ORIEL_EPOCH_START);
    window->epoch = before;
}

static void pscw_members_are_cached_for_the_next_epoch(void **state)
{
    (void)state;
    team_run(2, same_members_again);
    team_run(1, half_way);
}

/* Of many sleeps few last to the time limit: C1 wakes a start, C3 wakes a wait. */
static void hand_over(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    struct oriel_pscw_counter *own;
    team_expect(oriel_pscw_counters_make(window, other, &own) == ORIEL_OK);
    team_barrier();
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 0) {
            while (atomic_load(&own->posts.sleepers) == 0)
                sched_yield();
            usleep(3000);
            post(window, &other, 1);
            wait_all(window);
        } else {
            start(window, &other, 1);
            while (atomic_load(&own->completes.sleepers) == 0)
                sched_yield();
            usleep(3000);
            complete(window);
        }
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void pscw_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, hand_over);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pscw_c1_c3_publish_stores),
        cmocka_unit_test(pscw_counts_across_the_wrap),
        cmocka_unit_test(pscw_matches_by_peer),
        cmocka_unit_test(pscw_stores_early_posts),
        cmocka_unit_test(pscw_c2_consumes_one_post_for_each_start),
        cmocka_unit_test(pscw_c4_consumes_one_complete_for_each_wait),
        cmocka_unit_test(pscw_test_that_succeeds_ends_the_epoch),
        cmocka_unit_test(pscw_members_are_cached_for_the_next_epoch),
        cmocka_unit_test(pscw_wakes_sleepers),
    };
    return team_main(tests, argc, argv);
}
