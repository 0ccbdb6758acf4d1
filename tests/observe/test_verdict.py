"""The verdict in statistics and reports: each diagnosis is found in a program in which it is planted,
and not in the same program without the cause.

TESTS_HOST selects the host, as tests/launch has it."""

import json
import os
import resource
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from command import BUILD, Case, LAUNCH, ORIEL, environment  # noqa: E402
from watched import Terminal, launcher  # noqa: E402, in this folder

HOST = os.environ["TESTS_HOST"]
PROGRAM = os.path.join(BUILD, "tests", "observe", HOST.partition("-")[0], "planted")
RANKS = 2
TRIES = 3  # where processors are scarce, a rank may be late for that reason, and at any line
# of a processor that a rank has; with less, ranks that never wait spend most of their time outside of their calls
LEAST = 0.25
COPIED = {"ORIEL_PROMOTE": "never", "ORIEL_CMA": "never"}


def processor_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def line_of(mark):
    with open(os.path.join(HERE, "planted.c"), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if mark in line)


class Verdicts(Case):
    def launch(self, scenario, variant, **variables):
        env = [f"--env={name}={value}" for name, value in variables.items()]
        began, used = time.monotonic(), processor_s()
        job = subprocess.run([LAUNCH, "--build", BUILD, "--host", HOST, "-n", str(RANKS), "--timeout", "100", *env, "--",
                              PROGRAM, scenario, variant],
                             env=environment(), capture_output=True, text=True, timeout=600, check=False)
        if job.returncode == 77:
            self.skipTest(job.stdout.strip())
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.had = (processor_s() - used) / (time.monotonic() - began) / RANKS
        return job.stderr

    def found(self, verdict):
        shares = [entry["cost_ns"] / verdict["ranks_ns"] for entry in verdict["diagnoses"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertTrue(all(share >= 0.05 for share in shares), verdict)
        self.assertLessEqual(verdict["waiting_ns"], verdict["calls_ns"])
        return {entry["diagnosis"]: entry for entry in verdict["diagnoses"]}

    def counted(self, scenario, variant, **variables):
        statistics = self.path("s.json")
        self.launch(scenario, variant, ORIEL_STATS=statistics, **variables)
        with open(statistics, encoding="utf-8") as file:
            return self.found(json.load(file)["verdict"])

    def traced(self, scenario, variant, **variables):
        traces = self.path("traces")
        self.launch(scenario, variant, ORIEL_TRACE=traces, **variables)
        return self.found(json.loads(self.report(traces, "--json"))["verdict"])

    def report(self, *words):
        return subprocess.run([ORIEL, "report", *words], env=environment(), capture_output=True, text=True, timeout=600, check=True).stdout

    def is_absent(self, diagnosis, found):
        other = found.get(diagnosis["diagnosis"])
        return other is None or other["site"] != diagnosis["site"]

    def check(self, run, scenario, name, mark, rank=None, waits=True, **variables):
        for left in reversed(range(TRIES)):
            bad, had = run(scenario, "bad", **variables), self.had
            good = run(scenario, "good", **variables)
            if name in bad and self.is_absent(bad[name], good) and bad[name]["rank"] == rank or left == 0:
                break
        if name not in bad and not waits and had < LEAST:
            self.skipTest(f"the machine is busy: a rank had {had:.2f} of a processor")
        self.assertIn(name, bad)
        self.assertTrue(self.is_absent(bad[name], good), good)
        self.assertEqual(bad[name]["rank"], rank)
        self.assertRegex(bad[name]["site"], rf"^\w+ at planted.c:{line_of(mark)}$")
        return bad[name]

    def check_both(self, *args, **variables):
        for run in self.counted, self.traced:
            with self.subTest(run=run.__name__):
                self.check(run, *args, **variables)

    def test_a_late_rank(self):
        self.check_both("late", "late_rank", "WAITS late", RANKS - 1)

    def test_a_late_notification(self):
        self.check_both("notified", "late_rank", "WAITS notified", RANKS - 1)

    def test_contended_locks(self):
        for run in self.counted, self.traced:
            with self.subTest(run=run.__name__):
                bad, good = run("locks", "bad"), run("locks", "good")
                self.assertRegex(bad["lock_contention"]["problem"], r'^Locks of "planted" are contended: \d+ of 20 wait, ')
                self.assertEqual(bad["lock_contention"]["site"], f"locks at planted.c:{line_of('WAITS locks')}")
                self.assertNotIn("lock_contention", good)

    def test_a_slow_path(self):
        for run in self.counted, self.traced:
            with self.subTest(run=run.__name__):
                slow = self.check(run, "slow", "slow_path", "PUTS slow")
                self.assertRegex(slow["problem"], r"^100 % of the puts on window 1 are slow, by (cma|agent), and take .* stack is in the range")
                self.assertEqual(slow["remedy"], "Allocate the memory with MPI_Win_allocate or MPI_Alloc_mem")

    def test_tiny_operations(self):
        self.check(self.counted, "tiny", "tiny_operations", "PUTS tiny", waits=False)

    def test_windows_in_a_loop(self):
        self.check_both("loop", "create_in_loop", "MADE")

    def test_windows_of_one_line_are_one_diagnosis_if_some_share_their_figures(self):
        def window(windows, name, site):
            return {"name": name, "flavour": "MPI_Win_allocate" if windows == 1 else "", "site": site, "freed": True, "windows": windows,
                    "ranks": [], "calls": {"create": {"count": windows, "time_ns": 1_000_000 * windows}}}

        def created(line, window, count):
            return {"call": "create", "function": "step", "file": "/src/loop.c", "line": line, "window": window, "count": count,
                    "time_ns": 1_000_000 * count}
        for name, lines in (("", [7]), ("halo", [7]), ("halo", [7, 8])):
            windows = [window(1, name, f"step at loop.c:{line}") for line in lines for _ in range(1000 // len(lines))]
            sites = [created(line, None, 1300 // len(lines)) for line in lines]
            run = {"format": "oriel-statistics", "version": 2, "ranks": 1, "ran_ns": 2_000_000_000, "program": "a", "host": "mpich",
                   "windows": [*windows, window(300, None, None)], "sites": sites}
            verdict = json.loads(self.report(self.write("many.json", json.dumps(run)), "--json"))["verdict"]
            self.assertEqual([entry["windows"] for entry in verdict["diagnoses"]], [1300] if lines == [7] else [500, 500, 300])
            self.assertEqual(verdict["diagnoses"][0]["site"], "step at loop.c:7" if lines == [7] else verdict["diagnoses"][0]["site"])

    def test_a_flush_after_each_operation(self):
        self.check(self.counted, "flush", "flush_after_each", "FLUSHES", waits=False)

    def test_a_busy_target(self):
        self.check_both("busy", "busy_target", "GETS busy", 1, **COPIED)

    def test_the_table_begins_with_the_verdict(self):
        head, share, first, remedy = self.launch("late", "bad", ORIEL_STATS="1", ORIEL_STATS_WIDTH="200").splitlines()[:4]
        self.assertRegex(head, r"^oriel: statistics of planted, 2 ranks on ")
        self.assertRegex(share, r"^\d+ % of [\d.]+ (ms|s) in window calls, \d+ % waiting$")
        self.assertRegex(first, r'^ +\d+ %  Rank 1 is late: the others wait [\d.]+ ms for it, most in MPI_Win_fence of "planted", in late at '
                                rf"planted.c:{line_of('WAITS late')}\.$")
        self.assertEqual(remedy, "        Load imbalance: give rank 1 less work.")

    def check_width(self, text, columns):
        verdict = text.partition("oriel: statistics of ")[2].partition("\n")[2].partition("\nwindow ")[0]
        self.assertLessEqual(max(map(len, verdict.splitlines())), columns, verdict)
        self.assertRegex(verdict, r"\n +\d+ %  Rank 1 is late: [^\n]+\n        [^\n]+\n")
        self.assertIn('most in MPI_Win_fence of "planted", in late at planted.c:', " ".join(verdict.split()))

    def test_the_verdict_is_wrapped(self):
        self.check_width(self.launch("late", "bad", ORIEL_STATS="1"), 100)
        self.check_width(self.launch("late", "bad", ORIEL_STATS="1", ORIEL_STATS_WIDTH="50"), 50)

    def test_the_verdict_fits_the_launchers_terminal(self):
        command, extra = launcher(ORIEL, "run", "--stats", PROGRAM, "late", "bad", ranks=RANKS)
        for columns, changes in ((70, {}), (60, {"COLUMNS": "60"})):
            terminal = Terminal(command, columns=70, **changes, **extra)
            self.addCleanup(terminal.close)
            self.assertEqual(terminal.status(), 0)
            self.check_width(terminal.text.decode().replace("\r", ""), columns)

    def test_a_file_of_statistics_has_the_same_verdict(self):
        statistics = self.path("s.json")
        self.launch("late", "bad", ORIEL_STATS=statistics)
        with open(statistics, encoding="utf-8") as file:
            self.assertEqual(json.loads(self.report(statistics, "--json"))["verdict"], json.load(file)["verdict"])
        self.assertRegex(self.report(statistics), r"\A.*\n\d+ % of [\d.]+ (ms|s) in window calls, \d+ % waiting\n +\d+ %  Rank 1 is late: ")

    def test_nothing_stands_out_where_nothing_is_wrong(self):
        for left in reversed(range(TRIES)):
            share = self.launch("late", "good", ORIEL_STATS="1").splitlines()[1]
            if share.endswith("nothing stands out") or left == 0:
                break
        self.assertRegex(share, r"^\d+ % of [\d.]+ (ms|s) in window calls, \d+ % waiting; nothing stands out$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
