"""`oriel bench`: times one-sided patterns on each host MPI, with and without Oriel, and prints the times side by side.
The data of every time are verified. A pattern that crashes, hangs or has wrong data is reported and does not affect others.
The command in <prefix>/bin (cli/bench.c) starts this script in <prefix>/lib/oriel/bench."""

import argparse
import contextlib
import difflib
import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PREFIX = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, HERE)
import catalogue  # noqa: E402
import comparison  # noqa: E402
import jobs  # noqa: E402
import measure  # noqa: E402
import overnet  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402

REFUSED, SLOWER, INTERRUPTED = 2, 3, 130
RUNS, QUICK_S, FULL_S = 3, 240, 2400
KNOWN_MOST = 16  # maximum number of names in a message


class Refusal(Exception):
    """A usage or set-up error; nothing has been started."""


class Interrupted(BaseException):
    """A signal of the user or the system ended the run."""


def refuse(text):
    try:
        sys.stderr.write("oriel: %s\n" % text)
        sys.stderr.flush()
    except OSError:
        pass  # there is no other place to report it
    return REFUSED


class Ending:
    """Handles termination signals. While armed, the first one raises Interrupted; at other times, such as while results are
    written, it is only recorded."""

    def __init__(self):
        self.asked = False
        self.armed = False

    def start(self):
        """The command has blocked the signals, so none arrives earlier."""
        for kind in jobs.ENDS:
            if kind != signal.SIGHUP or signal.getsignal(kind) != signal.SIG_IGN:  # keeps nohup's setting
                signal.signal(kind, self._handle)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, jobs.ENDS)

    def _handle(self, number, frame):
        self.asked = True
        if self.armed:
            self.armed = False
            raise Interrupted()

    def arm(self):
        self.armed = True
        if self.asked:
            self.armed = False
            raise Interrupted()

    @contextlib.contextmanager
    def held(self):
        """Signals do not interrupt the block."""
        self.armed = False
        yield
        self.arm()


ending = Ending()


