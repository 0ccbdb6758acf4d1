"""The benchmark's terminal output: the progress bar, and the table at the end.
The table has a time only if the data of all runs were right; otherwise it has a word for the failure."""

import os
import sys
import time

import catalogue
from results import displayed


class Progress:
    """A progress bar on a terminal, otherwise none; notes always go to stderr."""

    def __init__(self):
        self.shown = sys.stderr.isatty()
        self.label = ""
        self.done = 0
        self.total = 1
        self.start_s = time.monotonic()
        self.what = ""

    def expect(self, total):
        self.total = max(total, 1)

    def skip(self, count):
        self.done += count

    def show(self, column, name):
        self.what = "%s: %s" % (column, name)
        if not self.shown:
            return
        part = min(self.done / self.total, 1)
        elapsed_s = time.monotonic() - self.start_s
        left = " %s left" % _clock(elapsed_s / part - elapsed_s) if part > 0.02 else ""
        bar = "#" * int(part * 24)
        text = "[%-24s] %3d %%%s  %s %s" % (bar, part * 100, left, self.label, self.what)
        self._write("\r\033[K" + text[:_width() - 1])

    def clear(self):
        if self.shown:
            self._write("\r\033[K")

    def note(self, text):
        self.clear()
        self._write("oriel bench: " + text + "\n")

    def _write(self, text):
        """A closed terminal does not end the measurement."""
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:
            self.shown = False


def _width():
    """The width of stderr's terminal; stdout may be a file."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _clock(seconds):
    return "%d:%02d" % divmod(int(seconds), 60)


def human(ns):
    for unit, scale, limit in (("ns", 1, 1e4), ("us", 1e3, 1e7), ("ms", 1e6, 1e9)):
        if ns < limit:
            value = ns / scale
            return "%s %s" % (format(value, ",.0f") if value >= 100 else "%.3g" % value, unit)
    return "%.2f s" % (ns / 1e9)


def human_bytes(count):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return "%d %s" % (count // scale, unit)
    return "%s B" % format(count, ",")


def title(cell):
    pattern = catalogue.pattern_of(cell)
    text = pattern.title
    if cell.bytes and (len(pattern.sizes) > 1 or pattern.group == "datatype"):
        text += ", " + human_bytes(cell.bytes)
    if pattern.flights == [1, catalogue.FLIGHT]:
        text += ", flush" if cell.in_flight == 1 else ", %d before a flush" % cell.in_flight
    if len(pattern.ranks) > 1:
        text += ", %d ranks" % cell.ranks
    return text


def shown(column, cell):
    if cell in column.failed:
        return column.failed[cell][0]
    return human(column.best(cell)) if column.best(cell) is not None else "-"


def slower_oriel(bench, cell):
    """The slower of Oriel's columns: the minimum performance on any host. None when one has no result."""
    through = [column.best(cell) for column in bench.columns if column.oriel]
    return max(through) if through and None not in through else None


def ratio(bench, cell):
    """The better host's time over the slower Oriel's; below 1, Oriel is slower."""
    alone = [column.best(cell) for column in bench.columns if not column.oriel and column.best(cell) is not None]
    ours = slower_oriel(bench, cell)
    return min(alone) / ours if alone and ours else None


def limit_of(bench, cell):
    limit = catalogue.limit_cell(cell)
    return bench.raw.best(limit) if limit else None


def ratio_text(value):
    if value is None:
        return "-"
    return "%s x" % (format(value, ",.0f") if value >= 100 else "%.1f" % value if value >= 1 else "%.2f" % value)


def _rows(bench):
    order = displayed(bench)
    rows = [["pattern", "memory"] + [c.title for c in order] + ["Oriel faster by", "raw"]]
    for cell in bench.cells:
        if not any(cell in c.samples or cell in c.failed for c in order):
            continue  # an interrupted run did not reach it
        limit = limit_of(bench, cell)
        rows.append([title(cell), cell.memory] + [shown(c, cell) for c in order]
                    + [ratio_text(ratio(bench, cell)), human(limit) if limit is not None else "-"])
    return rows


def _print_rows(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        words = [word.ljust(width) if i < 2 else word.rjust(width) for i, (word, width) in enumerate(zip(row, widths))]
        print("| " + " | ".join(words) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 1) + ("-" if i < 2 else ":") for i, width in enumerate(widths)) + "|")


def _figure_rows(bench, figures):
    columns = [column for column in displayed(bench) if column.oriel]
    rows = {}
    for figure in figures:
        row = rows.setdefault((figure["figure"], figure["memory"], figure["bound"]), {})
        row[figure["column"]] = "%s (%.2f of %s)" % (human(figure["ns"]), figure["ns"] / figure["bound_ns"],
                                                     human(figure["bound_ns"]))
    return [["figure", "memory", "bound"] + [c.title for c in columns]] + [
        list(what) + [row.get(c.name, "-") for c in columns] for what, row in rows.items()]


def _strange_ways(bench):
    """Messages about program memory with an unusual path, whose times are those of that path."""
    counted = {}
    for column in bench.columns:
        for cell, path in column.paths.items():
            if cell.memory == "create" and path != "promoted":
                counted.setdefault((column.title, path, column.path_reasons.get(cell, "no reason given")), []).append(cell)
    return ["%s: the path to memory of MPI_Win_create was %s (%s) in %d patterns: %s" % (
        *what, len(cells), ", ".join(title(cell) for cell in cells)) for what, cells in counted.items()]


def print_report(bench, results):
    machine = results["machine"]
    hosts = ["%s %s" % (host["title"], host["version"]) for host in machine["hosts"]]
    print("%s, %d cores, %s; %s; best of %s, %d s in all%s\n" % (
        machine["processor"], machine["cores"], machine["kernel"], "; ".join(hosts),
        "1 run" if bench.runs == 1 else "%d runs" % bench.runs,
        results["elapsed_s"], "" if results["complete"] else "; interrupted"))
    raw = [(cell, shown(bench.raw, cell)) for cell in bench.raw_cells  # limits with sizes are in the table
           if cell.pattern in catalogue.SAID_RAW and (cell in bench.raw.samples or cell in bench.raw.failed)]
    print("This node without MPI: " + ", ".join("%s %s" % (title(cell), text) for cell, text in raw) + "\n")
    _print_rows(_rows(bench))
    for line in _strange_ways(bench) if not bench.options.net else ():
        print("\n" + line)
    if results.get("figures"):
        print("\nBounds for internode windows; the number in brackets is the time divided by the bound, above 1 it is missed:\n")
        _print_rows(_figure_rows(bench, results["figures"]))
