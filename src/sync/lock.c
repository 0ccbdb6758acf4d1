/* Passive-target locks: MPI_Win_lock, unlock, lock_all, unlock_all. A shared lock acquires the
 * target's ticket lock. An exclusive lock passes the window's gate first. lock_all passes only the
 * gate. The process sets its access word to WAITING (L1) before it can block any rank. The word is
 * SHARED or EXCLUSIVE (L2) while it holds the lock. It is cleared (L3) after the process can no
 * longer block any rank. internode/origin/liveness.c relies on this: a rank that has seen G3, T1 or
 * R1 sees L1, which precedes them all. G3 is a release, and a waiter in the queue reads again every
 * 100 ms. The words themselves are created and published before the first L1 (access_words.c): a
 * rank that finds no words sees no L1.
 *
 * The lock's own steps publish stores. At the end of an exclusive lock L3 precedes the wakes; they
 * are late at worst if their process dies. Shared locks and lock_all end with departure and wakes
 * in one step, and L3 follows. A process that dies in between is reported to waiters, though it no
 * longer blocks them. L1 is a read-modify-write because several threads may lock one target at the
 * same time: the second one fails.
 *
 * The process of an internode target locks it for this process (origin_sync.c, target_sync.c); on
 * this node only the access word shows that. lock_all covers this node's targets, and the internode
 * targets that lock_all_queue.c reports (J3).
 *
 * With MPI_MODE_NOCHECK no lock is acquired (trusted): the caller promises that no rank has, or
 * wants, a conflicting lock. If a rank requests one nevertheless, the epoch does not block it. Some
 * programs keep such a lock_all for the lifetime of the window, and acquire exclusive locks
 * (docs/design/adr/053-nocheck-takes-no-lock.md). */
#include "sync/lock.h"

#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/access_words.h"
#include "sync/epoch.h"
#include "sync/holder_epochs.h"

static void set_access(struct oriel_window *window, int32_t target, enum oriel_access_state access)
{
    atomic_store_explicit(&oriel_window_access(window)[target], (uint8_t)access,
                          memory_order_release);
}

static enum oriel_status check_lock_allowed(const struct oriel_window *window)
{
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if (epoch & ORIEL_EPOCH_LOCK_ALL)
        return oriel_fail(ORIEL_E_SYNC, "a lock inside lock_all");
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "a lock inside the access epoch of a start");
    return ORIEL_OK;
}

/* L1, if no other epoch is open or the fence's can be closed. */
static enum oriel_status lock_begin(struct oriel_window *window, int32_t target)
{
    uint8_t none = ORIEL_ACCESS_STATE_NONE;
    enum oriel_status status = check_lock_allowed(window);
    if (status == ORIEL_OK)
        status = oriel_access_words_require(window);
    if (status == ORIEL_OK)
        status = oriel_epoch_leave_fence(window);
    if (status == ORIEL_OK &&
        !atomic_compare_exchange_strong_explicit(&oriel_window_access(window)[target], &none,
                                                 ORIEL_ACCESS_STATE_WAITING, memory_order_seq_cst,
                                                 memory_order_relaxed))
        status = oriel_fail(ORIEL_E_SYNC, "rank %d is already locked by this process", (int)target);
    return status;
}

/* L2, or L3 after an error. */
static enum oriel_status lock_set_access(struct oriel_window *window, int32_t target,
                                         enum oriel_access_state wanted, enum oriel_status status)
{
    set_access(window, target, status == ORIEL_OK ? wanted : ORIEL_ACCESS_STATE_NONE);
    return status;
}

