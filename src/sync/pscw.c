/* Post, start, complete, wait: counters per pair of ranks that only grow. So an early post of the
 * next epoch is not lost, and a start matches posts by peer and not by number. A counter is in the
 * memory of its writer, which has an entry for each peer that it has had an epoch with
 * (pscw_counters.c: how a peer finds it).
 *
 * Argument. Every process has created its entries for the group's members before the steps. Target
 * T posts to origin O by adding one to posts in T's entry for O (C1, release). O's start waits
 * until that exceeds O's own completes to T (C2, acquire). O completes by adding one to completes
 * in O's entry for T (C3, release: O's stores are published). T's wait waits until that has reached
 * T's own posts to O (C4, acquire).
 *
 * A process need not record how much of its peer's counter it has consumed: it has one epoch of a
 * kind at a time. So a start has consumed as many posts of T as O has completed epochs to T, and
 * all earlier exposures to O had their completes. So completes <= posts <= completes + 1, as seen
 * from either side, and C2 and C4 compare modulo 2^32.
 *
 * Each counter has one writer. An entry never moves: the peer waits at the counter itself while
 * other entries are created. Entries at 0 have no meaning: their owner has started another epoch,
 * or failed to create the other entries. MPI_MODE_NOCHECK changes nothing: the counters must
 * advance nevertheless.
 *
 * Internode. An internode peer cannot read this node's entries. So this process also sends it a
 * message for C1 and C3, after those of its operations. The receiver's agent counts the message in
 * an entry of the receiving process, to which theirs points (pscw_counters.c).
 *
 * Members. The window keeps this process's entries for the last group of starts (started) and of
 * posts (posted), for the next epoch of the same group. A start may change started from when it
 * sets ORIEL_EPOCH_START to when it sets accessing. The complete that clears ORIEL_EPOCH_START
 * reads started until it clears accessing, and no start proceeds before that: it clears
 * ORIEL_EPOCH_START by a release and the start sets it by an acquire, so the start sees accessing.
 * So concurrent calls of these, which break the rules, get ORIEL_E_SYNC. exposed protects posted in
 * the same way; waits and tests only read it.
 *
 * Death: O waits for T alone at C2, T for O alone at C4, and each watches the other; counters of a
 * dead rank stay unchanged. */
#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/access_words.h"
#include "sync/epoch.h"
#include "sync/memory_wait.h"
#include "sync/pscw_counters.h"
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>

/* Replaces each rank by the pointer to the own entry for it, creating it if there is none. Works
 * from the last on: entry i overwrites the ranks from 2 * i on, which are no longer needed. After
 * an error the ranks are lost, and the counters unchanged. */
static enum oriel_status make_entries(struct oriel_window *window, int32_t *ranks, int32_t count,
                                      struct oriel_pscw_counter ***entries)
{
    enum oriel_status status = ORIEL_OK;
    *entries = (void *)ranks;
    for (int32_t i = count - 1; i >= 0 && status == ORIEL_OK; i--) {
        struct oriel_pscw_counter *own;
        status = oriel_pscw_counters_recall(window, ranks[i], &own);
        memcpy(*entries + i, &own, sizeof own);
    }
    return status;
}

/* The same step for an internode peer, by a message. The others are notified also after an
 * error; the first status counts. */
static enum oriel_status
notify_internode(struct oriel_window *window, const struct oriel_pscw_counter *own,
                 enum oriel_status (*tell)(struct oriel_window *window, int32_t rank),
                 enum oriel_status first)
{
    int32_t rank = oriel_pscw_counter_rank(own);
    enum oriel_status status = oriel_is_internode(window, rank) ? tell(window, rank) : ORIEL_OK;
    return first != ORIEL_OK ? first : status;
}

/* Replaces the members of the previous group. Call it only in the thread that may change them
 * (window.h). */
static void replace_members(struct oriel_members *members, struct oriel_pscw_counter **partners,
                            int32_t count)
{
    if (partners == NULL)
        return;
    free(members->partners);
    *members = (struct oriel_members){.partners = partners, .count = count};
}

