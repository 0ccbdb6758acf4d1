/* The network of replies.h.  It records every outgoing message, since a valid answer must fit a
 * question. The library must accept an answer exactly if its question is open and it is of the
 * session in question. It must also arrive complete, in a message for this process.  Device
 * transfers use keys from answers, and the input decides how they end. */
#include "replies.h"

#include "internode/origin/pack.h"
#include "transport/ucx/internal.h"
#include "internode/internode.h"

enum { ASKED_MOST = 512, SESSION = 99, REPLY_MOST_BYTES = 2000, ENDS_MOST = 64, MOVES_MOST = 64 };
enum { KEY_MOST_BYTES = ORIEL_NET_KEY_BYTES + 64 };     /* more than the library accepts */
enum { GATHERED_MOST = 3, GATHERED_MOST_BYTES = 1000 }; /* at most what the library coalesces */

struct oriel_net oriel_net = {.origin.mutex = PTHREAD_MUTEX_INITIALIZER};
_Thread_local bool oriel_net_in_agent;

/* A connection. */
struct end {
    ucp_err_handler_t broken;
    bool is_open;
};
static struct end ends[ENDS_MOST];
static unsigned ends_count;

/* A question. */
struct asked {
    uint64_t number;
    uint64_t session;
    struct oriel_internode_head head; /* of kind ORIEL_INTERNODE_FLUSH for the net's own */
};
static struct asked asked[ASKED_MOST];
static unsigned asked_count;
static struct input *input;

/* A key that UCX has unpacked. */
struct rkey {
    struct end *end;
    uint64_t address; /* that Oriel uses */
};
static unsigned rkeys_count; /* not destroyed */

/* A device transfer, until its request is freed. */
struct move {
    struct end *end;
    void *to; /* of a get, else NULL */
    size_t len_bytes;
    ucp_send_nbx_callback_t done;
    void *whose;
};
static struct move *moves[MOVES_MOST];
static unsigned moves_count;
static char origins_devices; /* their worker */

/* --- stubs for the rest of the net --- */

bool oriel_net_enter(struct oriel_net_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    return true;
}

bool oriel_net_is_started(void)
{
    return true;
}

void oriel_net_wake_agent(void)
{
}

/* All senders are alive. */
bool oriel_net_is_session_lost(uint64_t session)
{
    (void)session;
    return false;
}

void oriel_net_help_begin(enum oriel_net_helper helper)
{
    (void)helper;
}

void oriel_net_help(void)
{
}

void oriel_net_help_end(void)
{
}

struct oriel_remote_writers_slot *oriel_net_guard(void)
{
    return NULL;
}

void oriel_net_unguard(struct oriel_remote_writers_slot *slot)
{
    (void)slot;
}

const char *oriel_ucp_status_text(ucs_status_t status)
{
    (void)status;
    return "it broke";
}

void __wrap_oriel_warn(const char *format, ...);
void __wrap_oriel_warn(const char *format, ...)
{
    (void)format;
}

void __wrap_oriel_note(const char *format, ...);
void __wrap_oriel_note(const char *format, ...)
{
    (void)format;
}

/* --- outgoing messages --- */

static void note_asked(const struct oriel_wire *wire, const char *head)
{
    if ((wire->kind != ORIEL_WIRE_ASKED && wire->kind != ORIEL_WIRE_SYNC) ||
        asked_count == ASKED_MOST)
        return;
    struct asked *one = &asked[asked_count++];
    *one = (struct asked){.number = wire->number, .session = wire->to};
    if (wire->head_bytes == sizeof one->head)
        memcpy(&one->head, head, sizeof one->head);
}

static ucs_status_ptr_t send_message(ucp_ep_h ep, unsigned id, const void *header,
                                     size_t header_bytes, const void *data, size_t len_bytes,
                                     const ucp_request_param_t *how)
{
    const struct end *end = (const struct end *)(const void *)ep;
    const char *at = data;
    const char *head;
    const char *operands;
    struct oriel_wire wire;
    (void)id, (void)how;
    REQUIRE(end->is_open && (header_bytes == 0 || header_bytes >= sizeof wire));
    while (header_bytes == 0 && oriel_coalesce_next(&at, &len_bytes, &wire, &head, &operands))
        note_asked(&wire, head);
    if (header_bytes == 0)
        return NULL;
    memcpy(&wire, header, sizeof wire);
    note_asked(&wire, (const char *)header + sizeof wire);
    return NULL;
}

