/* Requests to other nodes: one connection to each thread of each server, made on first use, and
 * used by one thread of this process at a time. The argument is in remote.h. */
#include "check/remote/remote.h"

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "check/order/member_state.h"
#include "check/order/rank_clocks.h"
#include "check/remote/remote_socket.h"
#include "check/report/finding.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, PARTS_MOST = 4 };

struct channel {
    pthread_mutex_t mutex;
    int fd; /* -1: not connected */
};

static struct {
    int *node_of;
    int world_size;
    int own, count;
    struct oriel_check_remote_address *addresses;
    struct channel (*channels)[THREADS]; /* by node */
    _Atomic bool lost;
    _Atomic bool gap; /* the server of another node has lost a process that asked it */
} remote;

bool oriel_check_remote_start(const int *node_of, int world_size, int own_node,
                              const struct oriel_check_remote_address *addresses, int nodes_count)
{
    size_t nodes = (size_t)(unsigned)nodes_count;
    remote.node_of = calloc((size_t)(unsigned)world_size, sizeof *remote.node_of);
    remote.addresses = calloc(nodes, sizeof *remote.addresses);
    remote.channels = calloc(nodes, sizeof *remote.channels);
    if (remote.node_of == NULL || remote.addresses == NULL || remote.channels == NULL)
        return false;
    memcpy(remote.node_of, node_of, (size_t)(unsigned)world_size * sizeof *node_of);
    memcpy(remote.addresses, addresses, nodes * sizeof *addresses);
    remote.world_size = world_size;
    remote.own = own_node;
    remote.count = nodes_count;
    remote.lost = remote.gap = false;
    for (size_t i = 0; i < nodes; i++)
        for (int thread = 0; thread < THREADS; thread++) {
            pthread_mutex_init(&remote.channels[i][thread].mutex, NULL);
            remote.channels[i][thread].fd = -1;
        }
    return true;
}

void oriel_check_remote_connect_all(void)
{
    oriel_check_remote_order_set();
}

void oriel_check_remote_stop(void)
{
    for (int i = 0; i < remote.count; i++)
        for (int thread = 0; thread < THREADS; thread++)
            if (remote.channels[i][thread].fd >= 0)
                close(remote.channels[i][thread].fd);
    remote.count = 0;
    free(remote.node_of);
    free(remote.addresses);
    free(remote.channels);
    remote.node_of = NULL;
    remote.addresses = NULL;
    remote.channels = NULL;
}

int oriel_check_remote_node_of(int world_rank)
{
    return world_rank < 0 || world_rank >= remote.world_size ? -1 : remote.node_of[world_rank];
}

int oriel_check_remote_own_node(void)
{
    return remote.own;
}

int oriel_check_remote_node_count(void)
{
    return remote.count;
}

bool oriel_check_remote_is_lost(void)
{
    return remote.lost || oriel_given_has_left();
}

void oriel_check_remote_set_gap(void)
{
    remote.gap = true;
}

bool oriel_check_remote_counts_all(void)
{
    return !remote.lost && !remote.gap && !oriel_given_client_was_lost();
}

static void channel_close(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = -1;
}

/* F4 */
static void node_mark_lost(void)
{
    if (atomic_exchange(&remote.lost, true))
        return;
    oriel_warn(
        "the checker of another node does not answer (%s): conflicts are no longer reported [O25]",
        oriel_fail_message());
    oriel_finding_count(
        "the checker of another node did not answer: later conflicts were not reported");
}

static bool channel_connect(struct channel *channel, int node, int thread)
{
    if (channel->fd < 0)
        channel->fd = oriel_check_remote_connect(&remote.addresses[node], thread);
    return channel->fd >= 0;
}

bool oriel_check_remote_try(void)
{
    for (int i = 0; i < remote.count; i++)
        for (int thread = 0; thread < THREADS && i != remote.own; thread++) {
            struct channel *channel = &remote.channels[i][thread];
            pthread_mutex_lock(&channel->mutex);
            bool connected = channel_connect(channel, i, thread);
            pthread_mutex_unlock(&channel->mutex);
            if (!connected)
                return false;
        }
    return true;
}

static bool request_exchange(int fd, struct iovec *parts, int count,
                             struct oriel_check_remote_answer *answer, void *data,
                             size_t room_bytes)
{
    bool answered = oriel_check_remote_write(fd, parts, count) &&
                    oriel_check_remote_read(fd, answer, sizeof *answer);
    bool fits = answered && answer->len_bytes <= room_bytes;
    if (fits && oriel_check_remote_read(fd, data, answer->len_bytes))
        return true;
    (void)oriel_fail(ORIEL_E_OTHER,
                     answered && !fits ? "its answer is too long"
                     : errno == EAGAIN ? "it did not answer for %d s"
                                       : "the connection was closed",
                     oriel_options()->timeout_s);
    return false;
}

bool oriel_check_remote_ask(int node, struct oriel_check_remote_request *request,
                            const struct iovec *parts, int parts_count,
                            struct oriel_check_remote_answer *answer, void *data, size_t room_bytes)
{
    int thread = request->kind >= ORIEL_CHECK_REMOTE_LEAVES;
    struct iovec all[PARTS_MOST] = {{.iov_base = request, .iov_len = sizeof *request}};
    if (node < 0 || node >= remote.count || remote.lost || !oriel_shm_is_open())
        return false;
    request->len_bytes = 0;
    for (int i = 0; i < parts_count; i++) {
        all[1 + i] = parts[i];
        request->len_bytes += parts[i].iov_len;
    }
    struct channel *channel = &remote.channels[node][thread];
    pthread_mutex_lock(&channel->mutex);
    bool answered = channel_connect(channel, node, thread) &&
                    request_exchange(channel->fd, all, parts_count + 1, answer, data, room_bytes);
    if (!answered) {
        channel_close(channel);
        if (request->kind < ORIEL_CHECK_REMOTE_QUIET)
            node_mark_lost();
    }
    pthread_mutex_unlock(&channel->mutex);
    return answered;
}

bool oriel_check_remote_member_state(int node, uint64_t window,
                                     const struct oriel_member_state_ask *ask,
                                     struct oriel_member_state_answer *answer)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_MEMBER_STATE,
                                                 .words = {window}};
    struct oriel_check_remote_answer about;
    struct iovec part = {.iov_base = (void *)(uintptr_t)ask, .iov_len = sizeof *ask};
    return oriel_check_remote_ask(node, &request, &part, 1, &about, answer, sizeof *answer) &&
           about.word != 0 && about.len_bytes == sizeof *answer;
}
