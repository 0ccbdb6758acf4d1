/* Builds layouts. Every constructor maintains the sums (elements, bytes, bounds), so no walk is
 * needed to check an operation. It also maintains the order of the type map, which determines the
 * pairs of origin and target elements. */
#include "datatype/layout.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The number of a node that is new, or is changed in place. */
static uint64_t node_number_next(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

static void memos_free(struct oriel_node *node)
{
    struct oriel_memo *memo = atomic_load_explicit(&node->memos, memory_order_acquire);
    atomic_store_explicit(&node->memos, NULL, memory_order_relaxed);
    while (memo != NULL) {
        struct oriel_memo *next = memo->next;
        free(memo);
        memo = next;
    }
}

static struct oriel_node *node_create(enum oriel_node_form form)
{
    struct oriel_node *node = calloc(1, sizeof *node);
    if (node != NULL) {
        node->form = form;
        node->kind = ORIEL_KIND_NONE;
        node->depth = 1;
        node->references = 1;
        node->number = node_number_next();
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
    free(node->offsets);
    free(node->lengths);
    memos_free(node);
    free(node);
}

struct oriel_node *oriel_node_share(struct oriel_node *node)
{
    if (node != NULL)
        node->references++;
    return node;
}

static uint64_t kind_size(enum oriel_kind kind)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    return properties->padded ? properties->value_bytes + properties->index_bytes
                              : properties->extent_bytes;
}

static void sum_run(struct oriel_node *node)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[node->kind];
    uint64_t len_bytes;
    node->vast = __builtin_mul_overflow(node->count, kind->extent_bytes, &len_bytes) ||
                 len_bytes > INT64_MAX;
    node->elements = node->count;
    node->runs = 1;
    node->size_bytes = node->count * kind_size(node->kind);
    node->high_bytes = node->count == 0 ? 0 : (int64_t)(len_bytes - oriel_kind_tail_bytes(kind));
    node->padded = kind->padded;
}

struct oriel_node *oriel_node_run(enum oriel_kind kind, uint64_t count)
{
    struct oriel_node *node = node_create(ORIEL_NODE_RUN);
    if (node != NULL) {
        node->kind = kind;
        node->count = count;
        sum_run(node);
    }
    return node;
}

/* A vast node may have an element count of 0. */
static bool node_is_empty(const struct oriel_node *node)
{
    return node->elements == 0 && !node->vast;
}

static struct oriel_node *node_empty(struct oriel_node *unused)
{
    oriel_node_free(unused);
    return node_create(ORIEL_NODE_LIST);
}

static int64_t run_len_bytes(const struct oriel_node *run)
{
    return (int64_t)oriel_run_bytes(run);
}

static void sum_loop(struct oriel_node *loop)
{
    const struct oriel_node *child = loop->child;
    int64_t last_bytes;
    loop->kind = child->kind;
    loop->padded = child->padded;
    if (__builtin_mul_overflow(loop->count, child->runs, &loop->runs))
        loop->runs = UINT64_MAX;
    loop->depth = child->depth + 1;
    loop->vast =
        child->vast || loop->count > INT64_MAX || loop->stride_bytes == ORIEL_OFFSET_OVERFLOW;
    loop->vast |=
        __builtin_mul_overflow((int64_t)(loop->count - 1), loop->stride_bytes, &last_bytes);
    loop->vast |= __builtin_mul_overflow(loop->count, child->elements, &loop->elements);
    loop->vast |= __builtin_mul_overflow(loop->count, child->size_bytes, &loop->size_bytes);
    loop->vast |=
        __builtin_add_overflow(child->low_bytes, last_bytes < 0 ? last_bytes : 0, &loop->low_bytes);
    loop->vast |= __builtin_add_overflow(child->high_bytes, last_bytes > 0 ? last_bytes : 0,
                                         &loop->high_bytes);
}

/* Returns the run or loop itself if it has no other owner, else a copy whose sums the caller
 * computes. Returns NULL without side effects if memory is exhausted. */
static struct oriel_node *node_unshare(struct oriel_node *node)
{
    if (node->references == 1) {
        memos_free(node);
        node->number = node_number_next();
        return node;
    }
    struct oriel_node *copy = node_create(node->form);
    if (copy == NULL)
        return NULL;
    copy->kind = node->kind;
    copy->count = node->count;
    copy->stride_bytes = node->stride_bytes;
    copy->child = oriel_node_share(node->child);
    node->references--;
    return copy;
}

