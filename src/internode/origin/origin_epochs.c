/* PSCW epochs and barriers with internode ranks, at the origin. Posts and completes are messages
 * after those of the operations. In a barrier one rank of each node, the last to arrive, exchanges
 * messages with the other nodes. A rank that finds another rank lost notifies all nodes
 * (oriel_internode_notify_lost). */
#include "internode/origin/origin_sync.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_peers.h"

#include <stdio.h>

static enum oriel_status send_kind(struct oriel_window *window, int32_t target,
                                   enum oriel_internode_kind kind, uint64_t a)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = kind, .a = a};
    struct oriel_net_bytes bytes = {&head, sizeof head, NULL, 0};
    enum oriel_status status = oriel_internode_peer(window, target, &peer);
    if (status != ORIEL_OK)
        return status;
    oriel_internode_address(window, target, &head);
    return oriel_internode_send_status(oriel_net_tell(peer, &bytes), target);
}

enum oriel_status oriel_internode_post(struct oriel_window *window, int32_t target)
{
    return send_kind(window, target, ORIEL_INTERNODE_POST, 0);
}

enum oriel_status oriel_internode_complete(struct oriel_window *window, int32_t target)
{
    enum oriel_status status = oriel_internode_flush_rdma(window, target); /* origin_sync.c, D1 */
    return status != ORIEL_OK ? status : send_kind(window, target, ORIEL_INTERNODE_COMPLETE, 0);
}

/* Whether the node that the barrier waits for can still arrive. */
struct node_wait {
    struct oriel_watched watched; /* first: the watch receives it as its context */
    struct oriel_net_peer *leader;
    int32_t rank;
    unsigned looks;
};

/* All other ranks of this node may have left, so this rank checks them itself. It also checks the
 * first rank of the other node, which it knows. The other node's ranks may never arrive, though
 * they live: they leave the window if a rank dies during its creation. */
static enum oriel_status watch_node(void *context)
{
    struct node_wait *waiting = context;
    enum oriel_status status = oriel_liveness_all(&waiting->watched);
    if (status == ORIEL_OK && ++waiting->looks % ORIEL_WATCH_ASKS == 0)
        status = oriel_internode_check_serving(waiting->watched.window, waiting->rank,
                                               waiting->leader, &waiting->watched.dead);
    return status;
}

/* In round k each node signals the node 2^k after it and waits for the node 2^k before it. After
 * the last round each node has heard of all others, directly or through other nodes. A message of
 * the next barrier's round may be counted early. This is safe: its node sent it after it passed
 * this barrier, so after all nodes arrived. */
enum oriel_status oriel_internode_barrier(struct oriel_window *window, uint32_t number,
                                          int32_t *lost_rank)
{
    struct oriel_nodes *nodes = (struct oriel_nodes *)(uintptr_t)oriel_internode_nodes(window);
    int32_t count = nodes->count;
    enum oriel_status status = ORIEL_OK;
    for (int32_t round = 0, step = 1; step < count && status == ORIEL_OK; round++, step *= 2) {
        struct node_wait waiting = {.watched = {.window = window, .win_rank = -1},
                                    .rank =
                                        nodes->node[(nodes->own + count - step) % count].leader};
        struct oriel_watch watch = {watch_node, &waiting, ORIEL_WAITING_FENCE};
        *lost_rank = nodes->node[(nodes->own + step) % count].leader;
        oriel_delay();
        status = send_kind(window, *lost_rank, ORIEL_INTERNODE_ARRIVED, (uint64_t)round);
        if (status != ORIEL_OK)
            break;
        waiting.watched.dead = waiting.rank;
        status = oriel_internode_peer(window, waiting.rank, &waiting.leader);
        if (status == ORIEL_OK)
            status = oriel_internode_event_wait(window, &nodes->arrived[round], number, &watch);
        *lost_rank = waiting.watched.dead;
    }
    return status;
}

void oriel_internode_notify_lost(struct oriel_window *window, int32_t rank)
{
    const struct oriel_nodes *nodes = oriel_internode_nodes(window);
    char text[400]; /* preserves the thread's last failure */
    snprintf(text, sizeof text, "%s", oriel_fail_message());
    for (int32_t i = 0; i < nodes->count; i++)
        if (i != nodes->own && nodes->node[i].leader != rank)
            (void)send_kind(window, nodes->node[i].leader, ORIEL_INTERNODE_LOST, (uint64_t)rank);
    (void)oriel_fail(ORIEL_E_PEER, "%s", text);
}

void oriel_internode_window_break(struct oriel_window *window, int32_t rank)
{
    uint32_t whole = 0;
    if (atomic_compare_exchange_strong_explicit(&window->common->broken, &whole, (uint32_t)rank + 1,
                                                memory_order_release, memory_order_relaxed) &&
        window->internode != NULL)
        oriel_internode_notify_lost(window, rank);
}
