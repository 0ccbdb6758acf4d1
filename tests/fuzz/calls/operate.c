/* Random operations. About half should succeed. Each uses one of its call forms, and the test
 * compares the result byte by byte wherever the arguments alone determine it. */
#include "operate.h"

#include <stdio.h>
#include <string.h>

static const struct shape {
    enum fuzz_function narrow, wide;
    bool accumulates, fetches, single, notifies;
} shapes[] = {
    {FUZZ_Put, FUZZ_Put_c, false, false, false, false},
    {FUZZ_Rput, FUZZ_Rput_c, false, false, false, false},
    {FUZZ_Get, FUZZ_Get_c, false, false, false, false},
    {FUZZ_Rget, FUZZ_Rget_c, false, false, false, false},
    {FUZZ_Accumulate, FUZZ_Accumulate_c, true, false, false, false},
    {FUZZ_Raccumulate, FUZZ_Raccumulate_c, true, false, false, false},
    {FUZZ_Get_accumulate, FUZZ_Get_accumulate_c, true, true, false, false},
    {FUZZ_Rget_accumulate, FUZZ_Rget_accumulate_c, true, true, false, false},
    {FUZZ_Fetch_and_op, FUZZ_Fetch_and_op, false, true, true, false},
    {FUZZ_Compare_and_swap, FUZZ_Compare_and_swap, false, true, true, false},
    {FUZZ_Rfetch_and_op, FUZZ_Rfetch_and_op, false, true, true, false},
    {FUZZ_Rcompare_and_swap, FUZZ_Rcompare_and_swap, false, true, true, false},
    {FUZZ_Fetch_and_op_list, FUZZ_Fetch_and_op_list, false, true, true, false},
    {FUZZ_Put_notify, FUZZ_Put_notify, false, false, false, true},
    {FUZZ_Get_notify, FUZZ_Get_notify, false, false, false, true},
    {FUZZ_Accumulate_notify, FUZZ_Accumulate_notify, true, false, false, true},
};

static MPI_Op user_op;

static void user_function(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)length;
    (void)type;
    CHECK(false, "an operator of the user was called");
}

void operate_start(void)
{
    MPI_Op_create(user_function, 1, &user_op);
}
void operate_stop(void)
{
    MPI_Op_free(&user_op);
}

static MPI_Op draw_op(struct random *random)
{
    if (one_in(random, 10))
        return one_in(random, 2) ? MPI_OP_NULL : user_op;
    return one_in(random, 6) ? MPI_NO_OP : test_ops[random_below(random, test_op_count)].op;
}

MPI_Aint operation_disp_draw(const struct observed_window *observed, int rank,
                             struct random *random)
{
    MPI_Aint items =
        rank >= 0 && rank < observed->n ? observed->size[rank] / observed->unit[rank] : 8;
    if (one_in(random, 12))
        return fuzz_bad_aint(random);
    if (one_in(random, 20))
        return -1 - below(random, 3);
    if (observed->attached != NULL && rank >= 0 && rank < observed->n)
        return observed->attached->address[rank] - OBSERVED_GUARD_BYTES +
               below(random, OBSERVED_SPAN_BYTES);
    if (one_in(random, 12))
        return INT64_MAX / (rank >= 0 && rank < observed->n ? observed->unit[rank] : 2) - 3 +
               below(random, 4);
    if (one_in(random, 16) && rank >= 0 &&
        rank < observed->n) /* a small one again, to catch an unnoticed overflow of the product */
        return (MPI_Aint)((UINT64_C(1) << 63) / (uint64_t)observed->unit[rank] * 2) +
               below(random, 4);
    if (one_in(random, 8))
        return items - 2 + below(random, 5);
    return items > 1
               ? (MPI_Aint)random_below(random, (uint64_t)items / (one_in(random, 2) ? 1 : 2) + 1)
               : 0;
}

/* Makes the other sides of most accumulates match. */
static void match(struct operation *operation, struct side *side, const struct sides *sides, int b,
                  struct random *random)
{
    if (one_in(random, 6))
        return;
    if (one_in(random, 2) && operation->target.type->state == SIDE_GOOD &&
        !operation->target.type->absolute) {
        side->type = operation->target.type;
        side->count = operation->target.count;
    } else {
        for (int i = 0; i < SIDE_TYPES; i++) {
            const struct side_type *type =
                &sides->types[(i * 7 + below(random, SIDE_TYPES)) % SIDE_TYPES];
            if (type->state != SIDE_GOOD || type->absolute ||
                type->mixed != operation->target.type->mixed ||
                sides_alike(type->model, operation->target.type->model) == 0)
                continue;
            side->type = type;
            break;
        }
    }
    if (side->type->state == SIDE_GOOD && !side->type->absolute)
        side->addr = side->origin = (unsigned char *)sides->buffers[b] + SIDE_BYTES / 2;
}

