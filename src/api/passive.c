/* Locks (MPI-4.1, 13.5.3). Programs poll with unlock, so it lets the host make progress from time
 * to time. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/put_get_fast.h"
#include "base/options.h"
#include "internode/origin/origin_sync.h"
#include "rma/deferred.h"
#include "sync/lock.h"
#include "sync/memory_wait.h"
#include "window/handle.h"

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
    enum oriel_status status = oriel_check_rank(window, rank);
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
    enum oriel_status status = oriel_check_rank(window, rank);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, "MPI_Win_unlock", status);
    const enum oriel_status done = oriel_deferred_complete(window, rank);
    status = oriel_unlock(window, rank);
    if (status == ORIEL_OK) {
        oriel_memory_changed(window);
        oriel_tls_cache_fenced();
        status = done;
    }
    return oriel_error_raise(window, "MPI_Win_unlock", status);
}

static __attribute__((noinline)) int unlock_wake(int rank)
{
    oriel_unlock_wake(oriel_tls_cache.window, rank);
    oriel_memory_changed(oriel_tls_cache.window);
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
    oriel_memory_changed(oriel_tls_cache.window);
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
    const enum oriel_status ended = oriel_deferred_copies_end(window);
    enum oriel_status status = oriel_unlock_all(window);
    oriel_memory_changed(window);
    return oriel_error_raise(window, "MPI_Win_unlock_all", status == ORIEL_OK ? ended : status);
}
