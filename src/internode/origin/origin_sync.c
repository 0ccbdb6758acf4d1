/* The origin's side of memory and locks of internode ranks. It sends messages and requests, and
 * waits until the requests are done. The flags below are those of enum oriel_internode_target_flag.
 *
 * Flush. Flag SENT is set after a message is sent (F1). A flush clears the flag (F2) before it
 * sends its own request (F3), whose reply confirms that all earlier messages were served (net.h,
 * N2). Consider another thread's operation at F1. If it finds the flag set, it was sent before F2,
 * so before F3: this flush completes it. If it finds the flag cleared, it sets the flag again, for
 * the next flush. The flushing thread awaits outstanding requests one by one. A second flush waits
 * for the first (flushing): the first may have removed requests from the list that the second must
 * wait for.
 *
 * RDMA. RDMA puts have no order with messages. Flag RDMA_SENT is set, and cleared by a flush, as
 * SENT is (F1, F2). The flush then requests a check whether all puts have arrived (F3). An unlock
 * or complete is sent only after that check (D1).
 *
 * lock_all acquires no locks of internode targets, except where the previous epoch kept an
 * exclusive lock waiting (WRITER_WAITS). The first operation on a target acquires its lock
 * (LOCKED); unlock_all releases these locks. Epochs that acquire them in any order do not deadlock
 * with each other or with single locks (lock_all_queue.c, J1 to J4). Two origins that hold locks of
 * several targets each, one by lock_all and one by exclusive locks, can deadlock. On one node the
 * gate would admit one of them first. MPI promises no order of locks.
 *
 * oriel_internode_lock returns with an acquired lock (eager). A lazy lock (lazy_lock.c) is awaited
 * before any other lock is requested. MPI lets an implementation acquire it after that, but
 * programs that acquire several locks in one order everywhere rely on this. With MPI_MODE_NOCHECK
 * no lock is acquired (trusted).
 *
 * internode->mutex is never held around calls of the net, since the net calls
 * oriel_internode_reply_check with its own lock held. */
#include "internode/origin/origin_sync.h"

#include "base/delay.h"
#include "internode/origin/flush_several.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_peers.h"
#include "internode/origin/rma_requests.h"
#include "internode/origin/target_flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MOST = 1024 };

/* --- messages --- */

enum oriel_status oriel_internode_send(struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer *peer,
                                       struct oriel_internode_head *head, const struct iovec *data,
                                       unsigned pieces)
{
    oriel_lazy_lock_before_message(window, target, data, pieces);
    oriel_internode_address(window, target, head);
    struct oriel_net_bytes bytes = {head, sizeof *head, data, pieces};
    /* the target may await a notification, while this process need not call again */
    enum oriel_status status =
        (head->notifies != 0 ? oriel_net_tell : oriel_net_tell_later)(peer, &bytes);
    if (status != ORIEL_OK)
        return oriel_internode_send_status(status, target);
    oriel_delay();
    oriel_internode_flag_set(window->internode, target, ORIEL_INTERNODE_SENT); /* F1 */
    return ORIEL_OK;
}

void oriel_internode_operation_failed(struct oriel_internode *internode, enum oriel_status status,
                                      uint64_t number, const char *text, bool is_cause)
{
    pthread_mutex_lock(&internode->mutex);
    if (internode->failure == ORIEL_OK || is_cause) {
        internode->failure = status;
        internode->failure_number = number;
        snprintf(internode->failure_text, sizeof internode->failure_text, "%s", text);
    }
    pthread_mutex_unlock(&internode->mutex);
}