/* A run or loop with count times as many items. */
static struct oriel_node *node_repeat(struct oriel_node *node, uint64_t count)
{
    struct oriel_node *own = node_unshare(node);
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

/* True if a copy of the node at stride_bytes continues where the node ends: both together are one
 * run, or one loop. */
static bool node_continues(const struct oriel_node *node, int64_t stride_bytes)
{
    int64_t len_bytes;
    if (node->vast || (node->form != ORIEL_NODE_RUN && node->form != ORIEL_NODE_LOOP))
        return false;
    if (node->form == ORIEL_NODE_RUN)
        return stride_bytes == run_len_bytes(node);
    return !__builtin_mul_overflow((int64_t)node->count, node->stride_bytes, &len_bytes) &&
           stride_bytes == len_bytes;
}

struct oriel_node *oriel_node_loop(uint64_t count, int64_t stride_bytes, struct oriel_node *child)
{
    if (child == NULL || count == 1)
        return child;
    if (count == 0 || node_is_empty(child))
        return node_empty(child);
    if (node_continues(child, stride_bytes))
        return node_repeat(child, count);
    struct oriel_node *loop = node_create(ORIEL_NODE_LOOP);
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

/* True if b starts where a ends. */
static bool runs_touch(const struct oriel_branch *a, const struct oriel_branch *b)
{
    int64_t end_bytes;
    return a->node->form == ORIEL_NODE_RUN && b->node->form == ORIEL_NODE_RUN &&
           a->node->kind == b->node->kind && !a->node->vast && !b->node->vast &&
           !__builtin_add_overflow(a->offset_bytes, run_len_bytes(a->node), &end_bytes) &&
           end_bytes == b->offset_bytes;
}

/* Extends run a by run b. Returns false, with both unchanged, if they are not adjacent or memory is
 * exhausted. */
static bool runs_join(struct oriel_branch *a, const struct oriel_branch *b)
{
    struct oriel_node *longer = runs_touch(a, b) ? node_unshare(a->node) : NULL;
    if (longer == NULL)
        return false;
    longer->count += b->node->count;
    sum_run(longer);
    oriel_node_free(b->node);
    a->node = longer;
    return true;
}

/* Removes empty branches and joins adjacent runs. Returns the number of remaining branches. */
static uint64_t branches_simplify(struct oriel_branch *branches, uint64_t count)
{
    uint64_t remaining = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (node_is_empty(branches[i].node))
            oriel_node_free(branches[i].node);
        else if (remaining == 0 || !runs_join(&branches[remaining - 1], &branches[i]))
            branches[remaining++] = branches[i];
    }
    return remaining;
}

static void sum_list(struct oriel_node *list)
{
    bool mixed = false;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct oriel_branch *branch = &list->branches[i];
        int64_t low_bytes;
        int64_t high_bytes;
        list->vast |= branch->node->vast || branch->offset_bytes == ORIEL_OFFSET_OVERFLOW;
        list->padded |= branch->node->padded;
        if (__builtin_add_overflow(list->runs, branch->node->runs, &list->runs))
            list->runs = UINT64_MAX;
        list->vast |=
            __builtin_add_overflow(branch->offset_bytes, branch->node->low_bytes, &low_bytes);
        list->vast |=
            __builtin_add_overflow(branch->offset_bytes, branch->node->high_bytes, &high_bytes);
        list->vast |=
            __builtin_add_overflow(list->elements, branch->node->elements, &list->elements);
        list->vast |=
            __builtin_add_overflow(list->size_bytes, branch->node->size_bytes, &list->size_bytes);
        mixed = mixed || (i > 0 && list->kind != branch->node->kind) ||
                branch->node->kind == ORIEL_KIND_NONE;
        list->kind = mixed ? ORIEL_KIND_NONE : branch->node->kind;
        list->low_bytes = i == 0 || low_bytes < list->low_bytes ? low_bytes : list->low_bytes;
        list->high_bytes = i == 0 || high_bytes > list->high_bytes ? high_bytes : list->high_bytes;
        list->depth = branch->node->depth + 1 > list->depth ? branch->node->depth + 1 : list->depth;
    }
}

