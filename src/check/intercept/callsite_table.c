/* The slots of call sites in the table of their thread. Sites whose addresses share a first slot
 * use the next ones, so the sites of one loop do not evict each other. */
#include "check/intercept/callsite_cache.h"

_Thread_local struct oriel_callsite oriel_agains[ORIEL_CALLSITE_SITES];

/* Never used, or of windows that may have changed. */
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
