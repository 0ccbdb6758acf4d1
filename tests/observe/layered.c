/* Calls of a program, and of its communication layer in a shared library. The last rank is late.
 * With an argument, rank 0 first moves that file to where the program was, as a build does. */
#include "layer.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Win win;
    int *base;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0 && argc > 1 && rename(argv[1], argv[0]) != 0)
        return 1;
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_fence(0, win); /* SITE first fence */
    for (int i = 0; i < 3; i++)
        layer_exchange(win, (rank + 1) % ranks, rank == ranks - 1);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
