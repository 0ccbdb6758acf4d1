/* A table of regions is a sorted array in the owner's memory file under a version word: a sequence lock with one writer,
 * whose readers are other processes.  Regions never overlap, so that both their starts and their ends ascend.
 *
 * The owner, under a mutex of its own:
 *     A1: version := odd          A2: release fence     A3: the table's words change
 *     A4: version := even, greater than before (release)
 * An origin:
 *     B1: load version (acquire); odd: try again        B2: load the table's place and length
 *     B3: acquire fence           B4: load version; not B1's: try again
 *     B5: search                  B6: acquire fence     B7: load version; not B1's: try again
 * P1: B1 reads an A4, so B2 and B5 see at least that change's words.  P2: if B2 or B5 reads a word of a later A3, the fences A2
 * and B3 or B6 order that change's A1 before B4 or B7, which then sees another version.  P3: B5 searches an array that was
 * the table at B4, and arrays that the table has outgrown stay until the window is freed: together they are no longer than the
 * present one.  A thread remembers the regions that it found last with their version: the same version at B1 means the same
 * table, one load.
 * Attach is made known to origins by the program's own synchronisation, which orders A4 before their B1.
 * Progress: a reader repeats only because the owner changed the table meanwhile.  Death between A1 and A4 leaves the
 * version odd for ever: readers look whether the owner lives.  The version has 64 bits and does not wrap. */
#include "window/regions.h"

