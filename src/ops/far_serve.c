/* The target's side of operations of far origins (far.h has the messages).  A message is looked at in whole before any of it is
 * done, and is done by the functions with which this process works on its own window: so its atomicity is the window's.  In the
 * agent's thread; the window's messages arrive here from their dispatcher. */
#include "ops/far.h"

#include "ops/lookup.h"
#include "ops/remote.h"
#include "ops/swap.h"
#include "sync/far.h"

#include <stdlib.h>
#include <string.h>

/* A message, taken apart. */
struct order {
    struct oriel_window *window;
    const struct oriel_far_head *head;
    enum oriel_operator operator;
    enum oriel_kind kind; /* of an accumulate's elements; ORIEL_KIND_CHAR of a put's and a get's */
    unsigned flags;
    uint64_t unit_bytes;   /* that move of an element */
    uint64_t moved_bytes;
    uint32_t parts;
    const struct oriel_far_batch *batches; /* each a part */
    const int64_t *places;                 /* or all one part: of blocks */
    const uint64_t *lengths;
    const char *operands;
    uint64_t operand_bytes;
};

/* What is done at once: a layout from a place of the window on. */
struct part {
    int64_t at_bytes;
    struct oriel_node node;
    struct oriel_node run; /* the node's child, if it is a loop */
    struct oriel_type type;
};

static enum oriel_status malformed(const struct order *order, const char *what)
{
    return oriel_fail(ORIEL_E_OTHER, "rank %d was sent a message by rank %d with a wrong %s", (int)order->window->rank,
                      (int)order->head->from, what);
}

static bool set_run(struct oriel_node *node, enum oriel_kind kind, uint64_t count)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    const uint64_t len_bytes = count * properties->extent_bytes;
    if (count == 0 || count > INT32_MAX)
        return false;
    *node = (struct oriel_node){.form = ORIEL_NODE_RUN,
                                .kind = kind,
                                .count = count,
                                .elements = count,
                                .size_bytes = count * oriel_far_element_bytes(kind),
                                .high_bytes = (int64_t)(len_bytes - oriel_kind_tail_bytes(properties)),
                                .runs = 1,
                                .depth = 1,
                                .padded = properties->padded,
                                .references = 1};
    return true;
}

/* Numbers of 31 bits: only the last run's place may overflow. */
static bool set_loop(struct oriel_node *node, struct oriel_node *run, uint64_t count, int64_t stride_bytes)
{
    int64_t last_bytes;
    if (count > INT32_MAX || __builtin_mul_overflow((int64_t)count - 1, stride_bytes, &last_bytes))
        return false;
    *node = *run;
    node->form = ORIEL_NODE_LOOP;
    node->count = count;
    node->stride_bytes = stride_bytes;
    node->child = run;
    node->elements = count * run->elements;
    node->size_bytes = count * run->size_bytes;
    node->runs = count;
    node->depth = 2;
    node->low_bytes = last_bytes < 0 ? last_bytes : 0;
    return !__builtin_add_overflow(run->high_bytes, last_bytes > 0 ? last_bytes : 0, &node->high_bytes);
}

static bool set_blocks(struct oriel_node *node, const struct order *order)
{
    const uint64_t extent_bytes = oriel_kinds[order->kind].extent_bytes;
    const uint64_t count = order->head->c;
    *node = (struct oriel_node){.form = ORIEL_NODE_BLOCKS,
                                .kind = order->kind,
                                .count = count,
                                .offsets = (int64_t *)(uintptr_t)order->places,
                                .lengths = (uint64_t *)(uintptr_t)order->lengths,
                                .low_bytes = INT64_MAX,
                                .high_bytes = INT64_MIN,
                                .runs = count,
                                .depth = 1,
                                .references = 1};
    for (uint64_t i = 0; i < count; i++) {
        const int64_t low_bytes = order->places[i];
        int64_t high_bytes;
        if (order->lengths[i] == 0 || order->lengths[i] > INT32_MAX || order->lengths[i] % extent_bytes != 0 ||
            __builtin_add_overflow(low_bytes, (int64_t)order->lengths[i], &high_bytes))
            return false;
        node->size_bytes += order->lengths[i];
        node->low_bytes = low_bytes < node->low_bytes ? low_bytes : node->low_bytes;
        node->high_bytes = high_bytes > node->high_bytes ? high_bytes : node->high_bytes;
    }
    node->elements = node->size_bytes / extent_bytes;
    return true;
}

