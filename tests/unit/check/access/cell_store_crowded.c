/* Cells with more small accesses than they have room for. Once few are left, a cell is short again
 * with all remaining ones, and outstanding accesses stay where their process will complete them.
 * Processes with random delays. */
#include "check_puts.h"

enum { ROUNDS = 2000, OFFSETS = 10, GETS = 4, LAST = 60, WIDE = 4096, SHM_BYTES = 64 << 20 };

/* Two bytes each, which do not merge and form no stride. */
static const int64_t offsets[OFFSETS] = {0, 28, 4, 52, 16, 40, 8, LAST, 32, 20};

static uint64_t bytes_of(oriel_shm_offset history)
{
    uint64_t accesses;
    uint64_t bytes;
    oriel_history_size(history, &accesses, &bytes);
    return bytes;
}

static oriel_shm_offset begin(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    return shared(rank, oriel_history_make);
}

static void end(oriel_shm_offset history)
{
    team_barrier();
    oriel_history_leave(history);
    oriel_order_stop();
}

static void put_and_complete(oriel_shm_offset history, int rank, int64_t offset, uint64_t len_bytes)
{
    EXPECT(put(history, rank, offset, len_bytes) == 0);
    complete(history, rank);
    oriel_order_raise(); /* complete accesses with different numbers do not merge */
}

static void put_of_group(oriel_shm_offset history, int rank, int64_t offset, uint64_t group)
{
    uint64_t conflicts = 0;
    struct oriel_access access = access_by(rank, ORIEL_ACCESS_PUT);
    struct oriel_access_extent run = {offset, 2, 1, 0};
    access.group = group;
    oriel_history_add(history, &access, &run, 1, count_it, &conflicts);
    EXPECT(conflicts == 0);
}

/* --- one process works; the other one, which runs on, learns nothing of it: nothing is dropped as
 * known to all --- */

static void crowd_and_clear(int rank)
{
    oriel_shm_offset history = begin(rank);
    if (rank == 0)
        put_and_complete(history, rank, 0, 2);
    uint64_t least = bytes_of(history);
    for (int round = 0; round < 3 && rank == 0; round++) {
        for (int i = 0; i < OFFSETS; i++)
            put_and_complete(history, rank, offsets[i], 2);
        EXPECT(bytes_of(history) == least + sizeof(struct oriel_cell));
        put_and_complete(history, rank, 0, ORIEL_CELL_BYTES);
        EXPECT(bytes_of(history) == least);
    }
}

static void crowded_cells_become_short(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, crowd_and_clear);
}

static void crowd_and_clear_again(int rank)
{
    repeats_access = true;
    crowd_and_clear(rank);
}

static void crowded_cells_are_compacted_by_repeated_accesses(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, crowd_and_clear_again);
}

/* The last slot is the eighth, outside the cell's first part; all others are covered before it is
 * complete. */
static void leave_the_last(int rank)
{
    const uint64_t group = ORIEL_ACCESS_GROUP | 1;
    oriel_shm_offset history = begin(rank);
    bool right = true;
    if (rank == 0) {
        put_and_complete(history, rank, 0, 2);
        uint64_t least = bytes_of(history);
        for (int i = 1; offsets[i] != LAST; i++)
            put_and_complete(history, rank, offsets[i], 2);
        put_of_group(history, rank, LAST, group);
        put_and_complete(history, rank, 0, LAST);
        right &= bytes_of(history) == least + sizeof(struct oriel_cell);
        oriel_history_complete(history, rank, group, oriel_order_now());
        put_and_complete(history, rank, 0, LAST - 2); /* the rest of the one before it stays, too */
        right &= bytes_of(history) == least;
        right &= put(history, rank, LAST, 1) == 0;
        complete(history, rank);
    }
    team_barrier();
    if (rank == 1) {
        right &= put(history, rank, LAST + 1, 1) == 1;
        right &= put(history, rank, LAST - 2, 1) == 1;
        right &= put(history, rank, LAST + 2, 1) == 0;
    }
    end(history);
    EXPECT(right);
}

static void crowded_cells_preserve_the_remaining_accesses(void **state)
{
    (void)state;
    team_run(2, SHM_BYTES, 0, leave_the_last);
}

/* --- concurrent: two of three put to the same bytes of a cell that gets fill, each round in
 * another cell --- */

static void crowd_by_gets(oriel_shm_offset history, int rank, int64_t at, int first)
{
    for (int i = first; i < first + GETS; i++) {
        uint64_t conflicts = 0;
        struct oriel_access access = access_by(rank, ORIEL_ACCESS_GET);
        struct oriel_access_extent run = {at + 16 + (7 * i + rank) % 15 * 3, 2, 1, 0};
        oriel_history_add(history, &access, &run, 1, count_it, &conflicts);
        EXPECT(conflicts == 0);
    }
    oriel_history_complete(history, rank, 0, oriel_order_now());
}

static void put_in_crowds(int rank)
{
    oriel_shm_offset history = begin(rank);
    for (int round = 0; round < ROUNDS; round++) {
        int idle = round % team->n;
        int64_t at = (int64_t)(round % 64) * WIDE + ORIEL_CELL_BYTES * (round % 3);
        if (rank == 0)
            atomic_store(&team->words[0], 0);
        team_barrier();
        crowd_by_gets(history, rank, at, round);
        if (rank != idle)
            atomic_fetch_add(&team->words[0], put(history, rank, at, 8));
        complete(history, rank);
        crowd_by_gets(history, rank, at, round / 2);
        team_barrier();
        EXPECT(atomic_load(&team->words[0]) >= 1);
        if (rank == idle) /* the next one at this offset meets nothing of this round */
            oriel_history_forget(history, at, WIDE);
        team_barrier();
    }
    end(history);
}

static void crowded_cells_s1_accesses_conflict(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, put_in_crowds);
}

static void put_in_crowds_again(int rank)
{
    repeats_access = true;
    put_in_crowds(rank);
}

static void crowded_cells_s1_repeated_accesses_conflict(void **state)
{
    (void)state;
    team_run(3, SHM_BYTES, 0, put_in_crowds_again);
}

/* With an argument: only the test of that name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowded_cells_become_short),
        cmocka_unit_test(crowded_cells_are_compacted_by_repeated_accesses),
        cmocka_unit_test(crowded_cells_preserve_the_remaining_accesses),
        cmocka_unit_test(crowded_cells_s1_accesses_conflict),
        cmocka_unit_test(crowded_cells_s1_repeated_accesses_conflict),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