bool oriel_internode_reply_check(struct oriel_internode_request *request,
                                 const struct oriel_net_received *answer)
{
    struct oriel_internode *internode = request->window->internode;
    const struct oriel_internode_reply *reply = answer->head;
    if (request->is_rdma)
        return true;
    if (answer->head_bytes == ORIEL_INTERNODE_REPLY_OK_BYTES && reply->status == ORIEL_OK)
        return true;
    char text[sizeof internode->failure_text];
    bool whole = answer->head_bytes == sizeof *reply && reply->status != ORIEL_OK &&
                 reply->status < ORIEL_STATUS_COUNT;
    enum oriel_status status = whole ? (enum oriel_status)reply->status : ORIEL_E_OTHER;
    snprintf(text, sizeof text, "access to rank %d: %.*s", (int)request->target,
             (int)sizeof reply->text, whole ? reply->text : "a malformed reply");
    oriel_internode_operation_failed(
        internode, status, request->pending != NULL ? request->pending->number : 0, text, false);
    if (request->pending != NULL && request->pending->status == ORIEL_OK) {
        request->pending->status = status;
        memcpy(request->pending->text, text, sizeof text);
    }
    return false;
}

/* Removes the open requests of a target, or of all for -1, with numbers of at most until, from the
 * window's list and returns them. */
static struct oriel_internode_request *take_open_requests(struct oriel_internode *internode,
                                                          int32_t target, uint64_t until)
{
    struct oriel_internode_request *taken = NULL;
    pthread_mutex_lock(&internode->mutex);
    for (struct oriel_internode_request **link = &internode->open; *link != NULL;) {
        struct oriel_internode_request *request = *link;
        if ((target >= 0 && request->target != target) || request->number > until) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        internode->open_count--;
        request->next = taken;
        taken = request;
    }
    pthread_mutex_unlock(&internode->mutex);
    return taken;
}

void oriel_flush_await(struct oriel_window *window, int32_t target, uint64_t until,
                       struct oriel_first_failure *first)
{
    oriel_lazy_lock_await_at(window, target);
    struct oriel_internode_request *request = take_open_requests(window->internode, target, until);
    while (request != NULL) {
        struct oriel_internode_request *next = request->next;
        struct oriel_watched watched = {.window = window, .win_rank = request->target};
        struct oriel_watch watch = {oriel_liveness_none, &watched, ORIEL_WAITING_NODE};
        oriel_first_failure_record(
            first,
            oriel_internode_send_status(oriel_net_await(&request->net, &watch), request->target));
        oriel_rma_request_release(request);
        request = next;
    }
}

enum oriel_status oriel_internode_take_failure(struct oriel_internode *internode)
{
    char text[sizeof internode->failure_text];
    pthread_mutex_lock(&internode->mutex);
    enum oriel_status status = internode->failure;
    memcpy(text, internode->failure_text, sizeof text);
    internode->failure = ORIEL_OK;
    pthread_mutex_unlock(&internode->mutex);
    return status == ORIEL_OK ? ORIEL_OK : oriel_fail(status, "%s", text);
}

/* With internode->mutex held: removes requests whose replies have arrived, unless their peer is
 * lost. Returns how many are left. */
static unsigned release_done_requests(struct oriel_internode *internode)
{
    for (struct oriel_internode_request **link = &internode->open; *link != NULL;) {
        struct oriel_internode_request *request = *link;
        if (!atomic_load_explicit(&request->net.done, memory_order_acquire) ||
            request->net.status != ORIEL_OK) {
            link = &request->next;
            continue;
        }
        *link = request->next;
        internode->open_count--;
        oriel_rma_request_release(request);
    }
    return internode->open_count;
}

static void request_begin(struct oriel_window *window, int32_t target, struct oriel_net_peer *peer,
                          struct oriel_internode_request *request)
{
    request->window = window;
    request->target = target;
    oriel_rma_request_attach(request, peer);
}

/* After the request was sent, or sending it failed. */
static enum oriel_status request_sent(enum oriel_status status,
                                      struct oriel_internode_request *request, bool *many)
{
    struct oriel_internode *internode = request->window->internode;
    const int32_t target = request->target;
    *many = false;
    if (status != ORIEL_OK) {
        oriel_rma_request_detach(request);
        return oriel_internode_send_status(status, target);
    }
    pthread_mutex_lock(&internode->mutex);
    request->next = internode->open;
    internode->open = request;
    request->number = ++internode->opened;
    *many = ++internode->open_count > OPEN_MOST && release_done_requests(internode) > OPEN_MOST;
    pthread_mutex_unlock(&internode->mutex);
    return ORIEL_OK;
}

