/* The processes to which this one sends, its requests to them, and their answers. A peer is
 * connected at the first send and stays known, alive or lost, until the net stops. If the process
 * restarts its net, its unused peer gets the new session, and a peer that may still be accessed is
 * replaced. All functions here that access peers hold the origin's mutex.
 *
 * Flow control. A fast sender must not fill the memory of a slow receiver. So a peer's messages are
 * counted in halves of HALF_MESSAGES or HALF_BYTES. After each half a sync is requested, and the
 * next half ends by waiting for its answer. So at most two halves are outstanding without
 * confirmation. The agent's thread never waits: the syncs of other processes need it. */
#include "transport/ucx/internal.h"

#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF_MESSAGES = 512, HALF_BYTES = 4 << 20 };

/* --- known peers --- */

static uint64_t identity_key(const struct oriel_identity *identity)
{
    return identity->id[0] ^ identity->id[1];
}

struct oriel_net_peer *oriel_net_find(const struct oriel_identity *identity)
{
    struct oriel_net_peer *peer =
        oriel_net_is_started()
            ? oriel_hash_table_find(&oriel_net.by_identity, identity_key(identity))
            : NULL;
    while (peer != NULL && !oriel_identity_equal(&peer->identity, identity))
        peer = peer->same;
    return peer;
}

static struct oriel_net_peer *peer_create(const struct oriel_identity *identity,
                                          const struct oriel_wire_address *head,
                                          const void *address)
{
    struct oriel_net_peer *peer = malloc(sizeof *peer + head->agent_bytes);
    if (peer == NULL)
        return NULL;
    *peer = (struct oriel_net_peer){
        .identity = *identity, .session = head->session, .room_bytes = head->agent_bytes};
    peer->sync.done = true;
    memcpy(peer->address, (const char *)address + sizeof *head, head->agent_bytes);
    /* the same process, restarted */
    peer->same = oriel_hash_table_find(&oriel_net.by_identity, identity_key(identity));
    if (!oriel_hash_table_set(&oriel_net.by_identity, identity_key(identity), peer)) {
        free(peer);
        return NULL;
    }
    peer->next = oriel_net.peers;
    oriel_net.peers = peer;
    return peer;
}

bool oriel_net_disconnect_peer(struct oriel_net_peer *peer)
{
    bool is_ended = oriel_net_disconnect(&oriel_net.origin, &peer->end);
    return oriel_net_disconnect(&oriel_net.origin, &peer->device_end) && is_ended;
}

/* The process has restarted: its previous peer is unused, because a net stops when no window is
 * left. Returns false if that peer may still be accessed, its address room is too small, or its
 * connections do not close. */
static bool peer_renew(struct oriel_net_peer *peer, const struct oriel_wire_address *head,
                       const void *address)
{
    bool is_used =
        peer->open != 0 ||
        (peer->is_lost && !atomic_load_explicit(&peer->is_shunned, memory_order_acquire));
    if (is_used || oriel_net.origin.coalesce.destination == peer ||
        head->agent_bytes > peer->room_bytes)
        return false;
    if (!oriel_net_disconnect_peer(peer))
        return false;
    *peer = (struct oriel_net_peer){.identity = peer->identity,
                                    .next = peer->next,
                                    .same = peer->same,
                                    .session = head->session,
                                    .room_bytes = peer->room_bytes,
                                    .device_bytes = peer->device_bytes};
    peer->sync.done = true;
    memcpy(peer->address, (const char *)address + sizeof *head, head->agent_bytes);
    return true;
}

enum oriel_status oriel_net_open(const struct oriel_identity *identity, const void *address,
                                 size_t len_bytes, struct oriel_net_peer **out)
{
    struct oriel_wire_address head = {.version = 0}; /* no address yet */
    if (!oriel_net_is_started())
        return oriel_fail(ORIEL_E_OTHER, "messages to other nodes: UCX is not started");
    if (len_bytes >= sizeof head)
        memcpy(&head, address, sizeof head);
    if (head.version != ORIEL_WIRE_VERSION || len_bytes < sizeof head + head.agent_bytes)
        return oriel_fail(ORIEL_E_OTHER,
                          "the address of process %d is not of this version of Oriel",
                          (int)identity->pid);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    struct oriel_net_peer *peer = oriel_net_find(identity);
    const bool is_new = peer == NULL || peer->session != head.session;
    if (is_new && (peer == NULL || !peer_renew(peer, &head, address)))
        peer = peer_create(identity, &head, address);
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    /* if the process is lost from now on, the existing peer is lost, too */
    if (is_new && oriel_net_is_session_lost(head.session))
        oriel_net_lose_session(head.session);
    *out = peer;
    return peer != NULL ? ORIEL_OK
                        : oriel_fail(ORIEL_E_NO_MEM, "no memory for a process on another node");
}

