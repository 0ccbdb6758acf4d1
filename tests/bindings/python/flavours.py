#!/usr/bin/python3
"""Windows of every flavour from mpi4py: their memory as NumPy arrays, their attributes, and errors
as exceptions.

Every rank works with its neighbours; each case creates and frees its own windows. Under a host
for which mpi4py was not built, the test is skipped (77)."""

from job import MPI, left, node, rank, right, run, size, world

import numpy


def put_by_fence(window, disp):
    window.Fence()
    window.Put(numpy.array([rank + 0.25]), right, target=disp)
    window.Fence()


def attributes(window):
    """From the properties of mpi4py and from the underlying calls, which must agree."""
    base, nbytes, unit = window.attrs
    assert (nbytes, unit) == (window.Get_attr(MPI.WIN_SIZE), window.Get_attr(MPI.WIN_DISP_UNIT))
    assert base == window.Get_attr(MPI.WIN_BASE)
    assert window.flavor == window.Get_attr(MPI.WIN_CREATE_FLAVOR)
    assert window.model == MPI.WIN_UNIFIED
    return base, nbytes, unit


def created_over_an_array():
    memory = numpy.zeros(8)
    window = MPI.Win.Create(memory, disp_unit=8, comm=world)
    assert attributes(window) == (memory.ctypes.data, 64, 8)
    assert window.flavor == MPI.WIN_FLAVOR_CREATE
    put_by_fence(window, 3)
    assert memory.tolist() == [0, 0, 0, left + 0.25, 0, 0, 0, 0], memory
    assert numpy.frombuffer(window.tomemory(), dtype=float)[3] == left + 0.25
    window.Free()
    assert window == MPI.WIN_NULL


def created_over_part_of_an_array_and_nothing():
    memory = numpy.zeros(8)
    window = MPI.Win.Create(memory[2:6] if rank == 0 else None, disp_unit=8, comm=world)
    assert attributes(window)[1] == (32 if rank == 0 else 0)
    window.Fence()
    if right == 0:
        window.Put(numpy.array([5.0]), 0, target=3)
    window.Fence()
    assert memory.tolist() == ([0] * 5 + [5] + [0] * 2 if rank == 0 else [0] * 8), memory
    window.Free()


def allocated():
    window = MPI.Win.Allocate(64, disp_unit=8, comm=world)
    words = numpy.frombuffer(window, dtype=float)  # the window itself is a buffer
    assert attributes(window) == (words.ctypes.data, 64, 8)
    assert window.flavor == MPI.WIN_FLAVOR_ALLOCATE
    words[:] = 0
    put_by_fence(window, 7)
    assert words.tolist() == [0] * 7 + [left + 0.25], words
    window.Free()


def shared_views_of_all_ranks():
    rank, size = node.Get_rank(), node.Get_size()
    right = (rank + 1) % size
    window = MPI.Win.Allocate_shared((rank + 1) * 8, disp_unit=8, comm=node)
    assert window.flavor == MPI.WIN_FLAVOR_SHARED
    views = []
    for other in range(size):
        memory, unit = window.Shared_query(other)
        assert (len(memory), unit) == ((other + 1) * 8, 8)
        views.append(numpy.frombuffer(memory, dtype=numpy.int64))
    assert attributes(window)[0] == views[rank].ctypes.data
    for other in range(1, size):  # contiguous, as no hint asks for gaps
        assert views[other].ctypes.data == views[other - 1].ctypes.data + 8 * other
    window.Fence()
    views[rank][:] = 10 * rank
    window.Fence()
    assert [view.tolist() for view in views] == [[10 * other] * (other + 1) for other in range(size)]
    window.Fence()
    views[right][0] = rank  # a store to the neighbour, a get by the rank itself
    window.Fence()
    seen = numpy.zeros(1, dtype=numpy.int64)
    window.Get(seen, rank)
    window.Fence()
    assert seen[0] == (rank - 1) % size
    window.Free()


def dynamic_memory_is_attached_by_parts():
    window = MPI.Win.Create_dynamic(comm=world)
    assert window.flavor == MPI.WIN_FLAVOR_DYNAMIC
    assert attributes(window)[1:] == (0, 1)
    parts = [numpy.zeros(4), numpy.zeros(6)]
    for part in parts:
        window.Attach(part)
    addresses = world.allgather([MPI.Get_address(part) for part in parts])
    window.Lock_all()
    window.Put(numpy.array([rank + 0.5]), right, target=(addresses[right][1] + 5 * 8, 1, MPI.DOUBLE))
    window.Accumulate(numpy.array([1.5]), 0, target=(addresses[0][0], 1, MPI.DOUBLE), op=MPI.SUM)
    window.Flush_all()
    seen = numpy.zeros(6)
    window.Get(seen, right, target=(addresses[right][1], 6, MPI.DOUBLE))
    window.Unlock_all()
    assert seen.tolist() == [0] * 5 + [rank + 0.5], seen
    world.Barrier()
    assert parts[1][5] == left + 0.5
    assert parts[0][0] == (1.5 * size if rank == 0 else 0)
    window.Detach(parts[0])
    window.Attach(parts[0][:2])
    window.Detach(parts[0])
    window.Free()


