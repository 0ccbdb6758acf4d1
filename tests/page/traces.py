"""Writes trace files in the format of src/observe/trace/trace_format.h, for programs that never
ran: their contents are known exactly.

The kinds, paths and causes are the rows of src/observe/stats/counters.def. By hand: `traces.py
known|busy FOLDER`."""

import os
import re
import struct
import sys
import zlib

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EVENT = numpy.dtype([("begin_ns", "<u8"), ("duration_ns", "<u8"), ("waiting_ns", "<u8"), ("bytes", "<u8"), ("target", "<i4"),
                     ("cause_rank", "<i4"), ("window", "<u2"), ("site", "<u2"), ("kind", "u1"), ("path", "u1"), ("cause", "u1"), ("thread", "u1")])
EVENTS, WINDOW, CLOCK, END, SITE, REGION, SELECTION, HOST = range(1, 9)
MARKS = {"region": 128, "pause": 129}
BLOCK_EVENTS = 10000


def rows(kind):
    with open(os.path.join(ROOT, "src", "observe", "stats", "counters.def"), encoding="utf-8") as file:
        return re.findall(rf"^{kind}\((\w+),", file.read(), re.M)


OPERATIONS, PATHS, CALLS, CAUSES = map(rows, ("OPERATION", "PATH", "CALL", "CAUSE"))


def operation(name):
    return OPERATIONS.index(name)


def call(name):
    return 64 + CALLS.index(name)


class Rank:
    """One process's file. Times are relative to the start of the run, and written by its own
    clock."""

    def __init__(self, folder, rank, size, machine=(1, 2), shift_ns=0, program="/opt/app/ring", host="mpich", job=(7, 9),
                 host_version="MPICH 4.0.2"):
        self.rank, self.shift_ns, self.events, self.written, self.sites = rank, shift_ns, [], 0, {}
        self.file = open(os.path.join(folder, f"rank-{rank}.oriel"), "wb")
        head = struct.pack("<QIIIiii2Q2QQQ64s16s16s256sI", 0x0a314352544c524f, 3, 440, EVENT.itemsize, rank, size, 100 + rank,
                           *job, *machine, 5_000_000_000 + shift_ns, 1_790_000_000_000_000_000,
                           f"node{machine[0]}".encode(), host.encode(), b"0.1.0",
                           program.encode("utf-8", "surrogateescape"), 0)
        head += struct.pack("<I", zlib.crc32(head))
        assert len(head) == 440
        self.file.write(head)
        self.block(HOST, host_version.encode().ljust(128, b"\0"))
        self.clock(0)

    def own_ns(self, at_ns):
        return 5_000_000_000 + self.shift_ns + at_ns

    def block(self, kind, content, dropped=0):
        self.file.write(struct.pack("<IIIIQ", 0x4b4c424f, kind, len(content), zlib.crc32(content), dropped) + content)

    def clock(self, at_ns):
        self.block(CLOCK, struct.pack("<QQQ", self.own_ns(at_ns), 5_000_000_000 + at_ns, 200))

    def site(self, text):
        """The number of a call site: "main at app.c:40", or "app+0x1234"."""
        if not text:
            return 0
        if text not in self.sites:
            self.sites[text] = len(self.sites) + 1
            module, function, path, line, offset = "/opt/app/ring", text, "", 0, 0
            if found := re.fullmatch(r"(.+) at (.+):(\d+)", text):
                function, path, line = found[1], found[2], int(found[3])
            elif found := re.fullmatch(r"(.+)\+0x([0-9a-f]+)", text):
                module, function, offset = f"/opt/app/{found[1]}", "", int(found[2], 16)
            self.block(SITE, struct.pack("<I4x256s20s4xQ128s256s256sII", self.sites[text], module.encode(), b"\1" * 20, offset,
                                         function.encode("utf-8", "surrogateescape"), path.encode(), b"", line, line > 0))
        return self.sites[text]

    def window(self, number, ranks, rank, name, flavour=1, size_bytes=65536, path="direct", site="", reason="", window_id=None):
        self.flush()
        place = self.site(site)
        self.block(WINDOW, struct.pack("<IiiIQQqB5xH64s160s", number, len(ranks), rank, flavour,
                                       1000 + number if window_id is None else window_id, size_bytes, 8, PATHS.index(path), place,
                                       name.encode("utf-8", "surrogateescape"), reason.encode())
                   + struct.pack(f"<{len(ranks)}i", *ranks))

    def event(self, kind, begin_ns, duration_ns, window=0, bytes_=0, target=-1, path="direct", waiting_ns=0, cause=None,
              cause_rank=-1, site=""):
        self.events.append((self.own_ns(begin_ns), duration_ns, waiting_ns, bytes_, target, cause_rank, window, self.site(site), kind,
                            PATHS.index(path), CAUSES.index(cause) if cause else 0, 0))
        return begin_ns + duration_ns

    def region(self, number, name):
        self.block(REGION, struct.pack("<I4x64s", number, name.encode()))

    def selection(self, sample, text):
        self.block(SELECTION, struct.pack("<I4x504s", sample, text.encode()))

    def mark(self, kind, begin_ns, duration_ns, region=0, operations=0, bytes_=0, calls_ns=0, waiting_ns=0):
        self.events.append((self.own_ns(begin_ns), duration_ns, waiting_ns, bytes_, operations, calls_ns & 0xffffffff, region,
                            calls_ns >> 32, MARKS[kind], 0, 0, 0))

    def flush(self):
        self.add(numpy.array(self.events, EVENT))
        self.events = []

    def add(self, events, dropped=0):
        for first in range(0, len(events), BLOCK_EVENTS):
            self.block(EVENTS, events[first:first + BLOCK_EVENTS].tobytes(), dropped)
        self.written += len(events)

    def close(self, at_ns, ended=True, dropped=0):
        self.flush()
        self.clock(at_ns)
        if ended:
            self.block(END, struct.pack("<QQQ", self.own_ns(at_ns), self.written, dropped), dropped)
        self.file.close()


