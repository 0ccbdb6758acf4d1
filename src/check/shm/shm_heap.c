/* The allocator of the checker's shared memory: free lists by size for all processes. Each process
 * has small free lists in front of them, so most calls touch no shared cache line. A block belongs
 * to one list or one user. Blocks in the lists of a process that dies are lost, and never allocated
 * twice.
 *
 * Sizes: multiples of 16 bytes up to 1 KiB, then four sizes for each doubling. */
#include "check/shm/shm_internal.h"

#include "base/atomic.h"
#include "base/log.h"

#include <pthread.h>
#include <string.h>

enum {
    GRAIN = 16,
    FINE = 64,      /* classes that are multiples of GRAIN */
    FINE_LOG2 = 10, /* FINE * GRAIN bytes */
    STEPS_LOG2 = 2, /* classes for each doubling above */
    BATCH_BYTES = 4096,
    BATCH_MOST = 32, /* most blocks that move between a process's list and the shared one at once */
    CACHED_BATCHES = 4, /* most batches of a size in a process's list */
};

/* Free blocks of this process, linked in the same form as the shared lists. */
static struct cache {
    pthread_mutex_t mutex;
    oriel_shm_offset head;
    uint64_t count;
} caches[ORIEL_SHM_CLASSES] = {
    [0 ... ORIEL_SHM_CLASSES - 1] = {.mutex = PTHREAD_MUTEX_INITIALIZER}};

static int size_class(uint64_t len_bytes)
{
    if (len_bytes <= FINE * GRAIN)
        return (int)((len_bytes + GRAIN - 1) / GRAIN);
    int log2 = 63 - __builtin_clzll(len_bytes - 1);
    uint64_t step = UINT64_C(1) << (log2 - STEPS_LOG2);
    return FINE + ((log2 - FINE_LOG2) << STEPS_LOG2) +
           (int)((len_bytes - (UINT64_C(1) << log2) + step - 1) / step);
}

static uint64_t class_size_bytes(int class)
{
    if (class <= FINE)
        return (uint64_t) class * GRAIN;
    int above = class - FINE - 1;
    int log2 = FINE_LOG2 + (above >> STEPS_LOG2);
    return (UINT64_C(1) << log2) + ((UINT64_C(1) << (log2 - STEPS_LOG2)) *
                                    (uint64_t)((above & ((1 << STEPS_LOG2) - 1)) + 1));
}

static uint64_t batch_blocks(uint64_t size_bytes)
{
    uint64_t blocks = BATCH_BYTES / size_bytes;
    return blocks < 2 ? 1 : blocks > BATCH_MOST ? BATCH_MOST : blocks;
}

static oriel_shm_offset *block_next(oriel_shm_offset place)
{
    return oriel_shm_at(place);
}

/* Returns bytes that were never used, starting at a cache line; 0: fewer than len_bytes are
 * left. */
