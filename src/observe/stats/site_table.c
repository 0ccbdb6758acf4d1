/* New sites, and copies of the table. */
#include "observe/stats/site_table.h"

#include <pthread.h>
#include <string.h>

static bool is_free(const struct oriel_counted_site *site)
{
    return atomic_load_explicit(&site->key, memory_order_relaxed) == 0;
}

static struct oriel_counted_site *free_slot_find(struct oriel_site_table *table, uint64_t key)
{
    struct oriel_counted_site *first = oriel_site_first(table, key);
    for (struct oriel_counted_site *site = first; site < first + ORIEL_SITE_LOOKS; site++)
        if (is_free(site))
            return site;
    return NULL;
}

static struct oriel_counted_site *others_of(struct oriel_site_table *table,
                                            enum oriel_trace_kind kind)
{
    bool is_call = kind >= ORIEL_TRACE_CALL;
    struct oriel_counted_site *row =
        is_call ? &table->others[ORIEL_COUNTED_OPERATIONS + kind - ORIEL_TRACE_CALL]
                : &table->others[kind % ORIEL_COUNTED_OPERATIONS];
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the table is not NULL */
    row->kind = (uint8_t)kind;
    return row;
}

struct oriel_counted_site *oriel_site_table_add(struct oriel_site_table *table, uint64_t key,
                                                uint16_t place, enum oriel_trace_kind kind)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    struct oriel_counted_site *site = oriel_site_table_find(table, key);
    struct oriel_counted_site *fresh =
        site == NULL && place != 0 ? free_slot_find(table, key) : NULL;
    if (fresh != NULL) {
        fresh->place = place;
        fresh->kind = (uint8_t)kind;
        atomic_store_explicit(&fresh->key, key, memory_order_release);
        site = fresh;
    } else if (site == NULL) {
        site = others_of(table, kind);
    }
    pthread_mutex_unlock(&mutex);
    return site;
}

uint32_t oriel_site_table_copy(const struct oriel_site_table *table, struct oriel_counted_site *out)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < ORIEL_SITE_SLOTS; i++)
        if (table->sites[i].count != 0)
            memcpy(&out[count++], &table->sites[i], sizeof *out);
    for (unsigned i = 0; i < ORIEL_SITE_KINDS; i++)
        if (table->others[i].count != 0)
            memcpy(&out[count++], &table->others[i], sizeof *out);
    return count;
}