#include "base/delay.h"
#include "sync/watch.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 32, REMEMBERED = 8, TRIES_UNTIL_YIELD = 64, TRIES_UNTIL_WATCH = 4096 };

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
static uint64_t count_up_to(const struct oriel_region *table, uint64_t count, uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (get(&table[middle].start) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* --- the owner --- */

static void change_begin(struct oriel_regions *regions)
{
    set(&regions->version, get(&regions->version) + 1); /* A1 */
    atomic_thread_fence(memory_order_release);          /* A2 */
    oriel_delay();
}

static void change_end(struct oriel_regions *regions)
{
    oriel_delay();
    atomic_store_explicit(&regions->version, get(&regions->version) + 1, memory_order_release); /* A4 */
}

static struct oriel_region *own_table(const struct oriel_window *window)
{
    return (struct oriel_region *)(oriel_file_base() + get(&window->control->regions.offset));
}

/* Room for one more.  A larger array is filled before anybody is told of it. */
static enum oriel_status make_room(struct oriel_window *window)
{
    struct oriel_regions *regions = &window->control->regions;
    uint64_t count = get(&regions->count);
    if (count < window->region_capacity)
        return ORIEL_OK;
    uint64_t offset;
    size_t tables = window->region_table_count;
    uint64_t capacity = count == 0 ? FIRST_CAPACITY : 2 * count;
    uint64_t *offsets = realloc(window->region_tables, (tables + 1) * sizeof *offsets);
    if (offsets != NULL)
        window->region_tables = offsets;
    if (offsets == NULL ||
        oriel_file_alloc(capacity * sizeof(struct oriel_region), ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return oriel_fail(ORIEL_E_ATTACH, "no memory for a table of %lu regions", (unsigned long)capacity);
    struct oriel_region *table = (struct oriel_region *)(oriel_file_base() + offset);
    for (uint64_t i = 0; i < count; i++)
        move_region(&table[i], &own_table(window)[i]);
    change_begin(regions);
    set(&regions->offset, offset); /* A3 */
    change_end(regions);
    window->region_tables[tables] = offset;
    window->region_table_count = tables + 1;
    window->region_capacity = capacity;
    return ORIEL_OK;
}

static enum oriel_status overlaps(const struct oriel_region *region)
{
    return oriel_fail(ORIEL_E_ATTACH, "a part is attached already, in the region of %lu bytes at %#lx",
                      (unsigned long)(get(&region->end) - get(&region->start)), (unsigned long)get(&region->start));
}

static enum oriel_status insert(struct oriel_window *window, uint64_t start, uint64_t end)
{
    enum oriel_status status = make_room(window);
    if (status != ORIEL_OK)
        return status;
    struct oriel_regions *regions = &window->control->regions;
    struct oriel_region *table = own_table(window);
    uint64_t count = get(&regions->count);
    uint64_t at = count_up_to(table, count, start);
    if (at > 0 && get(&table[at - 1].end) > start)
        return overlaps(&table[at - 1]);
    if (at < count && get(&table[at].start) < end)
        return overlaps(&table[at]);
    change_begin(regions);
    for (uint64_t i = count; i > at; i--) /* A3 */
        move_region(&table[i], &table[i - 1]);
    set(&table[at].start, start);
    oriel_delay();
    set(&table[at].end, end);
    set(&regions->count, count + 1);
    change_end(regions);
    return ORIEL_OK;
}

/* Regions of no bytes are nobody's but the owner's. */
static enum oriel_status keep_empty(struct oriel_window *window, uint64_t address)
{
    uint64_t *empty = realloc(window->empty_regions, (window->empty_count + 1) * sizeof *empty);
    if (empty == NULL)
        return oriel_fail(ORIEL_E_ATTACH, "no memory for an empty region");
    window->empty_regions = empty;
    empty[window->empty_count++] = address;
    return ORIEL_OK;
}

enum oriel_status oriel_regions_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > UINT64_MAX - address)
        return oriel_fail(ORIEL_E_ATTACH, "%lu bytes at %#lx pass the end of the address space",
                          (unsigned long)size_bytes, (unsigned long)address);
    pthread_mutex_lock(&changing);
    enum oriel_status status =
        size_bytes == 0 ? keep_empty(window, address) : insert(window, address, address + size_bytes);
    pthread_mutex_unlock(&changing);
    return status;
}

static bool remove_empty(struct oriel_window *window, uint64_t address)
{
    for (size_t i = window->empty_count; i-- > 0;)
        if (window->empty_regions[i] == address) {
            window->empty_regions[i] = window->empty_regions[--window->empty_count];
            return true;
        }
    return false;
}

static bool remove_region(struct oriel_window *window, uint64_t address)
{
    struct oriel_regions *regions = &window->control->regions;
    uint64_t count = get(&regions->count);
    if (count == 0)
        return false;
    struct oriel_region *table = own_table(window);
    uint64_t behind = count_up_to(table, count, address);
    if (behind == 0 || get(&table[behind - 1].start) != address)
        return false;
    change_begin(regions);
    for (uint64_t i = behind; i < count; i++) /* A3 */
        move_region(&table[i - 1], &table[i]);
    oriel_delay();
    set(&regions->count, count - 1);
    change_end(regions);
    return true;
}

enum oriel_status oriel_regions_detach(struct oriel_window *window, uint64_t address)
{
    pthread_mutex_lock(&changing);
    bool removed = remove_region(window, address) || remove_empty(window, address);
    pthread_mutex_unlock(&changing);
    return removed ? ORIEL_OK : oriel_fail(ORIEL_E_ATTACH, "no region starts at %#lx", (unsigned long)address);
}

void oriel_regions_close(struct oriel_window *window)
{
    for (size_t i = 0; i < window->region_table_count; i++)
        oriel_file_free(window->region_tables[i]);
    free(window->region_tables);
    free(window->empty_regions);
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

static bool has_changed(const struct oriel_regions *regions, uint64_t version)
{
    atomic_thread_fence(memory_order_acquire); /* B3, B6 */
    return get(&regions->version) != version;  /* B4, B7 */
}

/* One look at a table; false when it changed meanwhile.  found is the region that holds the first byte. */
static bool look(const struct oriel_regions *regions, const char *file_base, uint64_t address, uint64_t end, bool *held,
                 struct memory *found)
{
    uint64_t version = atomic_load_explicit(&regions->version, memory_order_acquire); /* B1 */
    if (version % 2 != 0)
        return false;
    oriel_delay();
    const struct oriel_region *table = (const struct oriel_region *)(file_base + get(&regions->offset)); /* B2 */
    uint64_t count = get(&regions->count);
    if (has_changed(regions, version))
        return false;
    oriel_delay();
    uint64_t held_to = address;
    uint64_t first = count_up_to(table, count, address); /* B5 */
    *held = false;
    for (uint64_t i = first; i > 0 && i <= count && !*held; i++) {
        const struct oriel_region *region = &table[i - 1];
        uint64_t region_end = get(&region->end);
        if (get(&region->start) > held_to || region_end <= held_to)
            break;
        if (i == first)
            *found = (struct memory){.version = version, .start = get(&region->start), .end = region_end};
        held_to = region_end;
        *held = held_to >= end;
    }
    oriel_delay();
    return !has_changed(regions, version);
}

/* Between two tries.  The owner may have lost the processor, or its life. */
static enum oriel_status give_time(const struct oriel_window *window, int32_t target, uint32_t tries)
{
    struct oriel_watched watched = {window, target};
    if (tries % TRIES_UNTIL_WATCH == 0)
        return oriel_watch_rank(&watched);
    if (tries % TRIES_UNTIL_YIELD == 0)
        sched_yield();
    else
        oriel_cpu_relax();
    return ORIEL_OK;
}

enum oriel_status oriel_regions_hold(const struct oriel_window *window, int32_t target, uint64_t address,
                                     uint64_t len_bytes, bool *held)
{
    const struct oriel_regions *regions = &oriel_window_control(window, target)->regions;
    struct memory *memory = &memories[(uint32_t)target % REMEMBERED];
    uint64_t end = address + len_bytes;
    *held = false;
    if (end < address)
        return ORIEL_OK;
    *held = true;
    if (remembers(memory, window, target, atomic_load_explicit(&regions->version, memory_order_acquire)) && /* B1 */
        address >= memory->start && end <= memory->end)
        return ORIEL_OK;
    struct memory found = {.window_serial = 0};
    uint32_t tries = 0;
    while (!look(regions, window->control_bases[target], address, end, held, &found)) {
        enum oriel_status status = give_time(window, target, ++tries);
        if (status != ORIEL_OK)
            return status;
    }
    if (*held) {
        *memory = found;
        memory->window_serial = window->serial;
        memory->target = target;
    }
    return ORIEL_OK;
}
