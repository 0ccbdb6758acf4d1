/* Parses messages of internode origins (target_parse.h). Their offsets become layouts on the
 * caller's stack, like those of datatypes. Nothing is executed before all of a message is
 * validated. */
#include "internode/target/target_parse.h"

#include "rma/region_lookup.h"

enum oriel_status oriel_internode_malformed(const struct oriel_internode_order *order,
                                            const char *what)
{
    return oriel_fail(ORIEL_E_OTHER, "rank %d received a message from rank %d with an invalid %s",
                      (int)order->window->rank, (int)order->head->from, what);
}

static bool set_run(struct oriel_node *node, enum oriel_kind kind, uint64_t count)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    const uint64_t len_bytes = count * properties->extent_bytes;
    if (count == 0 || count > INT32_MAX)
        return false;
    *node =
        (struct oriel_node){.form = ORIEL_NODE_RUN,
                            .kind = kind,
                            .count = count,
                            .elements = count,
                            .size_bytes = count * oriel_kind_moving_bytes(kind),
                            .high_bytes = (int64_t)(len_bytes - oriel_kind_tail_bytes(properties)),
                            .runs = 1,
                            .depth = 1,
                            .padded = properties->padded,
                            .references = 1};
    return true;
}

/* Counts and lengths have 31 bits, so only the last run's offset may overflow. */
static bool set_loop(struct oriel_node *node, struct oriel_node *run, uint64_t count,
                     int64_t stride_bytes)
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
    return !__builtin_add_overflow(run->high_bytes, last_bytes > 0 ? last_bytes : 0,
                                   &node->high_bytes);
}

static bool set_blocks(struct oriel_node *node, const struct oriel_internode_order *order)
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
        if (order->lengths[i] == 0 || order->lengths[i] > INT32_MAX ||
            order->lengths[i] % extent_bytes != 0 ||
            __builtin_add_overflow(low_bytes, (int64_t)order->lengths[i], &high_bytes))
            return false;
        node->size_bytes += order->lengths[i];
        node->low_bytes = low_bytes < node->low_bytes ? low_bytes : node->low_bytes;
        node->high_bytes = high_bytes > node->high_bytes ? high_bytes : node->high_bytes;
    }
    node->elements = node->size_bytes / extent_bytes;
    return true;
}

static bool set_batch(struct oriel_internode_part *part, const struct oriel_internode_order *order,
                      const struct oriel_internode_batch *batch)
{
    enum oriel_kind kind = order->kind;
    if (order->head->kind != ORIEL_INTERNODE_ACCUMULATE) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): batches exist without blocks */
        if (batch->kind >= ORIEL_KIND_COUNT ||
            (batch->kind != ORIEL_KIND_CHAR && !oriel_kinds[batch->kind].padded))
            return false;
        kind = (enum oriel_kind)batch->kind;
    }
    const uint64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): as above */
    struct oriel_node *run = batch->runs == 1 ? &part->node : &part->run;
    part->at_bytes = batch->at_bytes;
    return batch->runs > 0 && batch->run_bytes % extent_bytes == 0 &&
           set_run(run, kind, batch->run_bytes / extent_bytes) &&
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

bool oriel_internode_part_run(struct oriel_internode_part *part, uint64_t at_bytes,
                              enum oriel_kind kind, uint64_t count)
{
    part->at_bytes = (int64_t)at_bytes;
    if (!set_run(&part->node, kind, count))
        return false;
    set_type(&part->type, &part->node);
    return true;
}

bool oriel_internode_part_make(const struct oriel_internode_order *order, uint32_t which,
                               struct oriel_internode_part *part)
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
    return made &&
           !__builtin_add_overflow((int64_t)order->head->a, part->at_bytes, &part->at_bytes);
}

/* Checks every run of a dynamic window's part separately: the gaps between runs need not be
 * attached. */
static bool are_attached(const struct oriel_window *window, const struct oriel_internode_part *part)
{
    struct oriel_cursor cursor;
    bool held = oriel_cursor_open(&cursor, &part->node, 1, 0);
    while (held && oriel_cursor_fill(&cursor)) {
        const struct oriel_batch *batch = &cursor.batch;
        uint64_t len_bytes = batch->run_bytes - oriel_kind_tail_bytes(&oriel_kinds[batch->kind]);
        held = oriel_region_lookup_hold(window, window->rank,
                                        (uint64_t)(part->at_bytes + batch->at_bytes), len_bytes);
        oriel_batch_use_runs(&cursor.batch, 1);
    }
    oriel_cursor_close(&cursor);
    return held;
}

