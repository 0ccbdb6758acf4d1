"""What `oriel bench` can run: patterns, their memories, ranks and sizes, and the raw operation that limits each.
A cell is one thing to measure; the programs know the patterns by the same names (a test compares them).
Imported by bench.py; knows nothing of hosts and jobs."""

from collections import namedtuple

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8 << i for i in range(20)]  # 8 B to 4 MiB
FLIGHT = 64
FLIGHT_BYTES_MAX = 256 * KIB  # longer ones would need more window memory than they would tell
RANKS = [2, 4, 8, 16, 32]
MEMORIES = {  # name: (the program's own name for it, what Oriel is told)
    "allocate": ("allocate", {}),
    "create": ("create", {}),
    "dynamic": ("dynamic", {}),
    "shared": ("shared", {}),
    "cma": ("create", {"ORIEL_PROMOTE": "never"}),
    "agent": ("create", {"ORIEL_PROMOTE": "never", "ORIEL_CMA": "never"}),
}
USUAL = ["allocate", "create", "dynamic"]
QUICK = ["allocate", "create"]

Cell = namedtuple("Cell", "pattern memory ranks bytes in_flight")


class Pattern:
    """A row of the catalogue. `quick` has the sizes, and where they are fewer the ranks, of the quick form; None: not in it."""

    def __init__(self, title, group, sizes, limit=None, flights=(1,), ranks=(2,), memories=None, quick=None, quick_ranks=None,
                 quick_memories=None):
        self.title = title
        self.group = group
        self.sizes = list(sizes)
        self.limit = limit
        self.flights = list(flights)
        self.ranks = list(ranks)
        self.memories = memories  # None: all that are asked for, but shared
        self.quick = quick
        self.quick_ranks = quick_ranks or self.ranks
        self.quick_memories = quick_memories

    def limit_of(self, cell):
        """The raw operation that this one cannot beat."""
        return self.limit(cell) if callable(self.limit) else self.limit


def _put_limit(cell):
    if cell.bytes > 8:
        return "raw-memcpy-shared"
    return "raw-store-fence" if cell.in_flight == 1 else "raw-store"  # a flush has to be a full fence


def _get_limit(cell):
    return "raw-memcpy-shared" if cell.bytes > 8 else "raw-load"


def _sized(title, limit, quick):
    return Pattern(title, "contiguous", SIZES, limit, flights=(1, FLIGHT), quick=quick)


def _shape(title, size, limit=None, quick=None):
    return Pattern(title, "datatype", [size], limit, quick=quick)


PATTERNS = {
    "put": _sized("put", _put_limit, [8, 64 * KIB, MIB]),
    "get": _sized("get", _get_limit, [8, 64 * KIB, MIB]),
    "accumulate": _sized("accumulate, sum of doubles", "raw-sum", [8, 32 * KIB]),
    "get-accumulate": _sized("get_accumulate, sum of doubles", "raw-sum", None),
    "fetch-and-op": Pattern("fetch_and_op", "atomic", [8], "raw-atomic", flights=(1, FLIGHT), quick=[8]),
    "compare-and-swap": Pattern("compare_and_swap", "atomic", [8], "raw-cas", flights=(1, FLIGHT), quick=[8]),
    "hot-fetch-and-op": Pattern("fetch_and_op by all ranks on one word", "atomic", [8], "raw-atomic", ranks=RANKS),
    "put-strided": _shape("put, every second double", 8 * KIB, "raw-strided", quick=[8 * KIB]),
    "get-strided": _shape("get, every second double", 8 * KIB, "raw-gathered", quick=[8 * KIB]),
    "put-strided-both": _shape("put, every second double on both sides", 8 * KIB),
    "put-column": _shape("put, a column of a 256 x 256 matrix", 2 * KIB),
    "get-column": _shape("get, a column of a 256 x 256 matrix", 2 * KIB),
    "put-face-rows": _shape("put, a face of a cube, 64 rows of 64 doubles", 32 * KIB),
    "get-face-rows": _shape("get, a face of a cube, 64 rows of 64 doubles", 32 * KIB),
    "put-face-points": _shape("put, a face of a cube, 4,096 single doubles", 32 * KIB),
    "get-face-points": _shape("get, a face of a cube, 4,096 single doubles", 32 * KIB),
    "put-indexed": _shape("put, 512 irregular blocks of 1 to 4 doubles", 10 * KIB),
    "get-indexed": _shape("get, 512 irregular blocks of 1 to 4 doubles", 10 * KIB),
    "put-structs": _shape("put, 512 structs with holes", 8 * KIB),
    "get-structs": _shape("get, 512 structs with holes", 8 * KIB),
    "lock-exclusive": Pattern("lock (exclusive), put, unlock", "lock", [8], quick=[8]),
    "lock-shared": Pattern("lock (shared), put, unlock", "lock", [8]),
    "lock-contended": Pattern("lock (exclusive), get, add, put, unlock, all ranks at one target", "lock", [8], ranks=RANKS),
    "lock-contended-shared": Pattern("lock (shared), put, unlock, all ranks at one target", "lock", [8], ranks=RANKS),
    "lock-all": Pattern("lock_all, put, unlock_all, by all ranks", "lock", [8], ranks=RANKS),
    "fence": Pattern("fence", "active", [0], ranks=RANKS, quick=[0], quick_ranks=[2, 8, 16]),
    "fence-put": Pattern("put to the right, fence", "active", [8], ranks=RANKS),
    "pscw-pair": Pattern("start, put, complete against post, wait", "active", [8], quick=[8]),
    "pscw-ring": Pattern("post, start, put, complete, wait around a ring", "active", [8], ranks=RANKS, quick=[8],
                         quick_ranks=[2, 8, 16]),
    "pscw-all": Pattern("post, start, puts, complete, wait, all to all", "active", [8], ranks=RANKS),
    "rput-wait": Pattern("rput, wait", "request", [8], "raw-store"),
    "rget-wait": Pattern("rget, wait", "request", [8], "raw-load"),
    "rput-64-waitall": Pattern("rput, 64 before one waitall", "request", [8], "raw-store", flights=(FLIGHT,)),
    "create-free": Pattern("create and free a window", "window", [0], memories=USUAL + ["shared"], quick=[0]),
    "busy-target": Pattern("lock, put, unlock at a busy target, first access", "progress", [8], quick=[8]),
    "busy-target-again": Pattern("lock, put, unlock at a busy target, later access", "progress", [8]),
}
_PLACES = [("huge-page", "the start of a huge page"), ("page", "a page's start"), ("line", "a cache line's start"),
           ("element", "the second word of a line"), ("odd-byte", "an odd byte"), ("line-crossing", "60 bytes into a line"),
           ("page-crossing", "4 bytes before a page's end")]
