/* Promoted memory in a forked child. The child gets its own pages at the same addresses. A page
 * that a window covers only in part, next to other data of the program, is copied at the fork. All
 * other pages are a private mapping of the file. Pages that the child has not written show later
 * writes of the parent, until the parent releases them; after that they stay as they are
 * (fork_leases.h). promote.c's mutex keeps promotions and forks apart. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTE_FORK_H
#define ORIEL_MEMORY_PROMOTE_PROMOTE_FORK_H

#include "memory/promote/promoted_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A referenced range of bytes. */
struct oriel_byte_range {
    uintptr_t base;
    uintptr_t end;
};

/* The list of referenced ranges. oriel_promote_fork_range_reserve reserves room for one more, so
 * the next addition cannot fail; it returns false if memory is exhausted. */
bool oriel_promote_fork_range_reserve(void);
void oriel_promote_fork_range_add(const struct oriel_byte_range *added);
void oriel_promote_fork_range_remove(const struct oriel_byte_range *which);
size_t oriel_promote_fork_range_count(void);

/* Before the fork; after it in the parent, which waits until the child has copied; and in the
 * child. */
void oriel_promote_fork_before(const struct oriel_promoted_ranges *ranges);
void oriel_promote_fork_parent(void);
void oriel_promote_fork_child(const struct oriel_promoted_ranges *ranges);

#endif
