/* Leased records: accesses that the origin makes without the history's lock are compared with every
 * later access, in any timing. Ordered accesses are never reported. In this build a record is
 * leased after its call has been there twice. Processes with random delays. */
#include "check/access/record_lease.h"

#include "check/access/aliased_windows.h"
#include "check_puts.h"

enum {
    ROUNDS = 2000,
    WIDE = 4096,
    PART = 1024,
    BOARD_BYTES = 128 << 20,
    MANY = 700,
    FAR = 5 << 16
};

static uint64_t lent; /* accesses through leases */

static uint64_t come_wide_in(oriel_shm_offset history, struct oriel_access *access, int64_t offset,
                             uint64_t len_bytes)
{
    uint64_t told = 0;
    struct oriel_access_extent run = {offset, len_bytes, 1, 0};
    if (oriel_record_lease_come(history, access, &run))
        lent++;
    else
        oriel_history_add(history, access, &run, 1, count_it, &told);
    return told;
}

static uint64_t come_wide(oriel_shm_offset history, int rank, enum oriel_access_kind kind,
                          int64_t offset, uint64_t len_bytes)
{
    struct oriel_access access = access_by(rank, kind);
    return come_wide_in(history, &access, offset, len_bytes);
}

static uint64_t get(oriel_shm_offset history, int rank, int64_t offset, uint64_t len_bytes)
{
    return come_wide(history, rank, ORIEL_ACCESS_GET, offset, len_bytes);
}

static uint64_t wide_put(oriel_shm_offset history, int rank, int64_t offset, uint64_t len_bytes)
{
    return come_wide(history, rank, ORIEL_ACCESS_PUT, offset, len_bytes);
}

static oriel_shm_offset begin(int rank)
{
    comes_again = false;
    lent = 0;
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    return shared(rank, oriel_history_make);
}

static void end(oriel_shm_offset history)
{
    team_meet();
    oriel_history_leave(history);
    oriel_entry_lease_stop();
    oriel_record_lease_stop();
    oriel_order_stop();
}

/* It is leased after that. */
static void get_often(oriel_shm_offset history, int rank, int64_t at)
{
    for (int i = 0; i < 5; i++) {
        EXPECT(get(history, rank, at, WIDE) == 0);
        complete(history, rank);
    }
}

/* --- concurrent --- */

/* All but one get through leased records, or parts of them. The remaining rank, which is ordered
 * after all their gets, puts. */
static void get_beside_puts(int rank, bool remade)
{
    oriel_shm_offset history = begin(rank);
    uint64_t came = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int putter = round % team->n;
        /* else all stays leased until the history is freed */
        bool puts = !remade || round % 2 == 1;
        int64_t at = remade ? 0 : (int64_t)(round % 64) * 2 * WIDE;
        uint64_t part = round % 5 == 0 ? PART : WIDE;
        if (rank == 0)
            atomic_store(&team->words[0], 0);
        team_meet();
        if (rank != putter)
            get_often(history, rank, at);
        team_meet();
        if (puts) {
            if (rank == putter)
                know_all(rank);
            team_meet();
            came -= lent;
            uint64_t told =
                rank != putter
                    ? get(history, rank, at + (part == WIDE ? 0 : PART * (round % 2)), part)
                    : put(history, rank, at + PART, round % 3 == 0 ? 8 : WIDE / 2);
            came += lent;
            if (round % 4 < 2)
                complete(history, rank);
            if (part == WIDE || round % 2 == 1)
                atomic_fetch_add(&team->words[0], told);
            else
                EXPECT(told == 0);
            team_meet();
            EXPECT(atomic_load(&team->words[0]) >=
                   (part == WIDE || round % 2 == 1 ? (uint64_t)team->n - 1 : 0));
            complete(history, rank);
        }
        team_meet();
        if (remade) {
            history = history_anew(rank, history);
        } else if (rank == putter) {
            oriel_history_forget(history, at, WIDE);
        }
    }
    EXPECT(came > 0);
    end(history);
}

