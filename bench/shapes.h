/* The shapes of the benchmark's datatypes: a strided vector, a matrix's column, two faces of a
 * cube, irregular blocks, single doubles, structs. A shape is a list of byte runs in the order of
 * the datatype; operations must not change the gaps. The datatype patterns and the hand-written
 * loops that are their limits use it. This file does not use MPI. */
#ifndef ORIEL_BENCH_SHAPES_H
#define ORIEL_BENCH_SHAPES_H

#include <stddef.h>

enum {
    SHAPE_WORD = sizeof(double),
    SHAPE_MATRIX = 256,
    SHAPE_CUBE = 64,
    SHAPE_BLOCKS = 512,
    SHAPE_BLOCK_ROOM = 16, /* doubles; a block has one to four of them */
    SHAPE_STRUCTS = 512,
    SHAPE_STRUCT_BYTES = 24,
    SHAPE_SINGLES = 100000, /* at most */
    SHAPE_SINGLE_ROOM = 3,  /* doubles; one of them is used */
    SHAPE_RUNS = SHAPE_SINGLES
};

struct shape {
    size_t span_bytes; /* at least from its first byte to its last */
    size_t runs_len;
    struct {
        size_t offset, len;
    } runs[SHAPE_RUNS];
};

/* Every second double; together they have len_bytes. */
void shape_strided(struct shape *shape, size_t len_bytes);

/* The first double of each row; the first row of each plane; the first double of each row of a
 * cube. */
void shape_column(struct shape *shape);
void shape_face_rows(struct shape *shape);
void shape_face_points(struct shape *shape);

/* Block i has shape_block_len(i) doubles from shape_block_place(i) on, in the i-th piece of
 * SHAPE_BLOCK_ROOM. */
void shape_blocks(struct shape *shape);
size_t shape_block_len(size_t block);
size_t shape_block_place(size_t block);

/* One double of each piece of SHAPE_SINGLE_ROOM; together they have len_bytes. */
void shape_singles(struct shape *shape, size_t len_bytes);

/* struct { int32_t a; double b; int32_t c; }: holes of four bytes after a and after c. */
void shape_structs(struct shape *shape);

#endif
