/* Locks, flushes and sync (MPI-4.1, 13.5.3, 13.5.4): their epochs, and the order that they make.
 *
 * Locks. A target has two entries: the clocks that exclusive holders gave at their unlock, and
 * those of shared holders. A shared lock takes the first entry, an exclusive one both.
 *
 * MPI_Win_lock_all is a shared lock of all targets. It has an entry of its own (target n), which
 * exclusive locks take too. Once MPI_Win_lock_all has been used, exclusive holders also give to a
 * second entry of target n, so that it need not take from every target. The first MPI_Win_lock_all
 * of a process still takes from every target. A rank that unlocks after that has seen the use; one
 * that did not see it had unlocked before. In a window over several nodes it counts as used from
 * the beginning.
 *
 * Where the first operation on a target may acquire its lock, the checker first makes an operation
 * of its own, so that the lock's order is known when the program's operation is compared. A lock
 * with MPI_MODE_NOCHECK orders nothing: the program does.
 *
 * A window that was opened from a memory handle has the lock of its owner's rank: the same entries
 * (checked_window.c). MPI_Win_lock_all counts as used in the owner's window, from before the handle
 * is passed on. Unlocks by an opened window, of locks of any kind, give to a third entry of the
 * target. The owner takes that after it has withdrawn a handle, which waits for all epochs. */
#include "check/intercept/pending_slot.h"

#include <string.h>

enum { EXCLUSIVE = 0, SHARED = 1, BY_HANDLE = 2 };

static void lock_entry_take(const struct oriel_checked *window, int32_t target, int which)
{
    struct oriel_key key =
        oriel_window_key(window, ORIEL_ORDER_LOCK, (uint64_t)target, (uint64_t)which);
    oriel_order_take(&key);
}

static void lock_entry_give(const struct oriel_checked *window, int32_t target, int which)
{
    struct oriel_key key =
        oriel_window_key(window, ORIEL_ORDER_LOCK, (uint64_t)target, (uint64_t)which);
    oriel_order_give(&key, 0);
}

static bool lock_all_was_used(const struct oriel_checked *window)
{
    return window->common == NULL ||
           atomic_load_explicit(&window->common->locked_all, memory_order_acquire) != 0;
}

static void target_lock_take(struct oriel_checked *window, int32_t target, bool exclusive)
{
    lock_entry_take(window, target, EXCLUSIVE);
    if (!exclusive)
        return;
    lock_entry_take(window, target, SHARED);
    if (lock_all_was_used(window))
        lock_entry_take(window, window->n, SHARED);
}

static void holder_give(const struct oriel_checked *window)
{
    if (window->opened.owner_id != 0)
        lock_entry_give(window, 0, BY_HANDLE);
}

void oriel_window_take_holders(const struct oriel_checked *window)
{
    lock_entry_take(window, window->rank, BY_HANDLE);
}

static void target_lock_give(struct oriel_checked *window, int32_t target, bool exclusive)
{
    lock_entry_give(window, target, exclusive ? EXCLUSIVE : SHARED);
    if (exclusive && lock_all_was_used(window))
        lock_entry_give(window, window->n, EXCLUSIVE);
}

static void lock_all_take(struct oriel_checked *window)
{
    if (window->common != NULL)
        atomic_store_explicit(&window->common->locked_all, 1, memory_order_seq_cst);
    for (int32_t i = 0; i < window->n && !window->known_all; i++)
        lock_entry_take(window, i, EXCLUSIVE);
    window->known_all = true;
    lock_entry_take(window, window->n, EXCLUSIVE);
    memset(window->lazy, !window->prompt, (size_t)(unsigned)window->n);
}

void oriel_window_take_lazy_lock(struct oriel_checked *window, int32_t target, MPI_Aint target_disp)
{
    char byte;
    if (oriel_host()->Get(&byte, 1, MPI_BYTE, target, target_disp, 1, MPI_BYTE, window->win) ==
        MPI_SUCCESS)
        oriel_host()->Win_flush(target, window->win);
    lock_entry_take(window, target, EXCLUSIVE);
    window->lazy[target] = 0;
}

