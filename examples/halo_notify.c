/* Halo exchange with notified puts: Conway's game of life on a grid of ranks in two dimensions.
 *
 * Each rank has eight neighbours, and puts an edge or a corner of its block into a slot of each.
 * The put raises a counter of its target (include/oriel/ext.h), and a rank goes on when its counter
 * has risen by eight. It waits for its neighbours only, and for nothing after its own puts.
 *
 * A neighbour may be one step ahead, but not two: it needs this rank's cells for the next one. So
 * slots and counters of even and odd steps differ, and a counter never mixes two steps.
 *
 * Without Oriel a fence ends the step, which waits for all ranks.
 * Run: mpiexec -n 4 oriel run ./halo_notify */
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>
#include <string.h>

enum { N = 16, NEIGHBOURS = 8, TURNS = 2 };

static const int directions[NEIGHBOURS][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1},
                                              {0, 1},   {1, -1}, {1, 0},  {1, 1}};
static unsigned char cells[N + 2][N + 2];       /* 1 for a cell that is alive; with halo */
static unsigned char edges[NEIGHBOURS][N];      /* on their way */
static unsigned char (*arrived)[NEIGHBOURS][N]; /* by turn: the window */
static int to[NEIGHBOURS];                      /* rank in each direction */
static MPI_Win win;

/* The pattern at the start, a glider: in four steps it moves one row down and one column on. */
static int glider(int row, int column)
{
    return (row == 0 && column == 1) || (row == 1 && column == 2) || (row == 2 && column <= 2);
}

static int first_of(int side, int halo)
{
    return side == 0 ? 1 : side < 0 ? 1 - halo : N + halo;
}

/* Copies an edge or corner of the block out, or one of its halo (halo is 1) in. */
static void edge_copy(int rows, int columns, int halo, unsigned char *edge)
{
    const int row = first_of(rows, halo), column = first_of(columns, halo);
    for (int r = row, i = 0; r <= (rows == 0 ? N : row); r++)
        for (int c = column; c <= (columns == 0 ? N : column); c++, i++)
            if (halo)
                cells[r][c] = edge[i];
            else
                edge[i] = cells[r][c];
}

/* What was sent in a direction comes from the opposite one. */
static void exchange(int turn)
{
    for (int d = 0; d < NEIGHBOURS; d++) {
        const MPI_Aint slot = (MPI_Aint)(turn * NEIGHBOURS + d) * N;
        edge_copy(directions[d][0], directions[d][1], 0, edges[d]);
        if (MPIX_Query_oriel())
            MPIX_Put_notify(edges[d], N, MPI_BYTE, to[d], slot, N, MPI_BYTE, turn, win);
        else
            MPI_Put(edges[d], N, MPI_BYTE, to[d], slot, N, MPI_BYTE, win);
    }
    if (MPIX_Query_oriel()) {
        MPI_Win_flush_local_all(win); /* edges may change */
        MPIX_Win_notify_wait(win, turn, NEIGHBOURS);
    } else {
        MPI_Win_fence(0, win);
    }
    for (int d = 0; d < NEIGHBOURS; d++)
        edge_copy(-directions[d][0], -directions[d][1], 1, arrived[turn][d]);
}

static void step(void)
{
    static unsigned char next[N + 2][N + 2];
    for (int r = 1; r <= N; r++)
        for (int c = 1; c <= N; c++) {
            int alive = -cells[r][c];
            for (int i = 0; i < 9; i++)
                alive += cells[r - 1 + i / 3][c - 1 + i % 3];
            next[r][c] = alive == 3 || (alive == 2 && cells[r][c]);
        }
    memcpy(cells, next, sizeof cells);
}

int main(int argc, char **argv)
{
    enum { STEPS = 4 * N }; /* the glider moves to the next block, in both dimensions */
    int rank, ranks, sizes[2] = {0, 0}, wrong = 0;
    MPI_Info info;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, sizes);
    const int row = rank / sizes[1], column = rank % sizes[1];
    for (int d = 0; d < NEIGHBOURS; d++)
        to[d] = (row + directions[d][0] + sizes[0]) % sizes[0] * sizes[1] +
                (column + directions[d][1] + sizes[1]) % sizes[1];
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2"); /* TURNS */
    MPI_Win_allocate(TURNS * sizeof *arrived, 1, info, MPI_COMM_WORLD, &arrived, &win);
    MPI_Info_free(&info);
    for (int r = 0; r < N && rank == 0; r++)
        for (int c = 0; c < N; c++)
            cells[r + 1][c + 1] = (unsigned char)glider(r, c);
    if (MPIX_Query_oriel())
        MPI_Win_lock_all(0, win);
    else
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int s = 0; s < STEPS; s++) {
        exchange(s % TURNS);
        step();
    }
    if (MPIX_Query_oriel())
        MPI_Win_unlock_all(win);
    else
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

    const int is_there = row == 1 % sizes[0] && column == 1 % sizes[1];
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++)
            wrong += cells[r + 1][c + 1] != (is_there && glider(r, c));
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d wrong cells after %d steps on %d by %d ranks\n", wrong ? "WRONG" : "right",
               wrong, STEPS, sizes[0], sizes[1]);
    MPI_Win_free(&win);
    MPI_Finalize();
    return wrong != 0;
}