/* --- sending --- */

static struct oriel_wire peer_wire(const struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                                   size_t head_bytes, uint64_t number)
{
    return (struct oriel_wire){.version = ORIEL_WIRE_VERSION,
                               .kind = (uint16_t)kind,
                               .head_bytes = (uint16_t)head_bytes,
                               .from = oriel_net.session,
                               .to = peer->session,
                               .sequence = peer->sent,
                               .number = number};
}

static void peer_count_sent(struct oriel_net_peer *peer, size_t len_bytes)
{
    peer->sent++; /* N1 */
    peer->half_messages++;
    peer->half_bytes += len_bytes;
}

void oriel_net_note_broken(struct oriel_net_peer *peer, const char *what, ucs_status_t status)
{
    if (peer->why[0] == '\0')
        snprintf(peer->why, sizeof peer->why, "%s to process %d on another node: %s", what,
                 (int)peer->identity.pid, oriel_ucp_status_text(status));
    peer->is_broken = true;
    oriel_net.any_broken = true;
}

static void peer_send_buffer(struct oriel_net_peer *peer, struct oriel_ucx_buffer *buffer)
{
    ucs_status_t status = oriel_net_send(&oriel_net.origin, &peer->end, buffer);
    if (status != UCS_OK)
        oriel_net_note_broken(peer, "cannot send", status);
}

void oriel_net_send_coalesced(void)
{
    struct oriel_net_peer *peer = oriel_net.origin.coalesce.destination;
    if (peer == NULL)
        return;
    struct oriel_ucx_buffer *buffer = oriel_coalesce_take(&oriel_net.origin.coalesce);
    if (peer->end.ep != NULL)
        peer_send_buffer(peer, buffer);
    else
        oriel_pool_give(&oriel_net.origin.pool, buffer);
}

/* Coalesces a message with others for the same peer. Returns false if it must be sent alone. */
static bool message_coalesce(struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                             uint64_t number, const struct oriel_net_bytes *bytes)
{
    struct oriel_net_worker *origin = &oriel_net.origin;
    struct oriel_wire wire = peer_wire(peer, kind, bytes->head_bytes, number);
    if (origin->coalesce.destination != NULL && origin->coalesce.destination != peer)
        oriel_net_send_coalesced();
    if (!oriel_coalesce_add(&origin->coalesce, &origin->pool, peer, &wire, bytes)) {
        if (origin->coalesce.destination == NULL)
            return false;
        oriel_net_send_coalesced(); /* it was full */
        if (!oriel_coalesce_add(&origin->coalesce, &origin->pool, peer, &wire, bytes))
            return false;
    }
    peer_count_sent(peer, 0); /* small: only their number counts */
    return true;
}

bool oriel_net_send_to(struct oriel_net_peer *peer, enum oriel_wire_kind kind, uint64_t number,
                       const struct oriel_net_bytes *bytes)
{
    if (kind != ORIEL_WIRE_PING && oriel_net.origin.coalesce.destination != NULL) {
        bool together = oriel_net.origin.coalesce.destination == peer &&
                        message_coalesce(peer, kind, number, bytes);
        oriel_net_send_coalesced();
        if (together)
            return true;
    }
    struct oriel_wire wire = peer_wire(peer, kind, bytes->head_bytes, number);
    struct oriel_ucx_buffer *buffer = oriel_net_pack(&oriel_net.origin, &wire, bytes);
    if (buffer == NULL)
        return false;
    if (kind != ORIEL_WIRE_PING)
        peer_count_sent(peer, buffer->len_bytes);
    peer_send_buffer(peer, buffer);
    return true;
}

static void peer_connection_broken(void *user_data, ucp_ep_h ep, ucs_status_t status)
{
    struct oriel_net_peer *peer = user_data;
    if (peer->end.ep == ep)
        oriel_net_note_broken(peer, "lost the connection", status);
}

bool oriel_net_connect_peer(struct oriel_net_peer *peer)
{
    ucs_status_t status = UCS_OK;
    if (peer->is_lost)
        return false;
    if (peer->end.ep != NULL)
        return true;
    peer->end.ep = oriel_net_connect(oriel_net.origin.ucp, peer->address, peer_connection_broken,
                                     peer, &status);
    if (peer->end.ep == NULL) {
        char why[sizeof peer->why];
        snprintf(why, sizeof why, "no connection to process %d on another node: %s",
                 (int)peer->identity.pid, oriel_ucp_status_text(status));
        oriel_net_lose_peer(peer, why);
        return false;
    }
    const struct iovec hello[] = {{&oriel_net.self, sizeof oriel_net.self},
                                  {oriel_net.origin_address, oriel_net.origin_address_bytes}};
    if (oriel_net_send_to(peer, ORIEL_WIRE_HELLO, 0,
                          &(struct oriel_net_bytes){.data = hello, .pieces = 2}))
        return true;
    /* nothing may be sent before its hello */
    (void)oriel_net_disconnect(&oriel_net.origin, &peer->end);
    return false;
}

