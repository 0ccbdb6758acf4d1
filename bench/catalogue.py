"""The catalogue of `oriel bench`: patterns, their memories, ranks and sizes, and the raw operation that limits each.
A cell is one measurement. The programs have the same pattern names (a test compares them).
This module does not depend on hosts or jobs."""

from collections import namedtuple

from spread import human_bytes

KIB, MIB = 1 << 10, 1 << 20
SIZES = [8 << i for i in range(20)]  # 8 B to 4 MiB
BUSY_SIZES = [8, 4 * KIB, 64 * KIB, MIB]
CHOICE = 8  # the user may select, and add, sizes of patterns with at least this number of sizes
TOUCHED = [64 * KIB, MIB, 16 * MIB, 128 * MIB]
HALO_SIZES = [8, KIB, 16 * KIB]
FLIGHT = 64
RANKS = [2, 4, 8, 16, 32]
MEMORIES = {  # name: (the program's name for it, environment for Oriel)
    "allocate": ("allocate", {}),
    "create": ("create", {}),
    "dynamic": ("dynamic", {}),
    "shared": ("shared", {}),
    "cma": ("create", {"ORIEL_PROMOTE": "never"}),
    "agent": ("create", {"ORIEL_PROMOTE": "never", "ORIEL_CMA": "never"}),
}
MANY_REGIONS = {"openmpi": {"OMPI_MCA_osc_rdma_max_attach": "2048"}}  # its default refuses the 33rd region of a dynamic window
USUAL = ["allocate", "create", "dynamic"]
QUICK = ["allocate", "create"]
WAYS = ["allocate", "create", "cma", "agent"]  # of the group alignment: each path has its own code

Cell = namedtuple("Cell", "pattern memory ranks bytes in_flight")


class Pattern:
    """A row of the catalogue. `quick` has the sizes of the quick form, or None; `quick_ranks` its ranks, if fewer."""

    def __init__(self, title, group, sizes, limit=None, flights=(1,), ranks=(2,), memories=None, quick=None, quick_ranks=None,
                 quick_flights=None):
        self.title = title
        self.group = group
        self.sizes = list(sizes)
        self.limit = limit
        self.flights = list(flights)
        self.ranks = list(ranks)
        self.memories = memories  # None: all selected ones except shared
        self.quick = quick
        self.quick_ranks = quick_ranks or self.ranks
        self.quick_flights = quick_flights or self.flights[:1]

    def limit_of(self, cell):
        """The raw operation that bounds this one."""
        return self.limit(cell) if callable(self.limit) else self.limit


def _put_limit(cell):
    if cell.bytes > 8:
        return "raw-memcpy-shared"
    return "raw-store-fence" if cell.in_flight == 1 else "raw-store"  # a flush must be a full fence


def _accumulate_limit(cell):
    return "raw-sum" if cell.bytes > 8 else "raw-cas"  # an atomic sum of doubles


def _busy_limit(cell):
    return "raw-memcpy-shared" if cell.bytes > 8 else "raw-lock"


def _get_limit(cell):
    return "raw-memcpy-shared" if cell.bytes > 8 else "raw-load"


def _sized(title, limit, quick):
    return Pattern(title, "contiguous", SIZES, limit, flights=(1, FLIGHT), quick=quick)


def _shape(title, size, limit, quick=None):
    return Pattern(title, "datatype", [size], limit, quick=quick)


def _shared(title, group, size, limit, **more):
    """A pattern of several ranks, up to more than there are processors."""
    return Pattern(title, group, [size], limit, ranks=RANKS, **more)


def _halo(title):
    """A step of the exchange with all neighbours; `bytes` for each."""
    return Pattern(title, "notified", HALO_SIZES, "raw-barrier", ranks=[2, 4, 8], memories=QUICK)


