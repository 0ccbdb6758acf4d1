/* Accumulate and get_accumulate with derived datatypes of one predefined type on all sides, against
 * a model: the host packs, the operator changes each element, and the host unpacks. Also accesses
 * that exceed the window by one byte. A plain MPI program, run by the test rows. */
#include "derived.h"

#include <stdlib.h>
#include <string.h>

enum {
    KINDS_THREE = KIND_ALLOCATE | KIND_SHARED | KIND_HEAP,
    ELEMENTS_MOST_BYTES = 4 * PACKED_MOST_BYTES
};

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* One operation: elements as an array of the predefined type, one extent apart, on both sides. */
struct update {
    const struct random_leaf *leaf;
    MPI_Op op;
    const char *name;
    int elements;
    unsigned char operand[ELEMENTS_MOST_BYTES];
    unsigned char before[PACKED_MOST_BYTES]; /* packed */
};

/* The padding bytes of a long double after arithmetic depend on the compiler: such types are only
 * moved. */
static bool has_padded_values(const struct test_type *model)
{
    size_t parts = model->group == GROUP_COMPLEX ? 2 : 1;
    return model->value_bytes / parts == sizeof(long double) &&
           (model->group == GROUP_FLOATING || model->group == GROUP_COMPLEX ||
            model->group == GROUP_PAIR);
}

static void choose_operator(struct update *update, struct random *random)
{
    static const struct test_op ops[] = {
        {"MPI_SUM", MPI_SUM},   {"MPI_MAX", MPI_MAX},       {"MPI_BXOR", MPI_BXOR},
        {"MPI_LXOR", MPI_LXOR}, {"MPI_MINLOC", MPI_MINLOC},
    };
    const struct test_type *model = update->leaf->model;
    size_t first = random_below(random, COUNT_OF(ops));
    update->op = MPI_REPLACE;
    update->name = "MPI_REPLACE";
    for (size_t i = 0; i < COUNT_OF(ops) && !has_padded_values(model); i++) {
        const struct test_op *chosen = &ops[(first + i) % COUNT_OF(ops)];
        if (type_allows(model, chosen->op) && random_below(random, 5) != 0) {
            update->op = chosen->op;
            update->name = chosen->name;
            return;
        }
    }
}

static void elements_fill(const struct update *update, unsigned char *elements,
                          struct random *random)
{
    for (int i = 0; i < update->elements; i++)
        type_fill(update->leaf->model, elements + (size_t)i * update->leaf->model->extent_bytes,
                  random, 0x77);
}

static void elements_pack(const struct update *update, const unsigned char *elements,
                          unsigned char *packed)
{
    int position = 0;
    MPI_Pack(elements, update->elements, update->leaf->type, packed, PACKED_MOST_BYTES, &position,
             MPI_COMM_SELF);
}

static void elements_unpack(const struct update *update, const unsigned char *packed,
                            unsigned char *elements)
{
    int position = 0;
    MPI_Unpack(packed, PACKED_MOST_BYTES, &position, elements, update->elements, update->leaf->type,
               MPI_COMM_SELF);
}

/* The slot's elements get values that are valid for the operators; the field gets the operand. The
 * model becomes the operator's result. */
static void update_prepare(struct update *update, struct slot *slot, const struct sides *sides,
                           unsigned char *field, struct random *random)
{
    static unsigned char elements[ELEMENTS_MOST_BYTES];
    unsigned char packed[PACKED_MOST_BYTES];
    const struct test_type *model = update->leaf->model;
    update->elements = sides->len_bytes / (int)(model->value_bytes + model->index_bytes);
    elements_fill(update, elements, random);
    elements_pack(update, elements, update->before);
    bytes_fill(field, FIELD_BYTES, random);
    memcpy(slot->model, field, FIELD_BYTES);
    side_unpack(&sides->target, sides->len_bytes, slot->model, update->before);
    slot_write(slot, slot->model);
    if (update->op == MPI_NO_OP)
        return;
    elements_fill(update, update->operand, random);
    elements_pack(update, update->operand, packed);
    random_type_scatter(&sides->origin.type, sides->len_bytes, field + sides->origin.offset,
                        packed);
    side_pack(&sides->origin, sides->len_bytes, field, packed);
    elements_unpack(update, packed, update->operand);
    for (int i = 0; i < update->elements; i++)
        type_apply(model, update->op, elements + (size_t)i * model->extent_bytes,
                   update->operand + (size_t)i * model->extent_bytes);
    elements_pack(update, elements, packed);
    side_unpack(&sides->target, sides->len_bytes, slot->model, packed);
}

