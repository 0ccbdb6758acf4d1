/* The target's service for internode ranks: their locks, PSCW epochs and arrivals at barriers. The
 * agent's thread must not wait for any rank. So a lock request enters the queue of the target's own
 * node like its ranks, and takes the same steps (lock.c), each as soon as it is possible. The reply
 * is sent after the last step. Epochs of lock_all share positions of the queue (lock_all_queue.c).
 *
 * The messages of an epoch that does not wait for its lock (lazy_lock.c) are executed when the lock
 * is acquired.
 *
 * A window with two ranks, this process and a holder of a memory handle on another node
 * (window/holders.h), has the gate and the lock of the handle's window. Its lock requests also take
 * the steps H1 to H6 of a holder (sync/holder_epochs.c), one epoch at a time. No rank of the
 * handle's window can ask whether the holder lives, so this thread does while the epoch is open.
 *
 * Only this process knows the lock of an internode rank. If that rank is lost with a position in
 * the queue, remote_lost in the target's control block names it permanently. Every waiter for the
 * lock, on this node or another, then fails (internode/origin/liveness.c). */
#include "internode/origin/origin_sync.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_peers.h"
#include "internode/target/deferred_queue.h"
#include "internode/target/lock_all_queue.h"
#include "sync/holder_epochs.h"
#include "sync/lock_all_gate.h"
#include "sync/sync.h"
#include "sync/ticket.h"

#include <stdlib.h>
#include <string.h>

enum { COURTESY_NS = 100000000, WATCH_NS = 100000000, PATIENCE_NS = 100000000 };
enum { NO_RANK = -1 };

static uint32_t waiting;    /* number of locks of all windows that are not acquired yet */
static uint32_t far_epochs; /* open ones of holders on other nodes */

static struct oriel_lock_all_gate *gate_of(const struct oriel_window *window)
{
    return oriel_window_is_opened(window) ? &window->holding->owner_common->gate
                                          : &window->common->gate;
}

/* --- locks --- */

static bool courtesy_is_due(struct oriel_lock_all_gate *gate,
                            const struct oriel_internode_lock *lock, uint64_t now_ns)
{
    return oriel_gate_has_waiting_readers(gate) &&
           oriel_load_acquire(&gate->admissions.value) == lock->admissions &&
           now_ns - lock->since_ns < COURTESY_NS;
}

/* J5; stays in the queue if there is no memory for a keeper of its own position. */
static void lock_join_first(struct oriel_window *window, struct oriel_internode_lock *lock)
{
    struct oriel_internode_lock *keeper = calloc(1, sizeof *keeper);
    struct oriel_internode_share *inside =
        keeper == NULL ? NULL : oriel_internode_share_join_first(window);
    if (inside == NULL) {
        free(keeper);
        return;
    }
    *keeper = *lock;
    keeper->from = NO_RANK;
    lock->next = keeper;
    lock->share = inside;
    waiting++;
}

static bool lock_advance_shared(struct oriel_window *window, struct oriel_internode_lock *lock,
                                uint64_t now_ns)
{
    if (oriel_internode_share_is_in(window, lock->share))
        return true;
    if (lock->from != NO_RANK && lock->share != window->internode->shares &&
        now_ns - lock->since_ns >= (lock->joins + UINT64_C(1)) * PATIENCE_NS)
        lock_join_first(window, lock);
    return oriel_internode_share_is_in(window, lock->share);
}

/* Takes the steps that are possible; returns true when the lock is acquired. is_behind: a lock
 * before it waits at the gate, which may have opened since that lock was checked. */
