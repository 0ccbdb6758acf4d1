"""The content of `oriel bench` results: cells, each with the figures of its columns, their ratio and the node's limit.

A failed cell has a word and a reason and no number. A ratio exists only if a host and every column of Oriel have figures. This
module does not depend on HTML."""

import statistics

from . import units

COLUMN_TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "oriel-mpich": "Oriel on MPICH", "oriel-openmpi": "Oriel on Open MPI",
                 "raw": "raw operation"}
MEMORIES = {  # name: (heading, short form)
    "allocate": ("Memory of MPI_Win_allocate", "allocate"),
    "create": ("Memory given to MPI_Win_create", "create"),
    "dynamic": ("Memory attached to a dynamic window", "dynamic"),
    "shared": ("Memory of MPI_Win_allocate_shared", "shared"),
    "cma": ("Memory given to MPI_Win_create, copied by the kernel", "cma"),
    "agent": ("Memory given to MPI_Win_create, copied by a thread of the target", "agent"),
}
GROUPS = {"contiguous": "Contiguous transfers", "atomic": "Atomics", "datatype": "Datatypes", "lock": "Locks",
          "active": "Fence and PSCW", "request": "Requests", "window": "Windows", "progress": "Busy target",
          "alignment": "Alignment", "raw": "Without MPI"}
FAILURES = ("wrong", "crash", "timeout", "refused")
KEY_SIZES = (8, 4096, 32768, 65536, 1 << 20)


class Figure:
    """One column's result in one cell: a time in ns, or the word for its failure and the reason."""

    def __init__(self, result):
        best = units.number(result.get("best"))
        status = str(result.get("status", ""))
        self.ns = best if status == "ok" else None
        self.failed = None if self.ns is not None else status if status in FAILURES else "no figure"
        self.reason = str(result.get("reason") or "")
        self.path = ", ".join(str(result[key]) for key in ("path", "path_reason") if result.get(key))
        samples = result.get("samples")
        self.samples = [sample for sample in map(units.number, samples if isinstance(samples, list) else []) if sample]

    def text(self):
        return self.failed or units.duration(self.ns)

    def spread(self):
        """Minimum, median and maximum of several runs as text; None of one."""
        if self.failed or len(self.samples) < 2:
            return None
        return (f"{units.duration(min(self.samples))}, median {units.duration(statistics.median(self.samples))}, "
                f"maximum {units.duration(max(self.samples))}")

    def varies(self):
        return not self.failed and len(self.samples) > 1 and max(self.samples) > units.VARIES * min(self.samples)


class Cell:
    """One pattern with its memory, ranks, size and number in flight."""

    def __init__(self, key, result):
        self.pattern, self.memory, self.ranks, self.bytes, self.in_flight = key
        self.title = str(result.get("title") or self.pattern)
        self.group = str(result.get("group") or "")
        self.limit_pattern = result.get("limit")
        self.figures = {}  # column name: Figure
        self.limit = None  # (ns, title of the raw operation)
        self.ratio = None
        self.limit_ratio = None
        self.outcome = "alone"  # faster, even, slower; oriel-fails; hosts-fail; alone: nothing to compare with

    def compare(self, columns):
        hosts = [self.figures[column.name] for column in columns if not column.oriel and column.name in self.figures]
        ours = [self.figures[column.name] for column in columns if column.oriel and column.name in self.figures]
        if not ours:
            return
        if any(figure.ns is None for figure in ours):
            self.outcome = "oriel-fails"
            return
        slower = max(figure.ns for figure in ours)
        if self.limit:
            self.limit_ratio = slower / self.limit[0]
        measured = [figure.ns for figure in hosts if figure.ns is not None]
        if measured:
            self.ratio = min(measured) / slower
            self.outcome = units.verdict(self.ratio)
        elif hosts:
            self.outcome = "hosts-fail"

    def verdict(self):
        """The comparison as text."""
        if self.ratio is None:
            return {"oriel-fails": "Oriel fails", "hosts-fail": "only Oriel works"}.get(self.outcome, "nothing to compare with")
        return f"Oriel {units.factor(self.ratio)}" if self.outcome != "even" else units.factor(self.ratio)


class Column:
    def __init__(self, name, title, oriel):
        self.name, self.title, self.oriel = name, title, oriel


def whole(value, default):
    """A count from the file: not negative and of plausible size."""
    return int(value) if isinstance(value, (int, float)) and 0 <= value < 1 << 62 else default


def records(value):
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