/* Sends a request. *many: too many requests are open, so the caller must wait for some. */
static enum oriel_status open_request(struct oriel_window *window, int32_t target,
                                      struct oriel_net_peer *peer,
                                      struct oriel_internode_head *head, const struct iovec *data,
                                      unsigned pieces, struct oriel_internode_request *request,
                                      bool *many)
{
    oriel_internode_address(window, target, head);
    struct oriel_net_bytes bytes = {head, sizeof *head, data, pieces};
    request_begin(window, target, peer, request);
    return request_sent(
        (head->notifies != 0 ? oriel_net_ask : oriel_net_ask_later)(peer, &bytes, &request->net),
        request, many);
}

/* Awaits the open requests with numbers of at most until. reports: the caller is a flush, which
 * returns failures. Otherwise too many requests are open, and a refusal is left to the call that
 * completes the operation. */
static enum oriel_status await_open_requests(struct oriel_window *window, int32_t target,
                                             uint64_t until, bool reports)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    pthread_mutex_lock(&window->internode->flushing);
    oriel_flush_await(window, target, until, &first);
    if (reports)
        oriel_first_failure_record(&first, oriel_internode_take_failure(window->internode));
    pthread_mutex_unlock(&window->internode->flushing);
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_internode_send_request(struct oriel_window *window, int32_t target,
                                               struct oriel_net_peer *peer,
                                               struct oriel_internode_head *head,
                                               const struct iovec *data, unsigned pieces,
                                               struct oriel_internode_request *request)
{
    bool many;
    oriel_lazy_lock_before_message(window, target, data, pieces);
    enum oriel_status status =
        open_request(window, target, peer, head, data, pieces, request, &many);
    return many ? await_open_requests(window, -1, UINT64_MAX, false) : status;
}

static bool lock_is_refused(const struct oriel_window *window, int32_t target)
{
    return oriel_unlikely(
        atomic_load_explicit(&window->internode->target_flags[target], memory_order_relaxed) &
        ORIEL_INTERNODE_LOCK_REFUSED);
}

/* RDMA does not wait for a lock, nor can its target refuse it (lazy_lock.c, K3). */
static enum oriel_status check_rdma_allowed(const struct oriel_window *window, int32_t target)
{
    oriel_lazy_lock_await_at(window, target);
    if (!lock_is_refused(window, target))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_OTHER,
                      "access to rank %d: nothing was done, since the lock was refused",
                      (int)target);
}

enum oriel_status oriel_internode_rdma_put(struct oriel_window *window, int32_t target,
                                           struct oriel_net_key *key, uint64_t offset_bytes,
                                           const void *from, size_t len_bytes)
{
    enum oriel_status status = check_rdma_allowed(window, target);
    if (status != ORIEL_OK)
        return status;
    status = oriel_net_put(key, offset_bytes, from, len_bytes);
    if (status != ORIEL_OK)
        return oriel_internode_send_status(status, target);
    oriel_delay();
    oriel_internode_flag_set(window->internode, target, ORIEL_INTERNODE_RDMA_SENT); /* F1 */
    return ORIEL_OK;
}

enum oriel_status oriel_internode_rdma_get(struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *peer, struct oriel_net_key *key,
                                           uint64_t offset_bytes, size_t len_bytes,
                                           struct oriel_internode_request *request)
{
    bool many;
    enum oriel_status status = check_rdma_allowed(window, target);
    request_begin(window, target, peer, request);
    if (status != ORIEL_OK) {
        oriel_rma_request_detach(request);
        return status;
    }
    request->is_rdma = true;
    status =
        request_sent(oriel_net_get(key, offset_bytes, len_bytes, &request->net), request, &many);
    return many ? await_open_requests(window, -1, UINT64_MAX, false) : status;
}

/* F3 of RDMA puts. */
static enum oriel_status send_rdma_check(struct oriel_window *window, int32_t target)
{
    bool many;
    struct oriel_net_peer *peer;
    enum oriel_status status = oriel_internode_peer(window, target, &peer);
    if (status != ORIEL_OK)
        return status;
    struct oriel_internode_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a flush");
    request_begin(window, target, peer, request);
    request->is_rdma = true;
    return request_sent(oriel_net_request_arrival(peer, &request->net), request, &many);
}