static bool lock_advance(struct oriel_window *window, struct oriel_internode_lock *lock,
                         bool is_behind, uint64_t now_ns)
{
    struct oriel_lock_all_gate *gate = gate_of(window);
    struct oriel_ticket *queue = &window->control->lock;
    if (lock->is_bare)
        return true;
    if (lock->share != NULL)
        return lock_advance_shared(window, lock, now_ns);
    if (!lock->exclusive) {
        if (!oriel_ticket_may_read(queue, lock->place))
            return false;
        (void)oriel_ticket_await_writers(queue, lock->place, NULL); /* returns at once */
        return true;
    }
    if (lock->stage == STAGE_COURTESY) {
        if (courtesy_is_due(gate, lock, now_ns))
            return false;
        lock->stage = STAGE_GATE;
        if (oriel_gate_push_writer(gate) && !is_behind) {
            lock->place = oriel_ticket_draw(queue);
            lock->stage = STAGE_QUEUE;
        }
    }
    if (lock->stage == STAGE_GATE) {
        if (is_behind || oriel_lock_all_gate_has_readers(gate))
            return false;
        (void)oriel_gate_await_readers(gate, NULL); /* returns at once */
        lock->place = oriel_ticket_draw(queue);
        lock->stage = STAGE_QUEUE;
    }
    return oriel_ticket_is_first(queue, lock->place);
}

static void lock_leave_queue(struct oriel_window *window, const struct oriel_internode_lock *lock)
{
    if (lock->share != NULL)
        oriel_internode_share_leave(window, lock->share);
    else if (!lock->is_bare)
        oriel_ticket_unlock(&window->control->lock, lock->exclusive);
    oriel_delay();
    if (lock->exclusive)
        oriel_gate_leave_writer(gate_of(window));
}

/* The lock will never be acquired: it leaves the gate (as in lock.c). A position in the queue stays
 * in use. */
static void lock_leave_gate(struct oriel_window *window, const struct oriel_internode_lock *lock)
{
    if (lock->exclusive && lock->stage != STAGE_COURTESY)
        oriel_gate_leave_writer(gate_of(window));
}

static void lock_free(struct oriel_window *window, struct oriel_internode_lock *lock)
{
    waiting -= lock->stage != STAGE_HELD;
    far_epochs -= lock->stage == STAGE_HELD && oriel_window_is_opened(window);
    window->internode->lazy_locks -= lock->is_lazy && lock->stage != STAGE_HELD;
    oriel_internode_deferred_drop(&lock->deferred);
    free(lock);
}

/* --- holders --- */

/* Publishes the holder, for waiters of this node to check. */
static void holder_publish(struct oriel_window *window)
{
    if (oriel_window_is_opened(window))
        return; /* it is no rank of theirs, and has an entry */
    const struct oriel_internode_lock *lock = window->internode->locks;
    while (lock != NULL && lock->stage != STAGE_HELD)
        lock = lock->next;
    uint32_t holder = lock == NULL ? 0
                                   : ((uint32_t)lock->from + 1) |
                                         (lock->exclusive ? ORIEL_INTERNODE_EXCLUSIVE : 0);
    oriel_store_release(&window->control->remote_owner, holder);
}

static bool is_waited_for(const struct oriel_internode *internode)
{
    const struct oriel_internode_lock *lock = internode->locks;
    while (lock != NULL && lock->stage == STAGE_HELD)
        lock = lock->next;
    return lock != NULL;
}

/* Forgets a lost holder and returns; the next call continues with the others. */
static void watch_holders(struct oriel_window *window, uint64_t now_ns)
{
    if (now_ns - window->internode->looked_ns < WATCH_NS ||
        (!is_waited_for(window->internode) && !oriel_window_is_opened(window)))
        return;
    window->internode->looked_ns = now_ns;
    for (const struct oriel_internode_lock *lock = window->internode->locks; lock != NULL;
         lock = lock->next) {
        struct oriel_net_peer *peer =
            lock->stage == STAGE_HELD ? oriel_internode_peer_known(window, lock->from) : NULL;
        if (peer != NULL && oriel_net_check(peer) != ORIEL_OK) {
            oriel_internode_rank_lost(window, lock->from);
            return;
        }
    }
}

/* Removes the lock that a rank holds here from the list; NULL if there is none. */
static struct oriel_internode_lock *lock_take_held(struct oriel_window *window, int32_t from)
{
    for (struct oriel_internode_lock **link = &window->internode->locks; *link != NULL;
         link = &(*link)->next) {
        struct oriel_internode_lock *lock = *link;
        if (lock->from == from && lock->stage == STAGE_HELD) {
            *link = lock->next;
            holder_publish(window);
            return lock;
        }
    }
    return NULL;
}