static void get_beside_puts_of_one_history(int rank)
{
    get_beside_puts(rank, false);
}

static void loans_r2_meet_who_comes(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, get_beside_puts_of_one_history);
}

static void get_beside_puts_of_many_histories(int rank)
{
    get_beside_puts(rank, true);
}

static void loans_r6_are_of_a_history_that_stands(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, get_beside_puts_of_many_histories);
}

/* A turn circulates with full knowledge: no rank is reported for accesses through its leases,
 * whatever their numbers. */
static void pass_the_turn(int rank)
{
    oriel_shm_offset history = begin(rank);
    for (uint64_t turn = (uint64_t)rank; turn < ROUNDS; turn += (uint64_t)team->n) {
        while (atomic_load(&team->words[1]) != turn)
            sched_yield();
        know_all(rank);
        for (int i = 0; i < 8; i++) {
            bool puts = turn % 5 == 0 && i > 4;
            EXPECT(come_wide(history, rank, puts ? ORIEL_ACCESS_PUT : ORIEL_ACCESS_GET,
                             PART * (i % 3 == 2), i % 3 == 0 ? WIDE : PART) == 0);
            if (i % 4 == 3)
                oriel_order_raise();
            complete(history, rank);
        }
        atomic_store(&team->words[1], turn + 1);
    }
    EXPECT(lent > 0);
    end(history);
}

static void loans_are_not_told_when_ordered(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, pass_the_turn);
}

/* Two unordered ranks get the same bytes, and each puts to its own bytes, all of it leased. A third
 * one puts small ones elsewhere: nothing is reported. */
static void work_apart(int rank)
{
    oriel_shm_offset history = begin(rank);
    for (int i = 0; i < ROUNDS; i++) {
        EXPECT(get(history, rank, 0, WIDE) == 0);
        EXPECT((rank == 2
                    ? put(history, rank, 8 * WIDE + 8 * (i % 3), 8)
                    : wide_put(history, rank, WIDE * (2 + 2 * rank) + PART * (i % 2), PART)) == 0);
        complete(history, rank);
        if (i % 100 == 99)
            oriel_order_raise();
    }
    EXPECT(lent > ROUNDS / 2);
    end(history);
}

static void loans_of_several_stand_beside_each_other(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, work_apart);
}

/* --- one after the other --- */

enum { STEPS = 6 };

static void run_two(void (*const steps[STEPS])(oriel_shm_offset history), int rank)
{
    oriel_shm_offset history = begin(rank);
    for (int i = 0; i < STEPS; i++) {
        if (rank == i % 2 && steps[i] != NULL)
            steps[i](history);
        team_meet();
    }
    end(history);
}

#define TWO(name, body, ...)                                                                       \
    static void body(int rank)                                                                     \
    {                                                                                              \
        static void (*const steps[STEPS])(oriel_shm_offset) = {__VA_ARGS__};                       \
        run_two(steps, rank);                                                                      \
    }                                                                                              \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        team_run(2, BOARD_BYTES, 0, body);                                                         \
    }

static void put_and_let_stand(oriel_shm_offset history)
{
    EXPECT(put(history, 0, 0, 8) == 0);
    EXPECT(put(history, 0, 2 * WIDE, 2048) == 0);
}

static void get_each_time(oriel_shm_offset history)
{
    for (int i = 0; i < 12; i++) {
        EXPECT(get(history, 1, i < 6 ? 0 : 2 * WIDE, WIDE) == 1);
        complete(history, 1);
    }
    EXPECT(lent == 0);
}
TWO(loans_r1_are_not_what_meets_something, get_beside_what_stands, put_and_let_stand, get_each_time)

/* It began with one number, which another one then took, and completes with the next. */
static void get_and_let_stand(oriel_shm_offset history)
{
    get_often(history, 0, 0);
    uint64_t before = lent;
    EXPECT(get(history, 0, PART, PART) == 0 && lent == before + 1);
}

static void know_the_first(oriel_shm_offset history)
{
    (void)history;
    know_all(1);
}