bool oriel_net_ask_internal(struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                            struct oriel_net_request *request)
{
    request->take = NULL;
    request->end = NULL;
    if (!oriel_net_add_request(peer, request))
        return false;
    if (oriel_net_send_to(peer, kind, request->number, &(struct oriel_net_bytes){.pieces = 0}))
        return true;
    oriel_net_remove_request(request);
    oriel_net_end_request(request, ORIEL_E_NO_MEM);
    return false;
}

/* Waits before a message until flow control allows it. The mutex is held, but released
 * meanwhile. */
static void flow_control_wait(struct oriel_net_peer *peer)
{
    while (!peer->is_lost &&
           (peer->half_messages >= HALF_MESSAGES || peer->half_bytes >= HALF_BYTES)) {
        if (atomic_load_explicit(&peer->sync.done, memory_order_acquire)) {
            peer->half_messages = 0;
            peer->half_bytes = 0;
            oriel_net_ask_internal(peer, ORIEL_WIRE_SYNC, &peer->sync);
            return;
        }
        if (oriel_net_in_agent)
            return;
        oriel_net_leave();
        (void)oriel_net_await(&peer->sync, NULL);
        pthread_mutex_lock(&oriel_net.origin.mutex);
    }
}

static enum oriel_status peer_error(const struct oriel_net_peer *peer)
{
    return oriel_fail(ORIEL_E_PEER, "%s", peer->why);
}

static enum oriel_status peer_send_message(struct oriel_net_peer *peer, enum oriel_wire_kind kind,
                                           const struct oriel_net_bytes *message,
                                           struct oriel_net_request *request, bool later)
{
    enum oriel_status status = ORIEL_OK;
    uint64_t number = 0;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    bool is_reached = oriel_net_connect_peer(peer);
    if (is_reached)
        flow_control_wait(peer);
    if (peer->is_lost)
        status = peer_error(peer);
    else if (!is_reached || (request != NULL && !oriel_net_add_request(peer, request)))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a message to another node");
    if (status == ORIEL_OK && request != NULL)
        number = request->number;
    if (status == ORIEL_OK && !(later && message_coalesce(peer, kind, number, message)) &&
        !oriel_net_send_to(peer, kind, number, message)) {
        if (request != NULL)
            oriel_net_remove_request(request);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a message to another node");
    }
    if (oriel_net.any_broken)
        oriel_net_lose_broken_peers();
    oriel_net_leave();
    return status;
}

enum oriel_status oriel_net_tell(struct oriel_net_peer *peer, const struct oriel_net_bytes *message)
{
    return peer_send_message(peer, ORIEL_WIRE_TOLD, message, NULL, false);
}

enum oriel_status oriel_net_tell_later(struct oriel_net_peer *peer,
                                       const struct oriel_net_bytes *message)
{
    return peer_send_message(peer, ORIEL_WIRE_TOLD, message, NULL, true);
}

static enum oriel_status request_send(struct oriel_net_peer *peer,
                                      const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request, bool later)
{
    request->peer = peer;
    enum oriel_status status = peer_send_message(peer, ORIEL_WIRE_ASKED, message, request, later);
    if (status != ORIEL_OK) {
        request->status = status;
        atomic_store_explicit(&request->done, true, memory_order_release);
    }
    return status;
}

enum oriel_status oriel_net_ask(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                struct oriel_net_request *request)
{
    return request_send(peer, message, request, false);
}

enum oriel_status oriel_net_ask_later(struct oriel_net_peer *peer,
                                      const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request)
{
    return request_send(peer, message, request, true);
}

/* --- the end of a peer --- */

