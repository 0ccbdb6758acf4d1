/* Demotion: makes promoted ranges private again, or reports why they stay shared. promote.c's mutex
 * protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_DEMOTE_H
#define ORIEL_MEMORY_PROMOTE_DEMOTE_H

#include "memory/promote/promoted_ranges.h"
#include "memory/promote/write_barrier.h"

/* Demotes all unreferenced ranges in [start, end). Ranges that cannot be demoted now stay in the
 * list. Returns the number of bytes that the program has unmapped or replaced meanwhile; these are
 * left alone. */
uint64_t oriel_restore_unheld(struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end,
                              enum oriel_means means);

/* Unreferenced ranges in [start, end) stay shared: prevents mremap from extending their
 * mappings. */
void oriel_restore_bound(const struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end);

/* Forgets the parts of unreferenced ranges that the program has replaced since. Only a reference
 * obliges the program to leave them mapped. */
void oriel_restore_forget(struct oriel_promoted_ranges *runs);

/* Subtracts len_bytes from the promoted bytes of a block. */
void oriel_restore_drop(struct oriel_run_block *block, uint64_t len_bytes);

#endif