static void complete_mine(oriel_shm_offset history)
{
    complete(history, 0);
}

static void put_to_the_part(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 2 * PART, 2 * PART) == 0);
    complete(history, 1);
    EXPECT(put(history, 1, PART, PART) == 1);
    complete(history, 1);
    know_all(1);
    EXPECT(put(history, 1, 0, WIDE) == 0);
    complete(history, 1);
}
TWO(loans_r4_have_one_number, complete_a_part, get_and_let_stand, know_the_first, complete_mine,
    put_to_the_part)

/* All of it has a new number, and the other rank knows the earlier one. */
static void get_all_again(oriel_shm_offset history)
{
    uint64_t before = lent;
    EXPECT(get(history, 0, 0, WIDE) == 0 && lent == before + 1);
    complete(history, 0);
}

static void get_one(oriel_shm_offset history)
{
    get_often(history, 0, 0);
}

static void put_and_find_all(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 2 * PART, PART) == 1);
    complete(history, 1);
    know_all(1);
    EXPECT(put(history, 1, 2 * PART, PART) == 0);
    complete(history, 1);
}
TWO(loans_r3_have_a_new_number, get_all_anew, get_one, know_the_first, get_all_again,
    put_and_find_all)

/* An outstanding part conflicts as long as it is outstanding, and only there. When it is complete
 * its record may be known, and dropped. */
static void put_while_it_is_pending(oriel_shm_offset history)
{
    know_all(1);
    EXPECT(put(history, 1, 0, PART) == 0);
    EXPECT(put(history, 1, PART + 8, 8) == 1);
    EXPECT(put(history, 1, 2 * PART, PART) == 0);
    complete(history, 1);
    EXPECT(put(history, 1, PART - 8, 16) == 1);
    complete(history, 1);
}

static void put_behind_it(oriel_shm_offset history)
{
    know_all(1);
    EXPECT(put(history, 1, 0, WIDE) == 0);
    complete(history, 1);
}

static void get_once_more(oriel_shm_offset history)
{
    EXPECT(get(history, 0, 0, WIDE) == 1);
    complete(history, 0);
}
TWO(loans_r5_stay_while_a_part_is_pending, put_beside_a_part, get_and_let_stand,
    put_while_it_is_pending, complete_mine, put_behind_it, get_once_more)

/* A second one of its own begins before the first is complete. */
static void put_twice(oriel_shm_offset history)
{
    for (int i = 0; i < 5; i++) {
        EXPECT(wide_put(history, 0, 0, WIDE) == 0);
        complete(history, 0);
    }
    uint64_t before = lent;
    EXPECT(wide_put(history, 0, 0, PART) == 0 && lent == before + 1);
    EXPECT(wide_put(history, 0, 2 * PART, PART) == 0);
    EXPECT(wide_put(history, 0, PART - 8, PART) == 1);
}

static void get_from_both(oriel_shm_offset history)
{
    EXPECT(get(history, 1, 0, 512) == 1);
    EXPECT(get(history, 1, 2 * PART, 512) == 1);
    complete(history, 1);
}

static void get_what_is_known(oriel_shm_offset history)
{
    know_all(1);
    EXPECT(get(history, 1, 0, WIDE) == 0);
    complete(history, 1);
}
TWO(loans_may_have_another_beside, put_in_pairs, put_twice, get_from_both, complete_mine,
    get_what_is_known)

/* An outstanding access is reported with its current flags. */
static uint8_t flags_told;

static void note_flags(const struct oriel_conflict *conflict, void *closure)
{
    (void)closure;
    flags_told = conflict->earlier.flags;
}

static void get_and_flush_another(oriel_shm_offset history)
{
    get_and_let_stand(history);
    oriel_history_flag(history, 0, ORIEL_ACCESS_FLUSHED_OTHER);
}