static void accumulate_round(struct slot *slot, struct random *random)
{
    static struct update update;
    static struct sides sides;
    unsigned char field[FIELD_BYTES], expected[FIELD_BYTES];
    update.leaf = random_leaf_any(random);
    choose_operator(&update, random);
    struct random_signature signature = random_signature_of(update.leaf);
    sides_make(&sides, &signature, true, random_next(random));
    update_prepare(&update, slot, &sides, field, random);
    memcpy(expected, field, sizeof field);
    MPI_Accumulate(field + sides.origin.offset, sides.origin.count, sides.origin.type.type,
                   slot->target, slot_disp(slot, &sides.target), sides.target.count,
                   sides.target.type.type, update.op, slot->win);
    MPI_Win_flush(slot->target, slot->win);
    slot_check(slot, &sides, update.name);
    fields_check(field, expected, &sides, "the origin of an accumulate");
    sides_free(&sides);
}

static void random_types_accumulate(enum window_kind kind)
{
    static struct slot slot;
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    for (int target = 0; target < world_size; target++) {
        slot_open(&slot, window.win, target, 1, 0);
        for (int round = 0; round < scaled_rounds(1600) / world_size && !harness_failed(); round++)
            accumulate_round(&slot, &random);
    }
    slots_free(&window);
}

/* The third side: a type of its own, or the predefined type itself. */
static void result_make(struct side *result, const struct sides *sides, struct random *random)
{
    for (int tries = 0; tries < 40; tries++)
        if (side_make(result, &sides->signature, sides->len_bytes, true, random))
            return;
    *result = sides->target;
    result->type.derived = false;
}

static void get_accumulate_round(struct slot *slot, struct random *random)
{
    static struct update update;
    static struct sides sides;
    static struct side result;
    unsigned char field[FIELD_BYTES], got[FIELD_BYTES], wanted[FIELD_BYTES];
    update.leaf = random_leaf_any(random);
    choose_operator(&update, random);
    if (random_below(random, 5) == 0) {
        update.op = MPI_NO_OP;
        update.name = "MPI_NO_OP";
    }
    struct random_signature signature = random_signature_of(update.leaf);
    sides_make(&sides, &signature, true, random_next(random));
    result_make(&result, &sides, random);
    update_prepare(&update, slot, &sides, field, random);
    bytes_fill(got, sizeof got, random);
    memcpy(wanted, got, sizeof got);
    side_unpack(&result, sides.len_bytes, wanted, update.before);
    bool no_origin = update.op == MPI_NO_OP && random_below(random, 2);
    MPI_Get_accumulate(no_origin ? NULL : field + sides.origin.offset,
                       no_origin ? 0 : sides.origin.count,
                       no_origin ? MPI_BYTE : sides.origin.type.type, got + result.offset,
                       result.count, result.type.type, slot->target, slot_disp(slot, &sides.target),
                       sides.target.count, sides.target.type.type, update.op, slot->win);
    MPI_Win_flush(slot->target, slot->win);
    slot_check(slot, &sides, update.name);
    fields_check(got, wanted, &sides, "the result of a get_accumulate");
    random_type_free(&result.type);
    sides_free(&sides);
}

static void random_types_get_accumulate(enum window_kind kind)
{
    static struct slot slot;
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind, 1);
    for (int target = 0; target < world_size; target++) {
        slot_open(&slot, window.win, target, 1, 0);
        for (int round = 0; round < scaled_rounds(1600) / world_size && !harness_failed(); round++)
            get_accumulate_round(&slot, &random);
    }
    slots_free(&window);
}

