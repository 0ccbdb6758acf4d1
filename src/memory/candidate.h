/* Which memory may be promoted, and why other memory may not.  Nothing is changed by asking.  promote.c calls. */
#ifndef ORIEL_MEMORY_CANDIDATE_H
#define ORIEL_MEMORY_CANDIDATE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct oriel_candidate {
    bool file_backed; /* a part is a private copy of a file (.data): userfaultfd cannot protect it */
    bool unreserved;  /* a part was mapped with MAP_NORESERVE */
};

/* Whether the whole pages [start, end) are private, writable, of the ordinary sort, and no thread's stack.  ORIEL_E_OTHER
 * with the reason when they are not.  huge_allowed: huge pages may be broken up. */
enum oriel_status oriel_candidate_check(uintptr_t start, uintptr_t end, bool huge_allowed, struct oriel_candidate *out);

#endif
