/* Finds the processes of internode ranks: known ones by identity, leaders of nodes in the window's
 * table, others by a request to the leader of their node. Also has the counters of their posts and
 * completes in this process. A process stays known until the net stops. */
#include "internode/origin/origin_peers.h"

#include "internode/origin/liveness.h"
#include "window/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct oriel_nodes *oriel_internode_nodes(const struct oriel_window *window)
{
    return (const struct oriel_nodes *)((const char *)window->common +
                                        window->common->nodes_offset);
}

_Static_assert(sizeof(struct oriel_identity) + ORIEL_NET_ADDRESS_BYTES <= ORIEL_NET_KEY_BYTES,
               "an address is an answer, too");

struct oriel_internode_question {
    struct oriel_net_request net;
    struct oriel_internode_reply answer;
    size_t len_bytes;
    _Alignas(uint64_t) char data[ORIEL_NET_KEY_BYTES];
};

static void question_take_reply(struct oriel_net_request *request,
                                const struct oriel_net_received *answer)
{
    struct oriel_internode_question *question = (struct oriel_internode_question *)request;
    if (answer->head_bytes == ORIEL_INTERNODE_REPLY_OK_BYTES ||
        answer->head_bytes == sizeof question->answer)
        memcpy(&question->answer, answer->head, answer->head_bytes);
    question->len_bytes =
        answer->len_bytes < sizeof question->data ? answer->len_bytes : sizeof question->data;
    memcpy(question->data, answer->data, question->len_bytes);
}

enum oriel_status oriel_internode_send_status(enum oriel_status status, int32_t target)
{
    char reason[300];
    if (status == ORIEL_OK)
        return ORIEL_OK;
    snprintf(reason, sizeof reason, "%s", oriel_fail_message());
    return oriel_fail(status, "rank %d %s: %s", (int)target,
                      status == ORIEL_E_PEER ? "is lost" : "could not be reached", reason);
}

static enum oriel_status refusal_status(int32_t target, uint32_t status, const char *text)
{
    return oriel_fail(status < ORIEL_STATUS_COUNT ? (enum oriel_status)status : ORIEL_E_OTHER,
                      "access to rank %d: %s", (int)target, text);
}

void oriel_internode_address(const struct oriel_window *window, int32_t target,
                             struct oriel_internode_head *head)
{
    head->window = window->targets[target].offset;
    /* the owner of a memory handle knows this process as rank 1 (window/holders.h) */
    head->from = oriel_window_is_opened(window) ? 1 : window->rank;
}

typedef enum oriel_status ask_fn(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                 struct oriel_net_request *request);

