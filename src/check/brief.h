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

enum { ORIEL_BRIEFS_MOST = 24 };

extern struct oriel_briefs {
    unsigned count;
    struct oriel_brief list[ORIEL_BRIEFS_MOST];
} oriel_briefs __attribute__((visibility("hidden"))); /* brief.c's own */

/* Compares the run with those that are needed, tells conflicts, and needs it until oriel_brief_end of its group.  False, and
 * nothing has happened: there is no room. */
bool oriel_brief_use(const struct oriel_brief *use, oriel_conflict_fn *tell, void *closure);

/* The same beside those that are needed behind the first ones, which it does not meet.  There is room. */
void oriel_brief_use_beside(const struct oriel_brief *use, unsigned first, oriel_conflict_fn *tell, void *closure);

/* The same for a run that is not empty; most meet nothing. */
struct oriel_brief_run {
    uint64_t low;
    uint64_t high;
    bool writes;
};
static inline void oriel_brief_add(const struct oriel_brief_run *run, uint64_t group, const struct oriel_site *site,
                                   unsigned first, oriel_conflict_fn *tell, void *closure)
{
    for (unsigned i = 0; i < first; i++)
        if (__builtin_expect(oriel_briefs.list[i].low <= run->high && run->low <= oriel_briefs.list[i].high, 0)) {
            struct oriel_brief met = {run->low, run->high, group, *site, run->writes, 0};
            oriel_brief_use_beside(&met, first, tell, closure);
            return;
        }
    struct oriel_brief *use = &oriel_briefs.list[oriel_briefs.count++];
    use->low = run->low; /* one by one: a whole would be read before its parts are written */
    use->high = run->high;
    use->group = group;
    use->site = *site;
    use->writes = run->writes;
    use->flags = 0;
}

/* Compares an access that is for the history. */
void oriel_brief_meet(const struct oriel_access *access, const struct oriel_extent *extents, size_t count,
                      oriel_conflict_fn *tell, void *closure);

static inline void oriel_brief_end(uint64_t group)
{
    for (unsigned i = oriel_briefs.count; i-- > 0;)
        if (oriel_briefs.list[i].group == group && i != --oriel_briefs.count)
            oriel_briefs.list[i] = oriel_briefs.list[oriel_briefs.count];
}

void oriel_brief_clear(void);

#endif
