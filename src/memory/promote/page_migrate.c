/* Moves pages chunk by chunk, each under a write barrier. Promotion parks the chunk's private
 * pages, copies them to the file, and maps the file in their place. Demotion fills the parked
 * mapping and moves it back. The old pages are then free, so at most one chunk exists twice. Under
 * a write barrier, this code uses only system calls and its own stack (write_barrier.h).
 *
 * No thread writes to a parked mapping. Pages that the kernel may drop at any time (MADV_FREE) may
 * become zeroes there, as MADV_FREE permits. */
#include "memory/promote/page_migrate.h"

#include "memory/file.h"
#include "memory/pages.h"
#include "memory/promote/huge_pages.h"
#include "memory/promote/parked_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CHUNK_BYTES        (UINT64_C(4) << 20)
#define SPARSE_CHUNK_BYTES (UINT64_C(256) << 20) /* after chunks that were nearly empty */
#define FEW_BYTES          (UINT64_C(64) << 10)
enum { ENTRIES = 512 }; /* of the page map, read at a time */

enum oriel_status oriel_page_migrate_open(enum oriel_barrier_method method,
                                          struct oriel_page_migration *out)
{
    out->file_fd = oriel_file_identity()->memory_fd;
    if (!oriel_file_is_open())
        return oriel_fail(ORIEL_E_OTHER, "the program has closed the memory file's descriptor %d",
                          out->file_fd);
    out->pagemap_fd = -1;
    out->keeps_huge = false;
    out->keeps_contents = false;
    out->data_start = out->data_end = 0;
    return oriel_write_barrier_open(method, &out->barrier);
}

void oriel_page_migrate_close(struct oriel_page_migration *migration)
{
    oriel_write_barrier_close(&migration->barrier);
    if (migration->pagemap_fd >= 0)
        close(migration->pagemap_fd);
}

/* The old address belongs to the program, and a sanitiser may have poisoned parts of it. */
__attribute__((no_sanitize("address", "thread"))) static bool is_zero(const uint64_t *page)
{
    for (uint64_t i = 0; i < ORIEL_PAGE_BYTES / sizeof *page; i += 8)
        if ((page[i] | page[i + 1] | page[i + 2] | page[i + 3] | page[i + 4] | page[i + 5] |
             page[i + 6] | page[i + 7]) != 0)
            return false;
    return true;
}

/* Consumes SIGXFSZ. A write beyond a limit that was lowered meanwhile (RLIMIT_FSIZE) also sends
 * this signal, which would end the process. */
static void sigxfsz_consume(void)
{
    uint64_t only = UINT64_C(1) << (SIGXFSZ - 1);
    struct timespec now = {.tv_sec = 0};
    syscall(SYS_rt_sigtimedwait, &only, NULL, &now, sizeof only);
}

/* Length of the next chunk. Its end does not split a huge page. */
static uint64_t chunk_length(uintptr_t start, uint64_t left_bytes, uint64_t chunk_bytes)
{
    uint64_t whole_bytes = chunk_bytes - (start & (ORIEL_HUGE_BYTES - 1));
    return left_bytes < whole_bytes ? left_bytes : whole_bytes;
}

/* Writes all bytes to the file, or reads them from it. Returns 0 or an errno. */
static int copy_all_bytes(long call, int fd, uintptr_t address, uint64_t len_bytes, uint64_t offset)
{
    while (len_bytes > 0) {
        long moved = syscall(call, fd, address, len_bytes, offset);
        if (moved <= 0)
            return moved == 0 ? EIO : errno;
        address += (uint64_t)moved;
        offset += (uint64_t)moved;
        len_bytes -= (uint64_t)moved;
    }
    return 0;
}

/* Copies up to ENTRIES pages that have contents. Zero pages are skipped, since the file is zero
 * there. */
