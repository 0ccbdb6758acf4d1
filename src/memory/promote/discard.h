/* Discards promoted memory: madvise with MADV_DONTNEED and similar advice, and mremap that extends
 * memory. To the kernel, promoted pages are pages of a file, so it would bring back the file's
 * contents, while private memory reads as zeroes. Allocators rely on the zeroes: calloc does not
 * clear memory that it has discarded this way. */
#ifndef ORIEL_MEMORY_PROMOTE_DISCARD_H
#define ORIEL_MEMORY_PROMOTE_DISCARD_H

#include "memory/promote/promoted_ranges.h"

#include <stddef.h>

/* Libraries call these functions in their constructors, before AddressSanitizer has started. */
#define ORIEL_EARLY __attribute__((no_sanitize("address")))

typedef int oriel_discard_advise(void *start, size_t len_bytes, int advice);

/* Performs madvise, through next where no promoted memory is affected. Safe inside allocators: it
 * locks nothing and allocates nothing. Returns -1 with errno, like madvise. */
int oriel_discard(void *start, size_t len_bytes, int advice, oriel_discard_advise *next);

/* Whether mremap may extend this memory to new_bytes. Returns false with errno if it would extend
 * promoted memory, since the kernel would map the following bytes of the memory file. */
bool oriel_discard_may_remap(const void *start, size_t old_bytes, size_t new_bytes);

/* Publishes the current promoted ranges. Calls exclude each other (promote.c's mutex). */
void oriel_discard_publish(const struct oriel_promoted_ranges *promoted);

#endif
