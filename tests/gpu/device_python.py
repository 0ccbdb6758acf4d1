#!/usr/bin/python3
"""Device memory from mpi4py: an object with __cuda_array_interface__, as CuPy's and Numba's arrays
have it, is the window's memory and the buffer of operations. Skipped (77) under a host for which
mpi4py was not built."""

import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bindings", "python"))

from job import MPI, left, rank, right, run, world  # noqa: E402

import numpy  # noqa: E402

COUNT = 500
cuda = ctypes.CDLL("libcuda.so.1")


def need(error):
    assert error == 0, f"the driver failed: {error}"


class DeviceArray:
    """Numbers of 64 bits in device memory."""

    def __init__(self, numbers):
        pointer = ctypes.c_uint64()
        need(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(numbers.nbytes)))
        self.pointer, self.count = pointer.value, numbers.size
        self.__cuda_array_interface__ = {"shape": numbers.shape, "typestr": "<i8", "data": (self.pointer, False), "version": 3}
        self.copy(self.pointer, numbers.ctypes.data)

    def copy(self, to, source):
        need(cuda.cuMemcpy(ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(8 * self.count)))
        need(cuda.cuCtxSynchronize())

    def numbers(self):
        numbers = numpy.empty(self.count, dtype="i8")
        self.copy(numbers.ctypes.data, self.pointer)
        return numbers

    def free(self):
        need(cuda.cuMemFree_v2(ctypes.c_uint64(self.pointer)))


def arrays():
    context = ctypes.c_void_p()
    need(cuda.cuInit(0))
    need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    need(cuda.cuCtxSetCurrent(context))
    numbers = numpy.arange(COUNT, dtype="i8")
    field, buffer = DeviceArray(0 * numbers), DeviceArray(rank + numbers)
    window = MPI.Win.Create(field, disp_unit=8, comm=world)
    window.Fence()
    window.Put(buffer, right)
    window.Fence()
    window.Accumulate(buffer, right, op=MPI.SUM)
    window.Fence()
    assert (field.numbers() == 2 * (left + numbers)).all(), field.numbers()
    window.Lock(right, MPI.LOCK_SHARED)
    window.Get(buffer, right)
    window.Unlock(right)
    assert (buffer.numbers() == 2 * (rank + numbers)).all(), buffer.numbers()
    window.Free()
    field.free()
    buffer.free()


run(arrays)
