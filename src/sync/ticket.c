/* FIFO reader-writer ticket lock.
 *
 *   ticket   T1: t = next++                          (any order: the words below publish)
 *   reader   R1: wait read == t    R2: read++        R3 (unlock): write++
 *   writer   X1: wait write == t   X2 (unlock): read++   X3: write++
 *
 * Exclusion.  Every ticket adds exactly one to write, when it is released, and exactly one to read: a reader as it enters,
 * a writer as it leaves.  A ticket y > x cannot enter before x has added to read (as a reader: entered; as a writer: left),
 * because y waits, itself or through the chain of those before it, for read or write to pass x.  So write == t means that
 * all tickets before t are released: a writer is alone.  read == t means that all tickets before t are readers that have
 * entered or writers that have left: a reader shares with readers only.
 * A writer's two additions commute with those of a reader that X2 lets in: the reader may enter, leave and add to write
 * between X2 and X3; write then lacks X3's addition for a moment, and nobody waits for the value in between (it is the
 * reader's own ticket).
 * P1: X3, R3 release -> X1 acquire; X2 release -> R1 acquire: the holder before has published its stores.
 * Wrap: all words count modulo 2^32 and are compared for equality only.
 * Death: see window/shared.h; a dead ticket is never passed. */
#include "sync/ticket.h"

#include "base/delay.h"

static void add_one(_Atomic uint32_t *word, _Atomic uint32_t *sleepers)
{
    atomic_fetch_add_explicit(word, 1, memory_order_seq_cst);
    oriel_wake(word, sleepers);
}

enum oriel_status oriel_ticket_lock(struct oriel_ticket *lock, bool exclusive, const struct oriel_watch *watch)
{
    uint32_t ticket = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed); /* T1 */
    oriel_delay();
    if (exclusive)
        return oriel_wait(&lock->write, &lock->write_sleepers, ORIEL_WAIT_EQUAL, ticket, watch); /* X1, P1 */
    enum oriel_status status = oriel_wait(&lock->read, &lock->read_sleepers, ORIEL_WAIT_EQUAL, ticket, watch); /* R1, P1 */
    if (status == ORIEL_OK)
        add_one(&lock->read, &lock->read_sleepers); /* R2 */
    return status;
}

void oriel_ticket_unlock(struct oriel_ticket *lock, bool exclusive)
{
    if (exclusive) {
        add_one(&lock->read, &lock->read_sleepers); /* X2, P1 */
        oriel_delay();
    }
    add_one(&lock->write, &lock->write_sleepers); /* X3 or R3, P1 */
}