/* With flushing held: requests a check for all targets with flag RDMA_SENT. Returns whether there
 * were any. *lacks: memory was short, and some targets are still to be flushed. */
static bool send_rdma_checks(struct oriel_window *window, int32_t target,
                             struct oriel_first_failure *first, bool *lacks)
{
    bool any = false;
    int32_t rank;
    *lacks = false;
    while ((rank = oriel_internode_flag_take(window->internode, target,
                                             ORIEL_INTERNODE_RDMA_SENT)) >= 0) { /* F2 */
        oriel_delay();
        enum oriel_status status = send_rdma_check(window, rank);
        if (status == ORIEL_E_NO_MEM) { /* open requests use memory */
            oriel_flush_await(window, -1, UINT64_MAX, first);
            status = send_rdma_check(window, rank);
        }
        oriel_first_failure_record(first, status);
        if (status == ORIEL_E_NO_MEM) {
            oriel_internode_flag_set(window->internode, rank, ORIEL_INTERNODE_RDMA_SENT);
            *lacks = true;
            return any;
        }
        any = true;
    }
    return any;
}

static void ignore_reply_data(struct oriel_net_request *request,
                              const struct oriel_net_received *answer)
{
    (void)oriel_internode_reply_check((struct oriel_internode_request *)request, answer);
}

/* A request that a lock preallocated for its unlock; NULL if there is none. */
static struct oriel_internode_request *unlock_request_take(struct oriel_internode *internode)
{
    pthread_mutex_lock(&internode->mutex);
    struct oriel_internode_request *request = internode->unlock_requests;
    if (request != NULL)
        internode->unlock_requests = request->next;
    pthread_mutex_unlock(&internode->mutex);
    return request;
}

static void unlock_request_store(struct oriel_internode *internode,
                                 struct oriel_internode_request *request)
{
    pthread_mutex_lock(&internode->mutex);
    request->next = internode->unlock_requests;
    internode->unlock_requests = request;
    pthread_mutex_unlock(&internode->mutex);
}

/* F3, or an unlock in its place. */
static enum oriel_status send_flush(struct oriel_window *window, int32_t target,
                                    enum oriel_internode_kind kind)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = kind};
    enum oriel_status status = oriel_internode_peer(window, target, &peer);
    if (status != ORIEL_OK)
        return status;
    struct oriel_internode_request *request =
        kind == ORIEL_INTERNODE_UNLOCK ? unlock_request_take(window->internode) : NULL;
    if (request == NULL)
        request = calloc(1, sizeof *request);
    if (request == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a flush");
    request->net.take = ignore_reply_data;
    bool many; /* ignored: the flush awaits them all */
    return open_request(window, target, peer, &head, NULL, 0, request, &many);
}

void oriel_flush_send(struct oriel_window *window, int32_t target,
                      enum oriel_internode_target_flag mark, enum oriel_internode_kind kind,
                      struct oriel_first_failure *first, bool *is_asked)
{
    struct oriel_internode *internode = window->internode;
    bool lacks;
    if (send_rdma_checks(window, target, first, &lacks) && kind == ORIEL_INTERNODE_UNLOCK)
        oriel_flush_await(window, target, UINT64_MAX, first); /* D1 */
    /* F2; nothing is sent after puts that may not have arrived */
    int32_t rank = lacks ? -1 : oriel_internode_flag_take(internode, target, mark);
    if (kind == ORIEL_INTERNODE_UNLOCK && target >= 0 && !lacks)
        rank = target; /* also if another thread has flushed it */
    *is_asked = !lacks;
    while (rank >= 0) {
        oriel_delay();
        enum oriel_status status = send_flush(window, rank, kind);
        if (status == ORIEL_E_NO_MEM) { /* open requests use memory */
            oriel_flush_await(window, -1, UINT64_MAX, first);
            status = send_flush(window, rank, kind);
        }
        oriel_first_failure_record(first, status);
        *is_asked = status != ORIEL_E_NO_MEM;
        /* this target and all that follow are still to be flushed */
        if (!*is_asked)
            oriel_internode_flag_set(internode, rank, mark);
        rank = target < 0 && *is_asked ? oriel_internode_flag_take(internode, -1, mark) : -1;
    }
}

