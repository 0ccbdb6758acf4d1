/* The patterns that the benchmark times: each a loop of one kind of operation, with the check of its data.
 * Every loop leaves data that follow from the number of operations done, whatever the batches were.
 * Called by the harness in rma.c only. */
#define _GNU_SOURCE
#include "rma.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int target = 1;

/* Where and what operation number k puts. */
static size_t slot_offset(uint64_t k)
{
    return k % RMA_SLOTS * sizeof(uint64_t);
}

static uint64_t word_at(const char *memory, size_t offset_bytes)
{
    uint64_t word;
    memcpy(&word, memory + offset_bytes, sizeof word);
    return word;
}

static void word_set(char *memory, size_t offset_bytes, uint64_t word)
{
    memcpy(memory + offset_bytes, &word, sizeof word);
}

static uint64_t fill_word(size_t offset_bytes)
{
    return (offset_bytes + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void fill(char *memory)
{
    for (size_t at = 0; at < RMA_WINDOW_BYTES; at += sizeof(uint64_t))
        word_set(memory, at, fill_word(at));
}

/* The first and the last word of a long transfer carry the operation's number, the rest the fill. */
static void stamp(char *memory, size_t len_bytes, uint64_t word)
{
    word_set(memory, 0, word);
    word_set(memory, len_bytes - sizeof word, word);
}

static bool stamped(const char *memory, size_t len_bytes, uint64_t word)
{
    return word_at(memory, 0) == word && word_at(memory, len_bytes - sizeof word) == word;
}

static bool filled(const char *memory, size_t first_bytes, size_t last_bytes)
{
    for (size_t at = first_bytes; at < last_bytes; at += sizeof(uint64_t))
        if (word_at(memory, at) != fill_word(at))
            return false;
    return true;
}

static void fill_mine(struct rma_run *run)
{
    fill(run->mine);
}

static void fill_buffer(struct rma_run *run)
{
    fill(run->buffer);
}

/* ---- the limits: what this machine does without any MPI ---- */

static void raw_store(struct rma_run *run, uint64_t count)
{
    volatile uint64_t *slots = (volatile uint64_t *)(void *)run->buffer;
    for (uint64_t i = 0; i < count; i++, run->done++)
        slots[run->done % RMA_SLOTS] = run->done + 1;
}

static void raw_store_fence(struct rma_run *run, uint64_t count)
{
    _Atomic uint64_t *slots = (_Atomic uint64_t *)(void *)run->buffer;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        atomic_store_explicit(&slots[run->done % RMA_SLOTS], run->done + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
    }
}

static void raw_atomic(struct rma_run *run, uint64_t count)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)run->buffer;
    for (uint64_t i = 0; i < count; i++, run->done++)
        run->wrong |= atomic_fetch_add(word, 1) != run->done;
}

static void raw_memcpy(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        stamp(run->buffer, run->len_bytes, run->done);
        memcpy(run->mine, run->buffer, run->len_bytes);
        run->wrong |= !stamped(run->mine, run->len_bytes, run->done);
    }
}

