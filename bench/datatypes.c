/* Put and get between contiguous memory at rank 0 and a datatype at rank 1: strided, a matrix's column, two faces of a cube,
 * irregular blocks, structs with holes; and one put that is strided on both sides.
 * Each shape is described twice: to MPI by a constructor, to the checks by its runs of bytes in the type's order.
 * Driven by timing.c through the table at the end. */
#include "rma.h"

#include <stdlib.h>

static const int target = 1;
enum { MATRIX = 256, CUBE = 64, BLOCKS = 512, STRUCTS = 512, STRUCT_BYTES = 24, RUNS = 8192 };
enum { WORD = sizeof(double) };

/* The runs of the shape in hand; what lies between them must not change. */
static struct {
    size_t offset, len;
} runs[RUNS];
static size_t runs_len;

static void run_add(size_t offset, size_t len)
{
    if (runs_len == RUNS)
        rma_fail("a shape has too many runs");
    runs[runs_len].offset = offset;
    runs[runs_len++].len = len;
}

static void shape_begin(void)
{
    runs_len = 0;
}

static void shape_end(struct rma_run *run)
{
    int size;
    MPI_Type_commit(&run->target_type);
    MPI_Type_size(run->target_type, &size);
    if ((size_t)size != run->len_bytes)
        rma_fail("a shape has other bytes than it was asked for");
}

/* ---- the shapes ---- */

static size_t span_strided(const struct rma_run *run)
{
    return 2 * run->len_bytes;
}

static void strided(struct rma_run *run)
{
    const size_t count = run->len_bytes / WORD;
    shape_begin();
    for (size_t i = 0; i < count; i++)
        run_add(i * 2 * WORD, WORD);
    MPI_Type_vector((int)count, 1, 2, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static void strided_both(struct rma_run *run)
{
    strided(run);
    MPI_Type_dup(run->target_type, &run->origin_type);
}

static size_t span_matrix(const struct rma_run *run)
{
    (void)run;
    return MATRIX * MATRIX * WORD;
}

static void column(struct rma_run *run)
{
    shape_begin();
    for (size_t row = 0; row < MATRIX; row++)
        run_add(row * MATRIX * WORD, WORD);
    MPI_Type_vector(MATRIX, 1, MATRIX, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static size_t span_cube(const struct rma_run *run)
{
    (void)run;
    return CUBE * CUBE * CUBE * WORD;
}

static void cube_type(struct rma_run *run, const int part[3])
{
    MPI_Type_create_subarray(3, (int[]){CUBE, CUBE, CUBE}, part, (int[]){0, 0, 0}, MPI_ORDER_C, MPI_DOUBLE,
                             &run->target_type);
    shape_end(run);
}

static void face_of_rows(struct rma_run *run)
{
    shape_begin();
    for (size_t plane = 0; plane < CUBE; plane++)
        run_add(plane * CUBE * CUBE * WORD, CUBE * WORD);
    cube_type(run, (int[]){CUBE, 1, CUBE});
}

static void face_of_points(struct rma_run *run)
{
    shape_begin();
    for (size_t point = 0; point < CUBE * CUBE; point++)
        run_add(point * CUBE * WORD, WORD);
    cube_type(run, (int[]){CUBE, CUBE, 1});
}

static size_t span_indexed(const struct rma_run *run)
{
    (void)run;
    return BLOCKS * 16 * WORD;
}

/* Block i has 1 to 4 doubles somewhere in the i-th piece of 16. */
static void indexed(struct rma_run *run)
{
    int lens[BLOCKS], places[BLOCKS];
    shape_begin();
    for (int i = 0; i < BLOCKS; i++) {
        lens[i] = 1 + i % 4;
        places[i] = i * 16 + (int)(data_word(7, (size_t)i) % 12);
        run_add((size_t)places[i] * WORD, (size_t)lens[i] * WORD);
    }
    MPI_Type_indexed(BLOCKS, lens, places, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static size_t span_structs(const struct rma_run *run)
{
    (void)run;
    return STRUCTS * STRUCT_BYTES;
}

/* struct { int32_t a; double b; int32_t c; }: holes of four bytes after a and after c. */
static void structs(struct rma_run *run)
{
    MPI_Datatype one, sized, types[] = {MPI_INT32_T, MPI_DOUBLE, MPI_INT32_T};
    shape_begin();
    for (size_t i = 0; i < STRUCTS; i++) {
        run_add(i * STRUCT_BYTES, 4);
        run_add(i * STRUCT_BYTES + 8, 12); /* b and c follow each other */
    }
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 8, 16}, types, &one);
    MPI_Type_create_resized(one, 0, STRUCT_BYTES, &sized);
    MPI_Type_contiguous(STRUCTS, sized, &run->target_type);
    MPI_Type_free(&one);
    MPI_Type_free(&sized);
    shape_end(run);
}

/* MPI asks for matching types on both sides: the same struct without its holes. */
static void structs_packed(struct rma_run *run)
{
    MPI_Datatype one, sized, types[] = {MPI_INT32_T, MPI_DOUBLE, MPI_INT32_T};
    structs(run);
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 4, 12}, types, &one);
    MPI_Type_create_resized(one, 0, 16, &sized);
    MPI_Type_contiguous(STRUCTS, sized, &run->origin_type);
    MPI_Type_free(&one);
    MPI_Type_free(&sized);
    MPI_Type_commit(&run->origin_type);
}

/* ---- the operations ---- */

static void prepare(struct rma_run *run)
{
    data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    data_fill(run->buffer, run->span_bytes + RMA_GUARD_BYTES, rma_origin_seed(run, run->rank));
}

static void put(struct rma_run *run, uint64_t count)
{
    const bool packed = run->origin_type == MPI_DATATYPE_NULL;
    const int origin_count = packed ? (int)(run->len_bytes / WORD) : 1;
    const MPI_Datatype origin_type = packed ? MPI_DOUBLE : run->origin_type;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Put(run->buffer, origin_count, origin_type, target, run->begin[target], 1, run->target_type, run->win);
        MPI_Win_flush(target, run->win);
    }
}

static void get(struct rma_run *run, uint64_t count)
{
    const bool packed = run->origin_type == MPI_DATATYPE_NULL;
    const int origin_count = packed ? (int)(run->len_bytes / WORD) : 1;
    const MPI_Datatype origin_type = packed ? MPI_DOUBLE : run->origin_type;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Get(run->buffer, origin_count, origin_type, target, run->begin[target], 1, run->target_type, run->win);
        MPI_Win_flush(target, run->win);
    }
}

