/* Operations on bytes outside areas: puts, gets, and accumulates that replace or only fetch,
 * between any two datatypes of one signature; stores by the owner, or by a peer that shares the
 * memory; operations on nothing. A byte that an operation writes belongs to its actor for the
 * phase. Between two accesses by that actor there is a flush. */
#include "step.h"

#include "../mpi/operation_forms.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRIES = 8,
    MOVED_MOST = 3000,
    WIDE_FROM = 10000,
    WIDE_DERIVED_MOST = 5 << 18,
    WIDE_IN_ALL = 8 << 20,
    TRIED_IN_ALL = 128 << 20
};
enum answer { GRANTED, AFTER_FLUSH, REFUSED };

/* The region's bytes that the current operation touches, in transfer order. */
static struct {
    uint32_t offsets[PLAIN_MOST_BYTES];
    uint32_t inside[PLAIN_MOST_BYTES]; /* and of the region that contains the origin buffer */
    unsigned char packed[PLAIN_MOST_BYTES];
    size_t count;
    const struct test_type *element; /* of an accumulate that computes, else NULL */
} hand;

bool type_is_computed(const struct test_type *type)
{
    size_t parts = type->group == GROUP_COMPLEX ? 2 : 1;
    enum type_group group = type->group == GROUP_PAIR ? type->value_group : type->group;
    return !((group == GROUP_FLOATING || group == GROUP_COMPLEX) &&
             type->value_bytes / parts == sizeof(long double));
}

static enum answer claims_ask(const struct region *region, const uint32_t *offsets, int actor,
                              bool writes, uint16_t flush)
{
    enum answer answer = GRANTED;
    for (size_t i = 0; i < hand.count; i++) {
        const struct claim *claim = &region->claims[offsets[i]];
        if (claim->kind == CLAIM_RESERVED ||
            (claim->kind == CLAIM_OWNED && claim->actor != actor) ||
            (claim->kind == CLAIM_READ && claim->actor != actor && writes))
            return REFUSED;
        if (claim->flush == flush &&
            (claim->kind == CLAIM_OWNED || (claim->kind == CLAIM_READ && writes)))
            answer = AFTER_FLUSH;
    }
    return answer;
}

static void claims_add(struct region *region, int actor, bool writes, uint16_t flush)
{
    for (size_t i = 0; i < hand.count; i++) {
        struct claim *claim = &region->claims[hand.offsets[i]];
        bool others = claim->kind == CLAIM_READ && claim->actor != actor;
        if (claim->kind != CLAIM_OWNED)
            claim->kind = writes ? CLAIM_OWNED : CLAIM_READ;
        claim->actor = (uint8_t)(others ? ACTOR_MANY : actor);
        claim->flush = flush;
    }
}

/* Claims the current bytes, with a flush before the operation if necessary. */
static bool claims_win(struct plan *plan, struct region *region, int actor, int target, bool writes)
{
    enum answer answer =
        claims_ask(region, hand.offsets, actor, writes, plan->flushes[actor][target]);
    if (answer == REFUSED || (answer == AFTER_FLUSH && !epoch_is_passive(plan->epoch)))
        return false;
    if (answer == AFTER_FLUSH)
        op_flush(plan, actor, target);
    claims_add(region, actor, writes, plan->flushes[actor][target]);
    return true;
}

static bool is_plain(const struct random_type *type)
{
    return !type->derived && type->extent == type->size_bytes;
}

/* Items that are further apart than one item's length do not overlap. Checking a bounded number of
 * neighbours suffices for all items. */
static bool is_disjoint(const struct side *side)
{
    const struct random_type *type = side->type;
    MPI_Aint distance = type->extent < 0 ? -type->extent : type->extent;
    int near = distance == 0 ? side->count : (int)((type->high - type->low) / distance) + 2;
    return is_plain(type) || random_type_is_disjoint(type, near < side->count ? near : side->count);
}