static bool set_batch(struct part *part, const struct order *order, const struct oriel_far_batch *batch)
{
    enum oriel_kind kind = order->kind;
    if (order->head->kind != ORIEL_FAR_ACCUMULATE) {
        if (batch->kind >= ORIEL_KIND_COUNT || (batch->kind != ORIEL_KIND_CHAR && !oriel_kinds[batch->kind].padded))
            return false;
        kind = (enum oriel_kind)batch->kind;
    }
    const uint64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    struct oriel_node *run = batch->runs == 1 ? &part->node : &part->run;
    part->at_bytes = batch->at_bytes;
    return batch->runs > 0 && batch->run_bytes % extent_bytes == 0 && set_run(run, kind, batch->run_bytes / extent_bytes) &&
           (batch->runs == 1 || set_loop(&part->node, run, batch->runs, batch->stride_bytes));
}

static void set_type(struct oriel_type *type, struct oriel_node *layout)
{
    const bool dense = layout->form == ORIEL_NODE_RUN;
    const int64_t extent_bytes = dense ? (int64_t)oriel_run_bytes(layout) : layout->high_bytes;
    *type = (struct oriel_type){.kind = layout->kind,
                                .dense = dense,
                                .elements = layout->elements,
                                .size_bytes = layout->size_bytes,
                                .extent_bytes = extent_bytes,
                                .plain_bytes = dense && !layout->padded ? extent_bytes : INT64_MAX,
                                .layout = layout};
}

static bool make_part(const struct order *order, uint32_t which, struct part *part)
{
    bool made;
    part->at_bytes = 0;
    if (order->head->c == 0)
        made = set_run(&part->node, order->kind, order->head->b);
    else if (order->places != NULL)
        made = set_blocks(&part->node, order);
    else
        made = set_batch(part, order, &order->batches[which]);
    if (made)
        set_type(&part->type, &part->node);
    return made && !__builtin_add_overflow((int64_t)order->head->a, part->at_bytes, &part->at_bytes);
}

/* Every run of a dynamic window's part by itself: what lies between them need not be attached. */
static bool are_attached(const struct oriel_window *window, const struct part *part)
{
    struct oriel_cursor cursor;
    bool held = oriel_cursor_open(&cursor, &part->node, 1, 0);
    while (held && oriel_cursor_fill(&cursor)) {
        const struct oriel_batch *batch = &cursor.batch;
        uint64_t len_bytes = batch->run_bytes - oriel_kind_tail_bytes(&oriel_kinds[batch->kind]);
        held = oriel_lookup_hold(window, window->rank, (uint64_t)(part->at_bytes + batch->at_bytes), len_bytes);
        oriel_batch_use_runs(&cursor.batch, 1);
    }
    oriel_cursor_close(&cursor);
    return held;
}

static enum oriel_status check_range(const struct order *order, const struct part *part)
{
    const struct oriel_window *window = order->window;
    const uint64_t size_bytes = window->targets[window->rank].size_bytes;
    int64_t low_bytes;
    int64_t high_bytes;
    if (__builtin_add_overflow(part->at_bytes, part->node.low_bytes, &low_bytes) ||
        __builtin_add_overflow(part->at_bytes, part->node.high_bytes, &high_bytes))
        return malformed(order, "range");
    const uint64_t len_bytes = (uint64_t)high_bytes - (uint64_t)low_bytes;
    if (window->flavour != ORIEL_FLAVOUR_DYNAMIC && (low_bytes < 0 || (uint64_t)high_bytes > size_bytes))
        return oriel_fail(ORIEL_E_RANGE, "bytes %lld to %lld leave rank %d's window of %llu bytes", (long long)low_bytes,
                          (long long)high_bytes, (int)window->rank, (unsigned long long)size_bytes);
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC && !oriel_lookup_hold(window, window->rank, (uint64_t)low_bytes, len_bytes) &&
        !are_attached(window, part))
        return oriel_fail(ORIEL_E_RANGE, "%llu bytes at address %#llx are not all attached at rank %d",
                          (unsigned long long)len_bytes, (unsigned long long)low_bytes, (int)window->rank);
    return ORIEL_OK;
}

static enum oriel_status check_parts(const struct order *order)
{
    struct part part;
    uint64_t moved_bytes = 0;
    enum oriel_status status = ORIEL_OK;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        if (!make_part(order, i, &part))
            return malformed(order, "layout");
        if (part.node.size_bytes > order->moved_bytes)
            return malformed(order, "count"); /* and the sum is far from overflowing */
        moved_bytes += part.node.size_bytes;
        status = check_range(order, &part);
    }
    return status != ORIEL_OK || moved_bytes == order->moved_bytes ? status : malformed(order, "count");
}

