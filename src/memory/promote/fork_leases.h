/* Blocks of the memory file that forked children may look at.  A child has them as private pages of the file: what it has not
 * written yet it reads from there, also after the parent has released the memory.  A lease tells whether such a child still
 * lives, for as long as it does: the pages that it might read are neither punched nor given to anybody else.  promote.c,
 * promote_fork.c and demote.c call, under promote.c's mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_FORK_LEASES_H
#define ORIEL_MEMORY_PROMOTE_FORK_LEASES_H

#include "memory/promote/promoted_ranges.h"

#include <stdbool.h>

/* A block is made: children of earlier forks know nothing of it. */
void oriel_leases_admit(struct oriel_run_block *block);

/* Before a fork: a descriptor of the memory file with a lease on the blocks of all runs, which lasts until the last process has
 * closed it and unmapped what it has mapped with it.  -1 when there is none to be had: the blocks then are kept until
 * this process ends. */
int oriel_leases_grant(const struct oriel_promoted_ranges *runs);

/* Whether a child may look at a block: what is released of it stays in the file. */
bool oriel_leases_cover(const struct oriel_run_block *block);

/* No byte of the block is promoted any more: frees it in the file, now or after the last child that may look at it. */
void oriel_leases_give_back(struct oriel_run_block *block);

/* Frees some of the blocks that wait whose children have ended.  To be called now and then. */
void oriel_leases_look(void);

#endif
