/* The processes that send to this one: their messages are ordered here, and answered. A sender is
 * known from its first message until the net stops, so late messages after its end are recognised.
 * It is also forgotten when its process has stopped and restarted its net under another session:
 * after that no late messages arrive. So there are at most two senders for each process. The
 * agent's thread receives messages, with the agent's mutex held. Any thread may answer.
 *
 * Order (N1). The sender counts its messages. A message that arrives early is queued until all
 * before it have arrived; a duplicate is dropped. Ready messages go into one list. The thread
 * serves it in order after its turn, without the mutex, so an answer from another thread does not
 * wait for a message that is being served. BYE is the last message that becomes ready: once it has
 * been served, its sender may be forgotten. */
#include "transport/ucx/internal.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { EARLY_MOST = 8192 };

void oriel_net_drop_early(struct oriel_net_sender *sender)
{
    while (sender->early != NULL) {
        struct oriel_net_message *held = sender->early;
        sender->early = held->next;
        oriel_net_free_message(held);
    }
    sender->early_count = 0;
}

void oriel_net_free_message(struct oriel_net_message *held)
{
    oriel_pool_give(&oriel_net.agent.pool, held->buffer);
}

bool oriel_net_has_spare_sender(void)
{
    if (oriel_net.spare_sender == NULL && oriel_hash_table_reserve(&oriel_net.by_session))
        oriel_net.spare_sender = malloc(sizeof *oriel_net.spare_sender);
    return oriel_net.spare_sender != NULL;
}

static struct oriel_net_sender *sender_find_or_create(uint64_t session)
{
    struct oriel_net_sender *sender = oriel_hash_table_find(&oriel_net.by_session, session);
    if (sender != NULL)
        return sender;
    if (!oriel_net_has_spare_sender()) {
        oriel_warn("no memory for a process on another node: its messages are dropped [O19]");
        return NULL;
    }
    sender = oriel_net.spare_sender;
    oriel_net.spare_sender = NULL;
    *sender = (struct oriel_net_sender){.session = session};
    (void)oriel_hash_table_set(&oriel_net.by_session, session, sender); /* there is room */
    sender->next = oriel_net.senders;
    oriel_net.senders = sender;
    (void)oriel_net_has_spare_sender(); /* or the next call tries */
    return sender;
}

static void sender_end(struct oriel_net_sender *sender)
{
    sender->has_ended = true;
    oriel_net.any_ended = true;
}

/* --- answers --- */

/* Answers to this sender are no longer possible. Its process is then lost, unless it or this
 * process ends. */
static void sender_note_broken(struct oriel_net_sender *sender, ucs_status_t status)
{
    bool is_end =
        sender->has_ended || atomic_load_explicit(&oriel_net.is_ending, memory_order_relaxed);
    if (!is_end && !sender->is_broken)
        oriel_note("the connection back to process %d on another node broke: %s",
                   (int)sender->identity.pid, oriel_ucp_status_text(status));
    sender->is_broken = true;
    oriel_net.any_sender_broken = true;
}

static void answer_buffer_send(struct oriel_net_sender *sender, struct oriel_ucx_buffer *buffer)
{
    ucs_status_t status = oriel_net_send(&oriel_net.agent, &sender->end, buffer);
    if (status != UCS_OK)
        sender_note_broken(sender, status);
}

static void answers_send_coalesced(void)
{
    struct oriel_net_sender *sender = oriel_net.agent.coalesce.destination;
    if (sender == NULL)
        return;
    struct oriel_ucx_buffer *buffer = oriel_coalesce_take(&oriel_net.agent.coalesce);
    if (sender->end.ep == NULL)
        oriel_pool_give(&oriel_net.agent.pool, buffer);
    else
        answer_buffer_send(sender, buffer);
}

/* An answer is coalesced with others to the same sender until this thread has served all ready
 * messages. */
