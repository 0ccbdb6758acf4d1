/* Several flushes in one round trip: all send their requests before any awaits its replies. Each
 * window's flushing is held from its first request to its last reply, as in a single flush
 * (origin_sync.c). A call that holds several acquires them in the order of the windows' serial
 * numbers, which is the same in all threads of the process, so two such calls do not deadlock.
 *
 * A flush that does not wait holds flushing while it sends. Its requests are then in the window's
 * list of open requests, where a later flush finds and awaits them. It has ended when no request is
 * left that was opened before its end of sending. Another flush that removes requests from the list
 * holds flushing until it has awaited them: meanwhile the state is unknown, and counts as not
 * ended.
 *
 * Order. A target serves this process's messages in sending order (net.h, N1), so messages need no
 * step. RDMA has no order with messages or with itself: where this process has a key of the
 * target's memory, order is a flush. Where it has none yet, the next operation may request it; its
 * reply follows all earlier messages (N2), and RDMA follows the reply. */
#include "internode/origin/flush_several.h"

#include "base/delay.h"
#include "internode/origin/origin_sync.h"

enum { CHECK_NS = 100000000 };

static bool is_internode_rank(const struct oriel_window *window, int rank)
{
    return (uint32_t)rank < (uint32_t)window->n && oriel_is_internode(window, rank);
}

enum oriel_status oriel_internode_flush_list(struct oriel_window *window, int n, const int ranks[])
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    bool is_asked;
    pthread_mutex_lock(&window->internode->flushing);
    for (int i = 0; i < n; i++)
        if (is_internode_rank(window, ranks[i]))
            oriel_flush_send(window, ranks[i], ORIEL_INTERNODE_SENT, ORIEL_INTERNODE_FLUSH, &first,
                             &is_asked);
    oriel_delay();
    for (int i = 0; i < n; i++)
        if (is_internode_rank(window, ranks[i]))
            oriel_flush_await(window, ranks[i], UINT64_MAX, &first);
    oriel_first_failure_record(&first, oriel_internode_take_failure(window->internode));
    pthread_mutex_unlock(&window->internode->flushing);
    return oriel_first_failure_raise(&first);
}

static void failure_record_of(struct oriel_window *window, struct oriel_first_failure *first,
                              struct oriel_window **failed)
{
    if (*failed == NULL && first->status != ORIEL_OK)
        *failed = window;
}

enum oriel_status oriel_internode_flush_windows(struct oriel_window *const windows[], int n,
                                                struct oriel_window **failed)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    bool is_asked;
    *failed = NULL;
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&windows[i]->internode->flushing);
        oriel_flush_send(windows[i], -1, ORIEL_INTERNODE_SENT, ORIEL_INTERNODE_FLUSH, &first,
                         &is_asked);
        failure_record_of(windows[i], &first, failed);
    }
    oriel_delay();
    for (int i = 0; i < n; i++) {
        oriel_flush_await(windows[i], -1, UINT64_MAX, &first);
        if (first.status == ORIEL_OK) /* other windows keep theirs for their next flush */
            oriel_first_failure_record(&first, oriel_internode_take_failure(windows[i]->internode));
        failure_record_of(windows[i], &first, failed);
        pthread_mutex_unlock(&windows[i]->internode->flushing);
    }
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_internode_flush_begin(struct oriel_window *window, int32_t target,
                                              struct oriel_internode_flush *flush)
{
    struct oriel_internode *internode = window->internode;
    struct oriel_first_failure first = {.status = ORIEL_OK};
    bool is_asked;
    pthread_mutex_lock(&internode->flushing);
    oriel_flush_send(window, target, ORIEL_INTERNODE_SENT, ORIEL_INTERNODE_FLUSH, &first,
                     &is_asked);
    pthread_mutex_lock(&internode->mutex);
    *flush = (struct oriel_internode_flush){.target = target, .until = internode->opened};
    pthread_mutex_unlock(&internode->mutex);
    pthread_mutex_unlock(&internode->flushing);
    oriel_net_progress(); /* the requests leave now */
    return oriel_first_failure_raise(&first);
}

/* The process of a request that the flush still awaits; NULL if there is none. */
static struct oriel_net_peer *awaited_peer(struct oriel_internode *internode,
                                           const struct oriel_internode_flush *flush)
{
    struct oriel_net_peer *peer = NULL;
    pthread_mutex_lock(&internode->mutex);
    for (const struct oriel_internode_request *request = internode->open;
         request != NULL && peer == NULL; request = request->next)
        if ((flush->target < 0 || request->target == flush->target) &&
            request->number <= flush->until &&
            !atomic_load_explicit(&request->net.done, memory_order_acquire))
            peer = request->net.peer;
    pthread_mutex_unlock(&internode->mutex);
    return peer;
}

bool oriel_internode_flush_has_ended(struct oriel_window *window,
                                     struct oriel_internode_flush *flush, enum oriel_status *status)
{
    struct oriel_internode *internode = window->internode;
    struct oriel_first_failure first = {.status = ORIEL_OK};
    if (pthread_mutex_trylock(&internode->flushing) != 0)
        return false;
    struct oriel_net_peer *peer = awaited_peer(internode, flush);
    if (peer == NULL) {
        oriel_flush_await(window, flush->target, flush->until, &first);
        oriel_first_failure_record(&first, oriel_internode_take_failure(internode));
    }
    pthread_mutex_unlock(&internode->flushing);
    *status = oriel_first_failure_raise(&first);
    if (peer != NULL && oriel_now_ns() - flush->checked_ns >= CHECK_NS) {
        (void)oriel_net_check(peer); /* its loss ends its requests */
        flush->checked_ns = oriel_now_ns();
    }
    return peer == NULL;
}

enum oriel_status oriel_internode_order(struct oriel_window *window, int32_t target)
{
    return oriel_internode_has_key(window, target) ? oriel_internode_flush(window, target)
                                                   : ORIEL_OK;
}
