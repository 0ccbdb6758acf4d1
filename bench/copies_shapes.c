/* The shapes that copies.c measures: datatypes of both sides, and equivalent hand-written loops
 * with constants.  Compiled with -O3, for the fastest possible loops. */
#include "copies.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PLACES = 1024, GRID = 64, ROWS = 512 };

/* An element after a hole, as in structs. */
struct record {
    double value;
    char mark;
    int32_t count;
};

/* The irregular shapes: ascending, with holes. */
static int places[PLACES], lengths[PLACES];
static MPI_Aint addresses[PLACES];

/* Element t[to] of the target and o[from] of the origin, in loops; both directions. */
#define LOOPS(name, type, loops, to, from)                                                         \
    static __attribute__((noinline)) void name##_put(void *restrict target,                        \
                                                     const void *restrict origin)                  \
    {                                                                                              \
        type *restrict t = target;                                                                 \
        const type *restrict o = origin;                                                           \
        loops t[to] = o[from];                                                                     \
    }                                                                                              \
    static __attribute__((noinline)) void name##_get(void *restrict origin,                        \
                                                     const void *restrict target)                  \
    {                                                                                              \
        const type *restrict t = target;                                                           \
        type *restrict o = origin;                                                                 \
        loops o[from] = t[to];                                                                     \
    }
#define EACH(i, n) for (long i = 0; i < (n); i++)

LOOPS(single, double, EACH(i, 1024), 2 * i, i)
LOOPS(strided, double, EACH(i, 1024), 2 * i, 2 * i)
LOOPS(two, double, EACH(i, 512) EACH(k, 2), 3 * i + k, 2 * i + k)
LOOPS(four, double, EACH(i, 256) EACH(k, 4), 7 * i + k, 4 * i + k)
LOOPS(seven, double, EACH(i, 147) EACH(k, 7), 9 * i + k, 7 * i + k)
LOOPS(split, double, EACH(i, 256) EACH(k, 4), 8 * i + 2 * k, 6 * i + k)
LOOPS(uneven, double, EACH(i, 170) EACH(k, 6), 8 * i + k / 2 * 3 + k % 2, 7 * i + k / 3 * 4 + k % 3)
LOOPS(five, double, EACH(i, 100) EACH(k, 10), 14 * i + k / 5 * 7 + k % 5,
      15 * i + k / 2 * 3 + k % 2)
LOOPS(one, double, EACH(i, 340) EACH(k, 3), 4 * i + k, 6 * i + 2 * k)
LOOPS(floats_3, float, EACH(i, 340) EACH(k, 6), 10 * i + k / 3 * 5 + k % 3,
      9 * i + k / 2 * 3 + k % 2)
LOOPS(five_three, double, EACH(i, 68) EACH(k, 15), 21 * i + k / 5 * 7 + k % 5,
      20 * i + k / 3 * 4 + k % 3)
LOOPS(floats_4, float, EACH(i, 512) EACH(k, 4), 8 * i + 2 * k, 6 * i + k)
LOOPS(bytes_5_3, char, EACH(i, 300) EACH(k, 15), 27 * i + k / 5 * 9 + k % 5,
      25 * i + k / 3 * 5 + k % 3)
LOOPS(floats, float, EACH(i, 2048), 2 * i, i)
LOOPS(three_floats, float, EACH(i, 682) EACH(k, 3), 5 * i + k, 3 * i + k)
LOOPS(bytes_5, char, EACH(i, 1638) EACH(k, 5), 9 * i + k, 5 * i + k)
LOOPS(bytes_13, char, EACH(i, 630) EACH(k, 13), 20 * i + k, 13 * i + k)
LOOPS(bytes_100, char, EACH(i, 81) EACH(k, 100), 131 * i + k, 100 * i + k)
LOOPS(column, double, EACH(i, ROWS), ROWS *i, i)
LOOPS(columns, double, EACH(i, ROWS), ROWS *i, (ROWS + 1) * i)
LOOPS(indexed_1, double, EACH(i, PLACES), places[i], i)
LOOPS(indexed_both, double, EACH(i, PLACES), places[i], places[i])
LOOPS(indexed_2, double, EACH(i, PLACES / 2) EACH(k, 4), places[2 * i + k / 2] + k % 2, 5 * i + k)
LOOPS(indexed_1_of_2, double, EACH(i, PLACES) EACH(k, 2), places[i] + k, 2 * (2 * i + k))
LOOPS(hindexed_24, double, EACH(i, PLACES) EACH(k, 3), addresses[i] / 8 + k, 3 * i + k)
LOOPS(face_last, double, EACH(i, GRID) EACH(j, GRID), (GRID * i + j) * GRID + 3,
      (GRID * i + j) * GRID + 5)