PATTERNS = {
    "put": _sized("put", _put_limit, [8, 64 * KIB, MIB]),
    "get": _sized("get", _get_limit, [8, 64 * KIB, MIB]),
    "accumulate": _sized("accumulate, sum of doubles", _accumulate_limit, [8, 32 * KIB]),
    "get-accumulate": _sized("get_accumulate, sum of doubles", "raw-fetched-sum", None),
    "fetch-and-op": Pattern("fetch_and_op", "atomic", [8], "raw-atomic", flights=(1, FLIGHT), quick=[8]),
    "compare-and-swap": Pattern("compare_and_swap", "atomic", [8], "raw-cas", flights=(1, FLIGHT), quick=[8]),
    "hot-fetch-and-op": _shared("fetch_and_op by all ranks on one word", "atomic", 8, "raw-hot-atomic"),
    "put-strided": _shape("put, every second double", 8 * KIB, "raw-strided", quick=[8 * KIB]),
    "get-strided": _shape("get, every second double", 8 * KIB, "raw-gathered", quick=[8 * KIB]),
    "put-strided-both": _shape("put, every second double on both sides", 8 * KIB, "raw-put-strided-both"),
    "put-column": _shape("put, a column of a 256 x 256 matrix", 2 * KIB, "raw-put-column"),
    "get-column": _shape("get, a column of a 256 x 256 matrix", 2 * KIB, "raw-get-column"),
    "put-face-rows": _shape("put, a face of a cube, 64 rows of 64 doubles", 32 * KIB, "raw-put-face-rows"),
    "get-face-rows": _shape("get, a face of a cube, 64 rows of 64 doubles", 32 * KIB, "raw-get-face-rows"),
    "put-face-points": _shape("put, a face of a cube, 4,096 single doubles", 32 * KIB, "raw-put-face-points"),
    "get-face-points": _shape("get, a face of a cube, 4,096 single doubles", 32 * KIB, "raw-get-face-points"),
    "put-indexed": _shape("put, 512 irregular blocks of 1 to 4 doubles", 10 * KIB, "raw-put-indexed"),
    "get-indexed": _shape("get, 512 irregular blocks of 1 to 4 doubles", 10 * KIB, "raw-get-indexed"),
    "put-structs": _shape("put, 512 structs with holes", 8 * KIB, "raw-put-structs"),
    "get-structs": _shape("get, 512 structs with holes", 8 * KIB, "raw-get-structs"),
    "put-new-type": Pattern("put, single doubles, with a new datatype", "datatype",
                            [8000, 800000], "raw-put-singles"),
    "accumulate-complex": _shape("accumulate, sum of 4,096 complex numbers", 64 * KIB, "raw-sum"),
    "accumulate-complex-product": _shape("accumulate, product of 4,096 complex numbers", 64 * KIB,
                                         "raw-complex-product"),
    "accumulate-long-double": _shape("accumulate, sum of 4,096 long doubles", 64 * KIB,
                                     "raw-long-double-sum"),
    "accumulate-strided": _shape("accumulate, sum, every second double", 32 * KIB,
                                 "raw-strided-sum"),
    "accumulate-indexed": _shape("accumulate, sum, 1,000 single doubles", 8000, "raw-singles-sum"),
    "get-accumulate-indexed": _shape("get_accumulate, replace, 100,000 single doubles", 800000,
                                     "raw-replace-singles"),
    "lock-exclusive": Pattern("lock (exclusive), put, unlock", "lock", [8], "raw-lock", quick=[8]),
    "lock-shared": Pattern("lock (shared), put, unlock", "lock", [8], "raw-lock"),
    "lock-contended": _shared("lock (exclusive), get, add, put, unlock, all ranks at one target", "lock", 8,
                              "raw-lock-contended"),
    "lock-contended-shared": _shared("lock (shared), put, unlock, all ranks at one target", "lock", 8,
                                     "raw-lock-contended-shared"),
    "lock-all": _shared("lock_all, put, unlock_all, by all ranks", "lock", 8, "raw-lock-all"),
    "fence": _shared("fence", "active", 0, "raw-barrier", quick=[0], quick_ranks=[2, 8, 16]),
    "fence-put": _shared("put to the right, fence", "active", 8, "raw-barrier-put"),
    "pscw-pair": Pattern("start, put, complete against post, wait", "active", [8], "raw-pair", quick=[8]),
    "pscw-ring": _shared("post, start, put, complete, wait around a ring", "active", 8, "raw-ring", quick=[8],
                         quick_ranks=[2, 8, 16]),
    "pscw-all": _shared("post, start, puts, complete, wait, all to all", "active", 8, "raw-all"),
    "rput-wait": Pattern("rput, wait", "request", [8], "raw-store"),
    "rget-wait": Pattern("rget, wait", "request", [8], "raw-load"),
    "rput-64-waitall": Pattern("rput, 64 before one waitall", "request", [8], "raw-store", flights=(FLIGHT,)),
    "create-free": _shared("create and free a window", "window", 0, "raw-barrier", memories=USUAL + ["shared"], quick=[0],
                           quick_ranks=[2]),
    "pass-notified": Pattern("notified put to a waiting rank (alone: send, receive)", "notified", [8], "raw-pass", quick=[8]),
    "pass-pscw": Pattern("the same by post, start, put, complete, wait", "notified", [8], "raw-pass", quick=[8]),
    "halo-notified": _halo("halo of 26 by notified puts (alone: Isend, Irecv)"),
    "halo-pscw": _halo("halo of 26 by post, start, puts, complete, wait"),
    "halo-fence": _halo("halo of 26 by puts, fence"),
    "alloc-touch-free": Pattern("alloc_mem, a word into each page, free_mem", "short", TOUCHED, "raw-touch",
                                memories=["allocate"]),
    "attach-detach": Pattern("attach and detach memory of the program", "short", [64 * KIB], "raw-store-fence",
                             memories=["dynamic"]),
    "put-regions": Pattern("put of 8 B into each of 1,000 attached regions", "short", [64 * KIB], "raw-store-fence",
                           memories=["dynamic"]),
    "window-fetches": Pattern("window: create, 100 fetch_and_ops, free", "short", [8], "raw-barrier", memories=["create"]),
    "window-accumulates": Pattern("window: create, 1,000 accumulates, free", "short", [64 * KIB], "raw-barrier",
                                  memories=["create"]),
    "window-puts": Pattern("window: create, 1,000 puts, free", "short", [64 * KIB], "raw-barrier", memories=["create"]),
    "window-put": Pattern("window: create, put, free", "short", [8, 16 * MIB], "raw-barrier", memories=["create"]),
    "busy-target": Pattern("lock, put, unlock at a busy target, first access", "progress", BUSY_SIZES, _busy_limit, quick=[8]),
    "busy-target-again": Pattern("lock, put, unlock at a busy target, later access", "progress", BUSY_SIZES, _busy_limit),
}
_PLACES = [("huge-page", "the start of a huge page"), ("page", "a page's start"), ("line", "a cache line's start"),
           ("element", "the second word of a line"), ("odd-byte", "an odd byte"), ("line-crossing", "60 bytes into a line"),
           ("page-crossing", "4 bytes before a page's end")]
