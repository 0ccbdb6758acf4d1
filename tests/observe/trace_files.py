"""Reads trace files in the format of src/observe/trace/trace_format.h: an implementation
independent of the command's."""

import collections
import glob
import os
import re
import struct
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEADER_BYTES = 440
MARKS = 128  # the first kind of marks


def rows(kind):
    with open(os.path.join(ROOT, "src", "observe", "stats", "counters.def"), encoding="utf-8") as file:
        return re.findall(rf"^{kind}\((\w+),", file.read(), re.M)


OPERATIONS, CALLS, CAUSES = map(rows, ("OPERATION", "CALL", "CAUSE"))


def kind_name(kind):
    return OPERATIONS[kind] if kind < 64 else CALLS[kind - 64]


class Event:
    def __init__(self, words):
        (self.begin_ns, self.duration_ns, self.waiting_ns, self.bytes, self.target, self.cause_rank, self.window, self.site, kind, self.path,
         cause, self.thread) = words
        self.kind = kind_name(kind)
        self.cause = CAUSES[cause] if self.waiting_ns else None


class Mark:
    """A region or a pause."""

    def __init__(self, words):
        (self.begin_ns, self.duration_ns, self.waiting_ns, self.bytes, self.operations, low, self.region, high, kind, self.thread) = words
        self.calls_ns = high << 32 | low
        self.kind = ("region", "pause")[kind - MARKS]


Site = collections.namedtuple("Site", "module function file line offset")


class File:
    """One rank's file, which must be valid to its last byte."""

    def __init__(self, path):
        with open(path, "rb") as file:
            content = file.read()
        self.bytes = len(content)
        (magic, version, header_bytes, event_bytes, self.rank, self.size, self.pid) = struct.unpack_from("<QIIIiii", content)
        assert (magic, version, header_bytes, event_bytes) == (0x0a314352544c524f, 3, HEADER_BYTES, 48)
        assert struct.unpack_from("<I", content, 436)[0] == zlib.crc32(content[:436])
        (self.begin_ns,) = struct.unpack_from("<Q", content, 64)
        self.job, self.node = struct.unpack_from("<QQ", content, 32), struct.unpack_from("<QQ", content, 48)
        self.events, self.windows, self.clocks, self.end, self.dropped, self.sites = [], {}, [], None, 0, {}
        self.marks, self.regions, self.selection = [], {}, (1, "")
        at = HEADER_BYTES
        while at < len(content):
            at = self.block(content, at)

    def block(self, content, at):
        magic, kind, length, checksum, self.dropped = struct.unpack_from("<IIIIQ", content, at)
        payload = content[at + 24:at + 24 + length]
        assert magic == 0x4b4c424f and len(payload) == length and zlib.crc32(payload) == checksum
        assert self.end is None, "data after the end"
        if kind == 1:
            for words, mark in zip(struct.iter_unpack("<QQQQiiHHBBBB", payload), struct.iter_unpack("<QQQQIIHHB2xB", payload)):
                if mark[8] >= MARKS:
                    self.marks.append(Mark(mark))
                else:
                    self.events.append(Event(words))
        elif kind == 2:
            number, n = struct.unpack_from("<Ii", payload)
            name = payload[48:112].split(b"\0")[0].decode()
            self.windows[number] = (name, struct.unpack_from(f"<{n}i", payload, 272))
        elif kind == 3:
            self.clocks.append(struct.unpack("<QQQ", payload))
        elif kind == 4:
            self.end = struct.unpack("<QQQ", payload)
            assert self.end[1] == len(self.events) + len(self.marks)
        elif kind == 5:
            number, module, offset, function, path, line = struct.unpack("<I4x256s24xQ128s256s256xI4x", payload)
            texts = [text.split(b"\0")[0].decode() for text in (module, function, path)]
            self.sites[number] = Site(*texts, line, offset)
        elif kind == 6:
            number, name = struct.unpack("<I4x64s", payload)
            self.regions[number] = name.split(b"\0")[0].decode()
        elif kind == 7:
            sample, text = struct.unpack("<I4x504s", payload)
            self.selection = (sample, text.split(b"\0")[0].decode())
        return at + 24 + length

    def count(self, kind):
        return sum(event.kind == kind for event in self.events)


def read_folder(folder):
    """By rank."""
    paths = glob.glob(os.path.join(glob.escape(folder), "rank-*.oriel"))
    return sorted(map(File, paths), key=lambda file: file.rank)
