/* Accesses through windows over device memory, for the checker, statistics, traces and `oriel top`
 * (test_observed.py). With the argument `offend` each rank makes mistakes; with `idle` it sleeps
 * after the accesses to the first window. */
#include "device.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGS = 64, BYTES = LONGS * 8 };

static int rank, ranks;
static const char *mode = "";

static void say(const char *what)
{
    if (rank == 0)
        puts(what);
    fflush(stdout);
}

static void accesses(void *memory, const char *name, int64_t *buffer, int offends)
{
    MPI_Win win;
    MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, name);
    MPI_Win_lock_all(0, win);
    MPI_Put(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 4 * rank, 4, MPI_INT64_T, win);
    MPI_Win_flush_all(win);
    MPI_Get(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 4 * rank, 4, MPI_INT64_T, win);
    if (!offends)
        MPI_Win_flush_all(win);
    MPI_Accumulate(buffer, 4, MPI_INT64_T, (rank + 1) % ranks, 32, 4, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (offends && rank < 2)
        MPI_Win_lock_all(0, win);
    if (offends && rank < 2) { /* two ranks put to the same bytes */
        MPI_Put(buffer, 4, MPI_INT64_T, 0, 40, 4, MPI_INT64_T, win);
        MPI_Win_unlock_all(win);
    }
    if (strcmp(mode, "idle") == 0) {
        say("idle");
        for (;;)
            pause();
    }
    MPI_Win_free(&win);
}

/* A put of memory that was freed after a first use, and one beyond the window. */
static void refused_puts(int64_t *memory)
{
    MPI_Win win;
    int class = MPI_SUCCESS;
    int64_t *freed = device_map(BYTES, true);
    MPI_Win_create(memory, BYTES, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_name(win, "refused");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Put(freed, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(rank, win);
    device_unmap(freed, BYTES);
    const int code = MPI_Put(freed, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, win);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class != MPI_ERR_BUFFER)
        printf("a put of freed memory gave class %d\n", class);
    MPI_Put(memory, 1, MPI_INT64_T, rank, LONGS, 1, MPI_INT64_T, win);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        mode = argv[1];
    const int offends = strcmp(mode, "offend") == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int64_t *buffer = device_alloc(BYTES), *shared = device_alloc(BYTES);
    int64_t *unshared = device_map(BYTES, false);
    accesses(shared, "shared", buffer, offends);
    accesses(unshared, "unshared", buffer, 0);
    if (offends)
        refused_puts(shared);
    device_free(buffer);
    device_free(shared);
    device_unmap(unshared, BYTES);
    say("done");
    MPI_Finalize();
    return 0;
}