void oriel_net_lose_peer(struct oriel_net_peer *peer, const char *why)
{
    if (peer->is_lost)
        return;
    memmove(peer->why, why, strnlen(why, sizeof peer->why - 1) + 1);
    peer->why[sizeof peer->why - 1] = '\0';
    uint32_t asked =
        peer->open - (atomic_load_explicit(&peer->sync.done, memory_order_relaxed) ? 0 : 1);
    if (asked != 0)
        oriel_note("%s; lost answers: %u", peer->why, (unsigned)asked);
    atomic_store_explicit(&peer->is_lost, true, memory_order_release);
    (void)oriel_net_disconnect_peer(peer);
    for (uint32_t i = 0; i < oriel_net.request_room; i++) {
        struct oriel_net_request *request = oriel_net.requests[i];
        if (request == NULL || request->peer != peer)
            continue;
        oriel_net_remove_request(request);
        oriel_net_end_request(request, ORIEL_E_PEER); /* N4 */
    }
    peer->next_lost = atomic_load_explicit(&oriel_net.lost, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&oriel_net.lost, &peer->next_lost, peer,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    oriel_net_wake_agent();
}

void oriel_net_lose_broken_peers(void)
{
    oriel_net.any_broken = false;
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next) {
        if (peer->is_broken && !peer->is_lost)
            oriel_net_lose_peer(peer, peer->why);
    }
}

void oriel_net_lose_session(uint64_t session)
{
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next) {
        if (peer->session != session || peer->is_lost)
            continue;
        if (peer->why[0] == '\0')
            snprintf(peer->why, sizeof peer->why,
                     "process %d on another node can no longer send messages here",
                     (int)peer->identity.pid);
        oriel_net_lose_peer(peer, peer->why);
    }
    pthread_mutex_unlock(&oriel_net.origin.mutex);
}

void oriel_net_note_bye(uint64_t session)
{
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next) {
        if (peer->session != session || peer->is_lost)
            continue;
        peer->has_left = true;
        if (atomic_load_explicit(&peer->sync.done, memory_order_relaxed))
            continue;
        oriel_net_remove_request(&peer->sync);
        oriel_net_end_request(&peer->sync, ORIEL_OK);
    }
    pthread_mutex_unlock(&oriel_net.origin.mutex);
}

/* --- answers --- */

static void pong_receive(const struct oriel_wire *wire)
{
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        if (peer->session == wire->from)
            peer->silence_ns = 0;
}

static void answer_receive(const struct oriel_wire *wire, const char *head, const char *data,
                           size_t len_bytes)
{
    struct oriel_net_request *request =
        oriel_net.request_room == 0
            ? NULL
            : oriel_net.requests[wire->number & (oriel_net.request_room - 1)];
    if (request == NULL || request->number != wire->number || request->peer->session != wire->from)
        return; /* from a lost peer */
    request->peer->silence_ns = 0;
    if (request->take != NULL)
        request->take(request,
                      &(struct oriel_net_received){head, wire->head_bytes, data, len_bytes});
    oriel_net.answered++;
    oriel_net_remove_request(request);
    oriel_net_end_request(request, ORIEL_OK);
}

/* Copy of unaligned data; static, so no answer is lost for lack of memory. */
static _Alignas(16) char aligned_data[ORIEL_NET_DATA_BYTES];

/* Handles coalesced answers; data is aligned. */
static void answers_receive_coalesced(const char *at, size_t left_bytes)
{
    struct oriel_wire wire;
    uint64_t head[ORIEL_NET_HEAD_BYTES / sizeof(uint64_t)];
    const char *head_at;
    const char *data;
    while (oriel_coalesce_next(&at, &left_bytes, &wire, &head_at, &data)) {
        if (wire.kind != ORIEL_WIRE_ANSWER || wire.to != oriel_net.session)
            continue;
        memcpy(head, head_at, wire.head_bytes);
        answer_receive(&wire, (const char *)head, data, wire.len_bytes);
    }
}

ucs_status_t oriel_net_receive_reply(void *unused, const void *header, size_t header_bytes,
                                     void *data, size_t len_bytes,
                                     const ucp_am_recv_param_t *parameters)
{
    struct oriel_wire wire;
    uint64_t head[ORIEL_NET_HEAD_BYTES / sizeof(uint64_t)];
    (void)unused;
    if (!oriel_net_unpack(
            &(struct oriel_net_raw){header, header_bytes, data, len_bytes, parameters}, &wire))
        return UCS_OK;
    if (wire.kind == ORIEL_WIRE_PONG) {
        pong_receive(&wire);
        return UCS_OK;
    }
    if (wire.kind != ORIEL_WIRE_ANSWER && wire.kind != ORIEL_WIRE_COALESCED)
        return UCS_OK;
    if ((uintptr_t)data % sizeof(uint64_t) != 0)
        data = memcpy(aligned_data, data, len_bytes);
    if (wire.kind == ORIEL_WIRE_COALESCED) {
        answers_receive_coalesced(data, len_bytes);
        return UCS_OK;
    }
    memcpy(head, (const char *)header + sizeof wire, wire.head_bytes);
    answer_receive(&wire, (const char *)head, data, len_bytes);
    return UCS_OK;
}
