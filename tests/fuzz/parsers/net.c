/* Incoming data from other nodes before its sender is known: arbitrary bytes, as messages and as
 * answers, single and coalesced. The library serves messages in the order of their numbers, each
 * once, with the data that arrived; it drops invalid ones.  UCX is stubbed: there are no
 * connections. */
#include "fuzzer.h"

#include "transport/ucx/internal.h"

enum { ARRIVALS_MOST = 32, PIECE_MOST_BYTES = 600, SESSION = 99, CALLERS = 3 };

struct oriel_net oriel_net;
_Thread_local bool oriel_net_in_agent = true;

/* --- stubs for the rest of the net --- */

static ucs_status_t refuse_connection(ucp_worker_h worker, const ucp_ep_params_t *how,
                                      ucp_ep_h *out)
{
    (void)worker, (void)how, (void)out;
    return UCS_ERR_UNREACHABLE;
}

struct oriel_ucp_calls oriel_ucp_calls = {.ucp_ep_create = refuse_connection};

const char *oriel_ucp_status_text(ucs_status_t status)
{
    (void)status;
    return "";
}

void __wrap_oriel_warn(const char *format, ...);
void __wrap_oriel_warn(const char *format, ...)
{
    (void)format;
}

bool oriel_net_enter(struct oriel_net_worker *worker)
{
    pthread_mutex_lock(&worker->mutex);
    return true;
}

void oriel_net_wake_agent(void)
{
}

void oriel_net_note_bye(uint64_t session)
{
    REQUIRE(session >= 1 && session <= CALLERS);
}

/* Called when the library removes broken senders: the session is of one that said hello. */
void oriel_net_lose_session(uint64_t session)
{
    REQUIRE(session >= 1 && session <= CALLERS && oriel_net_is_session_lost(session));
}

static void look_at(const void *bytes, size_t len_bytes)
{
    volatile char sum = 0;
    for (size_t i = 0; i < len_bytes; i++)
        sum = (char)(sum + ((const char *)bytes)[i]);
}

static void serve(const struct oriel_net_requester *asker, const struct oriel_identity *from,
                  const struct oriel_net_received *message)
{
    (void)from;
    REQUIRE(message->head_bytes <= ORIEL_NET_HEAD_BYTES &&
            message->len_bytes <= ORIEL_NET_DATA_BYTES);
    REQUIRE((uintptr_t)message->head % 8 == 0 && (uintptr_t)message->data % 8 == 0);
    look_at(message->head, message->head_bytes);
    look_at(message->data, message->len_bytes);
    REQUIRE(asker->words[0] >= 1 && asker->words[0] <= CALLERS);
}

static void lost(const struct oriel_identity *who)
{
    look_at(who, sizeof *who);
}

/* --- arrivals --- */

static struct oriel_wire draw_wire(struct input *input, size_t head_bytes)
{
    const uint8_t how = input_byte(input);
    return (struct oriel_wire){
        .version = how % 32 == 0 ? (uint32_t)input_word(input) : ORIEL_WIRE_VERSION,
        .kind = how % 32 == 1 ? (uint16_t)input_word(input)
                              : (uint16_t)input_below(input, ORIEL_WIRE_COALESCED + 1),
        .head_bytes = how % 16 == 2 ? (uint16_t)input_word(input) : (uint16_t)head_bytes,
        .from = 1 + input_below(input, CALLERS),
        .to = how % 32 == 3 ? input_word(input) : SESSION,
        .sequence = how % 16 == 4 ? input_word(input) : input_below(input, 12),
        .number = input_byte(input),
    };
}

/* Several messages as the sender would coalesce them, or nearly. */
static size_t draw_gathered(struct input *input, char *out, size_t room, uint64_t from)
{
    size_t used_bytes = 0;
    for (uint32_t left = input_below(input, 5); left > 0; left--) {
        const size_t head_bytes = input_below(input, 64);
        const size_t len_bytes = input_below(input, 80);
        struct oriel_wire wire = draw_wire(input, head_bytes);
        wire.from = input_byte(input) % 8 == 0 ? wire.from : from;
        wire.len_bytes = input_byte(input) % 16 == 0 ? input_word(input) : len_bytes;
        if (used_bytes + sizeof wire + head_bytes + len_bytes + 16 > room)
            break;
        memcpy(out + used_bytes, &wire, sizeof wire);
        used_bytes += sizeof wire;
        input_take(input, out + used_bytes, head_bytes);
        used_bytes += (head_bytes + 7) & ~(size_t)7;
        input_take(input, out + used_bytes, len_bytes);
        used_bytes += (len_bytes + 7) & ~(size_t)7;
    }
    return used_bytes;
}

