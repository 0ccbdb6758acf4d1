/* Locks, flushes and sync (MPI-4.1, 13.5.3, 13.5.4). On one node operations are complete when they
 * return, except short ones that are deferred (rma/deferred.c). A flush executes those. Otherwise a
 * flush is the memory barrier that its callers rely on (a later get must not pass an earlier put:
 * base/tls_cache.h), and a local flush has no effect. In a window that spans nodes, a flush waits
 * for replies, and a local flush waits for operations that return data. Programs poll with flush,
 * unlock and sync, so these calls let the host make progress from time to time. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/put_get_fast.h"
#include "base/options.h"
#include "internode/origin/origin_sync.h"
#include "rma/deferred.h"
#include "sync/lock.h"
#include "window/handle.h"

static enum oriel_status check_rank(const struct oriel_window *window, int rank)
{
    if (oriel_likely((uint32_t)rank < (uint32_t)window->n))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_RANK, "rank %d, the window has ranks 0 to %d", rank, window->n - 1);
}

/* With several threads, another thread might have to wait for a lazy lock. */
static bool locks_are_eager(void)
{
    return oriel_host_has_threads() || oriel_options()->lock == ORIEL_LOCKS_EAGER;
}

static __attribute__((noinline)) int lock_general(int lock_type, int rank, int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL) && !oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window("MPI_Win_lock");
    if (oriel_unlikely(window == NULL)) {
        oriel_lazy_lock_await(); /* internode/origin/lazy_lock.c, K4 */
        return oriel_host()->Win_lock(lock_type, rank, assert, win);
    }
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_rank(window, rank);
    if (status == ORIEL_OK && lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
        status = oriel_fail(ORIEL_E_LOCKTYPE, "lock type %d", lock_type);
    if (status == ORIEL_OK)
        status = oriel_check_assert(assert, MPI_MODE_NOCHECK);
    if (status == ORIEL_OK)
        status = assert &MPI_MODE_NOCHECK ? oriel_lock_trusted(window, rank)
                                          : (locks_are_eager() ? oriel_lock : oriel_lock_lazy)(
                                                window, rank, lock_type == MPI_LOCK_EXCLUSIVE);
    return oriel_error_raise(window, "MPI_Win_lock", status);
}

/* An exclusive lock of the recent window that was not uncontended. */
static __attribute__((noinline)) int lock_finish(int rank, enum oriel_lock_step step,
                                                 uint64_t place)
{
    struct oriel_window *window = oriel_tls_cache.window;
    return oriel_error_raise(window, "MPI_Win_lock", oriel_lock_finish(window, rank, step, place));
}

int oriel_entry_Win_lock(int lock_type, int rank, int assert, MPI_Win win)
{
    uint64_t place;
    if (oriel_unlikely(!oriel_fast_window(win)) ||
        oriel_unlikely((uint32_t)rank >= oriel_tls_cache.ranks) ||
        oriel_unlikely(lock_type != MPI_LOCK_EXCLUSIVE) ||
        oriel_unlikely(((uint32_t)assert | oriel_lazy_lock_outstanding) != 0))
        return lock_general(lock_type, rank, assert, win);
    enum oriel_lock_step step = oriel_lock_begin(oriel_tls_cache.window, rank, &place);
    return oriel_likely(step == ORIEL_LOCK_TAKEN) ? MPI_SUCCESS : lock_finish(rank, step, place);
}

static __attribute__((noinline)) int unlock_general(int rank, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_unlock(rank, win)
                                              : oriel_error_not_a_window("MPI_Win_unlock");
    if (rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = check_rank(window, rank);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, "MPI_Win_unlock", status);
    const enum oriel_status done = oriel_deferred_complete(window, rank);
    status = oriel_unlock(window, rank);
    if (status == ORIEL_OK) {
        oriel_tls_cache_fenced();
        status = done;
    }
    return oriel_error_raise(window, "MPI_Win_unlock", status);
}

static __attribute__((noinline)) int unlock_wake(int rank)
{
    oriel_unlock_wake(oriel_tls_cache.window, rank);
    oriel_tls_cache_fenced();
    return MPI_SUCCESS;
}

int oriel_entry_Win_unlock(int rank, MPI_Win win)
{
    if (oriel_unlikely(!oriel_fast_window(win)) ||
        oriel_unlikely((uint32_t)rank >= oriel_tls_cache.ranks))
        return unlock_general(rank, win);
    enum oriel_lock_end end = oriel_unlock_exclusive(oriel_tls_cache.window, rank);
    if (oriel_unlikely(end == ORIEL_LOCK_NOT_EXCLUSIVE))
        return unlock_general(rank, win);
    if (oriel_unlikely(end == ORIEL_LOCK_LEFT_SLEEPERS))
        return unlock_wake(rank);
    oriel_tls_cache_fenced();
    return MPI_SUCCESS;
}

