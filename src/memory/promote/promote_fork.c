/* The list of referenced byte ranges, and the child's own pages. A word in a page shared with the
 * child reports that it has copied. The parent waits at most WAIT_NS for a child that does not run.
 */
#include "memory/promote/promote_fork.h"

#include "base/log.h"
#include "base/wait.h"
#include "memory/file.h"
#include "memory/promote/fork_leases.h"
#include "memory/promote/parked_mapping.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NS = 1000000000 }; /* a child may need a tenth of this on a busy node */

static struct {
    struct oriel_pending_slot *list;
    size_t count;
    size_t capacity;
} held;

static _Atomic uint32_t *copied; /* shared with the child; NULL when there is nothing to wait for */
/* descriptor that the child maps, during a fork; -1 when there is none */
static int lease = -1;

/* --- referenced byte ranges --- */

bool oriel_pending_slot_prepare(void)
{
    if (held.count < held.capacity)
        return true;
    size_t capacity = 2 * held.capacity + 32;
    struct oriel_pending_slot *larger = realloc(held.list, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    held.list = larger;
    held.capacity = capacity;
    return true;
}

void oriel_pending_slot_add(const struct oriel_pending_slot *added)
{
    held.list[held.count++] = *added;
}

void oriel_pending_slot_forget(const struct oriel_pending_slot *which)
{
    size_t at = 0;
    while (at < held.count &&
           (held.list[at].base != which->base || held.list[at].end != which->end))
        at++;
    if (at < held.count)
        held.list[at] = held.list[--held.count];
}

size_t oriel_pending_slot_count(void)
{
    return held.count;
}

/* --- fork --- */

static bool is_partial(uintptr_t address)
{
    return address % ORIEL_PAGE_BYTES != 0;
}

void oriel_promote_fork_before(const struct oriel_promoted_ranges *runs)
{
    bool is_needed = false;
    oriel_leases_look();
    lease = runs->count > 0 ? oriel_leases_grant(runs) : -1;
    for (size_t i = 0; i < held.count; i++)
        is_needed |= is_partial(held.list[i].base) || is_partial(held.list[i].end);
    copied = NULL;
    if (!is_needed)
        return;
    void *page =
        mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    copied = page != MAP_FAILED ? page : NULL;
}

/* If fork fails, the lease ends here. */
void oriel_promote_fork_parent(void)
{
    const struct timespec limit = {.tv_nsec = WAIT_NS};
    if (lease >= 0)
        close(lease);
    lease = -1;
    if (copied == NULL)
        return;
    uint64_t deadline_ns =
        oriel_now_ns() + WAIT_NS; /* after a failed fork there is no child */
    while (oriel_load_acquire(copied) == 0 && oriel_now_ns() < deadline_ns)
        syscall(SYS_futex, copied, FUTEX_WAIT, 0, &limit, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
    copied = NULL;
}

/* Replaces a page by a private copy of its current contents. On failure the page stays the
 * parent's, without a message. A raw system call, because hooks of libc's mremap (UCX's) lose its
 * fifth argument. */
static void copy_page(const struct oriel_promoted_ranges *runs, int fd, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(ORIEL_PAGE_BYTES - 1);
    size_t at = oriel_promoted_ranges_after(runs, page);
    if (!is_partial(address) || at == runs->count || runs->list[at].start > page)
        return;
    const struct oriel_run *run = &runs->list[at];
    void *fresh =
        mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return;
    if (pread(fd, fresh, ORIEL_PAGE_BYTES, (off_t)(run->offset + (page - run->start))) !=
            (ssize_t)ORIEL_PAGE_BYTES ||
        syscall(SYS_mremap, fresh, ORIEL_PAGE_BYTES, ORIEL_PAGE_BYTES,
                MREMAP_MAYMOVE | MREMAP_FIXED, page) != (long)page)
        munmap(fresh, ORIEL_PAGE_BYTES);
}

/* Returns false when some pages stay the parent's. */
static bool isolate(const struct oriel_promoted_ranges *runs, int fd)
{
    bool is_whole = true;
    for (size_t at = 0; at < runs->count; at++) {
        const struct oriel_run *run = &runs->list[at];
        is_whole &= mmap((void *)run->start, run->end - run->start, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_FIXED, fd, (off_t)run->offset) != MAP_FAILED;
        oriel_parked_mapping_bound(run->start);
    }
    for (size_t i = 0; i < held.count; i++) {
        copy_page(runs, fd, held.list[i].base);
        copy_page(runs, fd, held.list[i].end);
    }
    return is_whole;
}

/* The mappings inherit the lease. If some could not be created, the descriptor stays open for
 * them. */
void oriel_promote_fork_child(const struct oriel_promoted_ranges *runs)
{
    int fd = lease < 0 && oriel_file_is_open() ? oriel_file_identity()->memory_fd : lease;
    bool is_whole = fd >= 0 && isolate(runs, fd);
    if (!is_whole && runs->count > 0)
        oriel_note("fork: some window memory is still the parent's");
    for (size_t at = 0; at < runs->count; at++)
        oriel_parked_mapping_drop(runs->list[at].stash, runs->list[at].end - runs->list[at].start);
    if (lease >= 0 && is_whole)
        close(lease);
    lease = -1;
    if (copied == NULL)
        return;
    oriel_store_release(copied, 1);
    syscall(SYS_futex, copied, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
}
