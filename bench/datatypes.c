/* Put and get between contiguous memory on rank 0 and a datatype on rank 1: strided, a matrix's
 * column, two faces of a cube, irregular blocks, structs with holes; one put that is strided on
 * both sides; and puts whose datatype is new each time. Each shape is described twice: to MPI by a
 * constructor, and to the checks by its byte runs in the type's order. timing.c drives the table at
 * the end. */
#include "shapes.h"
#include "words.h"

#include <stdlib.h>

static const int target = WORDS_TARGET;
enum { LOOKED_BYTES = 16 * 8 };

static struct shape shape; /* the current shape; its gaps must not change */

static void shape_end(struct rma_run *run)
{
    int size;
    MPI_Type_commit(&run->target_type);
    MPI_Type_size(run->target_type, &size);
    if ((size_t)size != run->len_bytes)
        rma_fail("a shape has the wrong size");
}

/* ---- the shapes ---- */

static size_t span_strided(const struct rma_run *run)
{
    return 2 * run->len_bytes;
}

static void strided(struct rma_run *run)
{
    shape_strided(&shape, run->len_bytes);
    MPI_Type_vector((int)(run->len_bytes / SHAPE_WORD), 1, 2, MPI_DOUBLE, &run->target_type);
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
    return SHAPE_MATRIX * SHAPE_MATRIX * SHAPE_WORD;
}

