/* Uses of memory become accesses to the windows that have it. An address becomes an offset in the
 * window's history. Bytes outside the region are removed. */
#include "check/local/window_memory_uses.h"

#include "check/access/strided_sets.h"

#include <stddef.h>

struct oriel_use_range oriel_use_range_of(const struct oriel_extents *extents)
{
    struct oriel_use_range bounds = {UINT64_MAX, 0};
    for (size_t i = 0; i < extents->count; i++) {
        struct oriel_access_extent runs;
        if (!oriel_byte_runs_tidy(&extents->list[i], &runs))
            continue;
        if ((uint64_t)runs.offset < bounds.low)
            bounds.low = (uint64_t)runs.offset;
        if ((uint64_t)oriel_byte_runs_end(&runs) > bounds.high)
            bounds.high = (uint64_t)oriel_byte_runs_end(&runs);
    }
    return bounds;
}

static void extents_shift(struct oriel_access_extent *list, size_t count, int64_t distance)
{
    for (size_t i = 0; i < count; i++)
        list[i].offset += distance;
}

/* Stores the parts of an extent that are in the region; returns their number. */
static size_t extent_clip(const struct oriel_access_extent *extent,
                          const struct oriel_local_region *region,
                          struct oriel_access_extent *parts)
{
    struct oriel_access_extent runs;
    struct oriel_access_extent upper[ORIEL_RUNS_PIECES];
    size_t left = 1;
    size_t count = 0;
    if (!oriel_byte_runs_tidy(extent, &runs))
        return 0;
    upper[0] = runs;
    int64_t below = (int64_t)region->low - runs.offset;
    if (below > 0)
        left = oriel_byte_runs_subtract(
            &runs, &(struct oriel_access_extent){runs.offset, (uint64_t)below, 1, 0}, upper);
    int64_t above = oriel_byte_runs_end(&runs) - (int64_t)region->high;
    struct oriel_access_extent over = {(int64_t)region->high, (uint64_t)(above > 0 ? above : 0), 1,
                                       0};
    for (size_t i = 0; i < left; i++) {
        if (above > 0)
            count += oriel_byte_runs_subtract(&upper[i], &over, parts + count);
        else
            parts[count++] = upper[i];
    }
    return count;
}

void oriel_region_use(const struct oriel_local_region *region, const struct oriel_access *access,
                      struct oriel_extents *extents, const struct oriel_use_range *bounds)
{
    int64_t distance = region->offset - (int64_t)region->low;
    if (bounds->low >= region->low && bounds->high <= region->high) {
        extents_shift(extents->list, extents->count, distance);
        oriel_history_add(region->history, access, extents->list, extents->count, region->tell,
                          region->closure);
        extents_shift(extents->list, extents->count, -distance);
        return;
    }
    for (size_t i = 0; i < extents->count; i++) {
        struct oriel_access_extent parts[ORIEL_RUNS_PIECES * ORIEL_RUNS_PIECES];
        size_t count = extent_clip(&extents->list[i], region, parts);
        extents_shift(parts, count, distance);
        if (count > 0)
            oriel_history_add(region->history, access, parts, count, region->tell, region->closure);
    }
}

void oriel_regions_order(oriel_atomic_fn *order, uint64_t low, uint64_t high, bool gives)
{
    const struct oriel_local_region *region = NULL;
    while ((region = oriel_region_find(low, high, region)) != NULL)
        order(region->closure, region->offset + (int64_t)(low - region->low), gives);
}