/* The word counts the turns, the even ones are rank 0's. */
static void take_turns(struct rma_run *run, uint64_t count)
{
    _Atomic uint32_t *turn = (_Atomic uint32_t *)(void *)run->mine;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        const uint32_t mine = 2 * (uint32_t)run->done + (uint32_t)run->rank;
        for (uint32_t now; (now = atomic_load(turn)) != mine;) {
            run->wrong |= now + 1 != mine;
            syscall(SYS_futex, turn, FUTEX_WAIT, now, NULL, NULL, 0);
        }
        atomic_store(turn, mine + 1);
        syscall(SYS_futex, turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
    while (run->rank == 0 && atomic_load(turn) != 2 * (uint32_t)run->done)
        syscall(SYS_futex, turn, FUTEX_WAIT, 2 * (uint32_t)run->done - 1, NULL, NULL, 0);
}

/* Two processes wake each other in turn, and sleep meanwhile: what it costs to have another process do something.  They run where
 * the scheduler has them run, since one host binds its ranks to processors, which makes it many times slower. */
static void raw_futex(struct rma_run *run, uint64_t count)
{
    cpu_set_t bound, all;
    if (run->rank > 1)
        return;
    memset(&all, 0xff, sizeof all);
    sched_getaffinity(0, sizeof bound, &bound);
    sched_setaffinity(0, sizeof all, &all);
    take_turns(run, count);
    sched_setaffinity(0, sizeof bound, &bound);
}

/* ---- put ---- */

static void put_one(struct rma_run *run)
{
    size_t at = slot_offset(run->done++);
    word_set(run->buffer, at, run->done);
    MPI_Put(run->buffer + at, 1, MPI_UINT64_T, target, run->begin[target] + (MPI_Aint)at, 1, MPI_UINT64_T,
            run->win);
}

/* The slots' data stand before the clock of each operation starts: what a batch leaves behind after count operations. */
static void slots_fill(struct rma_run *run, uint64_t count)
{
    uint64_t end = run->done + count;
    for (uint64_t k = count > RMA_SLOTS ? end - RMA_SLOTS : run->done; k < end; k++)
        word_set(run->buffer, slot_offset(k), k + 1);
}

static void put_flush(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    char *buffer = run->buffer;
    MPI_Win win = run->win;
    slots_fill(run, count);
    for (uint64_t k = run->done; k < run->done + count; k++) {
        size_t at = slot_offset(k);
        MPI_Put(buffer + at, 1, MPI_UINT64_T, target, begin + (MPI_Aint)at, 1, MPI_UINT64_T, win);
        MPI_Win_flush(target, win);
    }
    run->done += count;
}

static void lock_put_unlock(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    char *buffer = run->buffer;
    MPI_Win win = run->win;
    slots_fill(run, count);
    for (uint64_t k = run->done; k < run->done + count; k++) {
        size_t at = slot_offset(k);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        MPI_Put(buffer + at, 1, MPI_UINT64_T, target, begin + (MPI_Aint)at, 1, MPI_UINT64_T, win);
        MPI_Win_unlock(target, win);
    }
    run->done += count;
}

/* The last RMA_SLOTS operations are still to be seen. */
static void check_slots(const char *memory, struct rma_run *run)
{
    uint64_t first = run->done > RMA_SLOTS ? run->done - RMA_SLOTS : 0;
    for (uint64_t k = first; k < run->done; k++)
        run->wrong |= word_at(memory, slot_offset(k)) != k + 1;
}

static void check_target_slots(struct rma_run *run)
{
    if (run->rank == target)
        check_slots(run->mine, run);
}

static void check_local_slots(struct rma_run *run)
{
    check_slots(run->buffer, run);
}

static void put_long(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    int len = (int)run->len_bytes;
    for (uint64_t i = 0; i < count; i++) {
        stamp(run->buffer, run->len_bytes, ++run->done);
        MPI_Put(run->buffer, len, MPI_BYTE, target, begin, len, MPI_BYTE, run->win);
        MPI_Win_flush(target, run->win);
    }
}

static void check_put_long(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= !stamped(run->mine, run->len_bytes, run->done) ||
                      !filled(run->mine, sizeof(uint64_t), run->len_bytes - sizeof(uint64_t));
}

/* ---- get ---- */

static void get_flush(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    for (uint64_t i = 0; i < count; i++, run->done++) {
        size_t at = slot_offset(run->done);
        word_set(run->buffer, at, 0);
        MPI_Get(run->buffer + at, 1, MPI_UINT64_T, target, begin + (MPI_Aint)at, 1, MPI_UINT64_T, run->win);
        MPI_Win_flush(target, run->win);
        run->wrong |= word_at(run->buffer, at) != fill_word(at);
    }
}

static void get_long(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    int len = (int)run->len_bytes;
    size_t last = run->len_bytes - sizeof(uint64_t);
    for (uint64_t i = 0; i < count; i++, run->done++) {
        stamp(run->buffer, run->len_bytes, 0);
        MPI_Get(run->buffer, len, MPI_BYTE, target, begin, len, MPI_BYTE, run->win);
        MPI_Win_flush(target, run->win);
        run->wrong |= word_at(run->buffer, 0) != fill_word(0) || word_at(run->buffer, last) != fill_word(last);
    }
}

static void check_get_long(struct rma_run *run)
{
    if (run->rank == 0)
        run->wrong |= !filled(run->buffer, 0, run->len_bytes);
}

/* ---- accumulate and atomics ---- */

static void fetch_and_op(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    const int64_t one = 1;
    int64_t before = -1;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, begin, MPI_SUM, run->win);
        MPI_Win_flush(target, run->win);
        run->wrong |= before != (int64_t)run->done;
    }
}

static void compare_and_swap(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    for (uint64_t i = 0; i < count; i++, run->done++) {
        uint64_t desired = run->done + 1, found = ~UINT64_C(0);
        MPI_Compare_and_swap(&desired, &run->done, &found, MPI_UINT64_T, target, begin, run->win);
        MPI_Win_flush(target, run->win);
        run->wrong |= found != run->done;
    }
}

static void check_counter(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= word_at(run->mine, 0) != run->done;
}

static void ones_buffer(struct rma_run *run)
{
    const double one = 1.0;
    for (size_t i = 0; i < RMA_DOUBLES; i++)
        memcpy(run->buffer + i * sizeof one, &one, sizeof one);
}

