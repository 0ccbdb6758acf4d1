"""A generated program: its steps, one per line of a table. Each step belongs to one rank.
generate.py generates programs; oracle.py computes their errors."""

import dataclasses

# Types by their number in the table: bytes, and whether they are plain integers. Updates of plain
# integers of equal size are compatible.
INT, UNSIGNED, LONG, DOUBLE, FLOAT, SHORT, BYTE, LONG_LONG = range(8)
BASIC_BYTES = {INT: 4, UNSIGNED: 4, LONG: 8, DOUBLE: 8, FLOAT: 4, SHORT: 2, BYTE: 1, LONG_LONG: 8}
REALS = {DOUBLE, FLOAT}
FIRST_DRAWN_TYPE = 8

OPERATORS = SUM, REPLACE, NO_OP, MAX, MIN = range(5)
SWAP = 5  # the operator of compare_and_swap

KINDS = ["put", "get", "accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap", "rput", "rget", "raccumulate"]
PUTS, GETS = {"put", "rput"}, {"get", "rget"}
FETCHES = {"get_accumulate", "fetch_and_op", "compare_and_swap"}
SITES = 16

ALLOCATED, IN_ARENA, SHARED, DYNAMIC = range(4)  # window flavours
NOPRECEDE, NOSUCCEED, NOPUT, NOSTORE = 1, 2, 4, 8  # assertions of fences and posts


@dataclasses.dataclass(frozen=True)
class Type:
    """A datatype at the time a step uses it: blocks of (offset, bytes) of one item, its extent, its
    basic type."""
    basic: int
    blocks: tuple
    extent: int
    elements: int

    def runs(self, at, count):
        """Byte ranges of count items from offset at."""
        return [(at + i * self.extent + low, at + i * self.extent + low + length)
                for i in range(count) for low, length in self.blocks]

    def size(self):
        return sum(length for _, length in self.blocks)


def basic_type(number):
    return Type(number, ((0, BASIC_BYTES[number]),), BASIC_BYTES[number], 1)


def drawn_type(shape, count, basic):
    """The types of steps.c: contiguous, or every second element."""
    size = BASIC_BYTES[basic]
    if shape == 0:
        return Type(basic, ((0, size * count),), size * count, count)
    return Type(basic, tuple((2 * i * size, size) for i in range(count)), (2 * count - 1) * size, count)


@dataclasses.dataclass(frozen=True)
class Window:
    """One created window: its number in the table, how often that number has been created, and the
    location of its memory."""
    number: int
    making: int
    kind: int
    size: int
    unit: int
    at: int
    hint: int  # accumulate_ops: 0 not set, 1 same_op, 2 same_op_no_op

    def is_in_arena(self):
        return self.kind in (IN_ARENA, DYNAMIC)

    def byte_id(self, target, offset):
        """Identity of a byte, the same through all windows that share it."""
        return (target, "arena", self.at + offset) if self.is_in_arena() else (target, (self.number, self.making), offset)


@dataclasses.dataclass
class Step:
    rank: int
    what: str
    fields: tuple = ()
    window: Window = None  # of operations and synchronisation calls
    type: Type = None      # of operations, at the target
    origin: Type = None    # at the origin
    name: str = None       # the window's name at this step
    line: int = None       # in the table

    def text(self):
        return " ".join(map(str, (self.rank, self.what, *self.fields)))


@dataclasses.dataclass
class Program:
    seed: int
    ranks: int
    in_turns: bool
    delays: int
    together: bool  # all ranks are on one node
    steps: list

    def is_prompt(self, window):
        """Whether operations of the window are complete when they return, and the checker can rely
        on that."""
        return self.together and window.kind != DYNAMIC

    def table(self, first_line):
        """The program's lines, numbered by their position in the whole table."""
        for number, step in enumerate(self.steps):
            step.line = first_line + number
        return [step.text() for step in self.steps]
