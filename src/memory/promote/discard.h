/* Advice that gives up the contents of memory (madvise with MADV_DONTNEED and its relatives), and
 * mremap that makes memory longer, where that memory is promoted.  The kernel takes promoted pages for pages of a file and would bring
 * back the file's contents; private memory reads as zeroes. Allocators rely on the zeroes: calloc
 * clears nothing that it has given up so. */
#ifndef ORIEL_MEMORY_PROMOTE_DISCARD_H
#define ORIEL_MEMORY_PROMOTE_DISCARD_H

#include "memory/promote/promoted_ranges.h"

#include <stddef.h>

typedef int oriel_advise(void *start, size_t len_bytes, int advice);

/* What madvise does, by next where no promoted memory is concerned.  Callable from inside
 * allocators: it takes no lock and allocates nothing.  -1 with errno, as madvise. */
int oriel_discard(void *start, size_t len_bytes, int advice, oriel_advise *next);

/* Whether mremap may make this memory new_bytes long.  False with errno where it would make promoted
 * memory longer: the kernel would map what follows in the memory file. */
bool oriel_discard_may_remap(const void *start, size_t old_bytes, size_t new_bytes);

/* The promoted pages have changed.  Calls exclude each other (promote.c's mutex). */
void oriel_discard_publish(const struct oriel_promoted_ranges *runs);

#endif
