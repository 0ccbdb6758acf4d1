/* Errors without a program's handler: the argument selects one, and the default handler ends the
 * job. fatal.py runs it and reads the message to the user. A comment marks the call that it must
 * name. */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
    MPI_Win win;
    long *base, value = 1;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = argc > 1 ? argv[1] : "";
    const MPI_Aint part = rank == 1 ? -1 : 8;
    const int is_named = strcmp(what, "unnamed") != 0;
    if (strcmp(what, "size") == 0)
        MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL size */
    if (strcmp(what, "part") == 0)
        MPI_Win_allocate(part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL part */
    MPI_Win_allocate(sizeof value, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (is_named)
        MPI_Win_set_name(win, "table");
    if (strcmp(what, "epoch") != 0)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    if (strcmp(what, "epoch") == 0)
        MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win); /* CALL epoch */
    if (!is_named)
        MPI_Put(&value, 1, MPI_LONG, 9, 0, 1, MPI_LONG, win); /* CALL unnamed */
    if (strcmp(what, "range") == 0)
        MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, win); /* CALL range */
    if (strcmp(what, "rank") == 0)
        MPI_Put(&value, 1, MPI_LONG, 7, 0, 1, MPI_LONG, win); /* CALL rank */
    if (strcmp(what, "different") == 0)
        MPI_Put(&value, 1, MPI_LONG, 10 + rank, 0, 1, MPI_LONG, win);
    if (strcmp(what, "attach") == 0)
        MPI_Win_attach(win, &value, sizeof value); /* CALL attach */
    if (strcmp(what, "freed") == 0) {
        MPI_Win freed = MPI_WIN_NULL;
        MPI_Win_fence(0, freed); /* CALL freed */
    }
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
