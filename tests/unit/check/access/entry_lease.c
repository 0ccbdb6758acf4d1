/* Leased cell entries: accesses that the origin makes without the cell's lock are compared with
 * every later access, in any timing. Ordered accesses are never reported. In this build an entry is
 * leased at its first access. Processes with random delays. */
#include "check/access/aliased_windows.h"

#include "check_puts.h"

enum { ROUNDS = 2000, CELL = ORIEL_CELL_BYTES, WIDE = 4096, BOARD_BYTES = 128 << 20, MANY = 40000 };

static uint64_t get(oriel_shm_offset history, int rank, int64_t offset)
{
    return come(history, rank, ORIEL_ACCESS_GET, offset, 8);
}

static uint64_t add(oriel_shm_offset history, int rank, int64_t offset)
{
    return come(history, rank, ORIEL_ACCESS_ACCUMULATE, offset, 8);
}

static oriel_shm_offset begin(int rank)
{
    comes_again = true;
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    return shared(rank, oriel_history_make);
}

static void end(oriel_shm_offset history)
{
    team_meet();
    oriel_history_leave(history);
    oriel_entry_lease_stop();
    oriel_order_stop();
}

/* Once as the first access in its cell, and twice more. */
static void get_often(oriel_shm_offset history, int rank, int64_t at)
{
    for (int i = 0; i < 3; i++) {
        EXPECT(get(history, rank, at) == 0);
        complete(history, rank);
    }
}

/* --- concurrent --- */

static void get_beside_a_put(oriel_shm_offset history, int rank, int putter, int64_t at,
                             uint64_t len_bytes)
{
    if (rank == putter)
        know_all(rank);
    team_meet();
    atomic_fetch_add(&team->words[0],
                     rank == putter ? put(history, rank, at, len_bytes) : get(history, rank, at));
    team_meet();
    EXPECT(atomic_load(&team->words[0]) >= (uint64_t)team->n - 1);
    complete(history, rank);
}

/* All but one get through leased entries. The remaining rank, which is ordered after all their
 * earlier gets, puts. */
static void get_beside_puts(int rank, bool remade)
{
    oriel_shm_offset history = begin(rank);
    for (int round = 0; round < ROUNDS; round++) {
        int putter = round % team->n;
        /* else all stays leased until the history is freed */
        bool puts = !remade || round % 2 == 1;
        int64_t at = remade ? 0 : (int64_t)(round % 64) * WIDE + CELL * (round % 3);
        uint64_t len_bytes = round % 4 == 0 ? 2048 : 8;
        if (rank == 0)
            atomic_store(&team->words[0], 0);
        team_meet();
        if (rank != putter)
            get_often(history, rank, at);
        team_meet();
        if (puts)
            get_beside_a_put(history, rank, putter, at, len_bytes);
        team_meet();
        if (remade) {
            history = history_anew(rank, history);
        } else if (rank == putter) {
            oriel_history_forget(history, at, WIDE);
        }
    }
    end(history);
}

static void get_beside_puts_of_one_history(int rank)
{
    get_beside_puts(rank, false);
}

static void lent_l2_meet_who_comes(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, get_beside_puts_of_one_history);
}

static void get_beside_puts_of_many_histories(int rank)
{
    get_beside_puts(rank, true);
}

static void lent_l4_are_of_a_history_that_stands(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, get_beside_puts_of_many_histories);
}

/* A turn circulates with full knowledge: no rank is reported for gets through leased entries, or
 * puts. */
static void pass_the_turn(int rank)
{
    oriel_shm_offset history = begin(rank);
    for (uint64_t turn = (uint64_t)rank; turn < ROUNDS; turn += (uint64_t)team->n) {
        while (atomic_load(&team->words[1]) != turn)
            sched_yield();
        know_all(rank);
        for (int i = 0; i < 4; i++) {
            EXPECT(get(history, rank, 8 * (i % 2)) == 0);
            complete(history, rank);
        }
        if (turn % 5 == 0) {
            EXPECT(put(history, rank, 0, 8) == 0);
            complete(history, rank);
        }
        atomic_store(&team->words[1], turn + 1);
    }
    end(history);
}