/* Every run holds what the origin sent, in the type's order, and every gap what was there before. */
static bool put_arrived(const struct rma_run *run, bool spread)
{
    const uint64_t origin = rma_origin_seed(run, 0), before = rma_target_seed(run, target);
    size_t packed = 0, end = 0;
    for (size_t i = 0; i < runs_len; i++) {
        if (!data_holds_from(run->mine + end, end, runs[i].offset - end, before) ||
            !data_holds_from(run->mine + runs[i].offset, spread ? runs[i].offset : packed, runs[i].len, origin))
            return false;
        packed += runs[i].len;
        end = runs[i].offset + runs[i].len;
    }
    return data_holds_from(run->mine + end, end, run->span_bytes + RMA_GUARD_BYTES - end, before);
}

static void put_check(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= !put_arrived(run, false);
}

static void put_check_spread(struct rma_run *run)
{
    if (run->rank == target)
        run->wrong |= !put_arrived(run, true);
}

static void get_check(struct rma_run *run)
{
    size_t packed = 0;
    if (run->rank != 0)
        return;
    for (size_t i = 0; i < runs_len; i++) {
        run->wrong |= !data_holds_from(run->buffer + packed, runs[i].offset, runs[i].len, rma_target_seed(run, target));
        packed += runs[i].len;
    }
    run->wrong |= !data_holds_from(run->buffer + packed, packed, RMA_GUARD_BYTES, rma_origin_seed(run, 0));
}

#define PUT_AND_GET(shape, its_span, its_setup)                                                                            \
    {.name = "put-" shape, .span = its_span, .setup = its_setup, .prepare = prepare, .repeat = put, .check = put_check},   \
    {                                                                                                                      \
        .name = "get-" shape, .span = its_span, .setup = its_setup, .prepare = prepare, .repeat = get, .check = get_check  \
    }

const struct rma_pattern rma_datatypes[] = {
    PUT_AND_GET("strided", span_strided, strided),
    {.name = "put-strided-both",
     .span = span_strided,
     .setup = strided_both,
     .prepare = prepare,
     .repeat = put,
     .check = put_check_spread},
    PUT_AND_GET("column", span_matrix, column),
    PUT_AND_GET("face-rows", span_cube, face_of_rows),
    PUT_AND_GET("face-points", span_cube, face_of_points),
    PUT_AND_GET("indexed", span_indexed, indexed),
    PUT_AND_GET("structs", span_structs, structs_packed),
    {0},
};
