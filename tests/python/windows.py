#!/usr/bin/python3
"""Windows from Python: mpi4py with NumPy arrays as window memory and as origin buffers.

Every rank works with its neighbours and with rank 0; a wrong value is an exception, which ends the job.
Run by the test rows as an argument of the interpreter; skipped (77) under a host that mpi4py was not built for."""

import importlib.util
import os
import sys

SKIP = 77


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIP)


def built_for_mpich():
    """The host that mpi4py's extension needs, by the library's name in the file: importing it would start MPI."""
    with open(importlib.util.find_spec("mpi4py.MPI").origin, "rb") as extension:
        return b"libmpich.so" in extension.read()


try:
    import numpy
    for_mpich = built_for_mpich()
except ImportError as error:
    skip(str(error))

if for_mpich == ("OMPI_COMM_WORLD_SIZE" in os.environ):
    skip("mpi4py was built for another host")

from mpi4py import MPI  # noqa: E402  (starts MPI, so that it comes after the skips)

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size


def create_puts_into_an_array():
    memory = numpy.zeros(10, dtype=numpy.float64)
    window = MPI.Win.Create(memory, disp_unit=memory.itemsize, comm=world)
    window.Fence()
    window.Put(numpy.full(3, rank + 0.5), right, target=4)
    window.Fence()
    assert memory.tolist() == [0] * 4 + [left + 0.5] * 3 + [0] * 3, memory
    window.Free()


def allocate_counts_by_fetch_and_op():
    window = MPI.Win.Allocate(8 * 8, disp_unit=8, comm=world)
    words = numpy.frombuffer(window, dtype=numpy.int64)
    words[:] = 0
    world.Barrier()
    ticket = numpy.full(1, -1, dtype=numpy.int64)
    window.Lock_all()
    window.Fetch_and_op(numpy.ones(1, dtype=numpy.int64), ticket, 0, 2, MPI.SUM)
    window.Flush(0)
    tickets = world.allgather(int(ticket[0]))
    assert sorted(tickets) == list(range(size)), tickets
    seen = numpy.zeros(8, dtype=numpy.int64)
    window.Get(seen, 0)
    window.Flush(0)
    assert seen.tolist() == [0, 0, size, 0, 0, 0, 0, 0], seen
    window.Unlock_all()
    assert window.Get_attr(MPI.WIN_SIZE) == 64
    assert window.Get_attr(MPI.WIN_DISP_UNIT) == 8
    del words
    world.Barrier()
    window.Free()


def shared_memory_is_seen_by_all():
    window = MPI.Win.Allocate_shared(16, disp_unit=8, comm=world)
    mine = numpy.frombuffer(window, dtype=numpy.int64)
    window.Fence()
    mine[:] = 100 * rank
    window.Fence()
    memory, unit = window.Shared_query(right)
    assert unit == 8
    assert numpy.frombuffer(memory, dtype=numpy.int64).tolist() == [100 * right] * 2
    window.Fence()
    del mine, memory
    window.Free()


def active_target_accumulates():
    memory = numpy.ones(4, dtype=numpy.int32)
    window = MPI.Win.Create(memory, disp_unit=4, comm=world)
    group = world.Get_group()
    window.Post(group)
    window.Start(group)
    window.Accumulate(numpy.arange(4, dtype=numpy.int32), right, op=MPI.SUM)
    window.Complete()
    window.Wait()
    assert memory.tolist() == [1, 2, 3, 4], memory
    window.Free()


def errors_are_exceptions():
    memory = numpy.zeros(4, dtype=numpy.int32)
    window = MPI.Win.Create(memory, disp_unit=4, comm=world)
    window.Set_errhandler(MPI.ERRORS_RETURN)
    window.Lock(right)
    try:
        window.Put(numpy.ones(4, dtype=numpy.int32), right, target=1)
        raise AssertionError("a put beyond the end was accepted")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RMA_RANGE, error
    window.Unlock(right)
    world.Barrier()
    assert not memory.any()
    window.Free()


for case in (create_puts_into_an_array, allocate_counts_by_fetch_and_op, shared_memory_is_seen_by_all,
             active_target_accumulates, errors_are_exceptions):
    case()
    world.Barrier()
    if rank == 0:
        print(f"ok {case.__name__}", flush=True)