_PLACED = {"put": [8, 4 * KIB, 64 * KIB], "get": [8, 4 * KIB, 64 * KIB], "put-strided": [8 * KIB], "get-strided": [8 * KIB],
           "accumulate": [8, 32 * KIB], "fetch-and-op": [8], "compare-and-swap": [8]}
for _what, _sizes in _PLACED.items():
    for _place, _words in _PLACES:
        PATTERNS["%s-at-%s" % (_what, _place)] = Pattern("%s, at %s" % (PATTERNS[_what].title, _words), "alignment", _sizes,
                                                         PATTERNS[_what].limit)


def _raw(title, sizes, ranks=(1,)):
    return Pattern(title, "raw", sizes, ranks=ranks)


RAW = {  # measured by the program without MPI; their memory is "local"
    "raw-store": _raw("store", [8]),
    "raw-store-fence": _raw("store, full fence", [8]),
    "raw-load": _raw("load and store", [8]),
    "raw-atomic": _raw("atomic add", [8]),
    "raw-cas": _raw("compare and swap", [8]),
    "raw-lock": _raw("compare and swap, store, atomic add", [8]),
    "raw-memcpy": _raw("memcpy", SIZES),
    "raw-memcpy-shared": _raw("memcpy into shared pages", SIZES),
    "raw-strided": _raw("loop that writes every second double", [8 * KIB]),
    "raw-gathered": _raw("loop that reads every second double", [8 * KIB]),
    "raw-put-strided-both": _raw("loop over every second double of both sides", [8 * KIB]),
    "raw-put-column": _raw("loop that writes a column", [2 * KIB]),
    "raw-get-column": _raw("loop that reads a column", [2 * KIB]),
    "raw-put-face-rows": _raw("loop that writes a face of rows", [32 * KIB]),
    "raw-get-face-rows": _raw("loop that reads a face of rows", [32 * KIB]),
    "raw-put-face-points": _raw("loop that writes a face of points", [32 * KIB]),
    "raw-get-face-points": _raw("loop that reads a face of points", [32 * KIB]),
    "raw-put-indexed": _raw("loop that writes irregular blocks", [10 * KIB]),
    "raw-get-indexed": _raw("loop that reads irregular blocks", [10 * KIB]),
    "raw-put-structs": _raw("loop that writes structs", [8 * KIB]),
    "raw-get-structs": _raw("loop that reads structs", [8 * KIB]),
    "raw-sum": _raw("sum of doubles, in vectors", SIZES),
    "raw-fetched-sum": _raw("copy and sum of doubles, in vectors", SIZES),
    "raw-strided-sum": _raw("loop that adds to every second double", [32 * KIB]),
    "raw-singles-sum": _raw("loop that adds to single doubles", [8000]),
    "raw-put-singles": _raw("loop that writes single doubles", [8000, 800000]),
    "raw-replace-singles": _raw("loop that reads and writes single doubles", [800000]),
    "raw-complex-product": _raw("product of complex numbers", [64 * KIB]),
    "raw-long-double-sum": _raw("sum of long doubles", [64 * KIB]),
    "raw-touch": _raw("loop that writes a word into each page", TOUCHED),
    "raw-futex": _raw("futex round trip", [0], ranks=[2]),
    "raw-yield": _raw("sched_yield round trip", [0], ranks=[2]),
    "raw-barrier": _raw("hand-written barrier", [0], ranks=RANKS),
    "raw-barrier-sessions": _raw("hand-written barrier, in a session each", [0], ranks=RANKS),
    "raw-barrier-asleep": _raw("the same, sleeping", [0], ranks=RANKS),
    "raw-barrier-put": _raw("store to the right, hand-written barrier", [8], ranks=RANKS),
    "raw-pair": _raw("flag, store, flag between two processes", [8], ranks=[2]),
    "raw-pass": _raw("store, flag to a waiting process", [8], ranks=[2]),
    "raw-ring": _raw("flag, store, flag around a ring", [8], ranks=RANKS),
    "raw-ring-sessions": _raw("flag, store, flag around a ring, in a session each", [8], ranks=RANKS),
    "raw-all": _raw("flags, stores, flags, all to all", [8], ranks=RANKS),
    "raw-hot-atomic": _raw("atomic add by all on one word", [8], ranks=RANKS),
    "raw-lock-contended": _raw("test-and-set lock of all, load, add, store", [8], ranks=RANKS),
    "raw-lock-contended-shared": _raw("two atomic adds by all on one word, a store between", [8], ranks=RANKS),
    "raw-lock-all": _raw("two atomic adds on an own word, a store to the right between", [8], ranks=RANKS),
}
ALWAYS_RAW = ["raw-store", "raw-store-fence", "raw-load", "raw-atomic", "raw-cas", "raw-futex", "raw-yield"]
BESIDE = {  # limit: further operations measured for comparison
    "raw-memcpy-shared": ["raw-memcpy"],
    "raw-barrier": ["raw-barrier-sessions", "raw-barrier-asleep"],
    "raw-ring": ["raw-ring-sessions"],
}
SAID_RAW = ALWAYS_RAW + BESIDE["raw-barrier"] + BESIDE["raw-ring"]  # printed above the table
GROUPS = list(dict.fromkeys(pattern.group for pattern in PATTERNS.values()))


