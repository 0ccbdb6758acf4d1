/* Two layouts are taken apart together, level by level, for as long as the items of both have one size: loops inside of loops end
 * in runs.h's inner loops.  What has nothing in common moves by a plan (plan.h), which the layout of one side keeps, or is walked
 * by cursors where a plan does not pay.  move.c calls. */
#include "ops/copy.h"

#include "ops/pair.h"
#include "ops/plan.h"
#include "transport/shared/copy.h"
#include "transport/shared/runs.h"

#include <stdatomic.h>

enum { PLAN_ITEMS_LEAST = 4 }; /* for which it pays to match them first */

/* Loops that stand alone become the part's own; single branches are stepped into. */
static inline __attribute__((always_inline)) void unwrap(struct oriel_part *part)
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

static bool is_dense(const struct oriel_part *part)
{
    return part->node->form == ORIEL_NODE_RUN &&
           (part->count == 1 || (uint64_t)part->stride_bytes == part->node->size_bytes);
}

/* A dense part as count parts of size_bytes; run is what its items are. */
static void cut(struct oriel_part *part, uint64_t count, uint64_t size_bytes, struct oriel_node *run)
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

/* A part as count groups of its items, which divides them; loop is what these are. */
static void group(struct oriel_part *part, uint64_t count, struct oriel_node *loop)
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

/* Who keeps the plans of two layouts, and what the present pair of parts is called; NULL: nobody does. */
struct keeping {
    const struct oriel_node *keeper;
    struct oriel_plan_key key;
};

static bool have_few_runs(const struct oriel_part *to, const struct oriel_part *from, uint64_t most)
{
    return to->node->runs <= most && from->node->runs <= most - to->node->runs;
}

/* False for a node that no constructor made. */
static bool name_part(const struct oriel_part *part, uint64_t *number, int64_t *stride_bytes)
{
    const bool dense = is_dense(part);
    *number = dense ? 0 : part->node->number;
    *stride_bytes = dense || part->count == 1 ? 0 : part->stride_bytes;
    return dense || *number != 0;
}

static struct keeping keeping_of(const struct oriel_node *keeper, const struct oriel_part *to, const struct oriel_part *from)
{
    struct keeping keeping = {keeper, {0, 0, 0, 0}};
    if (keeper != NULL && (!name_part(to, &keeping.key.to_number, &keeping.key.to_stride_bytes) ||
                           !name_part(from, &keeping.key.from_number, &keeping.key.from_stride_bytes)))
        keeping.keeper = NULL;
    return keeping;
}

/* The parts, by the plan that is kept for them; false when none is.  A function of its own: it needs hardly a register. */
static __attribute__((noinline)) bool copy_as_kept(const struct oriel_node *keeper, const struct oriel_part *to,
                                                   const struct oriel_part *from)
{
    const struct keeping keeping = keeping_of(keeper, to, from);
    if (keeping.keeper == NULL)
        return false;
    const uint64_t counted = keeping.key.to_number != 0 ? to->count : from->count;
    return oriel_plan_copy(keeper, &keeping.key, to->at, from->at, counted);
}

/* As many items of both, which were so many of what the plan is kept for. */
static __attribute__((noinline)) bool copy_planned(const struct keeping *keeping, uint64_t counted, const struct oriel_part *to,
                                                   const struct oriel_part *from)
{
    struct oriel_plan *plan = oriel_plan_make(to, from);
    if (plan == NULL)
        return oriel_pair_copy(to, from);
    oriel_plan_run(plan, to->at, from->at, to->count);
    if (keeping->keeper == NULL || !oriel_plan_keep(keeping->keeper, &keeping->key, counted, to->count, plan))
        oriel_plan_free(plan);
    return true;
}

/* ---- blocks ---- */

/* Where blocks lie on one side: at their offsets, or one behind the other. */
struct row {
    char *at;
    const int64_t *offsets; /* NULL: one behind the other */
};

static inline __attribute__((always_inline)) char *block_of(const struct row *row, uint64_t i, uint64_t len_bytes)
{
    return oriel_at(row->at, row->offsets != NULL ? row->offsets[i] : (int64_t)(i * len_bytes));
}

/* Words of 8 bytes that come to lie side by side: two make one store.  How many went so. */
static inline __attribute__((always_inline)) uint64_t gather_words(char *to, struct row from, uint64_t count)
{
    uint64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (uint64_t k = i; k < i + 4; k += 2)
            oriel_store_16(to + 8 * k, (oriel_v16){oriel_load(block_of(&from, k, 8), 8).narrow,
                                                   oriel_load(block_of(&from, k + 1, 8), 8).narrow});
    return i;
}

