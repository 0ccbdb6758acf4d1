/* Windows over two nodes that are refused, one after the other and in many threads, since each
 * refusal waits for a while. The checker must release its data for them. The row limits memory, and
 * a leak would fill it. */
#include <mpi.h>
#include <pthread.h>
#include <stddef.h>

#include "../mpi/host_limits.h"

enum { THREADS = 24, ROUNDS = 100 };

static void *work(void *closure)
{
    const MPI_Comm *comm = closure;
    char memory;
    MPI_Win win;
    for (int i = 0; i < ROUNDS; i++)
        if (MPI_Win_create(&memory, -1, 1, MPI_INFO_NULL, *comm, &win) == MPI_SUCCESS)
            MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Comm comms[THREADS];
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE)
        return 77;
    int count = host_loses_messages_of_threads() ? 1 : THREADS;
    for (int i = 0; i < count; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, &comms[i]) != 0)
            MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&comms[i]);
    }
    return MPI_Finalize();
}
