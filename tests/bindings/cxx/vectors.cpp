// Passes numbers around a ring of ranks, through windows over std::vector and allocated memory.
#include "../../mpi/skip_finalize.h"

#include <cstdio>
#include <vector>

static int ring(MPI_Win win, const long *mine)
{
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const std::vector<long> numbers(100, rank + 1);
    MPI_Win_fence(0, win);
    MPI_Put(numbers.data(), 100, MPI_LONG, (rank + 1) % size, 0, 100, MPI_LONG, win);
    MPI_Win_fence(0, win);
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += mine[i] != (rank + size - 1) % size + 1;
    MPI_Barrier(MPI_COMM_WORLD); // rank 0 reads it before the others count there
    const long one = 1;
    long before = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        wrong += mine[0] != 2 * size;
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win win;
    std::vector<long> vector(100);
    MPI_Win_create(vector.data(), 100 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    int wrong = ring(win, vector.data());
    MPI_Win_free(&win);
    long *memory = nullptr;
    MPI_Win_allocate(100 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    wrong += ring(win, memory);
    MPI_Win_free(&win);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%s a_ring_through_windows_of_cxx_containers\n", all == 0 ? "ok" : "not ok");
    leave_without_finalize(all != 0);
    MPI_Finalize();
    return all != 0;
}
