/* MPI_Win_fence. On one node operations are complete when they return, so a fence is a barrier that
 * publishes stores. Between nodes the barrier flushes first. The four assertions may be ignored,
 * except NOSUCCEED, which closes the epoch. */
#include "sync/memory_wait.h"
#include "sync/sync.h"

enum oriel_status oriel_fence(struct oriel_window *window, bool no_succeed)
{
    uint32_t others = ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_START;
    if ((oriel_load_relaxed(&window->epoch) & others) || oriel_locks_held(window))
        return oriel_fail(ORIEL_E_SYNC, "fence inside a lock, lock_all or start epoch");
    if (oriel_load_relaxed(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "fence inside the exposure epoch of a post");
    enum oriel_status status = oriel_barrier(window);
    oriel_memory_changed(window); /* the barrier's B1 is the fence */
    /* all ranks have met even if the status only reports an earlier operation's failure */
    if (status == ORIEL_OK || oriel_load_acquire(&window->common->broken) == 0)
        oriel_store_relaxed(&window->epoch, no_succeed ? 0 : ORIEL_EPOCH_FENCE);
    return status;
}