/* Sends requests to all targets with the flag, then awaits all open requests. *is_asked: false if
 * memory was short. */
static enum oriel_status flush_targets(struct oriel_window *window, int32_t target,
                                       enum oriel_internode_target_flag mark,
                                       enum oriel_internode_kind kind, bool *is_asked)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    pthread_mutex_lock(&window->internode->flushing);
    oriel_flush_send(window, target, mark, kind, &first, is_asked);
    oriel_flush_await(window, target, UINT64_MAX, &first);
    oriel_first_failure_record(&first, oriel_internode_take_failure(window->internode));
    pthread_mutex_unlock(&window->internode->flushing);
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_internode_flush(struct oriel_window *window, int32_t target)
{
    bool is_asked;
    return flush_targets(window, target, ORIEL_INTERNODE_SENT, ORIEL_INTERNODE_FLUSH, &is_asked);
}

enum oriel_status oriel_internode_flush_rdma(struct oriel_window *window, int32_t target)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    pthread_mutex_lock(&window->internode->flushing);
    bool lacks;
    (void)send_rdma_checks(window, target, &first, &lacks);
    oriel_flush_await(window, target, UINT64_MAX, &first);
    pthread_mutex_unlock(&window->internode->flushing);
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_internode_flush_local(struct oriel_window *window, int32_t target)
{
    return await_open_requests(window, target, UINT64_MAX, true);
}

enum oriel_status oriel_internode_flush_until(struct oriel_window *window, int32_t target,
                                              uint64_t until)
{
    return await_open_requests(window, target, until, true);
}

uint64_t oriel_internode_last_request(struct oriel_window *window)
{
    pthread_mutex_lock(&window->internode->mutex);
    const uint64_t number = window->internode->opened;
    pthread_mutex_unlock(&window->internode->mutex);
    return number;
}

/* --- locks --- */

typedef enum oriel_status question_fn(const struct oriel_window *window, int32_t target,
                                      struct oriel_net_peer *peer,
                                      struct oriel_internode_head *head,
                                      struct oriel_internode_question **out);

static enum oriel_status send_lock(struct oriel_window *window, int32_t target,
                                   enum oriel_internode_wanted wanted, question_fn *by,
                                   struct oriel_internode_question **question)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {
        .kind = ORIEL_INTERNODE_LOCK, .a = wanted, .b = by == oriel_internode_question_queue};
    /* preallocated, so that an acquired lock can be released */
    struct oriel_internode_request *unlock = calloc(1, sizeof *unlock);
    enum oriel_status status =
        unlock == NULL ? oriel_fail(ORIEL_E_NO_MEM, "no memory for a lock and its unlock")
                       : oriel_internode_peer(window, target, &peer);
    if (status == ORIEL_OK)
        status = by(window, target, peer, &head, question);
    if (status == ORIEL_OK)
        unlock_request_store(window->internode, unlock);
    else
        free(unlock);
    return status;
}

/* *is_followed: the target's reply to a lock_all epoch. */
static enum oriel_status lock_acquire(struct oriel_window *window, int32_t target,
                                      enum oriel_internode_wanted wanted, bool *is_followed)
{
    struct oriel_internode_question *question;
    oriel_lazy_lock_await();
    enum oriel_status status =
        send_lock(window, target, wanted, oriel_internode_question, &question);
    if (status != ORIEL_OK)
        return status;
    *is_followed = oriel_internode_question_number(question) != 0;
    free(question);
    return ORIEL_OK;
}

enum oriel_status oriel_internode_lock(struct oriel_window *window, int32_t target, bool exclusive)
{
    bool is_followed;
    return lock_acquire(window, target,
                        exclusive ? ORIEL_INTERNODE_WANTS_EXCLUSIVE : ORIEL_INTERNODE_WANTS_SHARED,
                        &is_followed);
}

