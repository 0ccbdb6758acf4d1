/* Halo exchange with post, start, complete and wait: Conway's game of life, as in halo_fence.c.
 *
 * Each rank synchronises with its two neighbours only, by two pairs of calls:
 *
 *     exposure, at the target:   MPI_Win_post(neighbours) ... MPI_Win_wait
 *     access, at the origin:     MPI_Win_start(neighbours) ... MPI_Win_complete
 *
 * A put reaches the target after its post, and is in its memory when its wait returns. One halo
 * suffices: a neighbour cannot put into it for the next step before this rank posts again, which it
 * does when it no longer needs the halo. The inner rows need no halo, so they are computed while
 * the puts are on their way.
 *
 * MPI_Win_wait makes puts visible to loads in both memory models, and no rank stores into its
 * window. Run: mpiexec -n 4 ./halo_pscw */
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
    row_t cells[ROWS], next[ROWS], *halo; /* halo[ABOVE or BELOW] */
    MPI_Win win;
    MPI_Group all, neighbours;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    const int rows = ROWS * ranks, steps = 4 * rows; /* the glider passes all ranks once */

    /* A group has no rank twice: of two ranks, the other one is both neighbours. */
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, up == down ? 1 : 2, (const int[]){up, down}, &neighbours);
    MPI_Win_allocate(2 * sizeof *halo, sizeof *halo, MPI_INFO_NULL, MPI_COMM_WORLD, &halo, &win);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++)
            cells[r][c] = (unsigned char)glider(rank * ROWS + r, c);

    for (int step = 0; step < steps; step++) {
        MPI_Win_post(neighbours, 0, win);  /* they may write my halo, */
        MPI_Win_start(neighbours, 0, win); /* and I write theirs */
        MPI_Put(cells[0], COLUMNS, MPI_UNSIGNED_CHAR, up, BELOW, COLUMNS, MPI_UNSIGNED_CHAR, win);
        MPI_Put(cells[ROWS - 1], COLUMNS, MPI_UNSIGNED_CHAR, down, ABOVE, COLUMNS,
                MPI_UNSIGNED_CHAR, win);
        for (int r = 1; r < ROWS - 1; r++)
            next_row(cells[r - 1], cells[r], cells[r + 1], next[r]);
        MPI_Win_complete(win); /* my cells may change again */
        MPI_Win_wait(win);     /* my halo has the neighbours' rows */
        next_row(halo[ABOVE], cells[0], cells[1], next[0]);
        next_row(cells[ROWS - 2], cells[ROWS - 1], halo[BELOW], next[ROWS - 1]);
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
    MPI_Group_free(&neighbours);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
