"""Runs the benchmark's cells in jobs, alternately on each host with and without Oriel, and records the results.
A cell that crashes, hangs or has wrong data is marked with the reason. It does not affect others and is not repeated."""

import os
import re
import sys
import time

import catalogue
import jobs
from load import BUSY_LEAST, Load
from spread import VARIES, Spread

JOB_CELLS = 24  # of one job: memory that is repeatedly given to windows is not promoted indefinitely
HEAVY_BYTES = 16 << 20  # of the program's memory in one window: a larger cell has its own job
SILENT_JOBS = 3  # after this number of consecutive jobs that start no pattern, the rest is skipped
BATCHES, QUICK_BATCHES = 10, 5
QUICK_BUDGETS_S = 0.4, 1.0  # for a cell's batches in a job of two ranks, and of more
BUDGETS_S, FULL_S = (0.2, 0.8), 1200  # a cell gets its part of FULL_S, within these bounds
HOPELESS = 3  # after this number of crashes of a host between nodes, and no result, the rest is skipped
VARYING_SHOWN = 4  # names in the warning about results that vary
START_S = 30  # additional time of a job before its first pattern


class Column:
    """The results of a host without or with Oriel, or of the raw operations, by cell."""

    def __init__(self, name, title, host=None, oriel=False):
        self.name = name
        self.title = title
        self.host = host
        self.oriel = oriel
        self.library = ""
        self.samples = {}
        self.failed = {}  # cell: (status, reason)
        self.paths = {}  # by cell: the path to the window's memory, from the window's info
        self.path_reasons = {}  # why no better path is in use

    def best(self, cell):
        return min(self.samples[cell]) if self.samples.get(cell) and cell not in self.failed else None

    def spread(self, cell):
        """The Spread of the cell's samples; None without a valid result."""
        return Spread(self.samples[cell]) if self.best(cell) is not None else None

    def fail(self, cell, status, reason):
        self.failed.setdefault(cell, (status, reason))

    def version(self):
        found = re.search(jobs.VERSIONS[self.host], self.library) if self.host else None
        return found.group(1) if found else "unknown"


def columns_of(hosts, alone):
    """Host, Oriel, host, Oriel: other load affects all alike."""
    columns = []
    for host in hosts:
        columns.append(Column(host, jobs.LABELS[host], host))
        if not alone:
            columns.append(Column("oriel-" + host, "Oriel on " + jobs.LABELS[host], host, True))
    return columns


