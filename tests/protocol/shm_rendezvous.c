/* src/create/shm_rendezvous.c: the conclusion uses every rank's record of this meeting, and all
 * ranks get it. Records stay until their reader reaches its next meeting. Meetings follow each
 * other at once; some ranks read slowly, some leave, some die. */
#include "make_window.h"
#include "create/shm_rendezvous.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6000, WORDS = 16, VICTIM = 1, TEAM = 3, SLEEPERS = 40, SLEEPS = 10, LEAVES = 12 };
enum { READY }; /* flag: the victim is where it will die */

struct note {
    uint64_t round;
    uint64_t words[WORDS]; /* all equal, computed from rank and round */
};

static uint64_t word_of(uint64_t round, int32_t rank)
{
    return round * 1000 + (uint64_t)rank;
}

/* On the words of rank 0's file, as comm_cache.c opens them. */
static struct oriel_shm_rendezvous open_rendezvous(struct oriel_window *window)
{
    uint64_t offset = 0;
    if (window->rank == 0)
        team_expect(oriel_file_alloc(oriel_shm_rendezvous_bytes(window->n), ORIEL_CACHE_LINE,
                                     &offset) == ORIEL_OK);
    if (window->rank == 0)
        window_memory(window, 0)[0] = offset;
    team_barrier();
    offset = window_memory(window, 0)[0];
    team_barrier();
    return (struct oriel_shm_rendezvous){
        .words = (struct oriel_shm_rendezvous_words *)(window->group->bases[0] + offset),
        .group = window->group,
        .rank = window->rank};
}

static void expect_note(const struct oriel_shm_rendezvous *rendezvous, int32_t rank, uint64_t round)
{
    const struct note *note = oriel_shm_rendezvous_record(rendezvous, rank);
    team_expect(note->round == round);
    for (int i = 0; i < WORDS; i++)
        team_expect(note->words[i] == word_of(round, rank));
}

/* The sum of all records of this round, each rank's exactly once. */
static uint32_t add_up(struct oriel_shm_rendezvous *rendezvous, void *context)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < rendezvous->group->n; i++) {
        oriel_delay();
        expect_note(rendezvous, i, *(const uint64_t *)context);
        sum += ((const struct note *)oriel_shm_rendezvous_record(rendezvous, i))->words[WORDS - 1];
    }
    return (uint32_t)sum;
}

static enum oriel_status meet(struct oriel_shm_rendezvous *rendezvous, uint64_t round,
                              uint32_t *verdict)
{
    struct note note = {.round = round};
    for (int i = 0; i < WORDS; i++)
        note.words[i] = word_of(round, rendezvous->rank);
    return oriel_shm_rendezvous_meet(rendezvous, &note, sizeof note, add_up, &round, verdict);
}

static uint32_t expected(int32_t n, uint64_t round)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += word_of(round, i);
    return (uint32_t)sum;
}

static void rendezvous_often(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    int rounds = team_rounds(ROUNDS);
    for (uint32_t round = 1; round <= (uint32_t)rounds && team_continues(round); round++) {
        uint32_t verdict = 0;
        team_expect(meet(&rendezvous, round, &verdict) == ORIEL_OK);
        team_expect(verdict == expected(window->n, round));
    }
    team_barrier();
    team_expect(rendezvous.words->arrived == 0);
}

static void rendezvous_n3_concludes_from_every_record(void **state)
{
    (void)state;
    team_run_sizes(rendezvous_often);
}

/* Other ranks reach the next meeting meanwhile. */
static void read_slowly(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    int rounds = team_rounds(ROUNDS / 4);
    for (uint32_t round = 1; round <= (uint32_t)rounds && team_continues(round / 50); round++) {
        uint32_t verdict = 0;
        team_expect(meet(&rendezvous, round, &verdict) == ORIEL_OK);
        if (team_random() % 4 == 0)
            usleep((useconds_t)(team_random() % 200));
        for (int32_t i = 0; i < window->n; i++) {
            oriel_delay();
            expect_note(&rendezvous, i, round);
        }
        team_expect(verdict == expected(window->n, round));
    }
}

static void rendezvous_records_stay_until_the_next_meeting(void **state)
{
    (void)state;
    team_run_sizes(read_slowly);
}

static void rendezvous_across_the_wrap(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    if (window->rank == 0)
        rendezvous.words->turn.value = UINT32_MAX - 5;
    team_barrier();
    for (uint64_t round = 1; round <= 30; round++) {
        uint32_t verdict = 0;
        team_expect(meet(&rendezvous, round, &verdict) == ORIEL_OK);
        team_expect(verdict == expected(window->n, round));
    }
    team_expect(rendezvous.words->turn.value < 60);
}

static void rendezvous_turn_wraps(void **state)
{
    (void)state;
    team_run(3, rendezvous_across_the_wrap);
}

/* Most sleepers are woken; few sleep through their time limit. */
static void sleep_often(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    for (uint64_t round = 1; round <= SLEEPERS; round++) {
        uint32_t verdict = 0;
        if (window->rank == (int32_t)(round % (uint64_t)window->n))
            usleep(5000);
        team_expect(meet(&rendezvous, round, &verdict) == ORIEL_OK);
    }
    team_expect(team_timeouts <= SLEEPERS / 4);
    team_barrier();
    team_expect(rendezvous.words->turn.sleepers == 0);
}