static void lent_are_not_told_when_ordered(void **state)
{
    (void)state;
    team_run(3, BOARD_BYTES, 0, pass_the_turn);
}

/* --- one after the other: the second knows what the first has completed --- */

static void run_two(void (*first)(oriel_shm_offset history),
                    void (*second)(oriel_shm_offset history),
                    void (*third)(oriel_shm_offset history),
                    void (*fourth)(oriel_shm_offset history), int rank)
{
    void (*const steps[])(oriel_shm_offset history) = {first, second, third, fourth};
    oriel_shm_offset history = begin(rank);
    for (int i = 0; i < 4; i++) {
        if (rank == i % 2)
            steps[i](history);
        team_meet();
    }
    end(history);
}

static void nothing(oriel_shm_offset history)
{
    (void)history;
}

static void get_twice_and_again(oriel_shm_offset history)
{
    get_often(history, 0, 0);
    get_often(history, 0, 8);
    EXPECT(get(history, 0, 0) == 0);
    EXPECT(oriel_entry_lease_find(oriel_entry_lease_key(history, 0),
                                  oriel_entry_lease_line_of(held)->entries[0].what) == held);
    complete(history, 0);
}

static void put_the_second(oriel_shm_offset history)
{
    know_all(1);
    EXPECT(put(history, 1, 8, 8) == 0);
    complete(history, 1);
}

/* In the line of the first. */
static void get_a_third(oriel_shm_offset history)
{
    know_all(0);
    get_often(history, 0, 24);
    EXPECT(get(history, 0, 24) == 0); /* and outstanding */
}

static void put_the_first(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 0, 8) == 0); /* it is ordered */
    complete(history, 1);
    EXPECT(put(history, 1, 24, 8) == 1);
}

static void recall_one_of_two(int rank)
{
    run_two(get_twice_and_again, put_the_second, get_a_third, put_the_first, rank);
}

static void lent_l4_come_home_before_a_line_is_used_anew(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, recall_one_of_two);
}

static void put_and_let_stand(oriel_shm_offset history)
{
    EXPECT(put(history, 0, 0, 8) == 0);
    comes_again = false;
    EXPECT(put(history, 0, WIDE, 2048) == 0);
}

static void get_each_time(oriel_shm_offset history)
{
    for (int i = 0; i < 5; i++) {
        EXPECT(get(history, 1, 0) == 1);
        complete(history, 1);
        EXPECT(get(history, 1, WIDE) == 1);
        complete(history, 1);
    }
}

static void get_beside_what_stands(int rank)
{
    run_two(put_and_let_stand, get_each_time, nothing, nothing, rank);
}

static void lent_l1_is_not_what_meets_something(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, get_beside_what_stands);
}

/* Both add, and the later one would replace the other. */
static void add_often(oriel_shm_offset history)
{
    for (int i = 0; i < 3; i++) {
        EXPECT(add(history, 0, 0) == 0);
        complete(history, 0);
    }
}

static void add_behind(oriel_shm_offset history)
{
    know_all(1);
    for (int i = 0; i < 3; i++) {
        comes_again = i > 0;
        EXPECT(add(history, 1, 0) == 0);
        complete(history, 1);
    }
}

static void add_again(oriel_shm_offset history)
{
    know_all(0);
    EXPECT(add(history, 0, 0) == 0);
}

static void put_over_it(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 0, 8) == 1);
}

static void add_in_turn(int rank)
{
    run_two(add_often, add_behind, add_again, put_over_it, rank);
}

static void lent_give_way_to_nobody(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, add_in_turn);
}

/* The same for a repeated call that has met the other in another cell. */
static void add_in_two_cells(oriel_shm_offset history)
{
    add_often(history);
    EXPECT(add(history, 0, CELL) == 0);
    complete(history, 0);
}

