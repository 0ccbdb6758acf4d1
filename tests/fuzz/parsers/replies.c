/* Answers of other nodes to this process: arbitrary answers, solicited or not, in any order.  They
 * write only the bytes that move in the program's buffers, and nothing after the operation is
 * complete. Every question ends, and a node's leader reports only about the processes in question.
 */
#include "replies.h"

#include "internode/origin/origin_rma.h"
#include "internode/origin/origin_sync.h"
#include "internode/origin/origin_peers.h"
#include "internode/origin/rma_requests.h"
#include "internode/origin/liveness.h"

enum { ACTS_MOST = 24, BUFFERS_MOST = 64, BUFFER_BYTES = 700, PENDING_MOST = 4, WINDOW_ID = 77 };

struct oriel_identity identity_of(int rank)
{
    return (struct oriel_identity){.id = {(uint64_t)rank + 1, 5}, .pid = rank, .memory_fd = -1};
}

uint64_t session_of(int rank)
{
    return 40 + (uint64_t)rank;
}

enum oriel_status oriel_liveness_none(void *context)
{
    (void)context;
    return ORIEL_OK;
}

/* --- the window --- */

/* Common words, followed by the node map; the second node is reached by an address. */
enum { NODES_AT = 4096, ADDRESS_AT = 1024 };
static _Alignas(ORIEL_CACHE_LINE) char file[2 * NODES_AT];
static struct oriel_common *const common = (struct oriel_common *)file;
static struct oriel_nodes *const nodes = (struct oriel_nodes *)(file + NODES_AT);
static struct oriel_group group;
static struct oriel_group_id ids[RANKS];
static _Atomic(struct oriel_net_peer *) net_peers[RANKS];
static struct oriel_window window;
static bool has_devices;

static void open_window(void)
{
    char *const address = (char *)nodes + ADDRESS_AT;
    memset(file, 0, sizeof file);
    memset((void *)net_peers, 0, sizeof net_peers);
    common->n = RANKS;
    common->nodes_offset = NODES_AT;
    nodes->count = 2;
    nodes->node[1] = (struct oriel_node_entry){
        .process = identity_of(LEADER), .leader = LEADER, .address = ADDRESS_AT};
    nodes->node[1].address_bytes = (uint32_t)address_of(session_of(LEADER), 16, address);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct oriel_identity who = identity_of(rank);
        memcpy(ids[rank].id, who.id, sizeof who.id);
        common->targets[rank] = (struct oriel_target){
            .disp_unit = 1,
            .offset = WINDOW_ID,
            .control_offset = rank >= LEADER,
            .placement = rank >= LEADER ? ORIEL_PLACEMENT_NETWORK : ORIEL_PLACEMENT_DIRECT};
    }
    group = (struct oriel_group){.n = RANKS, .ids = ids, .net_peers = net_peers};
    window = (struct oriel_window){.n = RANKS,
                                   .rank = OWN,
                                   .here = 2,
                                   .targets = common->targets,
                                   .common = common,
                                   .group = &group,
                                   .flavour = ORIEL_FLAVOUR_ALLOCATE};
    window.internode = oriel_internode_make(WINDOW_ID, RANKS);
    REQUIRE(window.internode != NULL);
}
/* --- buffers: the gaps between elements stay unchanged --- */

struct buffer {
    char *bytes; /* NULL: none */
    char moves[BUFFER_BYTES];
    int32_t target;
    int pending; /* index of its operation, or -1 */
};
static struct buffer buffers[BUFFERS_MOST];
static struct oriel_rma_request pendings[PENDING_MOST];
static bool is_pending[PENDING_MOST];

/* Elements of one kind in strided runs, or contiguous. */
static struct oriel_type draw_type(struct input *input, enum oriel_kind kind, uint64_t *count)
{
    const uint64_t each = 1 + input_below(input, 4);
    const uint64_t runs = 1 + input_below(input, 5);
    const int64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    const int64_t stride_bytes = (int64_t)(each + input_below(input, 3)) * extent_bytes;
    struct oriel_branch *branches = malloc(2 * sizeof *branches);
    REQUIRE(branches != NULL);
    branches[0] = (struct oriel_branch){0, oriel_node_run(kind, input_byte(input) % 2)};
    branches[1] = (struct oriel_branch){
        extent_bytes, oriel_node_loop(runs, stride_bytes, oriel_node_run(kind, each))};
    struct oriel_node *node = oriel_node_list(2, branches);
    REQUIRE(node != NULL);
    *count = 1;
    struct oriel_type type = {.kind = kind,
                              .elements = node->elements,
                              .size_bytes = node->size_bytes,
                              .extent_bytes = node->high_bytes,
                              .plain_bytes = INT64_MAX,
                              .layout = node};
    if ((uint64_t)type.extent_bytes < BUFFER_BYTES / 2)
        *count = 1 + input_below(input, 2);
    REQUIRE((uint64_t)type.extent_bytes * *count <= BUFFER_BYTES);
    return type;
}

