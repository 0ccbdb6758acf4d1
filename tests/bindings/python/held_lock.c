/* A binding with a function that keeps the interpreter's lock in a call of MPI, and one that has
 * released it (ctypes.PyDLL and CDLL). On two ranks, the first waits for the second. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static atomic_bool receives;
static int peer;

int begin(void)
{
    int level, rank;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    return level == MPI_THREAD_MULTIPLE;
}

void receive_from_the_other(void)
{
    int value;
    atomic_store(&receives, true);
    MPI_Recv(&value, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void send_to_the_other(void)
{
    static const struct timespec soon = {.tv_nsec = 50 * 1000 * 1000};
    int value = 1;
    while (!atomic_load(&receives))
        nanosleep(&soon, NULL);
    nanosleep(&soon, NULL);
    MPI_Send(&value, 1, MPI_INT, peer, 1, MPI_COMM_WORLD);
}

void finish(void)
{
    MPI_Finalize();
}
