/* The private mapping of promoted pages is parked until they are private again: at another address,
 * empty, and with all of its kernel state. When it is put back, the kernel merges it with its
 * neighbours as before. A new mapping with the same contents would stay separate forever.
 * page_migrate.c moves mappings in and out under a write barrier. Code that forgets a promoted
 * range for another reason drops its parked mapping. */
#ifndef ORIEL_MEMORY_PROMOTE_PARKED_MAPPING_H
#define ORIEL_MEMORY_PROMOTE_PARKED_MAPPING_H

#include "memory/promote/write_barrier.h"

#include <stdint.h>

/* Reserves address space for the len_bytes at start. Returns 0 with errno. */
uintptr_t oriel_parked_mapping_reserve(uintptr_t start, uint64_t len_bytes);

/* Call before a write barrier. Otherwise the kernel would merge a mapping whose pages were never
 * touched with its new neighbours. */
void oriel_parked_mapping_prepare(uintptr_t start);

/* Moves [start, start + len_bytes), of one mapping, to the reserved address parked: pages and
 * mapping at once. An equal, empty mapping replaces it, still protected by the write barrier.
 * Returns 0, or an errno with nothing changed. */
int oriel_parked_mapping_take(uintptr_t parked, uintptr_t start, uint64_t len_bytes);

/* The reverse; replaces any mapping there. */
int oriel_parked_mapping_put_back(uintptr_t parked, uintptr_t start, uint64_t len_bytes);

/* The same under a write barrier that began before the mapping was parked. It cannot fail: where
 * the kernel refuses (limit of mappings), it copies the contents. parked is then only address
 * space, which drop releases. */
void oriel_parked_mapping_undo(struct oriel_write_barrier *barrier, uintptr_t parked,
                               uintptr_t start, uint64_t len_bytes);

/* For a range that stays mapped from the file although no window references it. Its first page
 * becomes a separate mapping. glibc's realloc calls mremap at that page, so extending the range
 * fails instead of mapping the following bytes of the file. This also holds after realloc has
 * shrunk the range, down to two pages. */
void oriel_parked_mapping_split_first_page(uintptr_t start);

/* Whether the parked pages were locked by mlock. */
bool oriel_parked_mapping_is_locked(uintptr_t parked);

/* Drops the pages and keeps the mapping. */
void oriel_parked_mapping_empty(uintptr_t parked, uint64_t len_bytes);

/* Releases the address space. */
void oriel_parked_mapping_drop(uintptr_t parked, uint64_t len_bytes);

#endif
