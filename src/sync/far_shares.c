/* How epochs of lock_all take locks of targets on other machines: one after the other, in any order, each by the first operation
 * on its target.  A program sees lock_all as one lock, so that these must not make ranks wait for each other that take single
 * locks or lock_all alone: E holds A's lock and wants B's, F holds B's and wants A's, and behind each stands an exclusive lock
 * that waits for it and that the other stood behind, if all kept to the queue.
 *
 * So epochs share places in a queue (shares).  A place is a reader's (R1, ticket.c): of the first to come, left by the last.
 *
 *   J1 (origin)  an epoch has a number, fixed before its first lock elsewhere
 *   J2           a place behind which a writer stands is given a limit, greater than the numbers of all who share it and than all
 *                limits before
 *   J3           who holds a lock elsewhere already shares the first place whose limit is above its number, or that has none;
 *                who holds none shares the last, if that has no limit; who finds no such place takes a new one, behind all
 *   J4           the answer tells the greatest limit: the origin's next epoch has no lower number
 *
 * All but the last place have limits, since a new one is only made where all have (J3).
 * No circle.  An epoch E that holds locks waits for what stands before its place: single locks, which end by themselves when
 * their turn has come, and places whose limits are not above E's number (J3), all of whose members' numbers are below their
 * limit (J2, J3), so below E's.  Members of a place that is not in yet and hold nothing wait at the same target, for places with
 * lower limits.  So whoever E waits for in the end, through queues and other epochs, has a lower number than E, and numbers do
 * not go down for ever.  The gate adds nothing: a writer in the queue has passed it, and nobody who holds anything waits for one
 * that has not.
 * Turns.  A writer in the queue is overtaken by epochs that hold a lock elsewhere, by one of each origin at most: that one is
 * told a limit that was given while the writer stood behind the place (J4), so that the next one's number is too great for all
 * places before the writer.  Epochs of one target elsewhere, and first locks, overtake nobody.
 * Who takes single locks of several targets at once has to take them in one order, and without lock_all beside.
 *
 * The agent's thread alone has the places; ranks of its own machine know the queue, where a place is a reader like any other. */
#include "sync/far_shares.h"

#include "sync/ticket.h"

#include <stdlib.h>

struct oriel_far_share {
    struct oriel_far_share *next;
    uint64_t place;
    uint64_t greatest; /* number of those who have shared it */
    uint64_t limit;    /* 0: none */
    uint32_t members;
    bool is_in;
};

/* J2, for the last: all before have one.  A reader that wraps looks like a writer, which does no harm. */
static void limit_last(struct oriel_window *window)
{
    struct oriel_far *far = window->far;
    struct oriel_far_share *last = far->shares;
    while (last != NULL && last->next != NULL)
        last = last->next;
    uint64_t queue = atomic_load_explicit(&window->control->lock.queue, memory_order_relaxed);
    if (last == NULL || last->limit != 0 || oriel_ticket_number(queue) == oriel_ticket_number(last->place))
        return;
    last->limit = far->limit = (last->greatest > far->limit ? last->greatest : far->limit) + 1; /* J2 */
}

struct oriel_far_share *oriel_far_share_join(struct oriel_window *window, uint64_t number, bool holds_others)
{
    limit_last(window);
    struct oriel_far_share **link = &window->far->shares;
    while (*link != NULL && (*link)->limit != 0 && !(holds_others && number < (*link)->limit)) /* J3 */
        link = &(*link)->next;
    struct oriel_far_share *share = *link;
    if (share == NULL) {
        share = calloc(1, sizeof *share);
        if (share == NULL)
            return NULL;
        oriel_delay();
        share->place = oriel_ticket_come(&window->control->lock);
        *link = share;
    }
    share->members++;
    share->greatest = number > share->greatest ? number : share->greatest;
    return share;
}

bool oriel_far_share_is_in(struct oriel_window *window, struct oriel_far_share *share)
{
    struct oriel_ticket *queue = &window->control->lock;
    if (!share->is_in && oriel_ticket_may_read(queue, share->place)) {
        (void)oriel_ticket_await_writers(queue, share->place, NULL); /* it does not wait any more */
        share->is_in = true;
    }
    return share->is_in;
}

void oriel_far_share_leave(struct oriel_window *window, struct oriel_far_share *share)
{
    if (--share->members > 0)
        return;
    struct oriel_far_share **link = &window->far->shares;
    while (*link != share)
        link = &(*link)->next;
    *link = share->next;
    free(share);
    oriel_ticket_unlock(&window->control->lock, false);
}

void oriel_far_shares_close(struct oriel_far *far)
{
    while (far->shares != NULL) {
        struct oriel_far_share *share = far->shares;
        far->shares = share->next;
        free(share);
    }
}