def memory_that_is_not_attached_is_an_error():
    window = MPI.Win.Create_dynamic(comm=world)
    window.Set_errhandler(MPI.ERRORS_RETURN)
    part, other = numpy.zeros(4), numpy.zeros(4)
    addresses = world.allgather(MPI.Get_address(other))
    window.Attach(part)
    expect(MPI.ERR_RMA_ATTACH, lambda: window.Detach(other))
    expect(MPI.ERR_RMA_ATTACH, lambda: window.Attach(part[1:]))

    def put_outside():
        window.Put(numpy.ones(1), right, target=(addresses[right], 1, MPI.DOUBLE))
        window.Flush(right)  # a target on another node reports it only now

    window.Lock(right)
    expect(MPI.ERR_RMA_RANGE, put_outside)
    window.Unlock(right)
    world.Barrier()
    assert not part.any() and not other.any()
    window.Detach(part)
    window.Free()


def names_groups_and_hints_are_the_windows():
    window = MPI.Win.Create(numpy.zeros(2), disp_unit=8, comm=world)
    window.Set_name("of Python")
    assert window.name == window.Get_name() == "of Python"
    group, of_world = window.Get_group(), world.Get_group()
    assert MPI.Group.Compare(group, of_world) == MPI.IDENT
    group.Free()
    of_world.Free()
    hints = MPI.Info.Create()
    hints.Set("no_locks", "true")
    hints.Set("no such hint", "1")
    window.Set_info(hints)
    hints.Free()
    in_use = window.Get_info()
    assert in_use.Get("no_locks") == "true"
    assert in_use.Get("accumulate_ops") == "same_op_no_op"
    in_use.Free()
    again = MPI.Win.f2py(window.py2f())
    assert again == window
    window.Free()


def hints_are_accepted_at_creation():
    hints = MPI.Info.Create()
    hints.Set("alloc_shared_noncontig", "true")
    window = MPI.Win.Allocate_shared(8, disp_unit=8, info=hints, comm=node)
    hints.Free()
    in_use = window.Get_info()
    assert in_use.Get("alloc_shared_noncontig") == "true"
    in_use.Free()
    window.Free()


def user_attributes_have_callbacks():
    removed = []

    def note(window, keyval, value):
        removed.append(value)

    keyval = MPI.Win.Create_keyval(delete_fn=note)
    window = MPI.Win.Create(numpy.zeros(1), comm=world)
    assert window.Get_attr(keyval) is None
    window.Set_attr(keyval, "first")
    assert window.Get_attr(keyval) == "first"
    window.Delete_attr(keyval)
    window.Set_attr(keyval, "second")
    MPI.Win.Free_keyval(keyval)
    window.Free()
    assert removed == ["first", "second"], removed


def expect(error_class, call):
    try:
        call()
    except MPI.Exception as error:
        assert error.Get_error_class() == error_class, error
        assert error.Get_error_string()
    else:
        raise AssertionError(f"no error where class {error_class} was expected")


def errors_are_exceptions():
    memory = numpy.zeros(4, dtype=numpy.int32)
    window = MPI.Win.Create(memory, disp_unit=4, comm=world)
    window.Set_errhandler(MPI.ERRORS_RETURN)
    ones = numpy.ones(4, dtype=numpy.int32)
    expect(MPI.ERR_RMA_SYNC, lambda: window.Put(ones, right))
    expect(MPI.ERR_RMA_SYNC, lambda: window.Unlock(right))
    expect(MPI.ERR_RMA_SYNC, lambda: window.Flush(right))
    expect(MPI.ERR_RMA_SYNC, window.Wait)
    expect(MPI.ERR_LOCKTYPE, lambda: window.Lock(right, lock_type=12345))
    expect(MPI.ERR_RMA_FLAVOR, lambda: window.Attach(ones))
    window.Lock(right)
    expect(MPI.ERR_RMA_SYNC, lambda: window.Lock(right))
    expect(MPI.ERR_RMA_RANGE, lambda: window.Put(ones, right, target=1))
    expect(MPI.ERR_DISP, lambda: window.Get(ones, right, target=-1))
    expect(MPI.ERR_RANK, lambda: window.Put(ones, size))
    expect(MPI.ERR_OP, lambda: window.Accumulate(ones, right, op=MPI.NO_OP))
    expect(MPI.ERR_RMA_SYNC, window.Free)
    window.Put(ones[:1], right, target=3)
    window.Unlock(right)
    world.Barrier()
    assert memory.tolist() == [0, 0, 0, 1], memory
    window.Free()
    comm = world.Dup()
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    expect(MPI.ERR_DISP, lambda: MPI.Win.Create(memory, disp_unit=0, comm=comm))
    expect(MPI.ERR_SIZE, lambda: MPI.Win.Allocate(-8, disp_unit=8, comm=comm))
    comm.Free()


run(created_over_an_array, created_over_part_of_an_array_and_nothing, allocated, shared_views_of_all_ranks,
    names_groups_and_hints_are_the_windows, hints_are_accepted_at_creation, user_attributes_have_callbacks, errors_are_exceptions,
    dynamic_memory_is_attached_by_parts, memory_that_is_not_attached_is_an_error)