enum oriel_status oriel_internode_begin(struct oriel_window *window,
                                        enum oriel_internode_wanted wanted)
{
    bool is_followed;
    return lock_acquire(window, 0, wanted, &is_followed);
}

enum oriel_status oriel_internode_lock_lazy(struct oriel_window *window, int32_t target,
                                            bool exclusive)
{
    struct oriel_internode_question *question;
    enum oriel_status status = send_lock(
        window, target, exclusive ? ORIEL_INTERNODE_WANTS_EXCLUSIVE : ORIEL_INTERNODE_WANTS_SHARED,
        oriel_internode_question_queue, &question);
    if (status == ORIEL_OK)
        oriel_lazy_lock_begin(window, target, question);
    return status;
}

/* Inside lock_all, with internode->entering held. */
static enum oriel_status lock_all_acquire(struct oriel_window *window, int32_t target,
                                          enum oriel_internode_wanted wanted)
{
    bool is_followed;
    enum oriel_status status = lock_acquire(window, target, wanted, &is_followed);
    if (status != ORIEL_OK)
        return status;
    oriel_delay();
    oriel_internode_flag_set(window->internode, target, ORIEL_INTERNODE_LOCKED);
    if (is_followed)
        oriel_internode_flag_set(window->internode, target, ORIEL_INTERNODE_WRITER_WAITS); /* J2 */
    return ORIEL_OK;
}

void oriel_internode_lock_followed(struct oriel_window *window)
{
    pthread_mutex_lock(&window->internode->entering);
    for (int32_t rank = -1;
         (rank = oriel_internode_flag_next(window->internode, rank,
                                           ORIEL_INTERNODE_WRITER_WAITS)) >= 0;) { /* J3 */
        (void)oriel_internode_flag_take(window->internode, rank, ORIEL_INTERNODE_WRITER_WAITS);
        (void)lock_all_acquire(window, rank, ORIEL_INTERNODE_WANTS_ALL_IN_TURN);
    }
    pthread_mutex_unlock(&window->internode->entering);
}

enum oriel_status oriel_internode_unlock(struct oriel_window *window, int32_t target, bool trusted,
                                         bool *is_given_back)
{
    enum oriel_status status =
        flush_targets(window, target, ORIEL_INTERNODE_SENT,
                      trusted ? ORIEL_INTERNODE_FLUSH : ORIEL_INTERNODE_UNLOCK, is_given_back);
    if (*is_given_back && lock_is_refused(window, target))
        (void)oriel_internode_flag_take(window->internode, target, ORIEL_INTERNODE_LOCK_REFUSED);
    return status;
}

enum oriel_status oriel_internode_unlock_all(struct oriel_window *window, bool trusted,
                                             bool *is_given_back)
{
    return trusted ? flush_targets(window, -1, ORIEL_INTERNODE_SENT, ORIEL_INTERNODE_FLUSH,
                                   is_given_back)
                   : flush_targets(window, -1, ORIEL_INTERNODE_LOCKED, ORIEL_INTERNODE_UNLOCK,
                                   is_given_back);
}

enum oriel_status oriel_internode_enter(struct oriel_window *window, int32_t target,
                                        struct oriel_net_peer **peer)
{
    enum oriel_status status = oriel_internode_peer(window, target, peer);
    uint32_t epoch = oriel_load_relaxed(&window->epoch);
    if (status != ORIEL_OK || !(epoch & ORIEL_EPOCH_LOCK_ALL) || (epoch & ORIEL_EPOCH_NOCHECK) ||
        (atomic_load_explicit(&window->internode->target_flags[target], memory_order_acquire) &
         ORIEL_INTERNODE_LOCKED))
        return status;
    pthread_mutex_lock(&window->internode->entering); /* one thread acquires it */
    if (!(atomic_load_explicit(&window->internode->target_flags[target], memory_order_acquire) &
          ORIEL_INTERNODE_LOCKED))
        status = lock_all_acquire(window, target, ORIEL_INTERNODE_WANTS_ALL);
    pthread_mutex_unlock(&window->internode->entering);
    return status;
}
