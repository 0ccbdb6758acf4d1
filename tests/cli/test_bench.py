"""`oriel bench`: what it writes, what it says of hosts that crash, hang or are wrong, and what it refuses.

A program of the test's own stands in for the benchmark's where a host has to misbehave; figures are never looked at."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from command import BUILD, Case, HERE, HOSTS, ORIEL, environment

SCRIPTS = os.path.join(BUILD, "lib", "oriel", "bench")
LAUNCH = os.path.join(os.path.dirname(HERE), "launch")
sys.path.insert(0, SCRIPTS)
import catalogue  # noqa: E402
import measure  # noqa: E402

# Rank 0 answers for the job. What it does follows from the pattern's name.
STAND_IN = """#!/bin/bash
[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ] || exit 0
echo "library MPICH Version: 9 Open MPI v9, %(library)s"
for name in "$@"; do
    case $name in --*) continue ;; esac
    echo "begin $name"
    case $name in
        get:*) echo "end $name WRONG"; continue ;;
        accumulate:*) exec -a bench-stand-in yes "still here" ;;
        get-accumulate:*) echo "end $name 0.00"; echo "end $name inf"; exit 0 ;;
        fetch-and-op:*) kill -SEGV $$ ;;
        compare-and-swap:*|hot-*) touch %(folder)s/hangs; exec -a bench-stand-in sleep 300 ;;
        fence:*) printf "the host's last\\033[2J words" >&2; exit 3 ;;
    esac
    echo "end $name 12.5"
done
"""

# Operations of which some do nothing, and say that they did; n counts them from the last barrier on, which begins a batch.
LOSING = """
static long n;
int PMPI_Barrier(long);
int MPI_Barrier(long comm) { n = 0; return PMPI_Barrier(comm); }
static int is_lost(void) { n++; return %s; }
#define LIST(what) what a, what b, what c, what d, what e, what f, what g
#define NAMES a, b, c, d, e, f, g
#define OPERATION(name, more, names)                                                              \\
    int PMPI_##name(LIST(long) more);                                                             \\
    int MPI_##name(LIST(long) more) { return is_lost() ? 0 : PMPI_##name(NAMES names); }
