/* Does one kind of one-sided operation a given number of times, for counting instructions.
 * The loop is in a function of its own that calls nothing but MPI, so that a profiler can count that function alone.
 * Run by bench/instructions: `mpiexec -n 2 steps OPERATION COUNT`. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { NOTHING, PUT, GET, FLUSH, PUT_FLUSH, FETCH_AND_OP, LOCK_UNLOCK, LOCK_PUT_UNLOCK, OPERATIONS };

static const char *const names[OPERATIONS] = {"nothing",   "put",          "get",         "flush",
                                              "put-flush", "fetch-and-op", "lock-unlock", "lock-put-unlock"};

/* Not inlined and not static: the profiler finds it by its name. */
__attribute__((noinline)) void counted_loop(enum operation operation, long count, MPI_Win win);

void counted_loop(enum operation operation, long count, MPI_Win win)
{
    const int target = 1;
    const int64_t one = 1;
    int64_t word = 1;

    for (long i = 0; i < count; i++) {
        if (operation == LOCK_UNLOCK || operation == LOCK_PUT_UNLOCK)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (operation == PUT || operation == PUT_FLUSH || operation == LOCK_PUT_UNLOCK)
            MPI_Put(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        if (operation == GET)
            MPI_Get(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        if (operation == FETCH_AND_OP)
            MPI_Fetch_and_op(&one, &word, MPI_INT64_T, target, 0, MPI_SUM, win);
        if (operation == FLUSH || operation == PUT_FLUSH)
            MPI_Win_flush(target, win);
        if (operation == LOCK_UNLOCK || operation == LOCK_PUT_UNLOCK)
            MPI_Win_unlock(target, win);
    }
}

static void run(enum operation operation, long count, int rank)
{
    int locking = operation == LOCK_UNLOCK || operation == LOCK_PUT_UNLOCK;
    int64_t *base;
    MPI_Win win;

    MPI_Win_allocate(4096, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        if (!locking)
            MPI_Win_lock_all(0, win);
        counted_loop(operation, count, win);
        if (!locking)
            MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    enum operation operation = NOTHING;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (argc == 3 && operation < OPERATIONS && strcmp(argv[1], names[operation]) != 0)
        operation++;
    if (argc != 3 || operation == OPERATIONS || atol(argv[2]) < 1) {
        fprintf(stderr, "usage: steps OPERATION COUNT\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    run(operation, atol(argv[2]), rank);
    MPI_Finalize();
    return 0;
}