LOOPS(face_middle, double, EACH(i, GRID) EACH(j, GRID), (GRID * i + 3) * GRID + j,
      (GRID * i + 5) * GRID + j)
LOOPS(face_packed, double, EACH(i, GRID) EACH(j, GRID), (GRID * i + j) * GRID + 3, GRID *i + j)
LOOPS(inner, double, EACH(i, 20) EACH(j, 20) EACH(k, 20), (GRID * (i + 1) + j + 1) * GRID + k + 1,
      (GRID * (i + 2) + j + 3) * GRID + k + 5)
LOOPS(small, double, EACH(i, 2), 2 * i, i)

static __attribute__((noinline)) void indexed_any_put(void *restrict target,
                                                      const void *restrict origin)
{
    double *restrict t = target;
    const double *restrict o = origin;
    EACH(i, PLACES) EACH(k, lengths[i]) t[places[i] + k] = *o++;
}

static __attribute__((noinline)) void indexed_any_get(void *restrict origin,
                                                      const void *restrict target)
{
    const double *restrict t = target;
    double *restrict o = origin;
    EACH(i, PLACES) EACH(k, lengths[i]) *o++ = t[places[i] + k];
}

static __attribute__((noinline)) void records_move(void *restrict to, const void *restrict from)
{
    struct record *restrict t = to;
    const struct record *restrict o = from;
    EACH(i, 512)
    {
        t[i].value = o[i].value;
        t[i].mark = o[i].mark;
        t[i].count = o[i].count;
    }
}

static __attribute__((noinline)) void copy_64k(void *restrict to, const void *restrict from)
{
    memcpy(to, from, 1 << 16);
}

static __attribute__((noinline)) void copy_1m(void *restrict to, const void *restrict from)
{
    memcpy(to, from, 1 << 20);
}

/* ---- datatypes ---- */

static MPI_Datatype vector(int count, int length, int stride, MPI_Datatype old)
{
    MPI_Datatype type;
    MPI_Type_vector(count, length, stride, old, &type);
    return type;
}

static MPI_Datatype contiguous(int count, MPI_Datatype old)
{
    MPI_Datatype type;
    MPI_Type_contiguous(count, old, &type);
    return type;
}

static MPI_Datatype part_of_grid(int n0, int n1, int n2, int at0, int at1, int at2)
{
    MPI_Datatype type;
    const int grid[3] = {GRID, GRID, GRID}, part[3] = {n0, n1, n2}, at[3] = {at0, at1, at2};
    MPI_Type_create_subarray(3, grid, part, at, MPI_ORDER_C, MPI_DOUBLE, &type);
    return type;
}

static MPI_Datatype indexed(void)
{
    MPI_Datatype type;
    MPI_Type_indexed(PLACES, lengths, places, MPI_DOUBLE, &type);
    return type;
}

static MPI_Datatype indexed_block(int length)
{
    MPI_Datatype type;
    MPI_Type_create_indexed_block(PLACES, length, places, MPI_DOUBLE, &type);
    return type;
}

static MPI_Datatype hindexed_block(void)
{
    MPI_Datatype type;
    MPI_Type_create_hindexed_block(PLACES, 3, addresses, MPI_DOUBLE, &type);
    return type;
}

static MPI_Datatype records(void)
{
    MPI_Datatype item, type;
    const int ones[3] = {1, 1, 1};
    const MPI_Aint at[3] = {offsetof(struct record, value), offsetof(struct record, mark),
                            offsetof(struct record, count)};
    const MPI_Datatype types[3] = {MPI_DOUBLE, MPI_CHAR, MPI_INT32_T};
    MPI_Type_create_struct(3, ones, at, types, &item);
    type = contiguous(512, item);
    MPI_Type_free(&item);
    return type;
}

