/* Which memory may be promoted, and why other memory may not. Checks change nothing. */
#ifndef ORIEL_MEMORY_PROMOTE_PROMOTABLE_H
#define ORIEL_MEMORY_PROMOTE_PROMOTABLE_H

#include "base/status.h"
#include "memory/promote/promoted_ranges.h"
#include "memory/promote/write_barrier.h"

#include <stdbool.h>
#include <stdint.h>

struct oriel_promotable {
    uintptr_t end;    /* end of the part that is in the same mapping as start */
    bool file_backed; /* a private copy of a file (.data), which userfaultfd cannot protect */
    bool huge;        /* some of the mapping is in transparent huge pages */
};

/* Checks the whole pages from start on, in one mapping and at most up to end. They must be private,
 * writable, of an ordinary kind, and not a thread's stack. Returns ORIEL_E_OTHER with the reason if
 * not. huge_allowed: huge pages may be split. method: how the pages would be moved. ranges: the
 * promoted ranges. */
enum oriel_status oriel_promotable_check(uintptr_t start, uintptr_t end, bool huge_allowed,
                                         enum oriel_barrier_method method,
                                         const struct oriel_promoted_ranges *ranges,
                                         struct oriel_promotable *out);

/* For tests: expires all cached mapping data. */
void oriel_promotable_expire_cache(void);

#endif
