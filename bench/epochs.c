/* Passive-target epochs with one 8-byte put each: exclusive, shared, of all ranks at one target, lock_all; and the busy target.
 * What is put changes with every operation, so the last one of each rank can be told from those before it.
 * Driven by timing.c through the table at the end. */
#include "rma.h"

#include <string.h>

static const int target = 1, contended_target = 0;

static uint64_t value_of(const struct rma_run *run, int rank, uint64_t operation)
{
    return data_word(rma_origin_seed(run, rank), 0) + operation;
}

static size_t place_of(uint64_t operation)
{
    return operation % RMA_SLOTS * sizeof(uint64_t);
}

static void prepare(struct rma_run *run)
{
    data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
}

/* Puts the next value of this rank's row; the caller's epoch completes it. */
static void put_next(struct rma_run *run, int to, size_t at)
{
    uint64_t value = value_of(run, run->rank, run->done);
    memcpy(run->buffer + at, &value, sizeof value);
    MPI_Put(run->buffer + at, 1, MPI_UINT64_T, to, run->begin[to] + (MPI_Aint)at, 1, MPI_UINT64_T, run->win);
}

static void lock_put_unlock(struct rma_run *run, uint64_t count, int kind)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock(kind, target, 0, run->win);
        put_next(run, target, place_of(run->done));
        MPI_Win_unlock(target, run->win);
    }
}

static void lock_exclusive(struct rma_run *run, uint64_t count)
{
    lock_put_unlock(run, count, MPI_LOCK_EXCLUSIVE);
}

static void lock_shared(struct rma_run *run, uint64_t count)
{
    lock_put_unlock(run, count, MPI_LOCK_SHARED);
}

/* Each place holds the value of the last operation that came round to it, places that none reached what was there. */
static void places_check(struct rma_run *run)
{
    if (run->rank != target)
        return;
    for (uint64_t slot = 0; slot < RMA_SLOTS; slot++) {
        uint64_t word, last = run->done - 1 - (run->done - 1 - slot) % RMA_SLOTS;
        memcpy(&word, run->mine + place_of(slot), sizeof word);
        if (slot < run->done)
            run->wrong |= word != value_of(run, 0, last);
        else
            run->wrong |= word != data_word(rma_target_seed(run, target), slot);
    }
    run->wrong |= !data_holds_from(run->mine + run->span_bytes, run->span_bytes, RMA_GUARD_BYTES,
                                   rma_target_seed(run, target));
}

/* ---- several ranks: rank r's word is number r ---- */

static void lock_contended(struct rma_run *run, uint64_t count)
{
    const size_t at = (size_t)run->rank * sizeof(uint64_t);
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, contended_target, 0, run->win);
        put_next(run, contended_target, at);
        MPI_Win_unlock(contended_target, run->win);
    }
}

static void lock_all(struct rma_run *run, uint64_t count)
{
    const size_t at = (size_t)run->rank * sizeof(uint64_t);
    const int to = (run->rank + 1) % run->ranks;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock_all(0, run->win);
        put_next(run, to, at);
        MPI_Win_unlock_all(run->win);
    }
}

/* Whether exactly the words of the ranks for which `reached` says so have their last value. */
static void words_check(struct rma_run *run, bool (*reached)(const struct rma_run *run, int from))
{
    for (int from = 0; from < RMA_SLOTS; from++) {
        uint64_t word;
        memcpy(&word, run->mine + (size_t)from * sizeof word, sizeof word);
        if (from < run->ranks && reached(run, from))
            run->wrong |= word != value_of(run, from, run->done_by[from] - 1);
        else
            run->wrong |= word != data_word(rma_target_seed(run, run->rank), (size_t)from);
    }
}

static bool is_contended(const struct rma_run *run, int from)
{
    (void)from;
    return run->rank == contended_target;
}

static bool is_left(const struct rma_run *run, int from)
{
    return (from + 1) % run->ranks == run->rank;
}

static void contended_check(struct rma_run *run)
{
    words_check(run, is_contended);
}

static void left_check(struct rma_run *run)
{
    words_check(run, is_left);
}

#define LOCKING(its_name, its_kind, its_repeat, its_check)                                                                 \
    {                                                                                                                      \
        .name = its_name, .kind = its_kind, .prepare = prepare, .repeat = its_repeat, .check = its_check                   \
    }

const struct rma_pattern rma_epochs[] = {
    LOCKING("lock-exclusive", RMA_LOCKING, lock_exclusive, places_check),
    LOCKING("lock-shared", RMA_LOCKING, lock_shared, places_check),
    LOCKING("lock-contended", RMA_ALL_LOCKING, lock_contended, contended_check),
    LOCKING("lock-all", RMA_ALL_LOCKING, lock_all, left_check),
    LOCKING("busy-target", RMA_BUSY, lock_exclusive, places_check),
    LOCKING("busy-target-again", RMA_BUSY_AGAIN, lock_exclusive, places_check),
    {0},
};