static void lock_release(struct oriel_window *window, const struct oriel_net_requester *asker,
                         int32_t from)
{
    struct oriel_internode_lock *lock = lock_take_held(window, from);
    if (lock == NULL)
        oriel_internode_record_failure(
            window, from, oriel_fail(ORIEL_E_SYNC, "rank %d holds no lock here", (int)from));
    else
        lock_leave_queue(window, lock);
    if (lock != NULL && oriel_window_is_opened(window)) {
        oriel_holder_epoch_end(window->holding); /* H6 */
        far_epochs--;
    }
    free(lock);
    oriel_internode_reply(window, asker, from, NULL, 0);
}

/* --- advancing locks --- */

/* Fails if a rank that blocks the lock has died. */
static enum oriel_status watch_lock(struct oriel_window *window, struct oriel_internode_lock *lock,
                                    uint64_t now_ns)
{
    struct oriel_watched watched = {.window = window, .win_rank = window->rank, .by_agent = true};
    if (now_ns - lock->looked_ns < WATCH_NS)
        return ORIEL_OK;
    lock->looked_ns = now_ns;
    if (oriel_window_is_opened(window))
        return oriel_holder_watch(&watched);
    return lock->stage == STAGE_QUEUE ? oriel_liveness_lock(&watched)
                                      : oriel_liveness_lock_all_holders(&watched);
}

/* Replies to the lock request, whatever failed before. Reports to a lock_all epoch whether it keeps
 * a writer waiting (J2). */
static void lock_send_grant(const struct oriel_window *window,
                            const struct oriel_internode_lock *lock)
{
    uint64_t is_followed =
        lock->share != NULL && oriel_internode_share_is_followed(window, lock->share);
    oriel_internode_reply_ok(&lock->asker, &(struct iovec){&is_followed, sizeof is_followed},
                             lock->share != NULL);
}

static enum oriel_access_state lock_state(const struct oriel_internode_lock *lock)
{
    return lock->is_bare     ? ORIEL_ACCESS_STATE_NOCHECK
           : lock->exclusive ? ORIEL_ACCESS_STATE_EXCLUSIVE
                             : ORIEL_ACCESS_STATE_SHARED;
}

static void lock_refuse(const struct oriel_internode_lock *lock, enum oriel_status status)
{
    if (lock->from != NO_RANK)
        oriel_internode_reply_refusal(&lock->asker, status);
}

/* H4 and H5; false if the handle is withdrawn, and the lock given back. */
static bool far_epoch_open(struct oriel_window *window, const struct oriel_internode_lock *lock)
{
    enum oriel_status status = oriel_holder_epoch_open(window->holding, lock_state(lock));
    if (status != ORIEL_OK) {
        lock_leave_queue(window, lock);
        oriel_holder_epoch_end(window->holding);
        lock_refuse(lock, status);
    }
    far_epochs += status == ORIEL_OK;
    return status == ORIEL_OK;
}

/* It is the lock's turn. A lock of NO_RANK leaves at once. Returns the link to the next lock. */
static struct oriel_internode_lock **lock_grant(struct oriel_window *window,
                                                struct oriel_internode_lock **link)
{
    struct oriel_internode_lock *lock = *link;
    if (lock->from == NO_RANK) {
        *link = lock->next;
        lock_leave_queue(window, lock);
        lock_free(window, lock);
        return link;
    }
    if (oriel_window_is_opened(window) && !far_epoch_open(window, lock)) {
        *link = lock->next;
        lock_free(window, lock);
        return link;
    }
    lock->stage = STAGE_HELD;
    waiting--;
    window->internode->lazy_locks -= lock->is_lazy;
    holder_publish(window);
    lock_send_grant(window, lock);
    return &lock->next;
}

/* K3, with the thread's message. */
static void epoch_refuse(struct oriel_window *window, struct oriel_internode_lock *lock,
                         enum oriel_status status)
{
    lock_refuse(lock, status);
    oriel_internode_deferred_refuse(&lock->deferred, status);
    if (lock->deferred.has_unlock)
        oriel_internode_reply_refusal(&lock->deferred.unlock, status);
    else if (lock->is_lazy)
        window->internode->refused[lock->from] |= ORIEL_INTERNODE_EPOCH_REFUSED;
}

