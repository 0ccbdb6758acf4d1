// Halo exchange with fences in C++: Conway's game of life on a grid that is distributed by rows.
// halo_fence.c explains the exchange, and why two halos are used in turn.
//
// A window is memory, so it holds types that can be copied byte by byte, such as std::array of
// numbers, and no std::vector. The object that owns it frees it; that is collective.
#include <mpi.h>
#include <array>
#include <cstdio>

constexpr int rows = 8, columns = 24;
using Row = std::array<unsigned char, columns>; // 1 for a cell that is alive
enum Side { above, below };

class Halos
{
  public:
    // The displacement unit is one row, so that displacements are numbers of rows.
    Halos()
    {
        MPI_Win_allocate(4 * sizeof(Row), sizeof(Row), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                         &win);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win); // no operations come before it
    }
    ~Halos()
    {
        MPI_Win_free(&win);
    }
    Halos(const Halos &) = delete;
    Halos &operator=(const Halos &) = delete;

    // Puts a row to each neighbour, and returns those that have arrived: above, then below.
    const Row *exchange(const Row &first, int up, const Row &last, int down, int assertion)
    {
        turn = !turn;
        MPI_Put(first.data(), columns, MPI_UNSIGNED_CHAR, up, 2 * turn + below, columns,
                MPI_UNSIGNED_CHAR, win);
        MPI_Put(last.data(), columns, MPI_UNSIGNED_CHAR, down, 2 * turn + above, columns,
                MPI_UNSIGNED_CHAR, win);
        MPI_Win_fence(assertion, win);
        return memory + 2 * turn;
    }

  private:
    Row *memory;
    MPI_Win win;
    int turn = 0;
};

// The pattern at the start, a glider: in four steps it moves one row down and one column on.
static bool glider(int row, int column)
{
    return (row == 0 && column == 1) || (row == 1 && column == 2) || (row == 2 && column <= 2);
}

static Row next_row(const Row &north, const Row &row, const Row &south)
{
    Row next;
    for (int c = 0; c < columns; c++) {
        int alive = -row[c];
        for (int i : {(c + columns - 1) % columns, c, (c + 1) % columns})
            alive += north[i] + row[i] + south[i];
        next[c] = alive == 3 || (alive == 2 && row[c]);
    }
    return next;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int up = (rank + ranks - 1) % ranks, down = (rank + 1) % ranks;
    const int all_rows = rows * ranks, steps = 4 * all_rows; // the glider passes all ranks once
    std::array<Row, rows> cells, next;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            cells[r][c] = glider(rank * rows + r, c);
    { // the halos end before MPI does
        Halos halos;
        for (int step = 0; step < steps; step++) {
            const Row *halo = halos.exchange(cells.front(), up, cells.back(), down,
                                             step == steps - 1 ? MPI_MODE_NOSUCCEED : 0);
            for (int r = 0; r < rows; r++)
                next[r] = next_row(r == 0 ? halo[above] : cells[r - 1], cells[r],
                                   r == rows - 1 ? halo[below] : cells[r + 1]);
            cells = next;
        }
    }
    for (int r = 0; r < rows; r++) // the glider is back in its rows, and all_rows columns on
        for (int c = 0; c < columns; c++)
            wrong += cells[r][(c + all_rows) % columns] != glider(rank * rows + r, c);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        std::printf("%s: %d wrong cells after %d steps on %d ranks\n", wrong ? "WRONG" : "right",
                    wrong, steps, ranks);
    MPI_Finalize();
    return wrong != 0;
}
