/* Small accesses and atomic words between processes, with random delays. One of two unordered
 * accesses reports the conflict, whichever is first. Order passed from word to word is known to the
 * process that acquires it. */
#include "check/common/reentrancy.h"
#include "check/order/rank_clocks.h"
#include "check/order/word_clocks.h"

#include "check_puts.h"

#include <pthread.h>
#include <string.h>

enum {
    PROCESSES = 3,
    ROUNDS = 4000,
    CELL = 64,
    SHARED = 2 * CELL,
    WIDE = 4096,
    SHM_BYTES = 64 << 20
};

/* Two of three ranks put to the same bytes, each round at another offset; span(rank, round): the
 * number of bytes from the same first one. */
static void rounds(int rank, uint64_t (*span)(int rank, int round))
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset history = shared(rank, oriel_history_make);
    for (int round = 0; round < ROUNDS; round++) {
        int idle = round % team->n;
        int64_t at = (int64_t)(round % 64) * WIDE + CELL * (round % 3);
        if (rank == 0)
            atomic_store(&team->words[0], 0);
        team_barrier();
        if (rank != idle)
            atomic_fetch_add(&team->words[0], put(history, rank, at, span(rank, round)));
        team_barrier();
        EXPECT(atomic_load(&team->words[0]) >= 1);
        complete(history, rank);
        team_barrier();
        if (rank == idle) /* the next one at this offset meets nothing of this round */
            oriel_history_forget(history, at, WIDE);
        team_barrier();
    }
    oriel_history_leave(history);
    oriel_order_stop();
}

static uint64_t small_span(int rank, int round)
{
    return (uint64_t)(8 + (rank + round) % 3);
}

static uint64_t mixed_span(int rank, int round)
{
    return (rank + round) % 2 == 0 ? 8 : 2048;
}

static void put_small(int rank)
{
    rounds(rank, small_span);
}

static void put_mixed(int rank)
{
    rounds(rank, mixed_span);
}

static void put_small_again(int rank)
{
    repeats_access = true;
    rounds(rank, small_span);
}

static void put_mixed_again(int rank)
{
    repeats_access = true;
    rounds(rank, mixed_span);
}

enum { PAGES = 64, TURNS = 1000 };

static void lose_time(uint32_t *chance, uint32_t most)
{
    *chance = *chance * 1664525u + 1013904223u;
    for (volatile uint32_t i = (*chance >> 8) % most; i > 0; i--)
        ;
}

/* The first rank's records are split or merged continuously. The other rank's later small put is
 * unordered. */
static void put_during_changes_of_records(int rank, bool are_cut)
{
    uint32_t chance = (uint32_t)rank + 1;
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    for (int turn = 0; turn < TURNS; turn++) {
        if (rank == 0) {
            oriel_shm_offset made = oriel_history_make(PAGES * WIDE);
            atomic_store(&team->words[1], made);
            atomic_store(&team->words[0], 0);
            EXPECT(put(made, rank, 0, are_cut ? PAGES * WIDE : WIDE) == 0);
            complete(made, rank);
        }
        team_barrier();
        oriel_shm_offset history = (oriel_shm_offset)atomic_load(&team->words[1]);
        uint64_t conflicts = 0;
        if (rank == 0 && are_cut) {
            for (int page = 0; page < PAGES; page += 2) {
                oriel_order_raise();
                conflicts += put(history, rank, page * WIDE, WIDE);
                complete(history, rank);
            }
        } else if (rank == 0) {
            lose_time(&chance, 3000);
            conflicts += put(history, rank, WIDE, (PAGES - 1) * WIDE);
            complete(history, rank);
        } else {
            lose_time(&chance, 12000);
            conflicts += put(history, rank, (PAGES - 1) * WIDE + CELL, 8);
            complete(history, rank);
        }
        atomic_fetch_add(&team->words[0], conflicts);
        team_barrier();
        EXPECT(atomic_load(&team->words[0]) >= 1);
        oriel_history_leave(history);
        team_barrier();
        if (rank == 0)
            oriel_history_free(history);
    }
    oriel_order_stop();
}

static void put_during_cuts(int rank)
{
    put_during_changes_of_records(rank, true);
}

static void put_during_joins(int rank)
{
    put_during_changes_of_records(rank, false);
}