static bool answer_coalesce(struct oriel_net_sender *sender, const struct oriel_wire *wire,
                            const struct oriel_net_bytes *bytes)
{
    struct oriel_net_worker *agent = &oriel_net.agent;
    if (agent->coalesce.destination != NULL && agent->coalesce.destination != sender)
        answers_send_coalesced();
    if (oriel_coalesce_add(&agent->coalesce, &agent->pool, sender, wire, bytes))
        return true;
    if (agent->coalesce.destination == NULL)
        return false;
    answers_send_coalesced(); /* it was full */
    return oriel_coalesce_add(&agent->coalesce, &agent->pool, sender, wire, bytes);
}

void oriel_net_send_answers(void)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    answers_send_coalesced();
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

static void answer_send(struct oriel_net_sender *sender, enum oriel_wire_kind kind, uint64_t number,
                        const struct oriel_net_bytes *bytes)
{
    struct oriel_wire wire = {.version = ORIEL_WIRE_VERSION,
                              .kind = (uint16_t)kind,
                              .head_bytes = (uint16_t)bytes->head_bytes,
                              .from = oriel_net.session,
                              .to = sender->session,
                              .number = number};
    if (sender->end.ep == NULL)
        return;
    if (kind == ORIEL_WIRE_ANSWER && oriel_net_in_agent && answer_coalesce(sender, &wire, bytes))
        return;
    if (oriel_net.agent.coalesce.destination == sender)
        answers_send_coalesced();
    struct oriel_ucx_buffer *buffer = oriel_net_pack(&oriel_net.agent, &wire, bytes);
    if (buffer != NULL) {
        answer_buffer_send(sender, buffer);
        return;
    }
    oriel_warn("no memory for an answer to another node: the connection is closed [O19]");
    sender->is_broken = true;
    oriel_net.any_sender_broken = true;
}

