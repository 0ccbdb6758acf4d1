/* accumulate_ordering: accumulates of one origin to one location happen in the order of its calls,
 * without a flush between them (MPI-4.1, 13.7.2). Meanwhile other origins work on neighbouring
 * locations. Without ordering, commutative sums are still right. A plain MPI program, run by the
 * test rows. */
#include "harness.h"

#include <string.h>

enum { CELLS = 40, WIDE = 16 };

/* The memory of rank 0: CELLS words for each origin. The origins' words are interleaved and share
 * cache lines. */
struct area {
    struct window window;
    MPI_Datatype mine;     /* this origin's words, one in world_size */
    MPI_Datatype backward; /* the same words, in reverse order */
    MPI_Aint first;
};

static struct area area_make(enum window_kind kind, MPI_Aint shift)
{
    MPI_Aint displs[CELLS];
    struct area area;
    area.window = window_make(kind, world_rank == 0 ? (MPI_Aint)CELLS * 8 * world_size + 8 : 8, 1,
                              MPI_COMM_WORLD);
    MPI_Type_vector(CELLS, 1, world_size, MPI_INT64_T, &area.mine);
    for (int i = 0; i < CELLS; i++)
        displs[i] = (MPI_Aint)(CELLS - 1 - i) * 8 * world_size;
    MPI_Type_create_hindexed_block(CELLS, 1, displs, MPI_INT64_T, &area.backward);
    MPI_Type_commit(&area.mine);
    MPI_Type_commit(&area.backward);
    area.first = (MPI_Aint)8 * world_rank + shift;
    MPI_Win_lock_all(0, area.window.win);
    return area;
}

