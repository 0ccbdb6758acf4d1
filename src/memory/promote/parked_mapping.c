/* mremap with MREMAP_DONTUNMAP (Linux 5.7) moves the mapping with its pages and leaves an empty
 * mapping in its place. Its registration with a userfaultfd remains, so a thread that touches it
 * waits. This file uses raw system calls, since threads may be stopped. No other code knows the
 * parked addresses. */
#include "memory/promote/parked_mapping.h"

#include "memory/file.h"
#include "memory/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* Huge pages move whole only between addresses that agree modulo their size. */
uintptr_t oriel_parked_mapping_reserve(uintptr_t start, uint64_t len_bytes)
{
    uint64_t slack_bytes = len_bytes >= ORIEL_HUGE_BYTES ? ORIEL_HUGE_BYTES : 0;
    long room = syscall(SYS_mmap, NULL, len_bytes + slack_bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == -1)
        return 0;
    uint64_t before_bytes =
        slack_bytes > 0 ? (start - (uintptr_t)room) & (ORIEL_HUGE_BYTES - 1) : 0;
    oriel_parked_mapping_drop((uintptr_t)room, before_bytes);
    oriel_parked_mapping_drop((uintptr_t)room + before_bytes + len_bytes,
                              slack_bytes - before_bytes);
    return (uintptr_t)room + before_bytes;
}

void oriel_parked_mapping_prepare(uintptr_t start)
{
    syscall(SYS_madvise, start, ORIEL_PAGE_BYTES, MADV_POPULATE_WRITE);
}

int oriel_parked_mapping_take(uintptr_t parked, uintptr_t start, uint64_t len_bytes)
{
    const int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    return syscall(SYS_mremap, start, len_bytes, len_bytes, how, parked) == (long)parked ? 0
                                                                                         : errno;
}

int oriel_parked_mapping_put_back(uintptr_t parked, uintptr_t start, uint64_t len_bytes)
{
    const int how = MREMAP_MAYMOVE | MREMAP_FIXED;
    return syscall(SYS_mremap, parked, len_bytes, len_bytes, how, start) == (long)start ? 0 : errno;
}

void oriel_parked_mapping_undo(struct oriel_write_barrier *barrier, uintptr_t parked,
                               uintptr_t start, uint64_t len_bytes)
{
    if (oriel_parked_mapping_put_back(parked, start, len_bytes) != 0)
        oriel_write_barrier_fill(barrier, start, parked, len_bytes);
}

/* Uses advice that has no effect on memory. */
void oriel_parked_mapping_split_first_page(uintptr_t start)
{
    syscall(SYS_madvise, start, ORIEL_PAGE_BYTES, MADV_RANDOM);
}

/* MADV_COLD fails on locked pages. These pages are about to be dropped anyway. */
bool oriel_parked_mapping_is_locked(uintptr_t parked)
{
    return syscall(SYS_madvise, parked, ORIEL_PAGE_BYTES, MADV_COLD) != 0 && errno == EINVAL;
}

void oriel_parked_mapping_empty(uintptr_t parked, uint64_t len_bytes)
{
    syscall(SYS_madvise, parked, len_bytes, MADV_DONTNEED);
}

void oriel_parked_mapping_drop(uintptr_t parked, uint64_t len_bytes)
{
    if (parked != 0 && len_bytes > 0)
        syscall(SYS_munmap, parked, len_bytes);
}
