/* Where the private mapping of promoted pages waits until they are private again: at another address, empty, and with all that
 * the kernel knows of it.  Put back it is what it was, one mapping with its neighbours: a new one with the same contents would
 * stay a mapping of its own for ever.  page_migrate.c moves pages in and out under a freeze; whoever forgets a promoted range for
 * another reason drops its stash. */
#ifndef ORIEL_MEMORY_PROMOTE_PARKED_MAPPING_H
#define ORIEL_MEMORY_PROMOTE_PARKED_MAPPING_H

#include "memory/promote/write_barrier.h"

#include <stdint.h>

/* Address space for the len_bytes at start; 0 with errno. */
uintptr_t oriel_parked_mapping_reserve(uintptr_t start, uint64_t len_bytes);

/* Before a freeze: without this the kernel would make a mapping whose pages were never touched part of its new surroundings. */
void oriel_parked_mapping_prepare(uintptr_t start);

/* Moves [start, start + len_bytes), of one mapping, to the reserved address stash: pages and mapping at once.  In its place is an
 * empty mapping like it, with the freeze's protection.  0, or an errno and nothing is changed. */
int oriel_parked_mapping_take(uintptr_t stash, uintptr_t start, uint64_t len_bytes);

/* The reverse, over whatever is there. */
int oriel_parked_mapping_put_back(uintptr_t stash, uintptr_t start, uint64_t len_bytes);

/* The same under a freeze that began before stash_take, and without fail: where the kernel has no room for it (limit of
 * mappings) the contents are copied.  stash is address space afterwards, which drop gives back. */
void oriel_parked_mapping_undo(struct oriel_write_barrier *freeze, uintptr_t stash, uintptr_t start,
                               uint64_t len_bytes);

/* A range from start on maps the file, and no window of the program keeps it in place.  Its first page
 * becomes a mapping of its own.  So glibc's realloc, whose mremap begins there, fails where it would
 * lengthen the range, instead of mapping what follows in the file.  This holds after realloc has made
 * the range shorter, down to two pages. */
void oriel_parked_mapping_bound(uintptr_t start);

/* Whether mlock has locked what was taken. */
bool oriel_parked_mapping_is_locked(uintptr_t stash);

/* Drops the pages; the mapping stays. */
void oriel_parked_mapping_empty(uintptr_t stash, uint64_t len_bytes);

/* Gives the address space back. */
void oriel_parked_mapping_drop(uintptr_t stash, uint64_t len_bytes);

#endif
