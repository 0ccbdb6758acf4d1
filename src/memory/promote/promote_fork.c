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
    struct oriel_byte_range *list;
    size_t count;
    size_t capacity;
} referenced;

static _Atomic uint32_t *copied; /* shared with the child; NULL when there is nothing to wait for */
/* descriptor that the child maps, during a fork; -1 when there is none */
static int lease = -1;

/* --- referenced byte ranges --- */

bool oriel_promote_fork_range_reserve(void)
{
    if (referenced.count < referenced.capacity)
        return true;
    size_t capacity = 2 * referenced.capacity + 32;
    struct oriel_byte_range *larger = realloc(referenced.list, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    referenced.list = larger;
    referenced.capacity = capacity;
    return true;
}

void oriel_promote_fork_range_add(const struct oriel_byte_range *added)
{
    referenced.list[referenced.count++] = *added;
}

void oriel_promote_fork_range_remove(const struct oriel_byte_range *which)
{
    size_t at = 0;
    while (at < referenced.count &&
           (referenced.list[at].base != which->base || referenced.list[at].end != which->end))
        at++;
    if (at < referenced.count)
        referenced.list[at] = referenced.list[--referenced.count];
}

size_t oriel_promote_fork_range_count(void)
{
    return referenced.count;
}

/* --- fork --- */

static bool is_partial(uintptr_t address)
{
    return address % ORIEL_PAGE_BYTES != 0;
}

void oriel_promote_fork_before(const struct oriel_promoted_ranges *ranges)
{
    bool is_needed = false;
    oriel_fork_leases_free_expired();
    lease = ranges->count > 0 ? oriel_fork_leases_grant(ranges) : -1;
    for (size_t i = 0; i < referenced.count; i++)
        is_needed |= is_partial(referenced.list[i].base) || is_partial(referenced.list[i].end);
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
    uint64_t deadline_ns = oriel_now_ns() + WAIT_NS; /* after a failed fork there is no child */
    while (oriel_load_acquire(copied) == 0 && oriel_now_ns() < deadline_ns)
        syscall(SYS_futex, copied, FUTEX_WAIT, 0, &limit, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
    copied = NULL;
}

/* Replaces a page by a private copy of its current contents. On failure the page stays the
 * parent's, without a message. A raw system call, because hooks of libc's mremap (UCX's) lose its
 * fifth argument. */
static void copy_page(const struct oriel_promoted_ranges *ranges, int fd, uintptr_t address)
{
    uintptr_t page = address & ~(uintptr_t)(ORIEL_PAGE_BYTES - 1);
    size_t at = oriel_promoted_ranges_after(ranges, page);
    if (!is_partial(address) || at == ranges->count || ranges->list[at].start > page)
        return;
    const struct oriel_promoted_range *range = &ranges->list[at];
    void *fresh =
        mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
        return;
    if (pread(fd, fresh, ORIEL_PAGE_BYTES, (off_t)(range->offset + (page - range->start))) !=
            (ssize_t)ORIEL_PAGE_BYTES ||
        syscall(SYS_mremap, fresh, ORIEL_PAGE_BYTES, ORIEL_PAGE_BYTES,
                MREMAP_MAYMOVE | MREMAP_FIXED, page) != (long)page)
        munmap(fresh, ORIEL_PAGE_BYTES);
}

/* Returns false when some pages stay the parent's. */
static bool ranges_isolate(const struct oriel_promoted_ranges *ranges, int fd)
{
    bool is_whole = true;
    for (size_t at = 0; at < ranges->count; at++) {
        const struct oriel_promoted_range *range = &ranges->list[at];
        is_whole &= mmap((void *)range->start, range->end - range->start, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_FIXED, fd, (off_t)range->offset) != MAP_FAILED;
        oriel_parked_mapping_split_first_page(range->start);
    }
    for (size_t i = 0; i < referenced.count; i++) {
        copy_page(ranges, fd, referenced.list[i].base);
        copy_page(ranges, fd, referenced.list[i].end);
    }
    return is_whole;
}

/* The mappings inherit the lease. If some could not be created, the descriptor stays open for
 * them. */
void oriel_promote_fork_child(const struct oriel_promoted_ranges *ranges)
{
    int fd = lease < 0 && oriel_file_is_open() ? oriel_file_identity()->memory_fd : lease;
    bool is_whole = fd >= 0 && ranges_isolate(ranges, fd);
    if (!is_whole && ranges->count > 0)
        oriel_note("fork: some window memory stays shared with the parent");
    for (size_t at = 0; at < ranges->count; at++)
        oriel_parked_mapping_drop(ranges->list[at].parked,
                                  ranges->list[at].end - ranges->list[at].start);
    if (lease >= 0 && is_whole)
        close(lease);
    lease = -1;
    if (copied == NULL)
        return;
    oriel_store_release(copied, 1);
    syscall(SYS_futex, copied, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    munmap(copied, ORIEL_PAGE_BYTES);
}
