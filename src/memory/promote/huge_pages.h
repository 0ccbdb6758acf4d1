/* Transparent huge pages of private memory that is promoted: the pages of the memory file that take its contents are made huge,
 * too, so that the program computes on them as fast as before.  page_migrate.c and promotable.c call, under promote.c's mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_HUGE_PAGES_H
#define ORIEL_MEMORY_PROMOTE_HUGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel makes huge pages of a memory file on demand (MADV_COLLAPSE, Linux 6.1), which needs no setting of the
 * system: tried once, on a file of its own. */
bool oriel_huge_can_collapse(void);

/* Makes huge pages in the memory file from offset on, where it holds nothing yet, for those huge pages' worth of private memory
 * [start, start + len_bytes) that are there whole.  start and offset agree modulo ORIEL_HUGE_BYTES.  What cannot be had stays
 * small.  pagemap_fd: of /proc/self/pagemap. */
void oriel_huge_prepare(int pagemap_fd, uintptr_t start, uint64_t len_bytes, uint64_t offset);

#endif