/* --- lock and unlock --- */

/* Target -1: all. A lock with MPI_MODE_NOCHECK makes no rank wait. number: of the lock's call. */
static void lock_hold_record(const struct oriel_checked *window, int32_t target,
                             enum oriel_holding how, uint16_t number)
{
    if (window->progress == NULL)
        return;
    if (number != 0)
        oriel_collective_progress_lock_site(window->progress, window->rank, number);
    oriel_collective_progress_hold(window->progress, window->rank, target, how);
}

static bool wait_for_lock(const struct oriel_checked *window, int32_t target, bool exclusive,
                          const struct oriel_site *site)
{
    if (window->progress == NULL || !oriel_window_wait_open(window, site, ORIEL_WAIT_FOR_ALL))
        return false;
    oriel_wait_for_lock(window->progress, target, exclusive);
    oriel_wait_begin();
    return true;
}

/* A program that handles errors may try again, or go on without the lock. */
static void lock_take_back(struct oriel_checked *window, int32_t target, bool fenced)
{
    oriel_window_enter(window);
    oriel_epochs_lock_failed(&window->epochs, target, fenced);
    oriel_window_leave(window);
}

static int window_lock(struct oriel_checked *window, int lock_type, int rank, int assert,
                       const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    bool exclusive = lock_type == MPI_LOCK_EXCLUSIVE;
    bool valid = oriel_argument_rank(window, rank, site) &&
                 oriel_argument_assert(window, assert, MPI_MODE_NOCHECK, site) &&
                 oriel_argument_lock_type(window, lock_type, site);
    if (!valid) {
        oriel_quiet_begin(&quiet, window->win);
        return oriel_quiet_end(&quiet,
                               oriel_host()->Win_lock(lock_type, rank, assert, window->win));
    }
    oriel_promises_no_locks(window, rank, site);
    oriel_window_enter(window);
    bool fenced = window->epochs.fence.open;
    enum oriel_verdict verdict = oriel_epochs_lock(&window->epochs, rank, exclusive,
                                                   (assert &MPI_MODE_NOCHECK) != 0, site, &finding);
    oriel_window_leave(window);
    oriel_window_judge(window, verdict, &finding, site, &quiet);
    bool waits = verdict == ORIEL_VERDICT_RIGHT && wait_for_lock(window, rank, exclusive, site);
    int code = oriel_host()->Win_lock(lock_type, rank, assert, window->win);
    oriel_wait_done(waits);
    if (verdict == ORIEL_VERDICT_RIGHT && code != MPI_SUCCESS)
        lock_take_back(window, rank, fenced);
    if (verdict == ORIEL_VERDICT_RIGHT && code == MPI_SUCCESS && window->ordered) {
        if (!(assert &MPI_MODE_NOCHECK)) {
            lock_hold_record(window, rank, exclusive ? ORIEL_HOLDS_EXCLUSIVE : ORIEL_HOLDS_SHARED,
                             site->epoch);
            target_lock_take(window, rank, exclusive);
        }
        oriel_promises_lock_held(window, rank, exclusive, (assert &MPI_MODE_NOCHECK) != 0, site);
    }
    return oriel_quiet_end(&quiet, code);
}

