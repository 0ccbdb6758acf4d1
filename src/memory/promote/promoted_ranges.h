/* The list of promoted page runs of this process, sorted by address, never overlapping.  It knows addresses, offsets and counts
 * only; what is mapped where is promote.c's, which alone calls, under its mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTED_RANGES_H
#define ORIEL_MEMORY_PROMOTE_PROMOTED_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation in the memory file; freed when no byte of it is promoted any more. */
struct oriel_run_block {
    uint64_t offset;
    uint64_t live_bytes;
    bool is_lost;        /* a part may be mapped where nobody knows: never freed */
    bool is_kept;        /* a child without a lease may look at it: neither punched nor freed */
    uint64_t first_fork; /* of those whose children may look at it (fork_leases.h) */
    uint64_t last_fork;  /* the same, once it waits for their end */
    struct oriel_run_block *next; /* of those that wait */
};

struct oriel_run {
    uintptr_t start;
    uintptr_t end;
    uint64_t offset;
    uintptr_t stash; /* where the private mapping of start waits */
    uint32_t holds;  /* 0: could not be made private again, waits to be held anew */
    struct oriel_run_block *block;
};

struct oriel_promoted_ranges {
    struct oriel_run *list;
    size_t count;
    size_t capacity;
};

/* Makes room so that inserting more runs and two splits cannot fail. */
bool oriel_promoted_ranges_prepare(struct oriel_promoted_ranges *runs, size_t more);

/* The first run that ends behind address; count when there is none. */
size_t oriel_promoted_ranges_after(const struct oriel_promoted_ranges *runs, uintptr_t address);

/* Makes address a boundary of runs if it lies inside of one. */
void oriel_promoted_ranges_split(struct oriel_promoted_ranges *runs, uintptr_t address);

void oriel_promoted_ranges_insert(struct oriel_promoted_ranges *runs, const struct oriel_run *run);
void oriel_promoted_ranges_erase(struct oriel_promoted_ranges *runs, size_t at);

/* Joins runs that continue each other in [start, end) and at its ends. */
void oriel_promoted_ranges_join(struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end);

#endif