static inline __attribute__((always_inline)) void copy_alike(enum oriel_width width, struct row to, struct row from,
                                                             uint64_t len_bytes, uint64_t count)
{
    uint64_t i = 0;
    if (width == ORIEL_WIDTH_8 && to.offsets == NULL)
        i = gather_words(to.at, from, count);
    for (; i + 4 <= count; i += 4)
        for (uint64_t k = i; k < i + 4; k++)
            oriel_move_run(width, block_of(&to, k, len_bytes), block_of(&from, k, len_bytes), len_bytes);
    for (; i < count; i++)
        oriel_move_run(width, block_of(&to, i, len_bytes), block_of(&from, i, len_bytes), len_bytes);
}

static void copy_unlike(struct row to, struct row from, const struct oriel_node *node)
{
    for (uint64_t i = 0; i < node->count; i++) {
        const uint64_t len_bytes = oriel_block_bytes(node, i);
        oriel_move_any(block_of(&to, i, 0), block_of(&from, i, 0), len_bytes);
        to.at += to.offsets == NULL ? len_bytes : 0;
        from.at += from.offsets == NULL ? len_bytes : 0;
    }
}

/* Words and short blocks in loops of their own. */
static inline __attribute__((always_inline)) void copy_blocks(struct row to, struct row from, const struct oriel_node *node)
{
    const uint64_t len_bytes = node->block_bytes;
    if (len_bytes == 8)
        copy_alike(ORIEL_WIDTH_8, to, from, 8, node->count);
    else if (len_bytes == 4)
        copy_alike(ORIEL_WIDTH_4, to, from, 4, node->count);
    else if (len_bytes == 16)
        copy_alike(ORIEL_WIDTH_16, to, from, 16, node->count);
    else if (len_bytes == 24)
        copy_alike(ORIEL_WIDTH_24, to, from, 24, node->count);
    else if (len_bytes == 32)
        copy_alike(ORIEL_WIDTH_32, to, from, 32, node->count);
    else
        copy_unlike(to, from, node);
}

static bool are_alike(const struct oriel_node *a, const struct oriel_node *b)
{
    if (a->count != b->count || a->block_bytes != b->block_bytes)
        return false;
    return a == b || a->lengths == NULL || memcmp(a->lengths, b->lengths, a->count * sizeof *a->lengths) == 0;
}

/* ---- level by level ---- */

static bool copy_parts(const struct oriel_node *keeper, const struct oriel_part *to, const struct oriel_part *from);

static struct oriel_part branch_of(const struct oriel_part *list, uint64_t i)
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

/* The branches of one side or of both; a side that is no list is dense. */
static bool copy_branches(const struct oriel_node *keeper, const struct oriel_part *to, const struct oriel_part *from)
{
    const bool to_list = to->node->form == ORIEL_NODE_LIST;
    const bool from_list = from->node->form == ORIEL_NODE_LIST;
    const struct oriel_part *list = to_list ? to : from;
    uint64_t done_bytes = 0;
    for (uint64_t i = 0; i < list->node->count; i++) {
        struct oriel_node run;
        struct oriel_part branch = branch_of(list, i);
        struct oriel_part other = to_list && from_list ? branch_of(from, i)
                                                 : (struct oriel_part){(to_list ? from : to)->at + done_bytes, NULL, 1, 0};
        if (other.node == NULL)
            cut(&other, 1, branch.node->size_bytes, &run);
        done_bytes += branch.node->size_bytes;
        if (!(to_list ? copy_parts(keeper, &branch, &other) : copy_parts(keeper, &other, &branch)))
            return false;
    }
    return true;
}

/* One item of each side, no loops. */
static bool copy_one(const struct keeping *keeping, uint64_t counted, const struct oriel_part *to, const struct oriel_part *from)
{
    const enum oriel_node_form at_to = to->node->form;
    const enum oriel_node_form at_from = from->node->form;
    if (at_to == ORIEL_NODE_RUN && at_from == ORIEL_NODE_BLOCKS)
        copy_blocks((struct row){to->at, NULL}, (struct row){from->at, from->node->offsets}, from->node);
    else if (at_to == ORIEL_NODE_BLOCKS && at_from == ORIEL_NODE_RUN)
        copy_blocks((struct row){to->at, to->node->offsets}, (struct row){from->at, NULL}, to->node);
    else if (at_to == ORIEL_NODE_BLOCKS && at_from == ORIEL_NODE_BLOCKS && are_alike(to->node, from->node))
        copy_blocks((struct row){to->at, to->node->offsets}, (struct row){from->at, from->node->offsets}, to->node);
    else if ((at_to == ORIEL_NODE_LIST && at_from == ORIEL_NODE_RUN) || (at_to == ORIEL_NODE_RUN && at_from == ORIEL_NODE_LIST) ||
             (at_to == ORIEL_NODE_LIST && at_from == ORIEL_NODE_LIST && branches_match(to->node, from->node)))
        return copy_branches(keeping->keeper, to, from);
    else if (keeping->keeper != NULL && have_few_runs(to, from, ORIEL_PLAN_PIECES) && oriel_plan_pays(keeping->keeper))
        return copy_planned(keeping, counted, to, from);
    else
        return oriel_pair_copy(to, from);
    return true;
}