/* K2: executes the messages deferred for the first lock that is acquired now, and its unlock.
 *     Returns false if there is none. */
static bool deferred_serve(struct oriel_window *window)
{
    struct oriel_internode_lock *lock = window->internode->locks;
    while (lock != NULL && (lock->stage != STAGE_HELD ||
                            (lock->deferred.first == NULL && !lock->deferred.has_unlock)))
        lock = lock->next;
    if (lock == NULL)
        return false;
    oriel_internode_deferred_serve(window, &lock->deferred);
    if (lock->deferred.has_unlock) {
        const struct oriel_net_requester unlock = lock->deferred.unlock;
        /* replied to once, even if a rank with two locks releases the other one by it */
        lock->deferred.has_unlock = false;
        lock_release(window, &unlock, lock->from);
    }
    return true;
}

static void locks_advance(struct oriel_window *window, uint64_t now_ns)
{
    bool at_gate = false;
    for (struct oriel_internode_lock **link = &window->internode->locks; *link != NULL;) {
        struct oriel_internode_lock *lock = *link;
        if (lock->stage == STAGE_HELD) {
            link = &lock->next;
        } else if (lock_advance(window, lock, at_gate, now_ns)) {
            link = lock_grant(window, link);
        } else if (watch_lock(window, lock, now_ns) != ORIEL_OK) {
            epoch_refuse(window, lock, ORIEL_E_PEER);
            lock_leave_gate(window, lock);
            if (oriel_window_is_opened(window))
                oriel_holder_epoch_end(window->holding);
            *link = lock->next;
            lock_free(window, lock);
        } else {
            at_gate |= lock->stage == STAGE_GATE;
            oriel_delay();
            link = &lock->next;
        }
    }
}

/* After a deferred epoch has ended, the next lock's turn may have come without a message. */
void oriel_internode_advance_locks(struct oriel_window *window)
{
    uint64_t now_ns = oriel_now_ns();
    watch_holders(window, now_ns);
    for (bool any = true; any;) {
        const uint32_t lazy_locks_before = window->internode->lazy_locks;
        locks_advance(window, now_ns);
        any = false;
        while (window->internode->lazy_locks != lazy_locks_before && deferred_serve(window))
            any = true;
    }
}

bool oriel_internode_has_waiting_locks(void)
{
    return waiting > 0 || far_epochs > 0;
}

/* Without memory returns the spare lock: an origin with a lazy lock could not ask again. */
static struct oriel_internode_lock *lock_alloc(struct oriel_internode *internode)
{
    struct oriel_internode_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL) {
        lock = internode->spare_lock;
        internode->spare_lock = NULL;
    } else if (internode->spare_lock == NULL) {
        internode->spare_lock = calloc(1, sizeof *internode->spare_lock);
    }
    return lock;
}

/* H1 and H2; false if it is refused. */
static bool far_epoch_ask(struct oriel_window *window, const struct oriel_net_requester *asker)
{
    enum oriel_status status =
        window->internode->locks == NULL
            ? oriel_holder_epoch_ask(window->holding)
            : oriel_fail(ORIEL_E_SYNC, "the process has an epoch open on the memory handle");
    if (status != ORIEL_OK)
        oriel_internode_reply_refusal(asker, status);
    return status == ORIEL_OK;
}

