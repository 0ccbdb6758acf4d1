/* Where call sites stand in the table of their thread.  Several may have the same first place, by chance of addresses: each then
 * has another one behind it, so that those of one loop do not drive each other out.  callsite_cache.c and pending_slot.h call. */
#include "check/access/callsite_cache.h"

_Thread_local struct oriel_callsite oriel_agains[ORIEL_CALLSITE_SITES];

/* Nobody's yet, or of windows that may be others by now. */
static bool is_free(const struct oriel_callsite *again)
{
    return again->address == NULL || again->version != oriel_callsite_version();
}

struct oriel_callsite *oriel_callsite_elsewhere(const void *address, MPI_Win win, uint64_t first)
{
    struct oriel_callsite *spare = NULL;
    for (uint64_t i = 0; i < ORIEL_CALLSITE_LOOKS; i++) {
        struct oriel_callsite *again = &oriel_agains[(first + i) % ORIEL_CALLSITE_SITES];
        if (oriel_callsite_is_of(again, address, win))
            return again;
        if (spare == NULL && is_free(again))
            spare = again;
    }
    return spare != NULL ? spare : &oriel_agains[first];
}
