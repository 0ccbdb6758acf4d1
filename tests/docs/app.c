/* The reader's own program in the pages: each rank puts a row into its right neighbour's window. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    enum { ROW = 1024 };
    static double row[ROW];
    int rank, ranks;
    double *rows;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(sizeof row, sizeof *rows, MPI_INFO_NULL, MPI_COMM_WORLD, &rows, &win);
    MPI_Win_set_name(win, "rows");
    for (int i = 0; i < ROW; i++)
        row[i] = rank;
    for (int step = 0; step < 10; step++) {
        MPI_Win_fence(0, win);
        MPI_Put(row, ROW, MPI_DOUBLE, (rank + 1) % ranks, 0, ROW, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
    }
    int is_right = rows[0] == (rank + ranks - 1) % ranks;
    MPI_Win_free(&win);
    MPI_Finalize();
    if (!is_right)
        fprintf(stderr, "rank %d has the wrong row\n", rank);
    return !is_right;
}
