"""oriel report on two runs, and its JSON and CSV: what is printed of known trace files and statistics,
and of runs that can hardly be compared.

tests/page/traces.py makes the trace files."""

import csv
import io
import json
import os
import re
import resource
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "page")]
import traces  # noqa: E402
from command import Case, ORIEL, start  # noqa: E402

RANKS = 4
MANY_RANKS = 1000
LIMIT_KIB = 1 << 20


def fences(folder, ranks=RANKS, late=3, waiting_ns=1_000_000, puts=10, line=42, name="halo", ended=True, function="step", **changes):
    """Each rank puts to the next, and waits for one late rank in a fence."""
    os.mkdir(folder)
    for rank in range(ranks):
        file = traces.Rank(folder, rank, ranks, **changes)
        file.window(0, range(ranks), rank, name, site=f"main at halo.c:{line}")
        file.event(traces.call("create"), 0, 30_000)
        for i in range(puts):
            file.event(traces.operation("put"), 100_000 + 1000 * i, 500, bytes_=1024, target=(rank + 1) % ranks)
        is_late = rank == late
        file.region(1, "phase")
        file.mark("region", 90_000, 130_000 + waiting_ns, region=1, operations=puts, calls_ns=waiting_ns, waiting_ns=waiting_ns)
        file.event(traces.call("fence"), 200_000, 5_000 if is_late else waiting_ns + 5_000, waiting_ns=0 if is_late else waiting_ns,
                   site=f"{function} at halo.c:{line + 40}", cause=None if is_late else "late_fence", cause_rank=-1 if is_late else late)
        file.close(300_000 + waiting_ns, ended=ended)
    return folder


def one_call_each(folder, call, windows):
    """One rank makes windows in a loop, and a call on each: its window's name and its duration."""
    os.mkdir(folder)
    file = traces.Rank(folder, 0, 1)
    at = 0
    for number, (name, duration_ns) in enumerate(windows):
        file.window(number, [0], 0, name, site="main at loop.c:7")
        at = file.event(traces.call(call), at, duration_ns, window=number)
    file.close(at)


def chain(folder, ranks, waiting_ns):
    """Each rank waits for the next in a fence."""
    os.mkdir(folder)
    for rank in range(ranks):
        file = traces.Rank(folder, rank, ranks)
        file.window(0, range(ranks), rank, "halo")
        file.event(traces.call("fence"), 1000, waiting_ns, waiting_ns=waiting_ns, cause="late_fence", cause_rank=(rank + 1) % ranks)
        file.close(2000 + waiting_ns)
    return folder