def program_name(cell):
    """The cell's name in the program's arguments and output."""
    if cell.pattern in RAW:
        return "%s:%d" % (cell.pattern, cell.bytes) + (":%d" % cell.ranks if cell.ranks > 1 else "")
    return "%s:%s:%d:%d" % (cell.pattern, MEMORIES[cell.memory][0], cell.bytes, cell.in_flight)


def pattern_of(cell):
    return RAW[cell.pattern] if cell.pattern in RAW else PATTERNS[cell.pattern]


def _names(options):
    """The patterns that the options select; alignment only on request."""
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
    flights = pattern.quick_flights if quick else pattern.flights
    if options.sizes and len(pattern.sizes) >= (2 if pattern.group == "alignment" else CHOICE):
        sizes = options.sizes
    if options.ranks and len(pattern.ranks) > 1:
        ranks = options.ranks
    wanted = options.memories or (WAYS if pattern.group == "alignment" else QUICK if options.quick else USUAL)
    for memory in wanted + (["shared"] if not options.memories and not quick else []):
        if memory not in (pattern.memories or [name for name in MEMORIES if name != "shared"]):
            continue
        for count in ranks:
            if count > 2 and memory == "dynamic" and pattern.group != "window" and not options.memories:
                continue  # waiting does not depend on the memory: two kinds are enough
            for flight in flights:
                for size in sizes:
                    yield Cell(name, memory, count, size, flight)