enum oriel_status oriel_lock_finish(struct oriel_window *window, int32_t target,
                                    enum oriel_lock_step step, uint64_t place)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    struct oriel_ticket *lock = &oriel_window_control(window, target)->lock;
    struct oriel_watched watched = {.window = window, .win_rank = target};
    struct oriel_watch at_gate = {oriel_liveness_lock_all_holders, &watched, ORIEL_WAITING_LOCK};
    struct oriel_watch in_queue = {oriel_liveness_lock, &watched, ORIEL_WAITING_LOCK};
    if (oriel_unlikely(oriel_window_is_opened(window)))
        return oriel_holder_lock(window, ORIEL_ACCESS_STATE_EXCLUSIVE);
    enum oriel_status status = step == ORIEL_LOCK_NOT_BEGUN ? lock_begin(window, target) : ORIEL_OK;
    if (status != ORIEL_OK)
        return status;
    if (step == ORIEL_LOCK_PUSHED)
        status = oriel_gate_await_readers(gate, &at_gate);
    else if (step != ORIEL_LOCK_QUEUED)
        status = oriel_gate_enter_writer(gate, oriel_locks_held(window), &at_gate);
    if (status == ORIEL_OK) {
        status = step == ORIEL_LOCK_QUEUED ? oriel_ticket_await(lock, place, &in_queue)
                                           : oriel_ticket_lock(lock, true, &in_queue);
        if (status != ORIEL_OK)
            oriel_gate_leave_writer(gate);
    }
    return lock_set_access(window, target, ORIEL_ACCESS_STATE_EXCLUSIVE, status);
}

static enum oriel_status lock_target_shared(struct oriel_window *window, int32_t target)
{
    struct oriel_watched watched = {.window = window, .win_rank = target};
    struct oriel_watch watch = {oriel_liveness_lock, &watched, ORIEL_WAITING_LOCK};
    enum oriel_status status = lock_begin(window, target);
    if (status != ORIEL_OK)
        return status;
    status = oriel_ticket_lock(&oriel_window_control(window, target)->lock, false, &watch);
    return lock_set_access(window, target, ORIEL_ACCESS_STATE_SHARED, status);
}

typedef enum oriel_status lock_fn(struct oriel_window *window, int32_t target, bool exclusive);

static enum oriel_status lock_internode(struct oriel_window *window, int32_t target, bool exclusive,
                                        lock_fn *lock)
{
    enum oriel_status status = lock_begin(window, target);
    if (status != ORIEL_OK)
        return status;
    status = lock(window, target, exclusive);
    return lock_set_access(window, target,
                           exclusive ? ORIEL_ACCESS_STATE_EXCLUSIVE : ORIEL_ACCESS_STATE_SHARED,
                           status);
}

static enum oriel_status unlock_internode(struct oriel_window *window, int32_t target)
{
    uint8_t access = oriel_window_access_to(window, target);
    if (!oriel_access_is_lock(access))
        return oriel_fail(ORIEL_E_SYNC, "rank %d is not locked by this process", (int)target);
    bool is_given_back;
    enum oriel_status status = oriel_internode_unlock(
        window, target, access == ORIEL_ACCESS_STATE_NOCHECK, &is_given_back);
    if (is_given_back)
        set_access(window, target, ORIEL_ACCESS_STATE_NONE);
    return status;
}

enum oriel_status oriel_lock(struct oriel_window *window, int32_t target, bool exclusive)
{
    uint64_t place;
    if (oriel_window_is_opened(window))
        return oriel_holder_lock(window, exclusive ? ORIEL_ACCESS_STATE_EXCLUSIVE
                                                   : ORIEL_ACCESS_STATE_SHARED);
    if (window->internode != NULL && oriel_is_internode(window, target))
        return lock_internode(window, target, exclusive, oriel_internode_lock);
    if (!exclusive)
        return lock_target_shared(window, target);
    enum oriel_lock_step step = oriel_lock_begin(window, target, &place);
    return step == ORIEL_LOCK_TAKEN ? ORIEL_OK : oriel_lock_finish(window, target, step, place);
}

enum oriel_status oriel_lock_lazy(struct oriel_window *window, int32_t target, bool exclusive)
{
    oriel_lazy_lock_await(); /* lazy_lock.c, K4 */
    return window->internode != NULL && oriel_is_internode(window, target) &&
                   !oriel_window_is_opened(window)
               ? lock_internode(window, target, exclusive, oriel_internode_lock_lazy)
               : oriel_lock(window, target, exclusive);
}

enum oriel_status oriel_lock_trusted(struct oriel_window *window, int32_t target)
{
    if (oriel_window_is_opened(window))
        return oriel_holder_lock(window, ORIEL_ACCESS_STATE_NOCHECK);
    enum oriel_status status = lock_begin(window, target);
    if (status != ORIEL_OK)
        return status;
    return lock_set_access(window, target, ORIEL_ACCESS_STATE_NOCHECK, ORIEL_OK);
}