/* On failure the request is done, or was never accepted. */
static enum oriel_status question_send(const struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer *peer,
                                       struct oriel_internode_head *head, const struct iovec *data,
                                       ask_fn *by, struct oriel_internode_question **out)
{
    struct oriel_internode_question *question = calloc(1, sizeof *question);
    *out = NULL;
    if (question == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a request");
    question->net.take = question_take_reply;
    question->answer.status = ORIEL_E_OTHER;
    oriel_internode_address(window, target, head);
    struct oriel_net_bytes bytes = {head, sizeof *head, data, data != NULL};
    enum oriel_status status =
        oriel_internode_send_status(by(peer, &bytes, &question->net), target);
    if (status == ORIEL_OK)
        *out = question;
    else
        free(question);
    return status;
}

/* A refusal is a reply, too. */
static enum oriel_status question_await(const struct oriel_window *window, int32_t target,
                                        struct oriel_internode_question **question)
{
    struct oriel_watched watched = {.window = window, .win_rank = target};
    struct oriel_watch watch = {oriel_liveness_none, &watched, ORIEL_WAITING_NODE};
    enum oriel_status status =
        oriel_internode_send_status(oriel_net_await(&(*question)->net, &watch), target);
    if (status != ORIEL_OK) {
        free(*question);
        *question = NULL;
    }
    return status;
}

enum oriel_status oriel_internode_question_queue(const struct oriel_window *window, int32_t target,
                                                 struct oriel_net_peer *peer,
                                                 struct oriel_internode_head *head,
                                                 struct oriel_internode_question **out)
{
    return question_send(window, target, peer, head, NULL, oriel_net_ask_later, out);
}

enum oriel_status oriel_internode_question_await(const struct oriel_window *window, int32_t target,
                                                 struct oriel_internode_question **question)
{
    struct oriel_internode_reply *answer = &(*question)->answer;
    enum oriel_status status = question_await(window, target, question);
    if (status != ORIEL_OK || answer->status == ORIEL_OK)
        return status;
    answer->text[sizeof answer->text - 1] = '\0';
    status = refusal_status(target, answer->status, answer->text);
    free(*question);
    *question = NULL;
    return status;
}

enum oriel_status oriel_internode_question_with(const struct oriel_window *window, int32_t target,
                                                struct oriel_net_peer *peer,
                                                struct oriel_internode_head *head,
                                                const struct iovec *data,
                                                struct oriel_internode_question **out)
{
    enum oriel_status status = question_send(window, target, peer, head, data, oriel_net_ask, out);
    return status == ORIEL_OK ? oriel_internode_question_await(window, target, out) : status;
}

enum oriel_status oriel_internode_question(const struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *peer,
                                           struct oriel_internode_head *head,
                                           struct oriel_internode_question **out)
{
    return oriel_internode_question_with(window, target, peer, head, NULL, out);
}

uint64_t oriel_internode_question_number(const struct oriel_internode_question *question)
{
    uint64_t number = 0;
    if (question->len_bytes == sizeof number)
        memcpy(&number, question->data, sizeof number);
    return number;
}

const void *oriel_internode_question_data(const struct oriel_internode_question *question,
                                          size_t *len_bytes)
{
    *len_bytes = question->len_bytes;
    return question->data;
}

/* Opens the process that a leader's reply names. The leader is trusted only for the process it was
 * asked about. Frees the question. */
static enum oriel_status peer_open_from_reply(const struct oriel_window *window,
                                              const struct oriel_node_entry *node,
                                              struct oriel_internode_question *question,
                                              int32_t target, struct oriel_net_peer **peer)
{
    struct oriel_identity who;
    enum oriel_status status;
    memcpy(&who, question->data, sizeof who);
    if (question->len_bytes <= sizeof who ||
        memcmp(who.id, window->group->ids[target].id, sizeof who.id) != 0)
        status = oriel_fail(ORIEL_E_OTHER, "rank %d has no address of rank %d", (int)node->leader,
                            (int)target);
    else
        status = oriel_net_open(&who, question->data + sizeof who, question->len_bytes - sizeof who,
                                peer);
    free(question);
    return status;
}

static const struct oriel_node_entry *node_of_target(const struct oriel_window *window,
                                                     int32_t target)
{
    return &oriel_internode_nodes(window)->node[window->targets[target].control_offset];
}

/* Sends no message. *peer is NULL if only *leader knows the process. A window that was opened from
 * a memory handle knows its peer, and has no nodes. */
static enum oriel_status peer_find(const struct oriel_window *window, int32_t target,
                                   struct oriel_net_peer **leader, struct oriel_net_peer **peer)
{
    struct oriel_identity known = {.memory_fd = -1};
    memcpy(known.id, window->group->ids[target].id, sizeof known.id);
    *peer = atomic_load_explicit(&window->group->net_peers[target], memory_order_acquire);
    if (*peer == NULL)
        *peer = oriel_net_find(&known);
    if (*peer != NULL)
        return ORIEL_OK;
    const struct oriel_nodes *nodes = oriel_internode_nodes(window);
    const struct oriel_node_entry *node = node_of_target(window, target);
    enum oriel_status status = oriel_net_open(&node->process, (const char *)nodes + node->address,
                                              node->address_bytes, leader);
    if (status == ORIEL_OK && target == node->leader)
        *peer = *leader;
    return status;
}

static enum oriel_status peer_connect(const struct oriel_window *window, int32_t target,
                                      struct oriel_net_peer **peer)
{
    const struct oriel_node_entry *node = node_of_target(window, target);
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_ADDRESS, .a = (uint64_t)target};
    struct oriel_internode_question *question;
    struct oriel_net_peer *leader;
    enum oriel_status status = peer_find(window, target, &leader, peer);
    if (status != ORIEL_OK || *peer != NULL)
        return status;
    status = oriel_internode_question(window, node->leader, leader, &head, &question);
    return status != ORIEL_OK ? status : peer_open_from_reply(window, node, question, target, peer);
}