KNOWN_RANKS, KNOWN_STEPS = 4, 10


def known(folder, **changes):
    """Four ranks. In the window "halo" each puts 1000 (rank + 1) bytes to the next one in each of
    ten steps of a millisecond. Rank 3 is 400 us late for the fences. In "table", a window of
    ranks 1 to 3, the ranks in turn lock rank 1 (the window's 0) and get 8 bytes three times.
    Each waits 50 us for the one before. Both windows are created and freed."""
    for rank in range(KNOWN_RANKS):
        file = Rank(folder, rank, KNOWN_RANKS, machine=(1 + rank // 2, 3), shift_ns=rank // 2 * 1_000_000_000, **changes)
        file.window(0, range(KNOWN_RANKS), rank, "halo", size_bytes=65536, site="main at halo.c:42")
        if rank:
            path = "cma" if rank == 2 else "promoted"
            file.window(1, (1, 2, 3), rank - 1, "table", flavour=0, size_bytes=4096 * rank, path=path,
                        site="build at table.c:7", reason="memory of a stack" if rank == 2 else "")
        file.event(call("create"), 0, 30_000, site="main at halo.c:42")
        file.event(call("fence"), 40_000, 10_000)
        for step in range(KNOWN_STEPS):
            begin = 100_000 + step * 1_000_000
            file.event(operation("put"), begin, 2_000, bytes_=1000 * (rank + 1), target=(rank + 1) % KNOWN_RANKS,
                       site="exchange at halo.c:60")
            late = rank == KNOWN_RANKS - 1
            file.event(call("fence"), begin + (500_000 if late else 100_000), 5_000 if late else 405_000,
                       waiting_ns=0 if late else 400_000, cause=None if late else "late_fence",
                       cause_rank=-1 if late else KNOWN_RANKS - 1, site="exchange at halo.c:61")
        if rank:
            at = 11_000_000 + rank * 50_000
            waits = 50_000 if rank > 1 else 0
            at = file.event(call("lock"), at - waits, waits + 1_000, window=1, target=0, waiting_ns=waits,
                            cause="busy_lock" if waits else None, cause_rank=rank - 2 if waits else -1,
                            site="look_up at table.c:20")
            for _ in range(3):
                at = file.event(operation("get"), at, 1_500, window=1, bytes_=8, target=0, path=path)
            file.event(call("unlock"), at, 500, window=1, target=0)
            file.event(call("free"), 11_500_000, 20_000, window=1)
        file.event(call("free"), 11_900_000, 50_000)
        file.close(11_950_000)


def busy(folder, ranks=64, events=1_200_000, windows=3):
    """Many ranks that put, get and accumulate, to neighbours and sometimes to any other, with a
    fence after each hundred operations. In the middle third of the run, one rank of each eight
    is slow and the seven others wait for it. Pseudo-random with a fixed seed."""
    draw = numpy.random.default_rng(8)
    each, step = events // ranks, 100
    part = each // 3
    for rank in range(ranks):
        file = Rank(folder, rank, ranks, machine=(1 + rank // 16, 3), shift_ns=rank // 16 * 777_000,
                    program="/home/user/stencil --large")
        for window in range(windows):
            file.window(window, range(ranks), rank, f"field {window}" if window < 2 else "", size_bytes=1 << 24,
                        path=("direct", "promoted", "cma")[window % 3], site=f"allocate_field at field.c:{40 + window}",
                        reason="memory of a file" if window % 3 == 2 else "")
        new = numpy.zeros(each, EVENT)
        new["begin_ns"] = file.own_ns(0) + numpy.arange(each) * 100_000 + draw.integers(0, 20_000, each)
        new["duration_ns"] = numpy.minimum(numpy.exp(draw.normal(9.6, 1, each)), draw.integers(60_000, 79_000, each)).astype("u8")
        new["kind"] = draw.choice([operation("put")] * 6 + [operation("get")] * 3 + [operation("accumulate")], each)
        new["bytes"] = 8 << draw.integers(0, 14, each).astype("u8")
        near = (rank + draw.choice([-8, -1, 1, 8], each)) % ranks
        new["target"] = numpy.where(draw.random(each) < 0.95, near, draw.integers(0, ranks, each))
        new["window"] = numpy.minimum(numpy.arange(each) // part, windows - 1)
        new["path"] = numpy.array([0, 1, 2])[new["window"] % 3]
        new["cause_rank"] = -1
        new["site"] = file.site("exchange at field.c:77")
        fences = slice(step - 1, None, step)
        waits = draw.integers(5_000, 60_000, len(new[fences])).astype("u8")
        new["kind"][fences], new["bytes"][fences], new["target"][fences] = call("fence"), 0, -1
        new["waiting_ns"][fences], new["duration_ns"][fences] = waits, waits + 3000
        new["cause_rank"][fences] = (rank + 1) % ranks
        new["site"][fences] = file.site("finish at field.c:90")
        if rank % 8 != 7:  # in the middle, reaches the fences with half of the time left, and waits
            positions = numpy.arange(each)
            waiting = (new["window"] == 1) & (positions % step >= step // 2)
            ends = waiting & (positions % step == step - 1)
            begin = new["begin_ns"][numpy.flatnonzero(ends) - step // 2]
            new["waiting_ns"][ends] = new["begin_ns"][ends] - begin
            new["duration_ns"][ends] = new["waiting_ns"][ends] + 3000
            new["begin_ns"][ends] = begin
            new["cause_rank"][ends] = rank // 8 * 8 + 7
            new = new[~waiting | ends]
        file.add(new)
        file.close(int(each * 100_000) + 1_000_000)


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    {"known": known, "busy": busy}[sys.argv[1]](sys.argv[2])
