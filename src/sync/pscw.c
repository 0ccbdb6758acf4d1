/* Post, start, complete, wait: counters of each pair that only grow, so that an early post of the next epoch is kept and a
 * start is matched by peer and not by count.  They lie with their writer, which has an entry for each peer that it has had an
 * epoch with (pscw_counters.c: how a peer finds it).  api/ calls.
 *
 * Argument.  Every process has made its entries for the group's members before the steps.  Target T posts to origin O by adding
 * one to posts in T's entry for O (C1, release); O's start waits until that is above O's own completes to T (C2, acquire).  O
 * completes by adding one to completes in O's entry for T (C3, release: O's stores are published); T's wait waits until that
 * has come up to T's own posts to O (C4, acquire).
 * What a process has taken of its peer's counter need not be kept: it has one epoch of a kind at a time, so that a start has
 * taken as many posts of T as O has completed epochs to T, and all earlier exposures to O had their completes.  So completes <=
 * posts <= completes + 1, seen from either side, and C2 and C4 compare modulo 2^32.
 * Each counter has one writer.  An entry never moves: the peer waits at the counter itself, however many others are made
 * meanwhile.  Entries that exist and say 0, since their owner has started something else or its making of others failed, say
 * nothing.  MPI_MODE_NOCHECK changes nothing: the counters must advance all the same.
 * Machines.  A peer on another machine has no entry to look at: it sends a message for C1 and C3 as well, behind those of its
 * operations, and this process's agent counts it in an entry of this process's own, which theirs leads to (pscw_counters.c).
 * Members.  The own entries for the last group stay with the window, for the next epoch of the same one.  A start may change
 * those of starts from when it has set ORIEL_EPOCH_START to when it sets accessing; the complete that takes ORIEL_EPOCH_START
 * away reads them until it clears accessing, and no start goes on before that.  So threads that break the rules, which call these
 * at the same time, get ORIEL_E_SYNC.  exposed is the same for posts, but that waits and tests change nothing.
 * Death: O waits for T alone at C2, T for O alone at C4, and each watches the other; counters of the dead stay as they are. */
#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/access_words.h"
#include "sync/epoch.h"
#include "sync/pscw_counters.h"
#include "sync/sync.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* In the place of each of these ranks the own entry for it, made where there is none.  From the last on: entry i lies on the
 * ranks from 2 * i on, which are not needed any more.  After an error the ranks are lost, and what counts is as it was. */
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

/* The same step, by a message, where the peer is on another machine.  After an error the others are told all the same; the first
 * status counts. */
static enum oriel_status tell_far(struct oriel_window *window, const struct oriel_pscw_counter *own,
                                  enum oriel_status (*tell)(struct oriel_window *window,
                                                            int32_t rank),
                                  enum oriel_status first)
{
    int32_t rank = oriel_pscw_counter_rank(own);
    enum oriel_status status = oriel_is_far(window, rank) ? tell(window, rank) : ORIEL_OK;
    return first != ORIEL_OK ? first : status;
}

/* What was kept of another group goes.  Only by who may change it: window.h. */
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
        if (window->far != NULL)
            status = tell_far(window, posted->partners[i], oriel_internode_post, status);
    }
    return status;
}

static void give_up_start(struct oriel_window *window)
{
    atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_START, memory_order_relaxed);
}

/* Takes the right to change window->started, and the access words, until the epoch ends. */
static enum oriel_status claim_start(struct oriel_window *window)
{
    uint32_t epoch =
        atomic_fetch_or_explicit(&window->epoch, ORIEL_EPOCH_START, memory_order_relaxed);
    if (epoch & ORIEL_EPOCH_START)
        return oriel_fail(ORIEL_E_SYNC, "a start inside the access epoch of another start");
    const bool locks = (epoch & ORIEL_EPOCH_LOCK_ALL) || oriel_locks_held(window);
    if (!locks && !oriel_load_acquire(&window->accessing))
        return ORIEL_OK;
    give_up_start(window);
    return oriel_fail(ORIEL_E_SYNC,
                      locks ? "a start inside a lock" : "a start while another thread completes");
}

