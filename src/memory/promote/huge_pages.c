/* MADV_COLLAPSE makes the kernel collapse small pages of a file into a huge page, whatever the
 * system's setting for shared memory. With only one small page present, the collapse is cheap. The
 * contents are then written to the huge page. */
#include "memory/promote/huge_pages.h"

#include "base/file_limit.h"
#include "memory/file.h"
#include "memory/pages.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { ENTRIES = 512 };
_Static_assert(ENTRIES *ORIEL_PAGE_BYTES == ORIEL_HUGE_BYTES, "a huge page");

static pthread_once_t tried = PTHREAD_ONCE_INIT;
static bool can_collapse;

/* Writes one byte first, so that one page exists. */
static bool collapse(char *piece)
{
    *(volatile char *)piece = 0;
    return madvise(piece, ORIEL_HUGE_BYTES, MADV_COLLAPSE) == 0;
}

static void try_collapse(void)
{
    int fd = memfd_create("oriel", MFD_CLOEXEC);
    if (fd < 0)
        return;
    if (oriel_file_resize(fd, ORIEL_HUGE_BYTES)) {
        char *piece = oriel_file_map(fd, ORIEL_HUGE_BYTES);
        can_collapse = piece != MAP_FAILED && collapse(piece);
        if (piece != MAP_FAILED)
            munmap(piece, ORIEL_HUGE_BYTES);
    }
    close(fd);
}

bool oriel_huge_pages_can_collapse(void)
{
    pthread_once(&tried, try_collapse);
    return can_collapse;
}

static bool is_whole(int pagemap_fd, uintptr_t piece)
{
    uint64_t entries[ENTRIES];
    if (pread(pagemap_fd, entries, sizeof entries,
              (off_t)(piece / ORIEL_PAGE_BYTES * sizeof *entries)) != sizeof entries)
        return false;
    for (int i = 0; i < ENTRIES; i++)
        if ((entries[i] & ORIEL_PAGE_PRESENT) == 0)
            return false;
    return true;
}

void oriel_huge_pages_prepare(int pagemap_fd, uintptr_t start, uint64_t len_bytes, uint64_t offset)
{
    uintptr_t first = (start + ORIEL_HUGE_BYTES - 1) & ~(uintptr_t)(ORIEL_HUGE_BYTES - 1);
    for (uintptr_t piece = first; piece + ORIEL_HUGE_BYTES <= start + len_bytes;
         piece += ORIEL_HUGE_BYTES)
        if (is_whole(pagemap_fd, piece) && !collapse(oriel_file_base() + offset + (piece - start)))
            return;
}
