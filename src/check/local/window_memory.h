/* The process's memory that belongs to windows: which window's bytes lie at an address.  Few regions that seldom change, looked
 * up often: sorted by address, with the furthest end so far, so that overlapping ones are found too.  local_accesses.c calls, under its
 * lock (shared for finding). */
#ifndef ORIEL_CHECK_LOCAL_WINDOW_MEMORY_H
#define ORIEL_CHECK_LOCAL_WINDOW_MEMORY_H

#include "base/status.h"
#include "check/common/access_types.h"

struct oriel_local_region {
    uint64_t low;
    uint64_t high;
    uint64_t reach; /* the furthest end of this one and all before it */
    oriel_shm_offset history;
    int64_t offset; /* of the byte at low */
    oriel_conflict_fn *tell;
    void *closure;
};

enum oriel_status oriel_region_add(const struct oriel_local_region *region);

/* The history of one that is to be added comes beside those of the regions that have bytes of it (aliased_windows.h). */
void oriel_region_put_beside(const struct oriel_local_region *region);

/* False when there is none. */
bool oriel_region_remove(uint64_t low, oriel_shm_offset history, struct oriel_local_region *out);

void oriel_regions_clear(void);

/* From the first byte of all to behind the last. */
struct oriel_regions_bounds {
    uint64_t low;
    uint64_t high;
};
extern struct oriel_regions_bounds oriel_regions_bounds __attribute__((visibility("hidden")));

static inline bool oriel_regions_are_elsewhere(uint64_t low, uint64_t high)
{
    return high <= oriel_regions_bounds.low || low >= oriel_regions_bounds.high;
}

/* The next region with bytes from low to high: last is NULL, or what was found last; NULL at the end. */
const struct oriel_local_region *oriel_region_find(uint64_t low, uint64_t high,
                                                   const struct oriel_local_region *last);

#endif
