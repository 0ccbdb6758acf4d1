"""`oriel bench --compare`, the spread of results, and warnings of a loaded node: on made-up results and a made-up /proc.

The tests never compare timings."""

import contextlib
import copy
import io
import json
import unittest
from unittest import mock

from bench_runs import BenchCase, bench
from command import HOSTS, ORIEL

import comparison  # in SCRIPTS
import load  # in SCRIPTS
import report  # in SCRIPTS
import spread  # in SCRIPTS

SLOWER = 3


def result(samples, column="oriel-mpich", pattern="put", size=8, status="ok"):
    return {"pattern": pattern, "title": pattern, "group": "contiguous", "memory": "local" if column == "raw" else "allocate",
            "ranks": 1 if column == "raw" else 2, "bytes": size, "in_flight": 1, "column": column, "unit": "ns", "samples": samples,
            "best": min(samples, default=None), "status": status, "reason": "" if status == "ok" else "odd"}


def run(*results, **changes):
    return {"schema": 2, "oriel": "0.2.0", "complete": True, "machine": {"processor": "one", "date": "2026-01-02"},
            "options": {"runs": 3}, "results": list(results), **changes}


class Spreads(unittest.TestCase):
    def test_three_runs_show_minimum_median_and_maximum(self):
        for samples, text in (([3.3, 3.1, 4.0], "3.1/3.3/4 ns"), ([1200], "1.2 us"), ([3, 3.2, 9], "3/3.2/9 ns !"),
                              ([2207, 7.4e6, 7.5e6], "2.21us/7.4ms/7.5ms !"), ([999.7, 999.8], "1/1/1 us")):
            self.assertEqual(spread.Spread(samples).text(), text)

    def test_numbers_have_units_and_three_digits(self):
        for ns, text in ((0.25, "0.25 ns"), (12.34, "12.3 ns"), (999.4, "999 ns"), (1234, "1.23 us"), (29e6, "29 ms"), (3e9, "3 s")):
            self.assertEqual(spread.human(ns), text)

    def test_ratios_are_words(self):
        for ratio, text in ((0.02, "50 times slower"), (1 / 1.2, "20 % slower"), (1.04, "about even"), (1.3, "30 % faster"),
                            (3.14, "3.1 times faster"), (1234, "1,234 times faster")):
            self.assertEqual(spread.faster_or_slower(ratio), text)


class Tables(unittest.TestCase):
    def printed(self, *rows):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            report._print_rows([["pattern", "memory", "MPICH", "Oriel on MPICH", "Oriel is"], *map(list, rows)], range(2, 4))
        return out.getvalue().splitlines()

    def test_narrow_tables_have_a_line_for_each_row(self):
        self.assertEqual(self.printed(("put, 8 B", "create", "3/4/5 ns", "1/2/3 ns", "3.0 times faster")), [
            "| pattern  | memory |    MPICH | Oriel on MPICH |         Oriel is |",
            "|----------|--------|---------:|---------------:|-----------------:|",
            "| put, 8 B | create | 3/4/5 ns |       1/2/3 ns | 3.0 times faster |"])

    def test_wide_tables_have_the_times_below(self):
        title = "lock, put, unlock at a busy target, first access, 64 KiB"
        lines = self.printed((title, "allocate", "863ns/487us/778us !", "33.5/35.2/54.6 ns !", "about even"))
        self.assertEqual([line.split()[1] for line in lines if not line.startswith("|-")], ["pattern", "MPICH", "lock,", "863ns/487us/778us"])
        self.assertEqual(lines[3], f"| {title} | allocate | about even |")
        self.assertLessEqual(max(map(len, lines)), 100)


