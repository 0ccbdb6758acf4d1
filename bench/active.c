/* Active target: fences with and without puts, and post-start-complete-wait by a pair, around a
 * ring, and among all ranks; and window creation, which is collective too. The data change with
 * every operation, and a rank checks what was put to it after each epoch. timing.c drives the
 * tables at the end. */
#include "rma.h"

#include <string.h>

enum { FENCE_CHECKS = 2, CREATED_BYTES = 4096 };

static uint64_t value_of(const struct rma_run *run, int rank, uint64_t operation)
{
    return data_word(rma_origin_seed(run, rank), 0) + operation;
}

static int right_of(const struct rma_run *run)
{
    return (run->rank + 1) % run->ranks;
}

static int left_of(const struct rma_run *run)
{
    return (run->rank + run->ranks - 1) % run->ranks;
}

static void put_word(struct rma_run *run, int to, size_t word, uint64_t value)
{
    const size_t at = word * sizeof value;
    memcpy(run->buffer + at, &value, sizeof value);
    MPI_Put(run->buffer + at, 1, MPI_UINT64_T, to, run->begin[to] + (MPI_Aint)at, 1, MPI_UINT64_T,
            run->win);
}

static void expect_word(struct rma_run *run, size_t word, uint64_t value)
{
    uint64_t found;
    memcpy(&found, run->mine + word * sizeof found, sizeof found);
    run->wrong |= found != value;
}

/* ---- fence ---- */

static void fence(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++)
        MPI_Win_fence(0, run->win);
}

static void fence_open(struct rma_run *run)
{
    MPI_Win_fence(MPI_MODE_NOPRECEDE, run->win);
}

/* Every rank puts to its right neighbour. Words alternate: the neighbour may be one epoch ahead,
 * also in the next batch. */
static void fence_put(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        size_t word = run->batch % 2 * 2 + run->done % 2;
        put_word(run, right_of(run), word, value_of(run, run->rank, run->done));
        MPI_Win_fence(0, run->win);
        expect_word(run, word, value_of(run, left_of(run), run->done));
    }
}

/* Fences alone leave no data: untimed puts verify that they synchronise. */
static void fence_check(struct rma_run *run)
{
    MPI_Win_fence(MPI_MODE_NOPRECEDE, run->win);
    fence_put(run, FENCE_CHECKS);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, run->win);
}

/* ---- post, start, complete, wait ---- */

static void pair_setup(struct rma_run *run)
{
    run->to = rma_group_make(&(int){1}, 1);
    run->from = rma_group_make(&(int){0}, 1);
}

static void ring_setup(struct rma_run *run)
{
    run->to = rma_group_make(&(int){right_of(run)}, 1);
    run->from = rma_group_make(&(int){left_of(run)}, 1);
}

static void all_setup(struct rma_run *run)
{
    int others[RMA_RANKS], count = 0;
    for (int rank = 0; rank < run->ranks; rank++)
        if (rank != run->rank)
            others[count++] = rank;
    run->to = rma_group_make(others, count);
    run->from = rma_group_make(others, count);
}

static void pair(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        if (run->rank == 0) {
            MPI_Win_start(run->to, 0, run->win);
            put_word(run, 1, 0, value_of(run, 0, run->done));
            MPI_Win_complete(run->win);
        } else if (run->rank == 1) {
            MPI_Win_post(run->from, 0, run->win);
            MPI_Win_wait(run->win);
            expect_word(run, 0, value_of(run, 0, run->done));
        }
    }
}

/* The neighbour puts again only after the next post: one word is enough. */
static void ring(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_post(run->from, 0, run->win);
        MPI_Win_start(run->to, 0, run->win);
        put_word(run, right_of(run), 0, value_of(run, run->rank, run->done));
        MPI_Win_complete(run->win);
        MPI_Win_wait(run->win);
        expect_word(run, 0, value_of(run, left_of(run), run->done));
    }
}

/* Rank r's word is number r everywhere. */
static void all_to_all(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_post(run->from, 0, run->win);
        MPI_Win_start(run->to, 0, run->win);
        for (int step = 1; step < run->ranks; step++)
            put_word(run, (run->rank + step) % run->ranks, (size_t)run->rank,
                     value_of(run, run->rank, run->done));
        MPI_Win_complete(run->win);
        MPI_Win_wait(run->win);
        for (int from = 0; from < run->ranks; from++)
            if (from != run->rank)
                expect_word(run, (size_t)from, value_of(run, from, run->done));
    }
}

/* ---- window creation ---- */

static void create_free(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        struct rma_run other = *run;
        rma_window_open(&other, CREATED_BYTES);
        run->wrong |= other.mine == NULL || other.win == MPI_WIN_NULL;
        rma_window_close(&other);
    }
}

/* Creates another such window, and uses it. */
static void create_check(struct rma_run *run)
{
    struct rma_run other = *run;
    rma_window_open(&other, CREATED_BYTES);
    rma_window_exchange(&other);
    fence_check(&other);
    rma_window_close(&other);
    run->wrong |= other.wrong;
}

#define ACTIVE(its_name, its_setup, its_repeat, its_check)                                         \
    {                                                                                              \
        .name = its_name, .kind = RMA_ACTIVE, .setup = its_setup, .repeat = its_repeat,            \
        .check = its_check                                                                         \
    }

const struct rma_pattern rma_active[] = {
    ACTIVE("fence", NULL, fence, fence_check),
    ACTIVE("fence-put", fence_open, fence_put, NULL),
    ACTIVE("pscw-pair", pair_setup, pair, NULL),
    ACTIVE("pscw-ring", ring_setup, ring, NULL),
    ACTIVE("pscw-all", all_setup, all_to_all, NULL),
    {0},
};

const struct rma_pattern rma_creation[] = {
    ACTIVE("create-free", NULL, create_free, create_check),
    {0},
};