static void cells_s6_small_accesses_conflict_with_cut_records(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, put_during_cuts);
}

static void cells_s6_small_accesses_conflict_with_joined_records(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, put_during_joins);
}

static void cells_s1_repeated_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_small_again);
}

static void cells_s2_repeated_and_wide_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_mixed_again);
}

static void cells_s1_small_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_small);
}

static void cells_s2_small_and_wide_accesses_conflict(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, put_mixed);
}

/* Releases as a small operation does (callsite_cache.c), now and then under the lock. */
static bool release_again(oriel_shm_offset words, uint64_t offset, bool fetches)
{
    static unsigned turns;
    if (++turns % 8 == 0)
        return oriel_word_give(words, offset, fetches);
    uint32_t rank = (uint32_t)oriel_order_rank();
    struct oriel_word_clock *word = oriel_word_at(words, offset);
    bool offered = word != NULL && oriel_word_offer(word, rank, oriel_order_now());
    oriel_fence_full();
    if (word != NULL)
        oriel_word_give_offered(word, rank, offered, fetches);
    return word != NULL;
}

/* A turn circulates: its owner stores into the same bytes, completes that, and releases to the word
 * before it passes the turn. The next rank acquires the word, so it is never reported. */
static void pass_the_turn(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset history = shared(rank, oriel_history_make);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    for (uint64_t turn = (uint64_t)rank; turn < ROUNDS; turn += (uint64_t)team->n) {
        while (atomic_load(&team->words[1]) != turn)
            sched_yield();
        if (turn > 0)
            EXPECT(oriel_word_take(words, 8));
        for (int again = 0; again < 3; again++) {
            EXPECT(put(history, rank, 0, 8) == 0);
            complete(history, rank);
            EXPECT(release_again(words, 8, true));
        }
        atomic_store(&team->words[1], turn + 1);
    }
    oriel_history_leave(history);
    oriel_order_stop();
}

static void words_w1_carry_earlier_events(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, pass_the_turn);
}

static void pass_the_turn_again(int rank)
{
    repeats_access = true;
    pass_the_turn(rank);
}

static void cells_know_the_order_of_repeated_accesses(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, pass_the_turn_again);
}

/* Operations that a rank completes after its release are not part of the release. */
static void store_after(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset history = shared(rank, oriel_history_make);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    for (int round = 0; round < ROUNDS / 4; round++) {
        int giver = round % team->n;
        team_barrier();
        if (rank == giver) {
            EXPECT(oriel_word_give(words, 8, round % 2 == 0));
            put(history, rank, 64 * round, 8);
            complete(history, rank);
        }
        team_barrier();
        if (rank == (giver + 1) % team->n) {
            EXPECT(oriel_word_take(words, 8));
            EXPECT(put(history, rank, 64 * round, 8) == 1);
            complete(history, rank);
        }
    }
    team_barrier();
    oriel_history_leave(history);
    oriel_order_stop();
}

static void words_o1_publish_nothing_of_later(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, store_after);
}

/* All release to one word without a turn; then all acquire, and know the earlier work of each. */
static void publish_at_once(int rank)
{
    oriel_tick *clock = calloc((size_t)team->n, sizeof *clock);
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&team->words[rank], oriel_order_now());
        team_barrier();
        EXPECT(oriel_word_give(words, (uint64_t)(round % 5) * 8, (round + rank) % 3 != 0));
        team_barrier();
        EXPECT(oriel_word_take(words, (uint64_t)(round % 5) * 8));
        oriel_order_clock(clock);
        for (int other = 0; other < team->n; other++)
            EXPECT(clock[other] >= atomic_load(&team->words[other]));
        team_barrier();
    }
    free(clock);
    oriel_order_stop();
}

/* The first rank releases repeatedly and never acquires; the others acquire the word
 * concurrently. */
static void offer_at_once(int rank)
{
    oriel_tick *clock = calloc((size_t)team->n, sizeof *clock);
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (rank == 0)
            EXPECT(release_again(words, 8, true) && release_again(words, 8, true));
        team_barrier();
        if (rank == 0) {
            atomic_store(&team->words[0], oriel_order_now());
            EXPECT(release_again(words, 8, true));
        } else if (rank == 1 + round % (team->n - 1)) {
            EXPECT(oriel_word_give(words, 8, true));
        }
        team_barrier();
        if (rank != 0) {
            EXPECT(oriel_word_take(words, 8));
            oriel_order_clock(clock);
            EXPECT(clock[0] >= atomic_load(&team->words[0]));
        }
        team_barrier();
    }
    free(clock);
    oriel_order_stop();
}