static void lock_request_serve(struct oriel_window *window, const struct oriel_net_requester *asker,
                               const struct oriel_internode_head *head)
{
    const bool is_far = oriel_window_is_opened(window);
    if (is_far && !far_epoch_ask(window, asker))
        return;
    struct oriel_internode_lock *lock = lock_alloc(window->internode);
    bool is_all = !is_far && (head->a == ORIEL_INTERNODE_WANTS_ALL ||
                              head->a == ORIEL_INTERNODE_WANTS_ALL_IN_TURN);
    if (lock != NULL && is_all)
        lock->share =
            oriel_internode_share_join(window, head->a == ORIEL_INTERNODE_WANTS_ALL_IN_TURN);
    if (lock == NULL || (is_all && lock->share == NULL)) {
        free(lock);
        if (is_far)
            oriel_holder_epoch_end(window->holding);
        else if (head->b != 0 && !is_all)
            window->internode->refused[head->from] |= ORIEL_INTERNODE_EPOCH_REFUSED; /* K3 */
        oriel_internode_reply_refusal(
            asker,
            oriel_fail(ORIEL_E_NO_MEM, "no memory for a lock at rank %d", (int)window->rank));
        return;
    }
    lock->asker = *asker;
    lock->from = head->from;
    lock->exclusive = head->a == ORIEL_INTERNODE_WANTS_EXCLUSIVE;
    lock->is_bare = is_far && head->a == ORIEL_INTERNODE_WANTS_NOTHING;
    lock->is_lazy = head->b != 0 && !is_all && !is_far;
    window->internode->lazy_locks += lock->is_lazy;
    lock->since_ns = lock->looked_ns = oriel_now_ns();
    lock->joins = oriel_internode_shares_joins(window->internode);
    lock->admissions = oriel_load_acquire(&gate_of(window)->admissions.value);
    lock->stage = lock->exclusive ? STAGE_COURTESY : STAGE_QUEUE;
    oriel_delay();
    if (!lock->exclusive && lock->share == NULL && !lock->is_bare)
        lock->place = oriel_ticket_enter_reader(&window->control->lock);
    struct oriel_internode_lock **link =
        &window->internode->locks; /* after those that arrived before */
    while (*link != NULL)
        link = &(*link)->next;
    *link = lock;
    waiting++;
    oriel_internode_advance_locks(window);
}

/* --- epochs that do not wait for their lock --- */

/* K3 */
static void epoch_refuse_message(struct oriel_window *window,
                                 const struct oriel_net_requester *asker,
                                 const struct oriel_internode_head *head, bool is_asked)
{
    if (head->kind == ORIEL_INTERNODE_UNLOCK)
        window->internode->refused[head->from] &= (uint8_t)~ORIEL_INTERNODE_EPOCH_REFUSED;
    if (is_asked)
        oriel_internode_reply_refusal(
            asker, oriel_fail(ORIEL_E_OTHER, "nothing was done, since the lock was refused"));
}

static struct oriel_internode_lock *lazy_lock_find(const struct oriel_internode *internode,
                                                   int32_t from)
{
    struct oriel_internode_lock *lock = internode->lazy_locks == 0 ? NULL : internode->locks;
    while (lock != NULL && (lock->from != from || !lock->is_lazy || lock->stage == STAGE_HELD))
        lock = lock->next;
    return lock;
}

static bool kind_is_of_epoch(uint32_t kind)
{
    return kind <= ORIEL_INTERNODE_SWAP || kind == ORIEL_INTERNODE_UNLOCK;
}

bool oriel_internode_defers(struct oriel_window *window, const struct oriel_net_requester *asker,
                            const struct oriel_internode_head *head,
                            const struct oriel_net_received *message, bool is_asked,
                            oriel_internode_serve_fn *again)
{
    if (!kind_is_of_epoch(head->kind))
        return false;
    if (oriel_unlikely(window->internode->refused[head->from] & ORIEL_INTERNODE_EPOCH_REFUSED)) {
        epoch_refuse_message(window, asker, head, is_asked);
        return true;
    }
    struct oriel_internode_lock *lock = lazy_lock_find(window->internode, head->from);
    if (lock == NULL)
        return false;
    enum oriel_status status =
        oriel_internode_deferred_add(&lock->deferred, asker, head, message, is_asked, again);
    if (status != ORIEL_OK && is_asked)
        oriel_internode_reply_refusal(asker, status);
    else if (status != ORIEL_OK)
        oriel_internode_record_failure(window, head->from, status);
    return true;
}

/* --- PSCW epochs, barriers, lost ranks --- */

static void count_partner(struct oriel_window *window, const struct oriel_internode_head *head)
{
    struct oriel_pscw_counter *partner = oriel_internode_partner(window, head->from);
    if (partner != NULL)
        oriel_event_signal(head->kind == ORIEL_INTERNODE_POST ? &partner->posts
                                                              : &partner->completes);
    else
        oriel_store_release(&window->internode->uncounted,
                            (uint32_t)head->from + 1); /* a waiter for it fails (liveness.c) */
}