static bool is_of_devices(ucp_worker_h worker)
{
    return worker == (ucp_worker_h)(void *)&origins_devices;
}

/* UCX finds the end of an address from its bytes, of which there is at least one. */
static ucs_status_t make_connection(ucp_worker_h worker, const ucp_ep_params_t *how, ucp_ep_h *out)
{
    const bool is_no_address = is_of_devices(worker) && *(const char *)how->address == 0;
    if (ends_count == ENDS_MOST || is_no_address)
        return UCS_ERR_UNREACHABLE;
    ends[ends_count] = (struct end){how->err_handler, true};
    *out = (ucp_ep_h)(void *)&ends[ends_count++];
    return UCS_OK;
}

static ucs_status_ptr_t close_connection(ucp_ep_h ep, const ucp_request_param_t *how)
{
    (void)how;
    ((struct end *)(void *)ep)->is_open = false;
    return NULL;
}

static void free_request(void *request)
{
    free(request);
}

static ucs_status_t arm(ucp_worker_h worker)
{
    (void)worker;
    return UCS_ERR_BUSY;
}

static void break_connection(struct end *end)
{
    if (end->is_open)
        end->broken.cb(end->broken.arg, (ucp_ep_h)(void *)end, UCS_ERR_CONNECTION_RESET);
}

/* --- devices --- */

/* Copies into memory of exactly that length. */
static void *exact_copy(const void *from, size_t len_bytes)
{
    void *copy = malloc(len_bytes > 0 ? len_bytes : 1);
    REQUIRE(copy != NULL);
    memcpy(copy, from, len_bytes);
    return copy;
}

/* UCX also finds the end of a key from its bytes. A text contains numbers, the key and the address,
 * in this order. In a complete text, the numbers give the key's end. */
static ucs_status_t read_key(ucp_ep_h ep, const void *packed, ucp_rkey_h *out)
{
    uint64_t numbers[3];
    volatile char sum = 0;
    memcpy(numbers, (const char *)packed - sizeof numbers, sizeof numbers);
    for (uint64_t i = 0; i <= numbers[2]; i++)
        sum = (char)(sum + ((const char *)packed)[i]);
    if (numbers[2] == 0 || *(const char *)packed == 0)
        return UCS_ERR_INVALID_PARAM;
    struct rkey *key = malloc(sizeof *key);
    REQUIRE(key != NULL);
    *key = (struct rkey){(struct end *)(void *)ep, numbers[0]};
    rkeys_count++;
    *out = (ucp_rkey_h)(void *)key;
    return UCS_OK;
}

static void destroy_key(ucp_rkey_h key)
{
    REQUIRE(rkeys_count-- > 0);
    free(key);
}

/* Ends at once, not at all, or later. */
static ucs_status_ptr_t begin_move(ucp_ep_h ep, void *to, size_t len_bytes,
                                   const ucp_request_param_t *how)
{
    struct end *end = (struct end *)(void *)ep;
    const uint8_t which = input_byte(input);
    REQUIRE(end->is_open);
    if (which % 8 == 7)
        return UCS_STATUS_PTR(UCS_ERR_CONNECTION_RESET);
    if (which % 4 == 0 || moves_count == MOVES_MOST) {
        if (to != NULL)
            memset(to, which, len_bytes);
        return NULL;
    }
    struct move *move = malloc(sizeof *move);
    REQUIRE(move != NULL);
    *move = (struct move){end, to, len_bytes, how->cb.send, how->user_data};
    moves[moves_count++] = move;
    return move;
}

static void check_place(ucp_ep_h ep, ucp_rkey_h key, uint64_t address)
{
    const struct rkey *read = (const struct rkey *)(const void *)key;
    REQUIRE(read->end == (const struct end *)(const void *)ep &&
            address == read->address + DISPLACEMENT);
}

static ucs_status_ptr_t put(ucp_ep_h ep, const void *from, size_t len_bytes, uint64_t address,
                            ucp_rkey_h key, const ucp_request_param_t *how)
{
    volatile char sum = 0;
    check_place(ep, key, address);
    for (size_t i = 0; i < len_bytes; i++)
        sum = (char)(sum + ((const char *)from)[i]);
    return begin_move(ep, NULL, len_bytes, how);
}

