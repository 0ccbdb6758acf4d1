/* Two layouts are taken apart together, level by level, for as long as the items of both have one size: loops inside of loops end
 * in runs.h's inner loops.  Small items, whatever they look like, are matched once and then moved piece by piece, many items at a
 * time; where the two sides have nothing in common they are walked by cursors.  move.c calls. */
#include "ops/copy.h"

#include "ops/pair.h"
#include "transport/shared/copy.h"
#include "transport/shared/runs.h"

enum {
    PLAN_PIECES = 24,      /* of one item, at most */
    PLAN_ITEMS_LEAST = 4,  /* for which it pays to match them first */
    PLAN_BYTES = 32768,    /* of memory that are gone over for each piece: they stay in the first cache */
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

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

/* ---- many small items ---- */

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

/* Pieces of one length next to each other: they move together. */
static void sort_by_length(struct oriel_pair_piece *pieces, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        const struct oriel_pair_piece piece = pieces[i];
        unsigned k = i;
        for (; k > 0 && pieces[k - 1].len_bytes > piece.len_bytes; k--)
            pieces[k] = pieces[k - 1];
        pieces[k] = piece;
    }
}

/* As many of the pieces as move together, in so many items; returns how many these were. */
static unsigned copy_some(char *to, int64_t to_step, char *from, int64_t from_step, const struct oriel_pair_piece *pieces,
                          unsigned left, uint64_t items)
{
    struct oriel_places there = {oriel_at(to, pieces[0].to_bytes), to_step, {0}};
    struct oriel_places here = {oriel_at(from, pieces[0].from_bytes), from_step, {0}};
    unsigned places = 1;
    for (; places < left && places < ORIEL_PLACES && pieces[places].len_bytes == pieces[0].len_bytes; places++) {
        there.offsets[places] = pieces[places].to_bytes - pieces[0].to_bytes;
        here.offsets[places] = pieces[places].from_bytes - pieces[0].from_bytes;
    }
    oriel_copy_places(places, there, here, pieces[0].len_bytes, items);
    return places;
}

static __attribute__((noinline)) bool copy_planned(const struct oriel_part *to, const struct oriel_part *from)
{
    struct oriel_pair_piece pieces[PLAN_PIECES];
    const struct oriel_part first_to = oriel_part_one(to, 0);
    const struct oriel_part first_from = oriel_part_one(from, 0);
    const unsigned count = oriel_pair_pieces(&first_to, &first_from, pieces, PLAN_PIECES);
    const uint64_t farthest = magnitude(to->stride_bytes) + magnitude(from->stride_bytes);
    const uint64_t items = (PLAN_ITEMS_LEAST + PLAN_BYTES / (farthest + 1)) & ~(uint64_t)1;
    sort_by_length(pieces, count);
    for (uint64_t done = 0; done < to->count; done += items) {
        char *to_first = oriel_at(to->at, (int64_t)done * to->stride_bytes);
        char *from_first = oriel_at(from->at, (int64_t)done * from->stride_bytes);
        uint64_t now = smaller(items, to->count - done);
        for (unsigned i = 0; i < count;)
            i += copy_some(to_first, to->stride_bytes, from_first, from->stride_bytes, &pieces[i], count - i, now);
    }
    return count > 0;
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

static inline __attribute__((always_inline)) void copy_alike(enum oriel_width width, struct row to, struct row from,
                                                             uint64_t len_bytes, uint64_t count)
{
    uint64_t i = 0;
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

static bool copy_parts(const struct oriel_part *to, const struct oriel_part *from);

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
static bool copy_branches(const struct oriel_part *to, const struct oriel_part *from)
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
        if (!(to_list ? copy_parts(&branch, &other) : copy_parts(&other, &branch)))
            return false;
    }
    return true;
}

/* One item of each side, no loops. */
static bool copy_one(const struct oriel_part *to, const struct oriel_part *from)
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
        return copy_branches(to, from);
    else
        return oriel_pair_copy(to, from);
    return true;
}

/* Two parts with as many bytes, of which at least one is not runs; they are changed. */
static __attribute__((noinline)) bool copy_levels(struct oriel_part *to, struct oriel_part *from)
{
    struct oriel_node made_to, made_from;
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
        return copy_one(to, from);
    if (to->count >= PLAN_ITEMS_LEAST && to->node->runs <= PLAN_PIECES / 2 && from->node->runs <= PLAN_PIECES / 2)
        return copy_planned(to, from);
    for (uint64_t i = 0; i < to->count; i++) {
        const struct oriel_part one_to = oriel_part_one(to, i);
        const struct oriel_part one_from = oriel_part_one(from, i);
        if (!copy_parts(&one_to, &one_from))
            return false;
    }
    return true;
}

/* As many bytes on both sides.  Where both are runs this is all; a dense side is runs of any length.  The parts are the caller's
 * own, so that they need no memory. */
static inline __attribute__((always_inline)) bool copy_here(struct oriel_part to, struct oriel_part from)
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
    return copy_levels(&whole_to, &whole_from);
}

static bool copy_parts(const struct oriel_part *to, const struct oriel_part *from)
{
    return copy_here(*to, *from);
}

bool oriel_copy_items(char *to, const struct oriel_items *to_items, const char *from, const struct oriel_items *from_items)
{
    char *source = (char *)(uintptr_t)from;
    return copy_here((struct oriel_part){to, to_items->layout, to_items->count, to_items->extent_bytes},
                     (struct oriel_part){source, from_items->layout, from_items->count, from_items->extent_bytes});
}
