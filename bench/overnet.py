"""`oriel bench --net`: the patterns that are measured between two nodes, the limits of the link, and the nodes.

scripts/testnet simulates the nodes on this machine. They end with the command in all cases. link.py measures the link."""

import contextlib
import os
import subprocess
import sys

import catalogue
from catalogue import FLIGHT, KIB, MIB, Cell, Pattern

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = [8, 512, 4 * KIB, 8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB]
QUICK_SIZES = [8, 8 * KIB, MIB]
BOTH = [1, FLIGHT]
CANNOT = 77  # scripts/testnet's status when it cannot create nodes

# name: sizes, those of the quick form (None: not in it), flights, limit
CHOSEN = {
    "put": (SIZES, QUICK_SIZES, BOTH, lambda cell: "link-put" if cell.in_flight == 1 else "link-put-many"),
    "get": (SIZES, QUICK_SIZES, BOTH, lambda cell: "link-get" if cell.in_flight == 1 else "link-get-many"),
    "accumulate": ([8, 32 * KIB], [8, 32 * KIB], BOTH, lambda cell: "link-put" if cell.in_flight == 1 else "link-put-many"),
    "fetch-and-op": ([8], [8], BOTH, "link-add"),
    "compare-and-swap": ([8], [8], BOTH, "link-swap"),
    "put-strided": ([8 * KIB], [8 * KIB], [1], "link-put"),
    "get-strided": ([8 * KIB], None, [1], "link-get"),
    "lock-exclusive": ([8], [8], [1], None),
    "lock-shared": ([8], None, [1], None),
    "lock-all": ([8], [8], [1], None),
    "fence": ([0], [0], [1], None),
    "fence-put": ([8], None, [1], "link-way"),
    "pscw-pair": ([8], [8], [1], "link-put"),
    "create-free": ([0], [0], [1], None),
    "busy-target": ([8, MIB], [8], [1], "link-put"),
    "busy-target-again": ([8, MIB], [8], [1], "link-put"),
}
LINK = {
    "link-way": ("ucp_put_lat", [8]),
    "link-put": ("ucp_put_lat, round trip", SIZES + [32 * KIB]),
    "link-put-many": ("ucp_put_bw", SIZES + [32 * KIB]),
    "link-get": ("ucp_get", SIZES),
    "link-get-many": ("ucp_get, 64 in flight", SIZES),
    "link-add": ("ucp_fadd", [8]),
    "link-swap": ("ucp_cswap", [8]),
    "link-awake": ("TCP byte round trip, polling", [0]),
    "link-asleep": ("TCP byte round trip, the target sleeping in epoll", [0]),
    "link-busy": ("TCP byte round trip after a pause, the target sleeping in epoll while another thread computes", [0]),
}


def choose():
    """Replaces the catalogue by the internode one."""
    local = dict(catalogue.PATTERNS)
    catalogue.PATTERNS.clear()
    for name, (sizes, quick, flights, limit) in CHOSEN.items():
        catalogue.PATTERNS[name] = Pattern(
            local[name].title, local[name].group, sizes, limit, flights=flights, quick=quick, quick_flights=flights,
            memories=catalogue.USUAL)
    for name, pattern in local.items():
        if pattern.group == "alignment":
            catalogue.PATTERNS[name] = Pattern(pattern.title, pattern.group, pattern.sizes, CHOSEN[name.partition("-at-")[0]][3],
                                               memories=catalogue.USUAL)
    catalogue.RAW.clear()
    catalogue.RAW.update((name, Pattern(title, "raw", sizes, ranks=[1])) for name, (title, sizes) in LINK.items())
    catalogue.ALWAYS_RAW[:] = ["link-way", "link-put", "link-awake", "link-asleep", "link-busy"]
    catalogue.USUAL[:] = catalogue.QUICK
    catalogue.WAYS[:] = ["allocate"]


class Refused(Exception):
    """The reason for which there are no nodes; status is the command's."""

    def __init__(self, reason, status):
        super().__init__(reason)
        self.status = status


def words(identity):
    return [sys.executable, "-s", "-E", "-B", os.path.join(HERE, "testnet"), "--id", identity]


@contextlib.contextmanager
def machines(prefix):
    """Creates two nodes; yields the command prefix for them."""
    net = words("b%d" % (os.getpid() % 10000000))
    made = subprocess.run([*net, "up", "2", "--owner", str(os.getpid()), "--share", prefix], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        reason = made.stderr.strip().removeprefix("testnet: ") or "scripts/testnet: status %d" % made.returncode
        raise Refused("--net: " + reason, CANNOT if made.returncode == CANNOT else 2)
    try:
        yield net
    finally:
        subprocess.run([*net, "down"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


# ---- the bounds for internode windows ----


def _link(bench, name, size=0):
    return bench.raw.best(Cell(name, "local", 1, size, 1))


def _bound(times, value, more=0):
    return None if value is None or more is None else times * value + more


def wake_ns(bench):
    """The cost of waking the target's thread."""
    asleep, awake = _link(bench, "link-asleep"), _link(bench, "link-awake")
    return max(asleep - awake, 0) if asleep is not None and awake is not None else None


def _bounds(bench, column, alone, memory):
    """(name, the bound in words, its nanoseconds, the cell) for each figure."""
    def cell(pattern, size, flight=1):
        return Cell(pattern, memory, 2, size, flight)

    there_and_back, wake = _link(bench, "link-put", 8), wake_ns(bench)
    mpich = alone.best if alone else lambda cell: None
    for what in ("put", "get"):
        yield what + " 8 B + flush", "1.3 x 2 put_lat + wake-up", _bound(1.3, there_and_back, wake), cell(what, 8)
        yield what + " 8 B + flush", "MPICH / 1.5", _bound(1 / 1.5, mpich(cell(what, 8))), cell(what, 8)
        yield (what + " 1 MiB, 64 in flight", "ucx_perftest / 0.9", _bound(1 / 0.9, _link(bench, "link-%s-many" % what, MIB)),
               cell(what, MIB, FLIGHT))
    yield "fetch_and_op", "MPICH", mpich(cell("fetch-and-op", 8)), cell("fetch-and-op", 8)
    yield ("put of 1,024 doubles, every second one", "1.5 x contiguous", _bound(1.5, column.best(cell("put", 8 * KIB))),
           cell("put-strided", 8 * KIB))
    for pattern in ("busy-target", "busy-target-again"):
        yield (catalogue.PATTERNS[pattern].title, "3 x TCP byte at a busy target", _bound(3, _link(bench, "link-busy")),
               cell(pattern, 8))
        yield (catalogue.PATTERNS[pattern].title, "3 x (2 put_lat + wake-up)", _bound(3, _bound(1, there_and_back, wake)),
               cell(pattern, 8))


def figures(bench):
    """Each figure of each of Oriel's columns with its upper bound."""
    alone = next((column for column in bench.columns if column.host == "mpich" and not column.oriel), None)
    listed = []
    for memory in dict.fromkeys(cell.memory for cell in bench.cells):
        for column in (column for column in bench.columns if column.oriel):
            for what, words_of, bound_ns, cell in _bounds(bench, column, alone, memory):
                if bound_ns is not None and column.best(cell) is not None:
                    listed.append({"figure": what, "memory": memory, "column": column.name, "ns": column.best(cell),
                                   "bound": words_of, "bound_ns": round(bound_ns, 2)})
    return listed