static void mark_moves(struct buffer *buffer, const struct oriel_type *type, uint64_t count)
{
    struct oriel_cursor cursor;
    memset(buffer->moves, 0, sizeof buffer->moves);
    REQUIRE(oriel_cursor_open(&cursor, type->layout, count, type->extent_bytes));
    while (oriel_cursor_fill(&cursor)) {
        const uint64_t piece = oriel_batch_piece(&cursor.batch);
        memset(buffer->moves + cursor.batch.at_bytes, 1, piece);
        oriel_batch_use(&cursor.batch, piece);
    }
    oriel_cursor_close(&cursor);
}

static struct buffer *make_buffer(int32_t target, const struct oriel_type *type, uint64_t count)
{
    struct buffer *buffer = buffers;
    while (buffer->bytes != NULL)
        if (++buffer == buffers + BUFFERS_MOST)
            return NULL;
    mark_moves(buffer, type, count);
    buffer->target = target;
    buffer->pending = -1;
    buffer->bytes = malloc((uint64_t)type->extent_bytes * count);
    REQUIRE(buffer->bytes != NULL);
    memset(buffer->bytes, 0x55, (uint64_t)type->extent_bytes * count);
    for (uint64_t i = (uint64_t)type->extent_bytes * count; i < BUFFER_BYTES; i++)
        buffer->moves[i] = 1; /* not at all */
    return buffer;
}

/* The operation is complete: the sanitiser reports later accesses to the buffer. */
static void end_buffer(struct buffer *buffer)
{
    for (unsigned i = 0; i < BUFFER_BYTES; i++)
        REQUIRE(buffer->moves[i] || buffer->bytes[i] == 0x55);
    free(buffer->bytes);
    buffer->bytes = NULL;
}

static void end_buffers(int32_t target)
{
    for (struct buffer *buffer = buffers; buffer < buffers + BUFFERS_MOST; buffer++)
        if (buffer->bytes != NULL && (target < 0 || buffer->target == target))
            end_buffer(buffer);
}

/* --- operations of a program --- */

static enum oriel_kind draw_kind(struct input *input)
{
    static const enum oriel_kind kinds[] = {ORIEL_KIND_CHAR, ORIEL_KIND_INT32, ORIEL_KIND_INT64,
                                            ORIEL_KIND_SHORT_INT, ORIEL_KIND_DOUBLE_INT};
    return kinds[input_below(input, sizeof kinds / sizeof kinds[0])];
}

static void operate(struct input *input, int32_t target, unsigned which, int pending)
{
    static const char operands[BUFFER_BYTES];
    uint64_t count;
    struct oriel_type type =
        draw_type(input, which < 2 ? draw_kind(input) : ORIEL_KIND_INT64, &count);
    if (which == 2) {
        oriel_node_free(type.layout);
        type.layout = oriel_node_run(ORIEL_KIND_INT64, 1);
        type.extent_bytes = 8;
        count = 1;
    }
    struct buffer *buffer = make_buffer(target, &type, count);
    const struct oriel_span span = {
        .rank = target, .offset_bytes = DISPLACEMENT, .side = {&type, count}};
    const struct oriel_side side = {&type, count};
    const struct oriel_elements elements = {type.kind, type.elements * count};
    const struct oriel_operand origin = {(char *)(uintptr_t)operands, side};
    const struct oriel_operand result = {buffer != NULL ? buffer->bytes : NULL, side};
    if (buffer != NULL)
        buffer->pending = pending;
    if (buffer == NULL)
        (void)oriel_internode_put(&window, &span, operands, &side);
    else if (which == 0)
        (void)oriel_internode_get(&window, &span, buffer->bytes, &side);
    else if (which == 1)
        (void)oriel_internode_accumulate(&window, &span, elements, ORIEL_OPERATOR_REPLACE, &origin,
                                         &result);
    else if (which == 2)
        (void)oriel_internode_compare_and_swap(&window, &span, operands, operands, buffer->bytes);
    else
        (void)oriel_internode_accumulate(&window, &span, elements, ORIEL_OPERATOR_NO_OP, &origin,
                                         &result);
    oriel_node_free(type.layout);
}

