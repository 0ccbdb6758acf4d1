/* Uses of buffers that are not over. For each group: the histories that have its accesses, and the
 * pages that are watched for it. Protected by the lock of local_accesses.c. */
#ifndef ORIEL_CHECK_LOCAL_BUFFER_USES_H
#define ORIEL_CHECK_LOCAL_BUFFER_USES_H

#include "check/shm/shm.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct oriel_use_range {
    uint64_t low;
    uint64_t high;
};

struct oriel_use {
    uint64_t group;
    size_t histories_count;
    size_t histories_room;
    oriel_shm_offset *histories;
    size_t ranges_count;
    size_t ranges_room;
    struct oriel_use_range *ranges; /* of addresses */
    struct oriel_use *next;         /* list of unused ones */
};

/* Returns the use of the group; NULL: none. */
struct oriel_use *oriel_use_find(uint64_t group);

/* Returns the use of the group, and creates it if there is none. NULL: no memory. */
struct oriel_use *oriel_use_of(uint64_t group);

/* Whether any group has a use. */
extern size_t oriel_uses_open __attribute__((visibility("hidden")));
static inline bool oriel_uses_are_open(void)
{
    return oriel_uses_open > 0;
}

/* --- where outstanding buffers outside windows are --- */

/* From the first byte of all such buffers that uses have to the end of the last; if several threads
 * run the checker's code, also of those in the short list. Most accesses of the program are
 * elsewhere, and any thread finds that out without the lock.
 *
 * The bounds change under the lock. While a buffer is outstanding, they only widen; they are reset
 * when none is left. So a thread that knows of the call which uses a buffer, by any order that the
 * program has made, reads bounds that contain it until the use ends, whichever of their values it
 * reads. A thread without such order could as well have been faster than the call. Nothing else is
 * read because of the bounds, so relaxed accesses are enough. */
struct oriel_uses_bounds {
    _Atomic uint64_t low;
    _Atomic uint64_t high;
};
extern struct oriel_uses_bounds oriel_uses_bounds __attribute__((visibility("hidden")));

static inline bool oriel_uses_are_elsewhere(uint64_t low, uint64_t high)
{
    return high <= atomic_load_explicit(&oriel_uses_bounds.low, memory_order_relaxed) ||
           low >= atomic_load_explicit(&oriel_uses_bounds.high, memory_order_relaxed);
}

void oriel_uses_bounds_widen(uint64_t low, uint64_t high);
void oriel_uses_bounds_reset(void);

/* Records that the history has an access of the group. False: no memory. */
bool oriel_use_note(struct oriel_use *use, oriel_shm_offset history);

/* Watches these addresses for the use, unless they are watched already. */
void oriel_use_watch(struct oriel_use *use, uint64_t low, uint64_t high);

/* Ends the use: its pages are no longer watched. */
void oriel_use_end(struct oriel_use *use);

/* Removes the history from all uses, before it is freed. */
void oriel_uses_forget(oriel_shm_offset history);

/* Ends all uses. */
void oriel_uses_clear(void);

#endif