/* NULL instead of a necessary buffer.  With a type whose displacement 0 is unused, NULL may be
 * MPI_BOTTOM and is not tried. */
static void drop_buffers(struct operation *operation, struct random *random)
{
    struct side *sides[] = {&operation->origin, &operation->result};
    for (int i = 0; i < 2; i++)
        if (one_in(random, 30) && sides[i]->type->map.low <= 0 &&
            sides[i]->type->state == SIDE_GOOD && !sides[i]->type->absolute)
            sides[i]->addr = NULL;
    operation->no_compare = one_in(random, 30);
}

static void draw(struct operation *operation, const struct observed_window *observed,
                 struct sides *sides, struct random *random)
{
    const struct shape *shape = &shapes[random_below(random, COUNT_OF(shapes))];
    bool wide = (shape->wide != shape->narrow || shape->notifies) && one_in(random, 3);
    *operation = (struct operation){.function = wide ? shape->wide : shape->narrow,
                                    .accumulates = shape->accumulates,
                                    .fetches = shape->fetches,
                                    .single = shape->single,
                                    .notifies = shape->notifies,
                                    .number = shape->notifies ? notify_number_draw(random) : 0,
                                    .op = draw_op(random)};
    operation->rank = one_in(random, 16)
                          ? (one_in(random, 2) ? MPI_PROC_NULL : fuzz_bad_rank(random, observed->n))
                          : below(random, observed->n);
    operation->disp = operation_disp_draw(observed, operation->rank, random);
    side_draw(sides, &operation->target, -1, wide, random);
    if (sides->recent != NULL &&
        one_in(random, 3)) /* threads cache their last transfer and may take another path */
        operation->target.type = sides->recent;
    sides->recent = operation->target.type;
    side_draw(sides, &operation->origin, 0, wide, random);
    side_draw(sides, &operation->result, 1, wide, random);
    match(operation, &operation->origin, sides, 0, random);
    match(operation, &operation->result, sides, 1, random);
    if (operation->single) {
        operation->target.count = 1;
        if (one_in(random, 2)) /* a predefined one */
            for (int i = 11; i < SIDE_TYPES && operation->target.type->map.derived; i++)
                operation->target.type =
                    &sides->types[(i + below(random, SIDE_TYPES)) % SIDE_TYPES];
        operation->origin.addr = operation->origin.origin = sides->buffers[0] + SIDE_BYTES / 2;
        operation->result.addr = operation->result.origin = sides->buffers[1] + SIDE_BYTES / 2;
        operation->origin.type = operation->result.type = operation->target.type;
        operation->origin.count = operation->result.count = 1;
    }
    drop_buffers(operation, random);
}

static void describe(const struct operation *operation, const struct observed_window *observed)
{
    const struct side *o = &operation->origin, *r = &operation->result, *t = &operation->target;
    const char *op = operation->op == MPI_OP_NULL ? "null"
                     : operation->op == user_op   ? "user"
                                                  : "NO_OP";
    for (size_t i = 0; i < test_op_count; i++)
        if (test_ops[i].op == operation->op)
            op = test_ops[i].name;
    bool good = operation->rank >= 0 && operation->rank < observed->n;
    fuzz_describe("%s(%lld*%d:%.30s, %lld*%d:%.30s, rank %d, disp %ld [size %ld, unit %ld], "
                  "%lld*%d:%.30s, %s, number %d)",
                  fuzz_name(operation->function), (long long)o->count, (int)o->type->state,
                  o->type->map.text, (long long)r->count, (int)r->type->state, r->type->map.text,
                  operation->rank, (long)operation->disp,
                  good ? (long)observed->size[operation->rank] : -1,
                  good ? (long)observed->unit[operation->rank] : -1, (long long)t->count,
                  (int)t->type->state, t->type->map.text, op, operation->number);
}

#define FROM   o->addr, (int)o->count, o->type->type
#define BACK   r->addr, (int)r->count, r->type->type
#define INTO   op->rank, op->disp, (int)t->count, t->type->type
#define FROM_C o->addr, o->count, o->type->type
#define BACK_C r->addr, r->count, r->type->type
#define INTO_C op->rank, op->disp, t->count, t->type->type