static ucs_status_ptr_t get(ucp_ep_h ep, void *to, size_t len_bytes, uint64_t address,
                            ucp_rkey_h key, const ucp_request_param_t *how)
{
    check_place(ep, key, address);
    return begin_move(ep, to, len_bytes, how);
}

static ucs_status_ptr_t flush(ucp_ep_h ep, const ucp_request_param_t *how)
{
    return begin_move(ep, NULL, 0, how);
}

static void end_move(unsigned which, ucs_status_t status)
{
    struct move *move = moves[which];
    moves[which] = moves[--moves_count];
    if (move->to != NULL)
        memset(move->to, 9, move->len_bytes); /* part of it, if it fails */
    move->done(move, status, move->whose);
}

/* Nothing else arrives on closed connections. */
static unsigned end_closed(void)
{
    const unsigned before = moves_count;
    for (unsigned i = moves_count; i-- > 0;)
        if (!moves[i]->end->is_open)
            end_move(i, UCS_ERR_CANCELED);
    return before - moves_count;
}

static unsigned progress_devices(void)
{
    const unsigned closed = end_closed();
    if (closed > 0 || moves_count == 0 || input->left_bytes == 0)
        return closed;
    const uint8_t what = input_byte(input);
    if (what % 4 != 0)
        end_move(what / 8 % moves_count, what % 8 == 7 ? UCS_ERR_IO_ERROR : UCS_OK);
    return what % 4 != 0;
}

/* Passes a text of exactly that length. */
struct oriel_net_key *__real_oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                                size_t len_bytes);
struct oriel_net_key *__wrap_oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                                size_t len_bytes);
struct oriel_net_key *__wrap_oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                                size_t len_bytes)
{
    void *exact = exact_copy(text, len_bytes);
    struct oriel_net_key *key = __real_oriel_net_key_open(peer, exact, len_bytes);
    free(exact);
    return key;
}

/* --- incoming answers --- */

size_t address_of(uint64_t session, uint32_t agent_bytes, char *out)
{
    const struct oriel_wire_address head = {ORIEL_WIRE_VERSION, agent_bytes, session};
    memcpy(out, &head, sizeof head);
    memset(out + sizeof head, 7, ADDRESS_MOST - sizeof head);
    return agent_bytes < ADDRESS_MOST - sizeof head ? sizeof head + agent_bytes : ADDRESS_MOST;
}

/* A leader's answer, valid or nearly. */
static size_t draw_address(char *out)
{
    const uint8_t how = input_byte(input);
    const int rank = how % 8 == 0 ? (int)input_below(input, RANKS) : OTHER;
    struct oriel_identity who = identity_of(rank);
    const uint64_t session = how % 8 == 1 ? input_below(input, 4) + 1 : session_of(OTHER);
    uint32_t agent_bytes = input_below(input, 24);
    if (how % 16 == 2)
        agent_bytes = (uint32_t)input_word(input);
    memcpy(out, &who, sizeof who);
    const size_t len_bytes = sizeof who + address_of(session, agent_bytes, out + sizeof who);
    if (how % 16 == 3)
        out[sizeof who] ^= 1; /* of another version */
    return how % 16 == 4 ? input_below(input, (uint32_t)len_bytes) : len_bytes;
}

/* A target's description of its memory for devices, valid or nearly. */
static size_t draw_key(char *out)
{
    const uint8_t how = input_byte(input);
    const uint32_t key_bytes =
        how % 8 == 3 ? ORIEL_NET_KEY_BYTES - 64 + input_below(input, 64) : input_below(input, 64);
    const uint32_t address_bytes = input_below(input, 40);
    uint64_t numbers[] = {input_word(input), input_word(input), key_bytes};
    const size_t len_bytes = sizeof numbers + key_bytes + address_bytes;
    if (how % 8 == 0)
        numbers[2] = input_word(input);
    if (how % 8 == 1)
        numbers[2] += address_bytes + how / 8 - 16; /* about as much as there is */
    memset(out, how % 8 != 4, KEY_MOST_BYTES);
    memcpy(out, numbers, sizeof numbers);
    if (how % 8 == 5)
        out[sizeof numbers + key_bytes] = 0; /* no address */
    return how % 8 == 2 ? input_below(input, (uint32_t)len_bytes) : len_bytes;
}

