"""A ticket lock from Python with mpi4py, for `with`. ticket_lock.c explains it.

Operations need buffers, so a number is an array of one element.

Run: mpiexec -n 4 python3 ticket_lock.py"""

import os
import sys

import numpy
from mpi4py import MPI

ROUNDS, HOME = 100, 0  # HOME is the rank with the words
NEXT, SERVED, VALUE, WORDS = 0, 1, 2, 3  # the lock protects VALUE


class TicketLock:
    """Two words of a window, at HOME: the next ticket, and the ticket that is served. The window
    must be in an epoch of Lock_all."""

    def __init__(self, window):
        self.window = window

    def fetch_and_op(self, op, disp):
        """Adds 1 and returns the previous value. MPI.NO_OP adds nothing."""
        one, before = numpy.ones(1, numpy.int64), numpy.empty(1, numpy.int64)
        self.window.Fetch_and_op(one, before, HOME, disp, op)
        self.window.Flush(HOME)  # `before` has no value until then
        return before[0]

    def __enter__(self):
        ticket = self.fetch_and_op(MPI.SUM, NEXT)
        while self.fetch_and_op(MPI.NO_OP, SERVED) != ticket:
            os.sched_yield()  # the holder may need this processor

    def __exit__(self, *_):
        self.window.Flush(HOME)  # first the operations of the critical section
        self.fetch_and_op(MPI.SUM, SERVED)


world = MPI.COMM_WORLD
rank, ranks = world.Get_rank(), world.Get_size()
itemsize = numpy.dtype(numpy.int64).itemsize
win = MPI.Win.Allocate(WORDS * itemsize if rank == HOME else 0, itemsize, comm=world)
win.Lock_all()  # an epoch for the whole program; it excludes no other rank
numpy.frombuffer(win.tomemory(), numpy.int64)[:] = 0
win.Sync()  # for the separate memory model: copies my stores to the public window
world.Barrier()

lock = TicketLock(win)
value = numpy.empty(1, numpy.int64)
for _ in range(ROUNDS):
    with lock:
        # Get and put are two operations. The lock makes one of them.
        win.Get(value, HOME, VALUE)
        win.Flush(HOME)
        value += 1
        win.Put(value, HOME, VALUE)

world.Barrier()
win.Get(value, HOME, VALUE)
win.Unlock_all()  # completes the get
right = value[0] == ROUNDS * ranks
if rank == 0:
    print(f"{'right' if right else 'WRONG'}: {value[0]} of {ROUNDS * ranks}")
win.Free()
sys.exit(not right)
