/* Messages to a target on another node: they are few and short. The target refuses invalid
 * messages, and requests that no rank makes, without damage. */
#include "internode/origin/origin_rma.h"

#include "internode/target/deferred_queue.h"
#include "internode/origin/origin_peers.h"
#include "sync/ticket.h"
#include "internode/origin/liveness.h"
#include "window/holders.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"
#include "random_layouts.h"
#include "internode_wire.h"

/* count runs of `each` doubles. */
static struct oriel_type vector_of(uint64_t count, uint64_t each, int64_t stride_bytes)
{
    struct oriel_node *node =
        oriel_node_loop(count, stride_bytes, oriel_node_run(ORIEL_KIND_DOUBLE, each));
    assert_non_null(node);
    return (struct oriel_type){.kind = ORIEL_KIND_DOUBLE,
                               .elements = node->elements,
                               .size_bytes = node->size_bytes,
                               .extent_bytes = node->high_bytes,
                               .plain_bytes = INT64_MAX,
                               .layout = node};
}

static struct oriel_type doubles(uint64_t count)
{
    struct oriel_type type = vector_of(1, count, 0);
    type.dense = true;
    type.plain_bytes = type.extent_bytes;
    return type;
}

static void a_vector_is_one_message_with_one_batch(void **state)
{
    (void)state;
    static double here[1024];
    wire_open(ORIEL_PLACEMENT_DIRECT);
    struct oriel_type vector = vector_of(1024, 1, 16);
    struct oriel_type dense = doubles(1);
    const struct oriel_span target = {1, 0, {&vector, 1}, 0};
    const struct oriel_side origin = {&dense, 1024};
    assert_int_equal(oriel_put(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 1);
    assert_int_equal(wire.data_bytes, sizeof here + sizeof(struct oriel_internode_batch));
    assert_ptr_equal(wire.last_piece, here); /* and is not packed */
    assert_int_equal(oriel_get(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 2);
    assert_int_equal(wire.data_bytes, sizeof here + 2 * sizeof(struct oriel_internode_batch));
    wire_close();
    oriel_node_free(vector.layout);
    oriel_node_free(dense.layout);
}

static void blocks_are_one_message_with_two_numbers_each(void **state)
{
    (void)state;
    enum { BLOCKS = 500 };
    static double here[BLOCKS];
    struct oriel_branch *branches = malloc(BLOCKS * sizeof *branches);
    assert_non_null(branches);
    wire_open(ORIEL_PLACEMENT_DIRECT);
    for (int i = 0; i < BLOCKS; i++)
        branches[i] =
            (struct oriel_branch){24 * i + 8 * (i % 2), oriel_node_run(ORIEL_KIND_DOUBLE, 1)};
    struct oriel_type blocks = vector_of(1, 1, 0);
    oriel_node_free(blocks.layout);
    blocks.layout = oriel_node_list(BLOCKS, branches);
    blocks.elements = BLOCKS;
    blocks.size_bytes = sizeof here;
    struct oriel_type dense = doubles(BLOCKS);
    const struct oriel_span target = {1, 0, {&blocks, 1}, 0};
    const struct oriel_side origin = {&dense, 1};
    assert_int_equal(oriel_put(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 1);
    assert_int_equal(wire.data_bytes, sizeof here + BLOCKS * 16);
    wire_close();
    oriel_node_free(blocks.layout);
    oriel_node_free(dense.layout);
}

/* One request, and no message that a flush would have to confirm. So with its flush it needs one
 * round trip, like a get (tests/protocol/internode_message_counts.c). */
static void expect_one_question(enum oriel_status status, enum oriel_internode_kind kind)
{
    assert_int_equal(status, ORIEL_OK);
    assert_int_equal(wire.messages, 1);
    assert_int_equal(wire.answers, 1);
    assert_int_equal(wire.head.kind, kind);
    wire.messages = wire.answers = 0;
}

static void returning_operations_are_one_request(void **state)
{
    (void)state;
    static double here[512], got[512];
    static const uint64_t counts[] = {1, 512};
    wire_open(ORIEL_PLACEMENT_DIRECT);
    for (int i = 0; i < 2; i++) {
        struct oriel_type dense = doubles(1);
        struct oriel_type vector = vector_of(counts[i], 1, 16);
        const struct oriel_operand from = {(char *)here, {&dense, counts[i]}};
        const struct oriel_operand to = {(char *)got, {&dense, counts[i]}};
        const struct oriel_elements elements = {dense.kind, counts[i]};
        const struct oriel_span targets[] = {{1, 0, {&dense, counts[i]}, 0},
                                             {1, 0, {&vector, 1}, 0}};
        for (int t = 0; t < 2; t++) {
            expect_one_question(
                oriel_accumulate(&wire.here, &targets[t], elements, ORIEL_OPERATOR_SUM, &from, &to),
                ORIEL_INTERNODE_ACCUMULATE);
            expect_one_question(oriel_accumulate(&wire.here, &targets[t], elements,
                                                 ORIEL_OPERATOR_NO_OP, &from, &to),
                                ORIEL_INTERNODE_ACCUMULATE);
        }
        wire_deliver();
        oriel_node_free(vector.layout);
        oriel_node_free(dense.layout);
    }
    struct oriel_type word = doubles(1);
    const struct oriel_span target = {1, 0, {&word, 1}, 0};
    expect_one_question(oriel_compare_and_swap(&wire.here, &target, here, here + 1, got),
                        ORIEL_INTERNODE_SWAP);
    wire_close();
    oriel_node_free(word.layout);
}

static void dense_sides_are_sent_as_they_lie_without_places(void **state)
{
    (void)state;
    enum { MANY = 3 * ORIEL_NET_DATA_BYTES / 8 };
    double *here = calloc(MANY, sizeof *here);
    assert_non_null(here);
    wire_open(ORIEL_PLACEMENT_DIRECT);
    struct oriel_type dense = doubles(1);
    const struct oriel_span target = {1, 8, {&dense, MANY}, 0};
    const struct oriel_side origin = {&dense, MANY};
    assert_int_equal(oriel_put(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 3);
    assert_int_equal(wire.data_bytes, MANY * sizeof *here);
    assert_ptr_equal(wire.last_piece, (char *)here + 2 * ORIEL_NET_DATA_BYTES);
    assert_int_equal(wire.head.c, 0);
    assert_int_equal(wire.head.a, 8 + 2 * ORIEL_NET_DATA_BYTES);
    assert_int_equal(oriel_get(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 6);
    wire_close();
    oriel_node_free(dense.layout);
    free(here);
}

/* The target has no counters, so it refuses the message that has the number. */
static void a_notification_is_in_the_last_message(void **state)
{
    (void)state;
    enum { MANY = 3 * ORIEL_NET_DATA_BYTES / 8 };
    double *here = calloc(MANY, sizeof *here);
    assert_non_null(here);
    wire_open(ORIEL_PLACEMENT_DIRECT);
    struct oriel_type dense = doubles(1);
    const struct oriel_span target = {1, 8, {&dense, MANY}, 5};
    const struct oriel_side origin = {&dense, MANY};
    wire.has_devices = true;
    assert_int_equal(oriel_put(&wire.here, &target, here, &origin), ORIEL_OK);
    assert_int_equal(wire.messages, 3);
    assert_int_equal(wire.by_devices, 0);
    assert_int_equal(wire.head.notifies, 5);
    assert_int_equal(wire.failures, 1);
    assert_int_equal(wire.failure, ORIEL_E_ARG);
    assert_int_equal(oriel_internode_notify(&wire.here, 1, 6), ORIEL_OK);
    assert_int_equal(wire.messages, 4);
    assert_int_equal(wire.head.notifies, 7);
    assert_int_equal(wire.len_bytes, 0);
    assert_int_equal(wire.failures, 2);
    wire_close();
    oriel_node_free(dense.layout);
    free(here);
}

static void expect_refusal(const struct oriel_internode_head *head, const void *data,
                           uint64_t len_bytes, enum oriel_status status)
{
    unsigned before = wire.failures;
    wire_serve(head, data, len_bytes);
    assert_int_equal(wire.failures, before + 1);
    assert_int_equal(wire.failure, status);
}

/* The window is of a memory handle's owner, for a process on another node. */
static void operations_of_holders_need_an_epoch(void **state)
{
    (void)state;
    const char bytes[16] = {1};
    struct oriel_holder entry = {.state = ORIEL_ACCESS_STATE_NONE};
    struct oriel_holding holding = {.entry = &entry};
    wire_open(ORIEL_PLACEMENT_DIRECT);
    wire.there.holding = &holding;
    const struct oriel_internode_head put = {.kind = ORIEL_INTERNODE_PUT, .b = 8};
    const struct oriel_internode_head get = {.kind = ORIEL_INTERNODE_GET, .b = 8};
    const struct oriel_internode_head swap = {
        .kind = ORIEL_INTERNODE_SWAP, .b = 1, .d = oriel_internode_word(0, ORIEL_KIND_INT64, 0)};
    static const enum oriel_access_state none[] = {
        ORIEL_ACCESS_STATE_NONE, ORIEL_ACCESS_STATE_WAITING, ORIEL_ACCESS_STATE_LOST};
    for (int i = 0; i < 3; i++) {
        atomic_store(&entry.state, none[i]);
        expect_refusal(&put, bytes, 8, ORIEL_E_SYNC);
        expect_refusal(&get, NULL, 0, ORIEL_E_SYNC);
        expect_refusal(&swap, bytes, 16, ORIEL_E_SYNC);
    }
    assert_int_equal(wire.memory[WIRE_GUARD_BYTES], 0);
    const unsigned before = wire.failures;
    atomic_store(&entry.state, ORIEL_ACCESS_STATE_NOCHECK);
    wire_serve(&put, bytes, 8);
    assert_int_equal(wire.failures, before);
    assert_int_equal(wire.memory[WIRE_GUARD_BYTES], 1);
    wire_close();
}

static void operations_outside_the_window_are_refused(void **state)
{
    (void)state;
    const char bytes[64] = {0};
    wire_open(ORIEL_PLACEMENT_DIRECT);
    struct oriel_internode_head put = {
        .kind = ORIEL_INTERNODE_PUT, .a = WIRE_WINDOW_BYTES - 63, .b = 64};
    struct oriel_internode_head get = {
        .kind = ORIEL_INTERNODE_GET, .a = WIRE_WINDOW_BYTES - 63, .b = 64};
    struct oriel_internode_head add = {
        .kind = ORIEL_INTERNODE_ACCUMULATE,
        .a = WIRE_WINDOW_BYTES - 63,
        .b = 8,
        .d = oriel_internode_word(ORIEL_OPERATOR_SUM, ORIEL_KIND_INT64, 0)};
    struct oriel_internode_head swap = {.kind = ORIEL_INTERNODE_SWAP,
                                        .a = WIRE_WINDOW_BYTES - 7,
                                        .b = 1,
                                        .d = oriel_internode_word(0, ORIEL_KIND_INT64, 0)};
    const struct oriel_internode_batch down = {
        .at_bytes = 0, .stride_bytes = -8, .run_bytes = 8, .runs = 2, .kind = ORIEL_KIND_CHAR};
    char both[sizeof down + 16] = {0};
    memcpy(both, &down, sizeof down);
    expect_refusal(&put, bytes, 64, ORIEL_E_RANGE);
    expect_refusal(&get, NULL, 0, ORIEL_E_RANGE);
    expect_refusal(&add, bytes, 64, ORIEL_E_RANGE);
    expect_refusal(&swap, bytes, 16, ORIEL_E_RANGE);
    put.a = UINT64_MAX - 8;
    expect_refusal(&put, bytes, 64, ORIEL_E_RANGE);
    put.a = INT64_MAX - 8;
    expect_refusal(&put, bytes, 64, ORIEL_E_OTHER);
    put = (struct oriel_internode_head){.kind = ORIEL_INTERNODE_PUT, .a = 7, .b = 16, .c = 1};
    expect_refusal(&put, both, sizeof both, ORIEL_E_RANGE);
    put.a = 8;
    unsigned before = wire.failures;
    wire_serve(&put, both, sizeof both);
    assert_int_equal(wire.failures, before);
    wire_close();
}

static void unattached_memory_is_refused_but_may_be_in_holes(void **state)
{
    (void)state;
    wire_open(ORIEL_PLACEMENT_REGIONS);
    wire.attached_to = wire.attached_from + 4096;
    const struct oriel_internode_batch runs = {
        .stride_bytes = 4092, .run_bytes = 4, .runs = 2, .kind = ORIEL_KIND_CHAR};
    char message[sizeof runs + 8] = {0};
    memcpy(message, &runs, sizeof runs);
    struct oriel_internode_head put = {
        .kind = ORIEL_INTERNODE_PUT, .a = wire.attached_from, .b = 8, .c = 1};
    wire_serve(&put, message, sizeof message);
    assert_int_equal(wire.failures, 0);
    put.a++;
    expect_refusal(&put, message, sizeof message, ORIEL_E_RANGE);
    wire_close();
}

static void wrong_messages_are_refused(void **state)
{
    (void)state;
    const char bytes[64] = {0};
    const uint64_t blocks[] = {0, 0, 8, UINT64_C(1) << 40};
    wire_open(ORIEL_PLACEMENT_DIRECT);
    const struct {
        struct oriel_internode_head head;
        uint64_t len_bytes;
    } wrong[] = {
        {{.kind = ORIEL_INTERNODE_PUT, .b = 8}, 7},
        {{.kind = ORIEL_INTERNODE_PUT, .b = 8}, 9},
        {{.kind = ORIEL_INTERNODE_PUT, .b = 0}, 0},
        {{.kind = ORIEL_INTERNODE_PUT, .b = 8, .c = 1}, 31},
        {{.kind = ORIEL_INTERNODE_PUT, .b = 8, .c = UINT32_MAX}, 64},
        {{.kind = ORIEL_INTERNODE_PUT, .b = UINT64_MAX}, 64},
        {{.kind = ORIEL_INTERNODE_GET, .b = ORIEL_NET_DATA_BYTES + 1}, 0},
        {{.kind = ORIEL_INTERNODE_GET, .b = 8}, 8},
        {{.kind = ORIEL_INTERNODE_ACCUMULATE,
          .b = 1,
          .d = oriel_internode_word(ORIEL_OPERATOR_BAND, ORIEL_KIND_DOUBLE, 0)},
         8},
        {{.kind = ORIEL_INTERNODE_ACCUMULATE,
          .b = 1,
          .d = oriel_internode_word(ORIEL_OPERATOR_NONE, ORIEL_KIND_DOUBLE, 0)},
         8},
        {{.kind = ORIEL_INTERNODE_ACCUMULATE,
          .b = 1,
          .d = oriel_internode_word(ORIEL_OPERATOR_SUM, ORIEL_KIND_NONE, 0)},
         8},
        {{.kind = ORIEL_INTERNODE_ACCUMULATE,
          .b = 2,
          .d = oriel_internode_word(ORIEL_OPERATOR_SUM, ORIEL_KIND_DOUBLE, 0)},
         8},
        {{.kind = ORIEL_INTERNODE_ACCUMULATE,
          .b = UINT64_C(1) << 61,
          .d = oriel_internode_word(0, ORIEL_KIND_DOUBLE, 0)},
         0},
        {{.kind = ORIEL_INTERNODE_SWAP,
          .b = 1,
          .d = oriel_internode_word(0, ORIEL_KIND_SHORT_INT, 0)},
         16},
        {{.kind = ORIEL_INTERNODE_SWAP,
          .b = 1,
          .d = oriel_internode_word(0, ORIEL_KIND_OPAQUE256, 0)},
         64},
        {{.kind = ORIEL_INTERNODE_SWAP, .b = 1, .d = oriel_internode_word(0, ORIEL_KIND_INT32, 0)},
         9},
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        expect_refusal(&wrong[i].head, bytes, wrong[i].len_bytes, ORIEL_E_OTHER);
    const struct oriel_internode_head too_long = {
        .kind = ORIEL_INTERNODE_GET, .b = 8, .c = 2, .d = ORIEL_INTERNODE_BLOCKS << 16};
    expect_refusal(&too_long, (const char *)blocks, sizeof blocks, ORIEL_E_OTHER);
    wire_close();
}

/* 8188 times 2^51, 2^53 in three parts, and 8 bytes: in 64 bits, 8 bytes. */
static void lengths_that_overflow_together_are_refused(void **state)
{
    (void)state;
    enum { BATCHES = 8192 };
    struct oriel_internode_batch *batches = calloc(BATCHES, sizeof *batches);
    assert_non_null(batches);
    wire_open(ORIEL_PLACEMENT_DIRECT);
    for (int i = 0; i < BATCHES; i++)
        batches[i] = (struct oriel_internode_batch){
            .run_bytes = 1 << 21, .runs = 1 << 30, .kind = ORIEL_KIND_CHAR};
    batches[BATCHES - 4].run_bytes = 3 << 20;
    batches[BATCHES - 4].runs = INT32_MAX;
    batches[BATCHES - 3].run_bytes = 1 << 20;
    batches[BATCHES - 3].runs = INT32_MAX;
    batches[BATCHES - 2].run_bytes = 1 << 20;
    batches[BATCHES - 2].runs = 4;
    batches[BATCHES - 1].run_bytes = 8;
    batches[BATCHES - 1].runs = 1;
    uint64_t sum = 0;
    for (int i = 0; i < BATCHES; i++)
        sum += (uint64_t)batches[i].run_bytes * batches[i].runs;
    assert_int_equal(sum, 8);
    const struct oriel_internode_head get = {.kind = ORIEL_INTERNODE_GET, .b = 8, .c = BATCHES};
    expect_refusal(&get, (const char *)batches, BATCHES * sizeof *batches, ORIEL_E_OTHER);
    wire_close();
    free(batches);
}

/* Damages some bytes of a valid message, or replaces all. */
static void spoil(struct oriel_internode_head *head, char *data, uint64_t len_bytes)
{
    static const uint64_t words[] = {
        0, 1, 8, UINT64_C(1) << 31, UINT64_C(1) << 62, INT64_MAX, UINT64_MAX, UINT64_C(1) << 63};
    uint64_t choices = len_bytes < 256 ? len_bytes : 256;
    for (uint64_t i = 1 + below(3); i > 0; i--) {
        char *bytes = below(2) || choices < 8 ? (char *)head + 8 : data;
        uint64_t room = bytes == data ? choices : sizeof *head - 8;
        uint64_t word = words[below(8)];
        uint64_t len = below(2) ? 8 : 4;
        if (below(2))
            bytes[below(room)] = (char)below(256);
        else
            memcpy(bytes + below((room - len) / 4 + 1) * 4, &word, len);
    }
    if (head->kind < ORIEL_INTERNODE_PUT || head->kind > ORIEL_INTERNODE_SWAP)
        head->kind = ORIEL_INTERNODE_PUT + (uint32_t)below(4);
    if (below(20) == 0)
        random_bytes_fill(data, len_bytes);
}

/* Random bytes: the sanitizers detect reads, the guards stores. */
static void spoilt_messages_harm_nothing(void **state)
{
    (void)state;
    char *guards = malloc(2 * WIRE_GUARD_BYTES);
    assert_non_null(guards);
    for (int round = 0; round < 300; round++) {
        struct random_layout there;
        struct random_layout here;
        wire_open(round % 3 == 0   ? ORIEL_PLACEMENT_REGIONS
                  : round % 3 == 1 ? ORIEL_PLACEMENT_COPY
                                   : ORIEL_PLACEMENT_DIRECT);
        random_bytes_fill(wire.memory, WIRE_ALL_BYTES / 64);
        random_bytes_fill(wire.memory + WIRE_ALL_BYTES - WIRE_GUARD_BYTES, WIRE_GUARD_BYTES);
        memcpy(guards, wire.memory, WIRE_GUARD_BYTES);
        memcpy(guards + WIRE_GUARD_BYTES, wire.memory + WIRE_ALL_BYTES - WIRE_GUARD_BYTES,
               WIRE_GUARD_BYTES);
        const enum oriel_kind kind = (enum oriel_kind)below(ORIEL_KIND_COUNT);
        random_layout_make_within(&there, kind, 30, WIRE_WINDOW_BYTES);
        random_layout_dense(&here, kind, there.elements);
        const uint64_t base = wire.here.flavour == ORIEL_FLAVOUR_DYNAMIC ? wire.attached_from : 0;
        const struct oriel_span target = {
            1, base + (uint64_t)(4096 - there.low_bytes), {&there.type, there.count}, 0};
        struct oriel_operand buffer = {calloc(there.elements, oriel_kinds[kind].extent_bytes),
                                       {&here.type, here.count}};
        assert_non_null(buffer.here);
        if (below(2))
            oriel_accumulate(&wire.here, &target, (struct oriel_elements){kind, there.elements},
                             ORIEL_OPERATOR_REPLACE, &buffer, below(2) ? &buffer : NULL);
        else if (below(2))
            oriel_put(&wire.here, &target, buffer.here, &buffer.side);
        else
            oriel_get(&wire.here, &target, buffer.here, &buffer.side);
        wire_deliver();
        assert_int_equal(wire.failures, 0);
        for (int i = 0; i < 300; i++) {
            struct oriel_internode_head head = wire.head;
            char *data = calloc(1, wire.len_bytes + 8);
            assert_non_null(data);
            memcpy(data, wire.data, wire.len_bytes);
            spoil(&head, data, wire.len_bytes);
            wire_serve(&head, data, below(8) == 0 ? below(wire.len_bytes + 8) : wire.len_bytes);
            free(data);
        }
        assert_true(wire.failures > 0);
        assert_memory_equal(guards, wire.memory, WIRE_GUARD_BYTES);
        assert_memory_equal(guards + WIRE_GUARD_BYTES,
                            wire.memory + WIRE_ALL_BYTES - WIRE_GUARD_BYTES, WIRE_GUARD_BYTES);
        free(buffer.here);
        random_layout_free(&here);
        random_layout_free(&there);
        wire_close();
    }
    free(guards);
}

/* --- locks, with replacements for the functions that target_sync.c calls --- */

static unsigned locks_answered;
static unsigned refusals;

void oriel_internode_reply_ok(const struct oriel_net_requester *asker, const struct iovec *data,
                              unsigned pieces)
{
    (void)asker, (void)data, (void)pieces;
    locks_answered++;
}

void oriel_internode_reply_refusal(const struct oriel_net_requester *asker,
                                   enum oriel_status status)
{
    (void)asker, (void)status;
    refusals++;
}

struct oriel_net_peer *oriel_internode_peer_known(struct oriel_window *window, int32_t target)
{
    (void)window, (void)target;
    return NULL;
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    (void)peer;
    return ORIEL_OK;
}

const struct oriel_nodes *oriel_internode_nodes(const struct oriel_window *window)
{
    (void)window;
    return NULL;
}

struct oriel_pscw_counter *oriel_internode_partner(struct oriel_window *window, int32_t rank)
{
    (void)window, (void)rank;
    return NULL;
}

enum oriel_status oriel_liveness_lock(void *context)
{
    (void)context;
    return ORIEL_OK;
}

enum oriel_status oriel_liveness_lock_all_holders(void *context)
{
    (void)context;
    return ORIEL_OK;
}

/* Of holders on this node, which no test here has. */
bool oriel_peer_alive(const struct oriel_peer *peer)
{
    (void)peer;
    return true;
}

enum oriel_status oriel_liveness_rank(void *context)
{
    (void)context;
    return ORIEL_OK;
}

enum oriel_status oriel_internode_begin(struct oriel_window *window,
                                        enum oriel_internode_wanted wanted)
{
    (void)window, (void)wanted;
    return ORIEL_OK;
}

enum oriel_status oriel_internode_unlock(struct oriel_window *window, int32_t target, bool trusted,
                                         bool *is_given_back)
{
    (void)window, (void)target, (void)trusted, (void)is_given_back;
    return ORIEL_OK;
}

/* The window's end, which no test here reaches. */
void oriel_internode_replies_close(struct oriel_internode *far)
{
    (void)far;
}

void oriel_internode_rdma_withdraw(struct oriel_internode *far)
{
    (void)far;
}

void oriel_internode_peers_close(struct oriel_window *window)
{
    (void)window;
}

/* As internode/target/am_dispatch.c: rank 0 requests or releases a lock. */
static void serve_lock(struct oriel_window *window, enum oriel_internode_kind kind,
                       bool has_lazy_lock)
{
    const struct oriel_net_requester asker = {{0}};
    const struct oriel_internode_head head = {
        .kind = kind, .a = ORIEL_INTERNODE_WANTS_SHARED, .b = has_lazy_lock};
    const struct oriel_net_received message = {&head, sizeof head, NULL, 0};
    if (!oriel_internode_defers(window, &asker, &head, &message, true, NULL))
        oriel_internode_serve(window, &asker, &head);
}

static void a_deferred_unlock_of_a_rank_with_two_locks_is_answered_once(void **state)
{
    static struct oriel_control control;
    static struct oriel_common common;
    uint8_t refused[2] = {0};
    struct oriel_internode far = {.refused = refused};
    (void)state;
    wire_open(ORIEL_PLACEMENT_DIRECT);
    wire.there.internode = &far;
    wire.there.control = &control;
    wire.there.common = &common;
    locks_answered = refusals = 0;
    assert_true(oriel_ticket_is_first(
        &control.lock, oriel_ticket_draw(&control.lock))); /* the target itself has the lock */
    serve_lock(&wire.there, ORIEL_INTERNODE_LOCK, false);
    serve_lock(&wire.there, ORIEL_INTERNODE_LOCK, true);
    serve_lock(&wire.there, ORIEL_INTERNODE_UNLOCK, false); /* is queued for the second */
    assert_int_equal(locks_answered + wire.answers, 0);
    oriel_ticket_unlock(&control.lock, true);
    oriel_internode_advance_locks(&wire.there);
    assert_int_equal(locks_answered, 2);
    assert_int_equal(wire.answers, 1);
    assert_true(far.locks != NULL && far.locks->next == NULL &&
                far.locks->stage == STAGE_HELD); /* one has ended */
    serve_lock(&wire.there, ORIEL_INTERNODE_UNLOCK, false);
    assert_int_equal(wire.answers, 2);
    assert_null(far.locks);
    assert_int_equal(
        wire.failures + refusals + far.lazy_locks + oriel_internode_has_waiting_locks(), 0);
    free(far.spare_lock);
    wire_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_is_one_message_with_one_batch),
        cmocka_unit_test(blocks_are_one_message_with_two_numbers_each),
        cmocka_unit_test(returning_operations_are_one_request),
        cmocka_unit_test(dense_sides_are_sent_as_they_lie_without_places),
        cmocka_unit_test(a_notification_is_in_the_last_message),
        cmocka_unit_test(operations_of_holders_need_an_epoch),
        cmocka_unit_test(operations_outside_the_window_are_refused),
        cmocka_unit_test(unattached_memory_is_refused_but_may_be_in_holes),
        cmocka_unit_test(wrong_messages_are_refused),
        cmocka_unit_test(lengths_that_overflow_together_are_refused),
        cmocka_unit_test(spoilt_messages_harm_nothing),
        cmocka_unit_test(a_deferred_unlock_of_a_rank_with_two_locks_is_answered_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
