/* The FIFO reader-writer lock of one target (ticket.c has the argument).  What a writer does where nobody is in its way is here,
 * to be part of the caller's own code.  Thread-safe; lock.c calls, and api/ through lock.h. */
#ifndef ORIEL_SYNC_TICKET_H
#define ORIEL_SYNC_TICKET_H

#include "base/delay.h"
#include "window/shared.h"

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive, const struct oriel_watch *watch);
void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive);

/* A writer's place in the queue. */
static inline uint32_t oriel_ticket_take(struct oriel_ticket *lock)
{
    return atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed); /* T1 */
}

/* Whether it is the writer's turn: X1, P1. */
static inline bool oriel_ticket_is_first(struct oriel_ticket *lock, uint32_t ticket)
{
    return oriel_load_acquire(&lock->write) == ticket;
}

enum oriel_status oriel_ticket_await(struct oriel_ticket *lock, uint32_t ticket, const struct oriel_watch *watch);

/* A writer leaves; those who sleep are not woken yet: oriel_ticket_wake after a full fence. */
static inline void oriel_ticket_leave(struct oriel_ticket *lock)
{
    oriel_store_release(&lock->write, oriel_load_relaxed(&lock->write) + 1); /* X2, P1 */
    oriel_delay();
    atomic_fetch_add_explicit(&lock->read, 1, memory_order_seq_cst); /* X3, P1 */
}

static inline bool oriel_ticket_has_sleepers(struct oriel_ticket *lock)
{
    return atomic_load_explicit(&lock->write_sleepers, memory_order_seq_cst) != 0 ||
           atomic_load_explicit(&lock->read_sleepers, memory_order_seq_cst) != 0;
}

static inline void oriel_ticket_wake(struct oriel_ticket *lock)
{
    oriel_wake(&lock->write, &lock->write_sleepers);
    oriel_wake(&lock->read, &lock->read_sleepers);
}

#endif