void oriel_unlock_wake(struct oriel_window *window, int32_t target)
{
    oriel_ticket_wake(&oriel_window_control(window, target)->lock);
    oriel_gate_wake_readers(&window->common->gate);
}

enum oriel_status oriel_unlock(struct oriel_window *window, int32_t target)
{
    if (oriel_unlikely(oriel_window_is_opened(window)))
        return oriel_holder_unlock(window);
    if (window->internode != NULL && oriel_is_internode(window, target))
        return unlock_internode(window, target);
    enum oriel_lock_end end = oriel_unlock_exclusive(window, target);
    if (end == ORIEL_LOCK_LEFT_SLEEPERS)
        oriel_unlock_wake(window, target);
    if (end != ORIEL_LOCK_NOT_EXCLUSIVE)
        return ORIEL_OK;
    uint8_t access = oriel_window_access_to(window, target);
    if (!oriel_access_is_lock(access))
        return oriel_fail(ORIEL_E_SYNC, "rank %d is not locked by this process", (int)target);
    if (access == ORIEL_ACCESS_STATE_NOCHECK)
        oriel_fence_full();
    else
        oriel_ticket_unlock(&oriel_window_control(window, target)->lock, false);
    set_access(window, target, ORIEL_ACCESS_STATE_NONE);
    return ORIEL_OK;
}

static enum oriel_status check_lock_all_allowed(struct oriel_window *window)
{
    enum oriel_status status = check_lock_allowed(window);
    if (status != ORIEL_OK)
        return status;
    if (oriel_locks_held(window))
        return oriel_fail(ORIEL_E_SYNC, "lock_all inside a lock");
    return oriel_epoch_leave_fence(window);
}

enum oriel_status oriel_lock_all(struct oriel_window *window)
{
    if (oriel_unlikely(oriel_window_is_opened(window)))
        return oriel_holder_lock_all(window, false);
    enum oriel_status status = check_lock_all_allowed(window);
    if (status != ORIEL_OK)
        return status;
    oriel_lazy_lock_await(); /* lazy_lock.c, K4 */
    struct oriel_lock_all_gate *gate = &window->common->gate;
    struct oriel_watched watched = {
        .window = window, .win_rank = -1, .patience = oriel_load_relaxed(&gate->joins)};
    struct oriel_watch watch = {oriel_liveness_lock_holders, &watched, ORIEL_WAITING_LOCK_ALL};
    oriel_store_release(&window->control->lock_all, 1);
    status = oriel_gate_enter_reader(gate, &watch);
    if (status != ORIEL_OK) {
        oriel_store_release(&window->control->lock_all, 0);
        return status;
    }
    atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_LOCK_ALL, memory_order_relaxed);
    if (window->internode != NULL)
        oriel_internode_lock_followed(window);
    return ORIEL_OK;
}

enum oriel_status oriel_lock_all_trusted(struct oriel_window *window)
{
    if (oriel_window_is_opened(window))
        return oriel_holder_lock_all(window, true);
    enum oriel_status status = check_lock_all_allowed(window);
    if (status != ORIEL_OK)
        return status;
    atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_NOCHECK,
                             memory_order_relaxed);
    oriel_fence_after_locked();
    return ORIEL_OK;
}

enum oriel_status oriel_unlock_all(struct oriel_window *window)
{
    if (oriel_unlikely(oriel_window_is_opened(window)))
        return oriel_holder_unlock_all(window);
    const uint32_t both = ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_NOCHECK;
    uint32_t before = atomic_fetch_and_explicit(&window->epoch, ~both, memory_order_relaxed);
    oriel_fence_after_locked();
    if (!(before & ORIEL_EPOCH_LOCK_ALL))
        return oriel_fail(ORIEL_E_SYNC, "unlock_all without lock_all");
    bool is_given_back = true;
    const bool trusted = (before & ORIEL_EPOCH_NOCHECK) != 0;
    enum oriel_status status = window->internode != NULL
                                   ? oriel_internode_unlock_all(window, trusted, &is_given_back)
                                   : ORIEL_OK;
    if (!is_given_back) { /* the epoch continues */
        atomic_fetch_or_explicit(&window->epoch, before & both, memory_order_relaxed);
        return status;
    }
    if (trusted)
        return status;
    oriel_gate_leave_reader(&window->common->gate);
    oriel_store_release(&window->control->lock_all, 0);
    return status;
}
