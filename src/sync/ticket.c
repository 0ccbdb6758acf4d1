/* FIFO reader-writer ticket lock.
 *
 *   ticket   T1: t = next++                          (any order: the words below publish)
 *   reader   R1: wait read == t    R2: read++        R3 (unlock): write++
 *   writer   X1: wait write == t   X2 (unlock): write = t + 1   X3: read++
 *
 * Exclusion.  Every ticket adds exactly one to write, when it is released, and exactly one to read: a reader as it enters,
 * a writer as it leaves.  A ticket y > x cannot enter before x has added to read (as a reader: entered; as a writer: left),
 * because y waits, itself or through the chain of those before it, for read or write to pass x.  So write == t means that
 * all tickets before t are released: a writer is alone.  read == t means that all tickets before t are readers that have
 * entered or writers that have left: a reader shares with readers only.
 * From X1 to X2 nobody else changes write: all before t are released, and nobody behind t has entered.  So X2 is a store, not a
 * read-modify-write; from it on write is the next writer's.  X3 is one since it comes after: a next writer that X2 let in may
 * leave before it, and the two additions commute; read then lacks the first for a moment, and nobody waits for the value in
 * between (it is the second writer's own ticket).
 * P1: X2, R3 release -> X1 acquire; X3 release -> R1 acquire: the holder before has published its stores.
 * Wrap: all words count modulo 2^32 and are compared for equality only.
 * Death: see window/shared.h; a dead ticket is never passed. */
#include "sync/ticket.h"

static void add_one(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
    oriel_wake(word, sleepers);
}

enum oriel_status oriel_ticket_await(struct oriel_ticket *lock, uint32_t ticket, const struct oriel_watch *watch)
{
    return oriel_wait(&lock->write, &lock->write_sleepers, ORIEL_WAIT_EQUAL, ticket, watch); /* X1, P1 */
}

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive, const struct oriel_watch *watch)
{
    uint32_t ticket = oriel_ticket_take(lock);
    oriel_delay();
    if (exclusive)
        return oriel_ticket_await(lock, ticket, watch);
    enum oriel_status status = oriel_wait(&lock->read, &lock->read_sleepers, ORIEL_WAIT_EQUAL, ticket, watch); /* R1, P1 */
    if (status == ORIEL_OK)
        add_one(&lock->read, &lock->read_sleepers); /* R2 */
    return status;
}

void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive)
{
    if (!exclusive) {
        add_one(&lock->write, &lock->write_sleepers); /* R3, P1 */
        return;
    }
    oriel_ticket_leave(lock);
    oriel_fence_after_locked(); /* X3 */
    oriel_ticket_wake(lock);
}
