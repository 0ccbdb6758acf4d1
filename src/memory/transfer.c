/* One chunk is frozen, copied, replaced by one mmap or mremap, and let go; then its old pages are free, so that memory is never
 * held twice for more than a chunk.  What runs under a freeze is system calls and the own stack (freeze.h).  promote.c and
 * restore.c call. */
#include "memory/transfer.h"

#include "memory/file.h"
#include "memory/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define CHUNK_BYTES (UINT64_C(4) << 20)
#define SPARSE_CHUNK_BYTES (UINT64_C(256) << 20) /* after chunks that were nearly empty */
enum { ENTRIES = 512 };                          /* of the page map, at a time */

/* Entries of /proc/self/pagemap. */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)

static bool see_file(const struct oriel_mapping *mapping, void *context)
{
    *(struct oriel_mapping *)context = *mapping;
    return false;
}

/* Whether the descriptor is still the memory file's: a program that closes descriptors in bulk may make it another file's. */
static bool is_memory_file(int fd)
{
    static struct oriel_mapping file; /* callers have a mutex */
    struct stat info;
    uintptr_t base = (uintptr_t)oriel_file_base();
    if (file.inode == 0)
        oriel_maps_visit(base, base + 1, false, see_file, &file);
    return fstat(fd, &info) == 0 && info.st_ino == file.inode &&
           info.st_dev == makedev(file.device_major, file.device_minor);
}

enum oriel_status oriel_transfer_open(enum oriel_means means, struct oriel_transfer *out)
{
    out->file_fd = oriel_file_identity()->memory_fd;
    if (!is_memory_file(out->file_fd))
        return oriel_fail(ORIEL_E_OTHER, "the program has closed the memory file's descriptor %d", out->file_fd);
    out->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (out->pagemap_fd < 0)
        return oriel_fail(ORIEL_E_OTHER, "/proc/self/pagemap: %s", strerror(errno));
    enum oriel_status status = oriel_freeze_open(means, &out->freeze);
    if (status != ORIEL_OK)
        close(out->pagemap_fd);
    return status;
}

void oriel_transfer_close(struct oriel_transfer *transfer)
{
    oriel_freeze_close(&transfer->freeze);
    close(transfer->pagemap_fd);
}

/* The program's memory, parts of which a sanitiser may think nobody should read. */
__attribute__((no_sanitize("address", "thread"))) static bool is_zero(const uint64_t *page)
{
    for (uint64_t i = 0; i < ORIEL_PAGE_BYTES / sizeof *page; i += 8)
        if ((page[i] | page[i + 1] | page[i + 2] | page[i + 3] | page[i + 4] | page[i + 5] | page[i + 6] | page[i + 7]) != 0)
            return false;
    return true;
}

/* A write beyond a limit that was lowered meanwhile (RLIMIT_FSIZE) also sends a signal that would end the process. */
static void take_signal(void)
{
    uint64_t only = UINT64_C(1) << (SIGXFSZ - 1);
    struct timespec now = {.tv_sec = 0};
    syscall(SYS_rt_sigtimedwait, &only, NULL, &now, sizeof only);
}

/* All of a write into the file, or of a read from it; 0 or an errno. */
static int copy(long call, int fd, uintptr_t address, uint64_t len_bytes, uint64_t offset)
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

/* Copies the pages of at most ENTRIES that have contents; zeroes are what the file has anyway. */
static int copy_in_some(const struct oriel_transfer *transfer, uintptr_t start, uint64_t pages, uint64_t offset, bool all_pages,
                        uint64_t *held_bytes)
{
    uint64_t entries[ENTRIES];
    uint64_t len_bytes = pages * sizeof *entries;
    if (!all_pages) {
        long got = syscall(SYS_pread64, transfer->pagemap_fd, entries, len_bytes, start / ORIEL_PAGE_BYTES * sizeof *entries);
        if (got != (long)len_bytes)
            return got < 0 ? errno : EIO;
    }
    for (uint64_t page = 0; page < pages;) {
        uint64_t first = page;
        while (page < pages && (all_pages || (entries[page] & (PAGE_PRESENT | PAGE_SWAPPED)) != 0) &&
               !is_zero((const uint64_t *)(start + page * ORIEL_PAGE_BYTES)))
            page++;
        uint64_t run_bytes = (page - first) * ORIEL_PAGE_BYTES;
        uint64_t from = first * ORIEL_PAGE_BYTES;
        int error = copy(SYS_pwrite64, transfer->file_fd, start + from, run_bytes, offset + from);
        if (error != 0)
            return error;
        *held_bytes += run_bytes;
        page += run_bytes == 0;
    }
    return 0;
}

