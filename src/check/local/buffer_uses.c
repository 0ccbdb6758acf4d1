/* A table of uses by group. Ended uses stay allocated for the next ones, with their arrays. */
#include "check/local/buffer_uses.h"

#include "base/hash_table.h"
#include "check/local/watched_pages.h"

#include <stdlib.h>

static struct oriel_hash_table uses = ORIEL_HASH_TABLE_INIT;
static struct oriel_use *unused;
size_t oriel_uses_open;
struct oriel_uses_bounds oriel_uses_bounds = {.low = UINT64_MAX};

struct oriel_use *oriel_use_find(uint64_t group)
{
    return oriel_hash_table_find(&uses, group);
}

struct oriel_use *oriel_use_of(uint64_t group)
{
    struct oriel_use *use = oriel_hash_table_find(&uses, group);
    if (use != NULL)
        return use;
    use = unused != NULL ? unused : calloc(1, sizeof *use);
    if (use == NULL)
        return NULL;
    struct oriel_use *next = use->next;
    use->group = group;
    if (!oriel_hash_table_set(&uses, group, use)) {
        if (use != unused)
            free(use);
        return NULL;
    }
    if (use == unused)
        unused = next;
    oriel_uses_open++;
    return use;
}

void oriel_uses_bounds_widen(uint64_t low, uint64_t high)
{
    if (low < atomic_load_explicit(&oriel_uses_bounds.low, memory_order_relaxed))
        atomic_store_explicit(&oriel_uses_bounds.low, low, memory_order_relaxed);
    if (high > atomic_load_explicit(&oriel_uses_bounds.high, memory_order_relaxed))
        atomic_store_explicit(&oriel_uses_bounds.high, high, memory_order_relaxed);
}

void oriel_uses_bounds_reset(void)
{
    atomic_store_explicit(&oriel_uses_bounds.low, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&oriel_uses_bounds.high, 0, memory_order_relaxed);
}

static void *array_grow(void *list, size_t *room, size_t item_bytes)
{
    size_t more = *room == 0 ? 4 : 2 * *room;
    void *larger = realloc(list, more * item_bytes);
    if (larger != NULL)
        *room = more;
    return larger;
}

bool oriel_use_note(struct oriel_use *use, oriel_shm_offset history)
{
    for (size_t i = 0; i < use->histories_count; i++)
        if (use->histories[i] == history)
            return true;
    if (use->histories_count == use->histories_room) {
        oriel_shm_offset *histories =
            array_grow(use->histories, &use->histories_room, sizeof *histories);
        if (histories == NULL)
            return false;
        use->histories = histories;
    }
    use->histories[use->histories_count++] = history;
    return true;
}

/* Loops often use the same buffer, or adjacent ones: the last range is extended. */
void oriel_use_watch(struct oriel_use *use, uint64_t low, uint64_t high)
{
    struct oriel_use_range *last =
        use->ranges_count > 0 ? &use->ranges[use->ranges_count - 1] : NULL;
    uint64_t page = (UINT64_C(1) << oriel_watched_pages_now.shift) - 1;
    low &= ~page;
    high = (high + page) & ~page;
    if (last != NULL && low >= last->low && low <= last->high) {
        if (high > last->high) {
            oriel_watched_pages_add(last->high, high);
            last->high = high;
        }
        return;
    }
    if (use->ranges == NULL || use->ranges_count == use->ranges_room) {
        struct oriel_use_range *ranges = array_grow(use->ranges, &use->ranges_room, sizeof *ranges);
        if (ranges == NULL)
            return;
        use->ranges = ranges;
    }
    use->ranges[use->ranges_count++] = (struct oriel_use_range){low, high};
    oriel_watched_pages_add(low, high);
}

void oriel_use_end(struct oriel_use *use)
{
    for (size_t i = 0; i < use->ranges_count; i++)
        oriel_watched_pages_remove(use->ranges[i].low, use->ranges[i].high);
    use->ranges_count = use->histories_count = 0;
    oriel_hash_table_remove(&uses, use->group, use);
    use->next = unused;
    unused = use;
    oriel_uses_open--;
}

static void use_remove_history(void *value, void *context)
{
    struct oriel_use *use = value;
    oriel_shm_offset history = *(oriel_shm_offset *)context;
    for (size_t i = 0; i < use->histories_count; i++)
        if (use->histories[i] == history)
            use->histories[i--] = use->histories[--use->histories_count];
}

void oriel_uses_forget(oriel_shm_offset history)
{
    oriel_hash_table_visit(&uses, use_remove_history, &history);
}

static void use_collect(void *value, void *context)
{
    struct oriel_use *use = value;
    struct oriel_use **list = context;
    use->next = *list;
    *list = use;
}

void oriel_uses_clear(void)
{
    struct oriel_use *list = NULL;
    oriel_hash_table_visit(&uses, use_collect, &list);
    while (list != NULL) {
        struct oriel_use *next = list->next;
        oriel_use_end(list);
        list = next;
    }
}