enum oriel_status oriel_post(struct oriel_window *window, int32_t *ranks, int32_t count)
{
    uint32_t closed = 0;
    struct oriel_pscw_counter **origins = NULL;
    enum oriel_status status =
        ranks == NULL ? ORIEL_OK : make_entries(window, ranks, count, &origins);
    if (status != ORIEL_OK) {
        free(origins);
        return status;
    }
    if (!atomic_compare_exchange_strong_explicit(&window->exposed, &closed, 1, memory_order_seq_cst,
                                                 memory_order_relaxed)) {
        free(origins);
        return oriel_fail(ORIEL_E_SYNC, "a post inside the exposure epoch of another post");
    }
    replace_members(&window->posted, origins, count);
    const struct oriel_members *posted = &window->posted;
    for (int32_t i = 0; i < posted->count; i++) {
        oriel_delay();
        oriel_event_signal(&posted->partners[i]->posts); /* C1 */
        if (window->internode != NULL)
            status = notify_internode(window, posted->partners[i], oriel_internode_post, status);
    }
    return status;
}

static void give_up_start(struct oriel_window *window)
{
    atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_START, memory_order_relaxed);
}

/* Claims the right to change window->started, and the access words, until the epoch ends. */
static enum oriel_status claim_start(struct oriel_window *window)
{
    uint32_t epoch =
        atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_START, memory_order_acquire);
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "a start inside the access epoch of another start");
    const bool locks = (epoch & ORIEL_EPOCH_LOCK_ALL) || oriel_locks_held(window);
    if (!locks && !oriel_load_acquire(&window->accessing))
        return ORIEL_OK;
    give_up_start(window);
    return oriel_fail(ORIEL_E_SYNC,
                      locks ? "a start inside a lock" : "a start while another thread completes");
}

static void set_accesses(struct oriel_window *window, enum oriel_access_state access)
{
    _Atomic uint8_t *words = oriel_window_access(window);
    const struct oriel_members *started = &window->started;
    for (int32_t i = 0; i < started->count; i++)
        atomic_store_explicit(&words[oriel_pscw_counter_rank(started->partners[i])],
                              (uint8_t)access, memory_order_relaxed);
}

/* All steps that can fail for lack of memory, before any other change. */
static enum oriel_status prepare_start(struct oriel_window *window, int32_t *ranks, int32_t count)
{
    struct oriel_pscw_counter **targets = NULL;
    enum oriel_status status =
        ranks == NULL ? ORIEL_OK : make_entries(window, ranks, count, &targets);
    if (status != ORIEL_OK) {
        free(targets);
        return status;
    }
    replace_members(&window->started, targets, count);
    if (window->started.count > 0)
        status = oriel_access_words_require(window);
    return status == ORIEL_OK ? oriel_epoch_leave_fence(window) : status;
}

/* A thread that has read a counter writes next to it. This processor then owns the cache line, and
 * the peer's next count moves it in one exchange. A line shared by both needs two. */
static void claim_cache_line(struct oriel_pscw_counter *theirs)
{
    oriel_store_relaxed(&theirs->seen, 1);
}

/* The functions below wait for the peer's counter for this process. own is this process's entry for
 * the peer. */