static int copy_in_some(const struct oriel_page_migration *migration, uintptr_t start,
                        uint64_t pages, uint64_t offset, bool all_pages, uint64_t *data_bytes)
{
    uint64_t entries[ENTRIES];
    uint64_t len_bytes = pages * sizeof *entries;
    if (!all_pages) {
        long got = syscall(SYS_pread64, migration->pagemap_fd, entries, len_bytes,
                           start / ORIEL_PAGE_BYTES * sizeof *entries);
        if (got != (long)len_bytes)
            return got < 0 ? errno : EIO;
    }
    for (uint64_t page = 0; page < pages;) {
        uint64_t first = page;
        while (page < pages &&
               (all_pages || (entries[page] & (ORIEL_PAGE_PRESENT | ORIEL_PAGE_SWAPPED)) != 0) &&
               !is_zero((const uint64_t *)(start + page * ORIEL_PAGE_BYTES)))
            page++;
        uint64_t run_bytes = (page - first) * ORIEL_PAGE_BYTES;
        uint64_t from = first * ORIEL_PAGE_BYTES;
        int error = copy_all_bytes(SYS_pwrite64, migration->file_fd, start + from, run_bytes,
                                   offset + from);
        if (error != 0)
            return error;
        *data_bytes += run_bytes;
        page += run_bytes == 0;
    }
    return 0;
}

static int copy_in(const struct oriel_page_migration *migration, uintptr_t start,
                   uint64_t len_bytes, uint64_t offset, bool all_pages, uint64_t *data_bytes)
{
    const uint64_t step_bytes = ENTRIES * ORIEL_PAGE_BYTES;
    *data_bytes = 0;
    for (uint64_t done = 0; done < len_bytes; done += step_bytes) {
        uint64_t now = len_bytes - done < step_bytes ? len_bytes - done : step_bytes;
        int error = copy_in_some(migration, start + done, now / ORIEL_PAGE_BYTES, offset + done,
                                 all_pages, data_bytes);
        if (error != 0)
            return error;
    }
    return 0;
}

static void file_punch(const struct oriel_page_migration *migration, uint64_t offset,
                       uint64_t len_bytes)
{
    fallocate(migration->file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
              (off_t)len_bytes);
}

/* Finds the extent of the file's contents at or after *at, up to end. Returns false when there is
 * none. The kernel searches for the extent's end page by page, beyond this range. The result is
 * therefore cached; otherwise each chunk of a long range would search through all later chunks. */
static bool next_data(struct oriel_page_migration *migration, uint64_t end, uint64_t *at,
                      uint64_t *data_end)
{
    if (*at >= end)
        return false;
    if (*at < migration->data_start || *at >= migration->data_end) {
        long data = syscall(SYS_lseek, migration->file_fd, *at, SEEK_DATA);
        if (data < 0 || (uint64_t)data >= end)
            return false;
        long hole = syscall(SYS_lseek, migration->file_fd, data, SEEK_HOLE);
        *at = (uint64_t)data;
        migration->data_start = (uint64_t)data;
        migration->data_end = hole < 0 ? end : (uint64_t)hole;
    }
    *data_end = migration->data_end < end ? migration->data_end : end;
    return true;
}

/* Invalidates the cached extent: the file has been written or punched. */
static void forget_data(struct oriel_page_migration *migration)
{
    migration->data_start = migration->data_end = 0;
}

/* Populates the mapping for the file's contents at once, instead of one fault per page. A kernel
 * without this support leaves it to the faults. */
static void file_pages_populate(struct oriel_page_migration *migration, uintptr_t start,
                                uint64_t len_bytes, uint64_t offset)
{
    uint64_t data_end;
    forget_data(migration);
    for (uint64_t at = offset; next_data(migration, offset + len_bytes, &at, &data_end);
         at = data_end)
        syscall(SYS_madvise, start + (at - offset), data_end - at, MADV_POPULATE_WRITE);
}

/* Makes a replaced mapping known to libraries that intercept libc's calls (network registrations).
 * They may run only now, after the barrier. */
static void remap_announce(uintptr_t start, uint64_t len_bytes)
{
    void *same = mremap((void *)start, len_bytes, len_bytes, 0);
    (void)same;
}

/* Runs under the write barrier. Returns 0, or an errno with nothing changed. Other processes may
 * read the range meanwhile, with copies by the host MPI that Oriel does not see. Where threads are
 * stopped, only two system calls separate the old pages from the new mapping. Where writes are
 * caught, readers of the empty mapping wait. Copying from the parked mapping never faults on a page
 * that the kernel drops meanwhile. */
