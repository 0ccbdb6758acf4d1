#!/usr/bin/python3
"""The extensions of <oriel/ext.h> from mpi4py, through the module oriel.

Every rank works on its right neighbour's memory. On the bare host the module imports, and its
functions refuse. Under a host for which mpi4py was not built, the test is skipped (77)."""

from job import MPI, left, rank, right, run, size, world

import numpy
import oriel


def window_of(dtype, count, **keys):
    """An allocated window and its memory as an array of zeros, in an epoch for all ranks."""
    itemsize = numpy.dtype(dtype).itemsize
    info = MPI.Info.Create()
    for key, value in keys.items():
        info.Set(key, str(value))
    window = MPI.Win.Allocate(count * itemsize, disp_unit=itemsize, info=info, comm=world)
    words = numpy.ndarray(count, dtype=dtype, buffer=window.tomemory())
    words[:] = 0
    window.Lock_all()
    world.Barrier()
    return window, words


def close(window):
    window.Unlock_all()
    world.Barrier()
    window.Free()


def refused(kind, function, *arguments):
    """The exception's error class, or its text."""
    try:
        function(*arguments)
    except kind as error:
        return error.Get_error_class() if kind is MPI.Exception else str(error)
    raise AssertionError(f"{function.__name__} was not refused")


def the_query_tells_whether_oriel_is_loaded():
    loaded = "windows by Oriel" in MPI.Get_library_version()
    assert oriel.query() == loaded
    if not loaded:
        assert "oriel run" in refused(NotImplementedError, oriel.Win_notify_wait, MPI.WIN_NULL, 0)


def buffers_are_given_as_to_mpi4py():
    window, words = window_of("i8", 8, oriel_notifications=2)
    mine = numpy.array([rank, 7], dtype="i8")
    oriel.Put_notify(window, mine, right, 0)
    oriel.Put_notify(window, [mine, MPI.INT64_T], right, 0, target=2)
    oriel.Put_notify(window, [mine, 1, MPI.INT64_T], right, 0, target=(4, 8, MPI.BYTE))
    oriel.Put_notify(window, [mine, 16, MPI.BYTE], right, 0, (5, 2, MPI.INT64_T))
    oriel.Put_notify(window, None, right, 0)
    oriel.Win_notify_wait(window, 0, 5)
    assert words.tolist() == [left, 7, left, 7, left, left, 7, 0], words
    world.Barrier()
    column = numpy.asfortranarray(numpy.zeros((2, 2), dtype="i8"))
    oriel.Get_notify(window, column, right, 1, target=1)
    window.Flush(right)
    assert column.tolist() == [[7, 7], [rank, rank]], column
    oriel.Win_notify_wait(window, 1)
    world.Barrier()
    oriel.Accumulate_notify(window, [mine, "l"], right, 1, op=MPI.MAX)
    oriel.Accumulate_notify(window, [b"\2" + bytes(7), 1, MPI.INT64_T], right, 1, target=7)
    oriel.Win_notify_wait(window, 1, 2)
    assert (words[0], words[7]) == (left, 2), words
    assert "be written" in refused(ValueError, oriel.Get_notify, window, b"12345678", right, 0)
    swapped = numpy.zeros(1, dtype=">i4")
    short, fixed = numpy.zeros(1, "i8"), numpy.zeros(2, "i8")
    fixed.flags.writeable = False
    assert "needs 2" in refused(ValueError, oriel.Fetch_and_op_list, window, None, short, right, [0, 1], MPI.NO_OP)
    assert "be written" in refused(ValueError, oriel.Get_notify, window, fixed, right, 0)
    assert "16 bytes" in refused(ValueError, oriel.Compare_and_swap_128, window, fixed, fixed, short, right)
    assert "different datatypes" in refused(ValueError, oriel.Rfetch_and_op, window, numpy.zeros(1), short, right)
    assert "format" in refused(ValueError, oriel.Put_notify, window, swapped, right, 0)
    close(window)