/* Two parts with as many bytes, of which at least one is not runs, and for which no plan is kept; they are changed. */
/* NOLINTBEGIN(clang-analyzer-core.StackAddressEscape): the caller is done with its parts */
static __attribute__((noinline)) bool copy_levels(const struct oriel_node *keeper, struct oriel_part *to, struct oriel_part *from)
{
    struct oriel_node made_to, made_from;
    const struct keeping keeping = keeping_of(keeper, to, from);
    const uint64_t counted = is_dense(to) ? from->count : to->count;
    if (is_dense(to)) {
        cut(to, from->count, from->node->size_bytes, &made_to);
    } else if (is_dense(from)) {
        cut(from, to->count, to->node->size_bytes, &made_from);
    } else if (to->count != from->count) {
        uint64_t count = greatest_divisor(to->count, from->count);
        group(to, count, &made_to);
        group(from, count, &made_from);
    }
    if (to->count == 1)
        return copy_one(&keeping, counted, to, from);
    if (to->count >= PLAN_ITEMS_LEAST && have_few_runs(to, from, ORIEL_PLAN_ROWS))
        return copy_planned(&keeping, counted, to, from);
    for (uint64_t i = 0; i < to->count; i++) {
        const struct oriel_part one_to = oriel_part_one(to, i);
        const struct oriel_part one_from = oriel_part_one(from, i);
        if (!copy_parts(keeper, &one_to, &one_from))
            return false;
    }
    return true;
}
/* NOLINTEND(clang-analyzer-core.StackAddressEscape) */

/* As many bytes on both sides.  Where both are runs this is all; a dense side is runs of any length.  The parts are the caller's
 * own, so that they need no memory. */
static inline __attribute__((always_inline)) bool copy_here(const struct oriel_node *keeper, struct oriel_part to,
                                                            struct oriel_part from)
{
    unwrap(&to);
    unwrap(&from);
    const uint64_t to_bytes = to.node->size_bytes;
    const uint64_t from_bytes = from.node->size_bytes;
    if (to.node->form == ORIEL_NODE_RUN && from.node->form == ORIEL_NODE_RUN) {
        const bool to_dense = to.count == 1 || (uint64_t)to.stride_bytes == to_bytes;
        const bool from_dense = from.count == 1 || (uint64_t)from.stride_bytes == from_bytes;
        if (to_dense && from_dense) {
            oriel_copy(to.at, from.at, to.count * to_bytes);
            return true;
        }
        if (to_dense || from_dense || to_bytes == from_bytes) {
            const uint64_t len_bytes = to_dense ? from_bytes : to_bytes;
            oriel_copy_runs(to.at, to_dense ? (int64_t)len_bytes : to.stride_bytes, from.at,
                            from_dense ? (int64_t)len_bytes : from.stride_bytes, len_bytes, to_dense ? from.count : to.count);
            return true;
        }
    }
    struct oriel_part whole_to = to;
    struct oriel_part whole_from = from;
    if (keeper != NULL && atomic_load_explicit(&keeper->memos, memory_order_relaxed) != NULL &&
        copy_as_kept(keeper, &whole_to, &whole_from))
        return true;
    return copy_levels(keeper, &whole_to, &whole_from);
}

static bool copy_parts(const struct oriel_node *keeper, const struct oriel_part *to, const struct oriel_part *from)
{
    return copy_here(keeper, *to, *from);
}

/* A layout that is a datatype's own: runs are many datatypes'. */
static inline const struct oriel_node *keeper_among(const struct oriel_node *to, const struct oriel_node *from)
{
    return to->form != ORIEL_NODE_RUN ? to : from->form != ORIEL_NODE_RUN ? from : NULL;
}

bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from, const struct oriel_items *from_items)
{
    char *source = (char *)(uintptr_t)from;
    return copy_here(keeper_among(to_items->layout, from_items->layout),
                     (struct oriel_part){to, to_items->layout, to_items->count, to_items->extent_bytes},
                     (struct oriel_part){source, from_items->layout, from_items->count, from_items->extent_bytes});
}
