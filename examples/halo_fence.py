"""Halo exchange with fences from Python with mpi4py: Conway's game of life on a grid that is
distributed by rows. halo_fence.c explains the exchange, and why two halos are used in turn.

A window's memory is a NumPy array over the buffer of MPI.Win.Allocate, and whole rows are put.

Run: mpiexec -n 4 python3 halo_fence.py"""

import sys

import numpy
from mpi4py import MPI

ROWS, COLUMNS, ABOVE, BELOW = 8, 24, 0, 1

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
up, down = (rank - 1) % ranks, (rank + 1) % ranks
steps = 4 * ROWS * ranks  # the glider passes all ranks once


def glider(column):
    """This rank's rows of a grid in which a glider begins at a column. In four steps it moves one
    row down and one column on."""
    grid = numpy.zeros((ROWS * ranks, COLUMNS), numpy.uint8)
    grid[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    return numpy.roll(grid, column, 1)[rank * ROWS : (rank + 1) * ROWS].copy()


def next_step(above, cells, below):
    grid = numpy.vstack([above, cells, below])
    three = grid + numpy.roll(grid, 1, 1) + numpy.roll(grid, -1, 1)  # with those left and right
    alive = three[:-2] + three[1:-1] + three[2:] - cells
    return ((alive == 3) | ((alive == 2) & (cells == 1))).astype(numpy.uint8)


# The displacement unit is one row, so that displacements are numbers of rows.
win = MPI.Win.Allocate(4 * COLUMNS, COLUMNS, comm=world)
halos = numpy.frombuffer(win.tomemory(), numpy.uint8).reshape(2, 2, COLUMNS)
cells = glider(0)
win.Fence(MPI.MODE_NOPRECEDE)  # no operations come before it
for step in range(steps):
    turn = step % 2
    # My first row is below the rows of the rank above, and my last row is above those of the rank
    # below. Neither may change before the fence has completed the puts: next_step makes new ones.
    win.Put(cells[0], up, 2 * turn + BELOW)
    win.Put(cells[-1], down, 2 * turn + ABOVE)
    win.Fence(MPI.MODE_NOSUCCEED if step == steps - 1 else 0)
    cells = next_step(halos[turn, ABOVE], cells, halos[turn, BELOW])

# The glider is back in its rows, and ROWS * ranks columns on.
wrong = world.allreduce(int((cells != glider(ROWS * ranks)).sum()))
if rank == 0:
    verdict = "WRONG" if wrong else "right"
    print(f"{verdict}: {wrong} wrong cells after {steps} steps on {ranks} ranks")
win.Free()
sys.exit(wrong != 0)
