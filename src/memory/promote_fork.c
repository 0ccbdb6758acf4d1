/* The child's own pages.  The word that tells the parent of the copies lies in a page that both share; nobody waits longer than a
 * moment for a child that does not run.  promote.c calls. */
#include "memory/promote_fork.h"

#include "base/wait.h"
#include "memory/file.h"
#include "memory/stash.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NS = 50000000 };

static _Atomic uint32_t *copied; /* shared with the child; NULL when there is nothing to wait for */

static bool is_partial(uintptr_t address)
{
    return address % ORIEL_PAGE_BYTES != 0;
}

void oriel_promote_fork_before(const struct oriel_held *held, size_t count)
{
    bool is_needed = false;
    for (size_t i = 0; i < count; i++)
        is_needed |= is_partial(held[i].base) || is_partial(held[i].end);
    copied = NULL;
    if (!is_needed)
        return;
    void *page = mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    copied = page != MAP_FAILED ? page : NULL;
}

void oriel_promote_fork_parent(void)
{
    const struct timespec limit = {.tv_nsec = WAIT_NS};
    if (copied == NULL)
        return;
    uint64_t deadline_ns = oriel_now_ns() + WAIT_NS; /* there is no child at all when the fork has failed */
    while (oriel_load_acquire(copied) == 0 && oriel_now_ns() < deadline_ns)
        syscall(SYS_futex, copied, FUTEX_WAIT, 0, &limit, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
    copied = NULL;
}

/* A page as it is now.  Where that fails the page stays the parent's: nobody is there to be told.  A raw system call: hooks
 * of libc's mremap (UCX's) lose its fifth argument. */
static void copy_page(const struct oriel_runs *runs, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(ORIEL_PAGE_BYTES - 1);
    size_t at = oriel_runs_after(runs, page);
    if (!is_partial(address) || at == runs->count || runs->list[at].start > page)
        return;
    const struct oriel_run *run = &runs->list[at];
    void *fresh = mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return;
    int fd = oriel_file_identity()->memory_fd;
    if (pread(fd, fresh, ORIEL_PAGE_BYTES, (off_t)(run->offset + (page - run->start))) != (ssize_t)ORIEL_PAGE_BYTES ||
        syscall(SYS_mremap, fresh, ORIEL_PAGE_BYTES, ORIEL_PAGE_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, page) != (long)page)
        munmap(fresh, ORIEL_PAGE_BYTES);
}

void oriel_promote_fork_child(const struct oriel_runs *runs, const struct oriel_held *held, size_t count)
{
    for (size_t at = 0; at < runs->count; at++) {
        const struct oriel_run *run = &runs->list[at];
        void *own = mmap((void *)run->start, run->end - run->start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
                         oriel_file_identity()->memory_fd, (off_t)run->offset);
        (void)own;
        oriel_stash_drop(run->stash, run->end - run->start);
    }
    for (size_t i = 0; i < count; i++) {
        copy_page(runs, held[i].base);
        copy_page(runs, held[i].end);
    }
    if (copied == NULL)
        return;
    oriel_store_release(copied, 1);
    syscall(SYS_futex, copied, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
}
