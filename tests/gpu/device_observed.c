/* Accesses through windows over device memory, for the checker, statistics and traces
 * (test_observed.py). With the argument `offend` each rank makes two mistakes. */
#include "device.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONGS = 64, BYTES = LONGS * 8 };

static int rank, ranks;

static void accesses(void *memory, const char *name, int64_t *buffer, int offends)
{
    MPI_Win win;
    MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, name);
    MPI_Win_lock_all(0, win);
    MPI_Put(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 4 * rank, 4, MPI_INT64_T, win);
    MPI_Win_flush_all(win);
    MPI_Get(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 4 * rank, 4, MPI_INT64_T, win);
    if (!offends)
        MPI_Win_flush_all(win);
    MPI_Accumulate(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 32, 4, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (offends && rank < 2)
        MPI_Win_lock_all(0, win);
    if (offends && rank < 2) { /* two ranks put to the same bytes */
        MPI_Put(buffer, 4, MPI_INT64_T, 0, 40, 4, MPI_INT64_T, win);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    const int offends = argc > 1 && strcmp(argv[1], "offend") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t *buffer = device_alloc(BYTES), *shared = device_alloc(BYTES);
    int64_t *unshared = device_map(BYTES, false);
    accesses(shared, "shared", buffer, offends);
    accesses(unshared, "unshared", buffer, 0);
    device_free(buffer);
    device_free(shared);
    device_unmap(unshared, BYTES);
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    return 0;
}
