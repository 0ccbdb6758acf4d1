/* How lock_all epochs acquire locks of internode targets: one after the other, in any order, each
 * by the first operation on its target. To a program lock_all is one lock, held from its beginning.
 * So such an operation must not wait for another epoch. If all epochs simply queued, two could
 * deadlock: E holds A's lock and wants B's, F holds B's and wants A's. At each target an exclusive
 * lock waits for the holder, and the other epoch waits after the exclusive lock.
 *
 * So epochs share positions in the target's queue (shares). A position is a reader's (R1,
 * ticket.c): the first epoch takes it, the last one to leave releases it.
 *
 *   J1: (target)  an operation's lock shares the first position, even if writers wait after that;
 *       if there is none, it takes one at the end of the queue.
 *   J2: the reply reports whether a writer waits after the position.
 *   J3: (origin)  for each target that reported a writer, the next lock_all acquires the lock
 *       before it returns, after the gate, one target after the other by rank.
 *   J4: (target)  a lock by lock_all itself shares the last position, if no writer waits after it;
 *       else it takes one at the end of the queue.
 *   J5: (target)  after a long wait such a lock shares the first position, if epochs hold the lock
 *       by it; it leaves its own position when that position's turn comes.
 *
 * No deadlock. An operation waits only for locks before the first position (J1). These are single
 * locks, which end on their own once it is their turn. Inside lock_all a rank also waits for the
 * epochs of all positions before its own (J4). Such an epoch either has returned from lock_all, and
 * then waits for single locks only. Or it has not, and then waits at a target of a higher rank
 * (J3), for epochs to which the same applies, up to the highest rank. So an epoch that has begun
 * waits for no other epoch, and one that begins waits for those that have begun, as on one node.
 * Other locks of the program, of other windows or threads, are not part of this argument. The gate
 * adds no wait: a writer in the queue has passed it, and a rank that waits at the gate, for
 * lock_all or an exclusive lock, holds none of the window's locks. An epoch that has begun may wait
 * for one that begins by other means: a message, or lock_all of another window. Then J5 ends that
 * wait, as G6 does at the gate (lock_all_gate.c).
 *
 * Fairness. One epoch of each origin overtakes a writer in the queue. Its origin learns of the
 * writer (J2: the writer still waits after the position that the epoch shares), and the origin's
 * next epoch queues after the writer (J3, J4). The exception is an epoch that has waited long (J5).
 * It waits 100 ms, and 100 ms more for each epoch that joined the first position by J5 before it
 * arrived. So the epochs of the first position end eventually.
 *
 * A program that acquires anything else inside a single lock may deadlock.
 *
 * Only the agent's thread has the positions. Ranks of its own node know only the queue, where a
 * position is a reader like any other. */
#include "internode/target/lock_all_queue.h"

#include "sync/ticket.h"

#include <stdlib.h>

struct oriel_internode_share {
    struct oriel_internode_share *next;
    uint64_t place;
    uint32_t members;
    uint32_t joins; /* members that joined by J5 */
    bool is_in;
};

bool oriel_internode_share_is_followed(const struct oriel_window *window,
                                       const struct oriel_internode_share *share)
{
    uint64_t queue = atomic_load_explicit(&window->control->lock.queue, memory_order_relaxed);
    return oriel_ticket_number(queue) != oriel_ticket_number(share->place);
}

struct oriel_internode_share *oriel_internode_share_join(struct oriel_window *window, bool in_turn)
{
    struct oriel_internode_share **link = &window->internode->shares;
    while (in_turn && *link != NULL &&
           oriel_internode_share_is_followed(window, *link)) /* J4, else J1 */
        link = &(*link)->next;
    struct oriel_internode_share *share = *link;
    if (share == NULL) {
        share = calloc(1, sizeof *share);
        if (share == NULL)
            return NULL;
        oriel_delay();
        share->place = oriel_ticket_enter_reader(&window->control->lock);
        *link = share;
    }
    share->members++;
    return share;
}

bool oriel_internode_share_is_in(struct oriel_window *window, struct oriel_internode_share *share)
{
    struct oriel_ticket *queue = &window->control->lock;
    if (!share->is_in && oriel_ticket_may_read(queue, share->place)) {
        (void)oriel_ticket_await_writers(queue, share->place, NULL); /* returns at once */
        share->is_in = true;
    }
    return share->is_in;
}

uint32_t oriel_internode_shares_joins(const struct oriel_internode *internode)
{
    return internode->shares == NULL ? 0 : internode->shares->joins;
}

struct oriel_internode_share *oriel_internode_share_join_first(struct oriel_window *window)
{
    struct oriel_internode_share *first = window->internode->shares;
    if (!oriel_internode_share_is_in(window, first))
        return NULL;
    first->members++;
    first->joins++;
    return first;
}

void oriel_internode_share_leave(struct oriel_window *window, struct oriel_internode_share *share)
{
    if (--share->members > 0)
        return;
    struct oriel_internode_share **link = &window->internode->shares;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    free(share);
    oriel_ticket_unlock(&window->control->lock, false);
}

void oriel_internode_shares_close(struct oriel_internode *internode)
{
    while (internode->shares != NULL) {
        struct oriel_internode_share *share = internode->shares;
        internode->shares = share->next;
        free(share);
    }
}
