/* Pairs of MPI_MINLOC and MPI_MAXLOC: ties, and the padding between and after their fields, which
 * belongs to neither side. The origin's padding never arrives. The target's padding is never
 * written, not even with its old contents: other ranks may use those bytes. A plain MPI program,
 * run by the test rows. */
#include "types.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS = 1200, ORIGIN_PADDING = 0x77, RESULT_PADDING = 0x33 };

struct double_at {
    double value;
    int at;
};
struct short_at {
    short value;
    int at;
};

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static void ties_choose_the_lower_index(enum window_kind kind)
{
    struct double_at stored = {1.5, 7}, higher = {1.5, 9}, lower = {1.5, 3}, seen = {0, 0};
    struct window window =
        window_make(kind, (MPI_Aint)sizeof stored * world_size, sizeof stored, MPI_COMM_WORLD);
    const MPI_Op ops[] = {MPI_MINLOC, MPI_MAXLOC};
    int target = right_of(world_rank);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        MPI_Accumulate(&stored, 1, MPI_DOUBLE_INT, target, world_rank, 1, MPI_DOUBLE_INT,
                       MPI_REPLACE, window.win);
        MPI_Accumulate(&higher, 1, MPI_DOUBLE_INT, target, world_rank, 1, MPI_DOUBLE_INT, ops[i],
                       window.win);
        MPI_Fetch_and_op(&lower, &seen, MPI_DOUBLE_INT, target, world_rank, ops[i], window.win);
        MPI_Win_flush(target, window.win);
        CHECK_EQUAL(seen.at, 7);
        MPI_Fetch_and_op(NULL, &seen, MPI_DOUBLE_INT, target, world_rank, MPI_NO_OP, window.win);
        MPI_Win_flush(target, window.win);
        CHECK_EQUAL(seen.at, 3);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* Every rank has its own pairs in the memory of its right neighbour, with its own bytes in their
 * padding. */
struct field {
    const struct test_type *type;
    MPI_Win win;
    int target;
    MPI_Aint disp;
    size_t len_bytes; /* without the last pair's trailing padding */
    unsigned char *sent, *seen, *before, *wanted;
};

static void field_read(const struct field *field, unsigned char *bytes)
{
    MPI_Get(bytes, (int)field->len_bytes, MPI_BYTE, field->target, field->disp,
            (int)field->len_bytes, MPI_BYTE, field->win);
    MPI_Win_flush(field->target, field->win);
}

/* Random pairs in the target, with random padding. */
static void field_fill(const struct field *field, struct random *random)
{
    size_t extent = field->type->extent_bytes;
    for (int i = 0; i < PAIRS; i++)
        type_fill(field->type, field->before + (size_t)i * extent, random,
                  (unsigned char)random_next(random));
    memcpy(field->wanted, field->before, PAIRS * extent);
    MPI_Put(field->before, (int)field->len_bytes, MPI_BYTE, field->target, field->disp,
            (int)field->len_bytes, MPI_BYTE, field->win);
    MPI_Win_flush(field->target, field->win);
}

static void field_check(const struct field *field, int count, MPI_Op op, bool with_result)
{
    size_t extent = field->type->extent_bytes;
    if (op != MPI_NO_OP)
        for (int i = 0; i < count; i++)
            type_apply(field->type, op, field->wanted + (size_t)i * extent,
                       field->sent + (size_t)i * extent);
    for (size_t i = 0; with_result && i < (size_t)count * extent; i++) {
        bool padding = type_is_padding(field->type, i % extent);
        if (!CHECK(field->seen[i] == (padding ? RESULT_PADDING : field->before[i]),
                   "%s: byte %zu of the result is %#x", field->type->name, i, field->seen[i]))
            return;
    }
    field_read(field, field->seen);
    for (size_t i = 0; i < field->len_bytes; i++)
        if (!CHECK(field->seen[i] == field->wanted[i],
                   "%s, %d pairs: byte %zu of the target is %#x, not %#x", field->type->name, count,
                   i, field->seen[i], field->wanted[i]))
            return;
}

static void field_update(struct field *field, int count, MPI_Op op, bool with_result,
                         struct random *random)
{
    size_t extent = field->type->extent_bytes;
    field_fill(field, random);
    for (int i = 0; i < count; i++)
        type_fill(field->type, field->sent + (size_t)i * extent, random, ORIGIN_PADDING);
    memset(field->seen, RESULT_PADDING, PAIRS * extent);
    if (with_result)
        MPI_Get_accumulate(field->sent, count, field->type->type, field->seen, count,
                           field->type->type, field->target, field->disp, count, field->type->type,
                           op, field->win);
    else
        MPI_Accumulate(field->sent, count, field->type->type, field->target, field->disp, count,
                       field->type->type, op, field->win);
    MPI_Win_flush(field->target, field->win);
    field_check(field, count, op, with_result);
}

static void for_every_pair(const struct window *window, MPI_Aint each_bytes, MPI_Aint shift)
{
    static const int counts[] = {1, 2, 511, 513, PAIRS};
    const MPI_Op ops[] = {MPI_REPLACE, MPI_MINLOC, MPI_MAXLOC, MPI_NO_OP};
    struct random random = random_start((uint64_t)world_rank);
    for (size_t i = 0; i < test_type_count; i++) {
        const struct test_type *type = &test_types[i];
        size_t room_bytes = PAIRS * type->extent_bytes;
        struct field field = {
            type, window->win, right_of(world_rank), world_rank * each_bytes + shift, 0, NULL, NULL,
            NULL, NULL};
        if (type->group != GROUP_PAIR)
            continue;
        field.len_bytes =
            room_bytes - (type->extent_bytes - type->index_offset_bytes - type->index_bytes);
        field.sent = malloc(room_bytes);
        field.seen = malloc(room_bytes);
        field.before = malloc(room_bytes);
        field.wanted = malloc(room_bytes);
        for (size_t j = 0; j < COUNT_OF(ops); j++)
            for (size_t k = 0; k < COUNT_OF(counts); k++)
                for (int with_result = ops[j] == MPI_NO_OP; with_result < 2; with_result++)
                    field_update(&field, counts[k], ops[j], with_result, &random);
        free(field.sent);
        free(field.seen);
        free(field.before);
        free(field.wanted);
    }
}

static void padding_stays_where_it_is(enum window_kind kind)
{
    MPI_Aint each_bytes = PAIRS * TYPE_MAX_BYTES + 16;
    struct window window = window_make(kind, each_bytes * world_size, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for_every_pair(&window, each_bytes, 0);
    for_every_pair(&window, each_bytes, 3);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* The last pair's trailing padding is outside the window. This is valid, since no field reaches
 * there. */
static void the_last_pair_may_end_with_its_index(enum window_kind kind)
{
    MPI_Aint size_bytes = 2 * sizeof(struct double_at) - 4;
    struct window window = window_make(kind, size_bytes, 1, MPI_COMM_WORLD);
    struct double_at sent[2] = {{1, 1}, {2, 2}}, seen[2] = {{0, 0}, {0, 0}};
    int target = right_of(world_rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    MPI_Accumulate(sent, 2, MPI_DOUBLE_INT, target, 0, 2, MPI_DOUBLE_INT, MPI_REPLACE, window.win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE_INT, seen, 2, MPI_DOUBLE_INT, target, 0, 2,
                       MPI_DOUBLE_INT, MPI_NO_OP, window.win);
    MPI_Win_unlock(target, window.win);
    CHECK(seen[1].value == 2 && seen[1].at == 2, "read %g at %d", seen[1].value, seen[1].at);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Rank 0 owns pairs with a counter in the padding of each. One rank writes the counters by put,
 * rank 0 its own half of them by stores, and all other ranks accumulate pairs: no counter
 * decreases. */
enum { COUNTED = 64 };

struct counted {
    short value;
    short counter;
    int at;
};
_Static_assert(offsetof(struct counted, at) == offsetof(struct short_at, at),
               "the counter must be padding");

static void counters_put(const struct window *window, int rounds)
{
    short seen;
    for (int i = 1; i <= rounds; i++) {
        short count = (short)i;
        MPI_Aint disp = (MPI_Aint)(i % (COUNTED / 2)) * (MPI_Aint)sizeof(struct counted) + 2;
        MPI_Put(&count, 2, MPI_BYTE, 0, disp, 2, MPI_BYTE, window->win);
        MPI_Win_flush(0, window->win);
        MPI_Get(&seen, 2, MPI_BYTE, 0, disp, 2, MPI_BYTE, window->win);
        MPI_Win_flush(0, window->win);
        if (!CHECK(seen == count, "the counter put is %d, then reads %d", count, seen))
            return;
    }
}

static void counters_store(struct counted *pairs, int rounds)
{
    for (int i = 1; i <= rounds; i++) {
        short *counter = &pairs[COUNTED / 2 + i % (COUNTED / 2)].counter;
        __atomic_store_n(counter, (short)i, __ATOMIC_RELAXED);
        for (int turn = 0; turn < 100; turn++)
            if (!CHECK(__atomic_load_n(counter, __ATOMIC_RELAXED) == (short)i,
                       "the counter stored is %d, then reads %d", i, *counter))
                return;
    }
}

static void pairs_accumulate(const struct window *window, int rounds)
{
    static struct short_at sent[COUNTED], seen[COUNTED];
    for (int i = 0; i < rounds; i++) {
        memset(sent, ORIGIN_PADDING, sizeof sent);
        for (int k = 0; k < COUNTED; k++) {
            sent[k].value = (short)(i % 100);
            sent[k].at = i % 100;
        }
        MPI_Accumulate(sent, COUNTED, MPI_SHORT_INT, 0, 0, COUNTED, MPI_SHORT_INT, MPI_REPLACE,
                       window->win);
        MPI_Get_accumulate(sent, COUNTED, MPI_SHORT_INT, seen, COUNTED, MPI_SHORT_INT, 0, 0,
                           COUNTED, MPI_SHORT_INT, i % 2 ? MPI_MAXLOC : MPI_MINLOC, window->win);
        MPI_Win_flush(0, window->win);
        for (int k = 0; k < COUNTED; k++)
            if (!CHECK(seen[k].value == seen[k].at, "pair %d was torn: %d at %d", k, seen[k].value,
                       seen[k].at))
                return;
    }
}

static void others_may_write_the_padding_meanwhile(enum window_kind kind)
{
    struct window window = window_make(kind, world_rank == 0 ? COUNTED * sizeof(struct counted) : 0,
                                       1, MPI_COMM_WORLD);
    int rounds = scaled_rounds(4000);
    MPI_Win_lock_all(0, window.win);
    if (world_rank == 1)
        pairs_accumulate(&window, rounds / 2);
    else if (world_rank == 0)
        counters_store((struct counted *)window.base, rounds);
    else if (world_rank == 2)
        counters_put(&window, rounds);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

/* Pair types by the types of their fields. MPICH 5.0 and Open MPI 6.0 give MPI's named ones alone;
 * others would have a combiner of their own, MPI_COMBINER_VALUE_INDEX. */
static void types_of_fields_are_served(enum window_kind kind)
{
    const MPI_Datatype values[] = {MPI_SHORT, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE,
                                   MPI_LONG_DOUBLE};
    const MPI_Datatype indices[] = {MPI_INT, MPI_LONG, MPI_DOUBLE};
    char sent[TYPE_MAX_BYTES] = {0}, seen[TYPE_MAX_BYTES];
    struct window window = window_make(kind, TYPE_MAX_BYTES, 1, MPI_COMM_WORLD);
    int made = 0, target = right_of(world_rank);
    for (size_t i = 0; i < COUNT_OF(values) * COUNT_OF(indices); i++) {
        MPI_Datatype pair = MPI_DATATYPE_NULL;
        MPI_Type_get_value_index(values[i % COUNT_OF(values)], indices[i / COUNT_OF(values)],
                                 &pair);
        if (pair == MPI_DATATYPE_NULL)
            continue;
        made++;
        sent[0] = (char)made;
        memset(seen, 0, sizeof seen);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        MPI_Put(sent, 1, pair, target, 0, 1, pair, window.win);
        MPI_Win_flush(target, window.win);
        MPI_Accumulate(sent, 1, pair, target, 0, 1, pair, MPI_MAXLOC, window.win);
        MPI_Win_flush(target, window.win);
        MPI_Get(seen, 1, pair, target, 0, 1, pair, window.win);
        MPI_Win_unlock(target, window.win);
        CHECK_EQUAL(seen[0], made);
    }
    CHECK(made >= 5, "the host has %d types of pairs", made);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}
#endif

static const struct test_case cases[] = {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    CASE(types_of_fields_are_served, KINDS_ALL, 1),
#endif
    CASE(ties_choose_the_lower_index, KINDS_ALL, 1),
    CASE(padding_stays_where_it_is, KINDS_ALL, 1),
    CASE(the_last_pair_may_end_with_its_index, KINDS_ALL, 1),
    CASE(others_may_write_the_padding_meanwhile, KINDS_ALL, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