static int move_in(struct oriel_page_migration *migration, uintptr_t start, uint64_t len_bytes,
                   uint64_t offset, bool all_pages, uintptr_t parked, uint64_t *data_bytes)
{
    bool stopped = migration->barrier.method == ORIEL_BARRIER_STOP_THREADS;
    int error = stopped ? copy_in(migration, start, len_bytes, offset, all_pages, data_bytes) : 0;
    if (error == 0)
        error = oriel_parked_mapping_take(parked, start, len_bytes);
    if (error != 0)
        return error;
    error = oriel_parked_mapping_is_locked(parked) ? EPERM : 0;
    if (error == 0 && !stopped)
        error = copy_in(migration, parked, len_bytes, offset, all_pages, data_bytes);
    if (error == 0 && syscall(SYS_mmap, start, len_bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, migration->file_fd, offset) != (long)start)
        error = errno;
    if (error != 0)
        oriel_parked_mapping_undo(&migration->barrier, parked, start, len_bytes);
    return error;
}

static enum oriel_status chunk_in(struct oriel_page_migration *migration, uintptr_t start,
                                  uint64_t len_bytes, uint64_t offset, bool all_pages,
                                  uintptr_t parked, uint64_t *data_bytes)
{
    if (migration->keeps_huge && migration->pagemap_fd >= 0)
        oriel_huge_pages_prepare(migration->pagemap_fd, start, len_bytes, offset);
    if (!oriel_write_barrier_begin(&migration->barrier, start, len_bytes, true)) {
        file_punch(migration, offset, len_bytes);
        return oriel_fail(ORIEL_E_OTHER, "%s", migration->barrier.reason);
    }
    int error = move_in(migration, start, len_bytes, offset, all_pages, parked, data_bytes);
    if (error == EFBIG)
        sigxfsz_consume();
    oriel_write_barrier_end(&migration->barrier, start, len_bytes, error == 0);
    if (error != 0) {
        file_punch(migration, offset, len_bytes);
        return oriel_fail(error == ENOSPC || error == ENOMEM ? ORIEL_E_NO_MEM : ORIEL_E_OTHER,
                          "cannot move %lu bytes at %#lx into the memory file: %s",
                          (unsigned long)len_bytes, (unsigned long)start,
                          error == EPERM ? "they are locked by mlock" : strerror(error));
    }
    oriel_parked_mapping_empty(parked, len_bytes);
    remap_announce(start, len_bytes);
    file_pages_populate(migration, start, len_bytes, offset);
    return ORIEL_OK;
}

/* After a failure, moves back the chunks that were moved, and keeps the original error message. */
static void undo_in(struct oriel_page_migration *migration, uintptr_t start, uint64_t len_bytes,
                    uint64_t offset, uintptr_t parked, uintptr_t *stuck_start, uintptr_t *stuck_end)
{
    char reason[400];
    uint64_t back_bytes;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    oriel_page_migrate_out(migration, start, len_bytes, offset, parked, PROT_READ | PROT_WRITE,
                           &back_bytes);
    *stuck_start = start + back_bytes;
    *stuck_end = start + len_bytes;
    oriel_fail(ORIEL_E_OTHER, "%s", reason);
}

/* For a few pages, the page map costs more than it saves: untouched pages in the parked mapping
 * read as zeroes. */
static enum oriel_status open_pagemap(struct oriel_page_migration *migration, uint64_t len_bytes,
                                      bool *all_pages)
{
    if (len_bytes <= FEW_BYTES)
        *all_pages = true;
    if (*all_pages || migration->pagemap_fd >= 0)
        return ORIEL_OK;
    migration->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (migration->pagemap_fd < 0)
        return oriel_fail(ORIEL_E_OTHER, "/proc/self/pagemap: %s", strerror(errno));
    return ORIEL_OK;
}

