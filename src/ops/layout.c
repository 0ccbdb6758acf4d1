/* Builds and walks layouts.  Every constructor keeps the sums (elements, bytes, bounds) right, so that no walk is needed to
 * check an operation.  Cursors yield runs in the order of the type map, which is what decides which origin element meets
 * which target element. */
#include "ops/layout.h"

#include <stdlib.h>
#include <string.h>

static struct oriel_node *make(enum oriel_node_form form)
{
    struct oriel_node *node = calloc(1, sizeof *node);
    if (node != NULL) {
        node->form = form;
        node->kind = ORIEL_KIND_NONE;
        node->depth = 1;
        node->references = 1;
    }
    return node;
}

void oriel_node_free(struct oriel_node *node)
{
    if (node == NULL || --node->references > 0)
        return;
    oriel_node_free(node->child);
    for (uint64_t i = 0; node->branches != NULL && i < node->count; i++)
        oriel_node_free(node->branches[i].node);
    free(node->branches);
    free(node);
}

struct oriel_node *oriel_node_share(struct oriel_node *node)
{
    if (node != NULL)
        node->references++;
    return node;
}

static uint64_t size_of(enum oriel_kind kind)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    return properties->padded ? properties->value_bytes + properties->index_bytes : properties->extent_bytes;
}

static void sum_run(struct oriel_node *node)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[node->kind];
    uint64_t len_bytes;
    node->vast = __builtin_mul_overflow(node->count, kind->extent_bytes, &len_bytes) || len_bytes > INT64_MAX;
    node->elements = node->count;
    node->size_bytes = node->count * size_of(node->kind);
    node->high_bytes = node->count == 0 ? 0 : (int64_t)(len_bytes - oriel_kind_tail_bytes(kind));
}

struct oriel_node *oriel_node_run(enum oriel_kind kind, uint64_t count)
{
    struct oriel_node *node = make(ORIEL_NODE_RUN);
    if (node != NULL) {
        node->kind = kind;
        node->count = count;
        sum_run(node);
    }
    return node;
}

static struct oriel_node *make_empty(struct oriel_node *unused)
{
    oriel_node_free(unused);
    return make(ORIEL_NODE_LIST);
}

static int64_t run_bytes(const struct oriel_node *run)
{
    return (int64_t)(run->count * oriel_kinds[run->kind].extent_bytes);
}

static void sum_loop(struct oriel_node *loop)
{
    const struct oriel_node *child = loop->child;
    int64_t last_bytes;
    loop->kind = child->kind;
    loop->depth = child->depth + 1;
    loop->vast = child->vast || loop->count > INT64_MAX;
    loop->vast |= __builtin_mul_overflow((int64_t)(loop->count - 1), loop->stride_bytes, &last_bytes);
    loop->vast |= __builtin_mul_overflow(loop->count, child->elements, &loop->elements);
    loop->vast |= __builtin_mul_overflow(loop->count, child->size_bytes, &loop->size_bytes);
    loop->vast |= __builtin_add_overflow(child->low_bytes, last_bytes < 0 ? last_bytes : 0, &loop->low_bytes);
    loop->vast |= __builtin_add_overflow(child->high_bytes, last_bytes > 0 ? last_bytes : 0, &loop->high_bytes);
}

/* The run or loop itself when it has no other owner, else a copy in its place; NULL, and nothing done, when memory is
 * exhausted. */
static struct oriel_node *make_own(struct oriel_node *node)
{
    if (node->references == 1)
        return node;
    struct oriel_node *copy = make(node->form);
    if (copy == NULL)
        return NULL;
    *copy = *node;
    copy->references = 1;
    oriel_node_share(copy->child);
    node->references--;
    return copy;
}

/* A run or loop of count times as many. */
static struct oriel_node *repeat(struct oriel_node *node, uint64_t count)
{
    struct oriel_node *own = make_own(node);
    if (own == NULL) {
        oriel_node_free(node);
        return NULL;
    }
    bool vast = __builtin_mul_overflow(own->count, count, &own->count);
    if (own->form == ORIEL_NODE_RUN)
        sum_run(own);
    else
        sum_loop(own);
    own->vast |= vast;
    return own;
}

/* Whether the node, stride_bytes further on, goes on where it ends: two of them are one run, or one loop. */
static bool continues(const struct oriel_node *node, int64_t stride_bytes)
{
    int64_t len_bytes;
    if (node->vast || node->form == ORIEL_NODE_LIST)
        return false;
    if (node->form == ORIEL_NODE_RUN)
        return stride_bytes == run_bytes(node);
    return !__builtin_mul_overflow((int64_t)node->count, node->stride_bytes, &len_bytes) && stride_bytes == len_bytes;
}