class Bench:
    """All columns and cells of one call of the command."""

    def __init__(self, prefix, columns, cells, options, progress):
        self.prefix = prefix
        self.columns = columns
        self.raw = Column("raw", "raw operation")
        self.cells = cells
        self.raw_cells = catalogue.raw_cells(cells)
        self.options = options
        self.progress = progress
        self.net = None  # command prefix for the nodes with --net
        self.runs = 0  # started
        self.notes = []  # problems that belong to no cell
        self.bad_ends = 0  # jobs with Oriel that measured everything and then failed
        self.load = Load()
        self.command = ""  # as the user wrote it

    def run(self, saved):
        """Runs everything `runs` times. Calls saved() after each part, so that an interrupt loses little."""
        self.progress.expect((len(self.cells) * len(self.columns) + len(self.raw_cells)) * self.options.runs)
        start_s = time.monotonic()
        for number in range(1, self.options.runs + 1):
            if self._is_enough(time.monotonic() - start_s, number - 1):
                return
            self.runs = number
            self.progress.label = "run %d/%d" % (number, self.options.runs)
            self._look_at_load(number)
            self._column_run(self.raw, 1, self.raw_cells)
            for ranks, part in self._parts():
                for column in self.columns:
                    self._column_run(column, ranks, part)
                saved()

    def _look_at_load(self, number):
        """A warning before the first run: the user may stop, and wait for an idle node."""
        busy = self.load.look()
        if number == 1 and busy is not None and busy >= BUSY_LEAST:
            self.progress.note(next(iter(self.load.warnings())))

    def warnings(self):
        """Reasons to doubt the figures."""
        listed = list(self.load.warnings())
        varying = ["%s, %s (%s)" % (column.title, catalogue.title(cell), cell.memory) for column in self.columns for cell in self.cells
                   if column.best(cell) is not None and column.spread(cell).varies()]
        if varying:
            listed.append("%d of %d results vary by more than %.0f %% between runs: %s" % (
                len(varying), sum(column.best(cell) is not None for column in self.columns for cell in self.cells),
                100 * (VARIES - 1), "; ".join(varying[:VARYING_SHOWN]) + (" and others" if len(varying) > VARYING_SHOWN else "")))
        return listed

    def _is_enough(self, elapsed_s, runs):
        """True when the next run would end too late: a busy node gets fewer runs, not more time."""
        return self.options.enough_s is not None and runs > 0 and elapsed_s * (runs + 1) / runs > self.options.enough_s

    def _parts(self):
        """Cells that can share a job: with the same number of ranks and the same environment for Oriel."""
        for ranks in sorted({cell.ranks for cell in self.cells}):
            these = [cell for cell in self.cells if cell.ranks == ranks]
            environments = []
            for cell in these:
                if catalogue.MEMORIES[cell.memory][1] not in environments:
                    environments.append(catalogue.MEMORIES[cell.memory][1])
            for settings in environments:
                alike = [cell for cell in these if catalogue.MEMORIES[cell.memory][1] == settings]
                for cell in filter(_is_heavy, alike):
                    yield ranks, [cell]
                light = [cell for cell in alike if not _is_heavy(cell)]
                for first in range(0, len(light), JOB_CELLS):
                    yield ranks, light[first:first + JOB_CELLS]

    def _column_run(self, column, ranks, part):
        """Runs all cells in one job, and again without those that ended it."""
        end = self.progress.done + len(part)
        groups, silent = [part], 0
        while groups:
            for cell in groups[0]:
                self._give_up_larger(column, cell)
            self._give_up_hopeless(column, groups[0])
            group = [cell for cell in groups.pop(0) if cell not in column.failed]
            if not group:
                continue
            job, ended = self._job(column, ranks, group)
            silent = silent + 1 if ended and not job.begun else 0
            if ended and (silent < SILENT_JOBS or column.samples):
                groups = self._blame(column, job, *ended) + groups
            elif ended:  # no job ever started a pattern, and later ones would not either
                for cell in job.left + [cell for later in groups for cell in later]:
                    column.fail(cell, ended[0], ended[1] + ", before any pattern began")
        self.progress.done = end

    @staticmethod
    def _give_up_larger(column, cell):
        """Skips a cell when fewer ranks or bytes already took too long."""
        for other, (status, _) in list(column.failed.items()):
            same = (other.pattern, other.memory, other.in_flight) == (cell.pattern, cell.memory, cell.in_flight)
            if same and status == "timeout" and other != cell and other.ranks <= cell.ranks and other.bytes <= cell.bytes:
                column.fail(cell, "timeout", "skipped: %d ranks with %d B already took too long" % (other.ranks, other.bytes))

    def _give_up_hopeless(self, column, cells):
        """A host that cannot create internode windows crashes in every job: a few of them are enough."""
        crashes = [reason for status, reason in column.failed.values() if status == "crash"]
        if self.net is None or column.oriel or column.samples or len(crashes) < HOPELESS:
            return
        for cell in cells:
            column.fail(cell, "crash", "skipped, like the others: " + crashes[0])

    def _program(self, column):
        folder = os.path.join(self.prefix, "lib", "oriel", column.host or "bench")
        if column.host is not None:
            return [os.path.join(folder, "rma")]
        if self.net is not None:
            return [sys.executable, "-s", "-E", "-B", os.path.join(folder, "link.py"), *self.net, "--"]
        return [os.path.join(folder, "raw")]

    def _budget_s(self, ranks):
        """The time of one cell in one run: less with more cells, more when ranks share processors."""
        if self.options.quick:
            return QUICK_BUDGETS_S[ranks > 2]
        share_s = FULL_S / (len(self.cells) * len(self.columns) * self.options.runs)
        return min(max(share_s * (1 if ranks <= 2 else 2.5), BUDGETS_S[0]), BUDGETS_S[1])

    def _job(self, column, ranks, cells):
        """Runs the cells. Returns the _Job and, unless all cells were measured, its end as (status, reason)."""
        options, job = self.options, _Job(column, cells, self.progress, self.net is not None and column.oriel)
        limits = ["--batches=%d" % (QUICK_BATCHES if options.quick else BATCHES), "--budget=%.2f" % self._budget_s(ranks)]
        if self.net is not None and column.host == "mpich":
            limits.append("--leaves")  # it often hangs in MPI_Finalize between nodes (docs/concepts/internode.md)
        oriel = os.path.join(self.prefix, "bin", "oriel") if column.oriel else None
        settings = catalogue.MEMORIES[cells[0].memory][1] if column.oriel else catalogue.MANY_REGIONS.get(column.host, {})
        result = jobs.launch(column.host, ranks, self._program(column) + limits + list(job.names), oriel, limit_s=1e9,
                             quiet_s=options.limit, start_s=options.limit + START_S, on_line=job.line, environment=settings,
                             net=self.net)
        if job.foreign:
            return job, ("refused", "the job's MPI library is not Oriel's: " + job.foreign[:80])
        if job.left:
            last = _last_words(result.errors)
            last = ": " + last if last else ""
            if result.status is None:
                return job, ("timeout", "no progress for %d s" % options.limit + last)
            return job, ("crash", (result.describe() if result.status else "ended without a valid result") + last)
        if result.status not in (0, 1):  # 1: data were wrong, and a line names the pattern
            self._note("%s: after the last pattern: %s" % (column.title, result.describe()))
            self.bad_ends += column.oriel
        return job, None

    def _blame(self, column, job, status, reason):
        """Marks the cells that ended the job; returns the groups to run next. Launchers lose a crashing job's last lines, so
        a crash only counts for a cell that ran alone."""
        if status == "crash" and len(job.names) > 1:
            suspects = job.running or job.left
            return [[cell] for cell in suspects] + [[cell for cell in job.left if cell not in suspects]]
        culprits = job.running if status == "timeout" and job.running else job.left
        for cell in culprits:
            column.fail(cell, status, reason)
        if column.oriel:
            self._note("%s, %s: %s" % (column.title, catalogue.program_name(culprits[0]), reason))
        return [[cell for cell in job.left if cell not in culprits]]

    def _note(self, text):
        self.notes.append(text)
        self.progress.note(text)


