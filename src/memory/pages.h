/* The physical pages of the own memory file: reserved before a block is given out, in huge pages where the system grants them,
 * near one of the machine's memory nodes where that is asked for, and given back.  Which ranges are blocks is allocator.c's, which
 * calls. */
#ifndef ORIEL_MEMORY_PAGES_H
#define ORIEL_MEMORY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define ORIEL_HUGE_BYTES (UINT64_C(1) << 21)

/* Entries of /proc/self/pagemap. */
#define ORIEL_PAGE_PRESENT (UINT64_C(1) << 63)
#define ORIEL_PAGE_SWAPPED (UINT64_C(1) << 62)

enum oriel_huge {
    ORIEL_HUGE_NONE,
    ORIEL_HUGE_BY_FILE, /* the kernel uses them for aligned ranges of any memfd (always, within_size) */
    ORIEL_HUGE_ON_ADVICE, /* where a mapping asks for them (advise): fallocate has no mapping to look at */
};

/* What this system grants to memfds, read afresh: the administrator may change it. */
enum oriel_huge oriel_pages_huge(void);

/* Asks for huge pages in the whole aligned ones of mapped memory; false when there are none, or the kernel refuses. */
bool oriel_pages_advise(char *start, uint64_t len_bytes);

/* Maps a range anew that nobody uses: without advice, one with its neighbours, and without the page tables of small pages that
 * were there before, in which no huge page has a place. */
void oriel_pages_remap(int fd, char *base, uint64_t offset, uint64_t len_bytes);

/* Reserves the pages of [offset, offset + len_bytes), whole pages; advised: by writing faults, which alone heed advice.
 * 0 or an errno; some pages may be reserved then. */
int oriel_pages_reserve(int fd, char *base, uint64_t offset, uint64_t len_bytes, bool advised);

/* Gives pages back to the system; they read as zeroes.  fd: -1 when it is not at hand. */
void oriel_pages_punch(int fd, char *base, uint64_t offset, uint64_t len_bytes);

/* The memory node of the processor that runs the calling thread; -1 when the kernel does not tell.  Creation calls, too. */
int32_t oriel_pages_node(void);

enum { ORIEL_POLICY_WORDS = 16 };

/* A thread's own rule for where its memory comes from. */
struct oriel_pages_policy {
    bool is_set; /* to be restored */
    int mode;
    unsigned long nodes[ORIEL_POLICY_WORDS];
};

/* Makes the calling thread take memory from node if it has any, until restored.  Nothing happens where the machine has one
 * node, node is negative, or the kernel refuses. */
void oriel_pages_prefer(int32_t node, struct oriel_pages_policy *before);
void oriel_pages_restore(const struct oriel_pages_policy *before);

#endif
