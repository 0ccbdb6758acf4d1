/* Two layouts are decomposed together, level by level, while the items of both have one size.
 * Nested loops end in the inner loops of copy_strided.h. Parts without common structure are copied
 * by a plan (copy_plan.h), which the layout of one side caches. If a plan does not pay, cursors
 * walk the parts. A copy that is repeated many times is prepared. */
#include "datatype/copy_layout.h"

#include "datatype/copy_blocks.h"
#include "datatype/copy_plan.h"
#include "datatype/pair_types.h"
#include "transport/shared/copy.h"
#include "transport/shared/copy_strided.h"

#include <stdatomic.h>

enum { PLAN_ITEMS_LEAST = 4 }; /* minimum number of items for which matching them first pays */

/* A single item that is a loop becomes the part's own loop; a single branch is replaced by its
 * child. */
static inline __attribute__((always_inline)) void part_unwrap(struct oriel_part *part)
{
    for (;;) {
        const struct oriel_node *node = part->node;
        if (node->form == ORIEL_NODE_LIST && node->count == 1) {
            part->at = oriel_at(part->at, node->branches[0].offset_bytes);
            part->node = node->branches[0].node;
        } else if (node->form == ORIEL_NODE_LOOP && part->count == 1) {
            part->count = node->count;
            part->stride_bytes = node->stride_bytes;
            part->node = node->child;
        } else {
            return;
        }
    }
}

/* Cuts a dense part into count parts of size_bytes; run is the node of its items. */
static void part_cut(struct oriel_part *part, uint64_t count, uint64_t size_bytes,
                     struct oriel_node *run)
{
    *run = (struct oriel_node){.form = ORIEL_NODE_RUN,
                               .kind = ORIEL_KIND_CHAR,
                               .count = size_bytes,
                               .elements = size_bytes,
                               .size_bytes = size_bytes,
                               .runs = 1,
                               .depth = 1};
    part->node = run;
    part->count = count;
    part->stride_bytes = (int64_t)size_bytes;
}

/* Turns a part into count groups of its items; count divides the number of items. loop is the node
 * of a group. */