class Loads(unittest.TestCase):
    def looked(self, *used, steal=0, files=None, limits=()):
        """A Load that looked once, while other programs used processors for these ticks of each 100."""
        stats = [f"cpu 0 0 {ticks} {at * 100 - ticks - stolen} 0 0 0 {stolen} 0 0\n" for at, (ticks, stolen)
                 in enumerate(((0, 0), (0, 0), (sum(used), steal), (sum(used), steal)), 1)]
        texts = {"/proc/loadavg": "1.50 1.20 1.10 3/150 77\n", **(files or {})}
        with mock.patch.object(load, "_read", lambda path: stats.pop(0) if path == "/proc/stat" else texts.get(path, "")), \
                mock.patch.object(load, "_numbers", lambda pattern: next((numbers for word, numbers in limits if word in pattern), [])), \
                mock.patch.object(load, "LOOK_S", 0), mock.patch.object(load.os, "cpu_count", lambda: 4):
            looked = load.Load()
            looked.look()
            stats += stats[-1:] * 4
            return looked.record(), list(looked.warnings())

    def test_an_idle_node_has_no_warning(self):
        record, warnings = self.looked(1)
        self.assertEqual((warnings, record["other_processors"], record["load_average"]), ([], 0.04, [1.5, 1.2, 1.1]))

    def test_other_programs_are_reported(self):
        record, warnings = self.looked(50)
        self.assertEqual(record["other_processors"], 2)
        self.assertIn("the node is loaded: other programs use 2.0 of 4 processors (load average 1.5 1.2 1.1)", warnings[0])

    def test_stolen_time_and_a_limited_frequency_are_reported(self):
        warnings = self.looked(0, steal=40, limits=(("scaling_max", [1200000]), ("cpuinfo_max", [3000000])))[1]
        self.assertRegex(warnings[0], r"the hypervisor gave \d+ % of the processors' time to other machines")
        self.assertEqual(warnings[1], "the processors' frequency is limited to 1.2 of 3.0 GHz")

    def test_a_system_without_these_files_is_unknown(self):
        with mock.patch.object(load, "_read", lambda path: ""), mock.patch.object(load, "_numbers", lambda pattern: []):
            looked = load.Load()
            self.assertIsNone(looked.look())
            self.assertEqual(list(looked.warnings()), [])


class Verdicts(unittest.TestCase):
    def verdict(self, before, after, *more):
        others = [result([10, 11, 12], "raw", f"raw-{i}") for i in range(3)]
        after_raw = [result([sample * (more[0] if more else 1) for sample in other["samples"]], "raw", other["pattern"])
                     for other in others]
        changes = comparison.Comparison(run(result(before), *others), run(result(after), *after_raw))
        return changes.changes[0].verdict, changes.changes[0].text(), changes

    def test_overlapping_ranges_are_noise(self):
        self.assertEqual(self.verdict([10, 11, 14], [13, 15, 16])[:2], ("noise", "within the noise (+36 %)"))

    def test_close_medians_are_noise(self):
        self.assertEqual(self.verdict([10, 10.1, 10.2], [10.3, 10.4, 10.5])[0], "noise")

    def test_separate_ranges_are_a_change(self):
        self.assertEqual(self.verdict([10, 10.1, 10.2], [500, 505, 510])[:2], ("slower", "50 times slower"))
        self.assertEqual(self.verdict([10, 10.1, 10.2], [5, 5.05, 5.1])[:2], ("faster", "2.0 times faster"))

    def test_one_run_has_an_unknown_spread(self):
        self.assertEqual(self.verdict([10], [14])[0], "noise")
        self.assertEqual(self.verdict([10], [16])[0], "slower")

    def test_a_slower_machine_is_noise(self):
        verdict, _, changes = self.verdict([10, 10.1, 10.2], [11, 11.1, 11.2], 1.2)
        self.assertEqual((verdict, changes.slower()), ("noise", []))
        self.assertIn("raw operations, without MPI, are 20 % slower now: ", "".join(changes.notes()))

    def test_a_faster_machine_is_noise(self):
        for before, after in (([10, 10.1, 10.2], [6, 6.1, 6.2]), ([17], [10])):
            verdict, _, changes = self.verdict(before, after, 1 / 1.72)
            self.assertEqual(verdict, "noise")
            self.assertAlmostEqual(changes.noise, 0.72)
            self.assertIn("raw operations, without MPI, are 72 % faster now: ", "".join(changes.notes()))

    def test_failures_have_verdicts(self):
        for before, after, verdict in (("ok", "wrong", "fails now"), ("crash", "ok", "worked now")):
            changes = comparison.Comparison(run(result([10, 11], status=before)), run(result([10, 11], status=after)))
            self.assertEqual([change.verdict for change in changes.changes], [verdict])
            self.assertEqual(len(changes.slower()), verdict == "fails now")


