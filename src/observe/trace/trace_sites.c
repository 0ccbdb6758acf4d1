/* The writer reads the caller's array, up to the count. A new array starts again at its first
 * entry. The count is published after the array, and read before it: a reader of a new count has an
 * array with that many entries. */
#include "observe/trace/trace_sites.h"

#include "base/atomic.h"

#include <stddef.h>

static _Atomic(const struct oriel_code_address *) places_set;
static _Atomic uint32_t places_count;

void oriel_trace_sites_set(const struct oriel_code_address *places, uint32_t count)
{
    uint32_t known = oriel_load_relaxed(&places_count);
    atomic_store_explicit(&places_set, places, memory_order_release);
    /* threads may find places at the same time */
    while (known < count &&
           !atomic_compare_exchange_weak_explicit(&places_count, &known, count,
                                                  memory_order_release, memory_order_relaxed))
        ;
}

void oriel_trace_sites_empty(void (*take)(const struct oriel_trace_site *site, bool is_again))
{
    static const struct oriel_code_address *taken_of;
    static uint32_t taken;
    static bool is_again;
    uint32_t count = oriel_load_acquire(&places_count);
    const struct oriel_code_address *places =
        atomic_load_explicit(&places_set, memory_order_acquire);
    if (places != taken_of) {
        is_again = taken_of != NULL;
        taken = 0;
    }
    taken_of = places;
    for (; places != NULL && taken < count; taken++) {
        struct oriel_trace_site site = {.number = taken + 1, .place = places[taken]};
        take(&site, is_again);
    }
}