/* Requests are complete when this returns. */
static int call(const struct operation *op, struct sides *sides, MPI_Win win)
{
    const struct side *o = &op->origin, *r = &op->result, *t = &op->target;
    MPI_Request request = MPI_REQUEST_NULL;
    int code;
    const void *compare = op->no_compare ? NULL : sides->buffers[2];
    if (persistent_is_due(op->function, win))
        return persistent_call(op, compare, win);
    switch (op->function) {
    case FUZZ_Put: return FUZZ(Put, FROM, INTO, win);
    case FUZZ_Put_c: return FUZZ(Put_c, FROM_C, INTO_C, win);
    case FUZZ_Get: return FUZZ(Get, FROM, INTO, win);
    case FUZZ_Get_c: return FUZZ(Get_c, FROM_C, INTO_C, win);
    case FUZZ_Accumulate: return FUZZ(Accumulate, FROM, INTO, op->op, win);
    case FUZZ_Accumulate_c: return FUZZ(Accumulate_c, FROM_C, INTO_C, op->op, win);
    case FUZZ_Get_accumulate: return FUZZ(Get_accumulate, FROM, BACK, INTO, op->op, win);
    case FUZZ_Get_accumulate_c: return FUZZ(Get_accumulate_c, FROM_C, BACK_C, INTO_C, op->op, win);
    case FUZZ_Fetch_and_op:
        return FUZZ(Fetch_and_op, o->addr, r->addr, t->type->type, op->rank, op->disp, op->op, win);
    case FUZZ_Compare_and_swap:
        return FUZZ(Compare_and_swap, o->addr, compare, r->addr, t->type->type, op->rank, op->disp,
                    win);
    case FUZZ_Put_notify: return FUZZX(Put_notify, FROM_C, INTO_C, op->number, win);
    case FUZZ_Get_notify: return FUZZX(Get_notify, FROM_C, INTO_C, op->number, win);
    case FUZZ_Accumulate_notify:
        return FUZZX(Accumulate_notify, FROM_C, INTO_C, op->op, op->number, win);
    case FUZZ_Fetch_and_op_list:
        return FUZZX(Fetch_and_op_list, o->addr, r->addr, t->count, t->type->type, op->rank,
                     &op->disp, op->op, win);
    case FUZZ_Rfetch_and_op:
        code = FUZZX(Rfetch_and_op, o->addr, r->addr, t->type->type, op->rank, op->disp, op->op,
                     win, &request);
        break;
    case FUZZ_Rcompare_and_swap:
        code = FUZZX(Rcompare_and_swap, o->addr, compare, r->addr, t->type->type, op->rank,
                     op->disp, win, &request);
        break;
    case FUZZ_Rput: code = FUZZ(Rput, FROM, INTO, win, &request); break;
    case FUZZ_Rput_c: code = FUZZ(Rput_c, FROM_C, INTO_C, win, &request); break;
    case FUZZ_Rget: code = FUZZ(Rget, FROM, INTO, win, &request); break;
    case FUZZ_Rget_c: code = FUZZ(Rget_c, FROM_C, INTO_C, win, &request); break;
    case FUZZ_Raccumulate: code = FUZZ(Raccumulate, FROM, INTO, op->op, win, &request); break;
    case FUZZ_Raccumulate_c:
        code = FUZZ(Raccumulate_c, FROM_C, INTO_C, op->op, win, &request);
        break;
    case FUZZ_Rget_accumulate:
        code = FUZZ(Rget_accumulate, FROM, BACK, INTO, op->op, win, &request);
        break;
    default: code = FUZZ(Rget_accumulate_c, FROM_C, BACK_C, INTO_C, op->op, win, &request); break;
    }
    if (code == MPI_SUCCESS && !fuzz_complete(request))
        CHECK(false, "%.250s: its request failed", fuzz_description());
    return code;
}

/* Accepts changes in len_bytes of a side as the new expected bytes. */
static void accept(const struct side *side, unsigned char *expected, const unsigned char *at,
                   MPI_Aint len_bytes)
{
    const struct random_type *map = &side->type->map;
    for (MPI_Aint i = 0; i < len_bytes; i++) {
        MPI_Aint offset = i / map->size_bytes * map->extent + map->map[i % map->size_bytes];
        expected[offset] = at[offset];
    }
}

static bool is_exact(const struct side *side, MPI_Aint len_bytes)
{
    const struct test_type *model = side->type->model;
    bool long_double = model->value_bytes >= 16 || model->value_group == GROUP_FLOATING ||
                       model->value_group == GROUP_COMPLEX;
    return !(long_double && model->value_bytes >= 16) &&
           random_type_is_disjoint(&side->type->map,
                                   (int)((len_bytes - 1) / side->type->map.size_bytes + 1));
}

