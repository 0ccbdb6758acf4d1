/* An uncontended exclusive lock from its first step to its last, inlined in the caller (lock.c has
 * the argument, lock_all_gate.c and ticket.c have those of their steps). A lock that meets
 * contention here is finished in lock.c. Thread-safe. */
#ifndef ORIEL_SYNC_LOCK_H
#define ORIEL_SYNC_LOCK_H

#include "sync/lock_all_gate.h"
#include "sync/sync.h"
#include "sync/ticket.h"

/* How far an exclusive lock has progressed. */
enum oriel_lock_step {
    ORIEL_LOCK_TAKEN,
    /* another epoch is open, the target is locked, or it is the window's first lock */
    ORIEL_LOCK_NOT_BEGUN,
    ORIEL_LOCK_BEGUN,  /* L1 */
    ORIEL_LOCK_PUSHED, /* and G3: readers are inside */
    ORIEL_LOCK_QUEUED, /* and G4, T1: it has a position in the queue */
};

static inline __attribute__((always_inline)) enum oriel_lock_step
oriel_lock_begin(struct oriel_window *window, int32_t target, uint64_t *place)
{
    uint8_t none = ORIEL_ACCESS_NONE;
    struct oriel_lock_all_gate *gate = &window->common->gate;
    struct oriel_ticket *lock = &oriel_window_control(window, target)->lock;
    _Atomic uint8_t *access = &oriel_window_access(window)[target];
    *place = 0;
    if (oriel_unlikely(oriel_load_relaxed(&window->epoch) != 0) ||
        oriel_unlikely(!atomic_compare_exchange_strong_explicit(access, &none, ORIEL_ACCESS_WAITING,
                                                                memory_order_seq_cst,
                                                                memory_order_relaxed))) /* L1 */
        return ORIEL_LOCK_NOT_BEGUN;
    oriel_delay();
    if (oriel_unlikely(oriel_gate_has_waiting_readers(gate)))
        return ORIEL_LOCK_BEGUN;
    if (oriel_unlikely(!oriel_gate_push_writer(gate)))
        return ORIEL_LOCK_PUSHED;
    oriel_delay();
    *place = oriel_ticket_draw(lock);
    if (oriel_unlikely(!oriel_ticket_is_first(lock, *place)))
        return ORIEL_LOCK_QUEUED;
    atomic_store_explicit(access, ORIEL_ACCESS_EXCLUSIVE, memory_order_release); /* L2 */
    return ORIEL_LOCK_TAKEN;
}

/* Continues from any step but the first. */
enum oriel_status oriel_lock_finish(struct oriel_window *window, int32_t target,
                                    enum oriel_lock_step step, uint64_t place)
    __attribute__((cold));

enum oriel_lock_end {
    ORIEL_LOCK_LEFT,
    ORIEL_LOCK_LEFT_SLEEPERS, /* oriel_unlock_wake must follow */
    ORIEL_LOCK_NOT_EXCLUSIVE, /* no effect */
};

static inline __attribute__((always_inline)) enum oriel_lock_end
oriel_unlock_exclusive(struct oriel_window *window, int32_t target)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    struct oriel_ticket *lock = &oriel_window_control(window, target)->lock;
    _Atomic uint8_t *access = &oriel_window_access(window)[target];
    if (oriel_unlikely(atomic_load_explicit(access, memory_order_relaxed) !=
                       ORIEL_ACCESS_EXCLUSIVE))
        return ORIEL_LOCK_NOT_EXCLUSIVE;
    oriel_ticket_leave(lock); /* X3 */
    oriel_delay();
    oriel_gate_pull_writer(gate);                                           /* G5 */
    atomic_store_explicit(access, ORIEL_ACCESS_NONE, memory_order_release); /* L3 */
    oriel_fence_after_locked();
    return oriel_unlikely(oriel_ticket_has_sleepers(lock) || oriel_gate_has_sleeping_readers(gate))
               ? ORIEL_LOCK_LEFT_SLEEPERS
               : ORIEL_LOCK_LEFT;
}

void oriel_unlock_wake(struct oriel_window *window, int32_t target) __attribute__((cold));

#endif
