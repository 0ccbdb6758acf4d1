/* Two tables of regions, sorted arrays in the owner's memory file. One is the current table; the
 * other lags one change behind and becomes the next. Regions never overlap, so both their starts
 * and their ends ascend.
 *
 * The owner, under its own mutex; v is the version, even:
 *   A1: version := v + 1
 *   A2: release fence
 *   A3: applies the last change and the new one to the other table
 *   A4: version := v + 2 (release): the other table is now the current one
 *
 * An origin (rma/region_lookup.c):
 *   B1: loads version (acquire); v is version without its lowest bit: tables[v / 2 % 2] is the
 *       current table
 *   B2: loads its offset and count
 *   B3: acquire fence, loads version; above v + 2: tries again
 *   B4: searches
 *   B5: acquire fence, loads version; above v + 2: tries again
 *
 * P1: B1 reads an A4 (or an A1 after it), so B2 and B4 see at least that change's words.
 *
 * P2: the table of v is written again by A3 of the change that starts with version v + 3. If B2 or
 *     B4 reads a word of it, the fences A2 and B3 or B5 make the load after them see v + 3 or more.
 *
 * P3: B4 searches an array that was the current table at B3. Arrays that a table has outgrown stay
 *     until the window is freed; in total they are no longer than the tables. A thread caches the
 *     regions that it found last with their version: the same v at B1 means the same table, one
 *     load.
 *
 * The program's own synchronisation makes an attach visible to origins, and orders A4 before their
 * B1. Memory is promoted before A1 of its attach. It is demoted after A4 of its detach, when no
 * origin may access it any more.
 *
 * Progress: a lookup is repeated only when two changes occurred within its microsecond. A dead
 * owner's table stays valid. */
#include "create/regions.h"

#include "base/delay.h"
#include "rma/region_lookup.h"

#include <pthread.h>
#include <stdlib.h>

enum { LEAST_CAPACITY = 32 };

/* A change of a table: adds ranges, or removes the regions inserted at start. */
struct change {
    const struct oriel_memory_range *ranges; /* NULL: removal */
    size_t count;
    uint64_t start; /* 0: no change */
};

/* Data that only the owner uses. */
struct oriel_region_arrays {
    /* not yet applied to the lagging table; its ranges stay until the next change */
    struct change last;
    uint64_t capacities[2];
    uint64_t *offsets; /* of all arrays that are or were tables */
    size_t count;
};

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void word_set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static void region_set(struct oriel_region *region, uint64_t start, uint64_t end, uint64_t place)
{
    word_set(&region->start, start);
    oriel_delay();
    word_set(&region->end, end);
    word_set(&region->place, place);
}

static void region_move(struct oriel_region *to, const struct oriel_region *from)
{
    region_set(to, oriel_region_lookup_get(&from->start), oriel_region_lookup_get(&from->end),
               oriel_region_lookup_get(&from->place));
}

static struct oriel_region *own_regions(const struct oriel_region_table *table)
{
    return (struct oriel_region *)(oriel_file_base() + oriel_region_lookup_get(&table->offset));
}

static enum oriel_status regions_no_memory(void)
{
    return oriel_fail(ORIEL_E_ATTACH, "no memory for the table of attached regions");
}

/* Reserves room for more regions in the lagging table. */
static enum oriel_status region_table_reserve(struct oriel_region_arrays *arrays,
                                              struct oriel_region_table *table, int which,
                                              size_t more)
{
    uint64_t count = oriel_region_lookup_get(&table->count);
    uint64_t capacity = 2 * count + more + LEAST_CAPACITY;
    uint64_t offset;
    if (count + more <= arrays->capacities[which])
        return ORIEL_OK;
    uint64_t *offsets = realloc(arrays->offsets, (arrays->count + 1) * sizeof *offsets);
    if (offsets == NULL)
        return regions_no_memory();
    arrays->offsets = offsets;
    if (oriel_file_alloc(capacity * sizeof(struct oriel_region), ORIEL_CACHE_LINE, &offset) !=
        ORIEL_OK)
        return regions_no_memory();
    struct oriel_region *regions = (struct oriel_region *)(oriel_file_base() + offset);
    for (uint64_t i = 0; i < count; i++)
        region_move(&regions[i], &own_regions(table)[i]);
    offsets[arrays->count++] = offset;
    arrays->capacities[which] = capacity;
    word_set(&table->offset, offset);
    return ORIEL_OK;
}

static void insert_regions(struct oriel_region_table *table, uint64_t at,
                           const struct oriel_memory_range *ranges, uint64_t more)
{
    struct oriel_region *regions = own_regions(table);
    uint64_t count = oriel_region_lookup_get(&table->count);
    for (uint64_t i = count; i > at; i--)
        region_move(&regions[i + more - 1], &regions[i - 1]);
    for (uint64_t i = 0; i < more; i++) {
        const struct oriel_memory_range *range = &ranges[i];
        region_set(&regions[at + i], range->start, range->end,
                   range->offset | (i > 0 ? ORIEL_REGION_CONTINUES : 0) |
                       (range->place == ORIEL_SHARING_DEVICE ? ORIEL_REGION_DEVICE : 0));
    }
    word_set(&table->count, count + more);
}

