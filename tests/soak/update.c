/* Accumulates on the elements of areas, with any of the area's datatypes on either side: those of
 * all actors with one operator, and those of one actor, in its order. */
#include "step.h"

#include "../mpi/operation_forms.h"

#include <string.h>

enum count operator_count(const struct test_op *operator)
{
    static const struct {
        MPI_Op op;
        enum count count;
    } rows[] = {
        {MPI_REPLACE, COUNT_OP_REPLACE}, {MPI_SUM, COUNT_OP_SUM},   {MPI_PROD, COUNT_OP_PROD},
        {MPI_MAX, COUNT_OP_MAX},         {MPI_MIN, COUNT_OP_MIN},   {MPI_LAND, COUNT_OP_LAND},
        {MPI_LOR, COUNT_OP_LOR},         {MPI_LXOR, COUNT_OP_LXOR}, {MPI_BAND, COUNT_OP_BAND},
        {MPI_BOR, COUNT_OP_BOR},         {MPI_BXOR, COUNT_OP_BXOR}, {MPI_MINLOC, COUNT_OP_MINLOC},
        {MPI_MAXLOC, COUNT_OP_MAXLOC},
    };
    for (size_t i = 0; i < COUNT_OF(rows) && operator!= NULL; i++)
        if (rows[i].op == operator->op)
            return rows[i].count;
    return COUNT_OP_NO_OP;
}

/* Operands whose results are exact in any order and number. */
static void operand_draw(const struct area *area, MPI_Op op, unsigned char *element,
                         struct random *random)
{
    const struct test_type *type = area->leaf->model;
    type_fill(type, element, random, 0x77);
    bool turns =
        area->mode == AREA_SHARED && (type->group == GROUP_FLOATING || type->group == GROUP_QUAD);
    if (op == MPI_PROD && !type_is_integer(type)) /* otherwise both signed zeros could result */
        type_set(type, element, one_in(random, 2) && turns ? -1 : 1);
    else if (op == MPI_PROD)
        element[0] |= 1;
    for (size_t i = 0; op == MPI_REPLACE && type->group == GROUP_MOVED && i < type->extent_bytes;
         i++)
        element[i] = (unsigned char)(random_next(random) >> 9);
}

static const struct test_op *operator_draw(const struct test_type *type, struct random *random,
                                           bool replace)
{
    const struct test_op *operator;
    if (type->group == GROUP_MOVED && !replace)
        return NULL;
    do
        operator= & test_ops[below(random, (int)test_op_count)];
    while (!type_allows(type, operator->op) || (operator->op == MPI_REPLACE && !replace));
    return operator;
}

/* Position of the side's element i, in elements from the displacement. */
static int element_of(const struct area *area, const struct side *side, int i)
{
    int size_bytes = area->variants[0].size_bytes, each = side->type->size_bytes / size_bytes;
    MPI_Aint at = i / each * side->type->extent + side->type->map[i % each * size_bytes];
    return (int)(at / (MPI_Aint)area->leaf->model->extent_bytes);
}

/* A displacement that keeps all of the side's elements in the area: the first from a random one
 * on. */
static bool side_place(const struct plan *plan, struct op *op, struct random *random, int *first)
{
    const struct area *area = &plan->areas[op->area];
    const struct region *region = area_region(plan, area);
    int each = op->to.type->size_bytes / area->variants[0].size_bytes, low = 0, high = 0;
    for (int i = 0; i < each * op->to.count; i++) {
        int element = element_of(area, &op->to, i);
        low = i == 0 || element < low ? element : low;
        high = i == 0 || element > high ? element : high;
    }
    int room = area->elements - (high - low);
    if (room <= 0 || !random_type_is_disjoint(op->to.type, op->to.count))
        return false;
    for (int turn = 0, from = below(random, room); turn < room; turn++) {
        *first = (from + turn) % room - low;
        MPI_Aint bytes =
            (MPI_Aint)area->offset + *first * (MPI_Aint)area->leaf->model->extent_bytes;
        op->disp = bytes / region->unit;
        if (bytes >= 0 && bytes % region->unit == 0)
            return true;
    }
    return false;
}

/* Another type with as many elements. */
static struct side side_match(const struct area *area, int elements, struct random *random)
{
    const struct random_type *type = &area->variants[below(random, VARIANTS)];
    int each = type->size_bytes / area->variants[0].size_bytes;
    struct side side = {type, elements / each};
    if (elements % each == 0 && random_type_is_disjoint(type, side.count))
        return side;
    return (struct side){&area->variants[0], elements};
}

