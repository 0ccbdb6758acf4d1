/* A window whose contents identify their origin, for tests of requests whose answers may be
 * outstanding. */
#ifndef ORIEL_TESTS_OUTSTANDING_H
#define ORIEL_TESTS_OUTSTANDING_H

#include "harness.h"

/* A window with 1000 * rank + i at index i. */
static inline struct window numbered_make(enum window_kind kind, int words)
{
    struct window window = window_make(kind, (MPI_Aint)8 * words, 8, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    for (int i = 0; i < words; i++)
        ((int64_t *)window.base)[i] = 1000 * world_rank + i;
    MPI_Win_unlock(world_rank, window.win);
    barrier(MPI_COMM_WORLD);
    return window;
}

#endif
