/* Checks with the kernel whether the ranks that block a wait are alive. Access words are read as
 * their owners wrote them. A rank sets its word before it can block another rank, and clears it
 * after it can no longer do so. So a dead blocker is always seen. A process that has not published
 * its access words has set none of them (access_words.c). A wait checks at most every 100 ms. */
#include "internode/origin/liveness.h"

#include "internode/origin/origin_peers.h"
#include "internode/origin/origin_sync.h"
#include "window/holders.h"

#include <stdio.h>

/* Where all ranks are checked, a process that this one never contacted is left to other ranks. They
 * report it through broken (internode/origin/origin_sync.c). */
static enum oriel_status check_internode_alive(const struct oriel_window *window, int32_t win_rank)
{
    struct oriel_net_peer *peer =
        atomic_load_explicit(&window->group->net_peers[win_rank], memory_order_acquire);
    char reason[300];
    if (window->internode != NULL &&
        oriel_load_acquire(&window->internode->uncounted) == (uint32_t)win_rank + 1)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to count the posts and completes of rank %d",
                          (int)win_rank);
    if (peer == NULL || oriel_net_check(peer) == ORIEL_OK)
        return ORIEL_OK;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return oriel_fail(ORIEL_E_PEER, "rank %d is lost: %s [O18]", (int)win_rank, reason);
}

static enum oriel_status check_alive(const struct oriel_window *window, int32_t win_rank)
{
    const struct oriel_peer *peer = window->group->peers[win_rank];
    if (peer == NULL)
        return check_internode_alive(window, win_rank);
    if (oriel_peer_alive(peer))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died [O18]", (int)win_rank,
                      (int)peer->identity.pid);
}

/* A rank also blocks forever if it lives, but has left the window because another rank died. */
static enum oriel_status check_rank_serves(const struct oriel_window *window, int32_t win_rank)
{
    enum oriel_status status = check_alive(window, win_rank);
    if (status != ORIEL_OK || window->control_bases[win_rank] == NULL)
        return status;
    uint32_t dead = oriel_load_acquire(&oriel_window_control(window, win_rank)->abandoned);
    if (dead == 0)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_PEER,
                      "rank %d has died, and rank %d has left the window because of that [O18]",
                      (int)dead - 1, (int)win_rank);
}

int32_t oriel_liveness_members(const struct oriel_window *window)
{
    for (int32_t i = 0; i < window->n; i++)
        if (i != window->rank && check_alive(window, i) == ORIEL_E_PEER)
            return i;
    return -1;
}

enum oriel_status oriel_liveness_none(void *context)
{
    (void)context;
    return ORIEL_OK;
}

enum oriel_status oriel_liveness_rank(void *context)
{
    static _Thread_local uint32_t looks;
    struct oriel_watched *watched = context;
    const struct oriel_window *window = watched->window;
    struct oriel_net_peer *peer;
    watched->dead = -1;
    /* an internode rank: this process may not have contacted it yet */
    if (window->group->peers[watched->win_rank] == NULL) {
        enum oriel_status status = oriel_internode_peer(window, watched->win_rank, &peer);
        /* it may have left the window */
        if (status == ORIEL_OK &&
            (oriel_load_acquire(&window->common->broken) != 0 || ++looks % ORIEL_WATCH_ASKS == 0))
            status = oriel_internode_check_serving(window, watched->win_rank, peer, &watched->dead);
        if (status != ORIEL_OK)
            return status;
    }
    watched->dead = watched->win_rank;
    return check_rank_serves(window, watched->win_rank);
}

/* Where all ranks wait for all, each checks only a few of many at a time. It starts with the ranks
 * after its own and continues where it stopped. A rank that finds a dead one leaves and sets
 * broken. Then all ranks check all. */
