/* Atomic operations on one word: fetch_and_op and compare_and_swap by rank 0, and fetch_and_op by
 * all ranks at once. The word counts from a value that changes with every batch, so each fetched
 * value is predictable. timing.c drives the table at the end. */
#include "rma.h"

#include <string.h>

static const int target = 1, hot_target = 0;

/* Far below the largest number, so that the sums do not wrap. */
static int64_t first_value(const struct rma_run *run)
{
    return (int64_t)(data_word(run->batch, 0) >> 24);
}

static void counter_prepare(struct rma_run *run)
{
    int64_t first = first_value(run);
    data_fill(run->mine, RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    memcpy(run->mine, &first, sizeof first);
}

/* The word has the expected value, and its neighbours are unchanged. */
static void counter_check_sum(struct rma_run *run, uint64_t added)
{
    int64_t word;
    memcpy(&word, run->mine, sizeof word);
    run->wrong |= word != first_value(run) + (int64_t)added;
    run->wrong |= !data_holds_from(run->mine + sizeof word, sizeof word,
                                   RMA_GUARD_BYTES - sizeof word, rma_target_seed(run, run->rank));
}

static void counter_check(struct rma_run *run)
{
    if (run->rank == target)
        counter_check_sum(run, run->done);
}

static void fetch_and_op(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    const int64_t one = 1, first = first_value(run);
    const uint64_t end = run->done + count;
    int64_t before[RMA_SLOTS];
    while (run->done < end) { /* accumulates of one origin to one location take effect in order */
        uint64_t flight =
            (uint64_t)run->in_flight < end - run->done ? (uint64_t)run->in_flight : end - run->done;
        for (uint64_t i = 0; i < flight; i++) {
            before[i] = -1;
            MPI_Fetch_and_op(&one, &before[i], MPI_INT64_T, target, begin, MPI_SUM, run->win);
        }
        MPI_Win_flush(target, run->win);
        for (uint64_t i = 0; i < flight; i++)
            run->wrong |= before[i] != first + (int64_t)run->done++;
    }
}

static void compare_and_swap(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    const int64_t first = first_value(run);
    const uint64_t end = run->done + count;
    /* words[i] is compared, words[i + 1] is desired */
    int64_t words[RMA_SLOTS + 1], found[RMA_SLOTS];
    while (run->done < end) {
        uint64_t flight =
            (uint64_t)run->in_flight < end - run->done ? (uint64_t)run->in_flight : end - run->done;
        words[0] = first + (int64_t)run->done;
        for (uint64_t i = 0; i < flight; i++) {
            words[i + 1] = words[i] + 1;
            found[i] = -1;
            MPI_Compare_and_swap(&words[i + 1], &words[i], &found[i], MPI_INT64_T, target, begin,
                                 run->win);
        }
        MPI_Win_flush(target, run->win);
        for (uint64_t i = 0; i < flight; i++)
            run->wrong |= found[i] != words[i];
        run->done += flight;
    }
}

/* Every rank adds its number, counted from one, to the same word; its fetched values only grow. */
static void hot_fetch_and_op(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[hot_target];
    const int64_t mine = run->rank + 1;
    int64_t before = -1, last = first_value(run) - mine;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Fetch_and_op(&mine, &before, MPI_INT64_T, hot_target, begin, MPI_SUM, run->win);
        MPI_Win_flush(hot_target, run->win);
        run->wrong |= before < last + mine;
        last = before;
    }
}

static void hot_check(struct rma_run *run)
{
    uint64_t added = 0;
    for (int rank = 0; rank < run->ranks; rank++)
        added += run->done_by[rank] * ((uint64_t)rank + 1);
    if (run->rank == hot_target)
        counter_check_sum(run, added);
}

const struct rma_pattern rma_atomics[] = {
    {.name = "fetch-and-op",
     .prepare = counter_prepare,
     .repeat = fetch_and_op,
     .check = counter_check,
     .placeable = true},
    {.name = "compare-and-swap",
     .prepare = counter_prepare,
     .repeat = compare_and_swap,
     .check = counter_check,
     .placeable = true},
    {.name = "hot-fetch-and-op",
     .kind = RMA_ALL_PASSIVE,
     .prepare = counter_prepare,
     .repeat = hot_fetch_and_op,
     .check = hot_check},
    {0},
};