class Compare(Case):
    def report(self, *words):
        result = start(ORIEL, "report", *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def runs(self, before=None, after=None):
        return fences(self.path("before"), **before or {}), fences(self.path("after"), **after or {})


class Changes(Compare):
    def test_what_changed_is_printed_by_call_and_rank(self):
        text = self.report(*self.runs(after={"late": 1, "waiting_ns": 50_000_000, "puts": 20}))
        for row in (r"\Abefore: \S+/before: /opt/app/ring, 4 ranks on MPICH, Oriel 0\.1\.0, traced\nafter:  \S+/after: ",
                    r"\nTime in window calls: 3\.16 ms before, 150 ms after: 48 times as long\n",
                    r"\nWaiting in them: 3\.00 ms before, 150 ms after: 50 times as long\n",
                    r"\nOperations: 40 before, 80 after: 2\.0 times\nMoved: 40\.0 KiB before, 80\.0 KiB after: 2\.0 times\n",
                    r'\nChanged: window "halo" of MPI_Win_allocate, created in main at halo\.c:42\n',
                    r"\n  operations put +count +40 +80  2\.0 times\n +bytes +40\.0 KiB +80\.0 KiB  2\.0 times\n",
                    r"\n  calls +fence +time +3\.02 ms +150 ms  50 times\n +waiting +3\.00 ms +150 ms  50 times\n",
                    r"\n  causes +late fence +waiting +3\.00 ms +150 ms  50 times\n",
                    r"\n  ranks +1 +waited for +0 ns +150 ms  new\n +3 +waited for +3\.00 ms +0 ns  gone\n"):
            self.assertRegex(text, row)
        self.assertNotIn("  create", text)  # it took as long
        self.assertLessEqual(max(map(len, text.splitlines()[8:])), 80)

    def test_faster_runs_are_so_called(self):
        text = self.report(*self.runs({"waiting_ns": 8_000_000}, {"waiting_ns": 2_000_000}))
        self.assertRegex(text, r"Waiting in them: 24\.0 ms before, 6\.00 ms after: 4\.0 times faster\n")
        self.assertRegex(text, r"\n +waiting +24\.0 ms +6\.00 ms  4\.0 times less\n")

    def test_small_differences_of_time_are_none(self):
        text = self.report(*self.runs(after={"waiting_ns": 1_040_000}))
        self.assertRegex(text, r"\nWaiting in them: 3\.00 ms before, 3\.12 ms after: the same, within 5 %\n")
        self.assertTrue(text.endswith("\nUnchanged: 1 window\n"), text)

    def test_a_window_whose_line_moved_is_the_same(self):
        text = self.report(*self.runs(after={"line": 44, "puts": 11}))
        self.assertIn("created in main at halo.c:44, before in main at halo.c:42\n", text)
        self.assertRegex(text, r"put +count +40 +44  \+10 %\n")

    def test_windows_of_one_run_are_listed(self):
        text = self.report(*self.runs(after={"name": "border", "line": 50}))
        self.assertRegex(text, r'\nGone: window "halo" [^\n]+\n  40 operations, 40\.0 KiB moved, 3\.16 ms in calls, 3\.00 ms waiting\n')
        self.assertRegex(text, r'\nNew: window "border" [^\n]+\n  40 operations, ')

    def test_windows_made_in_a_loop_are_one(self):
        for name, windows in (("before", 3), ("after", 30)):
            one_call_each(self.path(name), "create", [("", 500)] * windows)
        text = self.report(self.path("before"), self.path("after"))
        self.assertEqual(text.count("loop.c:7"), 1)
        self.assertRegex(text, r"\n  windows +count +3 +30\n")
        self.assertRegex(text, r"\n  calls +create +count +3 +30  10 times\n")

    def test_windows_of_a_loop_in_one_run_have_their_number(self):
        before, after = self.runs()
        for name, windows in (("few", 1), ("many", 1200)):
            one_call_each(self.path(name), "create", [("", 500)] * windows)
        self.assertIn("\nNew: window of MPI_Win_allocate, created in main at loop.c:7, 1,200 times\n  0 operations, ",
                      self.report(before, self.path("many")))
        self.assertIn("created in main at loop.c:7\n  0 operations, ", self.report(self.path("few"), after))

    def test_many_ranks_that_changed_are_bounded_in_the_text_only(self):
        for ranks, more in ((5, None), (6, "1 more rank"), (8, "3 more ranks")):
            folders = [chain(self.path(f"{ranks} {ns}"), ranks, ns) for ns in (1_000_000, 9_000_000)]
            text = self.report(*folders)
            self.assertEqual(len(re.findall(r"^ +(?:ranks +)?\d +waited for ", text, re.M)), 5)
            self.assertEqual(re.findall(r"^ +and (.+)$", text, re.M), [more] if more else [])
            rows = json.loads(self.report(*folders, "--json"))["windows"][0]["rows"]
            self.assertEqual(sum(row["table"] == "ranks" for row in rows), ranks)

    def test_many_windows_that_changed_are_bounded_in_the_text_only(self):
        for windows, more in ((10, None), (11, "1 more window"), (12, "2 more windows")):
            folders = [self.path(f"{windows} {factor}") for factor in (1, 2)]
            for factor, folder in zip((1, 2), folders, strict=True):
                one_call_each(folder, "fence", [(f"w{i}", factor * (1000 + i)) for i in range(windows)])
            text = self.report(*folders)
            self.assertEqual(text.count('\nChanged: window "w'), 10)
            self.assertEqual(re.findall(r"^(.+) changed; --json and --csv have all$", text, re.M), [more] if more else [])
            self.assertEqual(len(json.loads(self.report(*folders, "--json"))["windows"]), windows)

    def test_windows_beyond_the_table_are_compared_as_one(self):
        saved = []
        for name, puts, windows in (("before", 3, 1), ("after", 6, 1200)):
            one = json.loads(self.report(fences(self.path(name), puts=puts), "--json"))
            one["windows"][0].update(name="", flavour="", windows=windows, site="")
            saved.append(self.write(f"{name}.json", json.dumps(one)))
        self.assertRegex(self.report(*saved), r"\nChanged: later windows\n[^\n]+\n  windows +count +1 +1200\n"
                         r"  operations put +count +12 +24  2\.0 times\n")
        self.assertIn("\n1 more window, created after the first 1,000\n", self.report(saved[0]))
        self.assertIn("\n1,200 more windows, created after the first 1,000\n", self.report(saved[1]))

    def test_largest_change_is_first(self):
        for name, factor in (("before", 1), ("after", 3)):
            one_call_each(self.path(name), "fence", [("w0", factor * 10_000), ("w1", factor * 900_000), ("w2", factor * 40_000)])
        text = self.report(self.path("before"), self.path("after"))
        self.assertLess(text.index('"w1"'), text.index('"w2"'))
        self.assertLess(text.index('"w2"'), text.index('"w0"'))


class Sites(Compare):
    def sites(self, text):
        return text.split("\nChanged: call sites", 1)[1].split("\nChanged: regions", 1)[0]

    def test_regions_that_changed_are_named(self):
        text = self.report(*self.runs(after={"waiting_ns": 50_000_000, "puts": 20}))
        self.assertRegex(text, r"\nChanged: regions +before +after  change\n  phase\n +time +4\.52 ms +201 ms  44 times\n"
                         r" +waiting +4\.00 ms +200 ms  50 times\n +in calls +4\.00 ms +200 ms  50 times\n"
                         r" +operations +40 +80  2\.0 times\n\Z")
        self.assertNotIn("regions", self.report(self.path("before"), self.path("before")))

    def test_lines_that_became_slower_are_named(self):
        text = self.report(*self.runs(after={"waiting_ns": 50_000_000, "puts": 20}))
        self.assertRegex(self.sites(text), r"\A +before +after  change\n  fence in step at halo\.c:82\n"
                         r" +time +3\.02 ms +150 ms  50 times\n +waiting +3\.00 ms +150 ms  50 times\n"
                         r"  put in other call sites\n +calls +40 +80  2\.0 times\n +bytes +40\.0 KiB +80\.0 KiB  2\.0 times\n\Z")
        self.assertNotIn("call sites", self.report(self.path("before"), self.path("before")))

    def test_a_line_that_moved_is_the_same(self):
        text = self.sites(self.report(*self.runs(after={"line": 52, "waiting_ns": 2_000_000})))
        self.assertRegex(text, r"\n  fence in step at halo\.c:92, before in step at halo\.c:82\n +time ")

    def test_lines_of_one_run_are_new_or_gone(self):
        text = self.sites(self.report(*self.runs(after={"function": "other"})))
        self.assertRegex(text, r"  fence in step at halo\.c:82\n +calls +4 +0  gone\n +time +3\.02 ms +0 ns  gone\n")
        self.assertRegex(text, r"  fence in other at halo\.c:82\n +calls +0 +4  new\n +time +0 ns +3\.02 ms  new\n")

    def test_operations_have_times_only_if_both_runs_measured_them_alike(self):
        before, after = self.runs()
        counted = json.loads(self.report(before, "--json"))
        del counted["dropped_events"]
        saved = self.write("counted.json", json.dumps(counted))
        for one, times in ((before, [20_000, 20_000]), (saved, None)):
            sites = {site["call"]: site for site in json.loads(self.report(one, after, "--json"))["sites"]}
            self.assertEqual((sites["put"].get("time_ns"), sites["fence"]["time_ns"]), (times, [3_020_000, 3_020_000]))

    def test_many_lines_are_bounded_in_the_text_only(self):
        for name, factor in (("before", 1), ("after", 2)):
            os.mkdir(self.path(name))
            file = traces.Rank(self.path(name), 0, 1)
            file.window(0, [0], 0, "halo")
            for line in range(1, 13):
                file.event(traces.call("fence"), 1_000_000 * line, factor * 10_000 * (line + 10), site=f"main at a.c:{line}")
            file.close(20_000_000)
        folders = self.path("before"), self.path("after")
        text = self.sites(self.report(*folders))
        self.assertEqual((text.count(" in main at "), text.index("a.c:12") < text.index("a.c:3")), (10, True))
        self.assertIn("\n  and 2 more call sites; --json and --csv have all\n", text)
        self.assertEqual(len(json.loads(self.report(*folders, "--json"))["sites"]), 12)


class Formats(Compare):
    def test_json_of_a_run_is_statistics_and_can_be_compared(self):
        before, after = self.runs(after={"puts": 30})
        saved = self.write("saved.json", self.report(before, "--json"))
        with open(saved, encoding="utf-8") as file:
            run = json.load(file)
        self.assertEqual((run["format"], run["version"], run["ranks"], run["dropped_events"]), ("oriel-statistics", 2, RANKS, 0))
        window = run["windows"][0]
        self.assertEqual((window["name"], window["flavour"], window["ranks_reported"]), ("halo", "MPI_Win_allocate", RANKS))
        self.assertEqual(window["operations"]["put"], {"count": 40, "bytes": 40960, "time_ns": 20000})
        self.assertEqual(window["calls"]["fence"], {"count": 4, "time_ns": 3_020_000, "waiting_ns": 3_000_000, "waited": 3,
                                                    "longest_ns": 1_000_000, "longest_rank": 0})
        self.assertEqual(window["causes"]["late_fence"], {"caused_ns": 3_000_000, "ranks": [{"rank": 3, "caused_ns": 3_000_000}]})
        self.assertIn({"origin": 3, "target": 0, "count": 10, "bytes": 10240}, window["busiest_pairs"])
        self.assertEqual(self.report(saved, "--json"), self.report(before, "--json"))
        self.assertEqual(self.report(saved, after).replace(saved, before), self.report(before, after))
        self.assertRegex(self.report(saved), r"\Aoriel: statistics of ring, 4 ranks on MPICH\n")

    def test_json_of_two_runs(self):
        found = json.loads(self.report(*self.runs(after={"puts": 30}), "--json"))
        self.assertEqual((found["format"], found["version"], found["per_rank"], found["notes"]), ("oriel-comparison", 1, False, []))
        self.assertEqual([run["ranks"] for run in found["runs"]], [RANKS, RANKS])
        self.assertEqual(found["total"]["count"], [40, 120])
        rows = {(row["table"], row["row"]): row for row in found["windows"][0]["rows"]}
        self.assertEqual(rows["operations", "put"]["bytes"], [40960, 122880])
        self.assertEqual(rows["ranks", "3"]["waiting_ns"], [3_000_000, 3_000_000])
        self.assertNotIn(("operations", "get"), rows)
        self.assertEqual(found["sites"][0], {"call": "put", "site": "other call sites", "site_before": "other call sites", "function": None,
                                             "file": None, "line": None, "module": None, "offset": None, "count": [40, 120],
                                             "bytes": [40960, 122880], "time_ns": [20_000, 60_000]})
        fence = next(site for site in found["sites"] if site["call"] == "fence")
        self.assertEqual((fence["function"], fence["file"], fence["line"]), ("step", "halo.c", 82))
        self.assertEqual(found["regions"], [{"name": "phase", "count": [4, 4], "time_ns": [4_520_000, 4_520_000],
                                             "waiting_ns": [4_000_000, 4_000_000], "calls_ns": [4_000_000, 4_000_000],
                                             "operations": [40, 120]}])

    def test_csv_has_a_line_for_each_figure(self):
        before, after = self.runs({"name": 'a "b", c'}, {"name": 'a "b", c', "puts": 30})
        rows = list(csv.reader(io.StringIO(self.report(before, after, "--csv"))))
        self.assertEqual(rows[0], ["window", "function", "site", "table", "row", "quantity", "before", "after"])
        head = ['a "b", c', "MPI_Win_allocate", "main at halo.c:42"]
        self.assertIn([*head, "operations", "put", "count", "40", "120"], rows)
        self.assertIn([*head, "calls", "fence", "waiting_ns", "3000000", "3000000"], rows)
        self.assertIn(["", "", "step at halo.c:82", "sites", "fence", "waiting_ns", "3000000", "3000000"], rows)
        self.assertIn(["", "", "", "regions", "phase", "operations", "40", "120"], rows)
        one = list(csv.reader(io.StringIO(self.report(before, "--csv"))))
        self.assertEqual(one[0][-1], "value")
        self.assertIn([*head, "operations", "put", "bytes", "40960"], one)
        self.assertIn(["", "", "step at halo.c:82", "sites", "fence", "time_ns", "3020000"], one)
        self.assertIn(["", "", "", "regions", "phase", "calls_ns", "4000000"], one)


class Odd(Compare):
    def test_other_numbers_of_ranks_are_compared_by_means(self):
        text = self.report(*self.runs(after={"ranks": 8, "late": 7}))
        self.assertIn("note: 4 ranks before, 8 after: all figures are means over the ranks of a run\n", text)
        self.assertIn("\nOperations: 10 before, 10 after: the same\n", text)
        self.assertNotIn("  ranks ", text)

    def test_means_have_a_digit_after_the_point(self):
        before, after = self.runs(after={"ranks": 8, "late": 7, "puts": 11})
        os.remove(os.path.join(before, "rank-2.oriel"))
        self.assertIn("\nOperations: 7.5 before, 11 after: +47 %\n", start(ORIEL, "report", before, after).stdout)

    def test_a_run_without_windows_is_so_called(self):
        for folder in "before", "after":
            one_call_each(self.path(folder), "create", [])
        self.assertTrue(self.report(self.path("before"), self.path("after")).endswith("\n\nThe programs created no windows.\n"))

    def test_dropped_events_are_named(self):
        for folder, dropped in (("before", 1), ("after", 1113)):
            os.mkdir(self.path(folder))
            traces.Rank(self.path(folder), 0, 1).close(1000, dropped=dropped)
        text = self.report(self.path("before"), self.path("after"))
        self.assertIn("note: the first run dropped 1 event, so its figures are low\n", text)
        self.assertIn("note: the second run dropped 1113 events, so its figures are low\n", text)

    def test_other_programs_and_hosts_are_named(self):
        text = self.report(*self.runs(after={"program": "/opt/app/other -n 3", "host": "openmpi"}))
        self.assertIn("note: different programs, /opt/app/ring and /opt/app/other -n 3: ", text)
        self.assertIn("note: the hosts differ: MPICH before, Open MPI after\n", text)
        folders = [fences(self.path(f"abi {mpi}"), host="abi", host_version=mpi) for mpi in ("MPICH 5.0.2", "Open MPI v6.0.0")]
        self.assertIn("note: the hosts differ: MPI's standard ABI, MPICH 5.0.2 before, MPI's standard ABI, Open MPI v6.0.0 after\n",
                      self.report(*folders))
        self.assertIn("; MPI's standard ABI, MPICH 5.0.2, Oriel 0.1.0\n", self.report(folders[0]))
        folders = fences(self.path("one"), program="/a/ring -x"), fences(self.path("other"), program="/b/ring -y")
        self.assertNotIn("different programs", self.report(*folders))

    def test_incomplete_runs_are_named(self):
        before, after = self.runs(after={"ended": False})
        os.remove(os.path.join(before, "rank-2.oriel"))
        with open(os.path.join(after, "rank-1.oriel"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 40)
        result = start(ORIEL, "report", before, after)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"1 of 4 ranks have no readable trace here, the first is rank 2\n.*rank-1\.oriel")
        self.assertIn("note: the first run: no figures of 1 of 4 ranks\n", result.stdout)
        self.assertIn("note: the second run: 4 of 4 ranks did not reach MPI_Finalize\n", result.stdout)

    def test_files_of_another_run_in_a_folder_are_left_out(self):
        before, after = self.runs()
        other = fences(self.path("other"), job=(1, 2))
        shutil.copy(os.path.join(other, "rank-0.oriel"), after)
        result = start(ORIEL, "report", before, after)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"rank-0\.oriel is from another run than most files here, and is ignored\n")
        self.assertIn("note: the second run: no figures of 1 of 4 ranks\n", result.stdout)
        self.assertIn("\nOperations: 40 before, 30 after: -25 %\n", result.stdout)

    def test_files_that_are_no_run_are_refused(self):
        before = fences(self.path("before"))
        for name, content, words in (("list", "[]", "neither findings of oriel check nor statistics"),
                                     ("newer", '{"format": "oriel-statistics", "version": 9}', "another version"),
                                     ("none", '{"format": "oriel-statistics", "version": 2}', "no number of ranks"),
                                     ("compared", '{"format": "oriel-comparison", "version": 1}', "neither findings"),
                                     ("binary", "\x00\x01", "line 1")):
            self.refused(start(ORIEL, "report", before, self.write(name, content)))
            self.assertIn(words, start(ORIEL, "report", before, self.path(name)).stderr)
        self.refused(start(ORIEL, "report", before, self.path("nowhere")))
        self.refused(start(ORIEL, "report", before, "--json", "--csv"))
        self.refused(start(ORIEL, "report", before, before, "--perfetto", self.path("out.json")))
        self.assertEqual(start(ORIEL, "report", before, before, before).returncode, 2)

    def test_statistics_with_odd_values_steer_nothing(self):
        odd = {"format": "oriel-statistics", "version": 2, "ranks": 2, "program": "a\x1b[2J", "host": 7, "missing_ranks": [0, 99, "x"],
               "windows": [7, {"name": "\x1b]0;w\x07", "flavour": "MPI_Win_create", "ranks": [{"rank": -5}, 9, {"rank": 1 << 40}],
                               "operations": {"put": {"count": -3, "bytes": 1 << 62}}, "calls": {"fence": []},
                               "causes": {"late_fence": {"ranks": [{"rank": 7, "caused_ns": 5}]}}, "busiest_pairs": [1]}]}
        path = self.write("odd.json", json.dumps(odd))
        for words in ((path,), (path, path), (path, "--csv"), (path, path, "--json")):
            self.assertNotRegex(self.report(*words), "[\x00-\x09\x0b-\x1f\x7f]")

    def test_no_wait_is_longer_than_its_call(self):
        """And a call that this version does not know is left out."""
        fence = {"count": 1, "time_ns": 50, "waiting_ns": 80, "waited": 1}
        odd = {"format": "oriel-statistics", "version": 2, "ranks": 1,
               "windows": [{"flavour": "MPI_Win_create", "ranks": [{"rank": 0}], "calls": {"fence": fence}}],
               "sites": [{"call": "fence", "file": "a.c", "line": 1, **fence}, {"call": "frobnicate", "file": "a.c", "line": 2, **fence}]}
        found = json.loads(self.report(self.write("odd.json", json.dumps(odd)), "--json"))
        self.assertEqual(found["windows"][0]["calls"]["fence"]["waiting_ns"], 50)
        self.assertEqual([(site["call"], site["waiting_ns"]) for site in found["sites"]], [("fence", 50)])

    def test_a_thousand_ranks_are_compared_in_a_gigabyte(self):
        folders = self.runs({"ranks": MANY_RANKS, "puts": 100}, {"ranks": MANY_RANKS, "puts": 150, "late": 7})
        text = self.report(*folders)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, LIMIT_KIB)
        self.assertIn("\nOperations: 100,000 before, 150,000 after: +50 %\n", text)
        self.assertRegex(text, r"\n +7 +waited for +0 ns +999 ms  new\n")


if __name__ == "__main__":
    unittest.main()