for _place, _words in _PLACES:
    for _what, _limit in (("put", _put_limit), ("get", _get_limit)):
        PATTERNS["%s-at-%s" % (_what, _place)] = Pattern("%s at %s" % (_what, _words), "alignment",
                                                         [8, 4 * KIB, 64 * KIB], _limit)

RAW = {  # measured by the program without MPI; their memory is "local"
    "raw-store": Pattern("store", "raw", [8]),
    "raw-store-fence": Pattern("store, full fence", "raw", [8]),
    "raw-load": Pattern("load and store", "raw", [8]),
    "raw-atomic": Pattern("atomic add", "raw", [8]),
    "raw-cas": Pattern("compare and swap", "raw", [8]),
    "raw-memcpy": Pattern("memcpy", "raw", SIZES),
    "raw-memcpy-shared": Pattern("memcpy into shared pages", "raw", SIZES),
    "raw-strided": Pattern("loop that writes every second double", "raw", [8 * KIB]),
    "raw-gathered": Pattern("loop that reads every second double", "raw", [8 * KIB]),
    "raw-sum": Pattern("sum of doubles, in vectors", "raw", SIZES),
    "raw-futex": Pattern("futex round trip", "raw", [0], ranks=[2]),
    "raw-yield": Pattern("sched_yield round trip", "raw", [0], ranks=[2]),
}
ALWAYS_RAW = ["raw-store", "raw-store-fence", "raw-load", "raw-atomic", "raw-cas", "raw-futex", "raw-yield"]
GROUPS = list(dict.fromkeys(pattern.group for pattern in PATTERNS.values()))


def program_name(cell):
    """What the program is asked for, and what its lines are about."""
    if cell.pattern in RAW:
        return "%s:%d" % (cell.pattern, cell.bytes)
    return "%s:%s:%d:%d" % (cell.pattern, MEMORIES[cell.memory][0], cell.bytes, cell.in_flight)


def pattern_of(cell):
    return RAW[cell.pattern] if cell.pattern in RAW else PATTERNS[cell.pattern]


def _names(options):
    """The patterns that the options choose; alignments only where they are asked for."""
    if options.patterns:
        return options.patterns
    names = [name for name, pattern in PATTERNS.items() if not options.groups or pattern.group in options.groups]
    asked = options.alignment or (options.groups and "alignment" in options.groups)
    names = [name for name in names if asked or PATTERNS[name].group != "alignment"]
    if options.alignment and options.groups and "alignment" not in options.groups:
        names += [name for name, pattern in PATTERNS.items() if pattern.group == "alignment"]
    return names


def _pattern_cells(name, options):
    pattern = PATTERNS[name]
    quick = options.quick and not options.patterns and not options.groups and pattern.group != "alignment"
    if quick and pattern.quick is None:
        return
    sizes, ranks = (pattern.quick, pattern.quick_ranks) if quick else (pattern.sizes, pattern.ranks)
    flights = [pattern.flights[0]] if quick else pattern.flights
    if options.sizes and pattern.sizes == SIZES or pattern.group == "alignment" and options.sizes:
        sizes = options.sizes
    if options.ranks and len(pattern.ranks) > 1:
        ranks = options.ranks
    wanted = options.memories or (QUICK if options.quick else USUAL)
    for memory in wanted + (["shared"] if not options.memories and not quick else []):
        if memory not in (pattern.memories or [name for name in MEMORIES if name != "shared"]):
            continue
        for count in ranks:
            for flight in flights:
                for size in sizes:
                    if flight == 1 or size <= FLIGHT_BYTES_MAX:
                        yield Cell(name, memory, count, size, flight)


def cells(options):
    """All that is to be measured through MPI, in the order of the table."""
    return [cell for name in _names(options) for cell in _pattern_cells(name, options)]


def raw_cells(wanted):
    """The limits of these cells, and what says what this machine is."""
    needed = dict.fromkeys((name, RAW[name].sizes[0]) for name in ALWAYS_RAW)
    for cell in wanted:
        limit = pattern_of(cell).limit_of(cell)
        if limit:
            needed[limit, cell.bytes] = None
            if limit == "raw-memcpy-shared":
                needed["raw-memcpy", cell.bytes] = None
    order = list(RAW)
    return [Cell(name, "local", RAW[name].ranks[0] if name in ("raw-futex", "raw-yield") else 1, size, 1)
            for name, size in sorted(needed, key=lambda pair: (order.index(pair[0]), pair[1]))]