static oriel_shm_offset unused_carve(uint64_t len_bytes)
{
    uint64_t top = atomic_load_explicit(&oriel_shm_head->top, memory_order_relaxed);
    uint64_t first;
    do {
        first = (top + ORIEL_CACHE_LINE - 1) & ~(uint64_t)(ORIEL_CACHE_LINE - 1);
        if (first > oriel_shm_head->size_bytes || len_bytes > oriel_shm_head->size_bytes - first)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&oriel_shm_head->top, &top, first + len_bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return first;
}

/* Removes up to *count blocks from a shared list, as a chain; sets *count to their number. */
static oriel_shm_offset shared_list_remove(struct oriel_shm_class *class, uint64_t *count)
{
    oriel_shm_lock(&class->lock);
    oriel_shm_offset first = class->head, last = first;
    uint64_t found = first != 0;
    while (found > 0 && found < *count && *block_next(last) != 0) {
        last = *block_next(last);
        found++;
    }
    if (found > 0) {
        class->head = *block_next(last);
        *block_next(last) = 0;
    }
    oriel_shm_unlock(&class->lock);
    *count = found;
    return first;
}

static void shared_list_insert(struct oriel_shm_class *class, oriel_shm_offset first,
                               oriel_shm_offset last)
{
    oriel_shm_lock(&class->lock);
    *block_next(last) = class->head;
    class->head = first;
    oriel_shm_unlock(&class->lock);
}

static oriel_shm_offset unused_carve_chain(uint64_t size_bytes, uint64_t *count)
{
    oriel_shm_offset first = unused_carve(size_bytes * *count);
    if (first == 0) {
        *count = 1;
        first = unused_carve(size_bytes);
    }
    for (uint64_t i = 0; first != 0 && i + 1 < *count; i++)
        *block_next(first + i * size_bytes) = first + (i + 1) * size_bytes;
    return first;
}

/* Allocates a block of a size that has no list in the process. *fresh: it is zero already. */
static oriel_shm_offset block_allocate_shared(int class, uint64_t size_bytes, bool *fresh)
{
    uint64_t one = 1;
    oriel_shm_offset place = shared_list_remove(&oriel_shm_head->classes[class], &one);
    *fresh = place == 0;
    return place != 0 ? place : unused_carve(size_bytes);
}

static oriel_shm_offset block_allocate_cached(int class, uint64_t size_bytes)
{
    struct cache *cache = &caches[class];
    oriel_shm_mutex_lock(&cache->mutex);
    if (cache->head == 0) {
        uint64_t count = batch_blocks(size_bytes);
        cache->head = shared_list_remove(&oriel_shm_head->classes[class], &count);
        if (cache->head == 0) {
            count = batch_blocks(size_bytes);
            cache->head = unused_carve_chain(size_bytes, &count);
        }
        cache->count = cache->head == 0 ? 0 : count;
    }
    oriel_shm_offset place = cache->head;
    if (place != 0) {
        cache->head = *block_next(place);
        cache->count--;
    }
    oriel_shm_mutex_unlock(&cache->mutex);
    return place;
}

static oriel_shm_offset full_report(void)
{
    if (atomic_fetch_add(&oriel_shm_head->refused, 1) == 0)
        oriel_warn(
            "check: the checker's memory (%lu MiB) is full: some accesses are not checked [O24]",
            (unsigned long)(oriel_shm_head->size_bytes >> 20));
    return 0;
}

oriel_shm_offset oriel_shm_allocate(size_t len_bytes)
{
    if (!oriel_shm_is_open())
        return 0;
    if (len_bytes == 0 || len_bytes > oriel_shm_head->size_bytes)
        return len_bytes == 0 ? oriel_shm_allocate(GRAIN) : full_report();
    int class = size_class(len_bytes);
    uint64_t size_bytes = class_size_bytes(class);
    bool fresh = false;
    oriel_shm_offset place = batch_blocks(size_bytes) > 1
                                 ? block_allocate_cached(class, size_bytes)
                                 : block_allocate_shared(class, size_bytes, &fresh);
    if (oriel_unlikely(place == 0))
        return full_report();
    if (!fresh)
        memset(oriel_shm_at(place), 0, len_bytes);
    return place;
}

/* Moves the first count blocks of a process's list, which has at least that many, to the shared
 * list. */
static void cache_return_blocks(int class, struct cache *cache, uint64_t count)
{
    oriel_shm_offset first = cache->head, last = first;
    for (uint64_t i = 1; i < count; i++)
        last = *block_next(last);
    cache->head = *block_next(last);
    cache->count -= count;
    shared_list_insert(&oriel_shm_head->classes[class], first, last);
}

void oriel_shm_free(oriel_shm_offset place, size_t len_bytes)
{
    if (place == 0 || !oriel_shm_is_open())
        return;
    int class = size_class(len_bytes == 0 ? GRAIN : len_bytes);
    uint64_t batch = batch_blocks(class_size_bytes(class));
    if (batch == 1) {
        shared_list_insert(&oriel_shm_head->classes[class], place, place);
        return;
    }
    struct cache *cache = &caches[class];
    oriel_shm_mutex_lock(&cache->mutex);
    *block_next(place) = cache->head;
    cache->head = place;
    if (++cache->count > CACHED_BATCHES * batch)
        cache_return_blocks(class, cache, CACHED_BATCHES * batch / 2);
    oriel_shm_mutex_unlock(&cache->mutex);
}

void oriel_shm_heap_leave(void)
{
    for (int class = 0; class < ORIEL_SHM_CLASSES; class ++) {
        struct cache *cache = &caches[class];
        oriel_shm_mutex_lock(&cache->mutex);
        if (cache->count > 0 && oriel_shm_is_open())
            cache_return_blocks(class, cache, cache->count);
        cache->head = 0;
        cache->count = 0;
        oriel_shm_mutex_unlock(&cache->mutex);
    }
}
