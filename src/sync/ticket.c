/* FIFO reader-writer lock: writers take tickets, readers are counted between them.
 *
 *   queue: tickets given | readers that came            serving: the ticket whose turn it is       departed: readers that left
 *
 *   writer   T1: (t, a) = queue, tickets++              X1: wait serving == t     X2: wait departed == a
 *            X3 (unlock): serving = t + 1
 *   reader   R1: (t, a) = queue, readers++              R2: wait serving >= t
 *            R3 (unlock): departed++
 *
 * Order.  T1 and R1 change one word, so all who come have one order: a reader stands behind the tickets before its t and before
 * ticket t, a writer behind the a readers that came before it.  Readers between the same two writers come in together, and
 * where no writer is, a reader finds serving == t and waits for nobody.  Nobody overtakes: neither kind can starve the other.
 * Exclusion.  Tickets are served one after the other (X1, X3).  A reader that came behind ticket t is in after X3 of t only, so
 * until then departed counts none but the a readers before t, each once: departed == a says that all of them have left, and
 * the others are not in.  A reader in turn is in only after all tickets before it have left, and keeps those behind it at X2.
 * X3 is a store, not a read-modify-write: from X1 to X3 nobody else changes serving.
 * P1: X3 release -> X1, R2 acquire: the writer's stores are seen.
 * P2: R3 release -> X2 acquire: the readers' accesses are over, all of them, since departed changes by read-modify-writes alone.
 * Wrap: all count modulo 2^32 and are compared for equality, serving in R2 as a difference.  Tickets are the upper half and
 * fall out at the top.  The reader that makes readers wrap adds one to the tickets: ticket t has become its own, and it passes
 * that on as soon as it is in (R4), with X3.  It need not wait at X2, for it excludes nobody; a reader before it that has not
 * looked since finds serving above its t.
 * Death: see window/shared.h; the ticket of the dead is never passed, and a dead reader never departs. */
#include "sync/ticket.h"

/* serving is a plain store, which orders nothing before the look for sleepers. */
static void pass_on(struct oriel_ticket *lock)
{
    oriel_ticket_leave(lock);
    oriel_fence_full();
    oriel_ticket_wake(lock);
}

enum oriel_status oriel_ticket_await(struct oriel_ticket *lock, uint64_t place,
                                     const struct oriel_watch *watch)
{
    uint32_t readers = oriel_ticket_readers(place);
    /* X1, P1 */
    enum oriel_status status = oriel_wait(&lock->serving, &lock->serving_sleepers, ORIEL_WAIT_EQUAL,
                                          oriel_ticket_number(place), watch);
    oriel_delay();
    if (status == ORIEL_OK)
        status = oriel_wait(&lock->departed, &lock->departed_sleepers, ORIEL_WAIT_EQUAL, readers,
                            watch); /* X2, P2 */
    return status;
}

enum oriel_status oriel_ticket_await_writers(struct oriel_ticket *lock, uint64_t place,
                                             const struct oriel_watch *watch)
{
    uint32_t ticket = oriel_ticket_number(place);
    /* R2, P1 */
    enum oriel_status status =
        oriel_wait(&lock->serving, &lock->serving_sleepers, ORIEL_WAIT_AT_LEAST, ticket, watch);
    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))
        pass_on(lock); /* R4 */
    return status;
}

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive,
                                    const struct oriel_watch *watch)
{
    uint64_t place = exclusive ? oriel_ticket_take(lock) : oriel_ticket_come(lock);
    oriel_delay();
    return exclusive ? oriel_ticket_await(lock, place, watch)
                     : oriel_ticket_await_writers(lock, place, watch);
}

void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive)
{
    if (exclusive)
        pass_on(lock);
    else
        oriel_ticket_depart(lock);
}