enum oriel_status oriel_internode_peer(const struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer **peer)
{
    _Atomic(struct oriel_net_peer *) *known = &window->group->net_peers[target];
    *peer = atomic_load_explicit(known, memory_order_acquire);
    if (oriel_likely(*peer != NULL))
        return ORIEL_OK;
    enum oriel_status status = peer_connect(window, target, peer);
    if (status == ORIEL_OK)
        atomic_store_explicit(known, *peer, memory_order_release);
    return status;
}

enum oriel_status oriel_internode_check_serving(const struct oriel_window *window, int32_t target,
                                                struct oriel_net_peer *peer, int32_t *dead)
{
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_ADDRESS, .a = (uint64_t)target};
    struct oriel_internode_question *question;
    enum oriel_status status =
        question_send(window, target, peer, &head, NULL, oriel_net_ask, &question);
    if (status == ORIEL_OK)
        status = question_await(window, target, &question);
    *dead = target;
    if (status == ORIEL_OK && question->answer.status == ORIEL_E_PEER) {
        uint64_t named = oriel_internode_question_number(question) - 1;
        *dead = named < (uint64_t)window->n ? (int32_t)named : target;
        status = oriel_fail(
            ORIEL_E_PEER, "rank %d has died, and rank %d has left the window because of that [O18]",
            (int)*dead, (int)target);
    }
    free(question);
    return status == ORIEL_E_PEER ? status : ORIEL_OK;
}

static void leader_send_question(struct oriel_window *window, int32_t target,
                                 struct oriel_net_peer *leader)
{
    struct oriel_internode *internode = window->internode;
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_ADDRESS, .a = (uint64_t)target};
    if (internode->asked != NULL)
        return; /* one request at a time */
    if (question_send(window, node_of_target(window, target)->leader, leader, &head, NULL,
                      oriel_net_ask, &internode->asked) == ORIEL_OK)
        internode->asked_rank = target;
}

struct oriel_net_peer *oriel_internode_peer_known(struct oriel_window *window, int32_t target)
{
    struct oriel_internode *internode = window->internode;
    struct oriel_net_peer *leader = NULL;
    struct oriel_net_peer *peer = NULL;
    if (internode->asked != NULL &&
        atomic_load_explicit(&internode->asked->net.done, memory_order_acquire)) {
        struct oriel_internode_question *question = internode->asked;
        internode->asked = NULL;
        (void)peer_open_from_reply(window, node_of_target(window, internode->asked_rank), question,
                                   internode->asked_rank, &peer);
    }
    if (peer_find(window, target, &leader, &peer) != ORIEL_OK)
        return NULL;
    if (peer == NULL)
        leader_send_question(window, target, leader);
    return peer != NULL ? peer : leader;
}

void oriel_internode_question_abandon(struct oriel_internode_question *question)
{
    if (question != NULL && atomic_load_explicit(&question->net.done, memory_order_acquire))
        free(question);
}

void oriel_internode_peers_close(struct oriel_window *window)
{
    oriel_internode_question_abandon(window->internode->asked);
    window->internode->asked = NULL;
}

struct oriel_pscw_counter *oriel_internode_partner(struct oriel_window *window, int32_t rank)
{
    struct oriel_internode *internode = window->internode;
    uint64_t key = (uint64_t)rank + 1;
    struct oriel_pscw_counter *partner = oriel_hash_table_find(&internode->partners, key);
    if (partner != NULL)
        return partner;
    /* the program's thread and the agent's may run this concurrently */
    pthread_mutex_lock(&internode->mutex);
    partner = oriel_hash_table_find(&internode->partners, key);
    if (partner == NULL && oriel_internode_has_spare_partner(internode)) {
        partner = internode->spare_partner;
        internode->spare_partner = NULL;
        atomic_init(&partner->peer, (uint32_t)key);
        (void)oriel_hash_table_set(&internode->partners, key, partner); /* room is reserved */
        /* on failure the next call tries again */
        (void)oriel_internode_has_spare_partner(internode);
    }
    pthread_mutex_unlock(&internode->mutex);
    return partner;
}
