/* Passive-target locks: MPI_Win_lock, unlock, lock_all, unlock_all.  A shared lock takes the target's ticket lock, an
 * exclusive one passes the window's gate first, lock_all the gate alone.  The own access word is set to WAITING before
 * the process can block anybody and cleared after it cannot any more, which is what sync/watch.c relies on.  api/ calls.
 *
 * MPI_MODE_NOCHECK may be ignored: the caller promises that nobody conflicts, so nothing here waits. */
#include "sync/gate.h"
#include "sync/epoch.h"
#include "sync/sync.h"
#include "sync/ticket.h"
#include "sync/watch.h"

static void set_access(struct oriel_window *window, int32_t target, enum oriel_access access)
{
    atomic_store_explicit(&window->access[target], (uint8_t)access, memory_order_release);
}

static enum oriel_status may_lock(struct oriel_window *window)
{
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if (epoch & ORIEL_EPOCH_LOCK_ALL)
        return oriel_fail(ORIEL_E_SYNC, "a lock inside lock_all");
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "a lock inside the access epoch of a start");
    return oriel_epoch_leave_fence(window);
}

static enum oriel_status acquire(struct oriel_window *window, int32_t target, bool exclusive)
{
    struct oriel_control *control = oriel_window_control(window, target);
    struct oriel_watched watched = {window, target};
    struct oriel_watch watch = {oriel_watch_lock, &watched};
    enum oriel_status status = ORIEL_OK;
    if (exclusive)
        status = oriel_gate_enter_writer(&window->common->gate, oriel_load_relaxed(&window->locks) > 0, &watch);
    if (status == ORIEL_OK) {
        status = oriel_ticket_lock(&control->lock, exclusive, &watch);
        if (status != ORIEL_OK && exclusive)
            oriel_gate_leave_writer(&window->common->gate);
    }
    return status;
}

enum oriel_status oriel_lock(struct oriel_window *window, int32_t target, bool exclusive)
{
    enum oriel_status status = may_lock(window);
    if (status != ORIEL_OK)
        return status;
    uint8_t none = ORIEL_ACCESS_NONE;
    if (!atomic_compare_exchange_strong_explicit(&window->access[target], &none, ORIEL_ACCESS_WAITING,
                                                 memory_order_seq_cst, memory_order_relaxed))
        return oriel_fail(ORIEL_E_SYNC, "rank %d is locked by this process already", (int)target);
    status = acquire(window, target, exclusive);
    if (status == ORIEL_OK)
        atomic_fetch_add_explicit(&window->locks, 1, memory_order_relaxed);
    set_access(window, target,
               status != ORIEL_OK ? ORIEL_ACCESS_NONE : exclusive ? ORIEL_ACCESS_EXCLUSIVE : ORIEL_ACCESS_SHARED);
    return status;
}

enum oriel_status oriel_unlock(struct oriel_window *window, int32_t target)
{
    uint8_t held = atomic_load_explicit(&window->access[target], memory_order_relaxed);
    if (held != ORIEL_ACCESS_SHARED && held != ORIEL_ACCESS_EXCLUSIVE)
        return oriel_fail(ORIEL_E_SYNC, "rank %d is not locked by this process", (int)target);
    bool exclusive = held == ORIEL_ACCESS_EXCLUSIVE;
    oriel_ticket_unlock(&oriel_window_control(window, target)->lock, exclusive);
    if (exclusive)
        oriel_gate_leave_writer(&window->common->gate);
    atomic_fetch_sub_explicit(&window->locks, 1, memory_order_relaxed);
    set_access(window, target, ORIEL_ACCESS_NONE);
    return ORIEL_OK;
}

enum oriel_status oriel_lock_all(struct oriel_window *window)
{
    enum oriel_status status = may_lock(window);
    if (status != ORIEL_OK)
        return status;
    if (oriel_load_relaxed(&window->locks) > 0)
        return oriel_fail(ORIEL_E_SYNC, "lock_all inside a lock");
    struct oriel_watched watched = {window, -1};
    struct oriel_watch watch = {oriel_watch_locks, &watched};
    oriel_store_release(&window->control->lock_all, 1);
    status = oriel_gate_enter_reader(&window->common->gate, &watch);
    if (status == ORIEL_OK)
        atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_LOCK_ALL, memory_order_relaxed);
    else
        oriel_store_release(&window->control->lock_all, 0);
    return status;
}

enum oriel_status oriel_unlock_all(struct oriel_window *window)
{
    uint32_t before = atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_LOCK_ALL, memory_order_relaxed);
    if (!(before & ORIEL_EPOCH_LOCK_ALL))
        return oriel_fail(ORIEL_E_SYNC, "unlock_all without lock_all");
    oriel_gate_leave_reader(&window->common->gate);
    oriel_store_release(&window->control->lock_all, 0);
    return ORIEL_OK;
}
