/* Errors without a program's handler: the argument selects one, and the default handler ends the
 * job. fatal.py runs it and reads the message to the user. A comment marks the call that it must
 * name. */
#include <mpi.h>
#include <pthread.h>
#include <string.h>

static MPI_Win win;

static void *put_in_thread(void *unused)
{
    long value = 1;
    (void)unused;
    MPI_Put(&value, 1, MPI_LONG, 7, 0, 1, MPI_LONG, win); /* CALL threads */
    return NULL;
}

static void threads_put(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, put_in_thread, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
    long *base, value = 1;
    int rank, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const char *what = argc > 1 ? argv[1] : "";
    const MPI_Aint part = rank == (strcmp(what, "returned") == 0 ? 0 : 1) ? -1 : 8;
    const int is_named = strcmp(what, "unnamed") != 0;
    /* one more window of rank 0 before the others */
    if (!is_named && rank == 0)
        MPI_Win_allocate(sizeof value, 8, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win);
    if (strcmp(what, "returned") == 0 && rank == 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(what, "returned") == 0)
        MPI_Win_allocate(part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); /* CALL returned */
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
        MPI_Put(&value, 1, MPI_LONG, 10 + rank, 0, 1, MPI_LONG, win); /* CALL different */
    if (strcmp(what, "threads") == 0)
        threads_put();
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