/* All four operations with one target side; expects the given class, or success. */
static void four_operations(MPI_Win win, int class, const struct sides *sides, unsigned char *field,
                            unsigned char *got, MPI_Aint disp)
{
    const struct side *at = &sides->origin;
    const struct side *to = &sides->target;
    int target = right_of(world_rank);
    CHECK_CLASS(class, MPI_Put(field + at->offset, at->count, at->type.type, target, disp,
                               to->count, to->type.type, win));
    CHECK_CLASS(class, MPI_Get(got + at->offset, at->count, at->type.type, target, disp, to->count,
                               to->type.type, win));
    CHECK_CLASS(class, MPI_Accumulate(field + at->offset, at->count, at->type.type, target, disp,
                                      to->count, to->type.type, MPI_REPLACE, win));
    CHECK_CLASS(class, MPI_Get_accumulate(field + at->offset, at->count, at->type.type,
                                          got + at->offset, at->count, at->type.type, target, disp,
                                          to->count, to->type.type, MPI_REPLACE, win));
    CHECK_OK(MPI_Win_flush(target, win));
}

/* The first and last byte that move may touch the window's ends. One byte further is an error, and
 * nothing changes. */
static void true_bounds_decide_about_range_errors(enum window_kind kind)
{
    static struct sides sides;
    static unsigned char field[FIELD_BYTES], got[FIELD_BYTES], expected[FIELD_BYTES];
    struct random random = random_start((uint64_t)world_rank);
    struct window window = window_make(kind, FIELD_BYTES, 1, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    random_leaves_start();
    MPI_Win_lock_all(0, window.win);
    bytes_fill(field, sizeof field, &random);
    for (int round = 0; round < scaled_rounds(200) && !harness_failed(); round++) {
        MPI_Aint low, high;
        int target = right_of(world_rank);
        struct random_signature signature = random_signature_of(random_leaf_any(&random));
        sides_make(&sides, &signature, true, random_next(&random));
        random_type_bounds(&sides.target.type, sides.target.count, &low, &high);
        MPI_Get(got, FIELD_BYTES, MPI_BYTE, target, 0, FIELD_BYTES, MPI_BYTE, window.win);
        MPI_Win_flush(target, window.win);
        memcpy(expected, got, sizeof expected);
        if (sides.len_bytes > 0) {
            four_operations(window.win, MPI_ERR_RMA_RANGE, &sides, field, got,
                            FIELD_BYTES - high + 1);
            four_operations(window.win, low < 0 ? MPI_ERR_RMA_RANGE : MPI_ERR_DISP, &sides, field,
                            got, -low - 1);
            fields_check(got, expected, &sides, "the result of a call that failed");
            MPI_Get(got, FIELD_BYTES, MPI_BYTE, target, 0, FIELD_BYTES, MPI_BYTE, window.win);
            MPI_Win_flush(target, window.win);
            fields_check(got, expected, &sides, "the target of a call that failed");
        }
        if (low <= 0)
            four_operations(window.win, MPI_SUCCESS, &sides, field, got, -low);
        four_operations(window.win, MPI_SUCCESS, &sides, field, got, FIELD_BYTES - high);
        sides_free(&sides);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* Buffer arguments of MPI_BOTTOM, with the addresses in the datatypes, are valid buffers. */
static void origins_and_results_may_be_absolute_addresses(enum window_kind kind)
{
    static int64_t operand[9], result[9];
    const int lengths[] = {2, 1};
    MPI_Datatype from, to;
    struct window window =
        window_make(kind, (MPI_Aint)sizeof(int64_t) * world_size * 3, 8, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    MPI_Aint displs[2], disp = 3 * world_rank;
    MPI_Get_address(&operand[1], &displs[0]);
    MPI_Get_address(&operand[6], &displs[1]);
    MPI_Type_create_hindexed(2, lengths, displs, MPI_INT64_T, &from);
    MPI_Get_address(&result[4], &displs[0]);
    MPI_Get_address(&result[2], &displs[1]);
    MPI_Type_create_hindexed(2, lengths, displs, MPI_INT64_T, &to);
    MPI_Type_commit(&from);
    MPI_Type_commit(&to);
    memset(result, 0, sizeof result);
    for (int i = 0; i < 9; i++)
        operand[i] = 10 + i;
    MPI_Win_lock_all(0, window.win);
    MPI_Accumulate(MPI_BOTTOM, 1, from, target, disp, 3, MPI_INT64_T, MPI_SUM, window.win);
    MPI_Win_flush(target, window.win);
    MPI_Get_accumulate(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, target, disp, 3, MPI_INT64_T,
                       MPI_SUM, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(result[4] == 11 && result[5] == 12 && result[2] == 16, "fetched %lld %lld %lld",
          (long long)result[4], (long long)result[5], (long long)result[2]);
    MPI_Get_accumulate(NULL, 0, MPI_BYTE, MPI_BOTTOM, 1, to, target, disp, 3, MPI_INT64_T,
                       MPI_NO_OP, window.win);
    MPI_Win_flush(target, window.win);
    CHECK(result[4] == 22 && result[5] == 24 && result[2] == 32, "sums are %lld %lld %lld",
          (long long)result[4], (long long)result[5], (long long)result[2]);
    CHECK(result[3] == 0 && result[6] == 0 && result[0] == 0, "a word next to the result changed");
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&from);
    MPI_Type_free(&to);
    window_free(&window);
}

/* Elements of a window of doubles: 36,000 separate ones with holes, during which the lock is
 * yielded to others once. */
static int many_displs(int *displs, bool shuffled, struct random *random)
{
    enum { PLACES = 36000 };
    int at = 0;
    for (int i = 0; i < PLACES; i++, at += 1 + (int)random_below(random, 3))
        displs[i] = at;
    for (int i = PLACES - 1; shuffled && i > 0; i--) {
        int other = (int)random_below(random, (uint64_t)i + 1), expected = displs[i];
        displs[i] = displs[other];
        displs[other] = expected;
    }
    return PLACES;
}

/* Many elements with holes on all three sides, in ascending and in random order. */
static void many_scattered_elements_combine_in_order(enum window_kind kind)
{
    enum { MOST = 108000 };
    static int displs[MOST];
    static double operands[2 * MOST], results[3 * MOST];
    struct random random = random_start(0); /* the same offsets on every rank */
    struct window window = window_make(kind, MOST * (MPI_Aint)sizeof(double), 8, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    MPI_Win_lock_all(0, window.win);
    for (int round = 0; round < 4; round++) {
        MPI_Datatype there, every_second, every_third;
        int count = many_displs(displs, round >= 2, &random);
        MPI_Type_create_indexed_block(count, 1, displs, MPI_DOUBLE, &there);
        MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &every_second);
        MPI_Type_vector(count, 1, 3, MPI_DOUBLE, &every_third);
        MPI_Type_commit(&there);
        MPI_Type_commit(&every_second);
        MPI_Type_commit(&every_third);
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < MOST; i++)
            ((double *)(void *)window.base)[i] = i;
        MPI_Win_sync(window.win);
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < 2 * MOST; i++)
            operands[i] = 1000000 + i;
        memset(results, 0, sizeof results);
        MPI_Get_accumulate(operands, 1, every_second, results, 1, every_third, target, 0, 1, there,
                           round % 2 ? MPI_REPLACE : MPI_SUM, window.win);
        MPI_Win_flush(target, window.win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_sync(window.win);
        for (int i = 0; i < count; i++) {
            double *element = &((double *)(void *)window.base)[displs[i]];
            double wanted = 1000000 + 2 * i + (round % 2 ? 0 : displs[i]);
            if (!CHECK(results[3 * i] == displs[i] && results[3 * i + 1] == 0 && *element == wanted,
                       "element %d: fetched %g, now %g instead of %g", displs[i], results[3 * i],
                       *element, wanted))
                break;
            *element = displs[i];
        }
        for (int i = 0; i < MOST && !harness_failed(); i++)
            CHECK(((double *)(void *)window.base)[i] == i,
                  "element %d changed, which is none of the datatype's", i);
        MPI_Type_free(&there);
        MPI_Type_free(&every_second);
        MPI_Type_free(&every_third);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* MPI forbids a target datatype that contains an element several times. Both hosts update the
 * element that often. */
static void elements_that_are_named_twice_are_updated_twice(enum window_kind kind)
{
    enum { ELEMENTS = 6 };
    static const int displs[] = {3, 1, 3, 5, 1, 3};
    const int64_t operands[] = {1, 10, 100, 1000, 10000, 100000};
    struct window window =
        window_make(kind, ELEMENTS * (MPI_Aint)sizeof(int64_t), 8, MPI_COMM_WORLD);
    const int64_t *elements = (const int64_t *)(const void *)window.base;
    int64_t wanted[ELEMENTS] = {0};
    int target = right_of(world_rank);
    for (int count = 3; count <= ELEMENTS; count += 3) {
        MPI_Datatype there;
        MPI_Type_create_indexed_block(count, 1, displs, MPI_INT64_T, &there);
        MPI_Type_commit(&there);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
        MPI_Accumulate(operands, count, MPI_INT64_T, target, 0, 1, there, MPI_SUM, window.win);
        MPI_Win_unlock(target, window.win);
        MPI_Type_free(&there);
        for (int i = 0; i < count; i++)
            wanted[displs[i]] += operands[i];
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < ELEMENTS; i++)
            CHECK(elements[i] == wanted[i], "%d named: element %d is %lld, not %lld", count, i,
                  (long long)elements[i], (long long)wanted[i]);
        barrier(MPI_COMM_WORLD);
    }
    window_free(&window);
}

/* Two predefined types in one datatype, or a different one on each side, in a computing operation:
 * MPI_ERR_TYPE, and nothing changes. Pairs with padding are not copied into other types either. */
static void mixed_types_are_refused(enum window_kind kind)
{
    const int ones[] = {1, 1};
    const MPI_Aint displs[] = {0, 8};
    const MPI_Datatype types[] = {MPI_INT64_T, MPI_DOUBLE};
    int64_t operand[4] = {1, 2, 3, 4};
    MPI_Datatype mixed, gapped;
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Type_create_struct(2, ones, displs, types, &mixed);
    MPI_Type_vector(2, 1, 2, MPI_INT64_T, &gapped);
    MPI_Type_commit(&mixed);
    MPI_Type_commit(&gapped);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Accumulate(operand, 1, mixed, target, 0, 1, mixed, MPI_SUM, window.win));
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Accumulate(operand, 1, gapped, target, 0, 2, MPI_DOUBLE, MPI_SUM, window.win));
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Accumulate(operand, 2, MPI_DOUBLE, target, 0, 1, gapped, MPI_SUM, window.win));
    CHECK_CLASS(MPI_ERR_TYPE, MPI_Accumulate(operand, 1, MPI_DOUBLE_INT, target, 0, 3, MPI_INT,
                                             MPI_REPLACE, window.win));
    CHECK_CLASS(MPI_ERR_TYPE, MPI_Get_accumulate(operand, 3, MPI_INT, operand, 1, MPI_DOUBLE_INT,
                                                 target, 0, 3, MPI_INT, MPI_SUM, window.win));
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 64; i++)
        CHECK(window.base[i] == 0, "byte %d changed by a call that failed", i);
    barrier(MPI_COMM_WORLD);
    MPI_Type_free(&mixed);
    MPI_Type_free(&gapped);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(random_types_accumulate, KINDS_THREE, 1),
    CASE(random_types_get_accumulate, KINDS_THREE, 1),
    CASE(true_bounds_decide_about_range_errors, KINDS_THREE, 1),
    CASE(many_scattered_elements_combine_in_order, KINDS_THREE, 1),
    CASE(elements_that_are_named_twice_are_updated_twice, KINDS_BOTH, 1),
    CASE(mixed_types_are_refused, KINDS_BOTH, 1),
    CASE(origins_and_results_may_be_absolute_addresses, KINDS_THREE, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