int oriel_entry_Win_lock_all(int assert, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL && !oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window("MPI_Win_lock_all");
    if (window == NULL) {
        oriel_lazy_lock_await(); /* internode/origin/lazy_lock.c, K4 */
        return oriel_host()->Win_lock_all(assert, win);
    }
    enum oriel_status status = oriel_check_assert(assert, MPI_MODE_NOCHECK);
    if (status == ORIEL_OK)
        status = (assert &MPI_MODE_NOCHECK ? oriel_lock_all_trusted : oriel_lock_all)(window);
    return oriel_error_raise(window, "MPI_Win_lock_all", status);
}

int oriel_entry_Win_unlock_all(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_unlock_all(win)
                                              : oriel_error_not_a_window("MPI_Win_unlock_all");
    return oriel_error_raise(window, "MPI_Win_unlock_all", oriel_unlock_all(window));
}

/* The same for a window that spans nodes; done: the status of this node's operations. */
static enum oriel_status flush_internode(struct oriel_window *window, int32_t target, bool remote,
                                         enum oriel_status done)
{
    oriel_tls_cache_flush();
    if (target >= 0 && !oriel_is_internode(window, target))
        return done;
    const enum oriel_status flushed = remote ? oriel_internode_flush(window, target)
                                             : oriel_internode_flush_local(window, target);
    return flushed == ORIEL_OK ? done : flushed;
}

/* Any of the four flushes; target is -1 for all. On one node local completion needs no step. */
static inline enum oriel_status flush_target(struct oriel_window *window, int32_t target,
                                             bool remote)
{
    if (oriel_unlikely(!oriel_passive_epoch(window, target)))
        return oriel_fail(ORIEL_E_SYNC, "no passive-target epoch is open");
    enum oriel_status done = ORIEL_OK;
    if (oriel_unlikely(window->deferred != NULL) && remote)
        done = oriel_deferred_complete_all(window, target);
    if (oriel_unlikely(window->internode != NULL))
        return flush_internode(window, target, remote, done);
    if (remote)
        oriel_tls_cache_flush();
    else
        oriel_tls_cache_count_turn();
    return done;
}

static inline enum oriel_status flush_rank(struct oriel_window *window, int rank, bool remote)
{
    if (oriel_unlikely(rank == MPI_PROC_NULL))
        return ORIEL_OK;
    enum oriel_status status = check_rank(window, rank);
    return oriel_likely(status == ORIEL_OK) ? flush_target(window, rank, remote) : status;
}

static __attribute__((noinline)) int flush_general(int rank, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush(rank, win)
                                              : oriel_error_not_a_window("MPI_Win_flush");
    return oriel_error_raise(window, "MPI_Win_flush", flush_rank(window, rank, true));
}

int oriel_entry_Win_flush(int rank, MPI_Win win)
{
    if (oriel_unlikely(!oriel_fast_window(win)) ||
        oriel_unlikely((uint32_t)rank >= oriel_tls_cache.ranks) ||
        oriel_unlikely(!oriel_passive_epoch_to(oriel_tls_cache.window, rank)))
        return flush_general(rank, win);
    oriel_tls_cache_flush();
    return MPI_SUCCESS;
}

int oriel_entry_Win_flush_local(int rank, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_local(rank, win)
                                              : oriel_error_not_a_window("MPI_Win_flush_local");
    return oriel_error_raise(window, "MPI_Win_flush_local", flush_rank(window, rank, false));
}

int oriel_entry_Win_flush_all(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_all(win)
                                              : oriel_error_not_a_window("MPI_Win_flush_all");
    return oriel_error_raise(window, "MPI_Win_flush_all", flush_target(window, -1, true));
}

int oriel_entry_Win_flush_local_all(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_flush_local_all(win)
                                              : oriel_error_not_a_window("MPI_Win_flush_local_all");
    return oriel_error_raise(window, "MPI_Win_flush_local_all", flush_target(window, -1, false));
}

/* Accepted outside of epochs, since programs do that. */
int oriel_entry_Win_sync(MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_sync(win)
                                              : oriel_error_not_a_window("MPI_Win_sync");
    oriel_fence_full();
    oriel_tls_cache_fenced();
    return MPI_SUCCESS;
}