static bool branches_are_complete(uint64_t count, const struct oriel_branch *branches)
{
    for (uint64_t i = 0; i < count; i++)
        if (branches[i].node == NULL)
            return false;
    return true;
}

/* True if the branches are runs without padding, also for a single one after displacement 0. */
static bool branches_are_runs(const struct oriel_node *list)
{
    for (uint64_t i = 0; i < list->count; i++)
        if (list->branches[i].node->form != ORIEL_NODE_RUN)
            return false;
    return list->count > 0 && !list->padded && !list->vast;
}

/* The stride of identical branches with equal distances; 0 for others. */
static int64_t branches_stride(const struct oriel_node *list)
{
    const struct oriel_branch *branches = list->branches;
    int64_t distance_bytes = 0;
    for (uint64_t i = 1; i < list->count; i++) {
        int64_t from_last;
        if (branches[i].node->count != branches[0].node->count ||
            branches[i].node->kind != branches[0].node->kind ||
            __builtin_sub_overflow(branches[i].offset_bytes, branches[i - 1].offset_bytes,
                                   &from_last) ||
            (i > 1 && from_last != distance_bytes))
            return 0;
        distance_bytes = from_last;
    }
    return distance_bytes;
}

static void branches_free(struct oriel_branch *branches, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        oriel_node_free(branches[i].node);
    free(branches);
}

/* Replaces the branches by one, a loop over all of them. */
static void list_to_loop(struct oriel_node *list, int64_t distance_bytes)
{
    struct oriel_branch *branches = list->branches;
    struct oriel_node *loop =
        oriel_node_loop(list->count, distance_bytes, oriel_node_share(branches[0].node));
    if (loop == NULL)
        return; /* no memory: it stays a list */
    for (uint64_t i = 0; i < list->count; i++)
        oriel_node_free(branches[i].node);
    branches[0].node = loop;
    list->count = 1;
    list->depth = loop->depth + 1;
}

static bool numbers_are_equal(const uint64_t *numbers, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        if (numbers[i] != numbers[0])
            return false;
    return true;
}

/* Converts a list of runs to blocks. Runs of several kinds can only be moved; adjacent ones are
 * joined. */
static void list_to_blocks(struct oriel_node *list)
{
    int64_t *offsets = malloc(list->count * sizeof *offsets);
    uint64_t *lengths = malloc(list->count * sizeof *lengths);
    if (offsets == NULL || lengths == NULL) {
        free(offsets);
        free(lengths);
        return; /* no memory: it stays a list */
    }
    uint64_t count = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct oriel_branch *branch = &list->branches[i];
        const uint64_t len_bytes = oriel_run_bytes(branch->node);
        if (list->kind == ORIEL_KIND_NONE && count > 0 &&
            offsets[count - 1] + (int64_t)lengths[count - 1] == branch->offset_bytes) {
            lengths[count - 1] += len_bytes;
        } else {
            offsets[count] = branch->offset_bytes;
            lengths[count++] = len_bytes;
        }
    }
    if (numbers_are_equal(lengths, count)) {
        list->block_bytes = lengths[0];
        free(lengths);
        lengths = NULL;
    }
    branches_free(list->branches, list->count);
    list->branches = NULL;
    list->count = count;
    list->runs = count;
    list->offsets = offsets;
    list->lengths = lengths;
    list->form = ORIEL_NODE_BLOCKS;
    list->depth = 1;
}

/* A list of only runs becomes smaller and faster to walk. */
static struct oriel_node *list_compact(struct oriel_node *list)
{
    int64_t distance_bytes = branches_are_runs(list) ? branches_stride(list) : 0;
    if (distance_bytes != 0)
        list_to_loop(list, distance_bytes);
    else if (list->count > 1 && branches_are_runs(list))
        list_to_blocks(list);
    if (list->form != ORIEL_NODE_LIST || list->count != 1 || list->branches[0].offset_bytes != 0)
        return list;
    struct oriel_node *only = list->branches[0].node;
    free(list->branches);
    free(list);
    return only;
}

struct oriel_node *oriel_node_list(uint64_t count, struct oriel_branch *branches)
{
    struct oriel_node *list = node_create(ORIEL_NODE_LIST);
    if (list == NULL || branches == NULL || !branches_are_complete(count, branches)) {
        branches_free(branches, branches != NULL ? count : 0);
        free(list);
        return NULL;
    }
    list->branches = branches;
    list->count = branches_simplify(branches, count);
    sum_list(list);
    return list_compact(list);
}

