"""Oriel's extensions of MPI's one-sided communication for mpi4py: the functions of <oriel/ext.h>.

A function has the name in C without MPIX_. Objects are mpi4py's. Buffers and targets are given as
to its windows: a buffer is an object with a buffer or [data, count, datatype], a target is a
displacement or (displacement, count, datatype). Results are returned. Errors are MPI.Exception, if
the window's error handler returns, as mpi4py sets it. Without Oriel, query() is false and all other
functions raise NotImplementedError."""

import ctypes
import functools

from mpi4py import MPI

NOTIFICATIONS_MOST = 65536
CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE = range(1, 7)
MEMORY_HANDLE_BYTES = 1280

# The types of the functions' parameters in C, without MPI_.
_PARAMETERS = {
    "Put_notify": "pointer Count Datatype int Aint Count Datatype int Win",
    "Get_notify": "pointer Count Datatype int Aint Count Datatype int Win",
    "Accumulate_notify": "pointer Count Datatype int Aint Count Datatype Op int Win",
    "Win_notify_wait": "Win int Count",
    "Win_notify_test": "Win int Count pointer",
    "Win_notify_wait_any": "Win int pointer pointer",
    "Win_notify_init": "Win int Count pointer",
    "Win_order": "int Win",
    "Win_flush_list": "int pointer Win",
    "Win_flush_windows": "int pointer",
    "Win_iflush": "int Win pointer",
    "Win_iflush_all": "Win pointer",
    "Rfetch_and_op": "pointer pointer Datatype int Aint Op Win pointer",
    "Rcompare_and_swap": "pointer pointer pointer Datatype int Aint Win pointer",
    "Fetch_and_op_list": "pointer pointer Count Datatype int pointer Op Win",
    "Compare_and_swap_128": "pointer pointer pointer int Aint Win",
    "Type_float16": "pointer",
    "Type_float16_complex": "pointer",
    "Win_wait_until": "Win Aint Datatype int pointer",
    "Win_test_until": "Win Aint Datatype int pointer pointer",
    "Put_init": "pointer Count Datatype int Aint Count Datatype Win pointer",
    "Get_init": "pointer Count Datatype int Aint Count Datatype Win pointer",
    "Accumulate_init": "pointer Count Datatype int Aint Count Datatype Op Win pointer",
    "Get_accumulate_init": "pointer Count Datatype pointer Count Datatype "
                           "int Aint Count Datatype Op Win pointer",
    "Fetch_and_op_init": "pointer pointer Datatype int Aint Op Win pointer",
    "Compare_and_swap_init": "pointer pointer pointer Datatype int Aint Win pointer",
    "Put_notify_init": "pointer Count Datatype int Aint Count Datatype int Win pointer",
    "Get_notify_init": "pointer Count Datatype int Aint Count Datatype int Win pointer",
    "Accumulate_notify_init": "pointer Count Datatype int Aint Count Datatype Op int Win pointer",
    "Win_memory_handle_create": "Win Aint Aint pointer",
    "Win_memory_handle_free": "pointer",
    "Win_memory_open": "pointer Info pointer",
}


def _handle_type(kind):
    """The C type of handles: an integer, or a pointer."""
    return ctypes.c_int if MPI._sizeof(kind) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p


_TYPES = {"int": ctypes.c_int, "pointer": ctypes.c_void_p, "Count": ctypes.c_int64,
          "Aint": ctypes.c_ssize_t}
_HANDLES = (MPI.Datatype, MPI.Info, MPI.Op, MPI.Win)
_TYPES.update((kind.__name__, _handle_type(kind)) for kind in _HANDLES)
_process = ctypes.CDLL(None)  # its functions release the interpreter's lock


class Request(MPI.Request):
    """A request that keeps the buffers of its operation."""


class Prequest(MPI.Prequest):
    """A persistent request that keeps the buffers of its operation."""


def query():
    """True if the other functions may be called: Oriel is loaded, and not switched off by
    ORIEL_BYPASS."""
    function = getattr(_process, "PMPIX_Query_oriel", None)
    return function is not None and function() != 0


@functools.lru_cache(maxsize=None)
def _function(name):
    function = getattr(_process, "MPIX_" + name, None) if query() else None
    if function is None:
        raise NotImplementedError(f"MPIX_{name} needs Oriel: start the program with `oriel run`, "
                                  "and without ORIEL_BYPASS")
    function.argtypes = [_TYPES[word] for word in _PARAMETERS[name].split()]
    function.restype = ctypes.c_int
    return function


def _call(name, *arguments):
    """Calls MPIX_<name>. Arguments are numbers, mpi4py's objects, and objects of ctypes for
    pointers."""
    function = _function(name)
    code = function(*(MPI._handleof(given) if isinstance(given, _HANDLES) else given
                      for given in arguments))
    if code != MPI.SUCCESS:
        raise MPI.Exception(code)


def _make(name, made, *arguments):
    """Calls a function whose last parameter is where the handle of made goes."""
    _call(name, *arguments, MPI._addressof(made))
    return made


