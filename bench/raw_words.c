/* Single instructions on words of this process's memory: load, store, store with a full fence,
 * atomic add, compare and swap. They are the limits of one-sided operations of 8 bytes: a flushed
 * put must be a store and a full fence. raw.c drives the table at the end. */
#include "raw.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic uint64_t *word_of(struct raw_run *run, uint64_t slot)
{
    return (_Atomic uint64_t *)(void *)run->to + slot % RAW_SLOTS;
}

static void stores_prepare(struct raw_run *run)
{
    memset(run->to, 0, RAW_SLOTS * sizeof(uint64_t));
}

static void store(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++)
        atomic_store_explicit(word_of(run, run->done), run->batch + run->done,
                              memory_order_relaxed);
}

static void store_fence(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        atomic_store_explicit(word_of(run, run->done), run->batch + run->done,
                              memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
    }
}

static void stores_check(struct raw_run *run)
{
    for (uint64_t slot = 0; slot < RAW_SLOTS; slot++) {
        uint64_t last = run->done - 1 - (run->done - 1 - slot) % RAW_SLOTS;
        run->wrong |= atomic_load(word_of(run, slot)) != (slot < run->done ? run->batch + last : 0);
    }
}

static void loads_prepare(struct raw_run *run)
{
    data_fill(run->to, RAW_SLOTS * sizeof(uint64_t), run->batch);
}

/* Into other memory, as a get does. */
static void load(struct raw_run *run, uint64_t count)
{
    _Atomic uint64_t *into = (_Atomic uint64_t *)(void *)run->from;
    for (uint64_t i = 0; i < count; i++, run->done++)
        atomic_store_explicit(&into[run->done % RAW_SLOTS],
                              atomic_load_explicit(word_of(run, run->done), memory_order_acquire),
                              memory_order_relaxed);
}

static void loads_check(struct raw_run *run)
{
    const size_t slots = run->done < RAW_SLOTS ? run->done : RAW_SLOTS;
    run->wrong |= !data_holds(run->from, slots * sizeof(uint64_t), run->batch);
}

static void counter_prepare(struct raw_run *run)
{
    atomic_store(word_of(run, 0), run->batch);
}

static void atomic_add(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++)
        run->wrong |= atomic_fetch_add(word_of(run, 0), 1) != run->batch + run->done;
}

static void atomic_swap(struct raw_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, run->done++) {
        uint64_t expected = run->batch + run->done;
        run->wrong |= !atomic_compare_exchange_strong(word_of(run, 0), &expected, expected + 1);
    }
}

static void counter_check(struct raw_run *run)
{
    run->wrong |= atomic_load(word_of(run, 0)) != run->batch + run->done;
}

/* The minimum of lock, put and unlock: acquire the lock, store, release it. */
static void locked_store(struct raw_run *run, uint64_t count)
{
    _Atomic uint64_t *lock = (_Atomic uint64_t *)(void *)run->to + RAW_SLOTS;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        uint64_t is_free = 0;
        run->wrong |= !atomic_compare_exchange_strong(lock, &is_free, 1);
        atomic_store_explicit(word_of(run, run->done), run->batch + run->done,
                              memory_order_relaxed);
        atomic_fetch_sub(lock, 1);
    }
}

const struct raw_operation raw_words[] = {
    {.name = "raw-store", .prepare = stores_prepare, .repeat = store, .check = stores_check},
    {.name = "raw-store-fence",
     .prepare = stores_prepare,
     .repeat = store_fence,
     .check = stores_check},
    {.name = "raw-load", .prepare = loads_prepare, .repeat = load, .check = loads_check},
    {.name = "raw-atomic",
     .prepare = counter_prepare,
     .repeat = atomic_add,
     .check = counter_check},
    {.name = "raw-lock",
     .shared = true,
     .prepare = stores_prepare,
     .repeat = locked_store,
     .check = stores_check},
    {.name = "raw-cas", .prepare = counter_prepare, .repeat = atomic_swap, .check = counter_check},
    {0},
};
