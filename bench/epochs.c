/* Passive-target epochs with one put each, of 8 bytes: exclusive, shared, of all ranks at one
 * target, lock_all; and of any length at a busy target. The data change with every operation, so
 * the last puts of each rank can be identified. Exclusive locks of several ranks protect a counter.
 * timing.c drives the table at the end. */
#include "words.h"

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
    MPI_Put(run->buffer + at, 1, MPI_UINT64_T, to, run->begin[to] + (MPI_Aint)at, 1, MPI_UINT64_T,
            run->win);
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

/* Each slot holds the value of the last operation that used it; unused slots are unchanged. */
static void places_hold(struct rma_run *run, int from, uint64_t done)
{
    for (uint64_t slot = 0; slot < RMA_SLOTS; slot++) {
        uint64_t word, last = done - 1 - (done - 1 - slot) % RMA_SLOTS;
        memcpy(&word, run->mine + place_of(slot), sizeof word);
        if (slot < done)
            run->wrong |= word != value_of(run, from, last);
        else
            run->wrong |= word != data_word(rma_target_seed(run, run->rank), slot);
    }
    run->wrong |= !data_holds_from(run->mine + run->span_bytes, run->span_bytes, RMA_GUARD_BYTES,
                                   rma_target_seed(run, run->rank));
}

static void places_check(struct rma_run *run)
{
    if (run->rank == target)
        places_hold(run, 0, run->done);
}

/* ---- a busy target: puts of any length to one area ---- */

static size_t span_one(const struct rma_run *run)
{
    return run->len_bytes;
}

static void busy_put(struct rma_run *run, uint64_t count)
{
    const int words = (int)(run->len_bytes / sizeof(uint64_t));
    for (uint64_t i = 0; i < count; i++, run->done++) {
        words_head_set(run->buffer, words_stamp(run) + run->done);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, run->win);
        MPI_Put(run->buffer, words, MPI_UINT64_T, target, run->begin[target], words, MPI_UINT64_T,
                run->win);
        MPI_Win_unlock(target, run->win);
    }
}

/* ---- several ranks ---- */

/* Every rank adds one to the target's first word by get and put: if two ranks hold the lock at
 * once, additions are lost. */
static void lock_contended(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[contended_target];
    uint64_t word = 0;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, contended_target, 0, run->win);
        MPI_Get(&word, 1, MPI_UINT64_T, contended_target, begin, 1, MPI_UINT64_T, run->win);
        MPI_Win_flush(contended_target, run->win);
        word++;
        MPI_Put(&word, 1, MPI_UINT64_T, contended_target, begin, 1, MPI_UINT64_T, run->win);
        MPI_Win_unlock(contended_target, run->win);
    }
}

static void contended_check(struct rma_run *run)
{
    uint64_t word, expected = data_word(rma_target_seed(run, run->rank), 0);
    for (int rank = 0; run->rank == contended_target && rank < run->ranks; rank++)
        expected += run->done_by[rank];
    memcpy(&word, run->mine, sizeof word);
    run->wrong |=
        word != expected || !data_holds_from(run->mine + sizeof word, sizeof word,
                                             run->span_bytes + RMA_GUARD_BYTES - sizeof word,
                                             rma_target_seed(run, run->rank));
}

/* Under shared locks, puts must not conflict: each rank has slots of its own. */
static size_t place_of_rank(const struct rma_run *run, int rank, uint64_t operation)
{
    const uint64_t each = RMA_SLOTS / (uint64_t)run->ranks;
    return ((uint64_t)rank * each + operation % each) * sizeof(uint64_t);
}

static void lock_contended_shared(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock(MPI_LOCK_SHARED, contended_target, 0, run->win);
        put_next(run, contended_target, place_of_rank(run, run->rank, run->done));
        MPI_Win_unlock(contended_target, run->win);
    }
}

/* Each rank's last operations determine the final contents. */
static void contended_shared_check(struct rma_run *run)
{
    char expected[RMA_SLOTS * sizeof(uint64_t)];
    data_fill(expected, sizeof expected, rma_target_seed(run, run->rank));
    for (int from = 0; run->rank == contended_target && from < run->ranks; from++)
        for (uint64_t back = RMA_SLOTS; back > 0; back--)
            if (back <= run->done_by[from]) {
                uint64_t operation = run->done_by[from] - back,
                         value = value_of(run, from, operation);
                memcpy(expected + place_of_rank(run, from, operation), &value, sizeof value);
            }
    run->wrong |= memcmp(run->mine, expected, sizeof expected) != 0;
}

static void lock_all(struct rma_run *run, uint64_t count)
{
    const int to = (run->rank + 1) % run->ranks;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Win_lock_all(0, run->win);
        put_next(run, to, place_of(run->done));
        MPI_Win_unlock_all(run->win);
    }
}

static void left_check(struct rma_run *run)
{
    const int left = (run->rank + run->ranks - 1) % run->ranks;
    places_hold(run, left, run->done_by[left]);
}

#define BUSY(its_name, its_kind)                                                                   \
    {                                                                                              \
        .name = its_name, .kind = its_kind, .span = span_one, .prepare = words_prepare,            \
        .repeat = busy_put, .check = words_put_check, .renew = words_renew                         \
    }

#define LOCKING(its_name, its_kind, its_repeat, its_check)                                         \
    {                                                                                              \
        .name = its_name, .kind = its_kind, .prepare = prepare, .repeat = its_repeat,              \
        .check = its_check                                                                         \
    }

const struct rma_pattern rma_epochs[] = {
    LOCKING("lock-exclusive", RMA_LOCKING, lock_exclusive, places_check),
    LOCKING("lock-shared", RMA_LOCKING, lock_shared, places_check),
    LOCKING("lock-contended", RMA_ALL_LOCKING, lock_contended, contended_check),
    LOCKING("lock-contended-shared", RMA_ALL_LOCKING, lock_contended_shared,
            contended_shared_check),
    LOCKING("lock-all", RMA_ALL_LOCKING, lock_all, left_check),
    BUSY("busy-target", RMA_BUSY),
    BUSY("busy-target-again", RMA_BUSY_AGAIN),
    {0},
};
