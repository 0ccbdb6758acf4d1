/* Adds up the records of windows. Threads count while the sum is formed: each counter only grows,
 * so a later sum is never smaller. */
#include "observe/stats/counter_sums.h"

#include "observe/stats/observed_window.h"

#include "memory/file.h"

#include <string.h>

struct counter_sum {
    enum oriel_counter_quantity quantity;
    unsigned item;
    uint64_t window_id; /* 0: of all windows */
    uint32_t n;
    uint64_t *sums;
};

static uint64_t counter_load(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t site_quantity(const struct oriel_counted_site *site,
                              enum oriel_counter_quantity quantity)
{
    switch (quantity) {
    case ORIEL_QUANTITY_CALLS: return counter_load(&site->count);
    case ORIEL_QUANTITY_BYTES: return counter_load(&site->bytes);
    case ORIEL_QUANTITY_TIME_NS: return counter_load(&site->time_ns);
    default: return counter_load(&site->waiting_ns);
    }
}

/* A slot's kind is written before its key, and that of `others` before its first count. */
static uint64_t sites_quantity(const struct oriel_site_table *table, const struct counter_sum *sum)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < ORIEL_SITE_SLOTS; i++) {
        const struct oriel_counted_site *site = &table->sites[i];
        if (atomic_load_explicit(&site->key, memory_order_acquire) != 0 && site->kind == sum->item)
            total += site_quantity(site, sum->quantity);
    }
    for (unsigned i = 0; i < ORIEL_SITE_KINDS; i++)
        if (table->others[i].kind == sum->item)
            total += site_quantity(&table->others[i], sum->quantity);
    return total;
}

static uint64_t toward_quantity(const struct oriel_toward *toward, const struct counter_sum *sum)
{
    switch (sum->quantity) {
    case ORIEL_QUANTITY_CAUSED_NS: return counter_load(&toward->caused_ns[sum->item]);
    case ORIEL_QUANTITY_TARGET_OPERATIONS: return counter_load(&toward->operations);
    default: return counter_load(&toward->bytes);
    }
}

static void record_add(const struct oriel_window_record *record, void *context)
{
    const struct counter_sum *sum = context;
    const char *base = oriel_file_base();
    if (sum->window_id != 0 && record->window_id != sum->window_id)
        return;
    if (sum->quantity == ORIEL_QUANTITY_PATH_OPERATIONS)
        sum->sums[0] += counter_load(&record->paths[sum->item].count);
    else if (sum->quantity == ORIEL_QUANTITY_PATH_BYTES)
        sum->sums[0] += counter_load(&record->paths[sum->item].bytes);
    else if (!oriel_counter_is_by_rank(sum->quantity))
        sum->sums[0] += sites_quantity((const void *)(base + record->sites), sum);
    else
        for (uint32_t i = 0; i < (uint32_t)record->n; i++)
            sum->sums[i < sum->n ? i : 0] +=
                toward_quantity((const struct oriel_toward *)(base + record->toward) + i, sum);
}

void oriel_counter_sum(enum oriel_counter_quantity quantity, unsigned item, uint64_t window_id,
                       uint32_t n, uint64_t *sums)
{
    struct counter_sum sum = {quantity, item, window_id, n, sums};
    memset(sums, 0, n * sizeof *sums);
    oriel_records_visit(record_add, &sum);
}