static void add_in_both_behind(oriel_shm_offset history)
{
    know_all(1);
    for (int cell = 2; cell >= 0; cell--) {
        EXPECT(add(history, 1, cell * CELL) == 0);
        complete(history, 1);
    }
}

static void add_again_in_turn(int rank)
{
    run_two(add_in_two_cells, add_in_both_behind, add_again, put_over_it, rank);
}

static void lent_give_way_to_nobody_who_comes_again(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, add_again_in_turn);
}

static void get_then_forget(oriel_shm_offset history)
{
    get_often(history, 0, 0);
    oriel_history_forget(history, 0, 8);
    EXPECT(get(history, 0, 0) == 0);
}

static void put_unordered(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 0, 8) == 1);
}

static void forget_between(int rank)
{
    run_two(get_then_forget, put_unordered, nothing, nothing, rank);
}

static void lent_are_forgotten(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, forget_between);
}

/* It moves to the list of outstanding accesses, and completes there. */
static void get_then_end(oriel_shm_offset history)
{
    get_often(history, 0, 0);
    EXPECT(get(history, 0, 0) == 0);
    struct oriel_cell_entry *home = oriel_entry_lease_end(held);
    EXPECT(home != NULL && home != held);
    oriel_pending_list_add(history, NULL, home, 0, 0);
    held = NULL;
}

static void put_and_find_it(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 0, 8) == 1);
    oriel_history_forget(history, 0, 0);
}

static void complete_it(oriel_shm_offset history)
{
    complete(history, 0);
}

static void put_behind_it(oriel_shm_offset history)
{
    complete(history, 1);
    know_all(1);
    EXPECT(put(history, 1, 4, 8) == 0);
}

static void end_what_is_pending(int rank)
{
    run_two(get_then_end, put_and_find_it, complete_it, put_behind_it, rank);
}

static void lent_may_be_listed(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, end_what_is_pending);
}

/* --- crowds --- */

static void crowd(oriel_shm_offset history, int rank, int first, int last)
{
    comes_again = false;
    for (int i = first; i < last; i++) {
        EXPECT(come(history, rank, ORIEL_ACCESS_PUT, 16 + 6 * ((3 * i) % 7), 2) == 0);
        complete(history, rank);
        oriel_order_raise();
    }
    comes_again = true;
}

/* A leased entry and its neighbour, which is complete with the same number, do not merge. */
static void get_neighbours(oriel_shm_offset history)
{
    EXPECT(get(history, 0, CELL) == 0);
    complete(history, 0);
    EXPECT(get(history, 0, 0) == 0);
    complete(history, 0);
    comes_again = false;
    EXPECT(get(history, 0, 8) == 0);
    complete(history, 0);
    crowd(history, 0, 0, 7);
}

static void know_them(oriel_shm_offset history)
{
    (void)history;
    know_all(1);
}

static void get_the_first_again(oriel_shm_offset history)
{
    EXPECT(get(history, 0, 0) == 0);
}

static void put_to_the_neighbour(oriel_shm_offset history)
{
    EXPECT(put(history, 1, 8, 8) == 0);
    complete(history, 1);
    EXPECT(put(history, 1, 0, 8) >= 1);
}

static void crowd_neighbours(int rank)
{
    run_two(get_neighbours, know_them, get_the_first_again, put_to_the_neighbour, rank);
}

static void lent_stay_as_they_are_in_a_crowd(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, crowd_neighbours);
}

/* When a cell is full, entries known to all are dropped, except leased ones. */
static void get_one(oriel_shm_offset history)
{
    EXPECT(get(history, 0, CELL) == 0);
    complete(history, 0);
    EXPECT(get(history, 0, 0) == 0);
    complete(history, 0);
}

static void crowd_and_get_again(oriel_shm_offset history)
{
    crowd(history, 0, 0, 7);
    EXPECT(get(history, 0, 0) == 0);
}

