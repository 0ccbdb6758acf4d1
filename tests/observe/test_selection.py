"""What is observed of a program: MPI_Pcontrol, regions, --trace-filter and --trace-sample, on real
jobs.  The program is selected.c, whose actions are known.

TESTS_HOST selects the host, as tests/launch has it."""

import json
import os
import re
import subprocess
import sys
import unittest

import trace_files

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from command import BUILD, Case, LAUNCH, ORIEL, environment  # noqa: E402

HOST = os.environ["TESTS_HOST"]
LIBRARY = HOST.partition("-")[0]  # abi of abi-mpich
PROGRAM = os.path.join(BUILD, "tests", "observe", LIBRARY, "selected")
FORTRAN = os.path.join(os.path.dirname(PROGRAM), "regions_fortran")
RANKS = 2
SOME = 10
LONG_NS = 200_000_000
MANY = 100_000
PUT_NS = 3000
COUNTING_THREADS = 16
KINDS = trace_files.OPERATIONS + trace_files.CALLS


def run(*command, cwd=None):
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                          cwd=cwd, check=False)


class Selections(Case):
    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")
        self.file = self.path("s.json")

    def launch(self, action, **variables):
        env = [f"--env={name}={value}" for name, value in variables.items()]
        job = run(LAUNCH, "--build", BUILD, "--host", HOST, "-n", str(RANKS), "--timeout", "100", *env, "--", PROGRAM, action)
        if job.returncode == 77:
            self.skipTest(job.stdout.strip())
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(len(re.findall(r"^rank \d is done$", job.stdout, re.M)), RANKS, job.stdout)
        return job.stderr

    def counted(self, action, **variables):
        stderr = self.launch(action, ORIEL_STATS=self.file, **variables)
        with open(self.file, encoding="utf-8") as file:
            return json.load(file), stderr

    def traced(self, action, **variables):
        stderr = self.launch(action, ORIEL_TRACE=self.traces, **variables)
        return json.loads(self.report("--json")), stderr

    def report(self, *words):
        result = run(ORIEL, "report", self.traces, *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def window(self, run_of, name):
        return next(window for window in run_of["windows"] if window["name"] == name)

    def counts(self, run_of, name):
        """The counts of a window's calls, of all kinds with any."""
        window = self.window(run_of, name)
        every = {**window["operations"], **window["calls"]}
        return {kind: row["count"] for kind, row in every.items() if row["count"]}

    # --- MPI_Pcontrol ---

    def ranks_ns(self, run_of, ranks):
        """Without pauses, and at least the time of the calls."""
        return max(ranks * run_of["ran_ns"] - run_of["paused_ns"], run_of["verdict"]["calls_ns"])

    def paused(self, run_of, ranks, times=1):
        self.assertEqual(run_of["paused_ranks"], ranks)
        self.assertGreaterEqual(run_of["paused_ns"], ranks * LONG_NS)
        verdict = run_of["verdict"]
        self.assertAlmostEqual(verdict["ranks_ns"], self.ranks_ns(run_of, times), delta=2)
        self.assertRegex(verdict["notes"][0], rf"^{ranks} of {RANKS} ranks (was|were) paused by MPI_Pcontrol for \d+ % of the run")

    def test_calls_in_a_pause_are_neither_counted_nor_traced(self):
        expected = {"halo": {"put": 2 * SOME, "lock": 1, "unlock": 1, "create": 1, "free": 1}, "other": {}}
        for observed in (self.counted, self.traced):
            found, stderr = observed("pause")
            self.assertEqual([line for line in stderr.splitlines() if line.startswith("oriel")], [])
            self.paused(found, RANKS, RANKS)
            for name, counts in expected.items():
                self.assertEqual(self.counts(found, name), {kind: RANKS * count for kind, count in counts.items()})
                self.assertTrue(self.window(found, name)["freed"], name)
            self.assertEqual(sum(path["count"] for path in self.window(found, "halo")["paths"].values()), 2 * SOME * RANKS)
        for file in trace_files.read_folder(self.traces):
            self.assertEqual([mark.kind for mark in file.marks], ["pause", "pause"])
            for mark in file.marks:
                within = [event for event in file.events if mark.begin_ns < event.begin_ns < mark.begin_ns + mark.duration_ns]
                self.assertEqual(within, [])

    def test_report_names_the_pause(self):
        self.traced("pause")
        self.assertRegex(self.report(), r"in window calls, .* waiting.*\n        2 of 2 ranks were paused by MPI_Pcontrol for ")
        stderr = self.launch("pause", ORIEL_STATS="1")
        self.assertRegex(stderr, r"in window calls, .* waiting.*\n        2 of 2 ranks were paused by MPI_Pcontrol for ")
        self.report("--perfetto", self.path("events.json"))
        with open(self.path("events.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        pauses = [event for event in events if event.get("cat") == "pause"]
        self.assertEqual(sorted(event["pid"] for event in pauses), [1, 1, 2, 2])
        tracks = {(event["pid"], event["tid"]) for event in pauses}
        self.assertEqual(len(tracks), RANKS)  # of their own
        self.assertEqual({event["cat"] for event in events if event["ph"] == "X" and (event["pid"], event["tid"]) in tracks}, {"pause"})
        named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["args"].get("name") == "pauses"}
        self.assertEqual(named, tracks)

    def test_others_still_know_for_whom_they_wait(self):
        found, _ = self.counted("pause_one")
        self.paused(found, 1, RANKS)
        [cause] = self.window(found, "halo")["causes"]["late_fence"]["ranks"][:1]
        self.assertEqual(cause["rank"], 0)
        self.assertGreater(cause["caused_ns"], LONG_NS / 2)
        self.assertEqual(self.counts(found, "halo")["fence"], 2 * RANKS - 1)

    def test_pause_to_the_end(self):
        for observed in (self.counted, self.traced):
            found, _ = observed("pause_to_end")
            self.paused(found, RANKS, RANKS)
            self.assertEqual(self.counts(found, "halo"),
                             {kind: RANKS * count for kind, count in (("put", SOME), ("lock_all", 1), ("unlock_all", 1), ("create", 1))})
            self.assertTrue(self.window(found, "halo")["freed"])

    def test_sums_agree_while_threads_pause(self):
        stderr = self.launch("pause_threads", ORIEL_TRACE=self.traces, ORIEL_STATS=self.file, ORIEL_TRACE_LIMIT="200M")
        self.assertNotIn("oriel", stderr)
        with open(self.file, encoding="utf-8") as file:
            counted = json.load(file)
        traced = json.loads(self.report("--json"))
        self.assertEqual(self.counts(counted, "halo")["put"], self.counts(traced, "halo")["put"] + traced["dropped_events"])
        for found in (counted, traced):
            window = self.window(found, "halo")
            self.assertEqual(sum(path["count"] for path in window["paths"].values()), window["operations"]["put"]["count"])
            self.assertEqual(sum(site["count"] for site in found["sites"] if site["call"] == "put"), window["operations"]["put"]["count"])

    def test_level_2_flushes_the_trace(self):
        self.launch("flush", ORIEL_TRACE=self.traces, TEST_COPY=self.traces)
        for rank in range(RANKS):
            copy = trace_files.File(os.path.join(self.traces, f"copy-{rank}"))
            self.assertEqual((copy.count("put"), copy.count("lock_all"), copy.count("unlock_all"), copy.end), (SOME, 1, 0, None))

    def test_nothing_is_observed(self):
        for action in ("pause", "regions", "mistakes"):
            self.assertNotIn("oriel", self.launch(action))

    def test_the_host_is_called(self):
        if LIBRARY != "mpich":
            self.skipTest("only MPICH's function shows that it was called")
        job = run(LAUNCH, "--build", BUILD, "--host", HOST, "-n", "1", "--timeout", "100", "--", PROGRAM, "early")
        self.assertNotEqual(job.returncode, 0)
        self.assertRegex(job.stdout + job.stderr, "Pcontrol")

    # --- regions ---

    def test_regions_have_the_sums_of_their_threads(self):
        for observed in (self.counted, self.traced):
            found, stderr = observed("regions")
            self.assertNotIn("oriel: rank", stderr)
            rows = {row["name"]: row for row in found["regions"]}
            self.assertEqual({name: (row["count"], row["operations"], row["bytes"]) for name, row in rows.items()},
                             {"step": (2, 80, 640), "exchange": (6, 60, 480), "thread": (2, 20, 160)})
            self.assertEqual([row["time_ns"] for row in found["regions"]], sorted((row["time_ns"] for row in rows.values()), reverse=True))
            self.assertGreater(rows["exchange"]["time_ns"], 6 * 10_000_000)
            self.assertGreaterEqual(rows["step"]["time_ns"], rows["exchange"]["time_ns"])
            for row in rows.values():
                self.assertLessEqual(row["waiting_ns"], row["calls_ns"])
                self.assertGreater(row["calls_ns"], 0)
                self.assertLessEqual(row["calls_ns"], row["time_ns"])
        self.assertRegex(self.report(), r"\nregions\n +time +in calls +waiting +count +operations +moved\n.* 2 +80 +640 B  step\n")
        for file in trace_files.read_folder(self.traces):
            names = [file.regions[mark.region] for mark in file.marks]
            self.assertEqual(sorted(names), ["exchange"] * 3 + ["step", "thread"])
            step = file.marks[names.index("step")]
            for mark in file.marks:
                self.assertGreaterEqual(mark.begin_ns, step.begin_ns)
                within = [event for event in file.events if event.thread == mark.thread and event.kind == "put" and
                          mark.begin_ns <= event.begin_ns < mark.begin_ns + mark.duration_ns]
                calls = [event for event in file.events if event.thread == mark.thread and
                         mark.begin_ns <= event.begin_ns < mark.begin_ns + mark.duration_ns]
                self.assertEqual(sum(event.duration_ns for event in calls), mark.calls_ns)  # without the clock's own time
                self.assertEqual(len(within), mark.operations)
                self.assertEqual(sum(event.bytes for event in within), mark.bytes)

    def test_files_have_all_that_was_counted(self):
        for action, text in (("regions", "  exchange\n"), ("pause", "2 of 2 ranks were paused by MPI_Pcontrol")):
            found, _ = self.counted(action)
            again = run(ORIEL, "report", self.file, "--json")
            for key in ("regions", "paused_ns", "paused_ranks"):
                self.assertEqual(json.loads(again.stdout)[key], found[key])
            self.assertIn(text, run(ORIEL, "report", self.file).stdout)

    def test_comparisons_name_what_is_missing(self):
        self.counted("pause")
        found, _ = self.traced("mix", ORIEL_TRACE_FILTER="rank=0", ORIEL_TRACE_SAMPLE="100")
        notes = json.loads(run(ORIEL, "report", self.file, self.traces, "--json").stdout)["notes"]
        for note in ("the first run: 2 of 2 ranks paused (MPI_Pcontrol); the figures are those of the rest",
                     'the second run: only calls that --trace-filter "rank=0" selects were traced',
                     "the second run: one in 100 operations was traced, so their figures are estimates"):
            self.assertIn(note, notes)
        with open(self.path("again.json"), "w", encoding="utf-8") as file:
            json.dump(found, file)
        again = json.loads(run(ORIEL, "report", self.path("again.json"), "--json").stdout)
        for key in ("trace_filter", "trace_sample", "estimated", "events", "dropped_events"):
            self.assertEqual(again[key], found[key])

    def test_regions_are_slices_of_their_thread(self):
        self.traced("regions")
        self.report("--perfetto", self.path("events.json"))
        with open(self.path("events.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        for exchange in (event for event in events if event.get("name") == "exchange"):
            within = [event for event in events if event.get("name") == "put" and event["tid"] == exchange["tid"] and
                      exchange["ts"] <= event["ts"] and event["ts"] + event["dur"] <= exchange["ts"] + exchange["dur"]]
            self.assertEqual(len(within), exchange["args"]["operations"])

    @unittest.skipUnless(os.path.exists(FORTRAN), "no Fortran for this host")
    def test_regions_of_fortran(self):
        launch = LAUNCH, "--build", BUILD, "--host", HOST, "-n", str(RANKS), "--timeout", "100"
        for words in ([f"--env=ORIEL_STATS={self.file}"], ["--plain"]):
            job = run(*launch, *words, "--", FORTRAN)
            self.assertEqual((job.returncode, job.stdout), (0, "done\n" * RANKS))
            self.assertNotIn("oriel", job.stderr)
        with open(self.file, encoding="utf-8") as file:
            rows = {row["name"]: (row["count"], row["operations"]) for row in json.load(file)["regions"]}
        self.assertEqual(rows, {"outer part": (RANKS, 3 * RANKS), "exchange": (3 * RANKS, 3 * RANKS)})

    def test_a_region_that_is_left_open_ends_in_finalize(self):
        found, stderr = self.counted("open")
        self.assertEqual(len(re.findall(r'^oriel: rank \d: the region "alone" is still open in MPI_Finalize: it ends there$', stderr, re.M)),
                         1, stderr)
        self.assertEqual([(row["name"], row["count"]) for row in found["regions"]], [("alone", 2)])

    def test_mistakes_cost_a_line_each(self):
        found, stderr = self.counted("mistakes")
        lines = re.findall(r"^oriel: rank \d: (.*)$", stderr, re.M)
        expected = [
            r'oriel_region_end\("nothing"\): no region is open in this thread',
            r'oriel_region_end\("another"\): the region that is open is "in\?ner": it stays open',
            r'oriel_region_end\("outer"\): the region "in\?ner" in it is still open, and ends there, too',
            r'oriel_region_begin: the name of the region is empty: it counts as "\(unnamed\)"',
            r'oriel_region_begin: the name of a region has more than 63 bytes, and is cut off: "x{63}"',
            r'oriel_region_begin\("region 0"\): more than 64 regions are open in this thread: the inner ones are not counted',
            r'a thread ended in the region "left by a thread", which ends there',
            r'more than 255 names of regions: "region \d+" and later ones are counted together',
            r'the region "left open, too" and 1 more are still open in MPI_Finalize: they end there',
        ]
        for pattern in expected:
            self.assertEqual(len([line for line in lines if re.fullmatch(pattern, line)]), 1, (pattern, lines))
        self.assertEqual(len(lines), len(expected), lines)
        rows = {row["name"]: row["count"] for row in found["regions"]}
        self.assertEqual(len(rows), 256)
        known = {name: 2 for name in ("outer", "in?ner", "(unnamed)", "x" * 63, "left by a thread", "left open", "left open, too", "last",
                                      "region 1")}
        known["left by a thread"] = 4
        self.assertEqual({name: rows[name] for name in known}, known)
        self.assertEqual(rows["region 0"], 2 * 65)
        self.assertEqual(sum(rows.values()), 2 * (9 + 300 + 64))  # None: those of other names

    def test_regions_and_pauses(self):
        counted, _ = self.counted("pause_regions", ORIEL_TRACE=self.traces)
        regions = []
        for found in (counted, json.loads(self.report("--json"))):
            rows = {row["name"]: row for row in found["regions"]}
            self.assertEqual({name: (row["count"], row["operations"]) for name, row in rows.items()},
                             {"around": (2, 4 * SOME), "before": (2, 2 * SOME)})
            self.assertLessEqual(rows["around"]["time_ns"], found["verdict"]["ranks_ns"])  # without the pause
            regions.append(rows)
        self.assertEqual(*regions)

    # --- the options of traces ---

    def test_filters_combine(self):
        cases = {
            "rank=1": {("halo", kind): count for kind, count in
                       {"put": MANY, "lock_all": 1, "unlock_all": 1, "flush": 100, "create": 1, "free": 1}.items()},
            "window=halo;call=put,MPI_Win_lock*": {("halo", "put"): 2 * MANY, ("halo", "lock_all"): 2},
            "window=t*;rank=0;call=*et;call=free": {("table", "get"): MANY // 2, ("table", "free"): 1},
            "window=2;call=lock_all;rank=0-7": {("table", "lock_all"): 2},
            "rank=5": {},
        }
        for spec, expected in cases.items():
            with self.subTest(spec=spec):
                found, stderr = self.traced("mix", ORIEL_TRACE_FILTER=spec)
                left_out = {"rank=1": [0], "window=t*;rank=0;call=*et;call=free": [1], "rank=5": [0, 1]}.get(spec, [])
                traced = RANKS - len(left_out)
                on = f", on {traced} of {RANKS} ranks" if left_out else ""
                self.assertEqual((found["trace_filter"], found["verdict"]["notes"][0], stderr),
                                 (spec, f'Only calls that --trace-filter "{spec}" selects were traced{on}', ""))
                self.assertEqual((found["missing_ranks"], found["verdict"]["ranks_ns"]), (left_out, self.ranks_ns(found, traced)))
                filtered = f" (filter {spec})" if left_out else ""
                self.assertIn(f"  {RANKS} ranks, traces of {traced} of them{filtered}; ", self.report())
                counts = {(name, kind): count for name in ("halo", "table") for kind, count in self.counts(found, name).items()}
                counts = {key: count for key, count in counts.items() if key[0] == "halo" or not spec.startswith("rank=1")}
                dropped = found["dropped_events"]
                self.assertLessEqual(set(counts), set(expected))
                for key, count in expected.items():
                    self.assertTrue(count - dropped <= counts.get(key, 0) <= count, (key, counts.get(key), dropped))
                self.assertEqual([window["freed"] for window in found["windows"]], [True, True])

    def test_wrong_filters_are_refused(self):
        for spec, problem in (("halo", '"halo" is no KEY=VALUE,...'),
                              ("call=putt", '"putt" matches no call; oriel run --counters lists them'),
                              ("rank=3-1", '"3-1" is no rank, such as 3, and no range, such as 0-7')):
            result = run(ORIEL, "run", "--host", LIBRARY, "--trace", self.traces, "--trace-filter", spec, "/bin/true")
            self.assertEqual((result.returncode, result.stderr), (2, f"oriel: --trace-filter {spec}: {problem}\n"))
        result = run(ORIEL, "run", "--host", LIBRARY, "--trace", self.traces, "--trace-filter", "", "/bin/true")
        self.assertEqual((result.returncode, result.stderr), (2, "oriel: --trace-filter: it is empty; --help has the syntax\n"))
        stderr = self.launch("regions", ORIEL_TRACE=self.traces, ORIEL_TRACE_FILTER="rank=x")
        self.assertEqual(stderr, 'oriel: ORIEL_TRACE_FILTER: "rank=x" is no rank, such as 3, and no range, such as 0-7: all calls '
                                 "are traced\n".replace("rank=x", "x"))

    def test_options_are_the_variables(self):
        result = run(ORIEL, "run", "--host", LIBRARY, "--trace", self.traces, "--trace-filter", "rank=0", "--trace-filter",
                     "call=put", "--trace-sample", "7", "--", "/usr/bin/env")
        self.assertIn("ORIEL_TRACE_FILTER=rank=0;call=put\n", result.stdout)
        self.assertIn("ORIEL_TRACE_SAMPLE=7\n", result.stdout)
        for option, value in (("--trace-filter", "rank=0"), ("--trace-sample", "7")):
            result = run(ORIEL, "run", "--host", LIBRARY, option, value, "/bin/true")
            self.assertEqual((result.returncode, result.stderr), (2, f"oriel: {option} needs --trace FOLDER\n"))
        for value in ("0", "-1", "x", "1000000001", ""):
            result = run(ORIEL, "run", "--host", LIBRARY, "--trace", self.traces, f"--trace-sample={value}", "/bin/true")
            self.assertEqual((result.returncode, result.stderr),
                             (2, f"oriel: --trace-sample {value}: it is no number from 1 to 1000000000\n"))

    def test_samples_estimate_totals(self):
        for sample in (10, 1000):
            found, _ = self.traced("mix", ORIEL_TRACE_SAMPLE=str(sample))
            self.assertEqual((found["trace_sample"], found["estimated"], found["dropped_events"]), (sample, True, 0))
            self.assertIn("(--trace-sample): counts, bytes and times of operations are estimates", found["verdict"]["notes"][0])
            self.assertLess(found["events"], 310_000 / sample + 250)
            halo, table = (self.window(found, name) for name in ("halo", "table"))
            for row, count, size in ((halo["operations"]["put"], 2 * MANY, 12), (table["operations"]["get"], MANY, 64)):
                self.assertLessEqual(abs(row["count"] - count), RANKS * sample)
                # sizes alternate, and so would the targets of every second operation
                self.assertLess(abs(row["bytes"] / count - size), size / 8)
            self.assertEqual(sum(path["count"] for path in halo["paths"].values()), halo["operations"]["put"]["count"])
            # synchronisation is complete
            calls = {**self.counts(found, "halo")}
            self.assertEqual((calls["flush"], calls["lock_all"], calls["unlock_all"], calls["free"]), (200, 2, 2, 2))
            pairs = {(pair["origin"], pair["target"]): pair["count"] for pair in halo["busiest_pairs"]}
            self.assertEqual(set(pairs), {(0, 0), (0, 1), (1, 0), (1, 1)})
            for count in pairs.values():
                self.assertLess(abs(count - MANY / 2), MANY / 5)
        self.assertIn("  operation (est.)  ", self.report())

    def test_interruptions_are_not_multiplied(self):
        found, _ = self.traced("interrupted", ORIEL_TRACE_SAMPLE="4")
        events = [event for file in trace_files.read_folder(self.traces) for event in file.events if event.kind == "put"]
        working = [(event.duration_ns - event.waiting_ns, 10_000 + event.bytes) for event in events]
        self.assertGreater(sum(working_ns > limit_ns for working_ns, limit_ns in working), 0)
        expected = {"count": 4 * len(events), "bytes": 4 * sum(event.bytes for event in events),
                    "time_ns": 4 * (sum(map(min, working)) + sum(event.waiting_ns for event in events))}
        put = self.window(found, "halo")["operations"]["put"]
        self.assertEqual({key: put[key] for key in expected}, expected)
        self.assertEqual(sum(site["time_ns"] for site in found["sites"] if site["call"] == "put"), expected["time_ns"])

    def test_statistics_and_samples_agree_on_times(self):
        """Of the same run, whose program knows how long each put takes. In "mix" every second put takes twice as long as the
        others; in "uneven" each of 997 takes 5 ms, which counts with 10 us."""
        for action, sample, put_ns in (("mix", 10, 1.5 * PUT_NS), ("uneven", 4, PUT_NS + 10_000 / 997), ("alone", 10, PUT_NS),
                                       ("crowd", 4, PUT_NS)):
            counted, _ = self.counted(action, ORIEL_TRACE=self.traces, ORIEL_TRACE_SAMPLE=str(sample), ORIEL_TRACE_LIMIT="400M")
            traced = json.loads(self.report("--json"))
            self.assertEqual(traced["dropped_events"], 0)
            counts = [self.counts(found, "halo")["put"] for found in (counted, traced)]
            self.assertLessEqual(abs(counts[1] - counts[0]), sample * COUNTING_THREADS * RANKS, action)
            for found in (counted, traced):
                working_ns = sum(site["time_ns"] - site["waiting_ns"] for site in found["sites"] if site["call"] == "put")
                # less the time of reading the clock
                self.assertTrue(0.8 < working_ns / (counts[0] * put_ns) < 1.05, (action, working_ns / (counts[0] * put_ns)))

    def test_statistics_do_not_depend_on_the_sample(self):
        counted, _ = self.counted("mix", ORIEL_TRACE=self.traces, ORIEL_TRACE_SAMPLE="100", ORIEL_TRACE_FILTER="rank=0")
        self.assertEqual(self.counts(counted, "halo")["put"], 2 * MANY)
        self.assertEqual(self.window(counted, "table")["operations"]["get"]["bytes"], MANY * 64)
        self.assertNotIn("trace_sample", counted)

    def test_verdict_has_the_losses_and_their_remedy(self):
        found, _ = self.traced("mix", ORIEL_TRACE_LIMIT="100K")
        dropped = found["dropped_events"]
        self.assertGreater(dropped, 100_000)
        [note] = found["verdict"]["notes"]
        self.assertRegex(note, rf"^{dropped:,} events \(9\d %\) were dropped, .*--trace-filter or --trace-sample \d+ trace less")
        sample = re.search(r"--trace-sample (\d+)", note)[1]
        again, _ = self.traced("mix", ORIEL_TRACE_LIMIT="100K", ORIEL_TRACE_SAMPLE=sample)
        self.assertEqual(again["dropped_events"], 0)

    def test_small_files_have_lines_and_nothing_invalid(self):
        found, _ = self.traced("mix", ORIEL_TRACE_LIMIT="64K")  # whose report has no complaints
        self.assertGreater(len(found["sites"]), 5)
        for site in found["sites"]:
            self.assertRegex(site["file"] or "", r"selected\.c$")
        self.traced("mix", ORIEL_TRACE_LIMIT="4K")
        text = self.report()
        self.assertNotIn("No window was created", text)
        self.assertRegex(text, r" in window calls, .* waiting.*\n +[0-9,]+ events \((9\d|100) %\) were dropped")


if __name__ == "__main__":
    unittest.main()