void area_single(const struct plan *plan, struct op *op, struct random *random, int *first)
{
    const struct area *area = &plan->areas[op->area];
    op->to = (struct side){&area->variants[0], 1};
    if (!side_place(plan, op, random, first)) {
        *first = 0; /* an area begins at an addressable displacement */
        op->disp = (MPI_Aint)area->offset / area_region(plan, area)->unit;
    }
    op->origin = op->result = op->to;
}

/* The elements sent to the target, and those returned. */
static void shape_draw(struct plan *plan, struct op *op, int *first)
{
    struct area *area = &plan->areas[op->area];
    struct random *random = &plan->random;
    op->to.type = &area->variants[below(random, VARIANTS)];
    int each = op->to.type->size_bytes / area->variants[0].size_bytes;
    op->to.count = 1 + below(random, ELEMENTS_MOST / each);
    if (op->kind == OP_FETCH || op->kind == OP_SWAP || !side_place(plan, op, random, first)) {
        area_single(plan, op, random, first);
        return;
    }
    op->origin = side_match(area, each * op->to.count, random);
    op->result = side_match(area, each * op->to.count, random);
}

void area_buffers(struct plan *plan, struct op *op, const unsigned char *operands,
                  const unsigned char *fetched)
{
    struct random random = {random_next(&plan->random)};
    bool here = actor_is_here(op->actor);
    buffer_make(&op->from, &op->origin, &random, here);
    random_type_scatter(op->origin.type, op->origin.count * op->origin.type->size_bytes,
                        op->from.bytes + op->from.at, operands);
    memcpy(op->from.wanted, op->from.bytes, op->from.len_bytes);
    if (op->kind != OP_ACCUMULATE) {
        buffer_make(&op->into, &op->result, &random, here);
        if (!op->result_open)
            buffer_want(&op->into, &op->result, fetched);
    }
}

static void buffers_end(struct op *op)
{
    if (actor_is_here(op->actor))
        return;
    buffer_free(&op->from);
    buffer_free(&op->into);
    buffer_free(&op->compare);
}

/* Per element: the operand, the old value, the new value.  Packed forms have no padding: a pair's
 * fields are adjacent in the map. */
static void update_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    struct region *region = area_region(plan, area);
    const struct test_type *type = area->leaf->model;
    const struct random_type *leaf = &area->variants[0];
    unsigned char operands[ELEMENTS_MOST * TYPE_MAX_BYTES], fetched[ELEMENTS_MOST * TYPE_MAX_BYTES];
    int first = 0;
    shape_draw(plan, op, &first);
    op->segment = area->segment;
    int elements = op->to.count * op->to.type->size_bytes / leaf->size_bytes;
    for (int i = 0; i < elements; i++) {
        unsigned char operand[TYPE_MAX_BYTES] = {0};
        size_t offset =
            area->offset + (size_t)(first + element_of(area, &op->to, i)) * type->extent_bytes;
        operand_draw(area, op->operator== NULL ? MPI_NO_OP : op->operator->op, operand,
                     &plan->random);
        random_type_gather(leaf, leaf->size_bytes, operand, operands + i * leaf->size_bytes);
        random_type_gather(leaf, leaf->size_bytes, region->model + offset,
                           fetched + i * leaf->size_bytes);
        if (op->kind == OP_SWAP) {
            buffer_make(&op->compare, &op->origin, &(struct random){plan->random.state},
                        actor_is_here(op->actor));
            unsigned char *compare = op->compare.bytes + op->compare.at;
            memcpy(compare, one_in(&plan->random, 4) ? operand : region->model + offset,
                   type->extent_bytes);
            if (one_in(&plan->random, 3))
                compare[below(&plan->random, (int)type->extent_bytes)] ^=
                    (unsigned char)(1 << below(&plan->random, 8));
            memcpy(op->compare.wanted, op->compare.bytes, op->compare.len_bytes);
            if (memcmp(op->compare.bytes + op->compare.at, region->model + offset,
                       type->extent_bytes) == 0)
                memcpy(region->model + offset, operand, type->extent_bytes);
        } else if (op->operator!= NULL) {
            type_apply(type, op->operator->op, region->model + offset, operand);
        }
        for (size_t b = 0; b < type->extent_bytes; b++)
            region->writers[offset + b] = (uint16_t)(plan->op_count + 1);
    }
    area_buffers(plan, op, operands, fetched);
    buffers_end(op);
    op_push(plan, op);
}