class Results:
    """The contents of a file: columns (without the raw one), cells in the order of the tables, raw figures."""

    def __init__(self, results):
        self.machine = results.get("machine") if isinstance(results.get("machine"), dict) else {}
        self.cells = []
        self.raw = []  # cells of one column, "raw"
        found = {}
        for result in records(results.get("results")):
            column = str(result.get("column", ""))
            key = (str(result.get("pattern", "")), str(result.get("memory", "")), whole(result.get("ranks"), 0),
                   whole(result.get("bytes"), 0), whole(result.get("in_flight"), 1))
            cell = found.get((key, column == "raw"))
            if cell is None:
                cell = found[(key, column == "raw")] = Cell(key, result)
                (self.raw if column == "raw" else self.cells).append(cell)
            cell.figures[column] = Figure(result)
        self.columns = self.read_columns(records(results.get("columns")))
        self.raw_title = next((str(entry.get("title")) for entry in records(results.get("columns"))
                               if entry.get("name") == "raw" and entry.get("title")), COLUMN_TITLES["raw"])
        self.sort_cells()
        self.sized = self.varied("bytes")
        self.scaled = self.varied("ranks")
        self.flown = self.varied("in_flight")
        # Those plotted over sizes; alignments are compared with each other instead.
        self.swept = self.sized - {cell.pattern for cell in self.cells if cell.group == "alignment"}
        self.find_limits()
        for cell in self.cells:
            cell.compare(self.columns)

    def read_columns(self, entries):
        """The columns that the file lists and that have results, then those that only occur in results."""
        used = {name for cell in self.cells for name in cell.figures}
        columns = [Column(str(entry.get("name")), str(entry.get("title") or entry.get("name")), bool(entry.get("oriel")))
                   for entry in entries if str(entry.get("name")) in used]
        named = {column.name for column in columns}
        return columns + [Column(name, COLUMN_TITLES.get(name, name), name.startswith("oriel"))
                          for name in sorted(used - named)]

    def sort_cells(self):
        """Sorts cells by memory, group, pattern and number in flight in the order measured, then by number."""
        orders = [{value: place for place, value in enumerate(self.distinct(name))} for name in ("memory", "group", "pattern")]
        self.cells.sort(key=lambda cell: (orders[0][cell.memory], orders[1][cell.group], cell.in_flight, orders[2][cell.pattern],
                                          cell.ranks, cell.bytes))

    def find_limits(self):
        raw = {}
        for cell in self.raw:
            figure = cell.figures["raw"]
            if figure.ns is not None:
                raw.setdefault((cell.pattern, cell.bytes, cell.ranks), (figure.ns, cell.title))
        for cell in self.cells:
            if cell.limit_pattern:  # of the same number of processes, or of one
                key = (str(cell.limit_pattern), cell.bytes)
                cell.limit = raw.get((*key, cell.ranks)) or raw.get((*key, 1))

    def distinct(self, name):
        """The distinct values of a cell's attribute, in the order measured."""
        return list(dict.fromkeys(getattr(cell, name) for cell in self.cells))

    def varied(self, name):
        """The patterns with more than one measured value of a cell's attribute."""
        values = {}
        for cell in self.cells:
            values.setdefault(cell.pattern, set()).add(getattr(cell, name))
        return {pattern for pattern, found in values.items() if len(found) > 1}

    def name(self, cell):
        """A cell's title, with the number in flight if that was varied."""
        return f"{cell.title}, {cell.in_flight} in flight" if cell.pattern in self.flown and cell.in_flight > 1 else cell.title

    def label(self, cell):
        """A cell's name, unique within its memory."""
        parts = [self.name(cell)]
        if cell.pattern in self.sized:
            parts.append(units.size(cell.bytes))
        if cell.pattern in self.scaled:
            parts.append(f"{cell.ranks} ranks")
        return ", ".join(parts)

    def key_cells(self):
        """The cells of the short table: the usual ones of many sizes, and all others."""
        many = {}
        for cell in self.cells:
            many.setdefault(cell.pattern, set()).add(cell.bytes)
        return [cell for cell in self.cells if len(many[cell.pattern]) <= len(KEY_SIZES) or cell.bytes in KEY_SIZES]

    def single_cells(self):
        """The cells of the plots of single operations: with the fewest ranks, and the smallest size of plotted sizes."""
        least = {}
        for cell in self.cells:
            key = (cell.pattern, cell.memory, cell.in_flight, cell.pattern in self.swept or cell.bytes)
            if key not in least or (cell.ranks, cell.bytes) < (least[key].ranks, least[key].bytes):
                least[key] = cell
        return list(least.values())