static int copy_in(const struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset, bool all_pages,
                   uint64_t *held_bytes)
{
    const uint64_t step_bytes = ENTRIES * ORIEL_PAGE_BYTES;
    *held_bytes = 0;
    for (uint64_t done = 0; done < len_bytes; done += step_bytes) {
        uint64_t now = len_bytes - done < step_bytes ? len_bytes - done : step_bytes;
        int error = copy_in_some(transfer, start + done, now / ORIEL_PAGE_BYTES, offset + done, all_pages, held_bytes);
        if (error != 0)
            return error;
    }
    return 0;
}

static void punch(const struct oriel_transfer *transfer, uint64_t offset, uint64_t len_bytes)
{
    fallocate(transfer->file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len_bytes);
}

/* The extent of the file's contents at or after *at, up to end; false when there is none. */
static bool next_data(int fd, uint64_t end, uint64_t *at, uint64_t *data_end)
{
    long data = syscall(SYS_lseek, fd, *at, SEEK_DATA);
    if (data < 0 || (uint64_t)data >= end)
        return false;
    long hole = syscall(SYS_lseek, fd, data, SEEK_HOLE);
    *at = (uint64_t)data;
    *data_end = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
    return true;
}

/* Faults in what the file holds, at once instead of page by page at the next accesses; a kernel that cannot leaves it to them. */
static void populate(int fd, uintptr_t start, uint64_t len_bytes, uint64_t offset)
{
    uint64_t data_end;
    for (uint64_t at = offset; next_data(fd, offset + len_bytes, &at, &data_end); at = data_end)
        syscall(SYS_madvise, start + (at - offset), data_end - at, MADV_POPULATE_WRITE);
}

/* A replaced mapping is made known to those who listen to libc's calls (registrations of networks), now that they may. */
static void announce(uintptr_t start, uint64_t len_bytes)
{
    void *same = mremap((void *)start, len_bytes, len_bytes, 0);
    (void)same;
}

static enum oriel_status chunk_in(struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset,
                                  bool all_pages, uint64_t *held_bytes)
{
    if (!oriel_freeze_begin(&transfer->freeze, start, len_bytes, true))
        return oriel_fail(ORIEL_E_OTHER, "%s", transfer->freeze.reason);
    int error = copy_in(transfer, start, len_bytes, offset, all_pages, held_bytes);
    if (error == 0 && syscall(SYS_mmap, start, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, transfer->file_fd,
                              offset) != (long)start)
        error = errno;
    if (error == EFBIG)
        take_signal();
    oriel_freeze_end(&transfer->freeze, start, len_bytes, error == 0);
    if (error != 0) {
        punch(transfer, offset, len_bytes);
        return oriel_fail(error == ENOSPC || error == ENOMEM ? ORIEL_E_NO_MEM : ORIEL_E_OTHER,
                          "cannot move %lu bytes at %#lx into the memory file: %s", (unsigned long)len_bytes,
                          (unsigned long)start, strerror(error));
    }
    announce(start, len_bytes);
    populate(transfer->file_fd, start, len_bytes, offset);
    return ORIEL_OK;
}

/* After a failure: what was moved moves back, and the message stays that of the failure. */
static void undo_in(struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset,
                    uintptr_t *stuck_start, uintptr_t *stuck_end)
{
    char reason[400];
    uint64_t back_bytes;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    oriel_transfer_out(transfer, start, len_bytes, offset, false, PROT_READ | PROT_WRITE, &back_bytes);
    *stuck_start = start + back_bytes;
    *stuck_end = start + len_bytes;
    oriel_fail(ORIEL_E_OTHER, "%s", reason);
}

