/* A constructor's arguments, wide enough for all of its forms, and the call of the host's
 * constructor with them. random_types.c defines the meaning of each constructor. */
#ifndef ORIEL_TESTS_RANDOM_PLAN_H
#define ORIEL_TESTS_RANDOM_PLAN_H

#include "harness.h"

enum { RANDOM_PARTS = 4, RANDOM_DIMENSIONS = 3 };

/* All except the array constructors are blocks of lengths[i] items of olds[i], at displs[i] units;
 * the regular ones also have a length and a stride. */
struct random_plan {
    int combiner;
    int parts;
    MPI_Count length, stride;
    MPI_Count lengths[RANDOM_PARTS], displs[RANDOM_PARTS];
    MPI_Aint unit;
    MPI_Datatype olds[RANDOM_PARTS];
    int dimensions, order, grid_size, grid_rank;
    MPI_Count sizes[RANDOM_DIMENSIONS], subsizes[RANDOM_DIMENSIONS], starts[RANDOM_DIMENSIONS];
    int distributions[RANDOM_DIMENSIONS], arguments[RANDOM_DIMENSIONS],
        processes[RANDOM_DIMENSIONS], coordinates[RANDOM_DIMENSIONS];
    MPI_Aint low, extent;
};

/* Sometimes uses the constructor's large-count form, where the host has it. */
void random_plan_build(const struct random_plan *plan, struct random *random, MPI_Datatype *out);

/* True if the host builds and packs vectors of this stride correctly. */
bool random_host_strides(MPI_Aint stride_bytes);

#endif