static void column(struct rma_run *run)
{
    shape_column(&shape);
    MPI_Type_vector(SHAPE_MATRIX, 1, SHAPE_MATRIX, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static size_t span_cube(const struct rma_run *run)
{
    (void)run;
    return SHAPE_CUBE * SHAPE_CUBE * SHAPE_CUBE * SHAPE_WORD;
}

static void cube_type(struct rma_run *run, const int part[3])
{
    const int whole[] = {SHAPE_CUBE, SHAPE_CUBE, SHAPE_CUBE}, first[] = {0, 0, 0};
    MPI_Type_create_subarray(3, whole, part, first, MPI_ORDER_C, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static void face_of_rows(struct rma_run *run)
{
    shape_face_rows(&shape);
    cube_type(run, (int[]){SHAPE_CUBE, 1, SHAPE_CUBE});
}

static void face_of_points(struct rma_run *run)
{
    shape_face_points(&shape);
    cube_type(run, (int[]){SHAPE_CUBE, SHAPE_CUBE, 1});
}

static size_t span_indexed(const struct rma_run *run)
{
    (void)run;
    return SHAPE_BLOCKS * SHAPE_BLOCK_ROOM * SHAPE_WORD;
}

/* Block i has 1 to 4 doubles somewhere in the i-th piece of 16. */
static void indexed(struct rma_run *run)
{
    int lens[SHAPE_BLOCKS], places[SHAPE_BLOCKS];
    for (size_t i = 0; i < SHAPE_BLOCKS; i++) {
        lens[i] = (int)shape_block_len(i);
        places[i] = (int)shape_block_place(i);
    }
    shape_blocks(&shape);
    MPI_Type_indexed(SHAPE_BLOCKS, lens, places, MPI_DOUBLE, &run->target_type);
    shape_end(run);
}

static size_t span_structs(const struct rma_run *run)
{
    (void)run;
    return SHAPE_STRUCTS * SHAPE_STRUCT_BYTES;
}

/* struct { int32_t a; double b; int32_t c; }: holes of four bytes after a and after c. */
static void structs(struct rma_run *run)
{
    MPI_Datatype one, sized, types[] = {MPI_INT32_T, MPI_DOUBLE, MPI_INT32_T};
    shape_structs(&shape);
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 8, 16}, types, &one);
    MPI_Type_create_resized(one, 0, SHAPE_STRUCT_BYTES, &sized);
    MPI_Type_contiguous(SHAPE_STRUCTS, sized, &run->target_type);
    MPI_Type_free(&one);
    MPI_Type_free(&sized);
    shape_end(run);
}

/* MPI requires matching types on both sides: the same struct without its holes. */
static void structs_packed(struct rma_run *run)
{
    MPI_Datatype one, sized, types[] = {MPI_INT32_T, MPI_DOUBLE, MPI_INT32_T};
    structs(run);
    MPI_Type_create_struct(3, (int[]){1, 1, 1}, (MPI_Aint[]){0, 4, 12}, types, &one);
    MPI_Type_create_resized(one, 0, 16, &sized);
    MPI_Type_contiguous(SHAPE_STRUCTS, sized, &run->origin_type);
    MPI_Type_free(&one);
    MPI_Type_free(&sized);
    MPI_Type_commit(&run->origin_type);
}

static size_t span_singles(const struct rma_run *run)
{
    return SHAPE_SINGLE_ROOM * run->len_bytes;
}

static int single_places[SHAPE_SINGLES], single_lens[SHAPE_SINGLES];

static MPI_Datatype singles_type(void)
{
    MPI_Datatype type;
    MPI_Type_indexed((int)shape.runs_len, single_lens, single_places, MPI_DOUBLE, &type);
    return type;
}

static void singles(struct rma_run *run)
{
    shape_singles(&shape, run->len_bytes);
    for (size_t i = 0; i < shape.runs_len; i++) {
        single_lens[i] = 1;
        single_places[i] = (int)(shape.runs[i].offset / SHAPE_WORD);
    }
    run->target_type = singles_type();
    shape_end(run);
}

/* ---- the operations ---- */

/* The first item in the type's order: gets move it to the head of the buffer. */
static uint64_t head_of(const char *memory)
{
    char head[sizeof(uint64_t)];
    uint64_t word;
    size_t len = 0;
    for (size_t i = 0; len < sizeof head; i++)
        for (size_t at = 0; at < shape.runs[i].len && len < sizeof head; at++)
            head[len++] = memory[shape.runs[i].offset + at];
    memcpy(&word, head, sizeof word);
    return word;
}

static char *image_of(size_t len_bytes, uint64_t seed)
{
    char *image = malloc(len_bytes);
    if (!image)
        rma_fail("out of memory");
    data_fill(image, len_bytes, seed);
    return image;
}

static void prepare(struct rma_run *run)
{
    char *image = image_of(run->span_bytes, rma_target_seed(run, target));
    run->heads[0] = head_of(image);
    free(image);
    data_fill(run->mine, run->span_bytes + RMA_GUARD_BYTES, rma_target_seed(run, run->rank));
    data_fill(run->buffer, run->span_bytes + RMA_GUARD_BYTES, rma_origin_seed(run, run->rank));
}

static void put(struct rma_run *run, uint64_t count)
{
    const bool packed = run->origin_type == MPI_DATATYPE_NULL;
    const int origin_count = packed ? (int)(run->len_bytes / SHAPE_WORD) : 1;
    const MPI_Datatype origin_type = packed ? MPI_DOUBLE : run->origin_type;
    const uint64_t stamp = words_stamp(run);
    for (uint64_t i = 0; i < count; i++, run->done++) {
        words_head_set(run->buffer, stamp + run->done);
        MPI_Put(run->buffer, origin_count, origin_type, target, run->begin[target], 1,
                run->target_type, run->win);
        MPI_Win_flush(target, run->win);
    }
}

/* The datatype is created for the put, and freed after it. */
static void put_by_new_type(struct rma_run *run, uint64_t count)
{
    const uint64_t stamp = words_stamp(run);
    for (uint64_t i = 0; i < count; i++, run->done++) {
        MPI_Datatype type = singles_type();
        MPI_Type_commit(&type);
        words_head_set(run->buffer, stamp + run->done);
        MPI_Put(run->buffer, (int)shape.runs_len, MPI_DOUBLE, target, run->begin[target], 1, type,
                run->win);
        MPI_Win_flush(target, run->win);
        MPI_Type_free(&type);
    }
}

static void get(struct rma_run *run, uint64_t count)
{
    const bool packed = run->origin_type == MPI_DATATYPE_NULL;
    const int origin_count = packed ? (int)(run->len_bytes / SHAPE_WORD) : 1;
    const MPI_Datatype origin_type = packed ? MPI_DOUBLE : run->origin_type;
    const uint64_t head = run->heads[0];
    uint64_t differ = 0;
    for (uint64_t i = 0; i < count; i++, run->done++) {
        words_head_set(run->buffer, ~head);
        MPI_Get(run->buffer, origin_count, origin_type, target, run->begin[target], 1,
                run->target_type, run->win);
        MPI_Win_flush(target, run->win);
        differ |= words_head_differs(run->buffer, head);
    }
    run->wrong |= differ != 0;
}

/* The head in the target's memory, which is within the first words of every shape. */
static void put_look(struct rma_run *run)
{
    char memory[LOOKED_BYTES] = {0};
    MPI_Get(memory, LOOKED_BYTES, MPI_BYTE, target, run->begin[target], LOOKED_BYTES, MPI_BYTE,
            run->win);
    MPI_Win_flush(target, run->win);
    run->wrong |= head_of(memory) != words_stamp(run) + run->done - 1;
}

/* Every run holds the data of the last operation, in the type's order; every gap is unchanged. */
static bool put_arrived(const struct rma_run *run, bool spread)
{
    const uint64_t before = rma_target_seed(run, target);
    char *sent = image_of(run->span_bytes, rma_renewed_seed(run));
    size_t packed = 0, end = 0;
    bool right = true;
    words_head_set(sent, words_stamp(run) + run->done - 1);
    for (size_t i = 0; i < shape.runs_len; i++) {
        const size_t from = spread ? shape.runs[i].offset : packed;
        right &= data_holds_from(run->mine + end, end, shape.runs[i].offset - end, before) &&
                 memcmp(run->mine + shape.runs[i].offset, sent + from, shape.runs[i].len) == 0;
        packed += shape.runs[i].len;
        end = shape.runs[i].offset + shape.runs[i].len;
    }
    free(sent);
    return right &&
           data_holds_from(run->mine + end, end, run->span_bytes + RMA_GUARD_BYTES - end, before);
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

/* The buffer is longer than the received data: the rest holds the renewed data. */
static void get_check(struct rma_run *run)
{
    size_t packed = 0;
    if (run->rank != 0)
        return;
    for (size_t i = 0; i < shape.runs_len; i++) {
        run->wrong |= !data_holds_from(run->buffer + packed, shape.runs[i].offset,
                                       shape.runs[i].len, rma_target_seed(run, target));
        packed += shape.runs[i].len;
    }
    run->wrong |= !data_holds_from(run->buffer + packed, packed, run->span_bytes - packed,
                                   rma_renewed_seed(run));
    run->wrong |= !data_holds_from(run->buffer + run->span_bytes, run->span_bytes, RMA_GUARD_BYTES,
                                   rma_origin_seed(run, 0));
}

#define SHAPE(its_name, its_span, its_setup, its_repeat, its_check, its_look, is_placeable)        \
    {                                                                                              \
        .name = its_name, .span = its_span, .setup = its_setup, .prepare = prepare,                \
        .repeat = its_repeat, .check = its_check, .renew = words_renew, .look = its_look,          \
        .placeable = is_placeable                                                                  \
    }

#define PUT_AND_GET(shape, its_span, its_setup, are_placeable)                                     \
    SHAPE("put-" shape, its_span, its_setup, put, put_check, put_look, are_placeable),             \
        SHAPE("get-" shape, its_span, its_setup, get, get_check, NULL, are_placeable)

const struct rma_pattern rma_datatypes[] = {
    PUT_AND_GET("strided", span_strided, strided, true),
    SHAPE("put-strided-both", span_strided, strided_both, put, put_check_spread, put_look, false),
    PUT_AND_GET("column", span_matrix, column, false),
    PUT_AND_GET("face-rows", span_cube, face_of_rows, false),
    PUT_AND_GET("face-points", span_cube, face_of_points, false),
    PUT_AND_GET("indexed", span_indexed, indexed, false),
    PUT_AND_GET("structs", span_structs, structs_packed, false),
    SHAPE("put-new-type", span_singles, singles, put_by_new_type, put_check, put_look, false),
    {0},
};