static void area_free(struct area *area)
{
    MPI_Win_unlock_all(area->window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Type_free(&area->mine);
    MPI_Type_free(&area->backward);
    window_free(&area->window);
}

static MPI_Aint cell(const struct area *area, int number)
{
    return area->first + (MPI_Aint)number * 8 * world_size;
}

static void replace_one(const struct area *area, int number, const int64_t *value)
{
    MPI_Accumulate(value, 1, MPI_INT64_T, 0, cell(area, number), 1, MPI_INT64_T, MPI_REPLACE,
                   area->window.win);
}

static void fetch_one(const struct area *area, int number, int64_t *value)
{
    MPI_Fetch_and_op(NULL, value, MPI_INT64_T, 0, cell(area, number), MPI_NO_OP, area->window.win);
}

static void replace_all(const struct area *area, const int64_t values[CELLS], MPI_Datatype layout)
{
    MPI_Accumulate(values, CELLS, MPI_INT64_T, 0, area->first, 1, layout, MPI_REPLACE,
                   area->window.win);
}

static void fetch_all(const struct area *area, int64_t values[CELLS], MPI_Datatype layout)
{
    MPI_Get_accumulate(NULL, 0, MPI_BYTE, values, CELLS, MPI_INT64_T, 0, area->first, 1, layout,
                       MPI_NO_OP, area->window.win);
}

static void settle(const struct area *area)
{
    MPI_Win_flush(0, area->window.win);
}

/* waw: single elements, whole arrays over them, and single elements over those; the last one
 * remains. */
static void write_write_round(const struct area *area, int64_t round, struct random *random)
{
    static int64_t low[CELLS], high[CELLS], seen[CELLS];
    int number = (int)random_below(random, CELLS);
    int64_t values[3] = {round * 1000 + 1, round * 1000 + 2, round * 1000 + 3};
    for (int i = 0; i < CELLS; i++) {
        low[i] = -round * CELLS - i;
        high[i] = round * CELLS + i;
    }
    replace_one(area, number, &values[0]);
    replace_all(area, low, area->mine);
    replace_one(area, number, &values[1]);
    replace_all(area, high, area->backward);
    replace_one(area, number, &values[2]);
    settle(area);
    fetch_all(area, seen, area->mine);
    settle(area);
    for (int i = 0; i < CELLS; i++)
        CHECK_EQUAL(seen[i], i == number ? values[2] : high[CELLS - 1 - i]);
}

static void write_after_write_is_ordered(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    for (MPI_Aint shift = 0; shift < 6; shift += 5) {
        struct area area = area_make(kind, shift);
        for (int64_t round = 1; round <= scaled_rounds(600) && !harness_failed(); round++)
            write_write_round(&area, round, &random);
        area_free(&area);
    }
}

/* raw: operations of every form see earlier accumulates. war: they do not see later accumulates. */
static void read_write_round(const struct area *area, int64_t round, struct random *random)
{
    static int64_t values[CELLS], seen_all[CELLS], later[CELLS], doubled[CELLS];
    int number = (int)random_below(random, CELLS);
    int64_t seen[6] = {0}, ten = 10, before = round, next = round + 1, other = -5;
    for (int i = 0; i < CELLS; i++) {
        values[i] = round * CELLS + i;
        later[i] = -1;
    }
    replace_all(area, values, area->mine);
    fetch_one(area, number, &seen[0]);
    MPI_Fetch_and_op(&ten, &seen[1], MPI_INT64_T, 0, cell(area, number), MPI_SUM, area->window.win);
    MPI_Fetch_and_op(&before, &seen[2], MPI_INT64_T, 0, cell(area, number), MPI_REPLACE,
                     area->window.win);
    MPI_Compare_and_swap(&next, &before, &seen[3], MPI_INT64_T, 0, cell(area, number),
                         area->window.win);
    MPI_Compare_and_swap(&other, &before, &seen[4], MPI_INT64_T, 0, cell(area, number),
                         area->window.win);
    fetch_all(area, seen_all, area->backward);
    MPI_Get_accumulate(values, CELLS, MPI_INT64_T, doubled, CELLS, MPI_INT64_T, 0, area->first, 1,
                       area->mine, MPI_SUM, area->window.win);
    replace_all(area, later, area->mine);
    fetch_one(area, number, &seen[5]);
    settle(area);
    CHECK_EQUAL(seen[0], values[number]);
    CHECK_EQUAL(seen[1], values[number]);
    CHECK_EQUAL(seen[2], values[number] + 10);
    CHECK_EQUAL(seen[3], before);
    CHECK_EQUAL(seen[4], next);
    CHECK_EQUAL(seen[5], -1);
    for (int i = 0; i < CELLS; i++) {
        CHECK_EQUAL(seen_all[CELLS - 1 - i], i == number ? next : values[i]);
        CHECK_EQUAL(doubled[i], i == number ? next : values[i]);
    }
}

static void reads_and_writes_are_ordered(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    for (MPI_Aint shift = 0; shift < 4; shift += 3) {
        struct area area = area_make(kind, shift);
        for (int64_t round = 1; round <= scaled_rounds(600) && !harness_failed(); round++)
            read_write_round(&area, round, &random);
        area_free(&area);
    }
}

/* rar: while the target's owner counts up, no later read of one origin sees an earlier count. */
static void reads_after_reads_are_ordered(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    int64_t seen[WIDE], latest = 0, one = 1;
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < scaled_rounds(800); round++) {
        if (world_rank == 0) {
            MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, window.win);
            MPI_Win_flush_local(0, window.win);
            continue;
        }
        for (int i = 0; i < WIDE; i++)
            MPI_Fetch_and_op(NULL, &seen[i], MPI_INT64_T, 0, 1, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        for (int i = 0; i < WIDE; i++) {
            CHECK(seen[i] >= latest, "read %lld after %lld", (long long)seen[i], (long long)latest);
            latest = seen[i];
        }
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Requests are no exception: their completion implies nothing about the target, the order of the
 * calls does. */
static void operations_with_requests_are_ordered(enum window_kind kind)
{
    struct area area = area_make(kind, 0);
    for (int64_t round = 1; round <= scaled_rounds(400) && !harness_failed(); round++) {
        int64_t values[3] = {round, -round, 7 * round}, seen = 0, old = 0;
        MPI_Request requests[4];
        MPI_Raccumulate(&values[0], 1, MPI_INT64_T, 0, area.first, 1, MPI_INT64_T, MPI_REPLACE,
                        area.window.win, &requests[0]);
        MPI_Raccumulate(&values[1], 1, MPI_INT64_T, 0, area.first, 1, MPI_INT64_T, MPI_REPLACE,
                        area.window.win, &requests[1]);
        MPI_Rget_accumulate(&values[2], 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, area.first, 1,
                            MPI_INT64_T, MPI_SUM, area.window.win, &requests[2]);
        MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, &seen, 1, MPI_INT64_T, 0, area.first, 1,
                            MPI_INT64_T, MPI_NO_OP, area.window.win, &requests[3]);
        for (int i = 3; i >= 0; i--)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        CHECK_EQUAL(old, -round);
        CHECK_EQUAL(seen, 6 * round);
        settle(&area);
    }
    area_free(&area);
}

/* Sums of all ranks on all words, with weaker ordering requested. */
static void sums_are_right_without_ordering(enum window_kind kind)
{
    static const char *const orderings[] = {"none", "rar", "waw,rar", "rar,raw,war,waw"};
    static int64_t ones[CELLS], totals[CELLS];
    (void)kind;
    for (int i = 0; i < CELLS; i++)
        ones[i] = i + 1;
    for (size_t k = 0; k < COUNT_OF(orderings); k++) {
        struct window window = {MPI_WIN_NULL, NULL, KIND_ANY};
        MPI_Info info;
        int rounds = scaled_rounds(400);
        MPI_Info_create(&info);
        MPI_Info_set(info, "accumulate_ordering", orderings[k]);
        MPI_Win_allocate(sizeof totals, 8, info, MPI_COMM_WORLD, &window.base, &window.win);
        MPI_Info_free(&info);
        window_watch(window.win);
        memset(window.base, 0, sizeof totals);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, window.win);
        for (int round = 0; round < rounds; round++) {
            MPI_Accumulate(ones, CELLS, MPI_INT64_T, 0, 0, CELLS, MPI_INT64_T, MPI_SUM, window.win);
            MPI_Accumulate(ones, 1, MPI_INT64_T, 0, round % CELLS, 1, MPI_INT64_T, MPI_SUM,
                           window.win);
        }
        MPI_Win_flush(0, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Get_accumulate(NULL, 0, MPI_INT64_T, totals, CELLS, MPI_INT64_T, 0, 0, CELLS,
                           MPI_INT64_T, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        for (int i = 0; i < CELLS; i++) {
            int64_t singles = rounds / CELLS + (i < rounds % CELLS);
            CHECK_EQUAL(totals[i], ((int64_t)rounds * (i + 1) + singles) * world_size);
        }
        barrier(MPI_COMM_WORLD);
        MPI_Win_unlock_all(window.win);
        MPI_Win_free(&window.win);
    }
}

static const struct test_case cases[] = {
    CASE(write_after_write_is_ordered, KINDS_ALL, 1),
    CASE(reads_and_writes_are_ordered, KINDS_ALL, 1),
    CASE(reads_after_reads_are_ordered, KINDS_ALL, 2),
    CASE(operations_with_requests_are_ordered, KINDS_ALL, 1),
    CASE(sums_are_right_without_ordering, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