static void words_w2_keep_each_publication(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, publish_at_once);
}

static void words_w3_keep_offers(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, offer_at_once);
}

/* A rank's release includes what it has learnt from others. */
static void publish_acquired(int rank)
{
    oriel_tick *clock = calloc((size_t)team->n, sizeof *clock);
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    for (int round = 0; round < ROUNDS / 4; round++) {
        int from = (round + 1) % team->n;
        bool gives = rank == round % team->n;
        if (gives)
            EXPECT(release_again(words, 8, true));
        if (rank == from) {
            atomic_store(&team->words[0], oriel_order_now());
            EXPECT(release_again(words, 16, false));
        }
        team_barrier();
        if (gives)
            EXPECT(oriel_word_take(words, 16) && release_again(words, 8, true));
        team_barrier();
        if (!gives && rank != from) {
            EXPECT(oriel_word_take(words, 8));
            oriel_order_clock(clock);
            EXPECT(clock[from] >= atomic_load(&team->words[0]));
        }
        team_barrier();
    }
    free(clock);
    oriel_order_stop();
}

static void words_w3_offer_nothing_old(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, publish_acquired);
}

enum { WORDS_MOST = 1 << 16, MEMORIES = 6, LATE = (WORDS_MOST + 5) * 8 };
enum { HELD = 3, RELEASED }; /* of team->words: counts for all memories */

/* Between a check for room and the link of the word: until all others have released. */
static void link_last(void)
{
    team_at_delay = NULL;
    uint64_t memory = atomic_fetch_add(&team->words[HELD], 1) + 1;
    while (atomic_load(&team->words[RELEASED]) != memory * (uint64_t)(team->n - 1))
        sched_yield();
}

/* All release to a new word of a non-empty chain, and all but one to another new word before, while
 * memory has room for one more. That one checks while there is room, and links while others
 * already share; it is still among those acquired. */
static void release_late_word(int rank)
{
    oriel_tick *clock = calloc((size_t)team->n, sizeof *clock);
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    for (int memory = 0; memory < MEMORIES; memory++) {
        oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
        for (uint64_t i = (uint64_t)rank; i < WORDS_MOST - 1; i += (uint64_t)team->n)
            EXPECT(oriel_word_give(words, i * 8, false));
        atomic_store(&team->words[rank], oriel_order_now());
        team_barrier();
        if (rank == memory % team->n) {
            team_at_delay = link_last;
            EXPECT(oriel_word_give(words, LATE, false));
            EXPECT(team_at_delay == NULL);
        } else {
            while (atomic_load(&team->words[HELD]) != (uint64_t)memory + 1)
                sched_yield();
            EXPECT(oriel_word_give(words, LATE + 8 * (uint64_t)(1 + rank), false));
            EXPECT(oriel_word_give(words, LATE, false));
            atomic_fetch_add(&team->words[RELEASED], 1);
        }
        team_barrier();
        EXPECT(oriel_word_take(words, LATE));
        oriel_order_clock(clock);
        for (int other = 0; other < team->n; other++)
            EXPECT(clock[other] >= atomic_load(&team->words[other]));
        team_barrier();
        if (rank == 0)
            oriel_word_clocks_free(words);
    }
    free(clock);
    oriel_order_stop();
}

static void words_w0_share_as_all_do(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, release_late_word);
}

/* An acquire gets what a word has even if another release found no room, and reports that there may
 * be more. */
static void lose_another(int rank)
{
    oriel_tick *clock = calloc((size_t)team->n, sizeof *clock);
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset words = shared(rank, oriel_word_clocks_make);
    if (rank == 0) {
        atomic_store(&team->words[0], oriel_order_now());
        EXPECT(oriel_word_give(words, 8, false));
        oriel_given_set_lost();
    }
    team_barrier();
    if (rank == 1) {
        EXPECT(!oriel_word_take(words, 8));
        oriel_order_clock(clock);
        EXPECT(clock[0] >= atomic_load(&team->words[0]));
    }
    team_barrier();
    free(clock);
    oriel_order_stop();
}