static enum op_kind accumulate_draw(struct plan *plan, struct op *op)
{
    static const enum op_kind kinds[] = {OP_ACCUMULATE, OP_GET_ACCUMULATE, OP_FETCH};
    op->kind = kinds[below(&plan->random, (int)COUNT_OF(kinds))];
    op->form = op->kind == OP_FETCH ? 0
                                    : below(&plan->random, FORMS) &
                                          (epoch_is_passive(plan->epoch) ? FORMS - 1 : FORM_LARGE);
    notified_draw(plan, op);
    op->free_types = one_in(&plan->random, 6);
    return op->kind;
}

static bool shared_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    bool first =
        area->phase < 0; /* reals keep theirs: alternating sums and products would not be exact */
    if (first || (area->phase != plan->phase &&
                  (type_is_integer(area->leaf->model) || area->leaf->model->group == GROUP_PAIR)))
        area->operator= operator_draw(area->leaf->model, &plan->random, false);
    area->phase = plan->phase;
    op->operator= area->operator;
    if (accumulate_draw(plan, op) != OP_ACCUMULATE && plan->window->mixes_no_op &&
        one_in(&plan->random, 4))
        op->operator= NULL;
    if (op->operator== NULL && op->kind == OP_ACCUMULATE)
        op->kind = OP_GET_ACCUMULATE;
    op->result_open = area->operator!= NULL && op->kind != OP_ACCUMULATE;
    update_draw(plan, op);
    return true;
}

/* Without a flush in between, MPI orders only accumulates with one operator, and fetches without
 * one. */
static bool chain_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    const struct test_type *type = area->leaf->model;
    if (area->phase != plan->phase) {
        area->phase = plan->phase;
        area->actor = op->actor;
        area->touched = false;
    }
    if (area->actor != op->actor)
        return false;
    bool flushed = !area->touched || area->flush != plan->flushes[op->actor][op->target];
    bool swaps = type_allows_swap(type) && one_in(&plan->random, 4);
    op->operator= operator_draw(type, &plan->random, true);
    if (accumulate_draw(plan, op) != OP_ACCUMULATE && one_in(&plan->random, 4))
        op->operator= NULL;
    if (!flushed && !area->swapped && plan->window->ordered && !one_in(&plan->random, 3)) {
        swaps = false; /* continues without a flush */
        op->operator= op->operator!= NULL || !plan->window->mixes_no_op || op->kind == OP_ACCUMULATE
            ? area->last
            : NULL;
    } else if (!flushed) {
        if (!epoch_is_passive(plan->epoch))
            return false;
        op_flush(plan, op->actor, op->target);
        flushed = true;
    }
    if (swaps) {
        op->kind = OP_SWAP;
        op->operator= NULL;
        op->form = 0;
    }
    if (op->operator== NULL && op->kind == OP_ACCUMULATE)
        op->kind = OP_GET_ACCUMULATE;
    if (flushed || area->last == NULL)
        area->last = op->operator;
    area->touched = true;
    area->swapped = swaps;
    area->flush = plan->flushes[op->actor][op->target];
    update_draw(plan, op);
    return true;
}

bool area_draw(struct plan *plan, int actor, int target, bool exclusive)
{
    int from = plan->area_count ? below(&plan->random, plan->area_count) : 0;
    for (int i = 0; exclusive && i < plan->area_count && one_in(&plan->random, 2); i++)
        from = plan->areas[i].mode == AREA_GUARDED && plan->areas[i].rank == target ? i : from;
    for (int turn = 0; turn < plan->area_count; turn++) {
        struct op op = {.actor = actor, .target = target, .area = (from + turn) % plan->area_count};
        const struct area *area = &plan->areas[op.area];
        if (area->rank != target && area->mode != AREA_SIGNAL)
            continue;
        bool drawn = area->mode == AREA_SHARED  ? shared_draw(plan, &op)
                     : area->mode == AREA_CHAIN ? chain_draw(plan, &op)
                                                : contest_draw(plan, &op, exclusive);
        if (!drawn)
            continue;
        plan->written[plan->phase][target] = true;
        return true;
    }
    return false;
}
