/* Two tables of regions, sorted arrays in the owner's memory file: one is the present table, the other lags one change behind
 * and becomes the next.  Regions never overlap, so that both their starts and their ends ascend.
 *
 * The owner, under a mutex of its own; v is the version, even:
 *     A1: version := v + 1        A2: release fence
 *     A3: the other table gets the last change and the new one
 *     A4: version := v + 2 (release): the other table is the present one
 * An origin:
 *     B1: load version (acquire), v is it without its lowest bit: tables[v / 2 % 2] is the present table
 *     B2: load its offset and count     B3: acquire fence, load version; above v + 2: try again
 *     B4: search                        B5: acquire fence, load version; above v + 2: try again
 * P1: B1 reads an A4 (or an A1 after it), so B2 and B4 see at least that change's words.  P2: the table of v is written again by
 * A3 of the change that begins with version v + 3; if B2 or B4 reads a word of it, the fences A2 and B3 or B5 make the load
 * after them see v + 3 or more.  P3: B4 searches an array that was the present table at B3; arrays that a table has outgrown stay
 * until the window is freed: together they are no longer than the tables.  A thread remembers the regions that it found last with
 * their version: the same v at B1 means the same table, one load.
 * Attach is made known to origins by the program's own synchronisation, which orders A4 before their B1.
 * Progress: a lookup is repeated only when two changes have come while it took its microsecond.  A dead owner's table stays. */
#include "window/regions.h"

#include "base/delay.h"

#include <pthread.h>
#include <stdlib.h>

enum { LEAST_CAPACITY = 32, REMEMBERED = 8 };

/* A change of a table: the region appears, or it goes. */
struct change {
    uint64_t start;
    uint64_t end; /* 0: it goes */
};

/* What the owner alone knows. */
struct oriel_attached {
    struct change last;         /* which the lagging table has not got yet; start and end 0: none */
    uint64_t capacities[2];
    uint64_t *arrays;           /* offsets of all arrays that are or were tables */
    size_t array_count;
    uint64_t *empty;            /* addresses attached with size 0: nobody's but the owner's */
    size_t empty_count;
};

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static uint64_t get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static void move_region(struct oriel_region *to, const struct oriel_region *from)
{
    set(&to->start, get(&from->start));
    set(&to->end, get(&from->end));
}

