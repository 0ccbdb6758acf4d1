/* Hand-written loops in place of a datatype: one for each shape, in both directions. They move the
 * bytes of the patterns' shapes between packed memory and a matrix, a cube, blocks or structs; the
 * gaps must stay unchanged. raw.c drives the table at the end. */
#include "raw.h"
#include "shapes.h"

#include <string.h>

static struct shape shape;

/* ---- the loops: put from packed to spread memory, get in the other direction ---- */

#define DOUBLES(name, packed_at, spread_at, count)                                                 \
    static void put_##name(char *spread, const char *packed)                                       \
    {                                                                                              \
        double *restrict to = (double *)(void *)spread;                                            \
        const double *restrict from = (const double *)(const void *)packed;                        \
        for (size_t i = 0; i < (count); i++)                                                       \
            to[spread_at] = from[packed_at];                                                       \
    }                                                                                              \
    static void get_##name(char *packed, const char *spread)                                       \
    {                                                                                              \
        double *restrict to = (double *)(void *)packed;                                            \
        const double *restrict from = (const double *)(const void *)spread;                        \
        for (size_t i = 0; i < (count); i++)                                                       \
            to[packed_at] = from[spread_at];                                                       \
    }

DOUBLES(column, i, i *SHAPE_MATRIX, SHAPE_MATRIX)
DOUBLES(face_points, i, i *SHAPE_CUBE, SHAPE_CUBE *SHAPE_CUBE)

enum {
    ROW_BYTES = SHAPE_CUBE * SHAPE_WORD,
    PLANE_BYTES = SHAPE_CUBE * ROW_BYTES,
    PACKED_STRUCT_BYTES = 16
};

static void put_face_rows(char *spread, const char *packed)
{
    for (size_t plane = 0; plane < SHAPE_CUBE; plane++)
        memcpy(spread + plane * PLANE_BYTES, packed + plane * ROW_BYTES, ROW_BYTES);
}

static void get_face_rows(char *packed, const char *spread)
{
    for (size_t plane = 0; plane < SHAPE_CUBE; plane++)
        memcpy(packed + plane * ROW_BYTES, spread + plane * PLANE_BYTES, ROW_BYTES);
}

/* A program's tables for irregular blocks: positions and lengths. */
static struct {
    unsigned place, len;
} blocks[SHAPE_BLOCKS];

static void put_blocks(char *spread, const char *packed)
{
    double *restrict to = (double *)(void *)spread;
    const double *restrict from = (const double *)(const void *)packed;
    for (size_t block = 0; block < SHAPE_BLOCKS; block++)
        for (unsigned i = 0; i < blocks[block].len; i++)
            to[blocks[block].place + i] = *from++;
}

static void get_blocks(char *packed, const char *spread)
{
    double *restrict to = (double *)(void *)packed;
    const double *restrict from = (const double *)(const void *)spread;
    for (size_t block = 0; block < SHAPE_BLOCKS; block++)
        for (unsigned i = 0; i < blocks[block].len; i++)
            *to++ = from[blocks[block].place + i];
}

static void put_structs(char *restrict spread, const char *restrict packed)
{
    for (size_t i = 0; i < SHAPE_STRUCTS; i++) {
        memcpy(spread + i * SHAPE_STRUCT_BYTES, packed + i * PACKED_STRUCT_BYTES, 4);
        memcpy(spread + i * SHAPE_STRUCT_BYTES + 8, packed + i * PACKED_STRUCT_BYTES + 4, 12);
    }
}

static void get_structs(char *restrict packed, const char *restrict spread)
{
    for (size_t i = 0; i < SHAPE_STRUCTS; i++) {
        memcpy(packed + i * PACKED_STRUCT_BYTES, spread + i * SHAPE_STRUCT_BYTES, 4);
        memcpy(packed + i * PACKED_STRUCT_BYTES + 4, spread + i * SHAPE_STRUCT_BYTES + 8, 12);
    }
}

/* ---- common to all ---- */

