/* Moves pages between private memory and the memory file, at the same addresses, a chunk at a time under a freeze.  A step either
 * happens or leaves everything as it was.  promote.c calls, under its mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_PAGE_MIGRATE_H
#define ORIEL_MEMORY_PROMOTE_PAGE_MIGRATE_H

#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

struct oriel_transfer {
    struct oriel_write_barrier freeze;
    int file_fd;
    bool keeps_huge; /* what comes next has huge pages, which are to be huge in the file */
    bool
        keeps_contents; /* what moves out stays in the file, too: somebody may look at it (fork_leases.h) */
    int pagemap_fd;      /* -1 until many pages need it */
    uint64_t data_start; /* the extent of the file's contents that was found last */
    uint64_t data_end;
};

/* ORIEL_E_OTHER with the reason. */
enum oriel_status oriel_transfer_open(enum oriel_means means, struct oriel_transfer *out);
void oriel_transfer_close(struct oriel_transfer *transfer);

/* Private pages [start, start + len_bytes), all of one mapping, become those of the file from offset on, where it holds nothing
 * yet; the mapping waits at *stash.  Pages that were never touched stay holes, unless all_pages says that untouched ones have
 * contents, too (a file's).  ORIEL_E_OTHER or ORIEL_E_NO_MEM with the reason: all are private again, but [*stuck_start,
 * *stuck_end) where even that failed. */
enum oriel_status oriel_transfer_in(struct oriel_transfer *transfer, uintptr_t start,
                                    uint64_t len_bytes, uint64_t offset, bool all_pages,
                                    uintptr_t *stash, uintptr_t *stuck_start, uintptr_t *stuck_end);

/* The reverse; the file holds nothing there afterwards unless keeps_contents.  *done_bytes from the start are private even on
 * failure, and their stash is no more.  protection: PROT_* that the pages are to have. */
enum oriel_status oriel_transfer_out(struct oriel_transfer *transfer, uintptr_t start,
                                     uint64_t len_bytes, uint64_t offset, uintptr_t stash,
                                     int protection, uint64_t *done_bytes);

#endif