/* ---- many blocks of one kind ---- */

enum {
    TOUCHING_PART = 2,   /* maximum fraction of the blocks is 1 / TOUCHING_PART */
    TOUCHING_BYTES = 16, /* maximum block size; within both limits adjacent blocks are not joined */
};

/* Blocks from which a node is made. */
struct blocks {
    int64_t *offsets;
    uint64_t *lengths; /* NULL if all are block_bytes long */
    uint64_t block_bytes;
    uint64_t count;
    uint64_t size_bytes;
    int64_t low_bytes, high_bytes;
};

/* Sums over the blocks so far. */
struct block_sums {
    int64_t low_bytes, high_bytes;
    uint64_t size_bytes;
    bool vast;
};

/* Computes the next block's offset and adds it to the sums. Returns the end of the block. */
static inline __attribute__((always_inline)) int64_t
block_sums_add(struct block_sums *sums, const struct oriel_block_list *listed, uint64_t i,
               uint64_t len_bytes, int64_t *offset_bytes)
{
    int64_t end_bytes;
    sums->vast |= __builtin_mul_overflow(oriel_number(&listed->displacements, i),
                                         listed->unit_bytes, offset_bytes);
    sums->vast |= __builtin_add_overflow(*offset_bytes, len_bytes, &end_bytes);
    sums->vast |= __builtin_add_overflow(sums->size_bytes, len_bytes, &sums->size_bytes);
    sums->low_bytes = *offset_bytes < sums->low_bytes ? *offset_bytes : sums->low_bytes;
    sums->high_bytes = end_bytes > sums->high_bytes ? end_bytes : sums->high_bytes;
    return end_bytes;
}

static bool blocks_sum(struct blocks *blocks, const struct block_sums *sums, uint64_t count)
{
    blocks->count = count;
    blocks->size_bytes = sums->size_bytes;
    blocks->low_bytes = sums->low_bytes;
    blocks->high_bytes = sums->high_bytes;
    return !sums->vast && count > 0;
}

/* The common length of all blocks; 0 if they differ. */
static uint64_t blocks_common_length(const struct oriel_block_list *listed)
{
    const int64_t length = oriel_block_list_length(listed, 0);
    const bool has_lengths = listed->lengths.narrow != NULL || listed->lengths.wide != NULL;
    int64_t others = 0;
    for (uint64_t i = 1; has_lengths && i < listed->count; i++)
        others |= oriel_number(&listed->lengths, i) ^ length;
    return others == 0 ? (uint64_t)length : 0;
}

/* Adds blocks of len_bytes if at most half of them start where the previous one ends. These are not
 * joined: a loop over single words is faster than one over words of varying length. Returns false
 * for other lists. */
static bool blocks_add_equal(struct blocks *blocks, uint64_t len_bytes,
                             const struct oriel_block_list *listed)
{
    int64_t *const offsets = blocks->offsets;
    struct block_sums sums = {INT64_MAX, INT64_MIN, 0, false};
    int64_t end_bytes = ORIEL_OFFSET_OVERFLOW;
    uint64_t touching = 0;
    for (uint64_t i = 0; i < listed->count; i++) {
        int64_t offset_bytes;
        const int64_t after_bytes = block_sums_add(&sums, listed, i, len_bytes, &offset_bytes);
        touching += offset_bytes == end_bytes;
        end_bytes = after_bytes;
        offsets[i] = offset_bytes;
    }
    blocks->block_bytes = len_bytes;
    return blocks_sum(blocks, &sums, listed->count) && touching <= listed->count / TOUCHING_PART &&
           (touching == 0 || len_bytes <= TOUCHING_BYTES);
}

/* Adds all blocks and joins adjacent ones, without a branch that depends on adjacency. Returns
 * false if a number overflows, or a block has holes. */