/* Blocks of 2 and 3 doubles in turn, and of 3 and 2 on the other side: the pieces have no length in
 * common. */
static MPI_Datatype threes(int stride)
{
    MPI_Datatype pair = vector(2, 3, 4, MPI_DOUBLE), item, type;
    MPI_Type_create_resized(pair, 0, stride * 8, &item);
    type = contiguous(170, item);
    MPI_Type_free(&pair);
    MPI_Type_free(&item);
    return type;
}

static MPI_Datatype twos(int stride)
{
    MPI_Datatype three = vector(3, 2, 3, MPI_DOUBLE), item, type;
    MPI_Type_create_resized(three, 0, stride * 8, &item);
    type = contiguous(170, item);
    MPI_Type_free(&three);
    MPI_Type_free(&item);
    return type;
}

static void places_make(void)
{
    unsigned chance = 12345;
    static const int some[4] = {1, 2, 4, 7};
    for (int i = 0, at = 0; i < PLACES; i++) {
        chance = chance * 1664525u + 1013904223u;
        places[i] = at;
        lengths[i] = some[chance >> 20 & 3];
        addresses[i] = (MPI_Aint)at * 8;
        at += 8 + (int)(chance >> 24 & 7);
    }
}

/* ---- shapes ---- */

struct copies_shape copies_shapes[COPIES_SHAPES];
int copies_shapes_len;

static void copies_shape_add(const char *name, copies_by_hand *put, copies_by_hand *get,
                             MPI_Datatype target, MPI_Datatype origin)
{
    copies_shapes[copies_shapes_len] = (struct copies_shape){name, put, get, target, origin, 0};
    MPI_Type_commit(&copies_shapes[copies_shapes_len].target);
    MPI_Type_commit(&copies_shapes[copies_shapes_len++].origin);
}

static void add_bytes(const char *name, copies_by_hand *copy, int bytes)
{
    copies_shapes[copies_shapes_len++] =
        (struct copies_shape){name, copy, copy, MPI_BYTE, MPI_BYTE, bytes};
}

static MPI_Datatype doubles(int count)
{
    return contiguous(count, MPI_DOUBLE);
}