void oriel_net_answer(const struct oriel_net_requester *asker, const struct oriel_net_bytes *answer)
{
    if (!oriel_net_enter(&oriel_net.agent))
        return;
    struct oriel_net_sender *sender = oriel_hash_table_find(&oriel_net.by_session, asker->words[0]);
    if (sender != NULL)
        answer_send(sender, ORIEL_WIRE_ANSWER, asker->words[1], answer);
    bool must_wake = !oriel_net_in_agent &&
                     atomic_load_explicit(&oriel_net.agent.pending, memory_order_relaxed) != 0;
    if (must_wake)
        oriel_net_wake_agent();
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

/* --- messages --- */

static void message_make_ready(struct oriel_net_message *held)
{
    held->next = NULL;
    *oriel_net.ready_end = held;
    oriel_net.ready_end = &held->next;
    held->sender->expected++;
    held->sender->says_bye |= held->wire.kind == ORIEL_WIRE_BYE;
}

static void message_order(struct oriel_net_sender *sender, struct oriel_net_message *held)
{
    uint64_t ahead = held->wire.sequence - sender->expected;
    if (sender->says_bye) {
        oriel_net_free_message(held);
        return;
    }
    if (ahead == 0) {
        message_make_ready(held);
        while (sender->early != NULL && sender->early->wire.sequence == sender->expected &&
               !sender->says_bye) { /* N1 */
            held = sender->early;
            sender->early = held->next;
            sender->early_count--;
            message_make_ready(held);
        }
        return;
    }
    struct oriel_net_message **link = &sender->early;
    while (*link != NULL && (*link)->wire.sequence < held->wire.sequence)
        link = &(*link)->next;
    bool is_twice = *link != NULL && (*link)->wire.sequence == held->wire.sequence;
    if (ahead > UINT64_MAX / 2 || is_twice) {
        oriel_net_free_message(held);
    } else if (sender->early_count == EARLY_MOST) {
        oriel_warn("a process on another node sends out of order: the connection is closed [O19]");
        oriel_net_free_message(held);
        sender->is_broken = true;
        oriel_net.any_sender_broken = true;
    } else {
        held->next = *link;
        *link = held;
        sender->early_count++;
    }
}

/* data need not be aligned. */
static void message_receive(struct oriel_net_sender *sender, const struct oriel_wire *wire,
                            const char *head, const char *data, size_t len_bytes)
{
    struct oriel_ucx_buffer *buffer =
        oriel_pool_take(&oriel_net.agent.pool, sizeof(struct oriel_net_message) + len_bytes);
    if (buffer == NULL) {
        oriel_warn("no memory for a message from another node: the connection is closed [O19]");
        sender->is_broken = true;
        oriel_net.any_sender_broken = true;
        return;
    }
    struct oriel_net_message *held = (void *)buffer->data;
    *held = (struct oriel_net_message){
        .sender = sender, .wire = *wire, .len_bytes = len_bytes, .buffer = buffer};
    memcpy(buffer->front, head, wire->head_bytes);
    if (len_bytes != 0)
        memcpy(held->data, data, len_bytes);
    message_order(sender, held);
}

static void messages_receive_coalesced(struct oriel_net_sender *sender, const char *at,
                                       size_t left_bytes)
{
    struct oriel_wire wire;
    const char *head;
    const char *data;
    while (oriel_coalesce_next(&at, &left_bytes, &wire, &head, &data)) {
        if (wire.from == sender->session && wire.to == oriel_net.session &&
            wire.kind != ORIEL_WIRE_PING)
            message_receive(sender, &wire, head, data, wire.len_bytes);
    }
    if (left_bytes != 0)
        oriel_warn("dropped %zu bytes from another node that are not messages [O19]", left_bytes);
}

ucs_status_t oriel_net_receive_message(void *unused, const void *header, size_t header_bytes,
                                       void *data, size_t len_bytes,
                                       const ucp_am_recv_param_t *parameters)
{
    struct oriel_wire wire;
    (void)unused;
    if (!oriel_net_unpack(
            &(struct oriel_net_raw){header, header_bytes, data, len_bytes, parameters}, &wire))
        return UCS_OK;
    struct oriel_net_sender *sender = sender_find_or_create(wire.from);
    if (sender == NULL || sender->has_ended)
        return UCS_OK;
    if (wire.kind == ORIEL_WIRE_PING)
        answer_send(sender, ORIEL_WIRE_PONG, wire.number, &(struct oriel_net_bytes){.pieces = 0});
    else if (wire.kind == ORIEL_WIRE_COALESCED)
        messages_receive_coalesced(sender, data, len_bytes);
    else
        message_receive(sender, &wire, (const char *)header + sizeof wire, data, len_bytes);
    return UCS_OK;
}

/* --- messages for the net itself --- */

static void sender_forget(struct oriel_net_sender **link)
{
    struct oriel_net_sender *sender = *link;
    *link = sender->next;
    if (oriel_net.agent.coalesce.destination == sender)
        answers_send_coalesced();
    bool is_free = oriel_net_disconnect(&oriel_net.agent, &sender->end);
    oriel_net_drop_early(sender);
    oriel_hash_table_remove(&oriel_net.by_session, sender->session, sender);
    if (is_free) {
        free(sender);
        return;
    }
    sender->next = oriel_net.forgotten;
    oriel_net.forgotten = sender;
}

static void forgotten_senders_free(void)
{
    struct oriel_net_sender **link = &oriel_net.forgotten;
    while (*link != NULL) {
        struct oriel_net_sender *sender = *link;
        if (oriel_net_is_free(&sender->end)) {
            *link = sender->next;
            free(sender);
        } else {
            link = &sender->next;
        }
    }
}

/* With the mutex held: forgets earlier sessions of this sender's process. */
static void sender_forget_old_sessions(const struct oriel_net_sender *sender)
{
    struct oriel_net_sender **link = &oriel_net.senders;
    forgotten_senders_free();
    while (oriel_net.any_ended && *link != NULL) {
        if (*link != sender && (*link)->has_ended &&
            oriel_identity_equal(&(*link)->identity, &sender->identity))
            sender_forget(link);
        else
            link = &(*link)->next;
    }
}

static void sender_connection_broken(void *user_data, ucp_ep_h ep, ucs_status_t status)
{
    struct oriel_net_sender *sender = user_data;
    if (sender->end.ep == ep)
        sender_note_broken(sender, status);
}

static void hello_serve(struct oriel_net_sender *sender, const struct oriel_net_message *held)
{
    ucs_status_t status = UCS_OK;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    if (held->len_bytes > sizeof sender->identity && sender->end.ep == NULL) {
        memcpy(&sender->identity, held->data, sizeof sender->identity);
        sender_forget_old_sessions(sender);
        const char *address = held->data + sizeof sender->identity;
        sender->end.ep = oriel_net_connect(oriel_net.agent.ucp, address, sender_connection_broken,
                                           sender, &status);
    }
    if (sender->end.ep == NULL) {
        oriel_warn("no connection back to process %d on another node: %s [O19]",
                   (int)sender->identity.pid, oriel_ucp_status_text(status));
        sender->is_broken = true;
        oriel_net.any_sender_broken = true;
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

/* Serves one message; in the agent's thread without the mutex. */
void oriel_net_serve_one(const struct oriel_net_message *held)
{
    struct oriel_net_sender *sender = held->sender;
    struct oriel_net_requester asker = {{sender->session, held->wire.number}};
    const struct oriel_net_received message = {held->buffer->front, held->wire.head_bytes,
                                               held->data, held->len_bytes};
    switch (held->wire.kind) {
    case ORIEL_WIRE_HELLO: hello_serve(sender, held); break;
    case ORIEL_WIRE_TOLD:
    case ORIEL_WIRE_ASKED: oriel_net.service.serve(&asker, &sender->identity, &message); break;
    case ORIEL_WIRE_BYE:
        sender_end(sender);
        oriel_net_answer(&asker, &(struct oriel_net_bytes){.pieces = 0});
        oriel_net_note_bye(sender->session);
        break;
    case ORIEL_WIRE_SYNC: oriel_net_answer(&asker, &(struct oriel_net_bytes){.pieces = 0}); break;
    default:
        oriel_warn("dropped a message of kind %d from another node [O19]", (int)held->wire.kind);
    }
}

/* In the agent's thread without the mutex, after all earlier messages have been served. */
void oriel_net_lose_broken_senders(void)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    oriel_net.any_sender_broken = false;
    for (struct oriel_net_sender *sender = oriel_net.senders; sender != NULL;
         sender = sender->next) {
        if (!sender->is_broken || (sender->has_ended && sender->end.ep == NULL))
            continue;
        bool is_lost = !sender->has_ended;
        sender_end(sender);
        (void)oriel_net_disconnect(&oriel_net.agent, &sender->end);
        oriel_net_drop_early(sender);
        if (!is_lost)
            continue;
        sender->is_lost = true;
        struct oriel_identity identity = sender->identity;
        const uint64_t session = sender->session;
        pthread_mutex_unlock(&oriel_net.agent.mutex);
        oriel_net.service.lost(&identity);
        oriel_net_lose_session(session);
        pthread_mutex_lock(&oriel_net.agent.mutex);
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

bool oriel_net_is_session_lost(uint64_t session)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    const struct oriel_net_sender *sender = oriel_hash_table_find(&oriel_net.by_session, session);
    bool is_unheard = sender != NULL && sender->is_lost;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return is_unheard;
}

static void sender_lose(const struct oriel_net_peer *peer)
{
    struct oriel_net_sender *sender = sender_find_or_create(peer->session);
    if (sender == NULL)
        return;
    if (sender->expected != 0) {
        sender->is_broken = true;
        oriel_net.any_sender_broken = true;
    } else { /* before its first message: the service does not know it */
        sender->identity = peer->identity;
        sender_end(sender);
        sender_forget_old_sessions(sender);
    }
}

/* Disconnects from lost processes, so each of them learns that it was lost. It may only have been
 * slow, and would wait forever for messages that this process cannot send any more. In the agent's
 * thread without the mutex. */
void oriel_net_lose_senders(void)
{
    struct oriel_net_peer *peer =
        atomic_exchange_explicit(&oriel_net.lost, NULL, memory_order_acquire);
    if (peer == NULL)
        return;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    while (peer != NULL) {
        struct oriel_net_peer *next = peer->next_lost;
        sender_lose(peer);
        atomic_store_explicit(&peer->is_shunned, true, memory_order_release); /* the last access */
        peer = next;
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}