static bool blocks_add_joined(struct blocks *blocks, const struct oriel_node *item,
                              int64_t extent_bytes, const struct oriel_block_list *listed)
{
    const bool dense = (uint64_t)extent_bytes == item->size_bytes;
    int64_t *const offsets = blocks->offsets;
    uint64_t *const lengths = blocks->lengths;
    struct block_sums sums = {INT64_MAX, INT64_MIN, 0, false};
    int64_t start_bytes = 0, end_bytes = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < listed->count; i++) {
        const uint64_t length = (uint64_t)oriel_block_list_length(listed, i);
        int64_t offset_bytes;
        uint64_t len_bytes;
        if (length == 0)
            continue;
        if (length != 1 && !dense)
            return false;
        sums.vast |= __builtin_mul_overflow(length, item->size_bytes, &len_bytes);
        const int64_t after_bytes = block_sums_add(&sums, listed, i, len_bytes, &offset_bytes);
        const bool touches = count > 0 && offset_bytes == end_bytes;
        start_bytes = touches ? start_bytes : offset_bytes;
        count += !touches;
        end_bytes = after_bytes;
        offsets[count - 1] = start_bytes;
        lengths[count - 1] = (uint64_t)end_bytes - (uint64_t)start_bytes;
    }
    return blocks_sum(blocks, &sums, count);
}

/* Returns false if the list cannot be represented as blocks, or memory is exhausted. */
static bool blocks_add(struct blocks *blocks, const struct oriel_node *item, int64_t extent_bytes,
                       const struct oriel_block_list *listed)
{
    const uint64_t length = blocks_common_length(listed);
    uint64_t len_bytes;
    blocks->offsets = malloc(listed->count * sizeof *blocks->offsets);
    if (blocks->offsets == NULL)
        return false;
    if (length > 0 && (length == 1 || (uint64_t)extent_bytes == item->size_bytes) &&
        !__builtin_mul_overflow(length, item->size_bytes, &len_bytes) &&
        blocks_add_equal(blocks, len_bytes, listed))
        return true;
    blocks->lengths = malloc(listed->count * sizeof *blocks->lengths);
    if (blocks->lengths == NULL || !blocks_add_joined(blocks, item, extent_bytes, listed))
        return false;
    const bool alike = numbers_are_equal(blocks->lengths, blocks->count);
    blocks->block_bytes = alike ? blocks->lengths[0] : 0;
    if (alike) {
        free(blocks->lengths);
        blocks->lengths = NULL;
    }
    return true;
}

/* The same as branches_stride for blocks; 0 if the distances differ or there is one block. */
static int64_t blocks_stride(const struct blocks *blocks)
{
    const int64_t *offsets = blocks->offsets;
    int64_t distance_bytes;
    if (blocks->lengths != NULL || blocks->count == 1 ||
        __builtin_sub_overflow(offsets[1], offsets[0], &distance_bytes))
        return 0;
    for (uint64_t i = 2; i < blocks->count; i++) {
        int64_t from_last;
        if (__builtin_sub_overflow(offsets[i], offsets[i - 1], &from_last) ||
            from_last != distance_bytes)
            return 0;
    }
    return distance_bytes;
}

/* Takes ownership of the arrays. */
static struct oriel_node *blocks_to_node(struct blocks *blocks, enum oriel_kind kind)
{
    const uint64_t element_bytes = oriel_kinds[kind].extent_bytes;
    const int64_t distance_bytes = blocks_stride(blocks);
    if (blocks->count == 1 || distance_bytes != 0) {
        struct oriel_branch *branch = malloc(sizeof *branch);
        if (branch != NULL)
            *branch = (struct oriel_branch){
                blocks->offsets[0],
                oriel_node_loop(blocks->count, distance_bytes,
                                oriel_node_run(kind, blocks->block_bytes / element_bytes))};
        return oriel_node_list(1, branch);
    }
    struct oriel_node *node = node_create(ORIEL_NODE_BLOCKS);
    if (node == NULL)
        return NULL;
    node->kind = kind;
    node->count = node->runs = blocks->count;
    node->offsets = blocks->offsets;
    node->lengths = blocks->lengths;
    node->block_bytes = blocks->block_bytes;
    node->elements = blocks->size_bytes / element_bytes;
    node->size_bytes = blocks->size_bytes;
    node->low_bytes = blocks->low_bytes;
    node->high_bytes = blocks->high_bytes;
    blocks->offsets = NULL;
    blocks->lengths = NULL;
    return node;
}

