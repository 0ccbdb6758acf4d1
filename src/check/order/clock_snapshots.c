/* Clock snapshots in the checker's shared memory, with reference counts. The process caches the
 * current snapshot for all accesses that it begins before its clock changes. */
#include "check/order/clock_snapshots.h"

#include "check/order/order.h"

#include <string.h>

struct snapshot {
    _Atomic uint64_t references;
    uint64_t unused;
    oriel_tick clock[];
};

static int width;
static oriel_shm_offset cached;             /* the cached snapshot, with a reference; 0: none */
static const struct oriel_rank *cached_row; /* of which it is a snapshot */
static uint64_t cached_news;                /* the row's count of merges before it was made */

static size_t snapshot_bytes(void)
{
    return sizeof(struct snapshot) + (size_t)width * sizeof(oriel_tick);
}

static oriel_shm_offset snapshot_make(void)
{
    oriel_shm_offset place = oriel_shm_allocate(snapshot_bytes());
    struct snapshot *snapshot = oriel_shm_at(place);
    if (snapshot != NULL)
        atomic_store_explicit(&snapshot->references, 1, memory_order_relaxed);
    return place;
}

void oriel_clock_snapshots_start(int clock_width)
{
    width = clock_width;
    cached = 0;
}

void oriel_clock_snapshots_drop(void)
{
    oriel_order_snapshot_release(cached);
    cached = 0;
}

static void snapshot_cache(const struct oriel_rank *row, uint64_t news)
{
    oriel_clock_snapshots_drop();
    cached = snapshot_make();
    cached_row = row;
    cached_news = news;
    struct snapshot *snapshot = oriel_shm_at(cached);
    for (int i = 0; snapshot != NULL && i < width; i++)
        snapshot->clock[i] = oriel_rank_tick(row, i);
}

oriel_shm_offset oriel_clock_snapshot_of(const struct oriel_order_own *mine)
{
    struct snapshot *snapshot = oriel_shm_at(cached);
    uint64_t news = atomic_load_explicit(&mine->news, memory_order_acquire);
    if (snapshot == NULL || cached_row != mine->row || cached_news != news ||
        snapshot->clock[mine->index] != oriel_rank_tick(mine->row, mine->index))
        snapshot_cache(mine->row, news);
    snapshot = oriel_shm_at(cached);
    if (snapshot != NULL)
        atomic_fetch_add_explicit(&snapshot->references, 1, memory_order_relaxed);
    return cached;
}

const oriel_tick *oriel_clock_snapshot_clock(oriel_shm_offset place)
{
    const struct snapshot *snapshot = oriel_shm_at(place);
    return snapshot == NULL ? NULL : snapshot->clock;
}

oriel_shm_offset oriel_order_snapshot_of(const oriel_tick *clock)
{
    oriel_shm_offset place = snapshot_make();
    struct snapshot *snapshot = oriel_shm_at(place);
    if (snapshot != NULL)
        memcpy(snapshot->clock, clock, (size_t)width * sizeof *clock);
    return place;
}

void oriel_order_snapshot_release(oriel_shm_offset place)
{
    if (place == ORIEL_SNAPSHOT_LIVE)
        return;
    struct snapshot *snapshot = oriel_shm_at(place);
    if (snapshot != NULL &&
        atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) == 1)
        oriel_shm_free(place, snapshot_bytes());
}
