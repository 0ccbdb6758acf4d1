/* The processes that send to this one: their messages are ordered here, and answered. A caller is
 * known from its first message until the net stops, so late messages after its end are recognised.
 * It is also forgotten when its process has stopped and restarted its net under another session:
 * after that no late messages arrive. So there are at most two callers for each process. The
 * agent's thread receives messages, with the agent's mutex held. Any thread may answer.
 *
 * Order (N1). The sender counts its messages. A message that arrives early is queued until all
 * before it have arrived; a duplicate is dropped. Ready messages go into one list. The thread
 * serves it in order after its turn, without the mutex, so an answer from another thread does not
 * wait for a message that is being served. BYE is the last message that becomes ready: once it has
 * been served, its caller may be forgotten. */
#include "transport/ucx/internal.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { EARLY_MOST = 8192 };

void oriel_net_drop_early(struct oriel_net_caller *caller)
{
    while (caller->early != NULL) {
        struct oriel_net_message *held = caller->early;
        caller->early = held->next;
        oriel_net_free_message(held);
    }
    caller->early_count = 0;
}

void oriel_net_free_message(struct oriel_net_message *held)
{
    oriel_pool_give(&oriel_net.agent.pool, held->buffer);
}

bool oriel_net_has_spare_caller(void)
{
    if (oriel_net.spare_caller == NULL && oriel_hash_table_reserve(&oriel_net.by_session))
        oriel_net.spare_caller = malloc(sizeof *oriel_net.spare_caller);
    return oriel_net.spare_caller != NULL;
}

static struct oriel_net_caller *caller_find_or_create(uint64_t session)
{
    struct oriel_net_caller *caller = oriel_hash_table_find(&oriel_net.by_session, session);
    if (caller != NULL)
        return caller;
    if (!oriel_net_has_spare_caller()) {
        oriel_warn("no memory for a process on another node: its messages are dropped");
        return NULL;
    }
    caller = oriel_net.spare_caller;
    oriel_net.spare_caller = NULL;
    *caller = (struct oriel_net_caller){.session = session};
    (void)oriel_hash_table_set(&oriel_net.by_session, session, caller); /* there is room */
    caller->next = oriel_net.callers;
    oriel_net.callers = caller;
    (void)oriel_net_has_spare_caller(); /* or the next call tries */
    return caller;
}

static void caller_end(struct oriel_net_caller *caller)
{
    caller->has_ended = true;
    oriel_net.any_ended = true;
}

/* --- answers --- */

/* Sends to this caller are no longer possible. Its process is then lost, unless it or this process
 * ends. */
static void caller_note_broken(struct oriel_net_caller *caller, ucs_status_t status)
{
    bool is_end =
        caller->has_ended || atomic_load_explicit(&oriel_net.is_ending, memory_order_relaxed);
    if (!is_end && !caller->is_broken)
        oriel_note("the connection back to process %d on another node broke: %s",
                   (int)caller->identity.pid, oriel_ucp_status_text(status));
    caller->is_broken = true;
    oriel_net.any_caller_broken = true;
}

static void caller_send_buffer(struct oriel_net_caller *caller, struct oriel_ucx_buffer *buffer)
{
    ucs_status_t status = oriel_net_send(&oriel_net.agent, &caller->end, buffer);
    if (status != UCS_OK)
        caller_note_broken(caller, status);
}

static void answers_send_coalesced(void)
{
    struct oriel_net_caller *caller = oriel_net.agent.coalesce.destination;
    if (caller == NULL)
        return;
    struct oriel_ucx_buffer *buffer = oriel_coalesce_take(&oriel_net.agent.coalesce);
    if (caller->end.ep == NULL)
        oriel_pool_give(&oriel_net.agent.pool, buffer);
    else
        caller_send_buffer(caller, buffer);
}

/* An answer is coalesced with others to the same caller until this thread has served all ready
 * messages. */
static bool answer_coalesce(struct oriel_net_caller *caller, const struct oriel_wire *wire,
                            const struct oriel_net_bytes *bytes)
{
    struct oriel_net_worker *agent = &oriel_net.agent;
    if (agent->coalesce.destination != NULL && agent->coalesce.destination != caller)
        answers_send_coalesced();
    if (oriel_coalesce_add(&agent->coalesce, &agent->pool, caller, wire, bytes))
        return true;
    if (agent->coalesce.destination == NULL)
        return false;
    answers_send_coalesced(); /* it was full */
    return oriel_coalesce_add(&agent->coalesce, &agent->pool, caller, wire, bytes);
}

void oriel_net_send_answers(void)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    answers_send_coalesced();
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

