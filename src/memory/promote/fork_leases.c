/* Counts forks, and asks the kernel which of their children are alive. A lease is a lock on one
 * byte of the memory file, at the number of the fork. It belongs to a file description of its own
 * (F_OFD_SETLK). The kernel keeps the lock as long as any process has that file description open or
 * mapped. promote.c's mutex protects everything here, and fork acquires it, too.
 *
 * The child maps its pages with that descriptor and closes it. So the lease ends with the last such
 * mapping: by exit, exec or munmap, in the child and in its own children, which inherit the
 * mappings. A child that closes all descriptors (daemons do) does not end its lease, and the parent
 * keeps no descriptor open for it. A block is visible to the children of the forks between its
 * creation and its end. Other children do not delay freeing it; otherwise a program that always has
 * a child would never free a block.
 *
 * Not covered are children that are created without fork handlers (the bare system call, _Fork).
 * These share promoted pages with the parent, as they share all other window memory. */
#include "memory/promote/fork_leases.h"

#include "base/log.h"
#include "memory/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* number of waiting blocks checked at a time: there may be as many as there were windows */
enum { LOOKS = 16 };

static uint64_t forks; /* number of forks that had a lease, or needed one */
/* queue of blocks that wait for children to end; NULL when empty */
static struct oriel_promoted_block *first;
static struct oriel_promoted_block *last; /* valid only if first is not NULL */

void oriel_fork_leases_add_block(struct oriel_promoted_block *block)
{
    block->first_fork = forks + 1;
}

int oriel_fork_leases_grant(const struct oriel_promoted_ranges *ranges)
{
    char path[48];
    struct flock lock = {
        .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)++forks, .l_len = 1};
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", (int)oriel_file_identity()->memory_fd);
    errno = EBADF;
    int fd = oriel_file_is_open() ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return fd;
    oriel_note("fork: window memory that the child inherits will not be freed: %s",
               strerror(errno));
    if (fd >= 0)
        close(fd);
    for (size_t at = 0; at < ranges->count; at++)
        ranges->list[at].block->is_retained = true;
    return -1;
}

/* If the kernel's answer is unavailable, assumes that a child can read the block. */
static bool children_may_read(const struct oriel_promoted_block *block, uint64_t last_fork)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)block->first_fork};
    if (block->is_retained || last_fork < block->first_fork)
        return block->is_retained;
    lock.l_len = (off_t)(last_fork - block->first_fork + 1);
    return !oriel_file_is_open() ||
           fcntl(oriel_file_identity()->memory_fd, F_OFD_GETLK, &lock) != 0 ||
           lock.l_type != F_UNLCK;
}

bool oriel_fork_leases_cover(const struct oriel_promoted_block *block)
{
    return children_may_read(block, forks);
}

static void block_queue(struct oriel_promoted_block *block)
{
    block->next = NULL;
    if (first == NULL)
        first = block;
    else
        last->next = block;
    last = block;
}

static void block_free_or_queue(struct oriel_promoted_block *block)
{
    if (block->is_lost || block->is_retained) {
        free(block);
    } else if (children_may_read(block, block->last_fork)) {
        block_queue(block);
    } else {
        oriel_file_free(block->offset);
        free(block);
    }
}

void oriel_fork_leases_free_block(struct oriel_promoted_block *block)
{
    block->last_fork = forks;
    block_free_or_queue(block);
}

void oriel_fork_leases_free_expired(void)
{
    struct oriel_promoted_block *end = last;
    for (int looks = 0; looks < LOOKS && first != NULL; looks++) {
        struct oriel_promoted_block *block = first;
        first = block->next;
        block_free_or_queue(block);
        if (block == end)
            return;
    }
}