/* The amount that the question requests. */
static size_t draw_data(const struct oriel_internode_head *head, char *out, size_t room)
{
    const uint8_t how = input_byte(input);
    uint64_t len_bytes = 0;
    const uint32_t kind = head->d >> 8 & 255;
    if (how % 32 == 2) { /* more than any question requests */
        len_bytes = input_below(input, (uint32_t)room + 1);
        memset(out, how, len_bytes);
        return len_bytes;
    }
    if (head->kind == ORIEL_INTERNODE_ADDRESS)
        return draw_address(out);
    if (head->kind == ORIEL_INTERNODE_KEY)
        return draw_key(out);
    if (head->kind == ORIEL_INTERNODE_GET)
        len_bytes = head->b;
    else if (head->kind == ORIEL_INTERNODE_ACCUMULATE || head->kind == ORIEL_INTERNODE_SWAP)
        len_bytes = head->b * oriel_kind_moving_bytes((enum oriel_kind)kind);
    else if (head->kind == ORIEL_INTERNODE_LOCK)
        len_bytes = sizeof(uint64_t);
    if (how % 8 == 0)
        len_bytes += 1 + input_below(input, 64);
    if (how % 8 == 1)
        len_bytes = input_below(input, (uint32_t)len_bytes + 1);
    len_bytes = len_bytes < room ? len_bytes : room;
    memset(out, how, len_bytes);
    return len_bytes;
}

static size_t draw_head(char *out)
{
    const uint8_t how = input_byte(input);
    struct oriel_internode_reply answer = {.status = ORIEL_OK};
    if (how % 8 == 0) {
        answer.status =
            how % 16 == 0 ? (uint32_t)input_word(input) : input_below(input, ORIEL_STATUS_COUNT);
        memset(answer.text, 'x',
               how % 3 == 0 ? sizeof answer.text : input_below(input, sizeof answer.text));
    }
    memcpy(out, &answer, sizeof answer);
    if (how % 16 == 1)
        return input_below(input, ORIEL_NET_HEAD_BYTES + 1);
    return answer.status == ORIEL_OK ? ORIEL_INTERNODE_REPLY_OK_BYTES : sizeof answer;
}

struct reply {
    struct oriel_wire wire;
    char head[ORIEL_NET_HEAD_BYTES];
    char data[KEY_MOST_BYTES];
    size_t len_bytes;
    struct asked *question; /* the open question that it ends; or NULL */
    bool is_whole;          /* complete in all its parts, and preceded only by complete ones */
};

static void draw_reply(struct reply *reply, size_t room)
{
    static const struct asked nothing;
    const uint8_t how = input_byte(input);
    struct asked *question =
        asked_count > 0 ? &asked[asked_count - 1 - input_below(input, asked_count)] : NULL;
    const struct asked *likely = question != NULL ? question : &nothing;
    memset(reply->head, 0, sizeof reply->head);
    const size_t head_bytes = draw_head(reply->head);
    reply->len_bytes = draw_data(&likely->head, reply->data, room);
    reply->wire = (struct oriel_wire){.version = ORIEL_WIRE_VERSION,
                                      .kind = ORIEL_WIRE_ANSWER,
                                      .head_bytes = (uint16_t)head_bytes,
                                      .from = likely->session,
                                      .to = SESSION,
                                      .number = likely->number,
                                      .len_bytes = reply->len_bytes};
    if (how % 16 == 0)
        reply->wire.from = session_of((int)input_below(input, RANKS));
    if (how % 16 == 1)
        reply->wire.number =
            /* another number with the same slot */
            how < 128 ? input_word(input) : reply->wire.number + 64;
    if (how % 16 == 2)
        reply->wire.kind = (uint16_t)input_below(input, ORIEL_WIRE_COALESCED + 2);
    if (how % 32 == 3)
        reply->wire.to = input_word(input);
    if (how % 32 == 19)
        reply->wire.version = (uint32_t)input_word(input);
    reply->question = NULL;
    for (unsigned i = 0; i < asked_count; i++)
        if (asked[i].number == reply->wire.number && asked[i].session == reply->wire.from)
            reply->question = &asked[i];
    if (reply->wire.kind != ORIEL_WIRE_ANSWER || reply->wire.to != SESSION ||
        reply->wire.version != ORIEL_WIRE_VERSION)
        reply->question = NULL;
}

