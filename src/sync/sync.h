/* Synchronisation of windows: the interface for the layers above. On one node no call needs the
 * target's help. Each returns ORIEL_E_SYNC for wrong use, and ORIEL_E_PEER, naming the rank, if a
 * process it waits for has died. */
#ifndef ORIEL_SYNC_SYNC_H
#define ORIEL_SYNC_SYNC_H

#include "window/window.h"

/* Returns when every rank of the window has arrived. Stores and operations of all ranks before it,
 * also internode ones, are visible to all after it. */
enum oriel_status oriel_barrier(struct oriel_window *window);

/* MPI_Win_fence (MPI-4.1, 13.5.1); no_succeed is MPI_MODE_NOSUCCEED. */
enum oriel_status oriel_fence(struct oriel_window *window, bool no_succeed);

/* MPI_Win_post, start, complete, wait, test (13.5.2). ranks: count win_ranks, in memory from malloc
 * with room for count pointers; the callee keeps or frees it. NULL: the ranks of the last post, or
 * start, of this window. */
enum oriel_status oriel_post(struct oriel_window *window, int32_t *ranks, int32_t count);
enum oriel_status oriel_start(struct oriel_window *window, int32_t *ranks, int32_t count);
enum oriel_status oriel_complete(struct oriel_window *window);
enum oriel_status oriel_wait_exposure(struct oriel_window *window);
enum oriel_status oriel_test_exposure(struct oriel_window *window, bool *done);

/* MPI_Win_lock, unlock, lock_all, unlock_all (13.5.3). */
enum oriel_status oriel_lock(struct oriel_window *window, int32_t target, bool exclusive);
enum oriel_status oriel_unlock(struct oriel_window *window, int32_t target);
enum oriel_status oriel_lock_all(struct oriel_window *window);
enum oriel_status oriel_unlock_all(struct oriel_window *window);

/* As oriel_lock, but lazy at an internode target: the lock is acquired before any operation of its
 * epoch is executed, possibly after this call (origin_sync.h). */
enum oriel_status oriel_lock_lazy(struct oriel_window *window, int32_t target, bool exclusive);

/* As oriel_lock and oriel_lock_all, with MPI_MODE_NOCHECK: the epoch is opened, and no lock
 * acquired. */
enum oriel_status oriel_lock_trusted(struct oriel_window *window, int32_t target);
enum oriel_status oriel_lock_all_trusted(struct oriel_window *window);

/* Whether this process holds locks of individual targets. */
bool oriel_locks_held(const struct oriel_window *window);

/* Whether a passive-target epoch to this target is open. */
static inline bool oriel_passive_epoch_to(const struct oriel_window *window, int32_t target)
{
    if (oriel_likely(oriel_load_has(&window->epoch, ORIEL_EPOCH_LOCK_ALL)))
        return true;
    return oriel_access_is_lock(oriel_window_access_to(window, target));
}

/* The same; to any target for -1. */
static inline bool oriel_passive_epoch(const struct oriel_window *window, int32_t target)
{
    if (target >= 0)
        return oriel_passive_epoch_to(window, target);
    return (oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_LOCK_ALL) || oriel_locks_held(window);
}

/* Whether MPI_Win_free may be called: ORIEL_E_SYNC in an open epoch. */
enum oriel_status oriel_epochs_closed(const struct oriel_window *window);

/* Whether an operation to target is inside an access epoch for it. */
static inline bool oriel_access_allowed(const struct oriel_window *window, int32_t target)
{
    return (oriel_load_relaxed(&window->epoch) & (ORIEL_EPOCH_ALL_TARGETS | ORIEL_EPOCH_FENCE)) ||
           oriel_window_access_to(window, target) >= ORIEL_ACCESS_STATE_SHARED;
}

/* An operation has passed all checks: only another fence can end a fence's epoch now. A refused
 * operation uses no epoch. */
static inline void oriel_access_use(struct oriel_window *window)
{
    if ((oriel_load_relaxed(&window->epoch) & (ORIEL_EPOCH_FENCE | ORIEL_EPOCH_USED)) ==
        ORIEL_EPOCH_FENCE)
        atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_USED, memory_order_relaxed);
}

#endif
