/* The program whose page test_report_run.py checks: puts of known sizes around a ring in fence
 * epochs, and, in a second window of all ranks except the last, atomics under a lock.  Silent
 * unless something fails. */
#include <mpi.h>
#include <stdlib.h>

enum { STEPS = 10 };

static void ring(int rank, int ranks)
{
    char *memory, bytes[4096] = {0};
    MPI_Win win;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_set_name(win, "ring");
    MPI_Win_fence(0, win);
    for (int step = 0; step < STEPS; step++) {
        MPI_Put(bytes, 100 * (rank + 1), MPI_BYTE, (rank + 1) % ranks, 0, 100 * (rank + 1),
                MPI_BYTE, win);
        MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
}

static void counter(MPI_Comm comm)
{
    long *memory, one = 1, old;
    MPI_Win win;
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, comm, &memory, &win);
    MPI_Win_set_name(win, "counter");
    for (int step = 0; step < STEPS; step++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Comm most;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ring(rank, ranks);
    /* reversed, to make ranks of the window differ from those of the world */
    MPI_Comm_split(MPI_COMM_WORLD, rank < ranks - 1 ? 0 : MPI_UNDEFINED, -rank, &most);
    if (most != MPI_COMM_NULL) {
        counter(most);
        MPI_Comm_free(&most);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
