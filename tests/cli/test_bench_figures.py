"""`oriel bench`: the measured patterns, and its detection of operations that have no effect.

The tests never compare timings."""

import argparse
import os
import re
import subprocess
import unittest

from bench_runs import SCRIPTS, BenchCase, bench
from command import BUILD, HOSTS, LAUNCH, LIMIT_S, environment

import catalogue  # in SCRIPTS
import measure  # in SCRIPTS


# Some operations do nothing, and report success; messages have other data. n counts them from the
# last barrier, which begins a batch.
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
static char zeros[1 << 16]; /* lost messages arrive, without their data */
int PMPI_Send(long, long, long, long, long, long);
int MPI_Send(long a, long b, long c, long d, long e, long f) { return PMPI_Send(is_lost() ? (long)zeros : a, b, c, d, e, f); }
int PMPI_Isend(LIST(long));
int MPI_Isend(LIST(long)) { return PMPI_Isend(is_lost() ? (long)zeros : a, b, c, d, e, f, g); }
"""

# On both hosts the number of shared locks follows that of exclusive ones.
SHARING = """
int PMPI_Win_lock(int, int, int, long);
int MPI_Win_lock(int kind, int rank, int assertion, long win) { return PMPI_Win_lock(kind %s, rank, assertion, win); }
"""

# Counts the operations before each flush, and prints the distinct counts at the end.
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

# Prints, for each window, the start of its memory and rank 0's put displacements, both modulo a
# huge page.
PUT_OFFSETS = """
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
                self.assertEqual((entry["best"], entry["maximum"]), (min(entry["samples"]), max(entry["samples"])))
                self.assertGreater(entry["best"], 0)
                self.assertAlmostEqual(entry["bandwidth"], entry["bytes"] / entry["best"] * 1e9, delta=1)
                self.assertEqual(entry["path"], "direct" if column.startswith("oriel") else "")
        puts = {(entry["bytes"], entry["in_flight"]) for entry in self.record["results"] if entry["pattern"] == "put"}
        self.assertEqual(puts, {(8, 1), (4096, 1), (8, 64), (4096, 64)})
        for entry in self.record["results"]:
            if entry["limit"] in ("raw-store-fence", "raw-memcpy-shared", "raw-atomic", "raw-strided"):
                raw = [other for other in self.record["results"]
                       if (other["pattern"], other["bytes"]) == (entry["limit"], entry["bytes"])]
                self.assertEqual([other["status"] for other in raw], ["ok"], entry)
        self.assertRegex(result.stdout, r"put, 4 KiB, flush +\| allocate \|.* (faster|slower|about even) \|")

    def test_hosts_alone_need_no_oriel_column(self):
        _, found = self.measured("--patterns", "lock-exclusive", "--alone", "--hosts", HOSTS[0])
        self.assertEqual([column for pattern, column in found if pattern == "lock-exclusive"], [HOSTS[0]])

    def test_programs_know_the_catalogue(self):
        rma = subprocess.run([LAUNCH, "--build", BUILD, "--host", HOSTS[0], "-n", "1", "--plain",
                              os.path.join(BUILD, "lib", "oriel", HOSTS[0], "rma"), "--list"],
                             env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=True)
        self.assertEqual(set(rma.stdout.split()), set(catalogue.PATTERNS))
        raw = subprocess.run([os.path.join(SCRIPTS, "raw"), "--list"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
        self.assertEqual(set(raw.stdout.split()), set(catalogue.RAW))

    def preloaded(self, library, *arguments):
        """The program with two ranks on the bare host, with a library in front of the host's."""
        return subprocess.run([LAUNCH, "--build", BUILD, "--host", HOSTS[0], "-n", "2", "--plain", "--env",
                               f"LD_PRELOAD={library}", "--timeout", "100",
                               os.path.join(BUILD, "lib", "oriel", HOSTS[0], "rma"), *arguments],
                              env=environment(), capture_output=True, text=True, timeout=600, check=False)

    def not_noticed(self, source, *limits, names=catalogue.PATTERNS):
        """The patterns that accept their data on the bare host with this library in front."""
        library = self.compile("losing.so", source, "-shared", "-fPIC")
        programs = {}
        for name in names:
            pattern = catalogue.PATTERNS[name]
            sized = pattern.group in ("contiguous", "progress")
            for size in {pattern.sizes[0], pattern.sizes[-1]} if sized else pattern.sizes[:1]:
                cell = catalogue.Cell(name, (pattern.memories or ["allocate"])[0], 2, min(size, 64 << 10), pattern.flights[0])
                programs[catalogue.program_name(cell)] = name
        result = self.preloaded(library, *limits, *programs)
        ends = dict(re.findall(r"^end (\S+) (\S+)$", result.stdout, re.M))
        self.assertEqual(set(programs), set(ends), result.stderr)
        return {programs[name] for name, word in ends.items() if word != "WRONG"}

    no_data = {"alloc-touch-free", "attach-detach"}  # of other ranks

    def test_every_pattern_notices_operations_that_do_nothing(self):
        self.assertEqual(self.not_noticed(LOSING % "1", "--batches=1", "--budget=0.01"), self.no_data)

    def test_patterns_notice_that_only_the_first_operation_of_a_batch_works(self):
        once = {"busy-target", "busy-target-again"} | self.no_data  # one operation each
        self.assertEqual(self.not_noticed(LOSING % "n > 1", "--batches=1", "--budget=0.01"), once)

    def test_patterns_notice_that_every_tenth_operation_is_lost(self):
        # two puts per batch, or one
        few = {"busy-target", "busy-target-again", "fence", "create-free"} | self.no_data
        self.assertEqual(self.not_noticed(LOSING % "n > 64 && n % 10 == 0", "--batches=2", "--budget=0.03", "--least=128"), few)

    def test_operations_in_flight_have_one_name(self):
        [alone, flight] = [catalogue.title(catalogue.Cell("put", "allocate", 2, 8, count)) for count in (1, 64)]
        self.assertEqual((alone.rpartition(", ")[2], flight.rpartition(", ")[2]), ("flush", "64 in flight"))

    def test_operations_in_flight_are_a_full_flight_at_every_size(self):
        library = self.compile("flights.so", FLIGHTS, "-shared", "-fPIC")
        for name in ("put:allocate:8:64", "put:allocate:1048576:64"):
            result = self.preloaded(library, "--batches=1", "--budget=0.01", name)
            self.assertRegex(result.stdout, f"end {name} [0-9.]+\n", result.stderr)
            self.assertEqual(set(re.findall(r"^flight (\d+)$", result.stdout, re.M)), {"64"})

    def test_aligned_operations_have_the_named_offsets(self):
        library = self.compile("offsets.so", PUT_OFFSETS, "-shared", "-fPIC")
        alignments = {"huge-page": 0, "page": 4096, "line": 64, "element": 8, "odd-byte": 1, "line-crossing": 60,
                  "page-crossing": 4092}
        names = {f"{what}-at-{alignment}:allocate:8192:1": offset for alignment, offset in alignments.items()
                 for what in ("put", "put-strided")}
        result = self.preloaded(library, "--batches=1", "--budget=0.01", *names)
        self.assertEqual(set(re.findall(r"^end (\S+) [0-9.]+$", result.stdout, re.M)), set(names), result.stderr)
        found = {word: [tuple(map(int, pair)) for pair in re.findall(rf"^{word} (\d+) (\d+)$", result.stdout, re.M)]
                 for word in ("base", "put")}
        self.assertEqual([window for window, _ in found["put"]], list(range(1, len(names) + 1)))
        for (window, put), offset in zip(found["put"], names.values()):
            bases = [base for number, base in found["base"] if number == window]
            self.assertIn(offset, {(base + put) % (2 << 20) for base in bases}, result.stdout)

    def test_unknown_places_are_refused(self):
        for name in ("put-at-home:allocate:8:1", "fence-at-line:allocate:0:1", "put-at-line:allocate:8:64"):
            result = self.preloaded("", name)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"no such pattern, memory or size: {name}", result.stderr)

    def test_raw_operations_leave_the_data_that_they_should(self):
        cells = [catalogue.Cell(name, "local", count, size, 1) for name, raw in catalogue.RAW.items()
                 for size in {raw.sizes[0], min(raw.sizes[-1], 64 << 10)}
                 for count in ((2, 3) if len(raw.ranks) > 1 else raw.ranks)]
        names = [catalogue.program_name(cell) for cell in cells]
        result = subprocess.run([os.path.join(SCRIPTS, "raw"), "--batches=2", "--budget=0.01", *names],
                                env=environment(), capture_output=True, text=True, timeout=600, check=False)
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
        for pattern in ("raw-barrier-sessions", "raw-barrier-asleep", "raw-ring-sessions"):
            self.assertEqual((found[pattern, "raw"]["status"], found[pattern, "raw"]["ranks"]), ("ok", 3))

    def test_contended_locks_notice_missing_exclusion(self):
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

    def test_every_alignment_is_measured_with_every_operation(self):
        found = {(cell.pattern, cell.memory) for cell in self.cells(alignment=True)}
        for what in ("put", "get", "put-strided", "get-strided", "accumulate", "fetch-and-op", "compare-and-swap"):
            for alignment in ("huge-page", "page", "line", "element", "odd-byte", "line-crossing", "page-crossing"):
                self.assertEqual({memory for pattern, memory in found if pattern == what + "-at-" + alignment},
                                 {"allocate", "create", "cma", "agent"}, (what, alignment))
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


if __name__ == "__main__":
    unittest.main()
