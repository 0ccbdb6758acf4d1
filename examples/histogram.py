"""Counts into a histogram that is spread over all ranks, from Python with mpi4py. histogram.c is
the same in C.

Run: mpiexec -n 4 python3 histogram.py [TIMES], where TIMES is how often each rank counts."""

import sys

import numpy
from mpi4py import MPI

BINS = 64

world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
times = int(sys.argv[1]) if len(sys.argv) > 1 else 1000

# The displacement unit is an element, so that displacements are indices.
itemsize = numpy.dtype(numpy.int64).itemsize
win = MPI.Win.Allocate(BINS * itemsize, itemsize, comm=world)
bins = numpy.frombuffer(win.tomemory(), numpy.int64)  # the elements of this rank
win.Lock_all()  # an epoch for the whole program; it excludes no other rank
bins[:] = 0
win.Sync()  # other ranks see the zeros,
world.Barrier()  # and begin when all ranks have stored theirs

# MPI reads an operation's buffer until the flush: this array lives longer than all counts.
one = numpy.ones(1, numpy.int64)
chosen = numpy.random.default_rng(rank).integers(BINS, size=times).tolist()
begin = MPI.Wtime()
for bin in chosen:
    # Bin b is element b // ranks of rank b % ranks.
    win.Accumulate(one, bin % ranks, bin // ranks, MPI.SUM)
win.Flush_all()  # completes what this rank has issued,
world.Barrier()  # and the barrier what the others have;
win.Sync()  # the loads below see all of it
seconds = MPI.Wtime() - begin

total = world.allreduce(int(bins.sum()))
right = total == times * ranks
if rank == 0:
    verdict = "right" if right else "WRONG"
    print(f"{verdict}: {total} of {times * ranks}, {seconds * 1e9 / times:.0f} ns each")
win.Unlock_all()
win.Free()
sys.exit(not right)
