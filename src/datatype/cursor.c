/* Walks layouts. A cursor returns runs in the order of the type map, as many at a time as have
 * equal strides. Each cursor is used by one thread. */
#include "datatype/layout.h"

#include <stdlib.h>

bool oriel_cursor_open(struct oriel_cursor *cursor, const struct oriel_node *node, uint64_t count,
                       int64_t extent_bytes)
{
    unsigned depth = node->depth + 1;
    cursor->frames =
        depth <= ORIEL_CURSOR_DEPTH ? cursor->own : malloc(depth * sizeof *cursor->frames);
    if (cursor->frames == NULL)
        return false;
    cursor->batch.left_bytes = 0;
    cursor->depth = 0;
    if (count == 0 || node->elements == 0)
        return true;
    /* A tree node inside the cursor itself, because the tree is shared by all threads: adjacent
     * items form one run, others a loop. A walk reads only these fields of the node. */
    const bool touch =
        node->form == ORIEL_NODE_RUN && extent_bytes == (int64_t)oriel_run_bytes(node);
    cursor->items.form = touch ? ORIEL_NODE_RUN : ORIEL_NODE_LOOP;
    cursor->items.kind = node->kind;
    cursor->items.count = touch ? count * node->count : count;
    cursor->items.stride_bytes = extent_bytes;
    cursor->items.child = (struct oriel_node *)(uintptr_t)node;
    cursor->frames[cursor->depth++] = (struct oriel_frame){&cursor->items, 0, 0};
    return true;
}

void oriel_cursor_close(struct oriel_cursor *cursor)
{
    if (cursor->frames != cursor->own)
        free(cursor->frames);
}

static void batch_set_run(struct oriel_batch *batch, const struct oriel_node *run,
                          int64_t base_bytes, uint64_t runs, int64_t stride_bytes)
{
    *batch = (struct oriel_batch){.kind = run->kind,
                                  .at_bytes = base_bytes,
                                  .left_bytes = oriel_run_bytes(run),
                                  .run_bytes = oriel_run_bytes(run),
                                  .further = runs - 1,
                                  .stride_bytes = stride_bytes,
                                  .start_bytes = base_bytes};
}

static void batch_set_block(struct oriel_batch *batch, const struct oriel_node *blocks,
                            uint64_t which, int64_t base_bytes)
{
    uint64_t len_bytes = oriel_block_bytes(blocks, which);
    *batch = (struct oriel_batch){.kind = blocks->kind != ORIEL_KIND_NONE ? blocks->kind
                                                                          : ORIEL_KIND_CHAR,
                                  .at_bytes = base_bytes + blocks->offsets[which],
                                  .left_bytes = len_bytes,
                                  .run_bytes = len_bytes,
                                  .start_bytes = base_bytes + blocks->offsets[which]};
}

static void batch_next_run(struct oriel_batch *batch, uint64_t runs)
{
    if (batch->further < runs) {
        batch->left_bytes = 0;
        return;
    }
    batch->further -= runs;
    batch->start_bytes += (int64_t)runs * batch->stride_bytes;
    batch->at_bytes = batch->start_bytes;
    batch->left_bytes = batch->run_bytes;
}

uint64_t oriel_batch_piece(const struct oriel_batch *batch)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[batch->kind];
    if (!kind->padded)
        return batch->left_bytes;
    uint64_t inside = (uint64_t)(batch->at_bytes - batch->start_bytes) % kind->extent_bytes;
    return inside < kind->index_offset ? kind->value_bytes - inside
                                       : kind->index_offset + kind->index_bytes - inside;
}

void oriel_batch_use(struct oriel_batch *batch, uint64_t len_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[batch->kind];
    if (kind->padded) {
        uint64_t inside =
            (uint64_t)(batch->at_bytes - batch->start_bytes) % kind->extent_bytes + len_bytes;
        if (inside == kind->value_bytes)
            len_bytes += kind->index_offset - kind->value_bytes;
        else if (inside == kind->index_offset + kind->index_bytes)
            len_bytes += kind->extent_bytes - inside;
    }
    oriel_batch_use_elements(batch, len_bytes);
}

void oriel_batch_use_elements(struct oriel_batch *batch, uint64_t len_bytes)
{
    batch->at_bytes += (int64_t)len_bytes;
    batch->left_bytes -= len_bytes;
    if (batch->left_bytes == 0)
        batch_next_run(batch, 1);
}

