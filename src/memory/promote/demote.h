/* The way back of promotion, for whole runs: private again, or reported and left as it is.  promote.c calls, under its mutex. */
#ifndef ORIEL_MEMORY_PROMOTE_DEMOTE_H
#define ORIEL_MEMORY_PROMOTE_DEMOTE_H

#include "memory/promote/promoted_ranges.h"
#include "memory/promote/write_barrier.h"

/* Restores all runs in [start, end) that nobody holds.  Those that cannot be restored for now stay in the list.  How many bytes
 * the program has unmapped or replaced meanwhile, which are left alone. */
uint64_t oriel_restore_unheld(struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end,
                              enum oriel_means means);

/* Runs in [start, end) that nobody holds stay shared: no mremap can lengthen their mappings. */
void oriel_restore_bound(const struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end);

/* Forgets the parts of runs that nobody holds and that the program has replaced since: it has promised nobody to leave them in
 * place. */
void oriel_restore_forget(struct oriel_promoted_ranges *runs);

/* len_bytes of a block are no longer promoted. */
void oriel_restore_drop(struct oriel_run_block *block, uint64_t len_bytes);

#endif
