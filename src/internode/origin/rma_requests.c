/* Operations with outstanding replies (rma_requests.h). The request of a message that belongs to
 * such an operation has two owners: the flush that awaits it, and the end of its reply, which
 * counts it. The last owner frees it. So a flush completes an operation without knowing it. An
 * operation may be freed, awaited and flushed in any order and by any thread. */
#include "internode/origin/rma_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_NS = 100000000 };

static _Thread_local struct oriel_rma_request *begun; /* by this thread, and not sent */
static _Atomic uint64_t last_number;
static _Atomic uint32_t unanswered;               /* number of operations that have not ended */
static _Atomic(struct oriel_rma_request *) ended; /* newest first */
static _Atomic uint64_t checked_ns;
/* acquired before the net's own lock */
static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
/* all operations that take_ended has not returned; watching */
static struct oriel_rma_request *watched;

void oriel_rma_request_end(struct oriel_rma_request *pending)
{
    if (atomic_fetch_sub_explicit(&pending->open, 1, memory_order_acq_rel) != 1)
        return;
    pending->next_ended = atomic_load_explicit(&ended, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &ended, &pending->next_ended, pending, memory_order_release, memory_order_relaxed)) /* E1 */
        ;
    atomic_fetch_sub_explicit(&unanswered, 1, memory_order_release);
}

void oriel_rma_request_add(struct oriel_rma_request *pending, int32_t target)
{
    *pending = (struct oriel_rma_request){.target = target, .status = ORIEL_OK};
    pending->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    atomic_init(&pending->open, 1); /* E2 */
    atomic_fetch_add_explicit(&unanswered, 1, memory_order_relaxed);
    pthread_mutex_lock(&watching);
    pending->next = watched;
    if (watched != NULL)
        watched->before = pending;
    watched = pending;
    pthread_mutex_unlock(&watching);
}

void oriel_rma_request_begin(struct oriel_rma_request *pending, int32_t target)
{
    oriel_rma_request_add(pending, target);
    begun = pending;
}

void oriel_rma_request_sent(struct oriel_rma_request *pending)
{
    begun = NULL;
    oriel_rma_request_end(pending);
}

struct oriel_rma_request *oriel_rma_request_take_ended(void)
{
    if (atomic_load_explicit(&ended, memory_order_relaxed) == NULL)
        return NULL;
    struct oriel_rma_request *taken =
        atomic_exchange_explicit(&ended, NULL, memory_order_acquire); /* E1 */
    pthread_mutex_lock(&watching);
    for (struct oriel_rma_request *pending = taken; pending != NULL;
         pending = pending->next_ended) {
        if (pending->next != NULL)
            pending->next->before = pending->before;
        if (pending->before != NULL)
            pending->before->next = pending->next;
        else
            watched = pending->next;
    }
    pthread_mutex_unlock(&watching);
    return taken;
}

/* Checks whether each target lives, once for a sequence of operations on it. The loss of a target
 * ends its operations. */
static void check_targets(void)
{
    struct oriel_net_peer *last = NULL;
    pthread_mutex_lock(&watching);
    for (struct oriel_rma_request *pending = watched; pending != NULL; pending = pending->next) {
        struct oriel_net_peer *peer = atomic_load_explicit(&pending->peer, memory_order_relaxed);
        if (peer == NULL || peer == last ||
            atomic_load_explicit(&pending->open, memory_order_relaxed) == 0)
            continue;
        (void)oriel_net_check(peer);
        last = peer;
    }
    pthread_mutex_unlock(&watching);
}

void oriel_rma_request_progress(void)
{
    if (atomic_load_explicit(&unanswered, memory_order_acquire) == 0)
        return;
    oriel_net_progress();
    uint64_t now_ns = oriel_now_ns();
    uint64_t before_ns = atomic_load_explicit(&checked_ns, memory_order_relaxed);
    if (now_ns - before_ns >= CHECK_NS &&
        atomic_compare_exchange_strong_explicit(&checked_ns, &before_ns, now_ns,
                                                memory_order_relaxed, memory_order_relaxed))
        check_targets();
}

enum oriel_status oriel_rma_request_tell(const struct oriel_rma_request *pending,
                                         struct oriel_window *window)
{
    if (window != NULL) {
        pthread_mutex_lock(&window->internode->mutex);
        if (window->internode->failure_number == pending->number)
            window->internode->failure = ORIEL_OK;
        pthread_mutex_unlock(&window->internode->mutex);
    }
    return oriel_fail(pending->status, "%s", pending->text);
}

/* The last step of a message, with the net's lock held. */
static void request_reply_end(struct oriel_net_request *net)
{
    struct oriel_internode_request *request = (struct oriel_internode_request *)net;
    struct oriel_rma_request *pending = request->pending;
    if (net->status != ORIEL_OK && pending->status == ORIEL_OK) {
        pending->status = net->status;
        snprintf(pending->text, sizeof pending->text, "rank %d is lost", (int)request->target);
    }
    oriel_rma_request_release(request);
    oriel_rma_request_end(pending);
}

void oriel_rma_request_attach(struct oriel_internode_request *request, struct oriel_net_peer *peer)
{
    request->pending = begun;
    request->net.end = NULL;
    if (begun == NULL)
        return;
    request->net.end = request_reply_end;
    atomic_init(&request->owners, 2);
    atomic_store_explicit(&begun->peer, peer, memory_order_relaxed);
    atomic_fetch_add_explicit(&begun->open, 1, memory_order_relaxed);
}

void oriel_rma_request_detach(struct oriel_internode_request *request)
{
    if (request->pending != NULL)
        atomic_fetch_sub_explicit(&request->pending->open, 1,
                                  memory_order_relaxed); /* not the last share: E2 */
    free(request);
}

void oriel_rma_request_release(struct oriel_internode_request *request)
{
    if (request->pending == NULL ||
        atomic_fetch_sub_explicit(&request->owners, 1, memory_order_acq_rel) == 1)
        free(request);
}
