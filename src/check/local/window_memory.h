/* The process's memory that belongs to windows: which window's bytes are at an address. Regions are
 * few, change seldom and are looked up often. They are sorted by address, each with the highest end
 * so far, so lookups find overlapping ones, too. Protected by the lock of local_accesses.c. */
#ifndef ORIEL_CHECK_LOCAL_WINDOW_MEMORY_H
#define ORIEL_CHECK_LOCAL_WINDOW_MEMORY_H

#include "base/status.h"
#include "check/common/access_types.h"

struct oriel_local_region {
    uint64_t low;
    uint64_t high;
    uint64_t reach; /* the highest end of this region and all before it */
    oriel_shm_offset history;
    int64_t offset; /* of the byte at low */
    oriel_conflict_fn *tell;
    void *closure;
    bool ended; /* reported: the program has freed some of it */
};

enum oriel_status oriel_region_add(const struct oriel_local_region *region);

/* Links the history of a region, before it is inserted, with those of all regions that share bytes
 * with it (aliased_windows.h). */
void oriel_region_put_also(const struct oriel_local_region *region);

/* False: there is none. */
bool oriel_region_remove(uint64_t low, oriel_shm_offset history, struct oriel_local_region *out);

void oriel_regions_clear(void);

/* Marks the region as ended. Returns whether it was not yet. */
bool oriel_local_region_end(const struct oriel_local_region *region);

/* From the first byte of all regions to the end of the last. */
struct oriel_regions_bounds {
    uint64_t low;
    uint64_t high;
};
extern struct oriel_regions_bounds oriel_regions_bounds __attribute__((visibility("hidden")));

static inline bool oriel_regions_are_elsewhere(uint64_t low, uint64_t high)
{
    return high <= oriel_regions_bounds.low || low >= oriel_regions_bounds.high;
}

/* Returns the next region with bytes from low to high; NULL: no more. last: NULL, or the last
 * result. */
const struct oriel_local_region *oriel_region_find(uint64_t low, uint64_t high,
                                                   const struct oriel_local_region *last);

#endif
