/* Buffers that calls under way still need, where nobody watches loads and stores: most are few and over soon, and only other calls
 * of this process can meet them.  A short list of plain runs; what it has no room for, or is no plain run, stands in local.c's
 * history.  local.c calls, under its lock. */
#ifndef ORIEL_CHECK_BRIEF_H
#define ORIEL_CHECK_BRIEF_H

#include "check/history.h"

/* Compares the bytes with those that are needed and tells conflicts. */
void oriel_brief_meet(const struct oriel_access *access, const struct oriel_extent *extents, size_t count,
                      oriel_conflict_fn *tell, void *closure);

/* The access, which has a group, needs the run until oriel_brief_end; false: there is no room. */
bool oriel_brief_add(const struct oriel_access *access, const struct oriel_extent *run);

void oriel_brief_end(uint64_t group);
void oriel_brief_clear(void);

#endif