/* How many of the count regions start at or below address. */
static uint64_t count_up_to(const struct oriel_region *regions, uint64_t count, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (get(&regions[middle].start) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- the owner --- */

static struct oriel_region *own_regions(const struct oriel_region_table *table)
{
    return (struct oriel_region *)(oriel_file_base() + get(&table->offset));
}

static enum oriel_status no_memory(void)
{
    return oriel_fail(ORIEL_E_ATTACH, "no memory for the table of attached regions");
}

/* Room for two more, the last change and a new one, in the table that lags behind. */
static enum oriel_status make_room(struct oriel_attached *attached, struct oriel_region_table *table, int which)
{
    uint64_t count = get(&table->count);
    uint64_t capacity = 2 * count + LEAST_CAPACITY;
    uint64_t offset;
    if (count + 2 <= attached->capacities[which])
        return ORIEL_OK;
    uint64_t *arrays = realloc(attached->arrays, (attached->array_count + 1) * sizeof *arrays);
    if (arrays == NULL)
        return no_memory();
    attached->arrays = arrays;
    if (oriel_file_alloc(capacity * sizeof(struct oriel_region), ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return no_memory();
    struct oriel_region *regions = (struct oriel_region *)(oriel_file_base() + offset);
    for (uint64_t i = 0; i < count; i++)
        move_region(&regions[i], &own_regions(table)[i]);
    arrays[attached->array_count++] = offset;
    attached->capacities[which] = capacity;
    set(&table->offset, offset);
    return ORIEL_OK;
}

static void apply(struct oriel_region_table *table, const struct change *change)
{
    struct oriel_region *regions = own_regions(table);
    uint64_t count = get(&table->count);
    uint64_t up_to = count_up_to(regions, count, change->start);
    if (change->end != 0) {
        for (uint64_t i = count; i > up_to; i--)
            move_region(&regions[i], &regions[i - 1]);
        set(&regions[up_to].start, change->start);
        oriel_delay();
        set(&regions[up_to].end, change->end);
        set(&table->count, count + 1);
    } else if (change->start != 0) {
        for (uint64_t i = up_to; i < count; i++)
            move_region(&regions[i - 1], &regions[i]);
        oriel_delay();
        set(&table->count, count - 1);
    }
}

static enum oriel_status make_change(struct oriel_window *window, const struct change *change)
{
    struct oriel_regions *regions = &window->control->regions;
    struct oriel_attached *attached = window->attached;
    uint64_t version = get(&regions->version);
    int next = (int)(version / 2 + 1) % 2;
    set(&regions->version, version + 1);       /* A1 */
    atomic_thread_fence(memory_order_release); /* A2 */
    oriel_delay();
    enum oriel_status status = make_room(attached, &regions->tables[next], next); /* A3 */
    if (status != ORIEL_OK) {
        set(&regions->version, version); /* of the lagging table nothing but its place has changed */
        return status;
    }
    apply(&regions->tables[next], &attached->last);
    apply(&regions->tables[next], change);
    attached->last = *change;
    oriel_delay();
    atomic_store_explicit(&regions->version, version + 2, memory_order_release); /* A4 */
    return ORIEL_OK;
}

static struct oriel_region_table *present(struct oriel_window *window)
{
    struct oriel_regions *regions = &window->control->regions;
    return &regions->tables[get(&regions->version) / 2 % 2];
}

static enum oriel_status overlaps(const struct oriel_region *region)
{
    return oriel_fail(ORIEL_E_ATTACH, "a part is attached already, in the region of %lu bytes at %#lx",
                      (unsigned long)(get(&region->end) - get(&region->start)), (unsigned long)get(&region->start));
}

static enum oriel_status insert(struct oriel_window *window, uint64_t start, uint64_t end)
{
    const struct oriel_region_table *table = present(window);
    const struct oriel_region *regions = own_regions(table);
    uint64_t count = get(&table->count);
    uint64_t up_to = count_up_to(regions, count, start);
    if (up_to > 0 && get(&regions[up_to - 1].end) > start)
        return overlaps(&regions[up_to - 1]);
    if (up_to < count && get(&regions[up_to].start) < end)
        return overlaps(&regions[up_to]);
    return make_change(window, &(struct change){start, end});
}

static enum oriel_status keep_empty(struct oriel_attached *attached, uint64_t address)
{
    uint64_t *empty = realloc(attached->empty, (attached->empty_count + 1) * sizeof *empty);
    if (empty == NULL)
        return no_memory();
    attached->empty = empty;
    empty[attached->empty_count++] = address;
    return ORIEL_OK;
}

static enum oriel_status attach_locked(struct oriel_window *window, uint64_t address, uint64_t size_bytes)
{
    if (window->attached == NULL)
        window->attached = calloc(1, sizeof *window->attached);
    if (window->attached == NULL)
        return no_memory();
    return size_bytes == 0 ? keep_empty(window->attached, address) : insert(window, address, address + size_bytes);
}

enum oriel_status oriel_regions_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > UINT64_MAX - address)
        return oriel_fail(ORIEL_E_ATTACH, "%lu bytes at %#lx pass the end of the address space",
                          (unsigned long)size_bytes, (unsigned long)address);
    pthread_mutex_lock(&changing);
    enum oriel_status status = attach_locked(window, address, size_bytes);
    pthread_mutex_unlock(&changing);
    return status;
}

static bool remove_empty(struct oriel_attached *attached, uint64_t address)
{
    for (size_t i = attached->empty_count; i-- > 0;)
        if (attached->empty[i] == address) {
            attached->empty[i] = attached->empty[--attached->empty_count];
            return true;
        }
    return false;
}

static bool starts_region(struct oriel_window *window, uint64_t address)
{
    const struct oriel_region_table *table = present(window);
    const struct oriel_region *regions = own_regions(table);
    uint64_t up_to = count_up_to(regions, get(&table->count), address);
    return up_to > 0 && get(&regions[up_to - 1].start) == address;
}

static enum oriel_status detach_locked(struct oriel_window *window, uint64_t address)
{
    if (window->attached != NULL && starts_region(window, address))
        return make_change(window, &(struct change){address, 0});
    if (window->attached != NULL && remove_empty(window->attached, address))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_ATTACH, "no region starts at %#lx", (unsigned long)address);
}

enum oriel_status oriel_regions_detach(struct oriel_window *window, uint64_t address)
{
    pthread_mutex_lock(&changing);
    enum oriel_status status = detach_locked(window, address);
    pthread_mutex_unlock(&changing);
    return status;
}

void oriel_regions_close(struct oriel_window *window)
{
    struct oriel_attached *attached = window->attached;
    if (attached == NULL)
        return;
    for (size_t i = 0; i < attached->array_count; i++)
        oriel_file_free(attached->arrays[i]);
    free(attached->arrays);
    free(attached->empty);
    free(attached);
}

/* --- origins --- */

/* The region that was last found at one target, in one state of its table. */
struct memory {
    uint64_t window_serial; /* 0: nothing */
    int32_t target;
    uint64_t version;
    uint64_t start;
    uint64_t end;
};

static _Thread_local struct memory memories[REMEMBERED];

static bool remembers(const struct memory *memory, const struct oriel_window *window, int32_t target, uint64_t version)
{
    return memory->window_serial == window->serial && memory->target == target && memory->version == version;
}

/* The version whose table is the present one. */
static uint64_t load_version(const struct oriel_regions *regions)
{
    return atomic_load_explicit(&regions->version, memory_order_acquire) & ~UINT64_C(1); /* B1 */
}

/* Whether the table of a version may have been written again. */
static bool is_over(const struct oriel_regions *regions, uint64_t version)
{
    atomic_thread_fence(memory_order_acquire); /* B3, B5 */
    return get(&regions->version) > version + 2;
}

/* One look at the present table; false when it may have changed meanwhile.  found is the region that holds the first byte. */
static bool look(const struct oriel_regions *regions, const char *file_base, uint64_t address, uint64_t end, bool *held,
                 struct memory *found)
{
    uint64_t version = load_version(regions);
    const struct oriel_region_table *table = &regions->tables[version / 2 % 2];
    oriel_delay();
    const struct oriel_region *array = (const struct oriel_region *)(file_base + get(&table->offset)); /* B2 */
    uint64_t count = get(&table->count);
    if (is_over(regions, version))
        return false;
    oriel_delay();
    uint64_t held_to = address;
    uint64_t first = count_up_to(array, count, address); /* B4 */
    *held = false;
    for (uint64_t i = first; i > 0 && i <= count && !*held; i++) {
        const struct oriel_region *region = &array[i - 1];
        uint64_t region_end = get(&region->end);
        if (get(&region->start) > held_to || region_end <= held_to)
            break;
        if (i == first)
            *found = (struct memory){.version = version, .start = get(&region->start), .end = region_end};
        held_to = region_end;
        *held = held_to >= end;
    }
    oriel_delay();
    return !is_over(regions, version);
}

bool oriel_regions_hold(const struct oriel_window *window, int32_t target, uint64_t address, uint64_t len_bytes)
{
    const struct oriel_regions *regions = &oriel_window_control(window, target)->regions;
    struct memory *memory = &memories[(uint32_t)target % REMEMBERED];
    struct memory found = {.window_serial = 0};
    uint64_t end = address + len_bytes;
    bool held;
    if (end < address)
        return false;
    if (remembers(memory, window, target, load_version(regions)) && address >= memory->start && end <= memory->end)
        return true;
    while (!look(regions, window->control_bases[target], address, end, &held, &found))
        oriel_cpu_relax();
    if (held) {
        *memory = found;
        memory->window_serial = window->serial;
        memory->target = target;
    }
    return held;
}
