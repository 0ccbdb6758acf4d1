/* Which memory may be promoted, and why other memory may not.  Nothing is changed by asking.  promote.c calls. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTABLE_H
#define ORIEL_MEMORY_PROMOTE_PROMOTABLE_H

#include "base/status.h"
#include "memory/promote/promoted_ranges.h"
#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

struct oriel_candidate {
    uintptr_t end;    /* of the part that lies in the same mapping as start */
    bool file_backed; /* a private copy of a file (.data): userfaultfd cannot protect it */
    bool huge;        /* some of the mapping is in transparent huge pages */
};

/* Whether the whole pages from start on that lie in one mapping, at most to end, are private, writable, of the ordinary sort, and
 * no thread's stack.  ORIEL_E_OTHER with the reason when they are not.  huge_allowed: huge pages may be broken up.  means: by
 * which they would be moved; runs: what is promoted already. */
enum oriel_status oriel_candidate_check(uintptr_t start, uintptr_t end, bool huge_allowed,
                                        enum oriel_means means,
                                        const struct oriel_promoted_ranges *runs,
                                        struct oriel_candidate *out);

/* For tests: what was remembered of mappings is too old now. */
void oriel_candidate_forget(void);

#endif
