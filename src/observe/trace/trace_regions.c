/* The count is published after the rows, and read before them. */
#include "observe/trace/trace_regions.h"

#include "base/atomic.h"

#include <string.h>

static const struct oriel_counted_region *_Atomic rows_set;
static _Atomic uint32_t rows_count;

void oriel_trace_regions_set(const struct oriel_counted_region *rows, uint32_t count)
{
    atomic_store_explicit(&rows_set, rows, memory_order_relaxed);
    oriel_store_release(&rows_count, count);
}

void oriel_trace_regions_empty(void (*take)(const struct oriel_trace_region *region))
{
    static uint32_t taken;
    uint32_t count = oriel_load_acquire(&rows_count);
    const struct oriel_counted_region *rows = atomic_load_explicit(&rows_set, memory_order_relaxed);
    for (; taken < count; taken++) {
        struct oriel_trace_region region = {.number = taken};
        memcpy(region.name, rows[taken].name, sizeof region.name);
        take(&region);
    }
}