static void rendezvous_n4_wakes_sleepers(void **state)
{
    (void)state;
    team_run(3, sleep_often);
}

/* --- leaving --- */

/* From the other rank's next meeting on; others may still be leaving its last one. */
static void leave_one(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    uint64_t round = 0;
    for (int time = 0; time < LEAVES; time++) {
        uint32_t verdict = 0;
        for (int i = 0; i <= time % 3; i++) {
            round++;
            team_expect(meet(&rendezvous, round, &verdict) == ORIEL_OK);
            team_expect(verdict == expected(window->n, round));
        }
        if (window->rank == time % window->n) {
            if (time % 2 == 0)
                usleep((useconds_t)(team_random() % 1000));
            oriel_shm_rendezvous_leave(&rendezvous);
        } else {
            team_expect(meet(&rendezvous, round + 1, &verdict) == ORIEL_E_COMM);
            team_expect(meet(&rendezvous, round + 2, &verdict) ==
                        ORIEL_E_COMM); /* rather than a death */
        }
        team_barrier();
        rendezvous.words->left = 0;
        rendezvous.words->arrived = 0;
        rendezvous.side = 0;
        team_barrier();
    }
}

static void rendezvous_n6_meetings_end_for_all_or_for_none(void **state)
{
    (void)state;
    team_run_sizes(leave_one);
}

/* --- death --- */

static void expect_named(enum oriel_status status)
{
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), "rank 1 (process ") != NULL);
    team_expect(team_timeouts <= SLEEPS);
    team_timeouts = 0;
}

static void miss_one(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    uint32_t verdict = 0;
    team_expect(meet(&rendezvous, 1, &verdict) == ORIEL_OK);
    if (window->rank == VICTIM) {
        team_flag_set(READY, 1);
        usleep(120000);
        team_die();
    }
    team_flag_await(READY, 1);
    expect_named(meet(&rendezvous, 2, &verdict));
    /* a rank that arrived and left without success does not count as arrived */
    expect_named(meet(&rendezvous, 3, &verdict));
    expect_named(meet(&rendezvous, 4, &verdict));
}

static void killed_rank_is_reported_by_a_meeting(void **state)
{
    (void)state;
    team_run(TEAM, miss_one);
}

/* Of 16 ranks, the victim is the last one that the only waiting rank checks. */
static void wait_alone(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    uint32_t verdict = 0;
    if (window->rank == VICTIM) {
        team_flag_set(READY, 1);
        usleep(120000);
        team_die();
    }
    team_flag_await(READY, 1);
    if (window->rank == VICTIM + 1)
        expect_named(meet(&rendezvous, 1, &verdict));
}

static void killed_rank_is_reported_to_a_single_wait(void **state)
{
    (void)state;
    team_run(TEAM_MOST, wait_alone);
}

/* The first rank that checks the victim waits from the start, and so does the last. */
static void wait_together(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    uint32_t verdict = 0;
    if (window->rank == VICTIM) {
        team_flag_set(READY, 1);
        usleep(120000);
        team_die();
    }
    team_flag_await(READY, 1);
    if (window->rank == VICTIM + 1 || window->rank == VICTIM - 1)
        expect_named(meet(&rendezvous, 1, &verdict));
}

static void killed_rank_is_reported_to_all_by_the_detecting_rank(void **state)
{
    (void)state;
    team_run(TEAM_MOST, wait_together);
}

static uint32_t die(struct oriel_shm_rendezvous *rendezvous, void *context)
{
    (void)rendezvous;
    (void)context;
    team_die();
}

/* The victim arrives last, and dies before it has drawn its conclusion. */
static void miss_a_conclusion(struct oriel_window *window)
{
    struct oriel_shm_rendezvous rendezvous = open_rendezvous(window);
    uint32_t verdict = 0;
    if (window->rank == VICTIM) {
        while (atomic_load(&rendezvous.words->arrived) < TEAM - 1)
            usleep(100);
        oriel_shm_rendezvous_meet(&rendezvous, &verdict, sizeof verdict, die, NULL, &verdict);
    }
    expect_named(meet(&rendezvous, 1, &verdict));
    expect_named(meet(&rendezvous, 2, &verdict));
}

static void killed_in_its_conclusion_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, miss_a_conclusion);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest living[] = {
        cmocka_unit_test(rendezvous_n3_concludes_from_every_record),
        cmocka_unit_test(rendezvous_records_stay_until_the_next_meeting),
        cmocka_unit_test(rendezvous_turn_wraps),
        cmocka_unit_test(rendezvous_n4_wakes_sleepers),
        cmocka_unit_test(rendezvous_n6_meetings_end_for_all_or_for_none),
    };
    const struct CMUnitTest dying[] = {
        cmocka_unit_test(killed_rank_is_reported_by_a_meeting),
        cmocka_unit_test(killed_rank_is_reported_to_a_single_wait),
        cmocka_unit_test(killed_rank_is_reported_to_all_by_the_detecting_rank),
        cmocka_unit_test(killed_in_its_conclusion_is_reported),
    };
    int failed = team_main(living, argc, argv);
    if (!team_has_threads()) /* threads cannot die one by one */
        failed += cmocka_run_group_tests(dying, NULL, NULL);
    return failed;
}
