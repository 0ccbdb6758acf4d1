/* FIFO reader-writer lock: writers draw tickets; readers are counted between them.
 *
 *     queue: tickets drawn | readers arrived   serving: the current ticket   departed: readers left
 *
 *     writer   T1: (t, a) = queue, tickets++     X1: wait serving == t   X2: wait departed == a
 *              X3 (unlock): serving = t + 1
 *     reader   R1: (t, a) = queue, readers++     R2: wait serving >= t
 *              R3 (unlock): departed++           R4: if the arrival wraps, serving = t + 1
 *
 * Order. T1 and R1 change one word, so all arrivals have one order. A reader is after the tickets
 * before its t and before ticket t, a writer after the a readers that arrived before it. Readers
 * between the same two writers enter together. If there is no writer, a reader finds serving == t
 * and does not wait. No arrival overtakes another: neither kind can starve the other.
 *
 * Exclusion. Tickets are served one after the other (X1, X3). A reader that arrived after ticket t
 * enters only after X3 of t. Until then departed counts only the a readers before t, each once. So
 * departed == a means that all of them have left, and the others have not entered. A reader in turn
 * enters only after all tickets before it have left, and keeps those after it at X2. X3 is a store,
 * not a read-modify-write: from X1 to X3 no other thread changes serving.
 *
 * P1: X3 release -> X1, R2 acquire: the writer's stores are visible.
 * P2: R3 release -> X2 acquire: the accesses of all readers are over, since only read-modify-writes
 *     change departed.
 *
 * Wrap: all count modulo 2^32 and are compared for equality, serving in R2 as a difference. Tickets
 * are the upper half, so their overflow is lost. The reader whose arrival wraps the readers adds
 * one to the tickets. Ticket t is then its own, and it passes t on as soon as it enters (R4), by
 * X3. It need not wait at X2, since it excludes no reader. A reader before it that has not read
 * serving since finds it above its t.
 *
 * Death: see window/shared.h. The ticket of a dead writer is never passed on, and a dead reader
 * never departs. */
#include "sync/ticket.h"

/* serving is a plain store, which does not order earlier stores before the read of sleepers. */
static void ticket_pass_on(struct oriel_ticket *lock)
{
    oriel_ticket_leave(lock);
    oriel_fence_full();
    oriel_ticket_wake(lock);
}

enum oriel_status oriel_ticket_await(struct oriel_ticket *lock, uint64_t place,
                                     const struct oriel_watch *watch)
{
    uint32_t readers = oriel_ticket_readers(place);
    enum oriel_status status = oriel_wait(&lock->serving, &lock->serving_sleepers, ORIEL_WAIT_EQUAL,
                                          oriel_ticket_number(place), watch); /* X1, P1 */
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
    enum oriel_status status = oriel_wait(&lock->serving, &lock->serving_sleepers,
                                          ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */
    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))
        ticket_pass_on(lock); /* R4 */
    return status;
}

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive,
                                    const struct oriel_watch *watch)
{
    uint64_t place = exclusive ? oriel_ticket_draw(lock) : oriel_ticket_enter_reader(lock);
    oriel_delay();
    return exclusive ? oriel_ticket_await(lock, place, watch)
                     : oriel_ticket_await_writers(lock, place, watch);
}

void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive)
{
    if (exclusive)
        ticket_pass_on(lock);
    else
        oriel_ticket_depart(lock);
}
