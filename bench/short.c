/* What programs have for a moment only: memory from MPI that is given back at once, memory that is attached and detached, and
 * windows that are made for a few operations.
 * Rank 0 works, and rank 1, whose memory it is, counts in the end what has come.
 * Driven by timing.c through the table at the end. */
#include "rma.h"

#include <string.h>

enum { PAGE_BYTES = 4096, FETCHES = 100, UPDATES = 1000 };
static const int target = 1;
static const uint64_t one = 1;

static size_t span_one(const struct rma_run *run)
{
    return run->len_bytes;
}

/* ---- memory ---- */

/* A word of each page, as who fills it in touches it. */
static void alloc_touch_free(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        char *memory;
        MPI_Alloc_mem((MPI_Aint)run->len_bytes, MPI_INFO_NULL, &memory);
        for (size_t at = 0; at < run->len_bytes; at += PAGE_BYTES)
            memcpy(memory + at, &run->done, sizeof run->done);
        run->wrong |= memcmp(memory, &run->done, sizeof run->done) != 0;
        MPI_Free_mem(memory);
    }
}

/* The buffer, which is in no window otherwise. */
static void attach_detach(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_attach(run->win, run->buffer, (MPI_Aint)run->len_bytes);
        MPI_Win_detach(run->win, run->buffer);
    }
}

/* ---- windows over the buffer, the first word of which counts ---- */

static void word_clear(struct rma_run *run)
{
    memset(run->buffer, 0, sizeof one);
}

static void word_check(struct rma_run *run, uint64_t expected)
{
    uint64_t found;
    memcpy(&found, run->buffer, sizeof found);
    run->wrong |= run->rank == target && found != expected;
}

static void fetch_all(MPI_Win win)
{
    uint64_t before;
    for (int i = 0; i < FETCHES; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, 0, MPI_SUM, win);
        MPI_Win_flush(target, win);
    }
}

static void accumulate_all(MPI_Win win)
{
    for (int i = 0; i < UPDATES; i++)
        MPI_Accumulate(&one, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, MPI_SUM, win);
}

static void put_all(MPI_Win win)
{
    for (int i = 0; i < UPDATES; i++)
        MPI_Put(&one, 1, MPI_UINT64_T, target, (MPI_Aint)((size_t)i * sizeof one), 1, MPI_UINT64_T, win);
}

static void put_one(MPI_Win win)
{
    MPI_Put(&one, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
}

static void windows(struct rma_run *run, uint64_t count, void (*use)(MPI_Win win))
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win win;
        MPI_Win_create(run->buffer, (MPI_Aint)run->len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (run->rank == 0) {
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
            use(win);
            MPI_Win_unlock(target, win);
        }
        MPI_Win_free(&win);
    }
}

static void window_fetches(struct rma_run *run, uint64_t count)
{
    windows(run, count, fetch_all);
}

static void window_accumulates(struct rma_run *run, uint64_t count)
{
    windows(run, count, accumulate_all);
}

static void window_puts(struct rma_run *run, uint64_t count)
{
    windows(run, count, put_all);
}

static void window_put(struct rma_run *run, uint64_t count)
{
    windows(run, count, put_one);
}

static void fetches_check(struct rma_run *run)
{
    word_check(run, run->done * FETCHES);
}

static void accumulates_check(struct rma_run *run)
{
    word_check(run, run->done * UPDATES);
}

static void put_check(struct rma_run *run)
{
    word_check(run, one);
}

#define WINDOWS(its_name, its_repeat, its_check)                                                                          \
    {                                                                                                                     \
        .name = its_name, .kind = RMA_ACTIVE, .span = span_one, .prepare = word_clear, .repeat = its_repeat,               \
        .check = its_check                                                                                                \
    }

const struct rma_pattern rma_short[] = {
    {.name = "alloc-touch-free", .kind = RMA_LOCKING, .repeat = alloc_touch_free},
    {.name = "attach-detach", .kind = RMA_LOCKING, .span = span_one, .repeat = attach_detach},
    WINDOWS("window-fetches", window_fetches, fetches_check),
    WINDOWS("window-accumulates", window_accumulates, accumulates_check),
    WINDOWS("window-puts", window_puts, put_check),
    WINDOWS("window-put", window_put, put_check),
    {0},
};