static enum oriel_status await_post(struct oriel_window *window, struct oriel_pscw_counter *own)
{
    struct oriel_watched watched = {.window = window, .win_rank = oriel_pscw_counter_rank(own)};
    struct oriel_watch watch = {oriel_liveness_rank, &watched, ORIEL_WAITING_POST};
    struct oriel_pscw_counter *theirs;
    enum oriel_status status = oriel_pscw_counters_await(window, own, &watch, &theirs);
    if (status == ORIEL_OK)
        status = oriel_internode_event_wait(
            window, &theirs->posts, oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */
    if (status == ORIEL_OK)
        claim_cache_line(theirs);
    return status;
}

enum oriel_status oriel_start(struct oriel_window *window, int32_t *ranks, int32_t count)
{
    enum oriel_status status = claim_start(window);
    if (status != ORIEL_OK) {
        free(ranks);
        return status;
    }
    status = prepare_start(window, ranks, count);
    for (int32_t i = 0; i < window->started.count && status == ORIEL_OK; i++)
        status = await_post(window, window->started.partners[i]);
    if (status != ORIEL_OK) {
        give_up_start(window);
        return status;
    }
    set_accesses(window, ORIEL_ACCESS_STATE_STARTED);
    oriel_store_release(&window->accessing, 1);
    return ORIEL_OK;
}

enum oriel_status oriel_complete(struct oriel_window *window)
{
    if (!oriel_load_acquire(&window->accessing) ||
        !(atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_START,
                                    memory_order_release) &
          ORIEL_EPOCH_START))
        return oriel_fail(ORIEL_E_SYNC, "complete without start");
    enum oriel_status status = ORIEL_OK;
    const struct oriel_members *targets = &window->started;
    set_accesses(window, ORIEL_ACCESS_STATE_NONE);
    for (int32_t i = 0; i < targets->count; i++) {
        oriel_delay();
        if (window->internode != NULL)
            status =
                notify_internode(window, targets->partners[i], oriel_internode_complete, status);
        oriel_event_signal(&targets->partners[i]->completes); /* C3 */
    }
    oriel_memory_changed(window); /* C3 is the fence, if there is a target */
    /* a failed operation that returns data to this process */
    if (window->internode != NULL && status == ORIEL_OK)
        status = oriel_internode_take_failure(window->internode);
    oriel_store_release(&window->accessing, 0);
    return status;
}

/* All posted origins have completed. */
static void close_exposure(struct oriel_window *window)
{
    oriel_store_release(&window->exposed, 0);
}

static enum oriel_status await_complete(struct oriel_window *window, struct oriel_pscw_counter *own)
{
    struct oriel_watched watched = {.window = window, .win_rank = oriel_pscw_counter_rank(own)};
    struct oriel_watch watch = {oriel_liveness_rank, &watched, ORIEL_WAITING_COMPLETE};
    struct oriel_pscw_counter *theirs;
    enum oriel_status status = oriel_pscw_counters_await(window, own, &watch, &theirs);
    if (status == ORIEL_OK)
        status = oriel_internode_event_wait(window, &theirs->completes,
                                            oriel_load_relaxed(&own->posts.value), &watch); /* C4 */
    if (status == ORIEL_OK)
        claim_cache_line(theirs);
    return status;
}

enum oriel_status oriel_wait_exposure(struct oriel_window *window)
{
    if (!oriel_load_acquire(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "wait without post");
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->posted.count && status == ORIEL_OK; i++)
        status = await_complete(window, window->posted.partners[i]);
    if (status == ORIEL_OK)
        close_exposure(window);
    return status;
}

static enum oriel_status test_failed(struct oriel_window *window, int32_t origin)
{
    struct oriel_watched watched = {.window = window, .win_rank = origin};
    return oriel_polling_missed(&window->polling) ? oriel_liveness_rank(&watched) : ORIEL_OK;
}

static bool has_completed(const struct oriel_window *window, struct oriel_pscw_counter *own)
{
    struct oriel_pscw_counter *theirs = oriel_pscw_counters_theirs(window, own);
    return theirs != NULL &&
           oriel_wait_reached(oriel_load_acquire(&theirs->completes.value), ORIEL_WAIT_AT_LEAST,
                              oriel_load_relaxed(&own->posts.value)); /* C4 */
}

enum oriel_status oriel_test_exposure(struct oriel_window *window, bool *done)
{
    *done = false;
    if (!oriel_load_acquire(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "test without post");
    for (int32_t i = 0; i < window->posted.count; i++)
        if (!has_completed(window, window->posted.partners[i]))
            return test_failed(window, oriel_pscw_counter_rank(window->posted.partners[i]));
    close_exposure(window);
    *done = true;
    return ORIEL_OK;
}