def _request(kind, name, buffers, *arguments):
    request = kind()
    request.buffers = buffers
    return _make(name, request, *arguments)


def _datatype(code):
    """The datatype of a format as memoryview and NumPy write them; e is a 16-bit real."""
    find = getattr(MPI.Datatype, "fromcode", None) or MPI._typedict.__getitem__
    name = code.lstrip("@=<" if memoryview(b"\1\0").cast("H")[0] == 1 else "@=>")
    if name == "e":
        return Type_float16()
    try:
        return find(name)
    except (KeyError, ValueError):
        raise ValueError(f"no datatype is known for the format {code!r}: "
                         "give [data, count, datatype]") from None


def _buffer(given, writes=False):
    """A buffer as (address, count, datatype); writes if the operation changes it."""
    if given is None:
        return 0, 0, MPI.BYTE
    data, count, datatype = given, None, None
    if isinstance(given, (list, tuple)):
        if not 1 <= len(given) <= 3:
            raise ValueError("a buffer is data or [data, count, datatype]")
        data = given[0]
        for part in given[1:]:
            if isinstance(part, (MPI.Datatype, str)):
                datatype = part
            else:
                count = part
    if isinstance(datatype, str):
        datatype = _datatype(datatype)
    if count is None or datatype is None:
        view = memoryview(data)
        datatype = datatype or _datatype(view.format)
        count = view.nbytes // datatype.Get_extent()[1] if count is None else count
    if writes and _is_readonly(data):
        raise ValueError("the result's buffer cannot be written")
    return MPI.Get_address(data), count, datatype


def _is_readonly(data):
    try:
        return memoryview(data).readonly
    except TypeError:  # no buffer of this process's memory
        return False


def _elements(count, result, *origins):
    """The datatype of the result, its address, and those of the other buffers (None: 0): each has
    count elements of that datatype."""
    there, room, datatype = _buffer(result, writes=True)
    rooms, places = [room], []
    for origin in origins:
        address, room, other = (0, count, datatype) if origin is None else _buffer(origin)
        if other != datatype:
            raise ValueError("the buffers have different datatypes")
        rooms.append(room)
        places.append(address)
    if min(rooms) < count:
        raise ValueError(f"a buffer has {min(rooms)} elements, and the operation needs {count}")
    return (datatype, there, *places)


def _sixteen_bytes(given, writes=False):
    address, count, datatype = _buffer(given, writes)
    if count * datatype.Get_size() < 16:
        raise ValueError("the buffer has less than 16 bytes")
    return address


def _sides(origin, target_rank, target, writes=False):
    """The arguments of an operation, as the functions in C have them."""
    address, count, datatype = _buffer(origin, writes)
    place = [0, count, datatype]
    if target is not None:
        given = list(target) if isinstance(target, (list, tuple)) else [target]
        if len(given) > 3:
            raise ValueError("a target is a displacement or (displacement, count, datatype)")
        place[:len(given)] = given
    return (address, count, datatype, target_rank, *place)


def _ints(values):
    values = list(values)
    return (ctypes.c_int * len(values))(*values)


def Put_notify(win, origin, target_rank, number, target=None):
    _call("Put_notify", *_sides(origin, target_rank, target), number, win)


def Get_notify(win, origin, target_rank, number, target=None):
    _call("Get_notify", *_sides(origin, target_rank, target, writes=True), number, win)


def Accumulate_notify(win, origin, target_rank, number, target=None, op=MPI.SUM):
    _call("Accumulate_notify", *_sides(origin, target_rank, target), op, number, win)


def Win_notify_wait(win, number, count=1):
    _call("Win_notify_wait", win, number, count)


def Win_notify_test(win, number, count=1):
    """True if it has taken count notifications."""
    flag = ctypes.c_int()
    _call("Win_notify_test", win, number, count, ctypes.byref(flag))
    return flag.value != 0


def Win_notify_wait_any(win, numbers):
    """Returns the place in numbers of the counter whose notification it has taken."""
    index, numbers = ctypes.c_int(-1), _ints(numbers)
    _call("Win_notify_wait_any", win, len(numbers), numbers, ctypes.byref(index))
    return index.value


def Win_notify_init(win, number, count=1):
    return _request(Prequest, "Win_notify_init", (), win, number, count)


def Win_order(win, rank):
    _call("Win_order", rank, win)


def Win_flush_list(win, ranks):
    ranks = _ints(ranks)
    _call("Win_flush_list", len(ranks), ranks, win)


def Win_flush_windows(wins):
    wins = list(wins)
    handles = (_TYPES["Win"] * len(wins))(*map(MPI._handleof, wins))
    _call("Win_flush_windows", len(wins), handles)


def Win_iflush(win, rank):
    return _request(Request, "Win_iflush", (), rank, win)


def Win_iflush_all(win):
    return _request(Request, "Win_iflush_all", (), win)