static size_t span_of(const struct raw_run *run)
{
    if (run->operation->shape)
        run->operation->shape(&shape);
    else
        shape_strided(&shape, run->len_bytes);
    for (size_t i = 0; i < SHAPE_BLOCKS; i++) {
        blocks[i].place = (unsigned)shape_block_place(i);
        blocks[i].len = (unsigned)shape_block_len(i);
    }
    return shape.span_bytes;
}

static void prepare(struct raw_run *run)
{
    data_fill(run->from, shape.span_bytes, 2 * run->batch);
    data_fill(run->to, shape.span_bytes, 2 * run->batch + 1);
}

static void repeat(struct raw_run *run, uint64_t count)
{
    void (*const move)(char *to, const char *from) = run->operation->move;
    for (uint64_t i = 0; i < count; i++) {
        move(run->to, run->from);
        raw_memory_used(run->to);
    }
    run->done += count;
}

static bool is_same(const struct raw_run *run, size_t at, size_t from, size_t len)
{
    return memcmp(run->seen + at, run->from + from, len) == 0;
}

static bool is_untouched(const struct raw_run *run, size_t at, size_t end)
{
    return data_holds_from(run->seen + at, at, end - at, 2 * run->batch + 1);
}

static void put_check(struct raw_run *run)
{
    size_t packed = 0, end = 0;
    for (size_t i = 0; i < shape.runs_len; i++) {
        const size_t at = shape.runs[i].offset, len = shape.runs[i].len;
        run->wrong |= !is_untouched(run, end, at) || !is_same(run, at, packed, len);
        packed += len;
        end = at + len;
    }
    run->wrong |= packed != run->len_bytes || !is_untouched(run, end, shape.span_bytes);
}

static void get_check(struct raw_run *run)
{
    size_t packed = 0;
    for (size_t i = 0; i < shape.runs_len; i++) {
        run->wrong |= !is_same(run, packed, shape.runs[i].offset, shape.runs[i].len);
        packed += shape.runs[i].len;
    }
    run->wrong |= packed != run->len_bytes || !is_untouched(run, packed, shape.span_bytes);
}

/* Every second double on both sides. */
static void repeat_both(struct raw_run *run, uint64_t count)
{
    const size_t doubles = run->len_bytes / sizeof(double);
    const double *restrict from = (const double *)(const void *)run->from;
    double *restrict to = (double *)(void *)run->to;
    for (uint64_t i = 0; i < count; i++) {
        for (size_t k = 0; k < doubles; k++)
            to[2 * k] = from[2 * k];
        raw_memory_used(to);
    }
    run->done += count;
}

static void both_check(struct raw_run *run)
{
    for (size_t i = 0; i < shape.runs_len; i++) {
        const size_t at = shape.runs[i].offset;
        run->wrong |= !is_same(run, at, at, SHAPE_WORD) ||
                      !is_untouched(run, at + SHAPE_WORD, at + 2 * SHAPE_WORD);
    }
}

#define LOOPS(its_name, its_shape, its_put, its_get)                                               \
    {.name = "raw-put-" its_name,                                                                  \
     .shared = true,                                                                               \
     .shape = its_shape,                                                                           \
     .span = span_of,                                                                              \
     .prepare = prepare,                                                                           \
     .repeat = repeat,                                                                             \
     .move = its_put,                                                                              \
     .check = put_check},                                                                          \
    {                                                                                              \
        .name = "raw-get-" its_name, .shape = its_shape, .span = span_of, .prepare = prepare,      \
        .repeat = repeat, .move = its_get, .check = get_check                                      \
    }

const struct raw_operation raw_shapes[] = {
    {.name = "raw-put-strided-both",
     .shared = true,
     .span = span_of,
     .prepare = prepare,
     .repeat = repeat_both,
     .check = both_check},
    LOOPS("column", shape_column, put_column, get_column),
    LOOPS("face-rows", shape_face_rows, put_face_rows, get_face_rows),
    LOOPS("face-points", shape_face_points, put_face_points, get_face_points),
    LOOPS("indexed", shape_blocks, put_blocks, get_blocks),
    LOOPS("structs", shape_structs, put_structs, get_structs),
    {0},
};