static void answer_send(struct oriel_net_caller *caller, enum oriel_wire_kind kind, uint64_t number,
                        const struct oriel_net_bytes *bytes)
{
    struct oriel_wire wire = {.version = ORIEL_WIRE_VERSION,
                              .kind = (uint16_t)kind,
                              .head_bytes = (uint16_t)bytes->head_bytes,
                              .from = oriel_net.session,
                              .to = caller->session,
                              .number = number};
    if (caller->end.ep == NULL)
        return;
    if (kind == ORIEL_WIRE_ANSWER && oriel_net_in_agent && answer_coalesce(caller, &wire, bytes))
        return;
    if (oriel_net.agent.coalesce.destination == caller)
        answers_send_coalesced();
    struct oriel_ucx_buffer *buffer = oriel_net_pack(&oriel_net.agent, &wire, bytes);
    if (buffer != NULL) {
        caller_send_buffer(caller, buffer);
        return;
    }
    oriel_warn("no memory for an answer to another node: the connection is closed");
    caller->is_broken = true;
    oriel_net.any_caller_broken = true;
}

void oriel_net_answer(const struct oriel_net_requester *asker, const struct oriel_net_bytes *answer)
{
    if (!oriel_net_enter(&oriel_net.agent))
        return;
    struct oriel_net_caller *caller = oriel_hash_table_find(&oriel_net.by_session, asker->words[0]);
    if (caller != NULL)
        answer_send(caller, ORIEL_WIRE_ANSWER, asker->words[1], answer);
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
    held->caller->expected++;
    held->caller->says_bye |= held->wire.kind == ORIEL_WIRE_BYE;
}

static void message_order(struct oriel_net_caller *caller, struct oriel_net_message *held)
{
    uint64_t ahead = held->wire.sequence - caller->expected;
    if (caller->says_bye) {
        oriel_net_free_message(held);
        return;
    }
    if (ahead == 0) {
        message_make_ready(held);
        while (caller->early != NULL && caller->early->wire.sequence == caller->expected &&
               !caller->says_bye) { /* N1 */
            held = caller->early;
            caller->early = held->next;
            caller->early_count--;
            message_make_ready(held);
        }
        return;
    }
    struct oriel_net_message **link = &caller->early;
    while (*link != NULL && (*link)->wire.sequence < held->wire.sequence)
        link = &(*link)->next;
    bool is_twice = *link != NULL && (*link)->wire.sequence == held->wire.sequence;
    if (ahead > UINT64_MAX / 2 || is_twice) {
        oriel_net_free_message(held);
    } else if (caller->early_count == EARLY_MOST) {
        oriel_warn("a process on another node sends out of order: the connection is closed");
        oriel_net_free_message(held);
        caller->is_broken = true;
        oriel_net.any_caller_broken = true;
    } else {
        held->next = *link;
        *link = held;
        caller->early_count++;
    }
}

/* data need not be aligned. */
static void message_receive(struct oriel_net_caller *caller, const struct oriel_wire *wire,
                            const char *head, const char *data, size_t len_bytes)
{
    struct oriel_ucx_buffer *buffer =
        oriel_pool_take(&oriel_net.agent.pool, sizeof(struct oriel_net_message) + len_bytes);
    if (buffer == NULL) {
        oriel_warn("no memory for a message from another node: the connection is closed");
        caller->is_broken = true;
        oriel_net.any_caller_broken = true;
        return;
    }
    struct oriel_net_message *held = (void *)buffer->data;
    *held = (struct oriel_net_message){
        .caller = caller, .wire = *wire, .len_bytes = len_bytes, .buffer = buffer};
    memcpy(buffer->front, head, wire->head_bytes);
    if (len_bytes != 0)
        memcpy(held->data, data, len_bytes);
    message_order(caller, held);
}

static void messages_receive_coalesced(struct oriel_net_caller *caller, const char *at,
                                       size_t left_bytes)
{
    struct oriel_wire wire;
    const char *head;
    const char *data;
    while (oriel_coalesce_next(&at, &left_bytes, &wire, &head, &data)) {
        if (wire.from == caller->session && wire.to == oriel_net.session &&
            wire.kind != ORIEL_WIRE_PING)
            message_receive(caller, &wire, head, data, wire.len_bytes);
    }
    if (left_bytes != 0)
        oriel_warn("dropped %zu bytes from another node that are not messages", left_bytes);
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
    struct oriel_net_caller *caller = caller_find_or_create(wire.from);
    if (caller == NULL || caller->has_ended)
        return UCS_OK;
    if (wire.kind == ORIEL_WIRE_PING)
        answer_send(caller, ORIEL_WIRE_PONG, wire.number, &(struct oriel_net_bytes){.pieces = 0});
    else if (wire.kind == ORIEL_WIRE_COALESCED)
        messages_receive_coalesced(caller, data, len_bytes);
    else
        message_receive(caller, &wire, (const char *)header + sizeof wire, data, len_bytes);
    return UCS_OK;
}

/* --- messages for the net itself --- */

static void caller_forget(struct oriel_net_caller **link)
{
    struct oriel_net_caller *caller = *link;
    *link = caller->next;
    if (oriel_net.agent.coalesce.destination == caller)
        answers_send_coalesced();
    bool is_free = oriel_net_disconnect(&oriel_net.agent, &caller->end);
    oriel_net_drop_early(caller);
    oriel_hash_table_remove(&oriel_net.by_session, caller->session, caller);
    if (is_free) {
        free(caller);
        return;
    }
    caller->next = oriel_net.forgotten;
    oriel_net.forgotten = caller;
}