static void part_group(struct oriel_part *part, uint64_t count, struct oriel_node *loop)
{
    uint64_t each = part->count / count;
    if (each == 1)
        return;
    *loop = (struct oriel_node){.form = ORIEL_NODE_LOOP,
                                .kind = part->node->kind,
                                .count = each,
                                .stride_bytes = part->stride_bytes,
                                .child = (struct oriel_node *)(uintptr_t)part->node,
                                .elements = each * part->node->elements,
                                .size_bytes = each * part->node->size_bytes,
                                .runs = each * part->node->runs,
                                .depth = part->node->depth + 1};
    part->node = loop;
    part->count = count;
    part->stride_bytes = (int64_t)each * part->stride_bytes;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- plans ---- */

/* The node that caches the plans of two layouts (NULL: none), and the key of the present pair of
 * parts. */
struct plan_cache {
    const struct oriel_node *keeper;
    struct oriel_plan_key key;
};

static bool have_few_runs(const struct oriel_part *to, const struct oriel_part *from, uint64_t max)
{
    return to->node->runs <= max && from->node->runs <= max - to->node->runs;
}

/* Returns false for a node that no constructor made. */
static bool part_key(const struct oriel_part *part, uint64_t *number, int64_t *stride_bytes)
{
    const bool dense = oriel_part_is_dense(part);
    *number = dense ? 0 : part->node->number;
    *stride_bytes = dense || part->count == 1 ? 0 : part->stride_bytes;
    return dense || *number != 0;
}

static struct plan_cache plan_cache_of(const struct oriel_node *keeper, const struct oriel_part *to,
                                       const struct oriel_part *from)
{
    struct plan_cache cache = {keeper, {0, 0, 0, 0}};
    if (keeper != NULL && (!part_key(to, &cache.key.to_number, &cache.key.to_stride_bytes) ||
                           !part_key(from, &cache.key.from_number, &cache.key.from_stride_bytes)))
        cache.keeper = NULL;
    return cache;
}

/* The cached plan for the parts, and their number of plan items. NULL if there is none. */
static const struct oriel_plan *cached_plan_find(const struct oriel_node *keeper,
                                                 const struct oriel_part *to,
                                                 const struct oriel_part *from, uint64_t *items)
{
    const struct plan_cache cache = plan_cache_of(keeper, to, from);
    if (cache.keeper == NULL)
        return NULL;
    return oriel_plan_find(keeper, &cache.key, cache.key.to_number != 0 ? to->count : from->count,
                           items);
}

/* Copies the parts with the cached plan. Returns false if there is none. A separate function,
 * because it needs few registers. */
static __attribute__((noinline)) bool copy_by_cached_plan(const struct oriel_node *keeper,
                                                          const struct oriel_part *to,
                                                          const struct oriel_part *from)
{
    uint64_t items;
    const struct oriel_plan *plan = cached_plan_find(keeper, to, from, &items);
    if (plan == NULL)
        return false;
    oriel_plan_run(plan, to->at, from->at, items);
    return true;
}

/* Copies parts with equal numbers of items by a new plan. counted is the number of items before
 * grouping, for the cache. */
static __attribute__((noinline)) bool copy_by_new_plan(const struct plan_cache *cache,
                                                       uint64_t counted,
                                                       const struct oriel_part *to,
                                                       const struct oriel_part *from)
{
    struct oriel_plan *plan = oriel_plan_make(to, from);
    if (plan == NULL)
        return oriel_pair_copy(to, from);
    oriel_plan_run(plan, to->at, from->at, to->count);
    if (cache->keeper == NULL ||
        !oriel_plan_cache_insert(cache->keeper, &cache->key, counted, to->count, plan))
        oriel_plan_free(plan);
    return true;
}

/* ---- level by level ---- */

static bool blocks_are_equal(const struct oriel_node *a, const struct oriel_node *b)
{
    if (a->count != b->count || a->block_bytes != b->block_bytes)
        return false;
    return a == b || a->lengths == NULL ||
           memcmp(a->lengths, b->lengths, a->count * sizeof *a->lengths) == 0;
}

static bool copy_parts(const struct oriel_node *keeper, const struct oriel_part *to,
                       const struct oriel_part *from);

static struct oriel_part branch_part(const struct oriel_part *list, uint64_t i)
{
    const struct oriel_branch *branch = &list->node->branches[i];
    return (struct oriel_part){oriel_at(list->at, branch->offset_bytes), branch->node, 1, 0};
}

static bool branches_match(const struct oriel_node *a, const struct oriel_node *b)
{
    if (a->count != b->count)
        return false;
    for (uint64_t i = 0; i < a->count; i++)
        if (a->branches[i].node->size_bytes != b->branches[i].node->size_bytes)
            return false;
    return true;
}

/* Copies the branches of one or both sides. A side that is not a list is dense. */
static bool copy_branches(const struct oriel_node *keeper, const struct oriel_part *to,
                          const struct oriel_part *from)
{
    const bool to_list = to->node->form == ORIEL_NODE_LIST;
    const bool from_list = from->node->form == ORIEL_NODE_LIST;
    const struct oriel_part *list = to_list ? to : from;
    uint64_t done_bytes = 0;
    for (uint64_t i = 0; i < list->node->count; i++) {
        struct oriel_node run;
        struct oriel_part branch = branch_part(list, i);
        struct oriel_part other =
            to_list && from_list
                ? branch_part(from, i)
                : (struct oriel_part){(to_list ? from : to)->at + done_bytes, NULL, 1, 0};
        if (other.node == NULL)
            part_cut(&other, 1, branch.node->size_bytes, &run);
        done_bytes += branch.node->size_bytes;
        if (!(to_list ? copy_parts(keeper, &branch, &other) : copy_parts(keeper, &other, &branch)))
            return false;
    }
    return true;
}

/* Copies one item of each side; neither is a loop. */
static bool copy_single_items(const struct plan_cache *cache, uint64_t counted,
                              const struct oriel_part *to, const struct oriel_part *from)
{
    const enum oriel_node_form at_to = to->node->form;
    const enum oriel_node_form at_from = from->node->form;
    if (at_to == ORIEL_NODE_RUN && at_from == ORIEL_NODE_BLOCKS)
        oriel_copy_blocks((struct oriel_row){to->at, NULL},
                          (struct oriel_row){from->at, from->node->offsets}, from->node);
    else if (at_to == ORIEL_NODE_BLOCKS && at_from == ORIEL_NODE_RUN)
        oriel_copy_blocks((struct oriel_row){to->at, to->node->offsets},
                          (struct oriel_row){from->at, NULL}, to->node);
    else if (at_to == ORIEL_NODE_BLOCKS && at_from == ORIEL_NODE_BLOCKS &&
             blocks_are_equal(to->node, from->node))
        oriel_copy_blocks((struct oriel_row){to->at, to->node->offsets},
                          (struct oriel_row){from->at, from->node->offsets}, to->node);
    else if ((at_to == ORIEL_NODE_LIST && at_from == ORIEL_NODE_RUN) ||
             (at_to == ORIEL_NODE_RUN && at_from == ORIEL_NODE_LIST) ||
             (at_to == ORIEL_NODE_LIST && at_from == ORIEL_NODE_LIST &&
              branches_match(to->node, from->node)))
        return copy_branches(cache->keeper, to, from);
    else if (cache->keeper != NULL && have_few_runs(to, from, ORIEL_PLAN_PIECES) &&
             oriel_plan_pays(cache->keeper))
        return copy_by_new_plan(cache, counted, to, from);
    else
        return oriel_pair_copy(to, from);
    return true;
}

/* Copies two parts of equal size, of which at least one is not a run, and for which no plan is
 * cached. Changes both parts. */
/* NOLINTBEGIN(clang-analyzer-core.StackAddressEscape): the caller no longer uses its parts */
static __attribute__((noinline)) bool copy_levels(const struct oriel_node *keeper,
                                                  struct oriel_part *to, struct oriel_part *from)
{
    struct oriel_node made_to, made_from;
    const struct plan_cache cache = plan_cache_of(keeper, to, from);
    const uint64_t counted = oriel_part_is_dense(to) ? from->count : to->count;
    if (oriel_part_is_dense(to)) {
        part_cut(to, from->count, from->node->size_bytes, &made_to);
    } else if (oriel_part_is_dense(from)) {
        part_cut(from, to->count, to->node->size_bytes, &made_from);
    } else if (to->count != from->count) {
        uint64_t count = greatest_divisor(to->count, from->count);
        part_group(to, count, &made_to);
        part_group(from, count, &made_from);
    }
    if (to->count == 1)
        return copy_single_items(&cache, counted, to, from);
    if (to->count >= PLAN_ITEMS_LEAST && have_few_runs(to, from, ORIEL_PLAN_ROWS))
        return copy_by_new_plan(&cache, counted, to, from);
    for (uint64_t i = 0; i < to->count; i++) {
        const struct oriel_part one_to = oriel_part_one(to, i);
        const struct oriel_part one_from = oriel_part_one(from, i);
        if (!copy_parts(keeper, &one_to, &one_from))
            return false;
    }
    return true;
}
/* NOLINTEND(clang-analyzer-core.StackAddressEscape) */

/* Runs on both sides that one loop copies. A dense side counts as runs of any length. */
struct run_pair {
    int64_t to_stride, from_stride;
    uint64_t len_bytes, count; /* count 1: a single contiguous copy */
};

static inline __attribute__((always_inline)) bool
match_runs(const struct oriel_part *to, const struct oriel_part *from, struct run_pair *out)
{
    const uint64_t to_bytes = to->node->size_bytes;
    const uint64_t from_bytes = from->node->size_bytes;
    if (to->node->form != ORIEL_NODE_RUN || from->node->form != ORIEL_NODE_RUN)
        return false;
    const bool to_dense = to->count == 1 || (uint64_t)to->stride_bytes == to_bytes;
    const bool from_dense = from->count == 1 || (uint64_t)from->stride_bytes == from_bytes;
    const uint64_t len_bytes = to_dense ? from_bytes : to_bytes;
    if (to_dense && from_dense)
        *out = (struct run_pair){0, 0, to->count * to_bytes, 1};
    else
        *out =
            (struct run_pair){.to_stride = to_dense ? (int64_t)len_bytes : to->stride_bytes,
                              .from_stride = from_dense ? (int64_t)len_bytes : from->stride_bytes,
                              .len_bytes = len_bytes,
                              .count = to_dense ? from->count : to->count};
    return to_dense || from_dense || to_bytes == from_bytes;
}

/* Copies parts of equal size. If both are runs, this is the whole copy. The parts are parameters by
 * value, so the compiler can keep them in registers. */
static inline __attribute__((always_inline)) bool
copy_part_values(const struct oriel_node *keeper, struct oriel_part to, struct oriel_part from)
{
    struct run_pair runs;
    part_unwrap(&to);
    part_unwrap(&from);
    if (match_runs(&to, &from, &runs)) {
        if (runs.count == 1)
            oriel_copy(to.at, from.at, runs.len_bytes);
        else
            oriel_copy_runs(to.at, runs.to_stride, from.at, runs.from_stride, runs.len_bytes,
                            runs.count);
        return true;
    }
    struct oriel_part whole_to = to;
    struct oriel_part whole_from = from;
    if (keeper != NULL && atomic_load_explicit(&keeper->memos, memory_order_relaxed) != NULL &&
        copy_by_cached_plan(keeper, &whole_to, &whole_from))
        return true;
    return copy_levels(keeper, &whole_to, &whole_from);
}

static bool copy_parts(const struct oriel_node *keeper, const struct oriel_part *to,
                       const struct oriel_part *from)
{
    return copy_part_values(keeper, *to, *from);
}

/* A layout that belongs to one datatype: many datatypes share runs. */
static inline const struct oriel_node *plan_keeper(const struct oriel_node *to,
                                                   const struct oriel_node *from)
{
    return to->form != ORIEL_NODE_RUN ? to : from->form != ORIEL_NODE_RUN ? from : NULL;
}

static struct oriel_part part_of_items(char *at, const struct oriel_items *items)
{
    return (struct oriel_part){at, items->layout, items->count, items->extent_bytes};
}

bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from,
                      const struct oriel_items *from_items)
{
    return copy_part_values(plan_keeper(to_items->layout, from_items->layout),
                            part_of_items(to, to_items),
                            part_of_items((char *)(uintptr_t)from, from_items));
}

