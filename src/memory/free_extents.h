/* Extents: which ranges of an address space of offsets are free, or have another thing in common.  Sorted by offset, never two
 * that touch.  Not thread-safe; allocator.c owns its few. */
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

/* Takes len_bytes at a multiple of align_bytes (a power of two) from the first extent that has room. */
bool oriel_free_extents_take(struct oriel_free_extents *arena, uint64_t len_bytes,
                             uint64_t align_bytes, uint64_t *offset);

/* Takes exactly this range; false when not all of it is there, or memory for the list is exhausted. */
bool oriel_free_extents_take_at(struct oriel_free_extents *arena, uint64_t offset,
                                uint64_t len_bytes);

/* Adds a free range, merging it with its neighbours; false when memory for the list is exhausted. */
bool oriel_free_extents_give(struct oriel_free_extents *arena, uint64_t offset, uint64_t len_bytes);

/* The extent that has the byte at offset; NULL when there is none. */
const struct oriel_free_extent *oriel_free_extents_find(const struct oriel_free_extents *arena,
                                                        uint64_t offset);

/* Makes room so that the next two changes cannot fail. */
bool oriel_free_extents_prepare(struct oriel_free_extents *arena);

void oriel_free_extents_close(struct oriel_free_extents *arena);

#endif