static void set_accesses(struct oriel_window *window, enum oriel_access access)
{
    _Atomic uint8_t *words = oriel_window_access(window);
    const struct oriel_members *started = &window->started;
    for (int32_t i = 0; i < started->count; i++)
        atomic_store_explicit(&words[oriel_pscw_counter_rank(started->partners[i])],
                              (uint8_t)access, memory_order_relaxed);
}

/* Everything that can fail for lack of memory, before anything else changes. */
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
        status = oriel_access_need(window);
    return status == ORIEL_OK ? oriel_epoch_leave_fence(window) : status;
}

/* Who has seen a counter writes beside it: the cache line is this processor's then, and the peer's next count gets it in one
 * exchange, where a line that both have takes a second one. */
static void take_line(struct oriel_pscw_counter *theirs)
{
    oriel_store_relaxed(&theirs->seen, 1);
}

/* Each of these waits for what the peer counts in its entry for this process, whose own for the peer is given. */
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
        take_line(theirs);
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
    set_accesses(window, ORIEL_ACCESS_STARTED);
    oriel_store_release(&window->accessing, 1);
    return ORIEL_OK;
}

enum oriel_status oriel_complete(struct oriel_window *window)
{
    if (!oriel_load_acquire(&window->accessing) ||
        !(atomic_fetch_and_explicit(&window->epoch, ~(uint32_t)ORIEL_EPOCH_START,
                                    memory_order_relaxed) &
          ORIEL_EPOCH_START))
        return oriel_fail(ORIEL_E_SYNC, "complete without start");
    enum oriel_status status = ORIEL_OK;
    const struct oriel_members *targets = &window->started;
    set_accesses(window, ORIEL_ACCESS_NONE);
    for (int32_t i = 0; i < targets->count; i++) {
        oriel_delay();
        if (window->far != NULL)
            status = tell_far(window, targets->partners[i], oriel_internode_complete, status);
        oriel_event_signal(&targets->partners[i]->completes); /* C3 */
    }
    if (window->far != NULL && status == ORIEL_OK)
        status = oriel_internode_take_failure(window->far); /* of what should have come here */
    oriel_store_release(&window->accessing, 0);
    return status;
}

/* The completes of all posted origins have come. */
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
        take_line(theirs);
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

/* The program polls: lets those run that it waits for and, every 100 ms, looks whether origin still lives. */
static enum oriel_status test_in_vain(struct oriel_window *window, int32_t origin)
{
    struct oriel_watched watched = {.window = window, .win_rank = origin};
    oriel_wait_progress();
    if (++window->tests_in_vain % 64 != 0)
        return ORIEL_OK;
    sched_yield();
    uint64_t now_ns = oriel_now_ns();
    if (now_ns - window->looked_ns < 100000000)
        return ORIEL_OK;
    window->looked_ns = now_ns;
    return oriel_liveness_rank(&watched);
}

static bool has_completed(const struct oriel_window *window, struct oriel_pscw_counter *own)
{
    struct oriel_pscw_counter *theirs = oriel_pscw_counters_theirs(window, own);
    /* C4 */
    return theirs != NULL &&
           oriel_wait_reached(oriel_load_acquire(&theirs->completes.value), ORIEL_WAIT_AT_LEAST,
                              oriel_load_relaxed(&own->posts.value));
}

enum oriel_status oriel_test_exposure(struct oriel_window *window, bool *done)
{
    *done = false;
    if (!oriel_load_acquire(&window->exposed))
        return oriel_fail(ORIEL_E_SYNC, "test without post");
    for (int32_t i = 0; i < window->posted.count; i++)
        if (!has_completed(window, window->posted.partners[i]))
            return test_in_vain(window, oriel_pscw_counter_rank(window->posted.partners[i]));
    close_exposure(window);
    *done = true;
    return ORIEL_OK;
}