static void put_and_see_flags(oriel_shm_offset history)
{
    struct oriel_access access = access_by(1, ORIEL_ACCESS_PUT);
    struct oriel_access_extent run = {PART, PART, 1, 0};
    know_all(1);
    oriel_history_add(history, &access, &run, 1, note_flags, NULL);
    EXPECT(flags_told == ORIEL_ACCESS_FLUSHED_OTHER);
    complete(history, 1);
}
TWO(loans_are_flagged, get_and_flag, get_and_flush_another, put_and_see_flags, complete_mine,
    put_behind_it)

/* A member of a group completes with the group. */
static void get_of_a_group(oriel_shm_offset history)
{
    const uint64_t group = ORIEL_ACCESS_GROUP | 5;
    struct oriel_access access = access_by(0, ORIEL_ACCESS_GET);
    get_often(history, 0, 0);
    access.group = group;
    for (int i = 0; i < 2; i++) {
        uint64_t before = lent;
        EXPECT(come_wide_in(history, &access, 0, WIDE) == 0 && lent == before + 1);
        if (i == 0) {
            oriel_history_complete_one(history, group, oriel_order_now());
        } else {
            oriel_history_complete_one(history, group + 1, oriel_order_now());
            oriel_history_complete(history, 0, group + 1, oriel_order_now());
        }
    }
}

static void put_once(oriel_shm_offset history)
{
    know_all(1);
    EXPECT(put(history, 1, 0, WIDE) == 1);
    complete(history, 1);
}

static void complete_the_group(oriel_shm_offset history)
{
    oriel_history_complete(history, 0, ORIEL_ACCESS_GROUP | 5, oriel_order_now());
}
TWO(loans_may_be_of_a_group, complete_groups, get_of_a_group, put_once, complete_the_group,
    put_behind_it)

/* When there are many records, those known to all are dropped, except leased ones. */
static void crowd_and_get_again(oriel_shm_offset history)
{
    for (int i = 0; i < 2 * ORIEL_HISTORY_SWEEP_FIRST; i++) {
        EXPECT(put(history, 0, 2 * WIDE + (int64_t)i * 1000, 300 + i % 7) == 0);
        complete(history, 0);
        oriel_order_raise();
    }
    uint64_t before = lent;
    EXPECT(get(history, 0, 0, WIDE) == 0 && lent == before + 1);
}

static void put_unordered(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 0, WIDE) == 1);
    complete(history, 1);
}
TWO(loans_stay_though_all_know_them, crowd_what_is_known, get_one, know_the_first,
    crowd_and_get_again, put_unordered)

/* More records than lines; the process returns to half of them when the other has forgotten it. */
static void get_many(oriel_shm_offset history, int from)
{
    for (int turn = 0; turn < 3; turn++)
        for (int i = from; i < MANY; i++) {
            for (int k = 0; k < 3; k++) {
                EXPECT(get(history, 0, (int64_t)i * WIDE, PART) == 0);
                complete(history, 0);
            }
        }
}

static void get_all(oriel_shm_offset history)
{
    get_many(history, 0);
}

static void get_half_again(oriel_shm_offset history)
{
    oriel_order_raise();
    get_many(history, MANY / 2);
}

static void put_many(oriel_shm_offset history)
{
    for (int i = 0; i < MANY; i++) {
        EXPECT(put(history, 1, (int64_t)i * WIDE, PART) == (i < MANY / 2 ? 0 : 1));
        complete(history, 1);
    }
}
TWO(loans_r6_lines_go_to_other_records, get_and_put_many, get_all, know_the_first, get_half_again,
    put_many)

/* A part far from the one for which its record was leased is still found. */
static void get_a_far_part(oriel_shm_offset history)
{
    get_often(history, 0, 2 * FAR); /* has the first line */
    for (int i = 0; i < 5; i++) {
        EXPECT(get(history, 0, 0, FAR + WIDE) == 0);
        complete(history, 0);
    }
    uint64_t before = lent;
    for (int i = 0; i < 2; i++) {
        EXPECT(get(history, 0, FAR, PART) == 0);
        complete(history, 0);
    }
    EXPECT(lent == before + 2);
}