def Rfetch_and_op(win, origin, result, target_rank, target_disp=0, op=MPI.SUM):
    datatype, there, here = _elements(1, result, origin)
    return _request(Request, "Rfetch_and_op", (origin, result), here, there, datatype, target_rank,
                    target_disp, op, win)


def Rcompare_and_swap(win, origin, compare, result, target_rank, target_disp=0):
    datatype, there, here, expected = _elements(1, result, origin, compare)
    return _request(Request, "Rcompare_and_swap", (origin, compare, result), here, expected, there,
                    datatype, target_rank, target_disp, win)


def Fetch_and_op_list(win, origin, result, target_rank, target_disps, op=MPI.SUM):
    """One operation for each of target_disps; origin is None for MPI.NO_OP."""
    target_disps = list(target_disps)
    datatype, there, here = _elements(len(target_disps), result, origin)
    disps = (_TYPES["Aint"] * len(target_disps))(*target_disps)
    _call("Fetch_and_op_list", here, there, len(disps), datatype, target_rank, disps, op, win)


def Compare_and_swap_128(win, origin, compare, result, target_rank, target_disp=0):
    _call("Compare_and_swap_128", _sixteen_bytes(origin), _sixteen_bytes(compare),
          _sixteen_bytes(result, writes=True), target_rank, target_disp, win)


def Type_float16():
    return _make("Type_float16", MPI.Datatype())


def Type_float16_complex():
    return _make("Type_float16_complex", MPI.Datatype())


def Win_wait_until(win, disp, comparison, value):
    """value is a buffer of one integer, such as numpy.int64(1); comparison is one of CMP_*."""
    address, _, datatype = _buffer(value)
    _call("Win_wait_until", win, disp, datatype, comparison, address)


def Win_test_until(win, disp, comparison, value):
    """True if the comparison holds."""
    flag, (address, _, datatype) = ctypes.c_int(), _buffer(value)
    _call("Win_test_until", win, disp, datatype, comparison, address, ctypes.byref(flag))
    return flag.value != 0


def Put_init(win, origin, target_rank, target=None):
    return _request(Prequest, "Put_init", origin, *_sides(origin, target_rank, target), win)


def Get_init(win, origin, target_rank, target=None):
    sides = _sides(origin, target_rank, target, writes=True)
    return _request(Prequest, "Get_init", origin, *sides, win)


def Accumulate_init(win, origin, target_rank, target=None, op=MPI.SUM):
    sides = _sides(origin, target_rank, target)
    return _request(Prequest, "Accumulate_init", origin, *sides, op, win)


def Get_accumulate_init(win, origin, result, target_rank, target=None, op=MPI.SUM):
    sides = _sides(origin, target_rank, target)
    return _request(Prequest, "Get_accumulate_init", (origin, result), *sides[:3],
                    *_buffer(result, writes=True), *sides[3:], op, win)


def Fetch_and_op_init(win, origin, result, target_rank, target_disp=0, op=MPI.SUM):
    datatype, there, here = _elements(1, result, origin)
    return _request(Prequest, "Fetch_and_op_init", (origin, result), here, there, datatype,
                    target_rank, target_disp, op, win)


def Compare_and_swap_init(win, origin, compare, result, target_rank, target_disp=0):
    datatype, there, here, expected = _elements(1, result, origin, compare)
    return _request(Prequest, "Compare_and_swap_init", (origin, compare, result), here, expected,
                    there, datatype, target_rank, target_disp, win)


def Put_notify_init(win, origin, target_rank, number, target=None):
    sides = _sides(origin, target_rank, target)
    return _request(Prequest, "Put_notify_init", origin, *sides, number, win)


def Get_notify_init(win, origin, target_rank, number, target=None):
    sides = _sides(origin, target_rank, target, writes=True)
    return _request(Prequest, "Get_notify_init", origin, *sides, number, win)


def Accumulate_notify_init(win, origin, target_rank, number, target=None, op=MPI.SUM):
    sides = _sides(origin, target_rank, target)
    return _request(Prequest, "Accumulate_notify_init", origin, *sides, op, number, win)


def Win_memory_handle_create(win, disp, size):
    """Returns the handle as bytes, which can be sent to other processes in every way."""
    handle = ctypes.create_string_buffer(MEMORY_HANDLE_BYTES)
    _call("Win_memory_handle_create", win, disp, size, handle)
    return handle.raw


def _memory_handle(handle):
    if len(handle) != MEMORY_HANDLE_BYTES:
        raise ValueError(f"a memory handle has {MEMORY_HANDLE_BYTES} bytes, not {len(handle)}")
    return ctypes.create_string_buffer(bytes(handle), MEMORY_HANDLE_BYTES)


def Win_memory_handle_free(handle):
    _call("Win_memory_handle_free", _memory_handle(handle))


def Win_memory_open(handle, info=MPI.INFO_NULL):
    """Returns the window. Its error handler returns, as that of mpi4py's windows."""
    win = _make("Win_memory_open", MPI.Win(), _memory_handle(handle), info)
    win.Set_errhandler(MPI.ERRORS_RETURN)
    return win