static int window_unlock(struct oriel_checked *window, int rank, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    if (!oriel_argument_rank(window, rank, site)) {
        oriel_quiet_begin(&quiet, window->win);
        return oriel_quiet_end(&quiet, oriel_host()->Win_unlock(rank, window->win));
    }
    oriel_window_enter(window);
    uint8_t state = window->epochs.targets[rank];
    enum oriel_verdict verdict = oriel_epochs_unlock(&window->epochs, rank, &finding);
    oriel_window_leave(window);
    if (!oriel_window_judge(window, verdict, &finding, site, &quiet))
        return oriel_quiet_end(&quiet, MPI_SUCCESS);
    bool ordered = verdict == ORIEL_VERDICT_RIGHT && window->ordered;
    if (ordered) {
        oriel_window_complete(window, rank);
        oriel_promises_lock_released(window, rank);
        lock_hold_record(window, rank, ORIEL_HOLDS_NOTHING, 0);
        if (!(state & ORIEL_TARGET_NOCHECK))
            target_lock_give(window, rank, (state & ORIEL_TARGET_EXCLUSIVE) != 0);
        holder_give(window);
    }
    int code = oriel_host()->Win_unlock(rank, window->win);
    if (ordered)
        oriel_window_completed(window, rank);
    return oriel_quiet_end(&quiet, code);
}

static int window_lock_all(struct oriel_checked *window, int assert, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    if (!oriel_argument_assert(window, assert, MPI_MODE_NOCHECK, site)) {
        oriel_quiet_begin(&quiet, window->win);
        return oriel_quiet_end(&quiet, oriel_host()->Win_lock_all(assert, window->win));
    }
    oriel_promises_no_locks(window, -1, site);
    oriel_window_enter(window);
    bool fenced = window->epochs.fence.open;
    enum oriel_verdict verdict = oriel_epochs_lock_all(&window->epochs, site, &finding);
    window->all_unchecked = (assert &MPI_MODE_NOCHECK) != 0;
    oriel_window_leave(window);
    oriel_window_judge(window, verdict, &finding, site, &quiet);
    bool waits = verdict == ORIEL_VERDICT_RIGHT && wait_for_lock(window, -1, false, site);
    int code = oriel_host()->Win_lock_all(assert, window->win);
    oriel_wait_done(waits);
    if (verdict == ORIEL_VERDICT_RIGHT && code != MPI_SUCCESS)
        lock_take_back(window, -1, fenced);
    if (verdict == ORIEL_VERDICT_RIGHT && code == MPI_SUCCESS && window->ordered) {
        if (!window->all_unchecked) {
            lock_hold_record(window, -1, ORIEL_HOLDS_SHARED, site->epoch);
            lock_all_take(window);
        }
        oriel_promises_lock_held(window, -1, false, window->all_unchecked, site);
    }
    return oriel_quiet_end(&quiet, code);
}

static int window_unlock_all(struct oriel_checked *window, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    struct oriel_quiet quiet = {.quiet = false};
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_unlock_all(&window->epochs, &finding);
    oriel_window_leave(window);
    if (!oriel_window_judge(window, verdict, &finding, site, &quiet))
        return oriel_quiet_end(&quiet, MPI_SUCCESS);
    bool ordered = verdict == ORIEL_VERDICT_RIGHT && window->ordered;
    if (ordered) {
        oriel_window_complete(window, -1);
        oriel_promises_lock_released(window, -1);
        lock_hold_record(window, -1, ORIEL_HOLDS_NOTHING, 0);
        if (!window->all_unchecked)
            lock_entry_give(window, window->n, SHARED);
        holder_give(window);
        memset(window->lazy, 0, (size_t)(unsigned)window->n);
    }
    int code = oriel_host()->Win_unlock_all(window->win);
    if (ordered)
        oriel_window_completed(window, -1);
    return oriel_quiet_end(&quiet, code);
}

/* --- flush and sync --- */

/* This flush does not complete pending operations on other targets. */
static void other_targets_flag(struct oriel_checked *window, int32_t target)
{
    for (int32_t i = 0; i < window->n; i++)
        if (i != target && (window->touched[i] & (ORIEL_TOUCHED_HISTORY | ORIEL_TOUCHED_FLAGGED)) ==
                               ORIEL_TOUCHED_HISTORY) {
            oriel_window_flag(window, i, ORIEL_ACCESS_FLUSHED_OTHER);
            window->touched[i] |= ORIEL_TOUCHED_FLAGGED;
        }
}

static void flush_local_mark(struct oriel_checked *window, int32_t target)
{
    oriel_window_complete_gets(window, target);
    oriel_window_flag(window, target, ORIEL_ACCESS_FLUSHED_LOCAL);
}

