/* The region that contains an address of a target's memory, for targets with several paths.
 * create/regions.h has the tables, create/regions.c the argument. A lookup never blocks.
 * Thread-safe. */
#ifndef ORIEL_RMA_REGION_LOOKUP_H
#define ORIEL_RMA_REGION_LOOKUP_H

#include "window/window.h"

#include <stdatomic.h>

struct oriel_region_lookup {
    uint64_t start;
    uint64_t end;
    uint64_t offset; /* of start in the target's memory file; 0: reached by copies */
    uint64_t device; /* of struct oriel_gpu_shared there; 0: no memory of a GPU */
};

/* Whether all of [address, address + len_bytes) is in the target's table, in one region or in
 * several adjacent ones. */
bool oriel_region_lookup_hold(const struct oriel_window *window, int32_t target, uint64_t address,
                              uint64_t len_bytes);

/* The region that contains the byte at address; false if there is none. */
bool oriel_region_lookup_find(const struct oriel_window *window, int32_t target, uint64_t address,
                              struct oriel_region_lookup *out);

/* Loads a word that the owner may be changing. */
static inline uint64_t oriel_region_lookup_get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

/* How many of the count regions start at or below address. */
static inline uint64_t oriel_region_lookup_count(const struct oriel_region *regions, uint64_t count,
                                                 uint64_t address)
{
    uint64_t low = 0;
    uint64_t high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (oriel_region_lookup_get(&regions[middle].start) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

#endif
