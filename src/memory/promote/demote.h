/* Demotion: makes promoted ranges private again, or reports why they stay shared. promote.c's mutex
 * protects all of this. */
#ifndef ORIEL_MEMORY_PROMOTE_DEMOTE_H
#define ORIEL_MEMORY_PROMOTE_DEMOTE_H

#include "memory/promote/promoted_ranges.h"
#include "memory/promote/write_barrier.h"

/* Demotes all unreferenced ranges in [start, end). Ranges that cannot be demoted now stay in the
 * list. Returns the number of bytes that the program has unmapped or replaced meanwhile; these are
 * left alone. */
uint64_t oriel_demote_unreferenced(struct oriel_promoted_ranges *ranges, uintptr_t start,
                                   uintptr_t end, enum oriel_barrier_method method);

/* Unreferenced ranges in [start, end) stay shared: prevents mremap from extending their
 * mappings. */
void oriel_demote_prevent_growth(const struct oriel_promoted_ranges *ranges, uintptr_t start,
                                 uintptr_t end);

/* Forgets the parts of unreferenced ranges that the program has replaced since. Only a reference
 * obliges the program to leave them mapped. */
void oriel_demote_forget_replaced(struct oriel_promoted_ranges *ranges);

/* Subtracts len_bytes from the promoted bytes of a block. */
void oriel_demote_subtract(struct oriel_promoted_block *block, uint64_t len_bytes);

#endif
