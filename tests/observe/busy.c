/* Puts to the next rank, for observation from outside. With one argument: argv[1] puts of 64 bytes
 * per rank, "done", then idle until killed. With two arguments: "busy", then continuous puts until
 * the file argv[2] exists, with pauses for the sake of other tests, then "done". With three, also
 * puts of no bytes, to a window "empty", and a window "idle". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, n;
    char *base;
    char bytes[64] = "";
    MPI_Win win, idle = MPI_WIN_NULL, empty = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    long puts_wanted = argc > 1 ? atol(argv[1]) : 0;
    const char *end = argc > 2 ? argv[2] : NULL;
    if (argc > 3) {
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &idle);
        MPI_Win_set_name(idle, "idle");
        MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &empty);
        MPI_Win_set_name(empty, "empty");
        MPI_Win_lock_all(0, empty);
    }
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "busy");
    MPI_Win_lock_all(0, win);
    if (rank == 0 && end) {
        puts("busy");
        fflush(stdout);
    }
    for (long i = 0; end ? i % 64 != 0 || access(end, F_OK) != 0 : i < puts_wanted; i++) {
        MPI_Put(bytes, 64, MPI_CHAR, (rank + 1) % n, 0, 64, MPI_CHAR, win);
        MPI_Win_flush((rank + 1) % n, win);
        if (argc > 3)
            MPI_Put(bytes, 0, MPI_CHAR, (rank + 1) % n, 0, 0, MPI_CHAR, empty);
        if (end && i % 64 == 0)
            usleep(1000);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        puts("done");
        fflush(stdout);
    }
    while (end == NULL)
        sleep(1000);
    MPI_Win_free(&win);
    if (argc > 3) {
        MPI_Win_unlock_all(empty);
        MPI_Win_free(&empty);
        MPI_Win_free(&idle);
    }
    MPI_Finalize();
    return 0;
}
