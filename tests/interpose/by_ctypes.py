"""A put by functions that ctypes finds, as in a Python program without mpi4py.

The argument is the host's library, or "" for the process itself."""

import ctypes
import sys

mpi = ctypes.CDLL(sys.argv[1] or None)
if hasattr(mpi, "ompi_mpi_comm_world"):
    def address(name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))

    WORLD, NO_INFO, LONG = address("ompi_mpi_comm_world"), address("ompi_mpi_info_null"), address("ompi_mpi_long")
    Window = ctypes.c_void_p
else:
    WORLD, NO_INFO, LONG = 0x44000000, 0x1C000000, 0x4C000807
    Window = ctypes.c_int

rank, size = ctypes.c_int(), ctypes.c_int()
window, memory, value = Window(), (ctypes.c_long * 100)(), ctypes.c_long()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
mpi.MPI_Win_create(memory, ctypes.c_ssize_t(800), 8, NO_INFO, WORLD, ctypes.byref(window))
mpi.MPI_Win_fence(0, window)
value.value = rank.value + 1
mpi.MPI_Put(ctypes.byref(value), 1, LONG, (rank.value + 1) % size.value, ctypes.c_ssize_t(3), 1, LONG, window)
mpi.MPI_Win_fence(0, window)
version, length = ctypes.create_string_buffer(9000), ctypes.c_int()
mpi.MPI_Get_library_version(version, ctypes.byref(length))
good = memory[3] == (rank.value + size.value - 1) % size.value + 1 and b"Oriel" in version.value
mpi.MPI_Win_free(ctypes.byref(window))
mpi.MPI_Finalize()
if rank.value == 0 and good:
    print("arrived")
sys.exit(not good)