enum oriel_status oriel_liveness_all(void *context)
{
    static _Thread_local int32_t looked;
    struct oriel_watched *watched = context;
    const struct oriel_window *window = watched->window;
    uint32_t broken = window->common != NULL ? oriel_load_acquire(&window->common->broken) : 0;
    int32_t count = broken != 0 ? window->n : oriel_liveness_share(window->n);
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 1; i <= count && status == ORIEL_OK; i++) {
        watched->dead = (int32_t)(((int64_t)window->rank + looked + i) % window->n);
        status = check_alive(window, watched->dead); /* a rank that has left has set broken */
    }
    looked = (int32_t)(((int64_t)looked + count) % window->n);
    if (status != ORIEL_OK || broken == 0)
        return status;
    watched->dead = (int32_t)broken - 1;
    return oriel_fail(ORIEL_E_PEER, "rank %d has died [O18]", (int)watched->dead);
}

enum oriel_status oriel_liveness_any(void *context)
{
    static _Thread_local uint32_t looked;
    const struct oriel_watched *watched = context;
    const struct oriel_window *window = watched->window;
    enum oriel_status status = oriel_liveness_all(context);
    for (int32_t i = 0; i < oriel_liveness_share(window->n) && status == ORIEL_OK; i++) {
        struct oriel_watched other = {.window = window,
                                      .win_rank = (int32_t)(looked++ % (uint32_t)window->n)};
        if (oriel_is_internode(window, other.win_rank))
            status = oriel_liveness_rank(&other);
    }
    return status;
}

/* Access words show which ranks may block, not which do: positions in the queue are not recorded
 * per rank. So a waiter also fails for a dead rank that queued after it, though its own turn would
 * come if all ranks before it live. The lock is lost for all later waiters in any case. */

/* The access words of rank i; NULL if it has none, or is on another node. */
static const _Atomic uint8_t *access_words_of(const struct oriel_window *window, int32_t i)
{
    if (window->control_bases[i] == NULL)
        return NULL; /* internode: the target's process has its locks */
    uint64_t offset =
        atomic_load_explicit(&oriel_window_control(window, i)->access_offset, memory_order_acquire);
    return offset == 0 ? NULL : (const _Atomic uint8_t *)(window->control_bases[i] + offset);
}

/* Whether rank i can keep others from their turn in target's queue. Readers count for readers,
 * since readers wait for a writer that may wait for them. A rank at the gate is not in the queue
 * yet. A rank in the queue has passed the gate. */
static bool is_queued_for(const struct oriel_window *window, int32_t i, int32_t target)
{
    const _Atomic uint8_t *access = access_words_of(window, i);
    uint8_t state = access == NULL ? ORIEL_ACCESS_STATE_NONE
                                   : atomic_load_explicit(&access[target], memory_order_acquire);
    return state != ORIEL_ACCESS_STATE_NONE && state != ORIEL_ACCESS_STATE_NOCHECK;
}

/* Whether rank i can keep writers waiting at the gate. */
static bool holds_lock_all(const struct oriel_window *window, int32_t i, int32_t target)
{
    (void)target;
    return window->control_bases[i] != NULL &&
           oriel_load_acquire(&oriel_window_control(window, i)->lock_all) != 0;
}

/* Whether rank i can keep readers waiting at the gate. A writer there that waits for a dead reader
 * of its target fails itself. */
static bool wants_exclusive(const struct oriel_window *window, int32_t i, int32_t target)
{
    const _Atomic uint8_t *access = access_words_of(window, i);
    (void)target;
    for (int32_t t = 0; access != NULL && t < window->n; t++) {
        uint8_t state = atomic_load_explicit(&access[t], memory_order_acquire);
        if (state == ORIEL_ACCESS_STATE_WAITING || state == ORIEL_ACCESS_STATE_EXCLUSIVE)
            return true;
    }
    return false;
}

/* The rank in a word of a target's control block, or -1 if that rank cannot block. no_readers: a
 * reader does not block, since the wait is lock_all's. */
static int32_t blocker_in_word(const _Atomic uint32_t *word, bool no_readers)
{
    uint32_t value = oriel_load_acquire(word);
    return no_readers && !(value & ORIEL_INTERNODE_EXCLUSIVE)
               ? -1
               : (int32_t)(value & ~ORIEL_INTERNODE_EXCLUSIVE) - 1;
}

