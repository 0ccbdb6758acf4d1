"""`oriel report` of unusual runs, without a browser: large, small, empty and contradictory ones."""

import os
import random
import re
import resource
import signal
import unittest

import report_page
import traces
from report_page import FINDINGS, oriel

PUT = traces.operation("put")


class Unclocked(traces.Rank):
    """One whose clock was not compared."""

    def clock(self, at_ns):
        pass


class Text(report_page.Reports):
    def report(self, write, complaints=r"\A\Z"):
        result = oriel(self.traces(write))
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, complaints)
        return result.stdout

    def test_nothing_is_printed_about_nothing(self):
        self.assertTrue(self.report(lambda folder: traces.Rank(folder, 0, 1).close(1000)).endswith("\nNo window was created.\n"))

    def test_a_window_without_calls_or_operations_has_no_tables(self):
        def write(folder):
            file = traces.Rank(folder, 0, 1)
            file.window(0, [0], 0, "idle")
            file.window(1, [0], 0, "operations alone")
            file.window(2, [0], 0, "calls alone")
            file.event(PUT, 10, 1, window=1, bytes_=8, target=0)
            file.event(traces.call("create"), 20, 0, window=2)
            file.close(1000)
        text = self.report(write)
        self.assertEqual(len(re.findall(r"^  operation ", text, re.M)), 1)
        self.assertEqual(len(re.findall(r"^  call ", text, re.M)), 1)
        self.assertEqual(text.count("busiest pairs"), 1)
        for name in ("idle", "operations alone", "calls alone"):
            self.assertIn(f'"{name}"', text)
        self.assertIn("in window calls, 0 % waiting; nothing stands out\n", text)

    def test_many_ranks_with_notes_are_counted(self):
        def write(folder):
            for rank in range(9):
                file = traces.Rank(folder, rank, 9)
                file.window(0, range(9), rank, "w")
                file.close(1000, ended=rank == 4)
        self.assertIn("0, 1, 2, 3, 5 and 3 more", self.report(write))

    def test_uncompared_clocks_are_aligned_by_dates(self):
        def write(folder):
            for rank, kind in enumerate((traces.Rank, Unclocked)):
                file = kind(folder, rank, 2, machine=(rank, 1), shift_ns=rank * 7_000_000_000)
                file.window(0, [0, 1], rank, "w")
                file.event(PUT, 1_000_000, 500_000, bytes_=8, target=0)
                file.close(2_000_000)
        text = self.report(write)
        self.assertIn("the clocks of 1 rank were not compared: their times are as precise as the system dates", text)
        self.assertRegex(text, r"began .*; 2\.00 ms from MPI_Init to MPI_Finalize\n")

    def test_a_window_with_other_ranks_in_another_file_is_left_out(self):
        def write(folder):
            for rank in range(2):
                file = traces.Rank(folder, rank, 2)
                file.window(0, range(2 - rank), 0, "w")
                file.event(PUT, 10, 1, bytes_=8, target=0)
                file.close(1000)
        text = self.report(write, r"\Aoriel: \S*/rank-1\.oriel: window 0 has different ranks than in other files, and is ignored\n\Z")
        self.assertRegex(text, r"\n  put +1 ")

    def test_windows_beyond_the_table_are_one_over_all_ranks(self):
        def write(folder):
            file = traces.Rank(folder, 0, 3)
            for number in range(20):
                file.window(number, [0], 0, f"w{number}")
            file.window(20, [], 0, "")
            file.event(PUT, 10, 1, window=20, bytes_=8, target=2)
            file.close(1000)
        text = self.report(write, "2 of 3 ranks have no readable trace")
        self.assertIn('"later windows"', text)
        self.assertRegex(text, r"several -> \[2\]: 8 B in 1 operation\n")

    def test_incomplete_findings_are_marked(self):
        text = oriel(self.findings(dict(FINDINGS, complete=False, findings_lost=3))).stdout
        self.assertIn("\nNot all ranks reached MPI_Finalize: these are the findings of one node.\n", text)
        self.assertIn("\nThere was no room for 3 more findings.\n", text)

    @unittest.skipUnless("--otf2" in oriel("--help").stdout, "built without the OTF2 library")
    def test_half_an_archive_is_none(self):
        def write(folder):
            for rank in range(2):
                file = traces.Rank(folder, rank, 2)
                file.window(0, [0, 1], rank, "w")
                for at in range(20000 * (1 - rank)):
                    file.event(traces.operation("accumulate" if at % 2 else "fetch_and_op"), 10 * at, 5, bytes_=8, target=1)
                file.close(1_000_000)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        folder = self.traces(write)
        whole = oriel(folder, "--otf2", self.path("whole"))
        if "without the OTF2 library" in whole.stderr:
            self.skipTest("built without the OTF2 library")
        self.assertEqual((whole.returncode, whole.stdout, whole.stderr), (0, "", ""))
        half = oriel(folder, "--otf2", self.path("half"), preexec_fn=limit)
        self.assertNotEqual(half.returncode, 0)
        self.assertRegex(half.stderr, r"\Aoriel: --otf2 .*/half: .*\n")
        self.assertFalse(os.path.exists(self.path("half")))


