/* Transparent huge pages in promoted memory: the pages of the memory file that receive their
 * contents become huge as well, so the program computes on them as fast as before. promote.c's
 * mutex protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_HUGE_PAGES_H
#define ORIEL_MEMORY_PROMOTE_HUGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the kernel makes huge pages in a memory file on demand (MADV_COLLAPSE, Linux 6.1),
 * independent of the system's settings. Probed once, on a separate file. */
bool oriel_huge_pages_can_collapse(void);

/* Makes huge pages in the memory file from offset on, where it has no contents yet. It does so for
 * each huge page of private memory [start, start + len_bytes) that is fully populated. start and
 * offset agree modulo ORIEL_HUGE_BYTES. On failure the remaining pages stay small. pagemap_fd: of
 * /proc/self/pagemap. */
void oriel_huge_pages_prepare(int pagemap_fd, uintptr_t start, uint64_t len_bytes, uint64_t offset);

#endif