static void remove_regions(struct oriel_region_table *table, uint64_t at)
{
    struct oriel_region *regions = own_regions(table);
    uint64_t count = oriel_region_lookup_get(&table->count);
    uint64_t end = at + 1;
    while (end < count &&
           (oriel_region_lookup_get(&regions[end].place) & ORIEL_REGION_CONTINUES) != 0)
        end++;
    for (uint64_t i = end; i < count; i++)
        region_move(&regions[at + i - end], &regions[i]);
    oriel_delay();
    word_set(&table->count, count - (end - at));
}

static void change_apply(struct oriel_region_table *table, const struct change *change)
{
    uint64_t up_to = oriel_region_lookup_count(
        own_regions(table), oriel_region_lookup_get(&table->count), change->start);
    if (change->ranges != NULL)
        insert_regions(table, up_to, change->ranges, change->count);
    else if (change->start != 0)
        remove_regions(table, up_to - 1);
}

static enum oriel_status change_publish(struct oriel_window *window, const struct change *change)
{
    struct oriel_regions *regions = &window->control->regions;
    struct oriel_region_arrays *arrays = window->region_arrays;
    uint64_t version = oriel_region_lookup_get(&regions->version);
    int next = (int)(version / 2 + 1) % 2;
    word_set(&regions->version, version + 1);  /* A1 */
    atomic_thread_fence(memory_order_release); /* A2 */
    oriel_delay();
    enum oriel_status status = region_table_reserve(arrays, &regions->tables[next], next,
                                                    arrays->last.count + change->count); /* A3 */
    if (status != ORIEL_OK) {
        word_set(&regions->version, version); /* only the lagging table's location has changed */
        return status;
    }
    change_apply(&regions->tables[next], &arrays->last);
    change_apply(&regions->tables[next], change);
    arrays->last = *change;
    oriel_delay();
    atomic_store_explicit(&regions->version, version + 2, memory_order_release); /* A4 */
    return ORIEL_OK;
}

static struct oriel_region_table *current_table(struct oriel_window *window)
{
    struct oriel_regions *regions = &window->control->regions;
    return &regions->tables[oriel_region_lookup_get(&regions->version) / 2 % 2];
}

static enum oriel_status overlap_check(struct oriel_window *window, uint64_t start, uint64_t end)
{
    const struct oriel_region_table *table = current_table(window);
    const struct oriel_region *regions = own_regions(table);
    uint64_t count = oriel_region_lookup_get(&table->count);
    uint64_t up_to = oriel_region_lookup_count(regions, count, start);
    const struct oriel_region *in_the_way = NULL;
    if (up_to > 0 && oriel_region_lookup_get(&regions[up_to - 1].end) > start)
        in_the_way = &regions[up_to - 1];
    else if (up_to < count && oriel_region_lookup_get(&regions[up_to].start) < end)
        in_the_way = &regions[up_to];
    if (in_the_way == NULL)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_ATTACH,
                      "a part is already attached, in the region of %lu bytes at %#lx",
                      (unsigned long)(oriel_region_lookup_get(&in_the_way->end) -
                                      oriel_region_lookup_get(&in_the_way->start)),
                      (unsigned long)oriel_region_lookup_get(&in_the_way->start));
}

static enum oriel_status regions_insert_locked(struct oriel_window *window,
                                               const struct change *change)
{
    if (window->region_arrays == NULL)
        window->region_arrays = calloc(1, sizeof *window->region_arrays);
    if (window->region_arrays == NULL)
        return regions_no_memory();
    enum oriel_status status =
        overlap_check(window, change->start, change->ranges[change->count - 1].end);
    return status == ORIEL_OK ? change_publish(window, change) : status;
}

enum oriel_status oriel_regions_insert(struct oriel_window *window,
                                       const struct oriel_memory_range *ranges, size_t count)
{
    pthread_mutex_lock(&changing);
    enum oriel_status status =
        regions_insert_locked(window, &(struct change){ranges, count, ranges[0].start});
    pthread_mutex_unlock(&changing);
    return status;
}

static bool region_starts_at(struct oriel_window *window, uint64_t address)
{
    const struct oriel_region_table *table = current_table(window);
    const struct oriel_region *regions = own_regions(table);
    uint64_t up_to =
        oriel_region_lookup_count(regions, oriel_region_lookup_get(&table->count), address);
    return up_to > 0 && oriel_region_lookup_get(&regions[up_to - 1].start) == address &&
           (oriel_region_lookup_get(&regions[up_to - 1].place) & ORIEL_REGION_CONTINUES) == 0;
}

enum oriel_status oriel_regions_remove(struct oriel_window *window, uint64_t address)
{
    pthread_mutex_lock(&changing);
    enum oriel_status status =
        window->region_arrays != NULL && region_starts_at(window, address)
            ? change_publish(window, &(struct change){.start = address})
            : oriel_fail(ORIEL_E_ATTACH, "no region starts at %#lx", (unsigned long)address);
    pthread_mutex_unlock(&changing);
    return status;
}

void oriel_regions_close(struct oriel_window *window)
{
    struct oriel_region_arrays *arrays = window->region_arrays;
    if (arrays == NULL)
        return;
    for (size_t i = 0; i < arrays->count; i++)
        oriel_file_free(arrays->offsets[i]);
    free(arrays->offsets);
    free(arrays);
    window->region_arrays = NULL;
}