def cells(options):
    """All MPI measurements, in the order of the table."""
    return [cell for name in _names(options) for cell in _pattern_cells(name, options)]


def memory_bytes(cell):
    """The maximum memory of its ranks together: each has a window and a buffer; get_accumulate has two buffers."""
    return 2 * cell.ranks * cell.bytes * cell.in_flight * (2 if cell.pattern == "get-accumulate" else 1)


def limit_cell(cell):
    """The raw cell that limits this one, or None. It has the same number of processes if it uses several."""
    name = pattern_of(cell).limit_of(cell)
    if name is None:
        return None
    raw = RAW[name]
    return Cell(name, "local", cell.ranks if len(raw.ranks) > 1 else raw.ranks[0],
                cell.bytes if cell.bytes in raw.sizes else raw.sizes[0], 1)


def raw_cells(wanted):
    """The limits of these cells, and the raw operations that characterise the node."""
    needed = dict.fromkeys(Cell(name, "local", RAW[name].ranks[0], RAW[name].sizes[0], 1) for name in ALWAYS_RAW)
    for limit in filter(None, map(limit_cell, wanted)):
        needed[limit] = None
        if limit.ranks != 2:  # two ranks have a processor each
            needed.update((limit._replace(pattern=name), None) for name in BESIDE.get(limit.pattern, []))
    order = list(RAW)
    return sorted(needed, key=lambda cell: (order.index(cell.pattern), cell.ranks, cell.bytes))


def title(cell):
    """A cell in words, without its memory."""
    pattern = pattern_of(cell)
    text = pattern.title
    if cell.bytes and (len(pattern.sizes) > 1 or pattern.group == "datatype"):
        text += ", " + human_bytes(cell.bytes)
    if pattern.flights == [1, FLIGHT]:
        text += ", flush" if cell.in_flight == 1 else ", %d in flight" % cell.in_flight
    if len(pattern.ranks) > 1:
        text += ", %d ranks" % cell.ranks
    return text
