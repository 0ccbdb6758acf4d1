/* MPI_Pcontrol of each level succeeds, and level 2 flushes what is traced of this process: the file
 * then has all operations made before. The program requests its own trace. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROUNDS = 20, PUTS = 500, EVENT_BYTES = 48 };

/* By rank. */
static long traced_bytes(const char *folder, int rank)
{
    char path[128];
    struct stat info;
    snprintf(path, sizeof path, "%s/rank-%d.oriel", folder, rank);
    return stat(path, &info) == 0 ? (long)info.st_size : 0;
}

static void folder_remove(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0)
        printf("%s stays\n", folder);
}

int main(int argc, char **argv)
{
    char folder[64];
    int rank, value = 0, wrong = 0, all = 0;
    int *base;
    MPI_Win win;
    snprintf(folder, sizeof folder, "/tmp/oriel-levels.%ld", (long)getpgrp());
    setenv("ORIEL_TRACE", folder, 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    wrong += MPI_Pcontrol(0) != MPI_SUCCESS || MPI_Pcontrol(1) != MPI_SUCCESS;
    wrong += MPI_Pcontrol(9, "unknown") != MPI_SUCCESS || MPI_Pcontrol(-1) != MPI_SUCCESS;
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < PUTS; i++)
            MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
        wrong += MPI_Pcontrol(2) != MPI_SUCCESS;
        wrong += traced_bytes(folder, rank) < round * PUTS * EVENT_BYTES;
    }
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s level_2_flushes_the_trace\n", all == 0 ? "ok" : "not ok");
    MPI_Finalize();
    folder_remove(folder); /* it may be one rank's, or all ranks' */
    return all != 0;
}