/* Whether the data is in the message itself, rather than in a rendezvous. */
static bool arrive(const void *header, size_t header_bytes, const void *data, size_t len_bytes)
{
    const ucp_am_recv_param_t how = {
        .recv_attr = input_byte(input) % 64 == 0 ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
    const bool is_shifted = input_byte(input) % 8 == 0;
    char *own_header = exact_copy(header, header_bytes);
    char *own_data = malloc(len_bytes + 2);
    REQUIRE(own_data != NULL);
    memcpy(own_data + is_shifted, data, len_bytes);
    own_data = realloc(own_data, len_bytes + (is_shifted || len_bytes == 0));
    REQUIRE(own_data != NULL);
    REQUIRE(oriel_net_receive_reply(NULL, own_header, header_bytes, own_data + is_shifted,
                                    len_bytes, &how) == UCS_OK);
    free(own_header);
    free(own_data);
    return how.recv_attr == 0;
}

static bool is_open(const struct asked *question)
{
    const struct oriel_net_request *request =
        oriel_net.request_room == 0
            ? NULL
            : oriel_net.requests[question->number & (oriel_net.request_room - 1)];
    return request != NULL && request->number == question->number;
}

/* Records the open questions; afterwards checks that only those of the replies have ended, and all
 * those with complete replies have. */
static bool were_open[ASKED_MOST];

static void before_replies(void)
{
    for (unsigned i = 0; i < asked_count; i++)
        were_open[i] = is_open(&asked[i]);
}

static void after_replies(const struct reply *replies, unsigned count)
{
    for (unsigned i = 0; i < asked_count; i++) {
        bool may_end = !were_open[i] || is_open(&asked[i]);
        for (unsigned k = 0; k < count; k++)
            may_end = may_end || replies[k].question == &asked[i];
        REQUIRE(may_end);
    }
    for (unsigned k = 0; k < count; k++)
        REQUIRE(!replies[k].is_whole || replies[k].question == NULL ||
                !were_open[replies[k].question - asked] || !is_open(replies[k].question));
}

static void arrive_alone(void)
{
    static struct reply reply;
    char header[sizeof reply.wire + sizeof reply.head];
    draw_reply(&reply, REPLY_MOST_BYTES);
    size_t header_bytes = sizeof reply.wire + reply.wire.head_bytes;
    if (input_byte(input) % 32 == 0)
        header_bytes = input_below(input, sizeof header);
    memcpy(header, &reply.wire, sizeof reply.wire);
    memcpy(header + sizeof reply.wire, reply.head, sizeof reply.head);
    before_replies();
    reply.is_whole = arrive(header, header_bytes, reply.data, reply.len_bytes) &&
                     header_bytes == sizeof reply.wire + reply.wire.head_bytes;
    after_replies(&reply, 1);
}

static void arrive_gathered(void)
{
    static struct reply replies[GATHERED_MOST];
    static char all[8192];
    size_t ends_at[GATHERED_MOST];
    const unsigned count = 1 + input_below(input, GATHERED_MOST);
    size_t used_bytes = 0;
    bool are_valid = true;
    memset(all, 0, sizeof all);
    for (unsigned i = 0; i < count; i++) {
        struct reply *reply = &replies[i];
        draw_reply(reply, GATHERED_MOST_BYTES);
        const size_t head_bytes = reply->wire.head_bytes;
        if (input_byte(input) % 16 == 0)
            reply->wire.len_bytes = input_word(input);
        if (input_byte(input) % 16 == 0)
            reply->wire.head_bytes = (uint16_t)input_word(input);
        are_valid = are_valid && reply->wire.version == ORIEL_WIRE_VERSION &&
                    reply->wire.head_bytes == head_bytes &&
                    reply->wire.len_bytes == reply->len_bytes &&
                    reply->len_bytes <= GATHERED_MOST_BYTES;
        reply->is_whole = are_valid;
        memcpy(all + used_bytes, &reply->wire, sizeof reply->wire);
        memcpy(all + used_bytes + sizeof reply->wire, reply->head, sizeof reply->head);
        used_bytes += sizeof reply->wire + ((head_bytes + 7) & ~(size_t)7);
        memcpy(all + used_bytes, reply->data, reply->len_bytes);
        used_bytes += (reply->len_bytes + 7) & ~(size_t)7;
        ends_at[i] = used_bytes;
    }
    if (input_byte(input) % 16 == 0)
        used_bytes = input_below(input, (uint32_t)used_bytes + 1);
    before_replies();
    const bool is_there = arrive("", 0, all, used_bytes) && replies[0].wire.to == SESSION;
    for (unsigned i = 0; i < count; i++)
        replies[i].is_whole = replies[i].is_whole && is_there && ends_at[i] <= used_bytes;
    after_replies(replies, count);
}

static unsigned progress(ucp_worker_h worker)
{
    if (is_of_devices(worker))
        return progress_devices();
    if (input->left_bytes == 0) {
        for (unsigned i = 0; i < ends_count; i++)
            break_connection(&ends[i]);
        return 0;
    }
    const uint8_t what = input_byte(input);
    if (what >= 250 && ends_count > 0)
        break_connection(&ends[input_below(input, ends_count)]);
    else if (what % 8 == 7)
        arrive_gathered();
    else if (what % 8 > 1)
        arrive_alone();
    return what % 8 != 0;
}

/* --- the life of an input --- */

struct oriel_ucp_calls oriel_ucp_calls = {.ucp_ep_create = make_connection,
                                          .ucp_ep_close_nbx = close_connection,
                                          .ucp_am_send_nbx = send_message,
                                          .ucp_request_free = free_request,
                                          .ucp_worker_arm = arm,
                                          .ucp_worker_progress = progress,
                                          .ucp_ep_rkey_unpack = read_key,
                                          .ucp_rkey_destroy = destroy_key,
                                          .ucp_put_nbx = put,
                                          .ucp_get_nbx = get,
                                          .ucp_ep_flush_nbx = flush};

void replies_open(struct input *from, bool has_devices, bool has_verbs)
{
    static char own_address[8] = "address";
    static char context;
    input = from;
    ends_count = asked_count = 0;
    memset((char *)&oriel_net + offsetof(struct oriel_net, service), 0,
           sizeof oriel_net - offsetof(struct oriel_net, service));
    oriel_net.by_identity = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.session = SESSION;
    oriel_net.self = identity_of(OWN);
    oriel_net.origin_address = (ucp_address_t *)own_address;
    oriel_net.origin_address_bytes = sizeof own_address;
    oriel_net.timeout_ns = UINT64_C(1000000000) * 1000;
    oriel_net.has_verbs = has_verbs;
    oriel_net.devices = has_devices ? (ucp_context_h)(void *)&context : NULL;
    oriel_net.origin.devices = has_devices ? (ucp_worker_h)(void *)&origins_devices : NULL;
    oriel_net.origin.left_open = 0;
}

void replies_check_peers(void)
{
    struct oriel_identity leader = identity_of(LEADER);
    for (int rank = OWN; rank <= HERE; rank++) {
        struct oriel_identity here = identity_of(rank);
        REQUIRE(oriel_net_find(&here) == NULL);
    }
    const struct oriel_net_peer *peer = oriel_net_find(&leader);
    REQUIRE(peer == NULL || peer->session == session_of(LEADER));
}

void replies_close(void)
{
    while (moves_count > 0)
        end_move(0, UCS_ERR_CANCELED);
    REQUIRE(oriel_net.request_count == 0 && oriel_net.origin.pending == 0 && rkeys_count == 0);
    while (oriel_net.peers != NULL) {
        struct oriel_net_peer *peer = oriel_net.peers;
        oriel_net.peers = peer->next;
        free(peer);
    }
    if (oriel_net.origin.coalesce.destination != NULL)
        oriel_pool_give(&oriel_net.origin.pool, oriel_coalesce_take(&oriel_net.origin.coalesce));
    oriel_hash_table_close(&oriel_net.by_identity);
    oriel_pool_close(&oriel_net.origin.pool);
    memset(&oriel_net.origin.pool, 0, sizeof oriel_net.origin.pool);
    free(oriel_net.requests);
}
