/* The shapes of the benchmark's datatypes: a strided vector, a matrix's column, two faces of a
 * cube, irregular blocks, single doubles, structs. A shape is its runs of bytes, in the order of
 * the datatype; what lies between them belongs to somebody else. Included by the patterns with
 * datatypes and by the loops by hand that are their limits; knows no MPI. */
#ifndef ORIEL_BENCH_SHAPES_H
#define ORIEL_BENCH_SHAPES_H

#include <stddef.h>

enum {
    SHAPE_WORD = sizeof(double),
    SHAPE_MATRIX = 256,
    SHAPE_CUBE = 64,
    SHAPE_BLOCKS = 512,
    SHAPE_BLOCK_ROOM = 16, /* doubles, of which a block has one to four */
    SHAPE_STRUCTS = 512,
    SHAPE_STRUCT_BYTES = 24,
    SHAPE_SINGLES = 100000, /* at most */
    SHAPE_SINGLE_ROOM = 3,  /* doubles, of which one is taken */
    SHAPE_RUNS = SHAPE_SINGLES
};

struct shape {
    size_t span_bytes; /* from its first byte to the last, or some more */
    size_t runs_len;
    struct {
        size_t offset, len;
    } runs[SHAPE_RUNS];
};

/* Every second double of as many as have len_bytes. */
void shape_strided(struct shape *shape, size_t len_bytes);

/* The first double of each row; of each plane the first row; of each row the first double. */
void shape_column(struct shape *shape);
void shape_face_rows(struct shape *shape);
void shape_face_points(struct shape *shape);

/* Block i has shape_block_len(i) doubles from shape_block_place(i) on, in the i-th piece of SHAPE_BLOCK_ROOM. */
void shape_blocks(struct shape *shape);
size_t shape_block_len(size_t block);
size_t shape_block_place(size_t block);

/* A double of each piece of SHAPE_SINGLE_ROOM, of as many as have len_bytes. */
void shape_singles(struct shape *shape, size_t len_bytes);

/* struct { int32_t a; double b; int32_t c; }: holes of four bytes after a and after c. */
void shape_structs(struct shape *shape);

#endif
