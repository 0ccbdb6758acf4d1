/* The FIFO reader-writer lock of one target (ticket.c has the argument). The uncontended steps are
 * here, inlined in the caller. Thread-safe. */
#ifndef ORIEL_SYNC_TICKET_H
#define ORIEL_SYNC_TICKET_H

#include "base/delay.h"
#include "window/shared.h"

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive,
                                    const struct oriel_watch *watch);
void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive);

/* A position in the queue: the number of tickets, and of readers, before it. */
static inline uint32_t oriel_ticket_number(uint64_t place)
{
    return (uint32_t)(place >> 32);
}

static inline uint32_t oriel_ticket_readers(uint64_t place)
{
    return (uint32_t)place;
}

/* Draws a writer's ticket and returns its position. */
static inline uint64_t oriel_ticket_draw(struct oriel_ticket *lock)
{
    return atomic_fetch_add_explicit(&lock->queue, UINT64_C(1) << 32,
                                     memory_order_relaxed); /* T1 */
}

/* Adds a reader and returns its position. */
static inline uint64_t oriel_ticket_enter_reader(struct oriel_ticket *lock)
{
    return atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed); /* R1 */
}

/* Whether the writer enters without waiting: X1, P1 and X2, P2. */
static inline bool oriel_ticket_is_first(struct oriel_ticket *lock, uint64_t place)
{
    return oriel_likely(oriel_load_acquire(&lock->serving) == oriel_ticket_number(place)) &&
           oriel_load_acquire(&lock->departed) == oriel_ticket_readers(place);
}

/* Whether the reader would enter without waiting: R2. */
static inline bool oriel_ticket_may_read(struct oriel_ticket *lock, uint64_t place)
{
    return oriel_wait_reached(oriel_load_acquire(&lock->serving), ORIEL_WAIT_AT_LEAST,
                              oriel_ticket_number(place));
}

/* Wait for a writer's turn, and for a reader's. After an error the position stays in use. */
enum oriel_status oriel_ticket_await(struct oriel_ticket *lock, uint64_t place,
                                     const struct oriel_watch *watch);
enum oriel_status oriel_ticket_await_writers(struct oriel_ticket *lock, uint64_t place,
                                             const struct oriel_watch *watch);

/* A writer leaves without waking sleepers: oriel_ticket_wake must follow, after a full fence. */
static inline void oriel_ticket_leave(struct oriel_ticket *lock)
{
    oriel_store_release(&lock->serving, oriel_load_relaxed(&lock->serving) + 1); /* X3, P1 */
}

static inline bool oriel_ticket_has_sleepers(struct oriel_ticket *lock)
{
    return atomic_load_explicit(&lock->serving_sleepers, memory_order_seq_cst) != 0;
}

static inline void oriel_ticket_wake(struct oriel_ticket *lock)
{
    oriel_wake(&lock->serving, &lock->serving_sleepers);
}

/* A reader leaves. */
static inline void oriel_ticket_depart(struct oriel_ticket *lock)
{
    atomic_fetch_add_explicit(&lock->departed, 1, memory_order_seq_cst); /* R3, P2 */
    oriel_wake(&lock->departed, &lock->departed_sleepers);
}

#endif