/* What stands in front of the operands. */
static enum oriel_status take_places(struct order *order, const struct oriel_net_arrived *message)
{
    const uint64_t count = order->head->c;
    const bool blocks = count > 0 && (order->flags & ORIEL_FAR_BLOCKS);
    const uint64_t places_bytes = count * (blocks ? 16 : sizeof *order->batches);
    if (places_bytes > message->len_bytes)
        return malformed(order, "length");
    const void *places = message->data;
    order->places = blocks ? places : NULL;
    order->lengths = blocks ? (const uint64_t *)places + count : NULL;
    order->batches = places;
    order->parts = blocks || count == 0 ? 1 : (uint32_t)count;
    order->operands = message->data + places_bytes;
    order->operand_bytes = message->len_bytes - places_bytes;
    return ORIEL_OK;
}

static enum oriel_status take_apart(struct order *order, const struct oriel_net_arrived *message)
{
    const struct oriel_far_head *head = order->head;
    const uint32_t kind = head->d >> 8 & 255;
    const uint32_t operator = head->d & 255;
    bool carries = head->kind == ORIEL_FAR_PUT;
    order->flags = head->d >> 16;
    order->kind = ORIEL_KIND_CHAR;
    if (head->kind == ORIEL_FAR_ACCUMULATE) {
        if (kind >= ORIEL_KIND_COUNT || operator >= ORIEL_OPERATOR_COUNT || oriel_kinds[kind].plain[operator] == NULL)
            return malformed(order, "datatype or operator");
        order->kind = (enum oriel_kind)kind;
        order->operator = (enum oriel_operator)operator;
        carries = operator != ORIEL_OPERATOR_NO_OP;
    }
    order->unit_bytes = oriel_far_element_bytes(order->kind);
    order->moved_bytes = head->b * order->unit_bytes;
    if (head->b == 0 || head->b > ORIEL_NET_DATA_BYTES || order->moved_bytes > ORIEL_NET_DATA_BYTES)
        return malformed(order, "count");
    enum oriel_status status = take_places(order, message);
    if (status == ORIEL_OK && order->operand_bytes != (carries ? order->moved_bytes : 0))
        status = malformed(order, "length");
    return status == ORIEL_OK ? check_parts(order) : status;
}

static struct oriel_span span_of(const struct order *order, const struct part *part)
{
    return (struct oriel_span){order->window->rank, (uint64_t)part->at_bytes, {&part->type, 1}};
}

/* Puts or gets part by part; packed: the message's operands, or room for what is read. */
static enum oriel_status transfer(const struct order *order, char *packed)
{
    struct part part;
    struct oriel_node chars;
    struct oriel_type type;
    enum oriel_status status = ORIEL_OK;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        make_part(order, i, &part);
        set_run(&chars, ORIEL_KIND_CHAR, part.node.size_bytes);
        set_type(&type, &chars);
        const struct oriel_span target = span_of(order, &part);
        const struct oriel_side here = {&type, 1};
        status = order->head->kind == ORIEL_FAR_PUT ? oriel_put(order->window, &target, packed, &here)
                                                    : oriel_get(order->window, &target, packed, &here);
        packed += part.node.size_bytes;
    }
    return status;
}

/* Elements as accumulates take them, part by part. */
static enum oriel_status update(const struct order *order, const char *operands, char *results)
{
    struct part part;
    struct oriel_node elements;
    struct oriel_type type;
    enum oriel_status status = ORIEL_OK;
    uint64_t at = 0;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        make_part(order, i, &part);
        set_run(&elements, order->kind, part.node.elements);
        set_type(&type, &elements);
        const struct oriel_span target = span_of(order, &part);
        const struct oriel_buffer from = {(char *)(uintptr_t)operands + at, {&type, 1}};
        const struct oriel_buffer to = {results != NULL ? results + at : NULL, {&type, 1}};
        status = oriel_accumulate(order->window, &target, part.node.elements, order->operator, &from,
                                  results != NULL ? &to : NULL);
        at += oriel_run_bytes(&elements);
    }
    return status;
}

/* Where the elements are padded, packed is not as they lie in memory. */
static char *spread(const struct order *order, const char *packed, const struct oriel_far_batch *elements)
{
    char *spread_out = calloc(elements->run_bytes, 1);
    if (spread_out != NULL && order->operand_bytes > 0)
        oriel_far_unpack(packed, elements, spread_out);
    return spread_out;
}

static enum oriel_status update_padded(const struct order *order, char *packed_results)
{
    const struct oriel_far_batch elements = {.run_bytes = (uint32_t)(order->head->b * oriel_kinds[order->kind].extent_bytes),
                                             .runs = 1,
                                             .kind = order->kind};
    char *operands = spread(order, order->operands, &elements);
    char *results = packed_results != NULL ? calloc(elements.run_bytes, 1) : NULL;
    enum oriel_status status = ORIEL_OK;
    if (operands == NULL || (packed_results != NULL && results == NULL))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for elements of rank %d", (int)order->head->from);
    else
        status = update(order, operands, results);
    if (status == ORIEL_OK && results != NULL)
        oriel_far_pack(packed_results, &elements, results);
    free(operands);
    free(results);
    return status;
}

