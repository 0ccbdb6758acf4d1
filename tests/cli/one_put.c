/* The smallest job with a window: each process puts a number into its own memory. The status is 0
 * if it arrived. Prints the number, the library's version, which names Oriel where it is active,
 * and the remaining preload. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    int *memory = NULL;
    int number = 42;
    int rank = 0;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &len);
    MPI_Win_allocate(4096, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Put(&number, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
    MPI_Win_unlock(rank, win);
    int arrived = *memory;
    printf("memory=%d\n%s\n", arrived, version);
    const char *preload = getenv("LD_PRELOAD");
    const char *preloaded = getenv("ORIEL_PRELOADED");
    printf("LD_PRELOAD=%s\nORIEL_PRELOADED=%s\n", preload == NULL ? "(unset)" : preload,
           preloaded == NULL ? "(unset)" : preloaded);
    MPI_Win_free(&win);
    MPI_Finalize();
    return arrived == number ? 0 : 1;
}
