/* Walks layouts.  A cursor yields runs in the order of the type map, as many at a time as lie at equal distances.  move.c,
 * accumulate.c and api/ call, each on a cursor of its own. */
#include "ops/layout.h"

#include <stdlib.h>

bool oriel_cursor_open(struct oriel_cursor *cursor, const struct oriel_node *node, uint64_t count, int64_t extent_bytes)
{
    unsigned depth = node->depth + 1;
    cursor->frames = depth <= ORIEL_CURSOR_DEPTH ? cursor->own : malloc(depth * sizeof *cursor->frames);
    if (cursor->frames == NULL)
        return false;
    cursor->batch.left_bytes = 0;
    cursor->depth = 0;
    if (count == 0 || node->elements == 0)
        return true;
    /* a loop on the cursor itself: the tree belongs to all threads */
    cursor->items = (struct oriel_node){.form = ORIEL_NODE_LOOP,
                                        .kind = node->kind,
                                        .count = count,
                                        .stride_bytes = extent_bytes,
                                        .child = (struct oriel_node *)(uintptr_t)node};
    cursor->frames[cursor->depth++] = (struct oriel_frame){&cursor->items, 0, 0};
    return true;
}

void oriel_cursor_close(struct oriel_cursor *cursor)
{
    if (cursor->frames != cursor->own)
        free(cursor->frames);
}

static void stand_on(struct oriel_batch *batch, const struct oriel_node *run, int64_t base_bytes, uint64_t runs,
                     int64_t stride_bytes)
{
    *batch = (struct oriel_batch){.kind = run->kind,
                                  .at_bytes = base_bytes,
                                  .left_bytes = oriel_run_bytes(run),
                                  .run_bytes = oriel_run_bytes(run),
                                  .further = runs - 1,
                                  .stride_bytes = stride_bytes,
                                  .start_bytes = base_bytes};
}

static void stand_on_block(struct oriel_batch *batch, const struct oriel_node *blocks, uint64_t which, int64_t base_bytes)
{
    uint64_t len_bytes = oriel_block_bytes(blocks, which);
    *batch = (struct oriel_batch){.kind = blocks->kind != ORIEL_KIND_NONE ? blocks->kind : ORIEL_KIND_CHAR,
                                  .at_bytes = base_bytes + blocks->offsets[which],
                                  .left_bytes = len_bytes,
                                  .run_bytes = len_bytes,
                                  .start_bytes = base_bytes + blocks->offsets[which]};
}

static void next_run(struct oriel_batch *batch, uint64_t runs)
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
    return inside < kind->index_offset ? kind->value_bytes - inside : kind->index_offset + kind->index_bytes - inside;
}

void oriel_batch_use(struct oriel_batch *batch, uint64_t len_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[batch->kind];
    if (kind->padded) {
        uint64_t inside = (uint64_t)(batch->at_bytes - batch->start_bytes) % kind->extent_bytes + len_bytes;
        if (inside == kind->value_bytes)
            len_bytes += kind->index_offset - kind->value_bytes;
        else if (inside == kind->index_offset + kind->index_bytes)
            len_bytes += kind->extent_bytes - inside;
    }
    batch->at_bytes += (int64_t)len_bytes;
    batch->left_bytes -= len_bytes;
    if (batch->left_bytes == 0)
        next_run(batch, 1);
}

void oriel_batch_use_runs(struct oriel_batch *batch, uint64_t runs)
{
    next_run(batch, runs);
}

/* One step down or up the tree; true when it has reached runs. */
static bool step(struct oriel_cursor *cursor)
{
    struct oriel_frame *frame = &cursor->frames[cursor->depth - 1];
    const struct oriel_node *node = frame->node;
    const struct oriel_node *child = node->child;
    if (node->form == ORIEL_NODE_RUN || (node->form == ORIEL_NODE_LOOP && child->form == ORIEL_NODE_RUN)) {
        cursor->depth--;
        stand_on(&cursor->batch, node->form == ORIEL_NODE_RUN ? node : child, frame->base_bytes,
                 node->form == ORIEL_NODE_RUN ? 1 : node->count, node->stride_bytes);
        return true;
    }
    if (frame->next == node->count) {
        cursor->depth--;
        return false;
    }
    if (node->form == ORIEL_NODE_BLOCKS) {
        stand_on_block(&cursor->batch, node, frame->next++, frame->base_bytes);
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
        step(cursor);
    }
    return true;
}
