/* How epochs of lock_all take locks of targets on other machines: one after the other, in any order, each by the first operation
 * on its target.  A program sees lock_all as one lock that is held from its beginning, so that such an operation must not wait
 * for another epoch: E holds A's lock and wants B's, F holds B's and wants A's, and behind each stands an exclusive lock that
 * waits for it and that the other stood behind, if all kept to the queue.
 *
 * So epochs share places in a queue (shares).  A place is a reader's (R1, ticket.c): of the first to come, left by the last.
 *
 *   J1 (target)  what an operation wants shares the first place, also where writers stand behind that; where there is none, it
 *                takes one, behind all
 *   J2           the answer tells whether a writer stands behind the place
 *   J3 (origin)  of whom that was told, the next epoch takes the lock before lock_all returns, behind the gate, one after the
 *                other by rank
 *   J4 (target)  what lock_all wants shares the last place, if no writer stands behind that; else it takes one, behind all
 *   J5 (target)  when it has waited long there it shares the first place, if epochs are in that; its own is left when its turn
 *                comes
 *
 * No circle.  An operation waits for what stands before the first place (J1): single locks, which end by themselves when their
 * turn has come.  Within lock_all a rank waits for epochs, too, of all places before (J4).  Of these, who has come back
 * from lock_all waits for single locks alone, and who has not waits at a target of a higher rank (J3), for epochs of which the
 * same is true, up to the highest.  So an epoch that has begun waits for no other, and one that begins for those that have begun,
 * as on one machine; whatever else the program holds meanwhile, locks of other windows or other threads, remains out of it.
 * The gate adds nothing: a writer in the queue has passed it, and who waits there, for lock_all or an exclusive lock, holds none
 * of the window's locks.  And should one that has begun wait for one that begins by other means, by a message, or by lock_all of
 * another window, it waits for J5, as at the gate (lock_all_gate.c, G6).
 * Turns.  A writer in the queue is overtaken by one epoch of each origin: that one is told (J2; the writer still stands
 * behind the place that the epoch is in), and the next goes behind (J3, J4); or else it has waited long, 100 ms and as much again
 * for each that has come to the first place by J5 before it came, so that the epochs there end at last.
 * Who takes anything else inside of a single lock may close a circle.
 *
 * The agent's thread alone has the places; ranks of its own machine know the queue, where a place is a reader like any other. */
#include "internode/target/lock_all_queue.h"

#include "sync/ticket.h"

#include <stdlib.h>

struct oriel_internode_share {
    struct oriel_internode_share *next;
    uint64_t place;
    uint32_t members;
    uint32_t joins; /* members that have come by J5 */
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
    struct oriel_internode_share **link = &window->far->shares;
    while (in_turn && *link != NULL &&
           oriel_internode_share_is_followed(window, *link)) /* J4, else J1 */
        link = &(*link)->next;
    struct oriel_internode_share *share = *link;
    if (share == NULL) {
        share = calloc(1, sizeof *share);
        if (share == NULL)
            return NULL;
        oriel_delay();
        share->place = oriel_ticket_come(&window->control->lock);
        *link = share;
    }
    share->members++;
    return share;
}

bool oriel_internode_share_is_in(struct oriel_window *window, struct oriel_internode_share *share)
{
    struct oriel_ticket *queue = &window->control->lock;
    if (!share->is_in && oriel_ticket_may_read(queue, share->place)) {
        (void)oriel_ticket_await_writers(queue, share->place, NULL); /* it does not wait any more */
        share->is_in = true;
    }
    return share->is_in;
}

uint32_t oriel_internode_shares_joins(const struct oriel_internode *far)
{
    return far->shares == NULL ? 0 : far->shares->joins;
}

struct oriel_internode_share *oriel_internode_share_join_inside(struct oriel_window *window)
{
    struct oriel_internode_share *first = window->far->shares;
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
    struct oriel_internode_share **link = &window->far->shares;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    free(share);
    oriel_ticket_unlock(&window->control->lock, false);
}

void oriel_internode_shares_close(struct oriel_internode *far)
{
    while (far->shares != NULL) {
        struct oriel_internode_share *share = far->shares;
        far->shares = share->next;
        free(share);
    }
}