enum oriel_status oriel_transfer_in(struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset,
                                    bool all_pages, uintptr_t *stuck_start, uintptr_t *stuck_end)
{
    uint64_t chunk_bytes = CHUNK_BYTES;
    uint64_t held_bytes;
    *stuck_start = *stuck_end = start;
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = len_bytes - done < chunk_bytes ? len_bytes - done : chunk_bytes;
        enum oriel_status status = chunk_in(transfer, start + done, now, offset + done, all_pages, &held_bytes);
        if (status != ORIEL_OK) {
            if (done > 0)
                undo_in(transfer, start, done, offset, stuck_start, stuck_end);
            return status;
        }
        done += now;
        chunk_bytes = held_bytes < CHUNK_BYTES / 8 && chunk_bytes < SPARSE_CHUNK_BYTES ? 2 * chunk_bytes : CHUNK_BYTES;
    }
    return ORIEL_OK;
}

/* The contents of the file in new private pages. */
static int copy_out(int fd, uintptr_t to, uint64_t len_bytes, uint64_t offset)
{
    uint64_t data_end;
    for (uint64_t at = offset; next_data(fd, offset + len_bytes, &at, &data_end); at = data_end) {
        int error = copy(SYS_pread64, fd, to + (at - offset), data_end - at, at);
        if (error != 0)
            return error;
    }
    return 0;
}

/* fresh: private pages at another place, never touched. */
static enum oriel_status chunk_out(struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset,
                                   uintptr_t fresh, int protection)
{
    if (!oriel_freeze_begin(&transfer->freeze, start, len_bytes, false))
        return oriel_fail(ORIEL_E_OTHER, "%s", transfer->freeze.reason);
    int error = copy_out(transfer->file_fd, fresh, len_bytes, offset);
    if (error == 0 && protection != (PROT_READ | PROT_WRITE) && syscall(SYS_mprotect, fresh, len_bytes, protection) != 0)
        error = errno;
    if (error == 0 &&
        syscall(SYS_mremap, fresh, len_bytes, len_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) != (long)start)
        error = errno;
    oriel_freeze_end(&transfer->freeze, start, len_bytes, error == 0);
    if (error != 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot move %lu bytes at %#lx out of the memory file: %s", (unsigned long)len_bytes,
                          (unsigned long)start, strerror(error));
    punch(transfer, offset, len_bytes);
    announce(start, len_bytes);
    return ORIEL_OK;
}

static void *reserve_fresh(uint64_t len_bytes, bool unreserved)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *fresh = MAP_FAILED;
    if (!unreserved)
        fresh = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (fresh == MAP_FAILED)
        fresh = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, -1, 0);
    return fresh;
}

/* The fresh pages of all chunks come from one mapping: side by side again they are one. */
enum oriel_status oriel_transfer_out(struct oriel_transfer *transfer, uintptr_t start, uint64_t len_bytes, uint64_t offset,
                                     bool unreserved, int protection, uint64_t *done_bytes)
{
    enum oriel_status status = ORIEL_OK;
    *done_bytes = 0;
    char *fresh = reserve_fresh(len_bytes, unreserved);
    if (fresh == MAP_FAILED)
        return oriel_fail(ORIEL_E_NO_MEM, "no address space for %lu private bytes: %s", (unsigned long)len_bytes,
                          strerror(errno));
    while (status == ORIEL_OK && *done_bytes < len_bytes) {
        uint64_t done = *done_bytes;
        uint64_t now = len_bytes - done < CHUNK_BYTES ? len_bytes - done : CHUNK_BYTES;
        uint64_t at = offset + done;
        uint64_t data_end;
        if (!next_data(transfer->file_fd, offset + len_bytes, &at, &data_end))
            now = len_bytes - done;
        else if (at - (offset + done) > now)
            now = (at - (offset + done)) & ~(ORIEL_PAGE_BYTES - 1);
        status = chunk_out(transfer, start + done, now, offset + done, (uintptr_t)fresh + done, protection);
        if (status == ORIEL_OK)
            *done_bytes += now;
    }
    if (*done_bytes < len_bytes)
        munmap(fresh + *done_bytes, len_bytes - *done_bytes);
    return status;
}
