"""Shared by the mpi4py tests: skips before MPI starts, the ranks, and a runner of cases.

Every rank runs the same cases in one order. An exception in one ends the job, to leave no rank
waiting. Imported before anything else of MPI."""

import os
import sys
import traceback

from host import mpi4py_host

SKIP = 77


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIP)


try:
    host = mpi4py_host()
except ImportError as error:
    skip(str(error))

if (host == "openmpi") != ("OMPI_COMM_WORLD_SIZE" in os.environ):
    skip("mpi4py was built for another host")

from mpi4py import MPI  # noqa: E402  (starts MPI, so that it comes after the skips)

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
node = world.Split_type(MPI.COMM_TYPE_SHARED)  # the ranks that share memory with this one


def run(*cases):
    """Runs the cases; with names as the program's arguments, only those."""
    for case in cases:
        if sys.argv[1:] and case.__name__ not in sys.argv[1:]:
            continue
        try:
            case()
        except BaseException:
            print(f"not ok {case.__name__} (rank {rank})", flush=True)
            traceback.print_exc()
            sys.stderr.flush()
            world.Abort(1)
        world.Barrier()
        if rank == 0:
            print(f"ok {case.__name__}", flush=True)
