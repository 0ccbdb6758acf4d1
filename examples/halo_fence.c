/* Halo exchange with fences: Conway's game of life on a grid that is distributed by rows.
 *
 * Each rank has ROWS rows. A step needs one row more on either side, which the neighbours have. So
 * each rank puts its first and its last row into its neighbours' halo. MPI_Win_fence completes the
 * puts of all ranks: it is collective, the simplest synchronisation, and like a barrier in cost.
 *
 * Only the halo is window memory, because no other rank accesses the cells. There are two halos,
 * used in turn: a neighbour that is already in the next step puts into the other one. With a single
 * halo, a second fence would have to separate this step's loads from the next step's puts.
 *
 * A fence makes puts visible to loads in both memory models, and no rank stores into its window.
 * halo_pscw.c does the same without a collective call. Run: mpiexec -n 4 ./halo_fence */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 8, COLUMNS = 24, ABOVE = 0, BELOW = 1 };

typedef unsigned char row_t[COLUMNS]; /* 1 for a cell that is alive */

/* The pattern at the start, a glider: in four steps it moves one row down and one column on. */
static int glider(int row, int column)
{
    return (row == 0 && column == 1) || (row == 1 && column == 2) || (row == 2 && column <= 2);
}

static void next_row(const row_t above, const row_t row, const row_t below, row_t next)
{
    for (int c = 0; c < COLUMNS; c++) {
        int w = (c + COLUMNS - 1) % COLUMNS, e = (c + 1) % COLUMNS;
        int alive =
            above[w] + above[c] + above[e] + row[w] + row[e] + below[w] + below[c] + below[e];
        next[c] = alive == 3 || (alive == 2 && row[c]);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    row_t cells[ROWS], next[ROWS], (*halos)[2]; /* halos[step % 2][ABOVE or BELOW] */
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    const int rows = ROWS * ranks, steps = 4 * rows; /* the glider passes all ranks once */

    /* The displacement unit is one row, so that displacements are numbers of rows. */
    MPI_Win_allocate(2 * sizeof *halos, sizeof(row_t), MPI_INFO_NULL, MPI_COMM_WORLD, &halos, &win);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            cells[r][c] = (unsigned char)glider(rank * ROWS + r, c);

    MPI_Win_fence(MPI_MODE_NOPRECEDE, win); /* no operations come before it */
    for (int step = 0; step < steps; step++) {
        row_t *halo = halos[step % 2];
        /* My first row is below the rows of the rank above, and my last row is above those of the
         * rank below. Neither may change before the fence has completed the puts. */
        MPI_Put(cells[0], COLUMNS, MPI_UNSIGNED_CHAR, up, step % 2 * 2 + BELOW, COLUMNS,
                MPI_UNSIGNED_CHAR, win);
        MPI_Put(cells[ROWS - 1], COLUMNS, MPI_UNSIGNED_CHAR, down, step % 2 * 2 + ABOVE, COLUMNS,
                MPI_UNSIGNED_CHAR, win);
        MPI_Win_fence(step == steps - 1 ? MPI_MODE_NOSUCCEED : 0, win);
        for (int r = 0; r < ROWS; r++)
            next_row(r == 0 ? halo[ABOVE] : cells[r - 1], cells[r],
                     r == ROWS - 1 ? halo[BELOW] : cells[r + 1], next[r]);
        memcpy(cells, next, sizeof cells);
    }

    /* The glider is back in its rows, and `rows` columns on. */
    int wrong = 0;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            wrong += cells[r][(c + rows) % COLUMNS] != glider(rank * ROWS + r, c);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d wrong cells after %d steps on %d ranks\n", wrong ? "WRONG" : "right", wrong,
               steps, ranks);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
