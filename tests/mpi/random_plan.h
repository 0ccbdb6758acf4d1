/* A constructor's arguments, wide enough for all of its forms, and the call of the host's
 * constructor with them. Nothing here knows what a constructor means: random_types.c does. Called
 * by random_types.c. */
#ifndef ORIEL_TESTS_RANDOM_PLAN_H
#define ORIEL_TESTS_RANDOM_PLAN_H

#include "harness.h"

enum { RANDOM_PARTS = 4, RANDOM_DIMENSIONS = 3 };

/* All but the array constructors are blocks of lengths[i] items of olds[i], at places[i] units; the
 * regular ones have length and stride besides. */
struct random_plan {
    int combiner;
    int parts;
    MPI_Count length, stride;
    MPI_Count lengths[RANDOM_PARTS], places[RANDOM_PARTS];
    MPI_Aint unit;
    MPI_Datatype olds[RANDOM_PARTS];
    int dimensions, order, grid_size, grid_rank;
    MPI_Count sizes[RANDOM_DIMENSIONS], subsizes[RANDOM_DIMENSIONS], starts[RANDOM_DIMENSIONS];
    int distributions[RANDOM_DIMENSIONS], arguments[RANDOM_DIMENSIONS],
        processes[RANDOM_DIMENSIONS], coordinates[RANDOM_DIMENSIONS];
    MPI_Aint low, extent;
};

/* By the constructor of the large-count form now and then, where the host has it. */
void random_plan_build(const struct random_plan *plan, struct random *random, MPI_Datatype *out);

/* Whether the host builds and packs vectors of this stride rightly. */
bool random_host_strides(MPI_Aint stride_bytes);

#endif