struct oriel_node *oriel_node_loop(uint64_t count, int64_t stride_bytes, struct oriel_node *child)
{
    if (child == NULL || count == 1)
        return child;
    if (count == 0 || child->elements == 0)
        return make_empty(child);
    if (continues(child, stride_bytes))
        return repeat(child, count);
    struct oriel_node *loop = make(ORIEL_NODE_LOOP);
    if (loop == NULL) {
        oriel_node_free(child);
        return NULL;
    }
    loop->count = count;
    loop->stride_bytes = stride_bytes;
    loop->child = child;
    sum_loop(loop);
    return loop;
}

/* Whether b continues a where a ends. */
static bool touches(const struct oriel_branch *a, const struct oriel_branch *b)
{
    int64_t end_bytes;
    return a->node->form == ORIEL_NODE_RUN && b->node->form == ORIEL_NODE_RUN && a->node->kind == b->node->kind &&
           !a->node->vast && !b->node->vast &&
           !__builtin_add_overflow(a->offset_bytes, run_bytes(a->node), &end_bytes) && end_bytes == b->offset_bytes;
}

/* Makes run a as long as both; false when they do not touch, or memory is exhausted, and both stay as they are. */
static bool join(struct oriel_branch *a, const struct oriel_branch *b)
{
    struct oriel_node *longer = touches(a, b) ? make_own(a->node) : NULL;
    if (longer == NULL)
        return false;
    longer->count += b->node->count;
    sum_run(longer);
    oriel_node_free(b->node);
    a->node = longer;
    return true;
}

/* Drops what is empty and joins runs that touch; returns how many branches are left. */
static uint64_t simplify(struct oriel_branch *branches, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (branches[i].node->elements == 0)
            oriel_node_free(branches[i].node);
        else if (kept == 0 || !join(&branches[kept - 1], &branches[i]))
            branches[kept++] = branches[i];
    }
    return kept;
}

static void sum_list(struct oriel_node *list)
{
    bool mixed = false;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct oriel_branch *branch = &list->branches[i];
        int64_t low_bytes;
        int64_t high_bytes;
        list->vast |= branch->node->vast;
        list->vast |= __builtin_add_overflow(branch->offset_bytes, branch->node->low_bytes, &low_bytes);
        list->vast |= __builtin_add_overflow(branch->offset_bytes, branch->node->high_bytes, &high_bytes);
        list->vast |= __builtin_add_overflow(list->elements, branch->node->elements, &list->elements);
        list->vast |= __builtin_add_overflow(list->size_bytes, branch->node->size_bytes, &list->size_bytes);
        mixed = mixed || (i > 0 && list->kind != branch->node->kind) || branch->node->kind == ORIEL_KIND_NONE;
        list->kind = mixed ? ORIEL_KIND_NONE : branch->node->kind;
        list->low_bytes = i == 0 || low_bytes < list->low_bytes ? low_bytes : list->low_bytes;
        list->high_bytes = i == 0 || high_bytes > list->high_bytes ? high_bytes : list->high_bytes;
        list->depth = branch->node->depth + 1 > list->depth ? branch->node->depth + 1 : list->depth;
    }
}

static bool is_complete(uint64_t count, const struct oriel_branch *branches)
{
    for (uint64_t i = 0; i < count; i++)
        if (branches[i].node == NULL)
            return false;
    return true;
}

struct oriel_node *oriel_node_list(uint64_t count, struct oriel_branch *branches)
{
    struct oriel_node *list = make(ORIEL_NODE_LIST);
    if (list == NULL || branches == NULL || !is_complete(count, branches)) {
        for (uint64_t i = 0; branches != NULL && i < count; i++)
            oriel_node_free(branches[i].node);
        free(branches);
        free(list);
        return NULL;
    }
    list->branches = branches;
    list->count = simplify(branches, count);
    if (list->count == 1 && branches[0].offset_bytes == 0) {
        struct oriel_node *only = branches[0].node;
        free(branches);
        free(list);
        return only;
    }
    sum_list(list);
    return list;
}

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
                                  .left_bytes = (uint64_t)run_bytes(run),
                                  .run_bytes = (uint64_t)run_bytes(run),
                                  .further = runs - 1,
                                  .stride_bytes = stride_bytes,
                                  .start_bytes = base_bytes};
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

bool oriel_layout_bounds(const struct oriel_node *node, uint64_t count, int64_t extent_bytes, int64_t *low_bytes,
                         int64_t *high_bytes)
{
    int64_t last_bytes;
    *low_bytes = node->low_bytes;
    *high_bytes = node->high_bytes;
    if (node->vast || count > INT64_MAX || __builtin_mul_overflow((int64_t)count - 1, extent_bytes, &last_bytes))
        return false;
    return last_bytes < 0 ? !__builtin_add_overflow(*low_bytes, last_bytes, low_bytes)
                          : !__builtin_add_overflow(*high_bytes, last_bytes, high_bytes);
}