/* Internode ranks lock through the target's process, which publishes the lost rank. A holder may
 * become unreachable before that process notices, so each waiter checks the holder itself. The
 * target's agent does not: it checks holders in another way (target_sync.c). */
static enum oriel_status watch_internode_lock(const struct oriel_watched *watched, int32_t target,
                                              bool no_readers)
{
    const struct oriel_window *window = watched->window;
    if (window->internode == NULL || window->control_bases[target] == NULL)
        return ORIEL_OK;
    const struct oriel_control *control = oriel_window_control(window, target);
    int32_t lost = blocker_in_word(&control->remote_lost, no_readers);
    if (lost >= 0)
        return oriel_fail(ORIEL_E_PEER, "rank %d has died [O18]", (int)lost);
    struct oriel_watched holder = {.window = window,
                                   .win_rank = blocker_in_word(&control->remote_owner, no_readers)};
    return holder.win_rank < 0 || watched->by_agent ? ORIEL_OK : oriel_liveness_rank(&holder);
}

static enum oriel_status watch_blockers(const struct oriel_watched *watched,
                                        bool (*blocks)(const struct oriel_window *window, int32_t i,
                                                       int32_t target))
{
    const struct oriel_window *window = watched->window;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++)
        if (i != window->rank && blocks(window, i, watched->win_rank))
            status = check_rank_serves(window, i);
    return status;
}

enum oriel_status oriel_liveness_lock(void *context)
{
    const struct oriel_watched *watched = context;
    const struct oriel_window *window = watched->window;
    enum oriel_status status = watch_internode_lock(watched, watched->win_rank, false);
    if (status == ORIEL_OK && window->internode != NULL && watched->win_rank != window->rank)
        /* this process admits internode ranks to the lock */
        status = check_rank_serves(window, watched->win_rank);
    if (status == ORIEL_OK)
        status = watch_blockers(watched, is_queued_for);
    return status == ORIEL_OK ? oriel_holders_check_queue(window, watched->win_rank, false)
                              : status;
}

enum oriel_status oriel_liveness_lock_all_holders(void *context)
{
    return watch_blockers(context, holds_lock_all);
}

enum oriel_status oriel_liveness_lock_holders(void *context)
{
    struct oriel_watched *watched = context;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0;
         i < watched->window->n && watched->window->internode != NULL && status == ORIEL_OK; i++)
        status = watch_internode_lock(watched, i, true);
    if (status == ORIEL_OK)
        status = watch_blockers(watched, wants_exclusive);
    for (int32_t i = 0; i < watched->window->n && status == ORIEL_OK; i++)
        status = oriel_holders_check_queue(watched->window, i, true);
    if (status == ORIEL_OK && watched->patience == 0 &&
        oriel_lock_all_gate_has_readers(&watched->window->common->gate))
        return ORIEL_E_AGAIN;
    watched->patience -= watched->patience > 0;
    return status;
}

static bool blocks_target(const _Atomic uint8_t *access, int32_t target, bool shared_too,
                          bool queued)
{
    uint8_t state = atomic_load_explicit(&access[target], memory_order_acquire);
    if (queued)
        return state == ORIEL_ACCESS_STATE_WAITING;
    return state == ORIEL_ACCESS_STATE_EXCLUSIVE ||
           (shared_too && state == ORIEL_ACCESS_STATE_SHARED);
}

bool oriel_liveness_blocks(const struct oriel_watch *watch, int32_t i, bool queued)
{
    const struct oriel_watched *watched = watch->context;
    const struct oriel_window *window = watched->window;
    const _Atomic uint8_t *access = access_words_of(window, i);
    if (watch->check == oriel_liveness_lock_all_holders)
        return !queued && holds_lock_all(window, i, -1);
    if (watch->check == oriel_liveness_lock)
        return access != NULL && blocks_target(access, watched->win_rank, true, queued);
    for (int32_t t = 0; access != NULL && t < window->n; t++)
        if (blocks_target(access, t, false, queued))
            return true;
    return false;
}
