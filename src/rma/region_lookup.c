/* The origin's half of the protocol in create/regions.c, which has the argument: B1 to B5. */
#include "rma/region_lookup.h"

#include "base/delay.h"

enum { CACHED_REGIONS = 8 };

/* The region found last at one target, in one version of its table. */
struct cached_region {
    uint64_t window_serial; /* 0: empty */
    int32_t target;
    uint64_t version;
    struct oriel_region_lookup region;
};

static _Thread_local struct cached_region cached_regions[CACHED_REGIONS];

static bool cache_matches(const struct cached_region *cached, const struct oriel_window *window,
                          int32_t target, uint64_t version)
{
    return cached->window_serial == window->serial && cached->target == target &&
           cached->version == version;
}

/* The version of the current table. */
static uint64_t load_version(const struct oriel_regions *regions)
{
    return atomic_load_explicit(&regions->version, memory_order_acquire) & ~UINT64_C(1); /* B1 */
}

/* Whether a later version may have overwritten the table. */
static bool version_is_over(const struct oriel_regions *regions, uint64_t version)
{
    atomic_thread_fence(memory_order_acquire); /* B3, B5 */
    return oriel_region_lookup_get(&regions->version) > version + 2;
}

/* One search of the current table; false if it may have changed meanwhile. *held: whether all of
 * [address, end) is attached. *found is the region with the first byte. */
static bool region_search(const struct oriel_regions *regions, const char *file_base,
                          uint64_t address, uint64_t end, bool *held, struct cached_region *found)
{
    uint64_t version = load_version(regions);
    const struct oriel_region_table *table = &regions->tables[version / 2 % 2];
    oriel_delay();
    const struct oriel_region *array =
        (const struct oriel_region *)(file_base + oriel_region_lookup_get(&table->offset)); /* B2 */
    uint64_t count = oriel_region_lookup_get(&table->count);
    if (version_is_over(regions, version))
        return false;
    oriel_delay();
    uint64_t held_to = address;
    uint64_t first = oriel_region_lookup_count(array, count, address); /* B4 */
    *held = false;
    for (uint64_t i = first; i > 0 && i <= count && !*held; i++) {
        const struct oriel_region *region = &array[i - 1];
        uint64_t region_end = oriel_region_lookup_get(&region->end);
        if (oriel_region_lookup_get(&region->start) > held_to || region_end <= held_to)
            break;
        if (i == first) {
            const uint64_t place = oriel_region_lookup_get(&region->place);
            const bool is_device = (place & ORIEL_REGION_DEVICE) != 0;
            *found = (struct cached_region){.version = version,
                                            .region = {oriel_region_lookup_get(&region->start),
                                                       region_end,
                                                       is_device ? 0 : ORIEL_REGION_OFFSET(place),
                                                       is_device ? ORIEL_REGION_OFFSET(place) : 0}};
        }
        held_to = region_end;
        *held = held_to >= end;
    }
    oriel_delay();
    return !version_is_over(regions, version);
}

/* Whether all of the range is attached. *out then has the region of its first byte. */
static bool region_find(const struct oriel_window *window, int32_t target, uint64_t address,
                        uint64_t end, struct cached_region **out)
{
    const struct oriel_regions *regions = &oriel_window_control(window, target)->regions;
    struct cached_region *cached = &cached_regions[(uint32_t)target % CACHED_REGIONS];
    struct cached_region found = {.window_serial = 0};
    bool held;
    *out = cached;
    if (cache_matches(cached, window, target, load_version(regions)) &&
        address >= cached->region.start && end <= cached->region.end)
        return true;
    while (!region_search(regions, window->control_bases[target], address, end, &held, &found))
        oriel_cpu_relax();
    if (held) {
        *cached = found;
        cached->window_serial = window->serial;
        cached->target = target;
    }
    return held;
}

bool oriel_region_lookup_hold(const struct oriel_window *window, int32_t target, uint64_t address,
                              uint64_t len_bytes)
{
    struct cached_region *cached;
    return address + len_bytes >= address &&
           region_find(window, target, address, address + len_bytes, &cached);
}

bool oriel_region_lookup_find(const struct oriel_window *window, int32_t target, uint64_t address,
                              struct oriel_region_lookup *out)
{
    struct cached_region *cached;
    if (address == UINT64_MAX || !region_find(window, target, address, address + 1, &cached))
        return false;
    *out = cached->region;
    return true;
}
