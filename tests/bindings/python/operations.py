#!/usr/bin/python3
"""All operations and all synchronisation from mpi4py, on NumPy arrays of several types and on
sections of them.

Every rank works on its right neighbour's memory, where no other rank does, or counts together
with all. Under a host for which mpi4py was not built, the test is skipped (77)."""

from job import MPI, left, rank, right, run, size, world

import numpy


def window_of(dtype, count):
    """An allocated window and its memory as an array of zeros."""
    itemsize = numpy.dtype(dtype).itemsize
    window = MPI.Win.Allocate(count * itemsize, disp_unit=itemsize, comm=world)
    words = numpy.ndarray(count, dtype=dtype, buffer=window.tomemory())
    words[:] = 0
    world.Barrier()
    return window, words


def every_operation():
    window, words = window_of("i8", 8)
    seen = numpy.full(3, -1)
    value = numpy.array([rank, 10, 20])
    window.Lock_all()
    window.Put(value, right, target=1)
    window.Flush(right)
    window.Get(seen, right, target=1)
    window.Flush_local(right)
    assert (seen == value).all(), seen
    window.Accumulate(value, right, target=1, op=MPI.SUM)
    window.Flush_all()
    window.Get_accumulate(value, seen, right, target=1, op=MPI.MAX)
    window.Flush_local_all()
    assert (seen == 2 * value).all(), seen
    one = numpy.ones(1, dtype="i8")
    old = numpy.full(1, -1)
    window.Fetch_and_op(one, old, right, 2, MPI.SUM)
    window.Flush(right)
    assert old[0] == 20
    window.Compare_and_swap(numpy.array([7]), numpy.array([21]), old, right, 2)
    window.Flush(right)
    assert old[0] == 21
    window.Compare_and_swap(numpy.array([8]), numpy.array([21]), old, right, 2)
    window.Flush(right)
    assert old[0] == 7
    window.Unlock_all()
    world.Barrier()
    assert words.tolist() == [0, 2 * left, 7, 40, 0, 0, 0, 0], words
    window.Free()


def a_ticket_is_returned_once():
    window, words = window_of("i8", 4)
    tickets, ticket = [], numpy.full(1, -1)
    window.Lock_all()
    for _ in range(20):
        window.Fetch_and_op(numpy.ones(1, dtype="i8"), ticket, 0, 2, MPI.SUM)
        window.Flush(0)
        tickets.append(int(ticket[0]))
    window.Unlock_all()
    assert tickets == sorted(tickets), tickets
    everyone = sorted(sum(world.allgather(tickets), []))
    assert everyone == list(range(20 * size)), everyone
    assert rank != 0 or words.tolist() == [0, 0, 20 * size, 0], words
    window.Free()


def every_operation_with_a_request():
    window, words = window_of("f8", 6)
    seen = numpy.zeros(2)
    value = numpy.array([rank + 0.5, 2])
    window.Lock(right, MPI.LOCK_SHARED)
    window.Rput(value, right, target=2).Wait()
    window.Flush(right)
    window.Raccumulate(value, right, target=2, op=MPI.SUM).Wait()
    window.Flush(right)
    window.Rget_accumulate(value, seen, right, target=2, op=MPI.PROD).Wait()
    assert (seen == 2 * value).all(), seen
    window.Flush(right)
    request = window.Rget(seen, right, target=2)
    while not request.Test():
        pass
    assert (seen == 2 * value * value).all(), seen
    MPI.Request.Waitall([window.Rput(value[:1], right, target=at) for at in (0, 4, 5)])
    window.Unlock(right)
    world.Barrier()
    assert words[[0, 4, 5]].tolist() == [left + 0.5] * 3 and words[1] == 0, words
    window.Free()


def numbers_of_every_type_are_added():
    for dtype in "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split():
        window, words = window_of(dtype, 4)
        value = numpy.array([1, 2, 3], dtype=dtype)
        window.Fence()
        window.Accumulate(value, 0, target=1, op=MPI.SUM)
        window.Fence()
        assert rank != 0 or (words == numpy.concatenate(([0], size * value))).all(), (dtype, words)
        window.Free()


