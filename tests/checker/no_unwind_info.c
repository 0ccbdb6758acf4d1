/* Error handlers in functions without unwind information (CMakeLists.txt compiles this file so): a
 * walk through the stack ends at the first of them, and the handler still counts as running. */
#include "offenders.h"

#include <unistd.h>

static void ask(void)
{
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/* It runs on while the other rank puts. */
static void run_on(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    usleep(1000000);
    ask();
}

/* A rank that counts as left is no longer checked; one whose handler runs is. */
CASE_APART(C1, order_in_a_handler_without_tables, 2)
{
    MPI_Win win = ints_window(4);
    MPI_Comm comm = comm_handled(MPI_COMM_SELF, run_on);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        usleep(500000);
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
        MPI_Win_flush(0, win);
    }
    if (rank == 0 && calls_back())
        MPI_Send(&rank, 1, MPI_INT, 1, 0, comm); /* there is no such rank */
    if (right)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win); /* FINDS C1 here */
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Comm_free(&comm);
}