static void count_arrival(struct oriel_window *window, const struct oriel_internode_head *head)
{
    struct oriel_nodes *nodes = (struct oriel_nodes *)(uintptr_t)oriel_internode_nodes(window);
    if (head->a < ORIEL_BARRIER_ROUNDS)
        oriel_event_signal(&nodes->arrived[head->a]);
}

static void lost_rank_record(struct oriel_window *window, uint64_t rank)
{
    uint32_t whole = 0;
    if (rank < (uint64_t)window->n)
        atomic_compare_exchange_strong_explicit(&window->common->broken, &whole, (uint32_t)rank + 1,
                                                memory_order_release, memory_order_relaxed);
}

void oriel_internode_serve(struct oriel_window *window, const struct oriel_net_requester *asker,
                           const struct oriel_internode_head *head)
{
    switch ((enum oriel_internode_kind)head->kind) {
    case ORIEL_INTERNODE_FLUSH: oriel_internode_reply(window, asker, head->from, NULL, 0); break;
    case ORIEL_INTERNODE_LOCK: lock_request_serve(window, asker, head); break;
    case ORIEL_INTERNODE_UNLOCK: lock_release(window, asker, head->from); break;
    case ORIEL_INTERNODE_POST:
    case ORIEL_INTERNODE_COMPLETE: count_partner(window, head); break;
    case ORIEL_INTERNODE_ARRIVED: count_arrival(window, head); break;
    case ORIEL_INTERNODE_LOST: lost_rank_record(window, head->a); break;
    default: /* internode/target/am_dispatch.c sends no other kind here */ break;
    }
}

/* It had a position in the queue, which stays in use. */
static void lost_holder_publish(struct oriel_window *window,
                                const struct oriel_internode_lock *lock)
{
    if (oriel_window_is_opened(window)) {
        oriel_holder_epoch_lose(window->holding);
        return;
    }
    uint32_t before = oriel_load_relaxed(&window->control->remote_lost) & ORIEL_INTERNODE_EXCLUSIVE;
    uint32_t now = lock->exclusive ? ORIEL_INTERNODE_EXCLUSIVE : before;
    oriel_store_release(&window->control->remote_lost, ((uint32_t)lock->from + 1) | now);
}

void oriel_internode_rank_lost(struct oriel_window *window, int32_t rank)
{
    for (struct oriel_internode_lock **link = &window->internode->locks; *link != NULL;) {
        struct oriel_internode_lock *lock = *link;
        if (lock->from != rank) {
            link = &lock->next;
            continue;
        }
        if (lock->stage != STAGE_HELD)
            lock_leave_gate(window, lock);
        oriel_delay();
        if (lock->stage >= STAGE_QUEUE && !lock->is_bare)
            lost_holder_publish(window, lock);
        else if (oriel_window_is_opened(window))
            oriel_holder_epoch_end(window->holding); /* P2: last */
        *link = lock->next;
        lock_free(window, lock);
    }
    holder_publish(window);
}

void oriel_internode_close(struct oriel_window *window)
{
    uint32_t dead = window->control == NULL ? 0 : oriel_load_relaxed(&window->control->abandoned);
    while (window->internode->locks != NULL) {
        struct oriel_internode_lock *lock = window->internode->locks;
        window->internode->locks = lock->next;
        if (lock->stage != STAGE_HELD && dead != 0)
            epoch_refuse(window, lock,
                         oriel_fail(ORIEL_E_PEER,
                                    "rank %d has died, and the target has left the window [O18]",
                                    (int)dead - 1));
        else if (lock->stage != STAGE_HELD)
            epoch_refuse(window, lock, oriel_fail(ORIEL_E_WIN, "the window no longer exists"));
        lock_free(window, lock);
    }
    if (dead == 0)
        oriel_internode_rdma_withdraw(window->internode);
    else if (window->internode->exposed != NULL)
        /* not freed: other ranks may still put, and RDMA reaches it until the net stops */
        window->memory_offset = -1;
    oriel_internode_shares_close(window->internode);
    oriel_internode_replies_close(window->internode);
    oriel_internode_peers_close(window);
}