static void forgotten_callers_free(void)
{
    struct oriel_net_caller **link = &oriel_net.forgotten;
    while (*link != NULL) {
        struct oriel_net_caller *caller = *link;
        if (oriel_net_is_free(&caller->end)) {
            *link = caller->next;
            free(caller);
        } else {
            link = &caller->next;
        }
    }
}

/* With the mutex held: forgets earlier sessions of this caller's process. */
static void caller_forget_old_sessions(const struct oriel_net_caller *caller)
{
    struct oriel_net_caller **link = &oriel_net.callers;
    forgotten_callers_free();
    while (oriel_net.any_ended && *link != NULL) {
        if (*link != caller && (*link)->has_ended &&
            oriel_identity_equal(&(*link)->identity, &caller->identity))
            caller_forget(link);
        else
            link = &(*link)->next;
    }
}

static void caller_connection_broken(void *user_data, ucp_ep_h ep, ucs_status_t status)
{
    struct oriel_net_caller *caller = user_data;
    if (caller->end.ep == ep)
        caller_note_broken(caller, status);
}

static void hello_serve(struct oriel_net_caller *caller, const struct oriel_net_message *held)
{
    ucs_status_t status = UCS_OK;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    if (held->len_bytes > sizeof caller->identity && caller->end.ep == NULL) {
        memcpy(&caller->identity, held->data, sizeof caller->identity);
        caller_forget_old_sessions(caller);
        const char *address = held->data + sizeof caller->identity;
        caller->end.ep = oriel_net_connect(oriel_net.agent.ucp, address, caller_connection_broken,
                                           caller, &status);
    }
    if (caller->end.ep == NULL) {
        oriel_warn("no connection back to process %d on another node: %s",
                   (int)caller->identity.pid, oriel_ucp_status_text(status));
        caller->is_broken = true;
        oriel_net.any_caller_broken = true;
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

/* Serves one message; in the agent's thread without the mutex. */
void oriel_net_serve_one(const struct oriel_net_message *held)
{
    struct oriel_net_caller *caller = held->caller;
    struct oriel_net_requester asker = {{caller->session, held->wire.number}};
    const struct oriel_net_received message = {held->buffer->front, held->wire.head_bytes,
                                               held->data, held->len_bytes};
    switch (held->wire.kind) {
    case ORIEL_WIRE_HELLO: hello_serve(caller, held); break;
    case ORIEL_WIRE_TOLD:
    case ORIEL_WIRE_ASKED: oriel_net.service.serve(&asker, &caller->identity, &message); break;
    case ORIEL_WIRE_BYE:
        caller_end(caller);
        oriel_net_answer(&asker, &(struct oriel_net_bytes){.pieces = 0});
        oriel_net_note_bye(caller->session);
        break;
    case ORIEL_WIRE_SYNC: oriel_net_answer(&asker, &(struct oriel_net_bytes){.pieces = 0}); break;
    default: oriel_warn("dropped a message of kind %d from another node", (int)held->wire.kind);
    }
}

/* In the agent's thread without the mutex, after all earlier messages have been served. */
void oriel_net_lose_broken_callers(void)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    oriel_net.any_caller_broken = false;
    for (struct oriel_net_caller *caller = oriel_net.callers; caller != NULL;
         caller = caller->next) {
        if (!caller->is_broken || (caller->has_ended && caller->end.ep == NULL))
            continue;
        bool is_lost = !caller->has_ended;
        caller_end(caller);
        (void)oriel_net_disconnect(&oriel_net.agent, &caller->end);
        oriel_net_drop_early(caller);
        if (!is_lost)
            continue;
        caller->is_lost = true;
        struct oriel_identity identity = caller->identity;
        const uint64_t session = caller->session;
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
    const struct oriel_net_caller *caller = oriel_hash_table_find(&oriel_net.by_session, session);
    bool is_unheard = caller != NULL && caller->is_lost;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return is_unheard;
}

static void caller_lose(const struct oriel_net_peer *peer)
{
    struct oriel_net_caller *caller = caller_find_or_create(peer->session);
    if (caller == NULL)
        return;
    if (caller->expected != 0) {
        caller->is_broken = true;
        oriel_net.any_caller_broken = true;
    } else { /* before its first message: the service does not know it */
        caller->identity = peer->identity;
        caller_end(caller);
        caller_forget_old_sessions(caller);
    }
}

/* Makes a lost process learn that, although it may only have been slow: otherwise it would wait
 * forever for messages that this process cannot send any more. In the agent's thread without the
 * mutex. */
void oriel_net_lose_callers(void)
{
    struct oriel_net_peer *peer =
        atomic_exchange_explicit(&oriel_net.lost, NULL, memory_order_acquire);
    if (peer == NULL)
        return;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    while (peer != NULL) {
        struct oriel_net_peer *next = peer->next_lost;
        caller_lose(peer);
        atomic_store_explicit(&peer->is_shunned, true, memory_order_release); /* the last access */
        peer = next;
    }
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}