def notifications_are_taken_in_every_way():
    window, _ = window_of("i4", 1, oriel_notifications=4)
    assert not oriel.Win_notify_test(window, 3)
    world.Barrier()
    for number in (3, 2):
        oriel.Put_notify(window, None, right, number)
    window.Flush(right)
    world.Barrier()
    assert oriel.Win_notify_test(window, 3)
    assert oriel.Win_notify_wait_any(window, [0, 2, 3]) == 1
    close(window)


def errors_are_exceptions():
    window, words = window_of("i4", 1, oriel_notifications=1)
    one = numpy.ones(1, dtype="i4")
    put, most = oriel.Put_notify, oriel.NOTIFICATIONS_MOST
    assert refused(MPI.Exception, put, window, one, right, most) == MPI.ERR_ARG
    assert refused(MPI.Exception, put, window, one, size, 0) == MPI.ERR_RANK
    assert refused(MPI.Exception, oriel.Win_notify_wait, window, 0, 0) == MPI.ERR_COUNT
    oriel.Put_notify(window, one, right, 0)
    oriel.Win_notify_wait(window, 0)
    assert words[0] == 1
    close(window)


def a_request_waits_for_notifications():
    window, _ = window_of("i4", 1, oriel_notifications=2)
    requests = [oriel.Win_notify_init(window, number) for number in range(2)]
    MPI.Prequest.Startall(requests)
    for number in range(2):
        oriel.Put_notify(window, None, right, number)
    MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()
    close(window)


def flushes_complete_operations():
    window, words = window_of("i4", 4)
    other, _ = window_of("i4", 1)
    words[:] = rank + numpy.arange(4)
    window.Sync()
    world.Barrier()
    got = numpy.full(4, -1, dtype="i4")
    window.Get(got[:1], right, 0)
    oriel.Win_order(window, right)
    oriel.Win_flush_list(window, [right, rank])
    window.Get(got[1:2], right, 1)
    oriel.Win_flush_windows([window, other])
    window.Get(got[2:3], right, 2)
    oriel.Win_iflush(window, right).Wait()
    window.Get(got[3:], right, 3)
    oriel.Win_iflush_all(window).Wait()
    assert got.tolist() == [right, right + 1, right + 2, right + 3], got
    assert refused(MPI.Exception, oriel.Win_flush_list, window, [size]) == MPI.ERR_RANK
    close(other)
    close(window)


def atomic_operations_return_results():
    window, words = window_of("i8", 6)
    one, before = numpy.ones(3, dtype="i8"), numpy.full(3, -1, dtype="i8")
    oriel.Rfetch_and_op(window, one, before, right).Wait()
    assert before[0] == 0, before
    oriel.Rcompare_and_swap(window, numpy.int64(5), one, before, right).Wait()
    assert before[0] == 1, before
    oriel.Fetch_and_op_list(window, one, before, right, [1, 0, 1])
    window.Flush(right)
    assert before.tolist() == [0, 5, 1], before
    oriel.Fetch_and_op_list(window, None, before, right, [1], op=MPI.NO_OP)
    window.Flush(right)
    assert before[0] == 2, before
    old = numpy.full(2, -1, dtype="i8")
    oriel.Compare_and_swap_128(window, numpy.array([7, 8]), numpy.zeros(2, "i8"), old, right, 4)
    window.Flush(right)
    world.Barrier()
    assert old.tolist() == [0, 0] and words.tolist() == [6, 2, 0, 0, 7, 8], (old, words)
    assert oriel.Type_float16().Get_size() == 2 and oriel.Type_float16_complex().Get_size() == 4
    close(window)


def waits_see_the_element():
    window, _ = window_of("i4", 1)
    three, four = numpy.int32(3), numpy.int32(4)
    assert not oriel.Win_test_until(window, 0, oriel.CMP_GT, three)
    world.Barrier()
    window.Accumulate(numpy.array([4], dtype="i4"), right, op=MPI.REPLACE)
    window.Flush(right)
    oriel.Win_wait_until(window, 0, oriel.CMP_EQ, four)
    assert oriel.Win_test_until(window, 0, oriel.CMP_GT, three)
    assert refused(MPI.Exception, oriel.Win_wait_until, window, 0, 7, four) == MPI.ERR_ARG
    close(window)


