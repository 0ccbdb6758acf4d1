/* The count is published after the rows, and read before them. */
#include "observe/trace/trace_regions.h"

#include "base/atomic.h"

#include <string.h>

static const struct oriel_counted_region *rows_set;
static _Atomic uint32_t rows_count;

void oriel_trace_regions_set(const struct oriel_counted_region *rows, uint32_t count)
{
    rows_set = rows;
    oriel_store_release(&rows_count, count);
}

void oriel_trace_regions_empty(void (*take)(const struct oriel_trace_region *region))
{
    static uint32_t taken;
    uint32_t count = oriel_load_acquire(&rows_count);
    for (; taken < count; taken++) {
        struct oriel_trace_region region = {.number = taken};
        memcpy(region.name, rows_set[taken].name, sizeof region.name);
        take(&region);
    }
}