static int greatest_divisor(int a, int b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* The repeat count of the types' common length, which may be large: any number, or one whose total
 * length is at or next to a length where the library changes paths. */
static int times_wide(struct plan *plan, size_t length, size_t most)
{
    static const size_t edges[] = {16 << 10, 63 << 10, 64 << 10, 256 << 10,
                                   1 << 20,  4 << 20,  16 << 20};
    size_t edge = edges[below(&plan->random, (int)COUNT_OF(edges))];
    size_t times = 1 + (edge <= most && one_in(&plan->random, 2)
                            ? edge / length - (size_t)below(&plan->random, 3)
                            : random_below(&plan->random, most / length + 1));
    return times > most / length + 1 ? 1 : (int)times;
}

/* An operator that computes, if the elements accept any bytes and the result is bitwise the same
 * everywhere; else NULL. */
static const struct test_op *operator_draw(const struct test_type *type, struct random *random)
{
    bool known = type->group == GROUP_BYTE || type_is_integer(type);
    for (int turn = 0; turn < TRIES && known; turn++) {
        const struct test_op *operator= & test_ops[below(random, (int)test_op_count)];
        bool overflows =
            type->group == GROUP_SIGNED && (operator->op == MPI_SUM || operator->op == MPI_PROD);
        if (operator->op != MPI_REPLACE && !overflows && type_allows(type, operator->op))
            return operator;
    }
    return NULL;
}

/* Two types of one signature with matching counts; sometimes many elements, within limits. */
static bool sides_draw(struct plan *plan, struct op *op, const struct region *region)
{
    struct random *random = &plan->random;
    const struct pool *pool = &plan->pools[below(random, SIGNATURES)];
    bool accumulates = op->kind != OP_PUT && op->kind != OP_GET;
    if (accumulates && !pool->accumulates)
        return false;
    const struct test_type *element = pool->signature.leaves[0]->model;
    const struct test_op *computes =
        op->operator!= NULL && one_in(random, 2) ? operator_draw(element, random) : NULL;
    if (computes != NULL) {
        op->operator= computes;
        hand.element = element;
    }
    op->to.type = &pool->types[below(random, VARIANTS)];
    op->origin.type = &pool->types[below(random, VARIANTS)];
    if (is_plain(&pool->types[0]) && one_in(random, 4))
        op->to.type = op->origin.type = &pool->types[0];
    int to = op->to.type->size_bytes, from = op->origin.type->size_bytes,
        divisor = greatest_divisor(to, from);
    bool plain = is_plain(op->to.type) && is_plain(op->origin.type);
    bool wide = region->size > WIDE_FROM && plan->wide_bytes < WIDE_IN_ALL &&
                plan->tried_bytes < TRIED_IN_ALL &&
                one_in(random, region->size < WIDE_DERIVED_MOST ? 4 : 2);
    size_t most = plain || region->size < WIDE_DERIVED_MOST ? region->size : WIDE_DERIVED_MOST;
    int times = wide ? times_wide(plan, (size_t)(from / divisor) * (size_t)to, most)
                     : 1 + (int)random_below(
                               random, (plain ? 600 : 200) / (size_t)(to > from ? to : from) + 1);
    op->to.count = from / divisor * times;
    op->origin.count = to / divisor * times;
    op->result = op->origin;
    hand.count = (size_t)op->to.count * (size_t)to;
    size_t limit = plain ? (size_t)PLAIN_MOST_BYTES : wide ? (size_t)WIDE_DERIVED_MOST : MOVED_MOST;
    return hand.count <= limit && is_disjoint(&op->to) &&
           (op->kind == OP_PUT || op->kind == OP_ACCUMULATE || is_disjoint(&op->origin));
}

/* Offsets of the bytes that the side's items touch, from a given byte on. */
static void offsets_list(uint32_t *offsets, const struct side *side, MPI_Aint from)
{
    const struct random_type *type = side->type;
    for (size_t i = 0; i < hand.count; i++)
        offsets[i] = (uint32_t)(from + (MPI_Aint)(i / (size_t)type->size_bytes) * type->extent +
                                type->map[i % (size_t)type->size_bytes]);
}

static bool place_draw(struct plan *plan, struct op *op, const struct region *region)
{
    MPI_Aint low, high, unit = region->unit;
    random_type_bounds(op->to.type, op->to.count, &low, &high);
    MPI_Aint least = low < 0 ? (-low + unit - 1) / unit : 0;
    MPI_Aint room = (MPI_Aint)region->size - high;
    if (room < 0 || room / unit < least)
        return false;
    op->disp = least + (MPI_Aint)random_below(&plan->random, (uint64_t)(room / unit - least + 1));
    offsets_list(hand.offsets, &op->to, op->disp * unit);
    return true;
}

static bool kind_draw(struct plan *plan, struct op *op)
{
    static const enum op_kind kinds[] = {
        OP_PUT, OP_PUT, OP_PUT, OP_GET, OP_GET, OP_GET, OP_ACCUMULATE, OP_GET_ACCUMULATE, OP_FETCH};
    struct random *random = &plan->random;
    op->kind = kinds[below(random, (int)COUNT_OF(kinds))];
    op->form = op->kind == OP_FETCH ? 0 : below(random, FORMS);
    if (!epoch_is_passive(plan->epoch))
        op->form &= FORM_LARGE;
    notified_draw(plan, op);
    op->free_types = one_in(random, 6);
    if (op->kind > OP_GET && op->kind != OP_ACCUMULATE && one_in(random, 2))
        return false; /* MPI_NO_OP */
    for (size_t i = 0; i < test_op_count; i++)
        if (test_ops[i].op == MPI_REPLACE && op->kind > OP_GET)
            op->operator= & test_ops[i];
    return op->kind != OP_GET;
}

/* The origin buffer of a put or get in the window's own memory, in bytes that no operation writes
 * and, in the second case, none reads. */
static struct region *inside_draw(struct plan *plan, struct op *op)
{
    int me = actor_rank(plan, op->actor);
    struct region *own = &plan->window->regions[me][below(&plan->random, plan->window->segments)];
    MPI_Aint low, high;
    random_type_bounds(op->origin.type, op->origin.count, &low, &high);
    if (op->kind > OP_GET || plan->epoch == EPOCH_LOCK || !plan->window->unified ||
        own->model == NULL || (MPI_Aint)own->size <= high - low || !one_in(&plan->random, 4))
        return NULL;
    bool gets = op->kind == OP_GET;
    MPI_Aint at = (MPI_Aint)random_below(&plan->random, own->size - (size_t)(high - low)) - low;
    offsets_list(hand.inside, &op->origin, at);
    if (claims_ask(own, hand.inside, op->actor, gets, plan->flushes[op->actor][me]) != GRANTED)
        return NULL;
    for (size_t i = 0; i < hand.count; i++) {
        struct claim *claim = &own->claims[hand.inside[i]];
        bool read = !gets && claim->kind != CLAIM_OWNED;
        *claim = read ? (struct claim){CLAIM_READ, ACTOR_MANY, 0}
                      : (struct claim){CLAIM_OWNED, ACTOR_NONE, 0};
    }
    plan->stored[plan->phase][me] |= gets;
    plan->inside[plan->phase][me] = true;
    op->from = (struct buffer){.bytes = own->at, .at = at, .inside = true};
    return own;
}

/* Data that leaves the window's own memory, or arrives there. */
static void inside_apply(struct plan *plan, const struct op *op, struct region *own)
{
    for (size_t i = 0; i < hand.count; i++) {
        if (op->kind == OP_PUT) {
            hand.packed[i] = own->model[hand.inside[i]];
        } else {
            own->model[hand.inside[i]] = hand.packed[i];
            own->writers[hand.inside[i]] = (uint16_t)(plan->op_count + 1);
        }
    }
}

/* Applies the current operands to the target's elements. */
static void compute(const struct op *op, const struct region *region)
{
    const size_t size_bytes = hand.element->extent_bytes;
    unsigned char element[TYPE_MAX_BYTES];
    for (size_t i = 0; i < hand.count; i += size_bytes) {
        for (size_t b = 0; b < size_bytes; b++)
            element[b] = region->model[hand.offsets[i + b]];
        type_apply(hand.element, op->operator->op, element, hand.packed + i);
        memcpy(hand.packed + i, element, size_bytes);
    }
}

/* Updates the model: the buffers, the returned data, and the target's contents. */
static void model_apply(struct plan *plan, struct op *op, struct region *region, bool writes)
{
    bool here = actor_is_here(op->actor);
    struct random random = {random_next(&plan->random)};
    struct region *own = inside_draw(plan, op);
    if (own == NULL)
        buffer_make(&op->from, &op->origin, &random, here);
    if (op->kind >= OP_GET_ACCUMULATE)
        buffer_make(&op->into, &op->result, &random, here);
    if (op->kind != OP_PUT && op->kind != OP_ACCUMULATE) {
        for (size_t i = 0; i < hand.count; i++)
            hand.packed[i] = region->model[hand.offsets[i]];
        if (own != NULL)
            inside_apply(plan, op, own);
        else
            buffer_want(op->kind == OP_GET ? &op->from : &op->into,
                        op->kind == OP_GET ? &op->origin : &op->result, hand.packed);
    }
    if (writes && own != NULL)
        inside_apply(plan, op, own);
    else if (writes)
        random_type_gather(op->origin.type, (int)hand.count, op->from.bytes + op->from.at,
                           hand.packed);
    if (writes && hand.element != NULL)
        compute(op, region);
    if (writes) {
        for (size_t i = 0; i < hand.count; i++) {
            region->model[hand.offsets[i]] = hand.packed[i];
            region->writers[hand.offsets[i]] = (uint16_t)(plan->op_count + 1);
        }
    }
    if (!here) {
        buffer_free(&op->from);
        buffer_free(&op->into);
    }
    op_push(plan, op);
}

static bool segment_draw(struct plan *plan, struct op *op)
{
    const struct soak_window *window = plan->window;
    op->segment = below(&plan->random, window->segments);
    return window->regions[op->target][op->segment].model != NULL;
}

static void fetch_shape(struct plan *plan, struct op *op)
{
    const struct pool *pool = &plan->pools[1 + below(&plan->random, SIGNATURES - 1)];
    if (pool->accumulates && pool->types[0].size_bytes <= (int)TYPE_MAX_BYTES) {
        op->to = op->origin = op->result = (struct side){&pool->types[0], 1};
        hand.count = (size_t)pool->types[0].size_bytes;
    } else {
        hand.count = 0;
    }
}

static bool raw_try(struct plan *plan, int actor, int target)
{
    struct op op = {.actor = actor, .target = target, .area = -1};
    if (!segment_draw(plan, &op))
        return false;
    bool writes = kind_draw(plan, &op);
    struct region *region = op_region(plan, &op);
    hand.element = NULL;
    if (op.kind == OP_FETCH)
        fetch_shape(plan, &op);
    else if (!sides_draw(plan, &op, region))
        return false;
    if (op.kind == OP_FETCH && hand.count == 0)
        return false;
    if (op.kind != OP_FETCH && one_in(&plan->random, 25))
        op.to.count = op.origin.count = op.result.count = (int)(hand.count = 0);
    plan->tried_bytes += hand.count > MOVED_MOST ? hand.count : 0;
    if (!place_draw(plan, &op, region) || !claims_win(plan, region, actor, target, writes))
        return false;
    plan->written[plan->phase][target] |= writes;
    plan->wide_bytes += hand.count > MOVED_MOST ? hand.count : 0;
    model_apply(plan, &op, region, writes);
    return true;
}

bool raw_draw(struct plan *plan, int actor, int target)
{
    for (int i = 0; i < TRIES; i++)
        if (raw_try(plan, actor, target))
            return true;
    return false;
}

void null_draw(struct plan *plan, int actor)
{
    struct op op = {.actor = actor, .target = MPI_PROC_NULL, .area = -1};
    struct region nothing = {.size = 0, .unit = 1};
    bool here = actor_is_here(actor);
    kind_draw(plan, &op);
    if (op.kind == OP_FETCH || !sides_draw(plan, &op, &nothing))
        return;
    struct random random = {random_next(&plan->random)};
    op.disp = below(&plan->random, 1000);
    buffer_make(&op.from, &op.origin, &random, here);
    buffer_make(&op.into, &op.result, &random, here);
    if (!here) {
        buffer_free(&op.from);
        buffer_free(&op.into);
    }
    op_push(plan, &op);
}

/* The actor checks the bytes and writes new ones. */
bool store_draw(struct plan *plan, int actor, int target)
{
    struct op op = {.kind = OP_STORE, .actor = actor, .target = target, .area = -1};
    struct random *random = &plan->random;
    int rank = actor_rank(plan, actor);
    if (!plan->window->unified || (rank != target && plan->window->flavour != FLAVOUR_SHARED) ||
        !segment_draw(plan, &op))
        return false;
    struct region *region = op_region(plan, &op);
    if (region->size == 0)
        return false;
    op.disp = (MPI_Aint)random_below(random, region->size);
    size_t room = region->size - (size_t)op.disp;
    op.len_bytes = 1 + random_below(random, room < 200 ? room : 200);
    hand.count = op.len_bytes;
    for (size_t i = 0; i < hand.count; i++)
        hand.offsets[i] = (uint32_t)op.disp + (uint32_t)i;
    if (!claims_win(plan, region, actor, target, true))
        return false;
    claims_add(region, actor, true,
               (uint16_t)(plan->flushes[actor][target] - 1)); /* it is complete at once */
    unsigned char *model = region->model + op.disp;
    op.from = (struct buffer){
        .bytes = malloc(op.len_bytes), .wanted = malloc(op.len_bytes), .len_bytes = op.len_bytes};
    memcpy(op.from.wanted, model, op.len_bytes);
    bytes_draw(model, op.len_bytes, random);
    memcpy(op.from.bytes, model, op.len_bytes);
    for (size_t i = 0; i < op.len_bytes; i++)
        region->writers[(size_t)op.disp + i] = (uint16_t)(plan->op_count + 1);
    op_push(plan, &op);
    return true;
}