static void put_far_and_near(oriel_shm_offset history)
{
    EXPECT(put(history, 1, FAR, PART) == 1);
    EXPECT(put(history, 1, 0, PART) == 1);
    complete(history, 1);
}
TWO(loans_are_found_far_from_where_they_began, get_far_and_near, get_a_far_part, put_far_and_near)

/* One history has all lines, and another one soon gets some of them. */
static void get_from_two(int rank)
{
    oriel_shm_offset history = begin(rank);
    oriel_shm_offset other = shared(rank, oriel_history_make);
    if (rank == 0) {
        get_all(history);
        uint64_t before = lent;
        for (int i = 0; i < 20 && lent == before; i++) {
            EXPECT(get(other, 0, 0, WIDE) == 0);
            complete(other, 0);
        }
        EXPECT(lent > before);
    }
    team_meet();
    if (rank == 1) {
        for (int i = 0; i < MANY; i++) {
            EXPECT(put(history, 1, (int64_t)i * WIDE, PART) == 1);
            complete(history, 1);
        }
        EXPECT(put(other, 1, WIDE - 8, 8) == 1);
        complete(other, 1);
    }
    team_meet();
    oriel_history_leave(other);
    end(history);
}

static void loans_r6_lines_go_to_other_histories(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, get_from_two);
}

/* A process was killed in the middle of a change: the history is emptied, and its leases end. */
static void put_where_all_is_emptied(oriel_shm_offset history)
{
    uint32_t *busy = (uint32_t *)((char *)oriel_shm_at(history) + sizeof(struct oriel_shm_lock));
    *busy = 1;
    EXPECT(put(history, 1, 0, PART) == 0);
    complete(history, 1);
}

static void get_and_find_that(oriel_shm_offset history)
{
    uint64_t before = lent;
    EXPECT(get(history, 0, 0, WIDE) == 1 && lent == before);
    complete(history, 0);
}
TWO(loans_r6_end_where_a_history_is_emptied, lend_and_empty, get_one, put_where_all_is_emptied,
    get_and_find_that)

/* --- aliased histories --- */

/* An access that the other history already has is compared with a repeated access later. */
static void get_beside_what_was_put(int rank)
{
    oriel_shm_offset history = begin(rank);
    oriel_shm_offset other = shared(rank, oriel_history_make);
    if (rank == 0)
        get_often(history, 0, 0);
    else
        EXPECT(put(other, 1, 0, WIDE) == 0);
    team_meet();
    if (rank == 0) {
        oriel_history_beside((struct oriel_history_bytes){history, 0},
                             (struct oriel_history_bytes){other, 0}, WIDE);
        for (int i = 0; i < 5; i++) {
            EXPECT(get(history, 0, 0, WIDE) == 1);
            complete(history, 0);
        }
    }
    team_meet();
    oriel_history_leave(other);
    end(history);
}

static void loans_r2_meet_who_comes_beside(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, get_beside_what_was_put);
}

/* With an argument: only the test of that name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loans_r2_meet_who_comes),
        cmocka_unit_test(loans_r6_are_of_a_history_that_stands),
        cmocka_unit_test(loans_are_not_told_when_ordered),
        cmocka_unit_test(loans_of_several_stand_beside_each_other),
        cmocka_unit_test(loans_r1_are_not_what_meets_something),
        cmocka_unit_test(loans_r4_have_one_number),
        cmocka_unit_test(loans_r3_have_a_new_number),
        cmocka_unit_test(loans_r5_stay_while_a_part_is_pending),
        cmocka_unit_test(loans_may_have_another_beside),
        cmocka_unit_test(loans_are_flagged),
        cmocka_unit_test(loans_may_be_of_a_group),
        cmocka_unit_test(loans_stay_though_all_know_them),
        cmocka_unit_test(loans_r6_lines_go_to_other_records),
        cmocka_unit_test(loans_are_found_far_from_where_they_began),
        cmocka_unit_test(loans_r6_lines_go_to_other_histories),
        cmocka_unit_test(loans_r6_end_where_a_history_is_emptied),
        cmocka_unit_test(loans_r2_meet_who_comes_beside),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