#define MORE(...) , __VA_ARGS__
OPERATION(Put, MORE(long h), MORE(h))
OPERATION(Get, MORE(long h), MORE(h))
OPERATION(Accumulate, MORE(long h, long i), MORE(h, i))
OPERATION(Get_accumulate, MORE(long h, long i, long j, long k, long l), MORE(h, i, j, k, l))
OPERATION(Fetch_and_op, , )
OPERATION(Compare_and_swap, , )
#define REQUEST(name)                                                                             \\
    int PMPI_##name(long, long, long, long, long, long, long, long, long);                        \\
    int MPI_##name(long o, long oc, long ot, long t, long d, long tc, long tt, long w, long r)    \\
    { int lost = is_lost(); return PMPI_##name(o, lost ? 0 : oc, ot, t, d, lost ? 0 : tc, tt, w, r); }
REQUEST(Rput)
REQUEST(Rget)
"""

# On both hosts the number of shared locks follows that of exclusive ones.
SHARING = """
int PMPI_Win_lock(int, int, int, long);
int MPI_Win_lock(int kind, int rank, int assertion, long win) { return PMPI_Win_lock(kind %s, rank, assertion, win); }
"""

# Counts the operations before each flush, and says at the end which counts there were.
FLIGHTS = """
#include <stdio.h>
static long n, counts[1024];
#define LIST(what) what a, what b, what c, what d, what e, what f, what g, what h
int PMPI_Put(LIST(long));
int MPI_Put(LIST(long)) { n++; return PMPI_Put(a, b, c, d, e, f, g, h); }
int PMPI_Win_flush(long, long);
int MPI_Win_flush(long rank, long win) { counts[n < 1023 ? n : 1023]++; n = 0; return PMPI_Win_flush(rank, win); }
int PMPI_Finalize(void);
int MPI_Finalize(void)
{
    for (int i = 1; i < 1024; i++)
        if (counts[i])
            printf("flight %d\\n", i);
    fflush(stdout);
    return PMPI_Finalize();
}
"""

# Says of each window where its memory begins and at which displacements rank 0 puts, both by what is left of a huge page.
PUT_PLACES = """
#include <stdio.h>
enum { HUGE = 1 << 21 };
static long window, places[HUGE];
int PMPI_Win_allocate(long, int, long, long, char **, long);
int MPI_Win_allocate(long a, int b, long c, long d, char **base, long e)
{
    int error = PMPI_Win_allocate(a, b, c, d, base, e);
    printf("base %ld %ld\\n", ++window, (long)*base % HUGE);
    fflush(stdout);
    return error;
}
int PMPI_Put(long, int, long, int, long, int, long, long);
int MPI_Put(long a, int b, long c, int d, long disp, int f, long g, long h)
{
    if (places[disp % HUGE] != window)
        printf("put %ld %ld\\n", window, disp % HUGE);
    places[disp % HUGE] = window;
    return PMPI_Put(a, b, c, d, disp, f, g, h);
}
"""

# Ends a job that does not want to end, and gets an interruption meanwhile.
ENDED_TWICE = """
import signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
import jobs
signal.signal(signal.SIGINT, signal.default_int_handler)
subprocess.Popen(["bash", "-c", "sleep 1.5; kill -INT $PPID"])
try:
    jobs.launch(None, 1, ["bash", "-c", "trap '' TERM; exec -a bench-stand-in sleep 300"], limit_s=0.5)
except KeyboardInterrupt:
    sys.exit(42)
"""


def bench(oriel, *arguments, timeout=170, **changes):
    return subprocess.run([oriel, "bench", *arguments], env=environment(**changes), capture_output=True, text=True,
                          timeout=timeout, stdin=subprocess.DEVNULL, check=False)


def processes(word):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", encoding="utf-8", errors="replace") as line:
                    if word in line.read().split("\0")[0]:
                        found.append(int(entry))
            except OSError:
                continue
    return found


class BenchCase(Case):
    def measured(self, *arguments, oriel=ORIEL, **changes):
        """Status, and the results by (pattern, column), of a run on allocated memory."""
        result = bench(oriel, "--memories", "allocate", "--runs", "1", "--json", self.path("out.json"), *arguments, **changes)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result, self.read_results()

    def read_results(self):
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.record = json.load(file)
        return {(entry["pattern"], entry["column"]): entry for entry in self.record["results"]}

    def stand_in(self, library="windows by Oriel"):
        """An installation whose benchmark program is the stand-in, for the first host only."""
        oriel, host = self.tree(HOSTS[0]), HOSTS[0]
        shutil.copytree(SCRIPTS, self.path("tree/lib/oriel/bench"))
        self.write(f"tree/lib/oriel/{host}/rma", STAND_IN % {"library": library, "folder": self.folder})
        return oriel


class Measuring(BenchCase):
    def test_results_are_read_back(self):
        result, found = self.measured("--patterns", "put,fetch-and-op,put-strided", "--sizes", "8,4K")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(self.record["complete"])
        columns = [name for host in HOSTS for name in (host, "oriel-" + host)]
        self.assertEqual({entry["name"] for entry in self.record["columns"]}, {*columns, "raw"})
        for pattern in ("put", "fetch-and-op", "put-strided"):
            for column in columns:
                entry = found[pattern, column]
                self.assertEqual((entry["status"], entry["reason"], entry["unit"]), ("ok", "", "ns"), entry)
                self.assertEqual(entry["best"], min(entry["samples"]))
                self.assertGreater(entry["best"], 0)
                self.assertAlmostEqual(entry["bandwidth"], entry["bytes"] / entry["best"] * 1e9, delta=1)
                self.assertEqual(entry["way"], "arena" if column.startswith("oriel") else "")
        puts = {(entry["bytes"], entry["in_flight"]) for entry in self.record["results"] if entry["pattern"] == "put"}
        self.assertEqual(puts, {(8, 1), (4096, 1), (8, 64), (4096, 64)})
        for entry in self.record["results"]:
            if entry["limit"] in ("raw-store-fence", "raw-memcpy-shared", "raw-atomic", "raw-strided"):
                raw = [other for other in self.record["results"]
                       if (other["pattern"], other["bytes"]) == (entry["limit"], entry["bytes"])]
                self.assertEqual([other["status"] for other in raw], ["ok"], entry)
        self.assertRegex(result.stdout, r"put, 4 KiB, flush +\| allocate \|.* x \|")

    def test_hosts_alone_need_no_oriel_column(self):
        _, found = self.measured("--patterns", "lock-exclusive", "--alone", "--hosts", HOSTS[0])
        self.assertEqual([column for pattern, column in found if pattern == "lock-exclusive"], [HOSTS[0]])

    def test_programs_know_the_catalogue(self):
        rma = subprocess.run([LAUNCH, "--build", BUILD, "--host", HOSTS[0], "-n", "1", "--plain",
                              os.path.join(BUILD, "lib", "oriel", HOSTS[0], "rma"), "--list"],
                             env=environment(), capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(set(rma.stdout.split()), set(catalogue.PATTERNS))
        raw = subprocess.run([os.path.join(SCRIPTS, "raw"), "--list"], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(set(raw.stdout.split()), set(catalogue.RAW))

    def behind(self, library, *arguments):
        """The program with two ranks on the bare host, with a library before the host's."""
        return subprocess.run([LAUNCH, "--build", BUILD, "--host", HOSTS[0], "-n", "2", "--plain", "--env",
                               f"LD_PRELOAD={library}", "--timeout", "100",
                               os.path.join(BUILD, "lib", "oriel", HOSTS[0], "rma"), *arguments],
                              env=environment(), capture_output=True, text=True, timeout=120, check=False)

    def not_noticed(self, source, *limits, names=catalogue.PATTERNS):
        """The patterns that call their data right on the bare host behind a library of this source."""
        library = self.compile("losing.so", source, "-shared", "-fPIC")
        programs = {}
        for name in names:
            pattern = catalogue.PATTERNS[name]
            sized = pattern.group in ("contiguous", "progress")
            for size in {pattern.sizes[0], pattern.sizes[-1]} if sized else pattern.sizes[:1]:
                cell = catalogue.Cell(name, "allocate", 2, min(size, 64 << 10), pattern.flights[0])
                programs[catalogue.program_name(cell)] = name
        result = self.behind(library, *limits, *programs)
        ends = dict(re.findall(r"^end (\S+) (\S+)$", result.stdout, re.M))
        self.assertEqual(set(programs), set(ends), result.stderr)
        return {programs[name] for name, word in ends.items() if word != "WRONG"}

    def test_every_pattern_notices_operations_that_do_nothing(self):
        self.assertEqual(self.not_noticed(LOSING % "1", "--batches=1", "--budget=0.01"), set())

    def test_patterns_notice_that_only_the_first_operation_of_a_batch_works(self):
        once = {"busy-target", "busy-target-again"}  # one operation each
        self.assertEqual(self.not_noticed(LOSING % "n > 1", "--batches=1", "--budget=0.01"), once)

    def test_patterns_notice_that_every_tenth_operation_is_lost(self):
        few = {"busy-target", "busy-target-again", "fence", "create-free"}  # two puts in a batch, or one
        self.assertEqual(self.not_noticed(LOSING % "n > 64 && n % 10 == 0", "--batches=2", "--budget=0.03", "--least=128"), few)

    def test_what_is_in_flight_together_is_a_whole_flight_at_every_size(self):
        library = self.compile("flights.so", FLIGHTS, "-shared", "-fPIC")
        for name in ("put:allocate:8:64", "put:allocate:1048576:64"):
            result = self.behind(library, "--batches=1", "--budget=0.01", name)
            self.assertRegex(result.stdout, f"end {name} [0-9.]+\n", result.stderr)
            self.assertEqual(set(re.findall(r"^flight (\d+)$", result.stdout, re.M)), {"64"})

    def test_placed_operations_lie_where_they_say(self):
        library = self.compile("places.so", PUT_PLACES, "-shared", "-fPIC")
        places = {"huge-page": 0, "page": 4096, "line": 64, "element": 8, "odd-byte": 1, "line-crossing": 60,
                  "page-crossing": 4092}
        names = {f"{what}-at-{place}:allocate:8192:1": offset for place, offset in places.items()
                 for what in ("put", "put-strided")}
        result = self.behind(library, "--batches=1", "--budget=0.01", *names)
        self.assertEqual(set(re.findall(r"^end (\S+) [0-9.]+$", result.stdout, re.M)), set(names), result.stderr)
        found = {word: [tuple(map(int, pair)) for pair in re.findall(rf"^{word} (\d+) (\d+)$", result.stdout, re.M)]
                 for word in ("base", "put")}
        self.assertEqual([window for window, _ in found["put"]], list(range(1, len(names) + 1)))
        for (window, put), offset in zip(found["put"], names.values()):
            bases = [base for number, base in found["base"] if number == window]
            self.assertIn(offset, {(base + put) % (2 << 20) for base in bases}, result.stdout)

    def test_unknown_places_are_refused(self):
        for name in ("put-at-home:allocate:8:1", "fence-at-line:allocate:0:1", "put-at-line:allocate:8:64"):
            result = self.behind("", name)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("no such pattern", result.stderr)

    def test_raw_operations_leave_the_data_that_they_should(self):
        cells = [catalogue.Cell(name, "local", count, size, 1) for name, raw in catalogue.RAW.items()
                 for size in {raw.sizes[0], min(raw.sizes[-1], 64 << 10)}
                 for count in ((2, 3) if len(raw.ranks) > 1 else raw.ranks)]
        names = [catalogue.program_name(cell) for cell in cells]
        result = subprocess.run([os.path.join(SCRIPTS, "raw"), "--batches=2", "--budget=0.01", *names],
                                env=environment(), capture_output=True, text=True, timeout=120, check=False)
        ends = dict(re.findall(r"^end (\S+) ([0-9.]+)$", result.stdout, re.M))
        self.assertEqual((result.returncode, set(ends)), (0, set(names)), result.stdout + result.stderr)

    def test_limits_are_measured_with_as_many_processes(self):
        _, found = self.measured("--patterns", "fence,pscw-ring,pscw-pair,lock-exclusive,lock-contended,put-column,create-free",
                                 "--ranks", "3", "--hosts", HOSTS[-1], "--alone")
        ranks = {"raw-barrier": 3, "raw-ring": 3, "raw-pair": 2, "raw-lock": 1, "raw-lock-contended": 3, "raw-put-column": 1}
        limits = [entry for (_, column), entry in found.items() if column == HOSTS[-1]]
        self.assertEqual({entry["limit"] for entry in limits}, set(ranks))
        for entry in limits:
            raw = found[entry["limit"], "raw"]
            self.assertEqual((raw["status"], raw["ranks"], raw["bytes"]), ("ok", ranks[entry["limit"]], entry["bytes"]))
        for beside in ("raw-barrier-sessions", "raw-barrier-asleep"):
            self.assertEqual((found[beside, "raw"]["status"], found[beside, "raw"]["ranks"]), ("ok", 3))

    def test_contended_locks_notice_that_they_exclude_nobody(self):
        names = ["lock-contended"]
        self.assertEqual(self.not_noticed(SHARING % "+ 1", names=names), set())
        self.assertEqual(self.not_noticed(SHARING % "", names=names), set(names))


class Catalogue(unittest.TestCase):
    def cells(self, **changes):
        options = {"quick": False, "patterns": None, "groups": None, "alignment": False, "sizes": None, "ranks": None,
                   "memories": None}
        return catalogue.cells(argparse.Namespace(**dict(options, **changes)))

    def test_transfers_have_all_sizes_alone_and_in_flight(self):
        found = {(cell.pattern, cell.memory, cell.in_flight, cell.bytes) for cell in self.cells()}
        for pattern in ("put", "get", "accumulate", "get-accumulate"):
            for memory in ("allocate", "create", "dynamic"):
                for flight in (1, 64):
                    sizes = {size for *what, size in found if what == [pattern, memory, flight]}
                    self.assertEqual(sizes, {8 << i for i in range(20)}, (pattern, memory, flight))

    def test_patterns_of_several_ranks_have_all_counts(self):
        found = {(cell.pattern, cell.memory, cell.ranks) for cell in self.cells()}
        for pattern in ("fence", "fence-put", "pscw-ring", "pscw-all", "lock-contended", "lock-contended-shared", "lock-all",
                        "hot-fetch-and-op", "create-free"):
            for memory in ("allocate", "create"):
                self.assertEqual({count for *what, count in found if what == [pattern, memory]}, {2, 4, 8, 16, 32}, pattern)

    def test_alignment_goes_every_way_with_every_kind_of_operation(self):
        found = {(cell.pattern, cell.memory) for cell in self.cells(alignment=True)}
        for what in ("put", "get", "put-strided", "get-strided", "accumulate", "fetch-and-op", "compare-and-swap"):
            for place in ("huge-page", "page", "line", "element", "odd-byte", "line-crossing", "page-crossing"):
                self.assertEqual({memory for pattern, memory in found if pattern == what + "-at-" + place},
                                 {"allocate", "create", "cma", "agent"}, (what, place))
        sizes = {(cell.pattern, cell.bytes) for cell in self.cells(groups=["alignment"], sizes=[512])}
        self.assertTrue({("put-at-line", 512), ("accumulate-at-line", 512), ("fetch-and-op-at-line", 8),
                         ("get-strided-at-line", 8192)} <= sizes)

    def test_every_pattern_has_a_limit(self):
        cells = self.cells(alignment=True)
        raw = set(catalogue.raw_cells(cells))
        for cell in cells:
            self.assertIn(catalogue.limit_cell(cell), raw, cell)
        for cell in raw:
            self.assertIn(cell.bytes, catalogue.RAW[cell.pattern].sizes, cell)

    def test_long_flights_in_the_programs_memory_share_no_job(self):
        options = argparse.Namespace(quick=False, runs=3)
        bench = measure.Bench("", measure.columns_of(HOSTS, False), self.cells(), options, None)
        parts = [part for _, part in bench._parts()]
        self.assertEqual(sorted(cell for part in parts for cell in part), sorted(bench.cells))
        heavy = [part for part in parts for cell in part if cell.memory == "create" and cell.bytes * cell.in_flight >= 32 << 20]
        self.assertEqual((len(heavy), {len(part) for part in heavy}), (16, {1}))

    def test_much_to_measure_gets_little_time_each(self):
        def budget_s(cells, ranks=2, quick=False):
            options = argparse.Namespace(quick=quick, runs=3)
            return measure.Bench("", measure.columns_of(HOSTS, False), cells, options, None)._budget_s(ranks)
        everything = self.cells()
        self.assertLess(budget_s(everything), 0.5)
        self.assertGreater(budget_s(everything, 8), budget_s(everything))
        self.assertEqual(budget_s(everything[:10]), 0.8)


class Misbehaviour(BenchCase):
    def test_each_failure_is_told_and_loses_no_other(self):
        result, found = self.measured("--patterns", "put,get,accumulate,get-accumulate,fetch-and-op,compare-and-swap,"
                                      "lock-exclusive,fence", "--sizes", "8", "--ranks", "2", "--hosts", HOSTS[0], "--limit", "6",
                                      oriel=self.stand_in())
        self.assertEqual(result.returncode, 1, result.stderr)
        for column in (HOSTS[0], "oriel-" + HOSTS[0]):
            told = {pattern: entry["status"] for (pattern, where), entry in found.items() if where == column}
            self.assertEqual(told, {"put": "ok", "get": "wrong", "accumulate": "timeout", "get-accumulate": "crash",
                                    "fetch-and-op": "crash", "compare-and-swap": "timeout",
                                    "lock-exclusive": "ok", "fence": "crash"})
            for entry in (entry for (_, where), entry in found.items() if where == column):
                self.assertEqual(entry["best"] is None, entry["status"] != "ok")
                self.assertEqual(entry["reason"] == "", entry["status"] == "ok")
        self.assertIn("6 s", found["compare-and-swap", HOSTS[0]]["reason"])
        self.assertIn("the host's last?[2J words", found["fence", HOSTS[0]]["reason"])
        self.assertIn("makes sense", found["get-accumulate", HOSTS[0]]["reason"])
        self.assertRegex(result.stdout, r"get, 8 B, flush .*\| +wrong \| +wrong \| +- \|")
        self.assertEqual(processes("bench-stand-in"), [])

    def test_column_without_oriel_has_no_figures(self):
        result, found = self.measured("--patterns", "put", "--sizes", "8", "--hosts", HOSTS[0],
                                      oriel=self.stand_in("windows by nobody"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(found["put", HOSTS[0]]["status"], "ok")
        self.assertEqual(found["put", "oriel-" + HOSTS[0]]["status"], "refused")
        self.assertIn("does not say that it is Oriel", found["put", "oriel-" + HOSTS[0]]["reason"])

    def test_interrupted_run_keeps_what_was_measured(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            oriel = self.stand_in() if not os.path.exists(self.path("tree")) else self.path("tree/bin/oriel")
            with subprocess.Popen([oriel, "bench", "--patterns", "put,hot-fetch-and-op", "--sizes", "8", "--ranks", "3",
                                   "--memories", "allocate", "--hosts", HOSTS[0], "--json", self.path("out.json")],
                                  env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
                deadline = time.monotonic() + 60
                while not os.path.exists(self.path("hangs")) and time.monotonic() < deadline:
                    time.sleep(0.05)
                job.send_signal(number)
                output, errors = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 130, errors)
            found = self.read_results()
            self.assertFalse(self.record["complete"])
            self.assertEqual(found["put", HOSTS[0]]["best"], 12.5)
            self.assertEqual(found["put", "oriel-" + HOSTS[0]]["status"], "ok")
            self.assertNotIn(("hot-fetch-and-op", HOSTS[0]), found)
            self.assertIn("interrupted", output)
            self.assertEqual(processes("bench-stand-in"), [])
            os.remove(self.path("hangs"))
            os.remove(self.path("out.json"))


    def start(self, oriel, *arguments, **popen):
        return subprocess.Popen([oriel, "bench", "--memories", "allocate", "--hosts", HOSTS[0], "--runs", "1", "--sizes", "8",
                                 "--ranks", "3", *arguments], env=environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)

    def wait_for(self, is_there):
        deadline = time.monotonic() + 60
        while not is_there() and time.monotonic() < deadline:
            time.sleep(0.05)

    def test_interruption_before_the_beginning_leaves_files_as_they_are(self):
        self.write("out.json", "old\n")
        blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        with self.start(self.stand_in(), "--patterns", "put", "--json", self.path("out.json"), preexec_fn=blocked) as job:
            job.send_signal(signal.SIGTERM)
            _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 130, errors)
        self.assertIn("oriel: interrupted before anything was measured\n", errors)
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

    def test_interruption_while_results_are_written_loses_none(self):
        os.mkfifo(self.path("fifo"))  # writing waits for a reader
        with self.start(self.stand_in(), "--patterns", "put,pscw-pair", "--json", self.path("fifo"),
                        "--html", self.path("out.html")) as job:
            self.wait_for(lambda: self.waits_for_a_reader(job.pid))
            for _ in range(2):
                job.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            with open(self.path("fifo"), encoding="utf-8") as file:
                record = json.load(file)
            output, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 130, errors)
        self.assertEqual({entry["best"] for entry in record["results"] if entry["column"] == HOSTS[0]}, {12.5})
        self.assertIn("start, put, complete", output)
        self.assertTrue(os.path.getsize(self.path("out.html")))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    @staticmethod
    def waits_for_a_reader(pid):
        with open(f"/proc/{pid}/wchan", encoding="utf-8") as file:
            return file.read() in ("fifo_open", "wait_for_partner")

    def test_hangup_is_ignored_where_it_was(self):
        with self.start(self.stand_in(), "--patterns", "put,hot-fetch-and-op", "--json", self.path("out.json"),
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
            self.wait_for(lambda: os.path.exists(self.path("hangs")))
            job.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            self.assertIsNone(job.poll())
            job.send_signal(signal.SIGTERM)
            _, errors = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 130, errors)

    def test_interruption_while_a_job_is_ended_leaves_none_of_it(self):
        result = subprocess.run([sys.executable, "-c", ENDED_TWICE, SCRIPTS], env=environment(), capture_output=True, text=True,
                                timeout=60, check=False)
        self.assertEqual(result.returncode, 42, result.stderr)
        self.assertEqual(processes("bench-stand-in"), [])


class Files(BenchCase):
    def run_stand_in(self, *arguments, **popen):
        tree = self.path("tree/bin/oriel")
        return subprocess.run([tree if os.path.exists(tree) else self.stand_in(), "bench", "--memories", "allocate", "--hosts",
                               HOSTS[0], "--runs", "1", "--patterns", "pscw-pair", *arguments], env=environment(), text=True,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False, **popen)

    def test_link_to_nothing_is_written_through(self):
        os.symlink(self.path("there.json"), self.path("out.json"))
        result = self.run_stand_in("--json", self.path("out.json"), stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(os.path.islink(self.path("out.json")))
        self.assertFalse(os.path.islink(self.path("there.json")))
        self.read_results()

    def test_standard_output_takes_results_and_table(self):
        with open(self.path("both"), "w", encoding="utf-8") as file:
            into_file = self.run_stand_in("--json", "/dev/stdout", stdout=file)
        with open(self.path("both"), encoding="utf-8") as file:
            written = file.read()
        into_pipe = self.run_stand_in("--json", "/dev/stdout", stdout=subprocess.PIPE)
        for status, text in ((into_file.returncode, written), (into_pipe.returncode, into_pipe.stdout)):
            self.assertEqual(status, 0, into_file.stderr + into_pipe.stderr)
            record, end = json.JSONDecoder().raw_decode(text)
            self.assertTrue(record["complete"])
            self.assertIn("start, put, complete", text[end:])

    def test_full_standard_output_is_told_in_a_line(self):
        for arguments in (("--json", self.path("out.json")), ("--list",), ("--help",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = self.run_stand_in(*arguments, stdout=full)
            self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: No space left on device\n"))
        self.read_results()

    def test_options_in_vain_are_named(self):
        result = self.run_stand_in("--sizes", "8", "--ranks", "4", "--groups", "lock", stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        for option in ("--sizes", "--ranks", "--groups"):
            self.assertIn("oriel bench: " + option + " changes nothing", result.stderr)


class Refusal(BenchCase):
    def test_options_that_make_no_sense(self):
        for arguments, word in ((["--patterns", "put,fly"], '"fly"'), (["--groups", "birds"], '"birds"'),
                                (["--memories", "x"], '"x"'),
                                (["--hosts", "lam"], '"lam"'), (["--sizes", "7"], '"7"'), (["--sizes", ""], "no size"),
                                (["--ranks", "1"], '"1"'), (["--runs", "0"], '"0"'), (["--limit", "-1"], "--limit"),
                                (["--fly"], "--fly"), (["word"], "word"), (["--qui"], "--qui"),
                                (["--patterns", "create-free", "--memories", "agent"], "no pattern is left")):
            self.refused(bench(ORIEL, *arguments), word)

    def test_file_that_cannot_be_written(self):
        for option in ("--json", "--html"):
            self.refused(bench(ORIEL, option, self.path("none/out")), self.path("none/out"), "cannot be written")
            self.refused(bench(ORIEL, option, self.folder), "cannot be written")

    def test_refused_run_leaves_files_as_they_are(self):
        self.write("out.json", "old\n")
        self.refused(bench(ORIEL, "--json", self.path("out.json"), "--html", self.folder), "cannot be written")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

    def test_one_file_for_two(self):
        os.symlink(self.path("out"), self.path("link"))
        for other in ("out", "link", "./out"):
            self.refused(bench(ORIEL, "--json", self.path("out"), "--html", self.path(other)), "the same file")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_folder_that_cannot_be_preloaded_from(self):
        self.stand_in()
        for name in ("a tree", "a:tree"):
            os.rename(self.path("tree"), self.path(name))
            self.refused(bench(self.path(name + "/bin/oriel")), self.path(name), "a blank or a colon")
            os.rename(self.path(name), self.path("tree"))

    def test_no_host(self):
        oriel = self.tree()
        shutil.copytree(SCRIPTS, self.path("tree/lib/oriel/bench"))
        self.refused(bench(oriel), "no host MPI found")
        self.refused(bench(oriel, "--hosts", HOSTS[0]), HOSTS[0], "found: none")

    def test_missing_program(self):
        oriel = self.stand_in()
        os.remove(self.path(f"tree/lib/oriel/{HOSTS[0]}/rma"))
        self.refused(bench(oriel), self.path(f"tree/lib/oriel/{HOSTS[0]}/rma"), "missing")

    def test_missing_scripts_and_missing_python(self):
        self.refused(bench(self.tree(), "--help"), "the benchmark is not there")
        self.refused(bench(ORIEL, "--help", PATH=self.folder), "needs python3")

    def test_help_and_list(self):
        for option in ("--help", "-?"):
            result = bench(ORIEL, option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("--json FILE", result.stdout)
        listed = bench(ORIEL, "--list").stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], list(catalogue.PATTERNS))


if __name__ == "__main__":
    unittest.main()