struct oriel_node *oriel_node_blocks(const struct oriel_node *item, int64_t extent_bytes,
                                     const struct oriel_block_list *listed)
{
    if (item->form != ORIEL_NODE_RUN || item->padded || item->vast || item->elements == 0 ||
        listed->count == 0)
        return NULL;
    struct blocks blocks = {.offsets = NULL};
    struct oriel_node *node = blocks_add(&blocks, item, extent_bytes, listed)
                                  ? blocks_to_node(&blocks, item->kind)
                                  : NULL;
    free(blocks.offsets);
    free(blocks.lengths);
    return node;
}

bool oriel_layout_bounds(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                         int64_t *low_bytes, int64_t *high_bytes)
{
    int64_t last_bytes;
    uint64_t size_bytes;
    *low_bytes = node->low_bytes;
    *high_bytes = node->high_bytes;
    if (node->vast || count > INT64_MAX ||
        __builtin_mul_overflow((int64_t)count - 1, extent_bytes, &last_bytes) ||
        __builtin_mul_overflow(count, node->size_bytes, &size_bytes))
        return false;
    return last_bytes < 0 ? !__builtin_add_overflow(*low_bytes, last_bytes, low_bytes)
                          : !__builtin_add_overflow(*high_bytes, last_bytes, high_bytes);
}

/* ---- disjointness: no byte twice ---- */

static uint64_t node_span(const struct oriel_node *node)
{
    return (uint64_t)node->high_bytes - (uint64_t)node->low_bytes;
}

static bool are_branches_apart(const struct oriel_node *list)
{
    int64_t end_bytes = INT64_MIN;
    for (uint64_t i = 0; i < list->count; i++) {
        const struct oriel_branch *branch = &list->branches[i];
        if (branch->offset_bytes + branch->node->low_bytes < end_bytes ||
            !oriel_layout_apart(branch->node, 1, 0))
            return false;
        end_bytes = branch->offset_bytes + branch->node->high_bytes;
    }
    return true;
}

static bool are_blocks_apart(const struct oriel_node *blocks)
{
    bool apart = true;
    for (uint64_t i = 1; i < blocks->count; i++)
        apart &= blocks->offsets[i] >=
                 blocks->offsets[i - 1] + (int64_t)oriel_block_bytes(blocks, i - 1);
    return apart;
}

/* Concurrent threads store the same value. It remains valid if a constructor extends the node in
 * place, because the node continues in the same pattern. */
static bool node_is_apart(const struct oriel_node *node)
{
    _Atomic uint8_t *const memo = (_Atomic uint8_t *)(uintptr_t)&node->apart;
    const uint8_t known = atomic_load_explicit(memo, memory_order_relaxed);
    bool apart = true;
    if (known != ORIEL_APART_UNKNOWN)
        return known == ORIEL_APART_YES;
    if (node->form == ORIEL_NODE_LOOP)
        apart = oriel_layout_apart(node->child, node->count, node->stride_bytes);
    else if (node->form == ORIEL_NODE_LIST)
        apart = are_branches_apart(node);
    else if (node->form == ORIEL_NODE_BLOCKS)
        apart = are_blocks_apart(node);
    atomic_store_explicit(memo, apart ? ORIEL_APART_YES : ORIEL_APART_UNCLEAR,
                          memory_order_relaxed);
    return apart;
}

/* Either the items do not overlap at all, or all items are in the gaps of the first, like the
 * columns of a matrix. */
bool oriel_layout_apart(const struct oriel_node *node, uint64_t count, int64_t extent_bytes)
{
    const uint64_t distance_bytes =
        extent_bytes < 0 ? -(uint64_t)extent_bytes : (uint64_t)extent_bytes;
    uint64_t reach_bytes;
    if (node->vast || node->depth > ORIEL_CURSOR_DEPTH || !node_is_apart(node))
        return false;
    if (count < 2 || distance_bytes >= node_span(node))
        return true;
    return node->form == ORIEL_NODE_LOOP && distance_bytes >= node_span(node->child) &&
           !__builtin_mul_overflow(count - 1, distance_bytes, &reach_bytes) &&
           !__builtin_add_overflow(reach_bytes, node_span(node->child), &reach_bytes) &&
           reach_bytes <= (node->stride_bytes < 0 ? -(uint64_t)node->stride_bytes
                                                  : (uint64_t)node->stride_bytes);
}
