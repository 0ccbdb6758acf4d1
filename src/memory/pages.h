/* The physical pages of this process's memory file. They are reserved before a block is returned,
 * in huge pages where the system grants them, and near a given NUMA node on request. Freed pages
 * are returned to the system. */
#ifndef ORIEL_MEMORY_PAGES_H
#define ORIEL_MEMORY_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#define ORIEL_HUGE_BYTES (UINT64_C(1) << 21)

/* Entries of /proc/self/pagemap. */
#define ORIEL_PAGE_PRESENT (UINT64_C(1) << 63)
#define ORIEL_PAGE_SWAPPED (UINT64_C(1) << 62)

/* The size of the kernel's pages, a multiple of ORIEL_PAGE_BYTES: 16 or 64 KiB on some processors.
 * The kernel maps, isolates and populates memory in these units. */
uint64_t oriel_pages_bytes(void);

enum oriel_huge {
    ORIEL_HUGE_NONE,
    /* the kernel uses huge pages for aligned ranges of any memfd (always, within_size) */
    ORIEL_HUGE_BY_FILE,
    /* the kernel uses huge pages where a mapping asks for them (advise); fallocate has no
     * mapping */
    ORIEL_HUGE_ON_ADVICE,
};

/* How this system grants huge pages to memfds. Each call reads the settings, because the
 * administrator may change them. */
enum oriel_huge oriel_pages_huge(void);

/* Requests huge pages for the aligned huge-page ranges inside mapped memory. Returns false when
 * there are none, or the kernel refuses. */
bool oriel_pages_advise(char *start, uint64_t len_bytes);

/* Maps an unused range anew: without advice, so it merges with its neighbours, and without page
 * tables for small pages, which would exclude huge pages. */
void oriel_pages_remap(int fd, char *base, uint64_t offset, uint64_t len_bytes);

/* Reserves [offset, offset + len_bytes), whole pages. advised: reserves by write faults, because
 * only those respect the mapping's advice. Returns 0 or an errno; on error some pages may be
 * reserved. */
int oriel_pages_reserve(int fd, char *base, uint64_t offset, uint64_t len_bytes, bool advised);

/* Returns pages to the system; they read as zeroes. fd: -1 when it is unavailable. */
void oriel_pages_punch(int fd, char *base, uint64_t offset, uint64_t len_bytes);

/* The NUMA node of the processor that runs the calling thread, or -1 if unknown. */
int32_t oriel_pages_node(void);

/* Where the pages of memory come from, whichever thread touches them first. */
enum oriel_pages_from { ORIEL_PAGES_ANYWHERE, ORIEL_PAGES_ON_NODE, ORIEL_PAGES_INTERLEAVED };

struct oriel_pages_placement {
    enum oriel_pages_from from;
    int32_t node; /* that has them, if it has any left */
};

/* Sets the placement of pages of a shared mapping that are not allocated yet. Returns false if the
 * kernel refuses, or has no such NUMA node. */
bool oriel_pages_place(char *start, uint64_t len_bytes, struct oriel_pages_placement placement);

/* Whether it can, by one page of its own. */
bool oriel_pages_can_place(struct oriel_pages_placement placement);

enum { ORIEL_POLICY_WORDS = 16 };

/* A thread's memory policy. */
struct oriel_pages_policy {
    bool is_set; /* must be restored */
    int mode;
    unsigned long nodes[ORIEL_POLICY_WORDS];
};

/* Makes the calling thread allocate memory from node if it has any, until oriel_pages_restore. Does
 * nothing where the hardware has one NUMA node, node is negative, or the kernel refuses. */
void oriel_pages_prefer(int32_t node, struct oriel_pages_policy *before);
void oriel_pages_restore(const struct oriel_pages_policy *before);

#endif