class Compared(BenchCase):
    def files(self, before, after):
        paths = [self.path("before.json"), self.path("after.json")]
        for path, content in zip(paths, (before, after)):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
        return paths

    def test_two_files_are_compared_without_a_run(self):
        before = run(result([10, 10.1, 10.2]), result([100, 101, 102], pattern="get"), result([50, 51, 52], "mpich"))
        after = copy.deepcopy(before)
        after["results"][0]["samples"] = [30, 30.3, 31]
        after["machine"]["processor"] = "two"
        found = bench(ORIEL, "--compare", *self.files(before, after))
        self.assertEqual((found.returncode, found.stderr), (SLOWER, ""))
        self.assertIn("\nCompared with 2026-01-02, in 3 results: 1 slower, 2 within the noise of 5 %\n", found.stdout)
        self.assertIn("\nnote: processor: one before, two after\n", found.stdout)
        self.assertRegex(found.stdout, r"\n\| put, 8 B, flush +\| allocate \| oriel-mpich \| +3.0 times slower \|\n\| +10/10.1/10.2 ns \| +30/30.3/31 ns \|\n")
        self.assertEqual(bench(ORIEL, "--compare", *self.files(after, before)).returncode, 0)

    def test_a_slower_host_is_no_fault_of_oriel(self):
        before, after = run(result([10, 10.1, 10.2], "mpich")), run(result([30, 31, 32], "mpich"))
        self.assertEqual(bench(ORIEL, "--compare", *self.files(before, after)).returncode, 0)

    def test_a_run_has_the_options_of_the_earlier_one(self):
        oriel = self.stand_in()
        self.measured("--patterns", "put", "--sizes", "8,64", "--hosts", HOSTS[0], oriel=oriel)
        before = self.record
        with open(self.path("before.json"), "w", encoding="utf-8") as file:
            json.dump(before, file)
        found = bench(oriel, "--compare", self.path("before.json"), "--json", self.path("out.json"))
        self.assertEqual(found.returncode, 0, found.stderr)
        self.read_results()
        keys = [[(entry["pattern"], entry["column"], entry["bytes"]) for entry in each["results"]] for each in (before, self.record)]
        self.assertEqual(*keys)
        self.assertEqual(self.record["command"], f"oriel bench --compare {self.path('before.json')} --json {self.path('out.json')}")
        verdicts = {entry["verdict"] for entry in self.record["comparison"]["results"] if entry["column"] != "raw"}
        self.assertEqual(verdicts, {"noise"})
        self.assertEqual({entry["median"] for entry in self.record["results"] if entry["column"] != "raw"}, {12.5})
        self.assertRegex(found.stdout, r"Compared with \d{4}-")

    def test_files_that_are_no_results_are_refused(self):
        good = self.files(run(), run())[0]
        for content, words in (("[]", "has no results"), ("{", "it is not JSON"), ('{"schema": 1, "results": []}', "another version"),
                               (json.dumps(run(options={"patterns": ["no such"]})), "the options of its run: ")):
            path = self.write("odd.json", content)
            self.refused(bench(ORIEL, "--compare", path))
            self.assertIn(words, bench(ORIEL, "--compare", path).stderr)
        self.refused(bench(ORIEL, "--compare", self.path("none.json")))
        self.refused(bench(ORIEL, "--compare", good, good, good))

    def test_odd_results_steer_no_terminal(self):
        odd = run(7, {"samples": "x"}, dict(result([1, 2]), bytes="8"), result([float("inf")]), result([1, 2], pattern="\x1b[2J"),
                  machine={"processor": "\x1b]0;w\x07", "hosts": 7, "date": 5}, options=[], warnings=["\x07"])
        plain = dict(odd, machine={"processor": "other"})
        found = bench(ORIEL, "--compare", *self.files(odd, plain))
        self.assertEqual((found.returncode, found.stderr), (0, ""))
        self.assertNotRegex(found.stdout, "[\x00-\x09\x0b-\x1f\x7f]")


if __name__ == "__main__":
    unittest.main()