enum oriel_status oriel_page_migrate_in(struct oriel_page_migration *migration, uintptr_t start,
                                        uint64_t len_bytes, uint64_t offset, bool all_pages,
                                        uintptr_t *parked, uintptr_t *stuck_start,
                                        uintptr_t *stuck_end)
{
    uint64_t chunk_bytes = CHUNK_BYTES;
    uint64_t data_bytes = 0;
    *stuck_start = *stuck_end = start;
    enum oriel_status status = open_pagemap(migration, len_bytes, &all_pages);
    if (status != ORIEL_OK)
        return status;
    *parked = oriel_parked_mapping_reserve(start, len_bytes);
    if (*parked == 0)
        return oriel_fail(ORIEL_E_NO_MEM, "no address space for %lu private bytes: %s",
                          (unsigned long)len_bytes, strerror(errno));
    oriel_parked_mapping_prepare(start);
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = chunk_length(start + done, len_bytes - done, chunk_bytes);
        status = chunk_in(migration, start + done, now, offset + done, all_pages, *parked + done,
                          &data_bytes);
        if (status != ORIEL_OK) {
            oriel_parked_mapping_drop(*parked + done, len_bytes - done);
            if (done > 0)
                undo_in(migration, start, done, offset, *parked, stuck_start, stuck_end);
            return status;
        }
        done += now;
        chunk_bytes = data_bytes < CHUNK_BYTES / 8 && chunk_bytes < SPARSE_CHUNK_BYTES
                          ? 2 * chunk_bytes
                          : CHUNK_BYTES;
    }
    return ORIEL_OK;
}

/* Copies the file's contents to private pages. */
static int copy_out(struct oriel_page_migration *migration, uintptr_t to, uint64_t len_bytes,
                    uint64_t offset)
{
    uint64_t data_end;
    for (uint64_t at = offset; next_data(migration, offset + len_bytes, &at, &data_end);
         at = data_end) {
        int error =
            copy_all_bytes(SYS_pread64, migration->file_fd, to + (at - offset), data_end - at, at);
        if (error != 0)
            return error;
    }
    return 0;
}

/* Runs under the write barrier. Returns 0, or an errno with nothing changed. */
static int move_out(struct oriel_page_migration *migration, uintptr_t start, uint64_t len_bytes,
                    uint64_t offset, uintptr_t parked, int protection)
{
    const int usual = PROT_READ | PROT_WRITE;
    int error = copy_out(migration, parked, len_bytes, offset);
    if (error == 0 && protection != usual &&
        syscall(SYS_mprotect, parked, len_bytes, protection) != 0)
        error = errno;
    if (error == 0)
        error = oriel_parked_mapping_put_back(parked, start, len_bytes);
    if (error != 0) {
        if (protection != usual)
            syscall(SYS_mprotect, parked, len_bytes, usual);
        oriel_parked_mapping_empty(parked, len_bytes);
    }
    return error;
}

static enum oriel_status chunk_out(struct oriel_page_migration *migration, uintptr_t start,
                                   uint64_t len_bytes, uint64_t offset, uintptr_t parked,
                                   int protection)
{
    if (!oriel_write_barrier_begin(&migration->barrier, start, len_bytes, false))
        return oriel_fail(ORIEL_E_OTHER, "%s", migration->barrier.reason);
    int error = move_out(migration, start, len_bytes, offset, parked, protection);
    oriel_write_barrier_end(&migration->barrier, start, len_bytes, error == 0);
    if (error != 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot move %lu bytes at %#lx out of the memory file: %s",
                          (unsigned long)len_bytes, (unsigned long)start, strerror(error));
    if (!migration->keeps_contents)
        file_punch(migration, offset, len_bytes);
    remap_announce(start, len_bytes);
    return ORIEL_OK;
}

enum oriel_status oriel_page_migrate_out(struct oriel_page_migration *migration, uintptr_t start,
                                         uint64_t len_bytes, uint64_t offset, uintptr_t parked,
                                         int protection, uint64_t *done_bytes)
{
    enum oriel_status status = ORIEL_OK;
    *done_bytes = 0;
    forget_data(migration);
    while (status == ORIEL_OK && *done_bytes < len_bytes) {
        uint64_t done = *done_bytes;
        uint64_t now = chunk_length(start + done, len_bytes - done, CHUNK_BYTES);
        uint64_t at = offset + done;
        uint64_t data_end;
        if (!next_data(migration, offset + len_bytes, &at, &data_end))
            now = len_bytes - done;
        else if (at - (offset + done) > now)
            now = (at - (offset + done)) & ~(ORIEL_PAGE_BYTES - 1);
        status = chunk_out(migration, start + done, now, offset + done, parked + done, protection);
        if (status == ORIEL_OK)
            *done_bytes += now;
    }
    return status;
}
