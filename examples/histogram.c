/* Counts into a histogram that is spread over all ranks.
 * The argument is how often each rank counts. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 64 };

/* Bin b is element b / ranks of rank b % ranks. */
static void count(int bin, int ranks, MPI_Win win)
{
    static const long one = 1; /* MPI may read it until a flush, after this function */
    MPI_Accumulate(&one, 1, MPI_LONG, bin % ranks, bin / ranks, 1, MPI_LONG, MPI_SUM, win);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const long times = argc > 1 ? atol(argv[1]) : 1000;

    long *bins;
    MPI_Win_allocate(BINS * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &bins, &win);
    MPI_Win_lock_all(0, win); /* an epoch for the whole program; it excludes no other rank */
    memset(bins, 0, BINS * sizeof *bins);
    MPI_Win_sync(win);           /* other ranks see the zeros, */
    MPI_Barrier(MPI_COMM_WORLD); /* and begin when all ranks have stored theirs */

    unsigned state = 1 + (unsigned)rank;
    const double begin = MPI_Wtime();
    for (long i = 0; i < times; i++) {
        state = state * 1103515245 + 12345;
        count((int)(state >> 16) % BINS, ranks, win);
    }
    MPI_Win_flush_all(win);      /* completes what this rank has issued, */
    MPI_Barrier(MPI_COMM_WORLD); /* and the barrier what the others have; */
    MPI_Win_sync(win);           /* the loads below see all of it */
    const double seconds = MPI_Wtime() - begin;

    long all = 0;
    for (int i = 0; i < BINS; i++)
        all += bins[i];
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const int right = all == times * ranks;
    if (rank == 0)
        printf("%s: %ld of %ld, %.0f ns each\n", right ? "right" : "WRONG", all, times * ranks,
               seconds * 1e9 / (double)times);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return !right;
}
