/* A set of extents: the ranges of offsets that are free, or that share another property. Sorted by
 * offset; no two extents touch. Not thread-safe. */
#ifndef ORIEL_MEMORY_FREE_EXTENTS_H
#define ORIEL_MEMORY_FREE_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oriel_free_extent {
    uint64_t offset;
    uint64_t len_bytes;
};

struct oriel_free_extents {
    struct oriel_free_extent *extents;
    size_t count;
    size_t capacity;
};

/* Removes len_bytes at a multiple of align_bytes (a power of two) from the first extent that has
 * room. */
bool oriel_free_extents_remove_fit(struct oriel_free_extents *set, uint64_t len_bytes,
                                   uint64_t align_bytes, uint64_t *offset);

/* Removes exactly this range. Returns false when the set does not contain all of it, or when memory
 * for the array is exhausted. */
bool oriel_free_extents_remove(struct oriel_free_extents *set, uint64_t offset, uint64_t len_bytes);

/* Adds a range and merges it with its neighbours. Returns false when memory for the array is
 * exhausted. */
bool oriel_free_extents_add(struct oriel_free_extents *set, uint64_t offset, uint64_t len_bytes);

/* Returns the extent that contains the byte at offset, or NULL. */
const struct oriel_free_extent *oriel_free_extents_find(const struct oriel_free_extents *set,
                                                        uint64_t offset);

/* Reserves capacity, so the next two changes cannot fail. */
bool oriel_free_extents_reserve(struct oriel_free_extents *set);

void oriel_free_extents_close(struct oriel_free_extents *set);

#endif