static void crowd_what_is_known(int rank)
{
    run_two(get_one, know_them, crowd_and_get_again, put_unordered, rank);
}

static void lent_stay_though_all_know_them(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, crowd_what_is_known);
}

/* It is outside the cell's first part, which has room again later. */
static void get_behind_a_crowd(oriel_shm_offset history)
{
    EXPECT(get(history, 0, CELL) == 0);
    complete(history, 0);
    crowd(history, 0, 0, 7);
    get_often(history, 0, 0);
    comes_again = false;
    EXPECT(put(history, 0, 8, CELL - 8) == 0);
    complete(history, 0);
    comes_again = true;
}

static void crowd_and_clear(int rank)
{
    run_two(get_behind_a_crowd, know_them, get_the_first_again, put_unordered, rank);
}

static void lent_stay_lent_when_a_cell_becomes_short(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, crowd_and_clear);
}

/* More cells than lines; the process returns to half of them when the other has forgotten it. */
static int64_t one_of_many(int i)
{
    return (int64_t)(i * UINT64_C(7919) % MANY) * CELL;
}

static void get_many(oriel_shm_offset history, int64_t from)
{
    for (int i = 0; i < 3 * MANY; i++) {
        if (one_of_many(i) < from)
            continue;
        EXPECT(get(history, 0, one_of_many(i)) == 0);
        complete(history, 0);
    }
}

static void get_all(oriel_shm_offset history)
{
    get_many(history, 0);
}

static void get_half_again(oriel_shm_offset history)
{
    oriel_order_raise();
    get_many(history, MANY / 2 * CELL);
}

static void put_many(oriel_shm_offset history)
{
    for (int i = 0; i < MANY; i++) {
        EXPECT(put(history, 1, one_of_many(i), 8) == (one_of_many(i) < MANY / 2 * CELL ? 0 : 1));
        complete(history, 1);
    }
}

static void get_and_put_many(int rank)
{
    run_two(get_all, know_them, get_half_again, put_many, rank);
}

static void lent_l4_lines_go_to_other_cells(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, get_and_put_many);
}

/* --- aliased histories --- */

/* An access that the other history already has is compared with a repeated access later. */
static void get_beside_what_was_put(int rank)
{
    oriel_shm_offset history = begin(rank);
    oriel_shm_offset other = shared(rank, oriel_history_make);
    if (rank == 0)
        get_often(history, 0, 0);
    else
        EXPECT(put(other, 1, 0, 8) == 0);
    team_meet();
    if (rank == 0) {
        oriel_history_beside((struct oriel_history_bytes){history, 0},
                             (struct oriel_history_bytes){other, 0}, WIDE);
        EXPECT(get(history, 0, 0) == 1);
    }
    team_meet();
    oriel_history_leave(other);
    end(history);
}

static void lent_l2_meet_who_comes_beside(void **state)
{
    (void)state;
    team_run(2, BOARD_BYTES, 0, get_beside_what_was_put);
}

/* With an argument: only the test of that name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lent_l1_is_not_what_meets_something),
        cmocka_unit_test(lent_l2_meet_who_comes),
        cmocka_unit_test(lent_l2_meet_who_comes_beside),
        cmocka_unit_test(lent_l4_are_of_a_history_that_stands),
        cmocka_unit_test(lent_l4_come_home_before_a_line_is_used_anew),
        cmocka_unit_test(lent_l4_lines_go_to_other_cells),
        cmocka_unit_test(lent_are_not_told_when_ordered),
        cmocka_unit_test(lent_give_way_to_nobody),
        cmocka_unit_test(lent_give_way_to_nobody_who_comes_again),
        cmocka_unit_test(lent_are_forgotten),
        cmocka_unit_test(lent_may_be_listed),
        cmocka_unit_test(lent_stay_as_they_are_in_a_crowd),
        cmocka_unit_test(lent_stay_though_all_know_them),
        cmocka_unit_test(lent_stay_lent_when_a_cell_becomes_short),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
