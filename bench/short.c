/* Short-lived objects: memory from MPI that is freed at once, memory that is attached and detached,
 * and windows for a few operations.  Also many attached regions, most of which are rarely accessed.
 * Rank 0 works; rank 1, the target, counts at the end what has arrived. timing.c drives the table
 * at the end. */
#include "rma.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, FETCHES = 100, UPDATES = 1000, REGIONS = 1000 };
static const int target = 1;
static const uint64_t one = 1;

static size_t span_one(const struct rma_run *run)
{
    return run->len_bytes;
}

/* ---- memory ---- */

/* Touches one word of each page, as initialisation would. */
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

/* The buffer, which is in no other window. */
static void attach_detach(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_attach(run->win, run->buffer, (MPI_Aint)run->len_bytes);
        MPI_Win_detach(run->win, run->buffer);
    }
}

/* ---- regions of the program's memory, attached to the dynamic window ---- */

static char *regions[REGIONS];
static MPI_Aint regions_at[REGIONS]; /* on the target */

static void regions_attach(struct rma_run *run)
{
    for (int i = 0; i < REGIONS; i++) {
        regions[i] = calloc(1, run->len_bytes);
        if (!regions[i])
            rma_fail("out of memory");
        memset(regions[i], 0, run->len_bytes);
        MPI_Win_attach(run->win, regions[i], (MPI_Aint)run->len_bytes);
        MPI_Get_address(regions[i], &regions_at[i]);
    }
    MPI_Bcast(regions_at, REGIONS, MPI_AINT, target, MPI_COMM_WORLD);
}

static void regions_detach(struct rma_run *run)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < REGIONS; i++) {
        MPI_Win_detach(run->win, regions[i]);
        free(regions[i]);
    }
}

static void regions_clear(struct rma_run *run)
{
    (void)run;
    for (int i = 0; i < REGIONS; i++)
        memset(regions[i], 0, sizeof(uint64_t));
}

static uint64_t region_word(const struct rma_run *run, uint64_t number)
{
    return run->batch << 32 | (number + 1);
}

static void put_regions(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        const uint64_t word = region_word(run, run->done);
        MPI_Put(&word, 1, MPI_UINT64_T, target, regions_at[run->done % REGIONS], 1, MPI_UINT64_T,
                run->win);
        MPI_Win_flush(target, run->win);
    }
}

/* Each region has the last word that was put there. */
static void regions_check(struct rma_run *run)
{
    for (uint64_t i = 0; i < REGIONS && run->rank == target; i++) {
        uint64_t found;
        const uint64_t last = run->done > i ? i + (run->done - 1 - i) / REGIONS * REGIONS : 0;
        memcpy(&found, regions[i], sizeof found);
        run->wrong |= found != (run->done > i ? region_word(run, last) : 0);
    }
}

/* ---- windows over the buffer, which count how many there were ---- */

static void words_clear(struct rma_run *run)
{
    memset(run->buffer, 0, run->len_bytes);
}

static void words_check(struct rma_run *run, int count, uint64_t expected)
{
    for (int i = 0; i < count && run->rank == target; i++) {
        uint64_t found;
        memcpy(&found, run->buffer + (size_t)i * sizeof found, sizeof found);
        run->wrong |= found != expected;
    }
}

static void fetch_all(const struct rma_run *run, MPI_Win win)
{
    uint64_t before;
    (void)run;
    for (int i = 0; i < FETCHES; i++) {
        MPI_Fetch_and_op(&one, &before, MPI_UINT64_T, target, 0, MPI_SUM, win);
        MPI_Win_flush(target, win);
    }
}

static void accumulate_all(const struct rma_run *run, MPI_Win win)
{
    (void)run;
    for (int i = 0; i < UPDATES; i++)
        MPI_Accumulate(&one, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, MPI_SUM, win);
}

static void put_words(const struct rma_run *run, MPI_Win win, int count)
{
    for (int i = 0; i < count; i++)
        MPI_Put(&run->done, 1, MPI_UINT64_T, target, (MPI_Aint)((size_t)i * sizeof run->done), 1,
                MPI_UINT64_T, win);
}

static void put_all(const struct rma_run *run, MPI_Win win)
{
    put_words(run, win, UPDATES);
}

static void put_one(const struct rma_run *run, MPI_Win win)
{
    put_words(run, win, 1);
}

static void windows(struct rma_run *run, uint64_t count,
                    void (*use)(const struct rma_run *run, MPI_Win win))
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win win;
        MPI_Win_create(run->buffer, (MPI_Aint)run->len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                       &win);
        if (run->rank == 0) {
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
            use(run, win);
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
    words_check(run, 1, run->done * FETCHES);
}

static void accumulates_check(struct rma_run *run)
{
    words_check(run, 1, run->done * UPDATES);
}

static void puts_check(struct rma_run *run)
{
    words_check(run, UPDATES, run->done - 1);
}

static void put_check(struct rma_run *run)
{
    words_check(run, 1, run->done - 1);
}

#define WINDOWS(its_name, its_repeat, its_check)                                                   \
    {                                                                                              \
        .name = its_name, .kind = RMA_ACTIVE, .span = span_one, .prepare = words_clear,            \
        .repeat = its_repeat, .check = its_check                                                   \
    }

const struct rma_pattern rma_short[] = {
    {.name = "alloc-touch-free", .kind = RMA_LOCKING, .repeat = alloc_touch_free},
    {.name = "attach-detach", .kind = RMA_LOCKING, .span = span_one, .repeat = attach_detach},
    {.name = "put-regions",
     .kind = RMA_PASSIVE,
     .setup = regions_attach,
     .finish = regions_detach,
     .prepare = regions_clear,
     .repeat = put_regions,
     .check = regions_check},
    WINDOWS("window-fetches", window_fetches, fetches_check),
    WINDOWS("window-accumulates", window_accumulates, accumulates_check),
    WINDOWS("window-puts", window_puts, puts_check),
    WINDOWS("window-put", window_put, put_check),
    {0},
};
