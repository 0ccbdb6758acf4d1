"""The benchmark's terminal output: the progress bar, and the table at the end.
The table has a time only if the data of all runs were right; otherwise it has a word for the failure."""

import os
import sys
import time

import catalogue
from comparison import machine_of
from results import displayed
from spread import faster_or_slower, human

WIDEST = 100  # columns of a table


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


def shown(column, cell):
    if cell in column.failed:
        return column.failed[cell][0]
    return column.spread(cell).text() if column.best(cell) is not None else "-"


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
    return "-" if value is None else faster_or_slower(value)


def _rows(bench):
    order = displayed(bench)
    rows = [["pattern", "memory"] + [c.title for c in order] + ["Oriel is", "raw"]]
    for cell in bench.cells:
        if not any(cell in c.samples or cell in c.failed for c in order):
            continue  # an interrupted run did not reach it
        limit = limit_of(bench, cell)
        rows.append([catalogue.title(cell), cell.memory] + [shown(c, cell) for c in order]
                    + [ratio_text(ratio(bench, cell)), human(limit) if limit is not None else "-"])
    return rows


def _print_rows(rows, times, words_columns=2):
    """Prints a table. One wider than WIDEST has the columns `times` in a line of their own, below the rest of the row."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    whole = range(len(widths))
    fits = sum(widths) + 3 * len(widths) + 1 <= WIDEST
    lines = [whole] if fits else [[i for i in whole if i not in times], times]
    for number, row in enumerate(rows):
        for line in lines:
            cells = [row[i].ljust(widths[i]) if i < words_columns else row[i].rjust(widths[i]) for i in line]
            print(("|   " if line is times else "| ") + " | ".join(cells) + " |")
        if number == 0:
            print("|" + "|".join("-" * (widths[i] + 1) + ("-" if i < words_columns else ":") for i in lines[0]) + "|")


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
        *what, len(cells), ", ".join(catalogue.title(cell) for cell in cells)) for what, cells in counted.items()]


def print_report(bench, results):
    machine = results["machine"]
    hosts = ["%s %s" % (host["title"], host["version"]) for host in machine["hosts"]]
    print("%s, %d cores, %s; %s; %s, %d s in all%s\n" % (
        machine["processor"], machine["cores"], machine["kernel"], "; ".join(hosts),
        "1 run" if bench.runs == 1 else "minimum/median/maximum of %d runs" % bench.runs,
        results["elapsed_s"], "" if results["complete"] else "; interrupted"))
    for warning in results["warnings"]:
        print("warning: " + warning)
    if results["warnings"]:
        print()
    raw = [(cell, shown(bench.raw, cell)) for cell in bench.raw_cells  # limits with sizes are in the table
           if cell.pattern in catalogue.SAID_RAW and (cell in bench.raw.samples or cell in bench.raw.failed)]
    print("This node without MPI: " + ", ".join("%s %s" % (catalogue.title(cell), text) for cell, text in raw) + "\n")
    rows = _rows(bench)
    _print_rows(rows, range(2, len(rows[0]) - 2))
    for line in _strange_ways(bench) if not bench.options.net else ():
        print("\n" + line)
    if results.get("figures"):
        print("\nBounds for internode windows; the number in brackets is the time divided by the bound, above 1 it is missed:\n")
        rows = _figure_rows(bench, results["figures"])
        _print_rows(rows, range(3, len(rows[0])))


def print_comparison(comparison):
    """The times of two runs, and a line that counts the verdicts."""
    counts = {}
    for change in comparison.changes:
        counts[change.verdict] = counts.get(change.verdict, 0) + 1
    print("\nCompared with %s, in %d results: %s" % (
        machine_of(comparison.before).get("date") or "the earlier run", len(comparison.changes),
        ", ".join("%d %s" % (counts[verdict], words) for verdict, words in (
            ("slower", "slower"), ("faster", "faster"), ("noise", "within the noise of %.0f %%" % (100 * comparison.noise)),
            ("fails now", "that fail now"), ("worked now", "that work now"), ("fails", "that fail as before")) if verdict in counts)
        or "none in both"))
    for note in comparison.notes():
        print("note: " + note)
    if comparison.missing or comparison.added:
        print("note: %d results are only in the earlier run, %d only in the later one" % (comparison.missing, comparison.added))
    rows = [["pattern", "memory", "column", "before", "after", "after is"]]
    for change in comparison.ordered():
        cell = catalogue.Cell(*(change.result[name] for name in catalogue.Cell._fields))
        known = cell.pattern in catalogue.PATTERNS or cell.pattern in catalogue.RAW
        rows.append([catalogue.title(cell) if known else cell.pattern, cell.memory, change.result["column"]]
                    + [spread.text() if spread else "-" for spread in (change.before, change.after)] + [change.text()])
    if len(rows) > 1:
        print()
        _print_rows(rows, range(3, 5), 3)