/* Copies into memory of exactly that length. */
static void *exact_copy(const void *from, size_t len_bytes)
{
    void *copy = malloc(len_bytes > 0 ? len_bytes : 1);
    REQUIRE(copy != NULL);
    memcpy(copy, from, len_bytes);
    return copy;
}

static void arrive(struct input *input)
{
    static char data[PIECE_MOST_BYTES * 4];
    char header[sizeof(struct oriel_wire) + 256] = {0};
    const size_t head_bytes = input_below(input, 200);
    const struct oriel_wire wire = draw_wire(input, head_bytes);
    size_t len_bytes = input_below(input, PIECE_MOST_BYTES);
    memcpy(header, &wire, sizeof wire);
    input_take(input, header + sizeof wire, head_bytes);
    memset(data, 0, sizeof data);
    const bool is_gathered = wire.kind == ORIEL_WIRE_COALESCED;
    if (is_gathered && input_byte(input) % 8 != 0)
        len_bytes = draw_gathered(input, data, sizeof data, wire.from);
    else
        input_take(input, data, len_bytes);
    const size_t whole_bytes = is_gathered ? 0 : sizeof wire + head_bytes;
    const size_t header_bytes =
        input_byte(input) % 32 == 0 ? input_below(input, sizeof header) : whole_bytes;
    const ucp_am_recv_param_t how = {
        .recv_attr = input_byte(input) % 64 == 0 ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
    void *own_header = exact_copy(header, header_bytes);
    void *own_data = exact_copy(data, len_bytes);
    REQUIRE(oriel_net_receive_message(NULL, own_header, header_bytes, own_data, len_bytes, &how) ==
            UCS_OK);
    free(own_header);
    free(own_data);
}

/* After a sender leaves and its process identity changes, the library drops its state. If it
 * returns, its numbers start again. */
static void serve_ready(uint64_t *next)
{
    while (oriel_net.ready != NULL) {
        struct oriel_net_message *message = oriel_net.ready;
        oriel_net.ready = message->next;
        if (oriel_net.ready == NULL)
            oriel_net.ready_end = &oriel_net.ready;
        REQUIRE(message->wire.sequence == next[message->sender->session]++);
        oriel_net_serve_one(message);
        oriel_net_free_message(message);
        for (uint64_t session = 1; session <= CALLERS; session++)
            next[session] =
                oriel_hash_table_find(&oriel_net.by_session, session) != NULL ? next[session] : 0;
    }
}

static void close_all(void)
{
    for (struct oriel_net_sender *next, *sender = oriel_net.senders; sender != NULL;
         sender = next) {
        next = sender->next;
        oriel_net_drop_early(sender);
        free(sender);
    }
    free(oriel_net.spare_sender);
    oriel_net.spare_sender = NULL;
    oriel_hash_table_close(&oriel_net.by_session);
    oriel_pool_close(&oriel_net.agent.pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    uint64_t next[CALLERS + 1] = {0};
    memset(&oriel_net, 0, sizeof oriel_net);
    pthread_mutex_init(&oriel_net.agent.mutex, NULL);
    oriel_net.by_session = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.session = SESSION;
    oriel_net.service = (struct oriel_net_service){.serve = serve, .lost = lost};
    oriel_net.ready_end = &oriel_net.ready;
    for (int i = 0; i < ARRIVALS_MOST && input.left_bytes > 0; i++) {
        arrive(&input);
        if (input_byte(&input) % 2 == 0)
            serve_ready(next);
        if (oriel_net.any_sender_broken && oriel_net.ready == NULL)
            oriel_net_lose_broken_senders();
    }
    serve_ready(next);
    close_all();
    return 0;
}
