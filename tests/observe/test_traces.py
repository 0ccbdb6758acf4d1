"""oriel run --trace on real jobs: the contents of the files, for any end of the job, disk or
folder, and for any number of nodes.  The program is traced.c, whose actions are known.

TESTS_HOST selects the host, as tests/launch has it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import trace_files

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from command import BUILD, Case, ORIEL, environment  # noqa: E402

HOST = os.environ["TESTS_HOST"]
LIBRARY = HOST.partition("-")[0]  # abi of abi-mpich
LAUNCH = os.path.join(trace_files.ROOT, "tests", "launch")
TRACED = os.path.join(BUILD, "tests", "observe", LIBRARY, "traced")
ROUNDS = 20
TRIES = 5
NOT_THERE = "/proc/nothing/here"


def run(*command, cwd=None):
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                          cwd=cwd, check=False)


def launch(ranks, *words, options=(), **variables):
    env = [f"--env={name}={value}" for name, value in variables.items()]
    return run(LAUNCH, "--build", BUILD, "--host", HOST, "-n", str(ranks), "--timeout", "100", *options, *env, "--", TRACED,
               *words)


class Traces(Case):
    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")

    def launch(self, ranks, *words, **more):
        result = launch(ranks, *words, **{"ORIEL_TRACE": self.traces, **more})
        if result.returncode == 77:
            self.skipTest(result.stdout.strip())
        return result

    def done(self, result, ranks):
        """The program has completed its work, and printed so."""
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertEqual(len(re.findall(r"^rank \d+ is done$", result.stdout, re.M)), ranks, result.stdout)

    def oriel_lines(self, result):
        return [line for line in result.stderr.splitlines() if line.startswith("oriel")]

    def report(self, *words):
        return run(ORIEL, "report", *words)

    def check(self, ranks, **more):
        """All files are there, of one run, with the program's known events; more of some kinds, per
        rank."""
        files = trace_files.read_folder(self.traces)
        self.assertEqual([file.rank for file in files], list(range(ranks)))
        self.assertEqual(len({file.job for file in files}), 1)
        counts = {"put": ROUNDS, "get": ROUNDS, "fence": ROUNDS + 1, "lock": 1, "unlock": 1, "create": 1, "free": 1, **more}
        for file in files:
            self.assertEqual(file.windows[0], ("ring", tuple(range(ranks))))
            for kind in trace_files.OPERATIONS + trace_files.CALLS:
                self.assertEqual(file.count(kind), counts.get(kind, 0), (file.rank, kind))
            for event in file.events:
                target = {"put": (file.rank + 1) % ranks, "get": 0, "lock": 0, "unlock": 0, "accumulate": 0}.get(event.kind, -1)
                size = {"put": 8, "get": 32, "accumulate": 8}.get(event.kind, 0)
                self.assertEqual((event.target, event.bytes, event.window), (target, size, 0), event.kind)
                self.assertLessEqual(event.waiting_ns, event.duration_ns)
        return files

    # --- contents of the files ---

    def test_every_call_of_every_rank(self):
        for ranks in (1, 2, 4, 8):
            with self.subTest(ranks=ranks):
                result = self.launch(ranks)
                self.done(result, ranks)
                self.assertEqual(self.oriel_lines(result), [])
                files = self.check(ranks)
                self.assertEqual([file.end[2] for file in files], [0] * ranks)
                self.assertEqual(len({file.node for file in files}), 1)
                self.assertEqual([(own, error) for file in files for own, zero, error in file.clocks if own == zero],
                                 [(file.clocks[0][0], 0) for file in files])
                # fences mostly wait for the late rank, which is 20 ms late; measuring error is
                # below half of that
                fences = [event for file in files[:-1] for event in file.events if event.kind == "fence"]
                late = [event for event in fences if event.cause == "late_fence" and event.cause_rank == ranks - 1]
                if ranks > 1:
                    self.assertGreater(sum(event.waiting_ns for event in late), sum(event.duration_ns for event in fences) / 2)
                for file in files:
                    ends = [event.begin_ns + event.duration_ns for event in file.events]
                    self.assertEqual(ends, sorted(ends))

    def test_events_name_their_line(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "traced.c"), encoding="utf-8") as file:
            line = next(number for number, text in enumerate(file, 1) if "WAITS for the last" in text)
        self.done(self.launch(2), 2)
        for file in trace_files.read_folder(self.traces):
            sites = [file.sites[event.site] for event in file.events]
            self.assertEqual({site.function for site in sites}, {"main", "put_in_fences", "get_under_lock"})
            fences = [site.line for event, site in zip(file.events, sites) if event.kind == "fence"]
            self.assertEqual(fences.count(line), ROUNDS)
        self.assertIn(f"fence in put_in_fences at traced.c:{line}\n", self.report(self.traces).stdout)

    def test_traces_and_statistics_of_a_run_agree(self):
        statistics = self.path("counted.json")
        self.done(self.launch(4, ORIEL_STATS=statistics), 4)
        found = json.loads(self.report(statistics, self.traces, "--json").stdout)
        counted, traced = (run["host_version"] for run in found["runs"])
        self.assertRegex(counted, r"^(MPICH|Open MPI v?) ?\d")
        self.assertEqual(traced, counted)
        self.assertEqual([run["traced"] for run in found["runs"]], [False, True])
        counted, traced = (json.loads(self.report(path, "--json").stdout)["ran_ns"] for path in (statistics, self.traces))
        files = trace_files.read_folder(self.traces)
        self.assertEqual(traced, max(file.end[0] for file in files) - min(file.begin_ns for file in files))
        # both are from MPI_Init to MPI_Finalize; clocks are compared in between
        self.assertGreaterEqual(counted, files[0].end[0] - files[0].begin_ns)
        rows = {(row["table"], row["row"]): row for row in found["windows"][0]["rows"]}
        self.assertEqual(rows["operations", "put"]["count"], [4 * ROUNDS, 4 * ROUNDS])
        for name, row in rows.items():
            for quantity in {"count", "bytes"} & set(row):
                self.assertEqual(*row[quantity], name)

    def test_call_names_its_longest_wait(self):
        self.done(self.launch(3, "posts"), 3)
        waits = [event for event in trace_files.read_folder(self.traces)[0].events if event.cause == "late_post"]
        self.assertEqual([event.cause_rank for event in waits if event.waiting_ns > 100_000_000], [1])

    def test_run_trace_is_the_variable(self):
        result = run(ORIEL, "run", "--host", LIBRARY, "--trace", "traces", "--", "/usr/bin/env", cwd=self.folder)
        self.assertIn(f"ORIEL_TRACE={self.traces}\n", result.stdout)
        self.assertTrue(os.path.isdir(self.traces))
        result = run(ORIEL, "run", "--host", LIBRARY, "--trace=", "--", "/bin/true", cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (2, "oriel: --trace: the folder's name is empty\n"))
        result = run(ORIEL, "run", "--host", LIBRARY, "--trace", NOT_THERE, "--", "/bin/true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_no_trace_unless_wanted(self):
        self.done(launch(2), 2)
        self.assertFalse(os.path.exists(self.traces))

    def test_as_user(self):
        os.chmod(self.folder, 0o777)
        self.done(self.launch(2, options=["--user"]), 2)
        self.check(2)

    def test_threads_have_rings_of_their_own(self):
        self.done(self.launch(2, "threads"), 2)
        files = self.check(2, accumulate=2 * ROUNDS, lock_all=1, unlock_all=1)
        for file in files:
            self.assertGreaterEqual(len({event.thread for event in file.events}), 2)

    def test_children_are_not_traced(self):
        result = self.launch(2, "fork")
        self.done(result, 2)
        self.assertNotIn("a child ended", result.stdout)
        self.check(2)

    # --- ends ---

    def test_killed_job_is_readable_to_its_last_flush(self):
        result = self.launch(2, "kill")  # the launcher of MPICH 4.2 may return 0
        self.assertEqual(len(re.findall(r"is there$", result.stdout, re.M)), 2, result.stdout + result.stderr)
        files = self.check(2, free=0)
        self.assertEqual([file.end for file in files], [None, None])
        self.assertRegex(self.report(self.traces).stdout, r"ranks that did not reach MPI_Finalize: 0, 1\n")

    def test_limit_bounds_the_disk(self):
        self.done(self.launch(2, "flood", ORIEL_TRACE_LIMIT="200K"), 2)
        for file in trace_files.read_folder(self.traces):
            self.assertLessEqual(file.bytes, 200 << 10)
            self.assertGreater(file.bytes, 199 << 10)
            self.assertEqual(file.end[1] + file.end[2], 100000 + 3 * ROUNDS + 7)
        self.assertRegex(self.report(self.traces).stdout, r"events, and [0-9,]+ dropped \(")

    def test_too_small_limit_is_reported(self):
        result = self.launch(2, ORIEL_TRACE_LIMIT="1K")
        self.done(result, 2)
        [line] = self.oriel_lines(result)
        self.assertIn("ORIEL_TRACE_LIMIT is less than 4K; 2 of 2 ranks (first: rank 0) are not traced", line)

    def test_full_disk(self):
        os.mkdir(self.traces)
        if os.geteuid() != 0 or run("unshare", "-m", "true").returncode:
            self.skipTest("only root can make a small file system")
        script = f'mount -t tmpfs -o size=400k none "$1" && shift && "$@"; s=$?; cp -r {self.traces} {self.path("copy")}; exit $s'
        result = run("unshare", "-m", "sh", "-c", script, "sh", self.traces, LAUNCH, "--build", BUILD, "--host", HOST, "-n", "2",
                     f"--env=ORIEL_TRACE={self.traces}", "--", TRACED, "flood")
        self.done(result, 2)
        lines = self.oriel_lines(result)
        self.assertIn(len(lines), (1, 2), lines)
        for line in lines:
            self.assertRegex(line, rf"^oriel: rank [01]: {re.escape(self.traces)}: No space left on device; the program continues")
        files = trace_files.read_folder(self.path("copy"))
        self.assertEqual([file.end is not None for file in files], [True, True])
        for file in files:
            self.assertEqual(file.end[1] + file.end[2], 100000 + 3 * ROUNDS + 7)

    # --- folders ---

    def test_folder_that_cannot_be(self):
        result = self.launch(4, ORIEL_TRACE=NOT_THERE)
        self.done(result, 4)
        lines = self.oriel_lines(result)
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(f"ORIEL_TRACE={NOT_THERE}: No such file or directory; 4 of 4 ranks (first: rank 0) are not traced",
                      lines[0])

    def test_folder_that_is_not_ours(self):
        os.mkdir(self.traces, 0o755)
        os.chmod(self.folder, 0o755)
        result = self.launch(2, options=["--user"])
        self.done(result, 2)
        self.assertEqual(len(self.oriel_lines(result)), 1)
        self.assertIn(f"ORIEL_TRACE={self.traces}: Permission denied; 2 of 2 ranks", result.stderr)

    def test_earlier_run_is_replaced_and_nothing_else(self):
        self.done(self.launch(4), 4)
        first = trace_files.read_folder(self.traces)[0].job
        self.write("traces/rank-7.oriel", "mine\n", 0o644)
        self.write("traces/rank-9.oriel.old", "mine\n", 0o644)
        self.done(self.launch(2), 2)
        os.unlink(os.path.join(self.traces, "rank-7.oriel"))
        os.unlink(os.path.join(self.traces, "rank-9.oriel.old"))
        self.assertEqual(sorted(os.listdir(self.traces)), ["rank-0.oriel", "rank-1.oriel"])
        self.assertNotEqual(self.check(2)[0].job, first)

    def test_file_that_is_no_trace_is_left_alone(self):
        os.mkdir(self.traces)
        self.write("traces/rank-1.oriel", "mine\n", 0o644)
        result = self.launch(2)
        self.done(result, 2)
        self.assertEqual(len(self.oriel_lines(result)), 1)
        self.assertIn("the file exists and is not a trace: it is not overwritten; 1 of 2 ranks (first: rank 1)", result.stderr)
        with open(os.path.join(self.traces, "rank-1.oriel"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine\n")
        os.unlink(os.path.join(self.traces, "rank-1.oriel"))
        self.assertEqual(trace_files.read_folder(self.traces)[0].count("put"), ROUNDS)

    # --- clocks ---

    def check_clocks(self, files, shift_ns):
        """Finds each other node's clock offset, if known: its first rank is shift_ns ahead of rank
        0.  Returns whether one is known at the end, too; a busy node may have no time to measure
        it."""
        leaders = [file for file in files[1:] if file.node != files[0].node]
        self.assertGreater(len(leaders), 0)
        for file in leaders:
            self.assertGreaterEqual(len(file.clocks), 1)
            for own_ns, zero_ns, error_ns in file.clocks:
                self.assertLessEqual(abs(own_ns - zero_ns - shift_ns), error_ns)
                self.assertGreater(error_ns, 0)
                self.assertLess(error_ns, 100_000_000)
        return any(len(file.clocks) == 2 for file in leaders)

    def until_known_at_the_end(self, shift_ns, trace):
        """trace runs a job, and returns its files."""
        for _ in range(TRIES):
            if self.check_clocks(trace(), shift_ns):
                return
        self.fail("no other node's clock is known at the end")

    def test_nodes_with_a_common_clock(self):
        for ranks, size in ((2, 1), (4, 2), (8, 3)):
            with self.subTest(ranks=ranks, size=size):
                def trace():
                    self.done(self.launch(ranks, options=["--node-size", str(size)]), ranks)
                    files = self.check(ranks)
                    self.assertEqual(len({file.node for file in files}), -(-ranks // size))
                    return files

                self.until_known_at_the_end(0, trace)
                self.assertRegex(self.report(self.traces).stdout, r"clocks, aligned to within \d")

    def test_node_with_another_clock(self):
        """Rank 1's monotonic clock is 5000 s ahead."""
        if run("unshare", "-T", "--monotonic", "5000", "--fork", "true").returncode:
            self.skipTest("no other clock can be made here")
        wrapper = self.write("wrapper", "#!/bin/sh\n"
                             'case "${PMI_RANK-}${OMPI_COMM_WORLD_RANK-}" in\n'
                             '1) exec unshare -T --monotonic 5000 --fork "$@";;\n'
                             'esac\n'
                             'exec "$@"\n')

        def trace():
            self.done(run(LAUNCH, "--build", BUILD, "--host", HOST, "-n", "2", "--plain", "--env=ORIEL_NET=off",
                          f"--env=ORIEL_TRACE={self.traces}", "--", wrapper, ORIEL, "run", TRACED), 2)
            return trace_files.read_folder(self.traces)

        self.until_known_at_the_end(5_000_000_000_000, trace)
        took = re.search(r"; ([0-9.]+) (\w+) from MPI_Init to MPI_Finalize", self.report(self.traces).stdout)
        self.assertIn(took.group(2), ("ms", "s"))
        self.assertLess(float(took.group(1)), 1000)

    def test_over_a_network(self):
        # visible on all nodes
        self.traces = tempfile.mkdtemp(prefix="traces.", dir=os.path.dirname(TRACED))
        self.addCleanup(shutil.rmtree, self.traces)
        self.done(self.launch(4, options=["--net", "2"]), 4)
        files = self.check(4)
        self.assertEqual(len({file.node for file in files}), 2)
        for file in files[2:]:
            for own_ns, zero_ns, error_ns in file.clocks:
                self.assertLessEqual(abs(own_ns - zero_ns), error_ns)


if __name__ == "__main__":
    unittest.main(verbosity=2)