/* Transfers that devices perform alone, if the target has published its keys: one run of bytes. */
static void put_or_get(struct input *input, int32_t target, int pending)
{
    static const char operands[BUFFER_BYTES];
    struct oriel_type type = {.kind = ORIEL_KIND_CHAR,
                              .dense = true,
                              .elements = 1,
                              .size_bytes = 1,
                              .extent_bytes = 1,
                              .plain_bytes = 1,
                              .layout = oriel_node_run(ORIEL_KIND_CHAR, 1)};
    const bool puts = input_byte(input) % 2 != 0;
    const uint64_t count = 1 + input_below(input, BUFFER_BYTES);
    struct buffer *buffer = puts ? NULL : make_buffer(target, &type, count);
    const struct oriel_span span = {
        .rank = target, .offset_bytes = DISPLACEMENT, .side = {&type, count}};
    const struct oriel_side side = {&type, count};
    REQUIRE(type.layout != NULL);
    if (buffer != NULL)
        buffer->pending = pending;
    if (buffer == NULL)
        (void)oriel_internode_put(&window, &span, operands, &side);
    else
        (void)oriel_internode_get(&window, &span, buffer->bytes, &side);
    oriel_node_free(type.layout);
}

static void operate_somehow(struct input *input, int32_t target, unsigned which, int pending)
{
    if (has_devices && input_byte(input) % 4 != 0)
        put_or_get(input, target, pending);
    else
        operate(input, target, which, pending);
}

static void take_ended(void)
{
    for (struct oriel_rma_request *ended = oriel_rma_request_take_ended(); ended != NULL;
         ended = ended->next_ended) {
        const int number = (int)(ended - pendings);
        for (struct buffer *buffer = buffers; buffer < buffers + BUFFERS_MOST; buffer++)
            if (buffer->bytes != NULL && buffer->pending == number)
                end_buffer(buffer);
        REQUIRE(is_pending[number]);
        is_pending[number] = false;
        if (ended->status != ORIEL_OK)
            (void)oriel_rma_request_tell(ended, &window);
    }
}

static void operate_by_request(struct input *input, int32_t target)
{
    int number = 0;
    while (number < PENDING_MOST && is_pending[number])
        number++;
    if (number == PENDING_MOST)
        return;
    is_pending[number] = true;
    oriel_rma_request_begin(&pendings[number], target);
    operate_somehow(input, target, input_below(input, 4), number);
    oriel_rma_request_sent(&pendings[number]);
}

static void acquire_and_release_lock(int32_t target, bool exclusive)
{
    bool is_given_back;
    if (oriel_internode_lock(&window, target, exclusive) != ORIEL_OK)
        return;
    (void)oriel_internode_unlock(&window, target, false, &is_given_back);
    end_buffers(target);
}

/* Begins or ends a lock_all epoch. */
static void change_epoch(void)
{
    bool is_given_back = true;
    if (!(window.epoch & ORIEL_EPOCH_LOCK_ALL)) {
        window.epoch = ORIEL_EPOCH_LOCK_ALL;
        return;
    }
    (void)oriel_internode_unlock_all(&window, false, &is_given_back);
    (void)oriel_internode_flush(&window, -1);
    window.epoch = 0;
    end_buffers(-1);
}

static void ask_serving_rank(int32_t target)
{
    struct oriel_net_peer *peer;
    int32_t dead = -1;
    if (oriel_internode_peer(&window, target, &peer) == ORIEL_OK)
        (void)oriel_internode_check_serving(&window, target, peer, &dead);
    REQUIRE(dead >= -1 && dead < RANKS);
}

static void act(struct input *input)
{
    const uint8_t what = input_byte(input);
    const int32_t target = input_byte(input) % 2 != 0 ? LEADER : OTHER;
    switch (what % 12) {
    case 0:
    case 1:
    case 2:
    case 3: operate_somehow(input, target, what % 12, -1); break;
    case 4:
    case 5: operate_by_request(input, target); break;
    case 6:
        (void)oriel_internode_flush(&window, target);
        end_buffers(target);
        break;
    case 7:
        (void)(has_devices && what >= 128 ? oriel_internode_flush_rdma
                                          : oriel_internode_flush_local)(&window, target);
        end_buffers(target);
        break;
    case 8: acquire_and_release_lock(target, what % 24 == 8); break;
    case 9: change_epoch(); break;
    case 10: ask_serving_rank(target); break;
    default: (void)oriel_internode_peer_known(&window, target); break;
    }
    oriel_rma_request_progress();
    take_ended();
    replies_check_peers();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    const uint8_t how = input_byte(&input);
    has_devices = how % 2 != 0;
    replies_open(&input, has_devices, how % 4 >= 2);
    open_window();
    for (int i = 0; i < ACTS_MOST && input.left_bytes > 0; i++)
        act(&input);
    input.left_bytes = 0;
    (void)oriel_internode_flush(&window, -1);
    end_buffers(-1);
    oriel_net_progress();
    take_ended();
    for (int i = 0; i < PENDING_MOST; i++)
        REQUIRE(!is_pending[i]);
    oriel_internode_peers_close(&window);
    oriel_internode_free(window.internode);
    replies_close();
    return 0;
}
