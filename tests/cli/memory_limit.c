/* Windows of 200 MiB per rank, of which the ranks touch little, and one of 20 MiB in full use: for
 * a memory limit below the total size. Each rank prints "done". */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define MIB ((MPI_Aint)1 << 20)

static int rank, size;

/* The left neighbour puts into the last byte of the window; returns whether the data arrived. */
static int put_at_end(MPI_Win win, const char *memory, MPI_Aint size_bytes)
{
    char value = 7;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_CHAR, (rank + 1) % size, size_bytes - 1, 1, MPI_CHAR, win);
    MPI_Win_fence(0, win);
    return memory[size_bytes - 1] == value;
}

int main(int argc, char **argv)
{
    char *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(200 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    int arrived = put_at_end(win, memory, 200 * MIB);
    MPI_Win_free(&win);
    MPI_Alloc_mem(200 * MIB, MPI_INFO_NULL, &memory);
    MPI_Win_create(memory, 200 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    arrived &= put_at_end(win, memory, 200 * MIB);
    MPI_Win_free(&win);
    MPI_Free_mem(memory);
    MPI_Win_allocate(20 * MIB, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 1, 20 << 20);
    arrived &= put_at_end(win, memory, 20 * MIB);
    MPI_Win_free(&win);
    if (arrived)
        puts("done");
    MPI_Finalize();
    return arrived ? 0 : 1;
}