/* The origin may delay a put or accumulate until another operation on the same target follows: here
 * a get of its first byte. */
static void complete(const struct operation *operation, MPI_Win win)
{
    unsigned char byte;
    MPI_Datatype first;
    MPI_Aint at = operation->target.type->map.map[0];
    MPI_Type_create_hindexed(1, (const int[]){1}, &at, MPI_BYTE, &first);
    MPI_Type_commit(&first);
    CHECK(MPI_Get(&byte, 1, MPI_BYTE, operation->rank, operation->disp, 1, first, win) ==
              MPI_SUCCESS,
          "%.250s: a get of its first byte fails", fuzz_description());
    MPI_Type_free(&first);
}

/* After success: the origin's bytes are at the target, or the target's old bytes in the buffer. */
static void follow(const struct operation *operation, struct observed_window *observed,
                   struct sides *sides)
{
    unsigned char old[SIDE_BYTES], packed[SIDE_BYTES], now[SIDE_BYTES];
    const struct side *target = &operation->target;
    int len_bytes = (int)operation->moved_bytes;
    MPI_Aint offset = (MPI_Aint)observed_offset(observed, operation->rank, operation->disp);
    unsigned char *at = observed_memory(observed, operation->rank) + offset;
    unsigned char *expected = observed_expected(observed, operation->rank) + offset;
    bool gets = operation_gets(operation);
    bool puts = operation_puts(operation);
    bool replaces = puts || (operation->accumulates && operation->op == MPI_REPLACE);
    random_type_gather(&target->type->map, len_bytes, expected, old);
    if (!gets && !((operation->accumulates || operation_fetches_one(operation)) &&
                   operation->op == MPI_NO_OP))
        accept(target, expected, at, len_bytes);
    if (replaces && is_exact(target, len_bytes)) {
        random_type_gather(&operation->origin.type->map, len_bytes, operation->origin.origin,
                           packed);
        random_type_gather(&target->type->map, len_bytes, at, now);
        CHECK(memcmp(packed, now, (size_t)len_bytes) == 0,
              "%.250s: other bytes arrived than were sent", fuzz_description());
    }
    if (!gets && !operation->fetches)
        return;
    const struct side *to = gets ? &operation->origin : &operation->result;
    int b = gets ? 0 : 1;
    accept(to, to->origin - sides->buffers[b] + sides->expected[b], to->origin, len_bytes);
    if (is_exact(to, len_bytes) && is_exact(target, len_bytes)) {
        random_type_gather(&to->type->map, len_bytes, to->origin, now);
        CHECK(memcmp(old, now, (size_t)len_bytes) == 0,
              "%.250s: the returned bytes differ from the target's", fuzz_description());
    }
}

/* Whether buffers and descriptions cover everything that a successful call would access. */
static bool can_follow(const struct operation *operation, const struct sides *sides)
{
    const struct side *origin = &operation->origin;
    bool reads_origin = !operation->single && !(operation->fetches && operation->op == MPI_NO_OP);
    if (operation->moved_bytes == 0)
        return true;
    if (operation->single)
        return operation->target.type->state == SIDE_GOOD && operation->target.type->map.low == 0;
    return (!reads_origin || side_fits(sides, origin, 0, operation->moved_bytes)) &&
           (!operation->fetches || side_fits(sides, &operation->result, 1, operation->moved_bytes));
}

void operate_once(struct observed_window *observed, struct sides *sides, struct random *random)
{
    struct operation operation;
    struct verdict verdict;
    int tries = one_in(random, 2) ? 1 : 20; /* until one must succeed */
    do {
        draw(&operation, observed, sides, random);
        verdict = operation_judge(&operation, observed);
    } while (--tries > 0 && (verdict.must != 0 || operation.moved_bytes == 0));
    if (verdict.must == 0 && !can_follow(&operation, sides))
        return;
    if (one_in(random, 50))
        sides_fill(sides, random);
    describe(&operation, observed);
    bool success = fuzz_judge(verdict, call(&operation, sides, observed->win));
    if (success && operation.rank >= 0)
        epochs_note_operation(&observed->epochs, operation.rank);
    if (success && operation.rank >= 0 && operation.notifies)
        notify_note(observed, operation.rank, operation.number);
    if (success && verdict.must == 0 && operation.moved_bytes > 0) {
        complete(&operation, observed->win);
        follow(&operation, observed, sides);
    }
    observed_check(observed);
    sides_check(sides);
}