void copies_shapes_make(void)
{
    int all = 0;
    places_make();
    for (int i = 0; i < PLACES; i++)
        all += lengths[i];
    add_bytes("memcpy-64k", copy_64k, 1 << 16);
    add_bytes("memcpy-1m", copy_1m, 1 << 20);
    copies_shape_add("vector-1-of-2", single_put, single_get, vector(1024, 1, 2, MPI_DOUBLE),
                     doubles(1024));
    copies_shape_add("vector-1-of-2-both", strided_put, strided_get, vector(1024, 1, 2, MPI_DOUBLE),
                     vector(1024, 1, 2, MPI_DOUBLE));
    copies_shape_add("vector-2-of-3", two_put, two_get, vector(512, 2, 3, MPI_DOUBLE),
                     doubles(1024));
    copies_shape_add("vector-4-of-7", four_put, four_get, vector(256, 4, 7, MPI_DOUBLE),
                     doubles(1024));
    copies_shape_add("vector-7-of-9", seven_put, seven_get, vector(147, 7, 9, MPI_DOUBLE),
                     doubles(7 * 147));
    copies_shape_add("vector-1-of-2-from-4-of-6", split_put, split_get,
                     vector(1024, 1, 2, MPI_DOUBLE), vector(256, 4, 6, MPI_DOUBLE));
    copies_shape_add("blocks-2-from-3", uneven_put, uneven_get, twos(8), threes(7));
    copies_shape_add("vector-5-of-7-from-2-of-3", five_put, five_get, vector(200, 5, 7, MPI_DOUBLE),
                     vector(500, 2, 3, MPI_DOUBLE));
    copies_shape_add("vector-3-of-4-from-1-of-2", one_put, one_get, vector(340, 3, 4, MPI_DOUBLE),
                     vector(1020, 1, 2, MPI_DOUBLE));
    copies_shape_add("vector-5-of-7-from-3-of-4", five_three_put, five_three_get,
                     vector(204, 5, 7, MPI_DOUBLE), vector(340, 3, 4, MPI_DOUBLE));
    copies_shape_add("floats-1-of-2-from-4-of-6", floats_4_put, floats_4_get,
                     vector(2048, 1, 2, MPI_FLOAT), vector(512, 4, 6, MPI_FLOAT));
    copies_shape_add("bytes-5-of-9-from-3-of-5", bytes_5_3_put, bytes_5_3_get,
                     vector(900, 5, 9, MPI_BYTE), vector(1500, 3, 5, MPI_BYTE));
    copies_shape_add("floats-3-of-5-from-2-of-3", floats_3_put, floats_3_get,
                     vector(680, 3, 5, MPI_FLOAT), vector(1020, 2, 3, MPI_FLOAT));
    copies_shape_add("floats-1-of-2", floats_put, floats_get, vector(2048, 1, 2, MPI_FLOAT),
                     contiguous(2048, MPI_FLOAT));
    copies_shape_add("floats-3-of-5", three_floats_put, three_floats_get,
                     vector(682, 3, 5, MPI_FLOAT), contiguous(3 * 682, MPI_FLOAT));
    copies_shape_add("bytes-5-of-9", bytes_5_put, bytes_5_get, vector(1638, 5, 9, MPI_BYTE),
                     contiguous(5 * 1638, MPI_BYTE));
    copies_shape_add("bytes-13-of-20", bytes_13_put, bytes_13_get, vector(630, 13, 20, MPI_BYTE),
                     contiguous(13 * 630, MPI_BYTE));
    copies_shape_add("bytes-100-of-131", bytes_100_put, bytes_100_get,
                     vector(81, 100, 131, MPI_BYTE), contiguous(8100, MPI_BYTE));
    copies_shape_add("column", column_put, column_get, vector(ROWS, 1, ROWS, MPI_DOUBLE),
                     doubles(ROWS));
    copies_shape_add("column-to-diagonal", columns_put, columns_get,
                     vector(ROWS, 1, ROWS, MPI_DOUBLE), vector(ROWS, 1, ROWS + 1, MPI_DOUBLE));
    copies_shape_add("indexed-block-1", indexed_1_put, indexed_1_get, indexed_block(1),
                     doubles(PLACES));
    copies_shape_add("indexed-block-1-both", indexed_both_put, indexed_both_get, indexed_block(1),
                     indexed_block(1));
    copies_shape_add("indexed-block-2-from-4", indexed_2_put, indexed_2_get, indexed_block(2),
                     vector(PLACES / 2, 4, 5, MPI_DOUBLE));
    copies_shape_add("indexed-block-2-from-1-of-2", indexed_1_of_2_put, indexed_1_of_2_get,
                     indexed_block(2), vector(2 * PLACES, 1, 2, MPI_DOUBLE));
    copies_shape_add("indexed-1-2-4-7", indexed_any_put, indexed_any_get, indexed(), doubles(all));
    copies_shape_add("hindexed-block-3", hindexed_24_put, hindexed_24_get, hindexed_block(),
                     doubles(3 * PLACES));
    copies_shape_add("records", records_move, records_move, records(), records());
    copies_shape_add("face-last", face_last_put, face_last_get,
                     part_of_grid(GRID, GRID, 1, 0, 0, 3), part_of_grid(GRID, GRID, 1, 0, 0, 5));
    copies_shape_add("face-middle", face_middle_put, face_middle_get,
                     part_of_grid(GRID, 1, GRID, 0, 3, 0), part_of_grid(GRID, 1, GRID, 0, 5, 0));
    copies_shape_add("face-packed", face_packed_put, face_packed_get,
                     part_of_grid(GRID, GRID, 1, 0, 0, 3), doubles(GRID * GRID));
    copies_shape_add("inner-20", inner_put, inner_get, part_of_grid(20, 20, 20, 1, 1, 1),
                     part_of_grid(20, 20, 20, 2, 3, 5));
    copies_shape_add("vector-2-blocks", small_put, small_get, vector(2, 1, 2, MPI_DOUBLE),
                     doubles(2));
}

void copies_shapes_free(void)
{
    for (int i = 0; i < copies_shapes_len; i++) {
        if (copies_shapes[i].bytes != 0)
            continue;
        MPI_Type_free(&copies_shapes[i].target);
        MPI_Type_free(&copies_shapes[i].origin);
    }
}
