/* Reserves pages with fallocate where that is enough: it zeroes nothing and needs no mapping. The
 * kernel reads a mapping's advice and a thread's memory policy only when it populates a page, never
 * later. */
#include "memory/pages.h"

#include "memory/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define STEP_BYTES  (UINT64_C(16) << 20)
#define HUGE_FOLDER "/sys/kernel/mm/transparent_hugepage/"

uint64_t oriel_pages_bytes(void)
{
    const long bytes = sysconf(_SC_PAGESIZE);
    return bytes > (long)ORIEL_PAGE_BYTES ? (uint64_t)bytes : ORIEL_PAGE_BYTES;
}

/* --- huge pages --- */

/* The word in brackets, or "" if there is none. */
static void read_choice(const char *path, char choice[16])
{
    char line[128] = "";
    choice[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, line, sizeof line - 1);
    close(fd);
    const char *open_bracket = got > 0 ? strchr(line, '[') : NULL;
    if (open_bracket == NULL || sscanf(open_bracket, "[%15[^]]", choice) != 1)
        choice[0] = '\0';
}

enum oriel_huge oriel_pages_huge(void)
{
    char choice[16];
    /* Linux 6.11 has one file per size */
    read_choice(HUGE_FOLDER "hugepages-2048kB/shmem_enabled", choice);
    if (choice[0] == '\0' || strcmp(choice, "inherit") == 0)
        read_choice(HUGE_FOLDER "shmem_enabled", choice);
    if (strcmp(choice, "always") == 0 || strcmp(choice, "within_size") == 0 ||
        strcmp(choice, "force") == 0)
        return ORIEL_HUGE_BY_FILE;
    return strcmp(choice, "advise") == 0 ? ORIEL_HUGE_ON_ADVICE : ORIEL_HUGE_NONE;
}

bool oriel_pages_advise(char *start, uint64_t len_bytes)
{
    uintptr_t in_huge = ORIEL_HUGE_BYTES - 1;
    uintptr_t first = ((uintptr_t)start + in_huge) & ~in_huge;
    uintptr_t end = ((uintptr_t)start + len_bytes) & ~in_huge;
    return first < end && madvise((void *)first, end - first, MADV_HUGEPAGE) == 0;
}

void oriel_pages_remap(int fd, char *base, uint64_t offset, uint64_t len_bytes)
{
    void *fresh = mmap(base + offset, len_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, (off_t)offset);
    (void)fresh; /* on failure the old mapping remains */
}

/* --- reservation --- */

static int reserve_step(int fd, char *base, uint64_t offset, uint64_t len_bytes, bool advised)
{
    if (advised && madvise(base + offset, len_bytes, MADV_POPULATE_WRITE) == 0)
        return 0;
    if (advised && errno != EINVAL) /* EINVAL: before Linux 5.14 */
        return errno;
    return fallocate(fd, 0, (off_t)offset, (off_t)len_bytes) == 0 ? 0 : errno;
}

/* Reserves in steps. Older kernels abandon a reservation at every signal, so a long one might never
 * complete. */
int oriel_pages_reserve(int fd, char *base, uint64_t offset, uint64_t len_bytes, bool advised)
{
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = len_bytes - done < STEP_BYTES ? len_bytes - done : STEP_BYTES;
        int error = reserve_step(fd, base, offset + done, now, advised);
        if (error == 0)
            done += now;
        else if (error != EINTR && error != EAGAIN)
            return error;
    }
    return 0;
}

void oriel_pages_punch(int fd, char *base, uint64_t offset, uint64_t len_bytes)
{
    int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    /* libc's madvise comes first: libraries that register memory with a device intercept it */
    if (madvise(base + offset, len_bytes, MADV_REMOVE) != 0 &&
        (fd < 0 || fallocate(fd, how, (off_t)offset, (off_t)len_bytes) != 0))
        memset(base + offset, 0, len_bytes); /* free memory is zero in any case */
}

/* --- NUMA nodes --- */

enum { WORD_BITS = 8 * sizeof(unsigned long), NODES = ORIEL_POLICY_WORDS * WORD_BITS };

int32_t oriel_pages_node(void)
{
    unsigned processor, node;
    return syscall(SYS_getcpu, &processor, &node, NULL) == 0 ? (int32_t)node : -1;
}

static bool is_allowed(const unsigned long nodes[ORIEL_POLICY_WORDS], int32_t node)
{
    return node < NODES && (nodes[node / WORD_BITS] >> (node % WORD_BITS) & 1) != 0;
}

static int count_nodes(const unsigned long nodes[ORIEL_POLICY_WORDS])
{
    int count = 0;
    for (int i = 0; i < ORIEL_POLICY_WORDS; i++)
        count += __builtin_popcountl(nodes[i]);
    return count;
}

bool oriel_pages_place(char *start, uint64_t len_bytes, struct oriel_pages_placement placement)
{
    unsigned long nodes[ORIEL_POLICY_WORDS] = {0};
    int mode = MPOL_DEFAULT;
    if (placement.from != ORIEL_PAGES_ANYWHERE &&
        syscall(SYS_get_mempolicy, NULL, nodes, NODES, NULL, MPOL_F_MEMS_ALLOWED) != 0)
        return false;
    if (placement.from == ORIEL_PAGES_INTERLEAVED)
        mode = MPOL_INTERLEAVE;
    if (placement.from == ORIEL_PAGES_ON_NODE) {
        if (placement.node < 0 || !is_allowed(nodes, placement.node))
            return false;
        mode = MPOL_PREFERRED;
        memset(nodes, 0, sizeof nodes);
        nodes[placement.node / WORD_BITS] = 1UL << (placement.node % WORD_BITS);
    }
    return syscall(SYS_mbind, start, len_bytes, mode, nodes, NODES, 0) == 0;
}

bool oriel_pages_can_place(struct oriel_pages_placement placement)
{
    const uint64_t len_bytes = oriel_pages_bytes();
    char *page = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool placed = oriel_pages_place(page, len_bytes, placement);
    munmap(page, len_bytes);
    return placed;
}

void oriel_pages_prefer(int32_t node, struct oriel_pages_policy *before)
{
    unsigned long nodes[ORIEL_POLICY_WORDS] = {0};
    before->is_set = false;
    if (node < 0 ||
        syscall(SYS_get_mempolicy, NULL, nodes, NODES, NULL, MPOL_F_MEMS_ALLOWED) != 0 ||
        count_nodes(nodes) < 2 || !is_allowed(nodes, node))
        return;
    memset(before->nodes, 0, sizeof before->nodes);
    if (syscall(SYS_get_mempolicy, &before->mode, before->nodes, NODES, NULL, 0) != 0)
        return;
    memset(nodes, 0, sizeof nodes);
    nodes[node / WORD_BITS] = 1UL << (node % WORD_BITS);
    before->is_set = syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, NODES) == 0;
}

void oriel_pages_restore(const struct oriel_pages_policy *before)
{
    if (before->is_set)
        syscall(SYS_set_mempolicy, before->mode, before->nodes, NODES);
}
