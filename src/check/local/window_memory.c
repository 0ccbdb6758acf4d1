/* Regions in one array, sorted by their first byte. Insertion and removal move the rest: they are
 * rare compared to lookups. */
#include "check/local/window_memory.h"

#include "check/access/aliased_windows.h"

#include <stdlib.h>
#include <string.h>

static struct {
    struct oriel_local_region *list;
    size_t count;
    size_t room;
} own;

struct oriel_regions_bounds oriel_regions_bounds;

static void bounds_update(void)
{
    oriel_regions_bounds = (struct oriel_regions_bounds){0, 0};
    if (own.count > 0)
        oriel_regions_bounds =
            (struct oriel_regions_bounds){own.list[0].low, own.list[own.count - 1].reach};
}

static void reach_update(size_t from)
{
    for (size_t i = from; i < own.count; i++) {
        uint64_t before = i == 0 ? 0 : own.list[i - 1].reach;
        own.list[i].reach = own.list[i].high > before ? own.list[i].high : before;
    }
    bounds_update();
}

/* Returns the index of the first region that starts at low or above. */
static size_t region_index_from(uint64_t low)
{
    size_t least = 0;
    size_t most = own.count;
    while (least < most) {
        size_t middle = least + (most - least) / 2;
        if (own.list[middle].low < low)
            least = middle + 1;
        else
            most = middle;
    }
    return least;
}

enum oriel_status oriel_region_add(const struct oriel_local_region *region)
{
    if (own.count == own.room) {
        size_t room = own.room == 0 ? 16 : 2 * own.room;
        struct oriel_local_region *list = realloc(own.list, room * sizeof *list);
        if (list == NULL)
            return oriel_fail(ORIEL_E_NO_MEM, "no memory to watch a window's %zu regions",
                              own.count);
        own.list = list;
        own.room = room;
    }
    size_t at = region_index_from(region->low);
    memmove(own.list + at + 1, own.list + at, (own.count - at) * sizeof *own.list);
    own.list[at] = *region;
    own.count++;
    reach_update(at);
    return ORIEL_OK;
}

bool oriel_region_remove(uint64_t low, oriel_shm_offset history, struct oriel_local_region *out)
{
    for (size_t at = region_index_from(low); at < own.count && own.list[at].low == low; at++) {
        if (own.list[at].history != history)
            continue;
        *out = own.list[at];
        own.count--;
        memmove(own.list + at, own.list + at + 1, (own.count - at) * sizeof *own.list);
        reach_update(at);
        return true;
    }
    return false;
}

void oriel_regions_clear(void)
{
    free(own.list);
    own.list = NULL;
    own.count = own.room = 0;
    bounds_update();
}

const struct oriel_local_region *oriel_region_find(uint64_t low, uint64_t high,
                                                   const struct oriel_local_region *last)
{
    size_t at;
    if (last == NULL && oriel_regions_are_elsewhere(low, high))
        return NULL;
    if (last != NULL) {
        at = (size_t)(last - own.list) + 1;
    } else { /* back to the first region that can contain low */
        at = region_index_from(low + 1);
        while (at > 0 && own.list[at - 1].reach > low)
            at--;
    }
    for (; at < own.count && own.list[at].low < high; at++)
        if (own.list[at].high > low)
            return &own.list[at];
    return NULL;
}

bool oriel_local_region_end(const struct oriel_local_region *region)
{
    bool fresh = !region->ended;
    own.list[region - own.list].ended = true;
    return fresh;
}

void oriel_region_put_also(const struct oriel_local_region *region)
{
    const struct oriel_local_region *other = NULL;
    while ((other = oriel_region_find(region->low, region->high, other)) != NULL) {
        uint64_t low = other->low > region->low ? other->low : region->low;
        uint64_t high = other->high < region->high ? other->high : region->high;
        struct oriel_history_bytes added = {region->history,
                                            region->offset + (int64_t)(low - region->low)};
        struct oriel_history_bytes existing = {other->history,
                                               other->offset + (int64_t)(low - other->low)};
        if (added.history != existing.history)
            oriel_history_add_alias(added, existing, high - low);
    }
}