static void accumulate(struct rma_run *run, uint64_t count)
{
    const MPI_Aint begin = run->begin[target];
    int len = (int)(run->len_bytes / sizeof(double));
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Accumulate(run->buffer, len, MPI_DOUBLE, target, begin, len, MPI_DOUBLE, MPI_SUM, run->win);
        MPI_Win_flush(target, run->win);
    }
}

static void check_sums(struct rma_run *run)
{
    if (run->rank != target)
        return;
    for (size_t at = 0; at < run->len_bytes; at += sizeof(double)) {
        double sum;
        memcpy(&sum, run->mine + at, sizeof sum);
        run->wrong |= sum != (double)run->done;
    }
}

/* ---- active target, creation ---- */

static void fence(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        MPI_Win_fence(0, run->win);
}

/* Untimed: every rank puts to its right neighbour. Two slots in turn: the neighbour may already be one epoch on. */
static void check_fence(struct rma_run *run)
{
    const int to = (run->rank + 1) % run->ranks;
    MPI_Win_fence(MPI_MODE_NOPRECEDE, run->win);
    for (uint64_t k = 1; k <= 20; k++) {
        MPI_Aint at = (MPI_Aint)(k % 2 * sizeof k);
        MPI_Put(&k, 1, MPI_UINT64_T, to, run->begin[to] + at, 1, MPI_UINT64_T, run->win);
        MPI_Win_fence(0, run->win);
        run->wrong |= word_at(run->mine, (size_t)at) != k;
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, run->win);
}

static void post_start(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (run->rank == 0) {
            MPI_Win_start(run->peer, 0, run->win);
            put_one(run);
            MPI_Win_complete(run->win);
        } else if (run->rank == target) {
            MPI_Win_post(run->peer, 0, run->win);
            MPI_Win_wait(run->win);
            run->wrong |= word_at(run->mine, slot_offset(run->done)) != run->done + 1;
            run->done++;
        }
    }
}

static void create_free(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct rma_run other = *run;
        rma_window_open(&other, 4096);
        run->wrong |= other.mine == NULL || other.win == MPI_WIN_NULL;
        rma_window_close(&other);
    }
}

/* Untimed: one more such window, and used. */
static void check_create(struct rma_run *run)
{
    struct rma_run other = *run;
    rma_window_open(&other, 4096);
    check_fence(&other);
    rma_window_close(&other);
    run->wrong |= other.wrong;
}

const struct rma_pattern rma_patterns[] = {
    {"raw-store", RMA_RAW, 8, NULL, raw_store, check_local_slots},
    {"raw-store-fence", RMA_RAW, 8, NULL, raw_store_fence, check_local_slots},
    {"raw-atomic", RMA_RAW, 8, NULL, raw_atomic, NULL},
    {"raw-memcpy-64k", RMA_RAW, 1 << 16, fill_buffer, raw_memcpy, NULL},
    {"raw-memcpy-1m", RMA_RAW, 1 << 20, fill_buffer, raw_memcpy, NULL},
    {"raw-futex", RMA_RAW_PAIR, 0, NULL, raw_futex, NULL},
    {"put-8", RMA_PASSIVE, 8, NULL, put_flush, check_target_slots},
    {"get-8", RMA_PASSIVE, 8, fill_mine, get_flush, NULL},
    {"fetch-and-op", RMA_PASSIVE, 8, NULL, fetch_and_op, check_counter},
    {"compare-and-swap", RMA_PASSIVE, 8, NULL, compare_and_swap, check_counter},
    {"accumulate-1", RMA_PASSIVE, 8, ones_buffer, accumulate, check_sums},
    {"accumulate-4096", RMA_PASSIVE, RMA_DOUBLES * 8, ones_buffer, accumulate, check_sums},
    {"put-64k", RMA_PASSIVE, 1 << 16, fill_buffer, put_long, check_put_long},
    {"get-64k", RMA_PASSIVE, 1 << 16, fill_mine, get_long, check_get_long},
    {"put-1m", RMA_PASSIVE, 1 << 20, fill_buffer, put_long, check_put_long},
    {"get-1m", RMA_PASSIVE, 1 << 20, fill_mine, get_long, check_get_long},
    {"lock-put-unlock", RMA_LOCKING, 8, NULL, lock_put_unlock, check_target_slots},
    {"fence", RMA_ACTIVE, 8, NULL, fence, check_fence},
    {"post-start", RMA_ACTIVE, 8, NULL, post_start, check_target_slots},
    {"create-free", RMA_ACTIVE, 8, NULL, create_free, check_create},
    {"busy-target", RMA_BUSY, 8, NULL, lock_put_unlock, check_target_slots},
    {"busy-target-again", RMA_BUSY_AGAIN, 8, NULL, lock_put_unlock, check_target_slots},
};
const size_t rma_patterns_len = sizeof rma_patterns / sizeof *rma_patterns;
