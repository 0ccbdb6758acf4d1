/* Ends with windows that are not freed: the first argument is their number, every other one has a
 * name. Also frees one. unfreed_windows.py runs it and reads the message to the user. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Win win;
    char *base, name[32];
    MPI_Init(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < count; i++) {
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
        snprintf(name, sizeof name, "table-%d", i);
        if (i % 2 == 0)
            MPI_Win_set_name(win, name);
    }
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "freed");
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
