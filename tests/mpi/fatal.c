/* Errors without a program's handler: the argument selects one, and the default handler ends the
 * job. fatal.py runs it and reads the message to the user. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Win win;
    long *base, value = 1;
    MPI_Init(&argc, &argv);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "size") == 0)
        MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_allocate(sizeof value, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "table");
    if (strcmp(what, "epoch") != 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&value, 1, MPI_LONG, 0, strcmp(what, "range") == 0, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
