/* The byte runs of the benchmark's shapes. They depend only on constants, so the two programs that
 * use a shape move the same bytes. */
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>

#include "data.h"

static void begin(struct shape *shape, size_t span_bytes)
{
    shape->span_bytes = span_bytes;
    shape->runs_len = 0;
}

static void shape_add_run(struct shape *shape, size_t offset, size_t len)
{
    if (shape->runs_len == SHAPE_RUNS) {
        fputs("a shape has too many runs\n", stderr);
        exit(2);
    }
    shape->runs[shape->runs_len].offset = offset;
    shape->runs[shape->runs_len++].len = len;
}

void shape_strided(struct shape *shape, size_t len_bytes)
{
    begin(shape, 2 * len_bytes);
    for (size_t at = 0; at < len_bytes; at += SHAPE_WORD)
        shape_add_run(shape, 2 * at, SHAPE_WORD);
}

void shape_column(struct shape *shape)
{
    begin(shape, SHAPE_MATRIX * SHAPE_MATRIX * SHAPE_WORD);
    for (size_t row = 0; row < SHAPE_MATRIX; row++)
        shape_add_run(shape, row * SHAPE_MATRIX * SHAPE_WORD, SHAPE_WORD);
}

void shape_face_rows(struct shape *shape)
{
    begin(shape, SHAPE_CUBE * SHAPE_CUBE * SHAPE_CUBE * SHAPE_WORD);
    for (size_t plane = 0; plane < SHAPE_CUBE; plane++)
        shape_add_run(shape, plane * SHAPE_CUBE * SHAPE_CUBE * SHAPE_WORD, SHAPE_CUBE * SHAPE_WORD);
}

void shape_face_points(struct shape *shape)
{
    begin(shape, SHAPE_CUBE * SHAPE_CUBE * SHAPE_CUBE * SHAPE_WORD);
    for (size_t point = 0; point < SHAPE_CUBE * SHAPE_CUBE; point++)
        shape_add_run(shape, point * SHAPE_CUBE * SHAPE_WORD, SHAPE_WORD);
}

size_t shape_block_len(size_t block)
{
    return 1 + block % 4;
}

size_t shape_block_place(size_t block)
{
    return block * SHAPE_BLOCK_ROOM + data_word(7, block) % 12;
}

void shape_blocks(struct shape *shape)
{
    begin(shape, SHAPE_BLOCKS * SHAPE_BLOCK_ROOM * SHAPE_WORD);
    for (size_t block = 0; block < SHAPE_BLOCKS; block++)
        shape_add_run(shape, shape_block_place(block) * SHAPE_WORD,
                      shape_block_len(block) * SHAPE_WORD);
}

void shape_singles(struct shape *shape, size_t len_bytes)
{
    begin(shape, SHAPE_SINGLE_ROOM * len_bytes);
    for (size_t i = 0; i < len_bytes / SHAPE_WORD; i++)
        shape_add_run(shape,
                      (i * SHAPE_SINGLE_ROOM + data_word(7, i) % SHAPE_SINGLE_ROOM) * SHAPE_WORD,
                      SHAPE_WORD);
}

void shape_structs(struct shape *shape)
{
    begin(shape, SHAPE_STRUCTS * SHAPE_STRUCT_BYTES);
    for (size_t i = 0; i < SHAPE_STRUCTS; i++) {
        shape_add_run(shape, i * SHAPE_STRUCT_BYTES, 4);
        shape_add_run(shape, i * SHAPE_STRUCT_BYTES + 8, 12); /* b and c are adjacent */
    }
}
