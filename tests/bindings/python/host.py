"""Whether mpi4py can run here, and for which host it was built. Importing it would start MPI, so
this reads the file of its extension."""

import importlib.util


def mpi4py_host():
    """mpich or openmpi. Raises ImportError without mpi4py or NumPy."""
    import numpy  # noqa: F401
    with open(importlib.util.find_spec("mpi4py.MPI").origin, "rb") as extension:
        return "mpich" if b"libmpich.so" in extension.read() else "openmpi"
