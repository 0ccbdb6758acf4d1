/* Moves pages between private memory and the memory file, at the same addresses, one chunk at a
 * time under a write barrier. Each chunk moves entirely or not at all. promote.c's mutex protects
 * all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_PAGE_MIGRATE_H
#define ORIEL_MEMORY_PROMOTE_PAGE_MIGRATE_H

#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

struct oriel_page_migration {
    struct oriel_write_barrier barrier;
    int file_fd;
    bool keeps_huge; /* the next part has huge pages, which must stay huge in the file */
    /* demoted contents stay in the file, too: a child may read them (fork_leases.h) */
    bool keeps_contents;
    int pagemap_fd;      /* -1 until many pages need it */
    uint64_t data_start; /* the extent of the file's contents that was found last */
    uint64_t data_end;
};

/* Returns ORIEL_E_OTHER with the reason. */
enum oriel_status oriel_page_migrate_open(enum oriel_barrier_method method,
                                          struct oriel_page_migration *out);
void oriel_page_migrate_close(struct oriel_page_migration *migration);

/* Replaces the private pages [start, start + len_bytes), all of one mapping, by pages of the file
 * from offset on. The file has no contents there yet. The private mapping is parked at *parked.
 * Untouched pages stay holes, unless all_pages is true because untouched pages have contents, too
 * (a file's). Returns ORIEL_E_OTHER or ORIEL_E_NO_MEM with the reason: then all pages are private
 * again, except [*stuck_start, *stuck_end) where that failed as well. */
enum oriel_status oriel_page_migrate_in(struct oriel_page_migration *migration, uintptr_t start,
                                        uint64_t len_bytes, uint64_t offset, bool all_pages,
                                        uintptr_t *parked, uintptr_t *stuck_start,
                                        uintptr_t *stuck_end);

/* The reverse. The file has no contents there afterwards unless keeps_contents is true. The first
 * *done_bytes are private even on failure, and their parked mapping is gone. protection: PROT_* of
 * the private pages. */
enum oriel_status oriel_page_migrate_out(struct oriel_page_migration *migration, uintptr_t start,
                                         uint64_t len_bytes, uint64_t offset, uintptr_t parked,
                                         int protection, uint64_t *done_bytes);

#endif