/* packed: room for the answer, or NULL. */
static enum oriel_status execute(const struct order *order, char *packed)
{
    if (order->head->kind == ORIEL_FAR_PUT)
        return transfer(order, (char *)(uintptr_t)order->operands);
    if (order->head->kind == ORIEL_FAR_GET)
        return transfer(order, packed);
    return oriel_kinds[order->kind].padded ? update_padded(order, packed) : update(order, order->operands, packed);
}

static enum oriel_status serve_swap(struct oriel_window *window, const struct oriel_far_head *head,
                                    const struct oriel_net_arrived *message, char *found, uint64_t *found_bytes)
{
    struct order order = {.window = window, .head = head};
    struct part part = {.at_bytes = (int64_t)head->a};
    const uint32_t kind = head->d >> 8 & 255;
    if (kind >= ORIEL_KIND_COUNT || oriel_kinds[kind].padded || oriel_kinds[kind].extent_bytes > ORIEL_SWAP_BYTES)
        return malformed(&order, "datatype");
    const uint64_t len_bytes = oriel_kinds[kind].extent_bytes;
    if (message->len_bytes != 2 * len_bytes)
        return malformed(&order, "length");
    set_run(&part.node, (enum oriel_kind)kind, 1);
    set_type(&part.type, &part.node);
    enum oriel_status status = check_range(&order, &part);
    const struct oriel_span target = span_of(&order, &part);
    *found_bytes = len_bytes;
    return status != ORIEL_OK
               ? status
               : oriel_compare_and_swap(window, &target, message->data, message->data + len_bytes, found);
}

/* What is answered with what a get or an update has read. */
static void serve_asked(const struct order *order, const struct oriel_net_asker *asker)
{
    struct oriel_window *window = order->window;
    const struct oriel_far_head *head = order->head;
    struct iovec data = {malloc(order->moved_bytes), order->moved_bytes};
    enum oriel_status status = ORIEL_OK;
    if (data.iov_base == NULL)
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory to answer rank %d", (int)head->from);
    else
        status = execute(order, data.iov_base);
    if (status != ORIEL_OK)
        oriel_far_failed(window, head->from, status);
    oriel_far_answer(window, asker, head->from, &data, status == ORIEL_OK ? 1 : 0);
    free(data.iov_base);
}

/* A run of the own memory goes as it is; a word is loaded in one piece, for those who poll. */
static void answer_run(const struct order *order, const struct oriel_net_asker *asker)
{
    const struct oriel_far_head *head = order->head;
    const struct oriel_way way = oriel_remote_find(order->window, order->window->rank, head->a, 0, (int64_t)head->b);
    uint64_t word;
    struct iovec data = {way.there.direct, head->b};
    if (head->b <= sizeof word) {
        way.by->read(&way.there, &word, head->b);
        data.iov_base = &word;
    }
    oriel_far_answer(order->window, asker, head->from, &data, 1);
}

void oriel_far_serve_operation(struct oriel_window *window, const struct oriel_net_asker *asker,
                               const struct oriel_far_head *head, const struct oriel_net_arrived *message)
{
    struct order order = {.window = window, .head = head};
    char found[ORIEL_SWAP_BYTES];
    struct iovec data = {found, 0};
    bool asked = head->kind == ORIEL_FAR_GET || head->kind == ORIEL_FAR_SWAP ||
                 (head->kind == ORIEL_FAR_ACCUMULATE && (head->d >> 16 & ORIEL_FAR_RETURNS));
    enum oriel_status status = ORIEL_OK;
    if (head->kind == ORIEL_FAR_SWAP)
        status = serve_swap(window, head, message, found, &data.iov_len);
    else
        status = take_apart(&order, message);
    if (status == ORIEL_OK && head->kind == ORIEL_FAR_SWAP) {
        oriel_far_answer(window, asker, head->from, &data, 1);
    } else if (status == ORIEL_OK && asked) {
        if (head->kind == ORIEL_FAR_GET && head->c == 0)
            answer_run(&order, asker);
        else
            serve_asked(&order, asker);
    } else {
        if (status == ORIEL_OK)
            status = execute(&order, NULL);
        if (status != ORIEL_OK)
            oriel_far_failed(window, head->from, status);
        if (asked)
            oriel_far_answer(window, asker, head->from, NULL, 0);
    }
}