def printed(function, *arguments):
    """Calls the printing function; an output error becomes a Refusal."""
    try:
        function(*arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Refusal("stdout: %s" % error.strerror) from None


# ---- the command line ----


class Parser(argparse.ArgumentParser):
    def error(self, message):
        unknown = re.match(r"unrecognized arguments: (--?[^\s=]+)", message)
        if unknown:
            known = [name for action in self._actions for name in action.option_strings if action.help != argparse.SUPPRESS]
            alike = difflib.get_close_matches(unknown.group(1), known, n=1)
            message = "unknown option " + unknown.group(1) + ("; did you mean %s?" % alike[0] if alike else ";")
            raise Refusal(message + " oriel bench --help lists the options")
        raise Refusal(message + "; oriel bench --help describes the options")


def known_ones(unknown, known):
    """The valid names: all of a few, or similar ones of many."""
    if len(known) <= KNOWN_MOST:
        return "known: " + ", ".join(known)
    alike = dict.fromkeys(name for wrong in unknown for name in difflib.get_close_matches(wrong, known))
    return ("similar: %s; " % ", ".join(alike) if alike else "") + "--list shows all"


def words(known, what):
    def parse(text):
        names = [name for name in text.split(",") if name]
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError("unknown %s \"%s\" (%s)"
                                             % (what, ", ".join(unknown), known_ones(unknown, known)))
        return list(dict.fromkeys(names))
    return parse


def sizes(text):
    found = []
    for word in text.split(","):
        number = re.fullmatch(r"([0-9]+)([KM]?)(i?B)?", word)
        size = int(number.group(1)) * {"": 1, "K": 1 << 10, "M": 1 << 20}[number.group(2)] if number else 0
        if not 8 <= size <= 1 << 28 or size % 8:
            raise argparse.ArgumentTypeError("\"%s\" is not a size: a multiple of 8 up to 256M, as in 8,64K,1M" % word)
        found.append(size)
    return list(dict.fromkeys(found))


def counts(text):
    found = [int(word) if re.fullmatch(r"[0-9]{1,2}", word) else 0 for word in text.split(",")]
    if not all(2 <= count <= 64 for count in found):
        raise argparse.ArgumentTypeError("\"%s\" is not a list of rank counts from 2 to 64, as in 2,8" % text)
    return list(dict.fromkeys(found))


def positive(text):
    if not re.fullmatch(r"[1-9][0-9]{0,5}", text):
        raise argparse.ArgumentTypeError("\"%s\" is not a number from 1 to 999999" % text)
    return int(text)


def parse(arguments):
    parser = Parser(prog="oriel bench", add_help=False, allow_abbrev=False, description=(
        "Time one-sided patterns on each host MPI, with and without Oriel, compare with raw operations, and verify the data."))
    add = parser.add_argument
    add("--quick", action="store_true", help="a selection of patterns and sizes; up to three runs within four minutes")
    add("--groups", type=words(catalogue.GROUPS, "group"), metavar="A,B",
        help="only these groups: " + ", ".join(catalogue.GROUPS))
    add("--patterns", type=words(catalogue.PATTERNS, "pattern"), metavar="A,B", help="only these patterns (--list shows them)")
    add("--net", action="store_true", help="between two simulated nodes, compared with ucx_perftest on the same link")
    add("--alignment", action="store_true",
        help="also the group alignment: aligned and unaligned targets, for every path to memory")
    add("--memories", type=words(catalogue.MEMORIES, "memory"), metavar="A,B",
        help="of %s (allocate,create,dynamic)" % ", ".join(catalogue.MEMORIES))
    add("--sizes", type=sizes, metavar="A,B", help="bytes, for patterns with sizes, as in 8,64K,1M")
    add("--ranks", type=counts, metavar="A,B", help="rank counts, for patterns of several ranks (2,4,8,16,32)")
    add("--hosts", type=words(jobs.LABELS, "host"), metavar="A,B", help="mpich, openmpi (those that are found)")
    add("--alone", action="store_true", help="only the hosts, without Oriel")
    add("--runs", type=positive, metavar="N", help="number of runs; the minimum counts (3)")
    add("--limit", type=positive, metavar="S", default=20, help="time limit of a pattern in seconds (20)")
    add("--compare", metavar="FILE", nargs="+",
        help="compare with the results in FILE, of --json, and measure with its options; with two FILEs nothing is measured")
    add("--json", metavar="FILE", help="write every sample to FILE")
    add("--html", metavar="FILE", help="write an HTML page with plots and tables to FILE")
    add("--list", action="store_true", help="list the patterns and stop")
    add("-h", "--help", action="help", help="give this help list")
    add("-?", action="help", help=argparse.SUPPRESS)
    add("-V", "--version", action="store_true", help="print the program's version")
    options = parser.parse_args(arguments)
    if options.net:
        overnet.choose()
    unknown = [name for name in options.patterns or () if name not in catalogue.PATTERNS]
    if unknown:
        raise Refusal("--net: these patterns are not measured between nodes: %s (%s)"
                      % (", ".join(unknown), known_ones(unknown, catalogue.PATTERNS)))
    options.enough_s = None if options.runs else QUICK_S if options.quick else FULL_S
    options.runs = options.runs or RUNS
    return options


def print_list():
    for name, pattern in catalogue.PATTERNS.items():
        print("%-34s %-11s %s" % (name, pattern.group, pattern.title))


# ---- requirements ----


def limits_programs(options):
    return [os.path.join(HERE, name) for name in (("link", "testnet") if options.net else ("raw",))]


def hosts_to_run(options):
    """The usable hosts: those with a launcher, Oriel's library and the benchmark's program."""
    found = jobs.hosts_found(PREFIX)
    if options.hosts:
        missing = [host for host in options.hosts if host not in found]
        if missing:
            raise Refusal("%s: no launcher, or Oriel is not built for it; found: %s"
                          % (", ".join(missing), ", ".join(found) or "none"))
        found = options.hosts
    if not found:
        raise Refusal("no host MPI found: there is no mpiexec of MPICH or Open MPI with %s"
                      % os.path.join(PREFIX, "lib", "oriel", "<host>", "liboriel.so"))
    if not options.alone and re.search(r"[\s:]", PREFIX):
        raise Refusal("%s: Oriel cannot be preloaded from a path with a space or a colon" % PREFIX)
    programs = [os.path.join(PREFIX, "lib", "oriel", host, "rma") for host in found]
    for program in programs + limits_programs(options):
        if not os.access(program, os.X_OK):
            raise Refusal("the benchmark's program %s is missing or not executable; build or install Oriel again" % program)
    return found


def ignored(options, cells):
    """Messages about options that have no effect."""
    patterns = [catalogue.PATTERNS[name] for name in {cell.pattern for cell in cells}]
    if options.patterns:
        for option in ("groups", "alignment"):
            if getattr(options, option):
                yield "--%s has no effect with --patterns" % option
    if options.sizes and not any(len(pattern.sizes) > 1 for pattern in patterns):
        yield "--sizes has no effect: none of these patterns has selectable sizes"
    if options.ranks and not any(len(pattern.ranks) > 1 for pattern in patterns):
        yield "--ranks has no effect: these patterns have 2 ranks"
    for memory in options.memories or ():
        if not any(cell.memory == memory for cell in cells):
            yield "--memories: none of these patterns uses memory \"%s\"" % memory


def available_bytes():
    """MemAvailable of the system in bytes, or None if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as info:
            found = re.search(r"^MemAvailable: *([0-9]+) kB", info.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found.group(1)) << 10 if found else None


def fitting(cells, room_bytes):
    """The cells for which memory suffices, and a message for each of the others."""
    left = [cell for cell in cells if room_bytes is not None and catalogue.memory_bytes(cell) > room_bytes]
    messages = {cell._replace(memory=""): "%s, %d B, %d in flight: skipped, because it may need %d MiB of memory, and %d are available"
            % (cell.pattern, cell.bytes, cell.in_flight, catalogue.memory_bytes(cell) >> 20, room_bytes >> 20) for cell in left}
    return [cell for cell in cells if cell not in left], list(messages.values())


def check_outputs(options):
    if options.json is not None and options.html is not None and results.are_same(options.json, options.html):
        raise Refusal("--json and --html name the same file, %s" % options.html)
    for option, path in (("--json", options.json), ("--html", options.html)):
        if path == "":
            raise Refusal(option + ": the file's name is empty")
        if path is not None:
            try:
                results.check_writable(path)
            except OSError as error:
                raise Refusal("%s cannot be written: %s" % (path, error.strerror)) from None


def page_writer():
    """The function that makes the page's text. It is first called without results, to detect missing files early."""
    try:
        from page import page
    except ImportError as error:
        raise Refusal("--html: the page's generator is missing: %s" % error) from None
    return page.document


def check_page(bench):
    try:
        page_writer()(results.gather(bench, "", results.now(), 0, False))
    except (OSError, RuntimeError) as error:
        raise Refusal("--html: %s" % error) from None


def version():
    answer = subprocess.run([os.path.join(PREFIX, "bin", "oriel"), "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.split()[-1] if answer.stdout.strip() else "unknown"


# ---- running ----


def write_outputs(options, record):
    """Returns messages about files that could not be written."""
    complaints = []
    if options.json is not None:
        complaints.append(results.write_or_keep(record, options.json))
    if options.html is not None:
        try:
            results.write_text(page_writer()(record), options.html)
        except Exception as error:  # no error of the page may lose the results
            complaints.append("%s could not be written: %s" % (options.html, error))
            if options.json is None:
                complaints.append(results.keep(record))
    return [text for text in complaints if text]


def compared(old, record):
    """Prints the comparison; the status is SLOWER if Oriel is slower now, beyond the noise."""
    changes = comparison.Comparison(old, record)
    printed(report.print_comparison, changes)
    return SLOWER if changes.slower() else 0


def read_results(path):
    try:
        return comparison.read(path)
    except comparison.Unusable as reason:
        raise Refusal("--compare: %s" % reason) from None


def options_like(old, path, arguments):
    """The options of this run: those of the old one, unless others are given."""
    try:
        return parse(comparison.arguments_of(old) + arguments)
    except Refusal as reason:
        raise Refusal("--compare: %s: the options of its run: %s" % (path, reason)) from None


def measured(bench, options, began):
    """Runs, and returns the results and an internal error or None: an error must not lose the results."""
    start, name, complete, failure = time.monotonic(), version(), True, None

    def record(done):
        return results.gather(bench, name, began, time.monotonic() - start, done)

    def saved():
        if options.json is None or not results.is_replaced(options.json):
            return
        with ending.held(), contextlib.suppress(OSError):  # reported at the end, if the error persists
            results.write(record(False), options.json)

    try:
        try:
            ending.arm()
            bench.run(saved)
        finally:
            ending.armed = False
    except Interrupted:
        complete = False
    except Exception as error:
        complete, failure = False, error
    bench.progress.clear()
    return record(complete), failure


def main(arguments):
    options = parse(arguments)
    old = [read_results(path) for path in options.compare or []]
    if len(old) > 2:
        raise Refusal("--compare: more than two files")
    if len(old) == 2:
        return compared(*old)
    if old:
        options = options_like(old[0], options.compare[0], arguments)
    if options.version:
        printed(print, "oriel " + version())
        return 0
    if options.list:
        printed(print_list)
        return 0
    hosts = hosts_to_run(options)
    cells = catalogue.cells(options)
    if not cells:
        raise Refusal("these options select no pattern; oriel bench --list shows the patterns")
    cells, too_large = fitting(cells, available_bytes())
    if not cells:
        raise Refusal("no pattern can run: " + too_large[0])
    check_outputs(options)
    bench = measure.Bench(PREFIX, measure.columns_of(hosts, options.alone), cells, options, report.Progress())
    bench.command = measure.harmless(shlex.join(["oriel", "bench", *arguments]))
    if options.html is not None:
        check_page(bench)
    bench.notes += too_large
    for text in [*ignored(options, cells), *too_large]:
        bench.progress.note(text)
    if ending.asked:
        refuse("interrupted before anything was measured")
        return INTERRUPTED
    try:
        with overnet.machines(PREFIX) if options.net else contextlib.nullcontext() as bench.net:
            record, failure = measured(bench, options, results.now())
    except overnet.Refused as reason:
        refuse(reason)
        return reason.status
    if old:
        record["comparison"] = comparison.Comparison(old[0], record).record()
    complaints, slower = write_outputs(options, record), 0
    for text in complaints:
        refuse(text)
    try:
        printed(report.print_report, bench, record)
        slower = compared(old[0], record) if old else 0
    except Refusal as refusal:
        complaints.append(refusal)
        refuse(refusal)
    if failure is not None:
        raise failure
    if ending.asked:
        return INTERRUPTED
    if complaints:
        return REFUSED
    return 1 if bench.bad_ends or any(column.oriel and column.failed for column in bench.columns) else slower


if __name__ == "__main__":
    ending.start()
    try:
        try:
            status = main(sys.argv[1:])
        except SystemExit as end:  # of --help
            status = end.code
        printed(sys.stdout.flush)
        sys.exit(status)
    except Refusal as refusal:
        sys.exit(refuse(refusal))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, jobs.ENDS)  # python3 removes its handlers before it exits
