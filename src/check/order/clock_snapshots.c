/* Clock snapshots in the checker's shared memory, with reference counts. The process caches the
 * current snapshot for all accesses that it begins before its clock changes. */
#include "check/order/clock_snapshots.h"

#include "check/order/order.h"

#include <string.h>

struct moment {
    _Atomic uint64_t references;
    uint64_t unused;
    oriel_tick clock[];
};

static int width;
/* the cached snapshot, with a reference; 0 when the clock has changed since */
static oriel_shm_offset kept;

static size_t moment_bytes(void)
{
    return sizeof(struct moment) + (size_t)width * sizeof(oriel_tick);
}

static oriel_shm_offset make(void)
{
    oriel_shm_offset place = oriel_shm_allocate(moment_bytes());
    struct moment *moment = oriel_shm_at(place);
    if (moment != NULL)
        atomic_store_explicit(&moment->references, 1, memory_order_relaxed);
    return place;
}

void oriel_moments_start(int clock_width)
{
    width = clock_width;
    kept = 0;
}

void oriel_moments_drop(void)
{
    oriel_order_moment_release(kept);
    kept = 0;
}

static void keep(const struct oriel_rank *row)
{
    oriel_moments_drop();
    kept = make();
    struct moment *moment = oriel_shm_at(kept);
    for (int i = 0; moment != NULL && i < width; i++)
        moment->clock[i] = oriel_rank_tick(row, i);
}

oriel_shm_offset oriel_moment_of_row(const struct oriel_rank *row, int rank)
{
    struct moment *moment = oriel_shm_at(kept);
    if (moment == NULL || moment->clock[rank] != oriel_rank_tick(row, rank))
        keep(row);
    moment = oriel_shm_at(kept);
    if (moment != NULL)
        atomic_fetch_add_explicit(&moment->references, 1, memory_order_relaxed);
    return kept;
}

const oriel_tick *oriel_moment_clock(oriel_shm_offset place)
{
    const struct moment *moment = oriel_shm_at(place);
    return moment == NULL ? NULL : moment->clock;
}

oriel_shm_offset oriel_order_moment_of(const oriel_tick *clock)
{
    oriel_shm_offset place = make();
    struct moment *moment = oriel_shm_at(place);
    if (moment != NULL)
        memcpy(moment->clock, clock, (size_t)width * sizeof *clock);
    return place;
}

void oriel_order_moment_release(oriel_shm_offset place)
{
    if (place == ORIEL_MOMENT_NOW)
        return;
    struct moment *moment = oriel_shm_at(place);
    if (moment != NULL &&
        atomic_fetch_sub_explicit(&moment->references, 1, memory_order_acq_rel) == 1)
        oriel_shm_free(place, moment_bytes());
}