void oriel_batch_use_runs(struct oriel_batch *batch, uint64_t runs)
{
    batch_next_run(batch, runs);
}

/* One step down or up the tree; true if it has reached runs. */
static bool cursor_step(struct oriel_cursor *cursor)
{
    struct oriel_frame *frame = &cursor->frames[cursor->depth - 1];
    const struct oriel_node *node = frame->node;
    const struct oriel_node *child = node->child;
    if (node->form == ORIEL_NODE_RUN ||
        (node->form == ORIEL_NODE_LOOP && child->form == ORIEL_NODE_RUN)) {
        cursor->depth--;
        batch_set_run(&cursor->batch, node->form == ORIEL_NODE_RUN ? node : child,
                      frame->base_bytes, node->form == ORIEL_NODE_RUN ? 1 : node->count,
                      node->stride_bytes);
        return true;
    }
    if (frame->next == node->count) {
        cursor->depth--;
        return false;
    }
    if (node->form == ORIEL_NODE_BLOCKS) {
        batch_set_block(&cursor->batch, node, frame->next++, frame->base_bytes);
        return true;
    }
    int64_t base_bytes = frame->base_bytes;
    if (node->form == ORIEL_NODE_LOOP) {
        base_bytes += (int64_t)frame->next * node->stride_bytes;
    } else {
        base_bytes += node->branches[frame->next].offset_bytes;
        child = node->branches[frame->next].node;
    }
    frame->next++;
    cursor->frames[cursor->depth++] = (struct oriel_frame){child, 0, base_bytes};
    return false;
}

bool oriel_cursor_fill(struct oriel_cursor *cursor)
{
    while (cursor->batch.left_bytes == 0) {
        if (cursor->depth == 0)
            return false;
        cursor_step(cursor);
    }
    return true;
}

/* Returns how many of count blocks fit into most_bytes. If all do, there is no division. */
static uint64_t blocks_fitting(uint64_t count, uint64_t block_bytes, uint64_t most_bytes)
{
    uint64_t len_bytes;
    const bool fit =
        !__builtin_mul_overflow(count, block_bytes, &len_bytes) && len_bytes <= most_bytes;
    return fit ? count : most_bytes / block_bytes;
}

/* Takes whole blocks if the cursor is at a list of them. Returns false if it is not, or if the next
 * block is longer than most_bytes. */
static bool cursor_take_blocks(struct oriel_cursor *cursor, uint64_t most_bytes,
                               struct oriel_block_group *out)
{
    struct oriel_frame *frame = &cursor->frames[cursor->depth - 1];
    const struct oriel_node *node = frame->node;
    if (node->form != ORIEL_NODE_BLOCKS)
        return false;
    const uint64_t left = node->count - frame->next;
    *out = (struct oriel_block_group){.at_bytes = frame->base_bytes,
                                      .offsets = node->offsets + frame->next,
                                      .block_bytes = node->block_bytes};
    if (node->lengths != NULL) {
        out->lengths = node->lengths + frame->next;
        while (out->count < left && out->len_bytes + out->lengths[out->count] <= most_bytes)
            out->len_bytes += out->lengths[out->count++];
    } else {
        out->count = blocks_fitting(left, node->block_bytes, most_bytes);
        out->len_bytes = out->count * node->block_bytes;
    }
    frame->next += out->count;
    return out->count > 0;
}

bool oriel_cursor_blocks(struct oriel_cursor *cursor, uint64_t most_bytes,
                         struct oriel_block_group *out)
{
    struct oriel_batch *batch = &cursor->batch;
    while (batch->left_bytes == 0) {
        if (cursor->depth == 0)
            return false;
        if (cursor_take_blocks(cursor, most_bytes, out))
            return true;
        cursor_step(cursor);
    }
    *out = (struct oriel_block_group){
        .at_bytes = batch->at_bytes,
        .stride_bytes = batch->stride_bytes,
        .block_bytes = batch->left_bytes < most_bytes ? batch->left_bytes : most_bytes,
        .count = 1};
    if (out->block_bytes == batch->run_bytes) {
        out->count = blocks_fitting(batch->further + 1, batch->run_bytes, most_bytes);
        oriel_batch_use_runs(batch, out->count);
    } else {
        oriel_batch_use_elements(batch, out->block_bytes);
    }
    out->len_bytes = out->count * out->block_bytes;
    return true;
}
