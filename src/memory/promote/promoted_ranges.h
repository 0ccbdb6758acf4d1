/* The list of promoted page ranges of this process, sorted by address, without overlaps. It
 * contains only addresses, offsets and counts; promote.c owns the mappings. promote.c's mutex
 * protects the list. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTED_RANGES_H
#define ORIEL_MEMORY_PROMOTE_PROMOTED_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation in the memory file. Freed when no byte of it is promoted. */
struct oriel_promoted_block {
    uint64_t offset;
    uint64_t live_bytes;
    bool is_lost;        /* a part may be mapped at an unknown address: never freed */
    bool is_retained;    /* a child without a lease may read it: neither punched nor freed */
    uint64_t first_fork; /* the first fork whose child may read it (fork_leases.h) */
    uint64_t last_fork;  /* the last such fork; set when the block starts to wait for children */
    struct oriel_promoted_block *next; /* in the queue of waiting blocks */
};

struct oriel_promoted_range {
    uintptr_t start;
    uintptr_t end;
    uint64_t offset;
    uintptr_t parked; /* address at which the private mapping of start is parked */
    /* number of references; 0: demotion failed, retried when the next reference ends */
    uint32_t references;
    struct oriel_promoted_block *block;
};

struct oriel_promoted_ranges {
    struct oriel_promoted_range *list;
    size_t count;
    size_t capacity;
};

/* Reserves capacity, so the insertion of `more` ranges and two splits cannot fail. Returns false if
 * memory is exhausted. */
bool oriel_promoted_ranges_prepare(struct oriel_promoted_ranges *ranges, size_t more);

/* Index of the first range that ends after address; count if there is none. */
size_t oriel_promoted_ranges_after(const struct oriel_promoted_ranges *ranges, uintptr_t address);

/* Splits the range that contains address, unless address is a boundary. */
void oriel_promoted_ranges_split(struct oriel_promoted_ranges *ranges, uintptr_t address);

void oriel_promoted_ranges_insert(struct oriel_promoted_ranges *ranges,
                                  const struct oriel_promoted_range *range);
void oriel_promoted_ranges_erase(struct oriel_promoted_ranges *ranges, size_t at);

/* Joins ranges that continue each other in [start, end) and at its ends. */
void oriel_promoted_ranges_join(struct oriel_promoted_ranges *ranges, uintptr_t start,
                                uintptr_t end);

#endif
