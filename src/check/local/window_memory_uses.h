/* A use of memory, or an atomic instruction on it, applies to each window that has the bytes.
 * Protected by the lock of local_accesses.c. */
#ifndef ORIEL_CHECK_LOCAL_WINDOW_MEMORY_USES_H
#define ORIEL_CHECK_LOCAL_WINDOW_MEMORY_USES_H

#include "check/local/local_accesses.h"
#include "check/local/window_memory.h"

/* From the first byte to the end of the last; without bytes, low is not below high. */
struct oriel_use_range oriel_use_range_of(const struct oriel_extents *extents);

/* Adds the access to the region's history, with the bytes of the extents that are in the region.
 * `bounds` is the range of the extents, which change during the call. */
void oriel_region_use(const struct oriel_local_region *region, const struct oriel_access *access,
                      struct oriel_extents *extents, const struct oriel_use_range *bounds);

/* Applies an atomic instruction to all regions that have bytes of it. */
void oriel_regions_order(oriel_atomic_fn *order, uint64_t low, uint64_t high, bool gives);

#endif
