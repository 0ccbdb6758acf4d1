/* The extensions of <oriel/ext.h> in C, and in C++ through extensions.cpp: the program links
 * without Oriel, and asks whether it may call them. Argument: `served` if it may, `alone` if not.
 * Each rank then sends its number to its right neighbour by a notified put. */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>
#include <string.h>

/* The number that arrived, or -1. */
static int number_exchange(int rank, int right)
{
    int *memory, arrived;
    MPI_Win win;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "1");
    MPI_Win_allocate(sizeof *memory, sizeof *memory, info, MPI_COMM_WORLD, &memory, &win);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    if (MPIX_Put_notify(&rank, 1, MPI_INT, right, 0, 1, MPI_INT, 0, win) != MPI_SUCCESS ||
        PMPIX_Win_notify_wait(win, 0, 1) != MPI_SUCCESS)
        *memory = -1;
    arrived = *memory;
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return arrived;
}

int main(int argc, char **argv)
{
    const int wanted = argc > 1 && strcmp(argv[1], "served") == 0;
    const int served = MPIX_Query_oriel(); /* allowed before MPI_Init */
    int rank, size, arrived;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    arrived = (rank + size - 1) % size;
    if (served && wanted)
        arrived = number_exchange(rank, (rank + 1) % size);
    if (served != wanted || arrived != (rank + size - 1) % size)
        printf("not ok rank %d: MPIX_Query_oriel() is %d, %d arrived\n", rank, served, arrived);
    MPI_Finalize();
    return served != wanted || arrived != (rank + size - 1) % size;
}