def _is_heavy(cell):
    """True when promoting the cell's memory would use up the allowance for the job's other windows."""
    return cell.memory == "create" and cell.bytes * cell.in_flight > HEAVY_BYTES


def _last_words(errors):
    """The informative lines of stderr, without the launchers' frames."""
    lines = [line.strip() for line in errors.splitlines()]
    lines = [line for line in lines if line and not re.match(r"[-=|*+ ]*$|mpiexec noticed|prterun|Primary job", line)]
    return harmless(" / ".join(lines[:6]))[:1000]


def harmless(text):
    """Replaces control characters: a host may print anything."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def is_figure(text):
    """True for a plausible number of nanoseconds: more than 0 and less than days."""
    return re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,9})?", text) is not None and float(text) > 0


class _Job:
    """Parses the output of one job."""

    def __init__(self, column, cells, progress, by_messages=False):
        self.column = column
        self.progress = progress
        self.by_messages = by_messages  # a window without that path is the host's
        self.left = list(cells)
        self.running = []
        self.begun = set()
        self.foreign = ""  # the library's name when Oriel is unexpectedly absent
        self.names = {}  # one name's measurement can be the result of several cells
        for cell in cells:
            self.names.setdefault(catalogue.program_name(cell), []).append(cell)

    def line(self, line):
        """Parses a line of output. Returns true for progress: endless other output of a host is none."""
        word, _, rest = line.partition(" ")
        before = len(self.left), len(self.begun)
        if word == "library":
            self.column.library = harmless(rest.strip())
            if self.column.oriel and "Oriel" not in rest:
                self.foreign = self.column.library
        elif word == "begin" and rest in self.names:
            self.running = self.names[rest]
            self.begun.add(rest)
            self.progress.show(self.column.title, rest)
        elif word in ("path", "reason", "end"):
            name, _, value = rest.partition(" ")
            if name in self.names and not self.foreign:
                self._take(word, self.names[name], value)
        return before != (len(self.left), len(self.begun))

    def _take(self, word, cells, value):
        for cell in cells:
            if word in ("path", "reason"):
                (self.column.paths if word == "path" else self.column.path_reasons)[cell] = harmless(value)[:200]
            elif cell in self.left and (value == "WRONG" or is_figure(value)):
                self.left.remove(cell)
                self.progress.skip(1)
                if self.by_messages and "ucx" not in self.column.paths.get(cell, ""):
                    self.column.fail(cell, "refused", "the window is not Oriel's")
                elif value == "WRONG":
                    self.column.fail(cell, "wrong", "the operations left wrong data")
                else:
                    self.column.samples.setdefault(cell, []).append(float(value))
        if word == "end":
            self.running = []