static void before_flush(struct oriel_checked *window, int32_t target, bool remote)
{
    if (remote) {
        oriel_window_complete(window, target);
        if (target >= 0 && window->touched_histories > 0)
            other_targets_flag(window, target);
    } else if (target >= 0) {
        flush_local_mark(window, target);
    } else {
        for (int32_t i = 0; i < window->n && window->touched_any; i++)
            flush_local_mark(window, i);
    }
}

typedef int flush_rank_fn(int rank, MPI_Win win);
typedef int flush_all_fn(MPI_Win win);

__attribute__((noinline)) bool oriel_window_flush_allowed(struct oriel_checked *window, int target,
                                                          const struct oriel_site *site,
                                                          struct oriel_quiet *quiet)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    oriel_window_enter(window);
    enum oriel_verdict verdict = oriel_epochs_flush(&window->epochs, target, &finding);
    oriel_window_leave(window);
    oriel_window_judge(window, verdict, &finding, site, quiet);
    return verdict == ORIEL_VERDICT_RIGHT;
}

/* The parts of a site. A full site takes longer, and most flushes do not need one. */
static struct oriel_site site_parts(const void *address, enum oriel_call call)
{
    return (struct oriel_site){.address = (uint64_t)(uintptr_t)address, .call = (uint16_t)call};
}

/* A flush that may be wrong. */
static __attribute__((noinline)) int flush_checked(struct oriel_checked *window, int target,
                                                   bool remote, flush_rank_fn *next,
                                                   flush_all_fn *next_all,
                                                   const struct oriel_site *unmade)
{
    struct oriel_quiet quiet = {.quiet = false};
    struct oriel_site site =
        oriel_site_make((const void *)(uintptr_t)unmade->address, unmade->call);
    if (next_all == NULL && !oriel_argument_rank(window, target, &site)) {
        oriel_quiet_begin(&quiet, window->win);
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one of the two calls is there */
        return oriel_quiet_end(&quiet, next(target, window->win));
    }
    bool ordered = oriel_window_flush_allowed(window, target, &site, &quiet) && window->ordered;
    if (ordered)
        before_flush(window, target, remote);
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): as above */
    int code = next_all != NULL ? next_all(window->win) : next(target, window->win);
    if (ordered)
        oriel_window_completed(window, target);
    return oriel_quiet_end(&quiet, code);
}

/* Any of the four flushes; target -1: all, by flush_all. Under a lock every flush is right. */
static inline int window_flush(struct oriel_checked *window, int target, bool remote,
                               flush_rank_fn *next, flush_all_fn *next_all,
                               const struct oriel_site *unmade)
{
    bool right = (uint32_t)target < (uint32_t)window->n && !window->threaded &&
                 oriel_epochs_passive(&window->epochs, target);
    if (oriel_unlikely(!right))
        return flush_checked(window, target, remote, next, next_all, unmade);
    if (oriel_unlikely(!window->ordered))
        return next(target, window->win);
    if (remote) {
        oriel_window_complete_target(window, target);
        if (oriel_unlikely(window->touched_histories > 0))
            other_targets_flag(window, target);
    } else {
        flush_local_mark(window, target);
    }
    int code = next(target, window->win);
    oriel_window_completed_target(window, target);
    return code;
}

void oriel_window_take_ranks(const struct oriel_checked *window)
{
    const bool is_lent =
        window->opened.owner_id != 0 || oriel_window_count(window, ORIEL_ENDING_LENT, 0) > 0;
    const int32_t n = is_lent ? oriel_shm_world_size() : window->n;
    for (int32_t i = 0; i < n; i++)
        oriel_order_take_rank(is_lent ? i : (int)window->members[i].world_rank);
}

void oriel_window_take_all(struct oriel_checked *window)
{
    struct oriel_key key = oriel_window_key(window, ORIEL_ORDER_SYNC, 0, 0);
    oriel_order_give(&key, 0); /* what follows has another number than what came before */
    oriel_window_take_ranks(window);
}

