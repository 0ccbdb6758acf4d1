/* Each rank puts its number to the next rank. Rank 0 prints the number of ranks if all numbers
 * arrived; the status is 1 otherwise.
 *
 *     ring             right
 *     ring conflict    all ranks then put to one place of rank 0 in one epoch
 *     ring hang        all ranks except the last then wait for it in a fence; the last sleeps */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int rank, ranks;
    int *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(4096, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "ring");
    *memory = -1;
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    int is_right = *memory == (rank + ranks - 1) % ranks;
    int are_right = 0;
    MPI_Allreduce(&is_right, &are_right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (strcmp(mode, "conflict") == 0) {
        MPI_Win_fence(0, win);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* CONFLICT */
        MPI_Win_fence(0, win);
    }
    if (rank == 0) {
        printf("%s: %d ranks\n", are_right ? "right" : "wrong", ranks);
        fflush(stdout);
    }
    while (strcmp(mode, "hang") == 0) {
        if (rank == ranks - 1)
            sleep(1000);
        else
            MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return are_right ? 0 : 1;
}