def reals_of_16_bits_and_complex_numbers_are_known():
    for dtype in ("f2", "c8", "c16"):
        window, words = window_of(dtype, 3)
        added = numpy.array([1.5, 2.5, 0.25], dtype=dtype) * (1j if dtype[0] == "c" else 1)
        result = numpy.full(3, 7, dtype=dtype)
        oriel.Fetch_and_op_list(window, added, result, right, [2, 1, 2])
        window.Flush(right)
        world.Barrier()
        assert (result == [0, 0, added[0]]).all(), result
        assert (words == [0, added[1], added[0] + added[2]]).all(), words
        close(window)


def persistent_operations_are_started():
    window, words = window_of("i4", 12, oriel_notifications=1)
    sent, more = numpy.array([rank, rank + 10], dtype="i4"), numpy.array([2], dtype="i4")
    zero = numpy.array([0], dtype="i4")
    result, before, found, read, got = (numpy.full(n, -1, dtype="i4") for n in (1, 1, 1, 1, 2))
    requests = [oriel.Put_init(window, sent, right),
                oriel.Accumulate_init(window, more, right, 2),
                oriel.Get_accumulate_init(window, more, result, right, 3),
                oriel.Fetch_and_op_init(window, more, before, right, 4),
                oriel.Put_notify_init(window, sent, right, 0, (5, 2, MPI.INT)),
                oriel.Compare_and_swap_init(window, more, zero, found, right, 8),
                oriel.Get_notify_init(window, read, right, 0, 9),
                oriel.Accumulate_notify_init(window, more, right, 0, 10)]
    for _ in range(2):
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
    window.Flush(right)
    assert (result[0], before[0]) == (2, 2), (result, before)
    assert (found[0], read[0]) == (2, 0), (found, read)
    oriel.Win_notify_wait(window, 0, 6)
    world.Barrier()
    assert words.tolist() == [left, left + 10, 4, 4, 4, left, left + 10, 0, 2, 0, 4, 0], words
    requests.append(oriel.Get_init(window, got, right))
    requests[-1].Start()
    requests[-1].Wait()
    assert (got == sent).all(), got
    for request in requests:
        request.Free()
    close(window)


def a_handle_opens_a_part_of_a_window():
    window, words = window_of("i4", 8)
    mine = oriel.Win_memory_handle_create(window, 4, 16)
    of_left, opened = world.sendrecv(mine, right, source=left), None
    try:
        opened = oriel.Win_memory_open(of_left)
        opened.Lock(0, MPI.LOCK_SHARED)
        opened.Put(numpy.array([30 + rank], dtype="i4"), 0, 1)
        opened.Unlock(0)
        opened.Free()
    except MPI.Exception as error:  # on another node
        assert error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION
    opens = world.allreduce(opened is not None, MPI.LAND)
    window.Sync()
    assert not opens or words[5] == 30 + right, words
    oriel.Win_memory_handle_free(mine)
    world.Barrier()
    if opens:
        assert refused(MPI.Exception, oriel.Win_memory_open, of_left) == MPI.ERR_RMA_ATTACH
    assert "1280 bytes" in refused(ValueError, oriel.Win_memory_open, b"short")
    close(window)


cases = [the_query_tells_whether_oriel_is_loaded]
if oriel.query():
    cases += [buffers_are_given_as_to_mpi4py, notifications_are_taken_in_every_way,
              errors_are_exceptions, a_request_waits_for_notifications, flushes_complete_operations,
              atomic_operations_return_results, waits_see_the_element,
              reals_of_16_bits_and_complex_numbers_are_known,
              persistent_operations_are_started, a_handle_opens_a_part_of_a_window]
run(*cases)
