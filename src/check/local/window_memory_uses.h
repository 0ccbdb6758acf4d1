/* A use of memory, or an atomic instruction on it, is one of each window that has the bytes.  local_accesses.c calls, under its lock. */
#ifndef ORIEL_CHECK_LOCAL_WINDOW_MEMORY_USES_H
#define ORIEL_CHECK_LOCAL_WINDOW_MEMORY_USES_H

#include "check/local/local_accesses.h"
#include "check/local/window_memory.h"

/* From the first byte to behind the last; without bytes low is not below high. */
struct oriel_use_range oriel_use_range_of(const struct oriel_extents *extents);

/* The access goes to the region's history, with those of the extents' bytes, which are in the range, that are the region's.  The
 * extents change meanwhile. */
void oriel_region_use(const struct oriel_local_region *region, const struct oriel_access *access,
                      struct oriel_extents *extents, const struct oriel_use_range *bounds);

/* An atomic instruction, in all regions that have bytes of it. */
void oriel_regions_order(oriel_atomic_fn *order, uint64_t low, uint64_t high, bool gives);

#endif