/* A process that polls memory with MPI_Win_sync may go on with what it finds: all that the others
 * have completed so far. */
static int window_sync(struct oriel_checked *window)
{
    int code = oriel_host()->Win_sync(window->win);
    if (window->ordered && code == MPI_SUCCESS)
        oriel_window_take_all(window);
    return code;
}

/* --- exported --- */

static struct oriel_site shared_lock_site(const void *address, enum oriel_call call)
{
    (void)call;
    return oriel_site_opening(address, ORIEL_CALL_lock_shared);
}

static struct oriel_site exclusive_lock_site(const void *address, enum oriel_call call)
{
    (void)call;
    return oriel_site_opening(address, ORIEL_CALL_lock_exclusive);
}

SYNCHRONISE(Win_lock, (int lock_type, int rank, int assert, MPI_Win win),
            (lock_type, rank, assert, win), rank == MPI_PROC_NULL,
            window_lock(window, lock_type, rank, assert, &site),
            (lock_type == MPI_LOCK_EXCLUSIVE ? exclusive_lock_site : shared_lock_site))
SYNCHRONISE(Win_unlock, (int rank, MPI_Win win), (rank, win), rank == MPI_PROC_NULL,
            window_unlock(window, rank, &site), oriel_site_make)
SYNCHRONISE(Win_lock_all, (int assert, MPI_Win win), (assert, win), false,
            window_lock_all(window, assert, &site), oriel_site_opening)
SYNCHRONISE(Win_unlock_all, (MPI_Win win), (win), false, window_unlock_all(window, &site),
            oriel_site_make)
SYNCHRONISE(Win_flush_all, (MPI_Win win), (win), false,
            window_flush(window, -1, true, NULL, oriel_host()->Win_flush_all, &site), site_parts)
SYNCHRONISE(Win_flush_local, (int rank, MPI_Win win), (rank, win), rank == MPI_PROC_NULL,
            window_flush(window, rank, false, oriel_host()->Win_flush_local, NULL, &site),
            site_parts)
SYNCHRONISE(Win_flush_local_all, (MPI_Win win), (win), false,
            window_flush(window, -1, false, NULL, oriel_host()->Win_flush_local_all, &site),
            site_parts)

static __attribute__((noinline)) int flush_slow(int rank, MPI_Win win, const void *address,
                                                uintptr_t frame)
{
    if (!oriel_window_look_from("PMPI_Win_flush", address, frame))
        return oriel_host()->Win_flush(rank, win);
    struct oriel_checked *window = rank == MPI_PROC_NULL ? NULL : oriel_checked_find(win);
    struct oriel_site site = site_parts(address, ORIEL_CALL_Win_flush);
    int code = window == NULL
                   ? oriel_host()->Win_flush(rank, win)
                   : window_flush(window, rank, true, oriel_host()->Win_flush, NULL, &site);
    oriel_check_leave();
    return code;
}

ORIEL_EXPORT int PMPI_Win_flush(int rank, MPI_Win win)
{
    if (oriel_unlikely(!oriel_check_is_programs(ORIEL_CALLER) ||
                       !oriel_pending_slot_flush(win, rank)))
        return flush_slow(rank, win, ORIEL_CALLER, (uintptr_t)__builtin_dwarf_cfa());
    oriel_check_enter();
    int code = oriel_host_calls.Win_flush(rank, win);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_flush(int rank, MPI_Win win)
    __attribute__((weak, alias("PMPI_Win_flush")));

ORIEL_EXPORT int PMPI_Win_sync(MPI_Win win)
{
    if (!oriel_window_look())
        return oriel_host()->Win_sync(win);
    struct oriel_checked *window = oriel_checked_find(win);
    int code = window == NULL ? oriel_host()->Win_sync(win) : window_sync(window);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Win_sync(MPI_Win win) __attribute__((weak, alias("PMPI_Win_sync")));
