/* Buffers that calls under way still need, where nobody watches loads and stores: most are few and over soon, and only other
 * calls of this process can meet them.  A short list of plain runs; what it has no room for, or is no plain run, stands in
 * local.c's history.  local.c calls, under its lock. */
#ifndef ORIEL_CHECK_BRIEF_H
#define ORIEL_CHECK_BRIEF_H

#include "check/history.h"

struct oriel_brief {
    uint64_t low;
    uint64_t high;
    uint64_t group; /* 0: it is over already, and only compared */
    struct oriel_site site;
    bool writes;
    uint8_t flags;
};

/* Compares the run with those that are needed, tells conflicts, and needs it until oriel_brief_end of its group.  False, and
 * nothing has happened: there is no room. */
bool oriel_brief_use(const struct oriel_brief *use, oriel_conflict_fn *tell, void *closure);

/* Compares an access that is for the history. */
void oriel_brief_meet(const struct oriel_access *access, const struct oriel_extent *extents, size_t count,
                      oriel_conflict_fn *tell, void *closure);

/* The same for all runs of one operation, which is under way until the end of the group.  None of them is empty; what is written
 * overlaps with none of the others. */
struct oriel_brief_run {
    uint64_t low;
    uint64_t high;
    bool writes;
};
bool oriel_brief_use_all(const struct oriel_brief_run *runs, unsigned count, uint64_t group, const struct oriel_site *site,
                         oriel_conflict_fn *tell, void *closure);

void oriel_brief_end(uint64_t group);
void oriel_brief_clear(void);

#endif