/* ---- prepared ---- */

/* One contiguous copy. Its sides may overlap, so they are not restricted as in the other loops. */
static void copy_whole(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                       uint64_t len_bytes, uint64_t count)
{
    (void)to_stride;
    (void)from_stride;
    (void)count;
    oriel_copy(to, from, len_bytes);
}

void oriel_copy_prepare(struct oriel_copy_prepared *out, const struct oriel_items *to_items,
                        const struct oriel_items *from_items)
{
    struct run_pair runs;
    uint64_t items;
    const struct oriel_node *keeper = plan_keeper(to_items->layout, from_items->layout);
    struct oriel_part to = part_of_items(NULL, to_items);
    struct oriel_part from = part_of_items(NULL, from_items);
    part_unwrap(&to);
    part_unwrap(&from);
    *out = (struct oriel_copy_prepared){.to_bytes = (int64_t)(uintptr_t)to.at,
                                        .from_bytes = (int64_t)(uintptr_t)from.at};
    if (match_runs(&to, &from, &runs)) {
        out->loop = runs.count == 1 ? copy_whole
                                    : oriel_copy_strided_loop_of(runs.len_bytes, runs.to_stride,
                                                                 runs.from_stride);
        out->to_stride = runs.to_stride;
        out->from_stride = runs.from_stride;
        out->len_bytes = runs.len_bytes;
        out->count = runs.count;
    } else if ((out->plan = cached_plan_find(keeper, &to, &from, &items)) != NULL) {
        out->count = items;
    } else {
        *out = (struct oriel_copy_prepared){.to = *to_items, .from = *from_items};
    }
}

bool oriel_copy_general(const struct oriel_copy_prepared *prepared, char *to, const char *from)
{
    if (prepared->plan == NULL)
        return oriel_copy_items(to, &prepared->to, from, &prepared->from);
    oriel_plan_run(prepared->plan, oriel_at(to, prepared->to_bytes),
                   oriel_at(from, prepared->from_bytes), prepared->count);
    return true;
}