def pairs_contain_the_index_of_the_largest():
    window = MPI.Win.Allocate(8, disp_unit=8, comm=world)
    pair = numpy.ndarray(2, dtype="i4", buffer=window.tomemory())
    pair[:] = -1
    world.Barrier()
    window.Fence()
    mine = numpy.array([100 - abs(rank - size // 2), rank], dtype="i4")
    window.Accumulate([mine, 1, MPI.INT_INT], 0, target=(0, 1, MPI.INT_INT), op=MPI.MAXLOC)
    window.Fence()
    assert rank != 0 or pair.tolist() == [100, size // 2], pair
    window.Free()


def columns_become_rows():
    """A column of one matrix into a row of another: derived datatypes at the origin, then at the
    target."""
    rows, columns = 5, 4
    mine = numpy.arange(rows * columns, dtype="f8").reshape(rows, columns) + 100 * rank
    column = MPI.DOUBLE.Create_vector(rows, 1, columns).Commit()
    window, words = window_of("f8", rows * columns)
    window.Fence()
    window.Put([mine.reshape(-1)[1:], 1, column], right, target=(10, rows, MPI.DOUBLE))
    window.Fence()
    assert words[10:15].tolist() == (numpy.arange(rows) * columns + 1 + 100 * left).tolist(), words
    assert not words[:10].any() and not words[15:].any()
    world.Barrier()  # the neighbour has read it, too
    seen = numpy.zeros(rows)
    window.Get([seen, rows, MPI.DOUBLE], right, target=(2, 1, column))
    window.Accumulate([numpy.full(rows, 0.5), rows, MPI.DOUBLE], right, target=(3, 1, column), op=MPI.SUM)
    window.Fence()
    flat = numpy.zeros(rows * columns)
    flat[10:15] = numpy.arange(rows) * columns + 1 + 100 * rank
    assert (seen == flat.reshape(rows, columns)[:, 2]).all(), seen
    flat[10:15] = numpy.arange(rows) * columns + 1 + 100 * left
    flat.reshape(rows, columns)[:, 3] += 0.5
    assert (words == flat).all(), words
    column.Free()
    window.Free()


def a_block_of_a_matrix_is_got():
    block = MPI.INT.Create_subarray([6, 6], [2, 3], [3, 2]).Commit()
    memory = (numpy.arange(36) + 1000 * rank).astype("i4")
    window = MPI.Win.Create(memory, disp_unit=4, comm=world)
    seen = numpy.zeros((2, 3), dtype="i4")
    window.Lock(right, MPI.LOCK_SHARED)
    window.Get(seen, right, target=(0, 1, block))
    window.Unlock(right)
    assert (seen == (numpy.arange(36) + 1000 * right).reshape(6, 6)[3:5, 2:5]).all(), seen
    block.Free()
    world.Barrier()
    window.Free()


def post_start_complete_wait_or_test():
    window, words = window_of("i4", 2)
    everyone = world.Get_group()
    for turn in (0, 1):
        group = everyone.Incl([left])
        window.Post(group)
        group.Free()
        group = everyone.Incl([right])
        window.Start(group)
        group.Free()
        window.Put(numpy.array([10 * turn + rank], dtype="i4"), right, target=turn)
        window.Complete()
        if turn == 0:
            window.Wait()
        else:
            while not window.Test():
                pass
        assert words[turn] == 10 * turn + left, words
    everyone.Free()
    window.Free()


def exclusive_locks_exclude():
    window, words = window_of("i8", 2)
    count = numpy.zeros(1, dtype="i8")
    for _ in range(50):
        window.Lock(0, MPI.LOCK_EXCLUSIVE)
        window.Get(count, 0, target=1)
        window.Flush(0)
        count += 1
        window.Put(count, 0, target=1)
        window.Unlock(0)
    world.Barrier()
    window.Lock(rank)
    assert words[1] == (50 * size if rank == 0 else 0), words
    window.Unlock(rank)
    window.Free()


def a_word_is_polled_with_sync():
    window, words = window_of("i8", 1)
    window.Lock_all()
    if rank == 0:
        window.Put(numpy.array([1]), right)
        window.Flush(right)
    while words[0] == 0:  # the token arrives from the left
        window.Sync()
    if rank != 0:
        window.Put(words + 1, right)
        window.Flush(right)
    window.Unlock_all()
    world.Barrier()
    assert words[0] == (rank if rank else size), words
    window.Free()


def nothing_happens_at_proc_null():
    window, words = window_of("i8", 1)
    seen = numpy.full(1, 5)
    window.Lock(MPI.PROC_NULL)
    window.Put(numpy.ones(1, dtype="i8"), MPI.PROC_NULL)
    window.Get(seen, MPI.PROC_NULL)
    window.Rget(seen, MPI.PROC_NULL).Wait()
    window.Flush(MPI.PROC_NULL)
    window.Unlock(MPI.PROC_NULL)
    assert seen[0] == 5
    window.Free()


def a_window_over_some_ranks():
    half = world.Split(rank % 2, -rank)
    mine, count = half.Get_rank(), half.Get_size()
    memory = numpy.zeros(1, dtype="i8")
    window = MPI.Win.Create(memory, disp_unit=8, comm=half)
    half.Free()
    window.Fence()
    window.Put(numpy.array([rank]), (mine + 1) % count)
    window.Fence()
    assert memory[0] == sorted(range(rank % 2, size, 2), reverse=True)[(mine - 1) % count]
    window.Free()


run(every_operation, every_operation_with_a_request, a_ticket_is_returned_once, numbers_of_every_type_are_added,
    pairs_contain_the_index_of_the_largest, columns_become_rows, a_block_of_a_matrix_is_got, post_start_complete_wait_or_test,
    exclusive_locks_exclude, a_word_is_polled_with_sync, nothing_happens_at_proc_null, a_window_over_some_ranks)