static void words_are_acquired_though_others_found_no_room(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, lose_another);
}

/* --- threads --- */

static void *raise_often(void *unused)
{
    for (int i = 0; i < 10 * ROUNDS; i++)
        oriel_order_raise();
    return unused;
}

/* Loads and stores, which are checked, may come from any thread. */
static void raise_from_two(int rank)
{
    pthread_t other;
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_tick before = oriel_order_now();
    oriel_check_watches = true;
    EXPECT(pthread_create(&other, NULL, raise_often, NULL) == 0);
    raise_often(NULL);
    pthread_join(other, NULL);
    EXPECT(oriel_order_now() == before + 20 * ROUNDS);
    oriel_order_stop();
}

static void numbers_of_several_threads_never_decrease(void **state)
{
    (void)state;
    team_run(1, SHM_BYTES, 0, raise_from_two);
}

/* --- locks of words --- */

static _Atomic uint64_t *word_of_team(void)
{
    return &team->words[2];
}

static void die_with_the_word(int rank)
{
    if (rank == 0) {
        oriel_shm_word_lock(word_of_team());
        atomic_store(&team->step, 1);
        team_die();
    }
    team_await(1);
    alarm(busy_limit_s(10)); /* a dead owner is found within milliseconds */
    oriel_shm_word_lock(word_of_team());
    atomic_fetch_add(&team->words[3], 1);
    oriel_shm_word_unlock(word_of_team());
}

static void a_word_lock_of_a_dead_process_is_acquired(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 1u << 0, die_with_the_word);
}

static void count_alone(int rank)
{
    (void)rank;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        oriel_shm_word_lock(word_of_team());
        uint64_t count = atomic_load_explicit(&team->words[3], memory_order_relaxed);
        oriel_delay();
        atomic_store_explicit(&team->words[3], count + 1, memory_order_relaxed);
        oriel_shm_word_unlock(word_of_team());
    }
    team_barrier();
    EXPECT(atomic_load(&team->words[3]) == (uint64_t)team->n * 10 * ROUNDS);
}

static void a_word_lock_excludes(void **state)
{
    (void)state;
    team_run(PROCESSES, SHM_BYTES, 0, count_alone);
}

/* More pages than the history's table has entries. */
static void forget_vast_range(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset history = shared(rank, oriel_history_make);
    if (rank == 0) {
        EXPECT(put(history, rank, 0, 8) == 0);
        EXPECT(put(history, rank, PAGES * WIDE, 8) == 0);
        complete(history, rank);
        oriel_history_forget(history, WIDE, (uint64_t)1 << 50);
    }
    team_barrier();
    if (rank == 1) {
        EXPECT(put(history, rank, PAGES * WIDE, 8) == 0);
        EXPECT(put(history, rank, 0, 8) == 1);
        complete(history, rank);
    }
    team_barrier();
    oriel_history_leave(history);
    oriel_order_stop();
}

static void vast_ranges_are_forgotten(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, forget_vast_range);
}

/* With an argument: only the test of that name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_lock_excludes),
        cmocka_unit_test(a_word_lock_of_a_dead_process_is_acquired),
        cmocka_unit_test(cells_s1_repeated_accesses_conflict),
        cmocka_unit_test(cells_s2_repeated_and_wide_accesses_conflict),
        cmocka_unit_test(cells_know_the_order_of_repeated_accesses),
        cmocka_unit_test(cells_s1_small_accesses_conflict),
        cmocka_unit_test(cells_s2_small_and_wide_accesses_conflict),
        cmocka_unit_test(cells_s6_small_accesses_conflict_with_cut_records),
        cmocka_unit_test(cells_s6_small_accesses_conflict_with_joined_records),
        cmocka_unit_test(words_w0_share_as_all_do),
        cmocka_unit_test(words_are_acquired_though_others_found_no_room),
        cmocka_unit_test(words_w1_carry_earlier_events),
        cmocka_unit_test(words_w2_keep_each_publication),
        cmocka_unit_test(words_w3_keep_offers),
        cmocka_unit_test(words_w3_offer_nothing_old),
        cmocka_unit_test(words_o1_publish_nothing_of_later),
        cmocka_unit_test(numbers_of_several_threads_never_decrease),
        cmocka_unit_test(vast_ranges_are_forgotten),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
