/* Which calls are allowed now: the rules of MPI-4.1, 13.5 that relate one epoch to another. Only
 * this process uses window->epoch and window->exposed; other ranks read only the access words. All
 * are atomic, so threads that break the rules corrupt nothing. */
#include "sync/sync.h"

#include "sync/epoch.h"

bool oriel_locks_held(const struct oriel_window *window)
{
    const _Atomic uint8_t *words = oriel_window_access(window);
    if (words == window->group->absent)
        return false;
    for (int32_t i = 0; i < window->n; i++)
        if (oriel_access_is_lock(atomic_load_explicit(&words[i], memory_order_relaxed)))
            return true;
    return false;
}

enum oriel_status oriel_epochs_closed(const struct oriel_window *window)
{
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if ((epoch & ORIEL_EPOCH_LOCK_ALL) || oriel_locks_held(window))
        return oriel_fail(ORIEL_E_SYNC, "the window is still locked by this process");
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "the access epoch of a start is still open");
    if (epoch & ORIEL_EPOCH_USED)
        return oriel_fail(ORIEL_E_SYNC, "operations followed the last fence");
    if (oriel_load_relaxed(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "the exposure epoch of a post is still open");
    return ORIEL_OK;
}

enum oriel_status oriel_epoch_leave_fence(struct oriel_window *window)
{
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if (epoch & ORIEL_EPOCH_USED)
        return oriel_fail(
            ORIEL_E_SYNC,
            "operations followed the last fence: another fence must close its epoch first");
    if (epoch & ORIEL_EPOCH_FENCE)
        atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_FENCE,
                                  memory_order_relaxed);
    return ORIEL_OK;
}
