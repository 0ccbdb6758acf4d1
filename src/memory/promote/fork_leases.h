/* Blocks of the memory file that forked children may read. A child has them as private pages of the
 * file. Pages that it has not written yet are read from the file, even after the parent has
 * released the memory. A lease shows whether such a child is alive. While it is, the pages that it
 * might read are neither punched nor reused. promote.c's mutex protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_FORK_LEASES_H
#define ORIEL_MEMORY_PROMOTE_FORK_LEASES_H

#include "memory/promote/promoted_ranges.h"

#include <stdbool.h>

/* Registers a new block: children of earlier forks cannot read it. */
void oriel_fork_leases_add_block(struct oriel_promoted_block *block);

/* Before a fork: returns a descriptor of the memory file with a lease on the blocks of all ranges.
 * The lease lasts until the last process has closed the descriptor and unmapped all that it mapped
 * with it. Returns -1 if there is no lease; the blocks are then never freed. */
int oriel_fork_leases_grant(const struct oriel_promoted_ranges *ranges);

/* Whether a child may read a block. If so, released contents stay in the file. */
bool oriel_fork_leases_cover(const struct oriel_promoted_block *block);

/* No byte of the block is promoted: frees it in the file, now or after the last child that may read
 * it has ended. */
void oriel_fork_leases_free_block(struct oriel_promoted_block *block);

/* Frees some of the waiting blocks whose children have ended. Call it from time to time. */
void oriel_fork_leases_free_expired(void);

#endif
