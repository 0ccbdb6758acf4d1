/* Shared by the benchmark of copies (copies.c) and its shapes (copies_shapes.c). */
#ifndef ORIEL_BENCH_COPIES_H
#define ORIEL_BENCH_COPIES_H

#include <mpi.h>

/* The same copy as a hand-written loop; the two sides do not overlap. */
typedef void copies_by_hand(void *restrict to, const void *restrict from);

struct copies_shape {
    const char *name;
    copies_by_hand *put, *get;
    MPI_Datatype target, origin;
    int bytes; /* when not 0, this number of MPI_BYTE replaces the datatypes */
};

enum { COPIES_SHAPES = 40 };
extern struct copies_shape copies_shapes[COPIES_SHAPES];
extern int copies_shapes_len;

void copies_shapes_make(void);
void copies_shapes_free(void);

#endif