enum oriel_status oriel_internode_part_check(const struct oriel_internode_order *order,
                                             const struct oriel_internode_part *part)
{
    const struct oriel_window *window = order->window;
    const uint64_t size_bytes = window->targets[window->rank].size_bytes;
    int64_t low_bytes;
    int64_t high_bytes;
    if (__builtin_add_overflow(part->at_bytes, part->node.low_bytes, &low_bytes) ||
        __builtin_add_overflow(part->at_bytes, part->node.high_bytes, &high_bytes))
        return oriel_internode_malformed(order, "range");
    const uint64_t len_bytes = (uint64_t)high_bytes - (uint64_t)low_bytes;
    if (window->flavour != ORIEL_FLAVOUR_DYNAMIC &&
        (low_bytes < 0 || (uint64_t)high_bytes > size_bytes))
        return oriel_fail(ORIEL_E_RANGE, "bytes %lld to %lld exceed rank %d's window of %llu bytes",
                          (long long)low_bytes, (long long)high_bytes, (int)window->rank,
                          (unsigned long long)size_bytes);
    if (window->flavour == ORIEL_FLAVOUR_DYNAMIC &&
        !oriel_region_lookup_hold(window, window->rank, (uint64_t)low_bytes, len_bytes) &&
        !are_attached(window, part))
        return oriel_fail(
            ORIEL_E_RANGE, "%llu bytes at address %#llx are not all attached at rank %d",
            (unsigned long long)len_bytes, (unsigned long long)low_bytes, (int)window->rank);
    return ORIEL_OK;
}

static enum oriel_status check_parts(const struct oriel_internode_order *order)
{
    struct oriel_internode_part part;
    uint64_t moved_bytes = 0;
    enum oriel_status status = ORIEL_OK;
    for (uint32_t i = 0; i < order->parts && status == ORIEL_OK; i++) {
        if (!oriel_internode_part_make(order, i, &part))
            return oriel_internode_malformed(order, "layout");
        if (part.node.size_bytes > order->moved_bytes)
            return oriel_internode_malformed(order, "count"); /* so the sum cannot overflow */
        moved_bytes += part.node.size_bytes;
        status = oriel_internode_part_check(order, &part);
    }
    return status != ORIEL_OK || moved_bytes == order->moved_bytes
               ? status
               : oriel_internode_malformed(order, "count");
}

/* Parses the offsets before the operands. */
static enum oriel_status parse_offsets(struct oriel_internode_order *order,
                                       const struct oriel_net_received *message)
{
    const uint64_t count = order->head->c;
    const bool blocks = count > 0 && (order->flags & ORIEL_INTERNODE_BLOCKS);
    const uint64_t places_bytes = count * (blocks ? 16 : sizeof *order->batches);
    if (places_bytes > message->len_bytes)
        return oriel_internode_malformed(order, "length");
    const void *places = message->data;
    order->places = blocks ? places : NULL;
    order->lengths = blocks ? (const uint64_t *)places + count : NULL;
    order->batches = places;
    order->parts = blocks || count == 0 ? 1 : (uint32_t)count;
    order->operands = message->data + places_bytes;
    order->operand_bytes = message->len_bytes - places_bytes;
    return ORIEL_OK;
}

enum oriel_status oriel_internode_order_read(struct oriel_internode_order *order,
                                             const struct oriel_net_received *message)
{
    const struct oriel_internode_head *head = order->head;
    const uint32_t kind = head->d >> 8 & 255;
    const uint32_t op = head->d & 255;
    bool carries = head->kind == ORIEL_INTERNODE_PUT;
    order->flags = head->d >> 16;
    order->kind = ORIEL_KIND_CHAR;
    if (head->kind == ORIEL_INTERNODE_ACCUMULATE) {
        if (kind >= ORIEL_KIND_COUNT || op >= ORIEL_OPERATOR_COUNT ||
            oriel_kinds[kind].plain[op] == NULL)
            return oriel_internode_malformed(order, "datatype or operator");
        order->kind = (enum oriel_kind)kind;
        order->op = (enum oriel_operator)op;
        carries = op != ORIEL_OPERATOR_NO_OP;
    }
    order->unit_bytes = oriel_kind_moving_bytes(order->kind);
    order->moved_bytes = head->b * order->unit_bytes;
    if (head->b == 0 || head->b > ORIEL_NET_DATA_BYTES || order->moved_bytes > ORIEL_NET_DATA_BYTES)
        return oriel_internode_malformed(order, "count");
    enum oriel_status status = parse_offsets(order, message);
    if (status == ORIEL_OK && order->operand_bytes != (carries ? order->moved_bytes : 0))
        status = oriel_internode_malformed(order, "length");
    return status == ORIEL_OK ? check_parts(order) : status;
}