class Page(report_page.Reports):
    def test_many_windows_and_pairs_are_combined(self):
        """The heaviest windows have rows of their own."""
        def write(folder):
            file = traces.Rank(folder, 0, 300)
            for window in range(40):
                file.window(window, range(300), 0, f"w{window}")
                for target in range(300 if window == 39 else 1):
                    file.event(PUT, 1000 * window + target, target % 5, window=window, bytes_=8, target=target)
            file.close(50_000)
            for rank in range(1, 300):
                traces.Rank(folder, rank, 300).close(50_000)
        folder = self.traces(write)
        self.assertIn("  busiest pairs, of 300:\n", oriel(folder).stdout)
        data = self.report(folder)
        self.assertEqual((len(data["windows"]), data["windows"][-1]["others"]), (33, 8))
        self.assertEqual(data["windows"][31]["name"], "w39")
        self.assertEqual(sum(sum(window["pairs"]["operations"]) for window in data["windows"]), 339)

    def test_of_many_events_the_longest_are_shown(self):
        count, draw = 33000, random.Random(5)
        durations = [draw.randrange(1000, 100_000) for _ in range(count)]

        def write(folder):
            file = traces.Rank(folder, 0, 1)
            file.window(0, [0], 0, "w")
            for at, duration in enumerate(durations):
                file.event(PUT, 200_000 * at, duration, bytes_=8, target=0)
            file.close(200_000 * count)
        events = self.report(self.traces(write))["events"]
        shown = len(events["kind"])
        self.assertEqual(events["left_out"], count - shown)
        self.assertGreater(events["left_out"], 0)
        self.assertEqual(events["longest_left_out"], sorted(durations, reverse=True)[shown])

    def test_call_sites_beyond_the_table_are_joined(self):
        """By window and call: those with the least time."""
        def write(folder):
            file = traces.Rank(folder, 0, 1)
            for window in range(2):
                file.window(window, [0], 0, f"w{window}")
            for line in range(1, 2001):
                file.event(PUT, 100_000 * line, 5000, bytes_=8, target=0, site=f"main at a.c:{line}")
            for line, (waiting, duration) in enumerate([(300, 1000), (700, 900), (0, 40)], 3000):
                file.event(traces.call("fence"), 100_000 * line, duration, waiting_ns=waiting, cause="late_fence" if waiting else None,
                           cause_rank=0 if waiting else -1, site=f"main at a.c:{line}")
                for window in range(2):
                    file.event(PUT, 100_000 * line + 5000, 10, window=window, bytes_=8, target=0, site=f"main at a.c:{line}")
            file.close(400_000_000)
        data = self.report(self.traces(write))
        first, second = ({window["name"]: window["sites"] for window in data["windows"]}[f"w{i}"] for i in range(2))
        self.assertEqual((len(first), len(data["places"])), (2002, 2001))
        self.assertEqual({tuple(row[1:4]) for row in first[:2000]}, {(PUT, 1, 8)})
        self.assertEqual(first[2000:], [[0, traces.call("fence"), 3, 0, 1940, 1000, 2, 700], [0, PUT, 3, 24, 30, 0, 0, 0]])
        self.assertEqual(second, [[0, PUT, 3, 24, 30, 0, 0, 0]])

    def test_bins_are_merged_until_they_fit(self):
        ranks, bins, run_ns = 40, 4096, 4096 * 1000

        def write(folder):
            for rank in range(ranks):
                file = traces.Rank(folder, rank, ranks)
                file.window(0, range(ranks), rank, "w")
                file.event(traces.call("fence"), 0, 1000)
                file.event(PUT, 0, run_ns, bytes_=8, target=0)
                file.event(traces.call("fence"), run_ns // 2, run_ns // 4, waiting_ns=run_ns // 4, cause="late_fence", cause_rank=0)
                file.close(run_ns)
        data = self.report(self.traces(write))
        self.assertEqual((data["timeline"]["bins"], data["timeline"]["bin_ns"]), (bins // 2, 2 * (run_ns // bins + 1)))
        filled = data["windows"][0]["bins"]
        self.assertLessEqual(len(filled["row"]), 160_000)
        self.assertGreater(len(filled["row"]), 80_000)
        self.assertEqual((sum(filled["operations"]), sum(filled["calls"])), (ranks, 3 * ranks))
        for key, share in (("operating", 1), ("waiting", 1 / 4), ("epoch", 3 / 4)):
            self.assertAlmostEqual(sum(filled[key]) / (1000 * ranks * bins // 2), share, delta=0.002)
            self.assertLessEqual(max(filled[key]), 1000)

    def test_a_pause_after_the_last_call_leaves_the_next_rank_its_own(self):
        def write(folder):
            for rank, begin in ((0, 90), (1, 40)):
                file = traces.Rank(folder, rank, 2)
                file.window(0, [0, 1], rank, "w")
                for at in (0, 20, 60, 80):
                    file.event(traces.call("fence"), at * 1000, 1000)
                    file.event(PUT, at * 1000 + 5000, 1000, bytes_=8, target=0)
                file.mark("pause", begin * 1000, 5000)
                file.close(100_000)
        epochs = self.report(self.traces(write))["epochs"]
        found = sorted(zip(epochs["rank"], epochs["begin"], epochs["duration"], strict=True))
        self.assertEqual([(begin, duration) for rank, begin, duration in found if rank == 0][:2], [(1000, 20_000), (21_000, 40_000)])
        self.assertEqual([(begin, duration) for rank, begin, duration in found if rank == 1][:2], [(1000, 20_000), (21_000, 5_000)])

    def test_the_ranks_with_the_largest_changes_are_compared(self):
        def write(folder, waiting_ns):
            for rank in range(12):
                file = traces.Rank(folder, rank, 12)
                file.window(0, range(12), rank, "w")
                file.event(traces.call("fence"), 1000, waiting_ns, waiting_ns=waiting_ns, cause="late_fence", cause_rank=(rank + 1) % 12)
                file.close(2000 + waiting_ns)
        folders = [self.traces(lambda folder, ns=ns: write(folder, ns), f"{ns}") for ns in (1_000_000, 9_000_000)]
        [window] = self.report(*folders)["comparison"]["windows"]
        self.assertEqual((sum(row["table"] == "ranks" for row in window["rows"]), window["ranks_left_out"]), (10, 2))

    def test_paths_of_a_window_are_sorted_by_frequency(self):
        """Also where there are more than the report lists."""
        def write(folder):
            for rank in range(80):
                file = traces.Rank(folder, rank, 80)
                file.window(0, range(80), rank, "few", path="cma" if rank else "direct")
                file.window(1, range(80), rank, "many", path="agent", reason=f"reason {rank}")
                file.event(traces.call("create"), 5, 0)
                file.close(1000)
        few, many = self.report(self.traces(write))["windows"]
        self.assertEqual([path["ranks"] for path in few["memory_paths"]], [79, 1])
        self.assertEqual([path["ranks"] for path in many["memory_paths"]], [1] * 64)


if __name__ == "__main__":
    report_page.needed()
    unittest.main()
