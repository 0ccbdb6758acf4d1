"""oriel report on trace files of known content: the summary, the events for Perfetto against the
rules of its format, the OTF2 archive as its own tools read it, and invalid files.

tests/page/traces.py makes the files.  TESTS_OTF2 states whether the command was built with that
library."""

import collections
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "page")]
import traces  # noqa: E402
from command import Case, ORIEL, start  # noqa: E402

HAS_OTF2 = os.environ["TESTS_OTF2"] == "1"
RANKS = traces.KNOWN_RANKS
# All ranks put and fence; three of them are also in the second window.
CALLS = {"create": 4, "fence": 44, "put": 40, "free": 7, "lock": 3, "get": 9, "unlock": 3}


class Known(Case):
    def setUp(self):
        super().setUp()
        self.traces = self.path("known")
        os.mkdir(self.traces)
        traces.known(self.traces)

    def report(self, *words):
        return start(ORIEL, "report", *words)


class Summary(Known):
    def test_known_figures_are_printed(self):
        result = self.report(self.traces)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for row in (r"  4 ranks, traces of 4 of them; MPICH, Oriel 0.1.0\n",
                    r"  2 clocks, aligned to within 200 ns\n",
                    r"  110 events, none dropped\n",
                    r"\n\n27 % of 11\.9 ms in window calls, 25 % waiting\n  25 %  Rank 3 is late: the others wait 12\.0 ms for it, most in "
                    r'MPI_Win_fence of "halo", in exchange at halo\.c:61\.\n +Load imbalance: give rank 3 less work\.\n\n',
                    r'\nWindow 1 "halo": allocate, 4 ranks, 64.0 KiB each, created in main at halo.c:42\n',
                    r"\n  put +40 +97.7 KiB +2.44 KiB +2.00 us\n",
                    r"\n  fence +44 +12.2 ms +12.0 ms +98 % +400 us\n",
                    r"\n  late fence +30 +12.0 ms +400 us +400 us\n",
                    r"\n    4.00 ms: rank [012] for rank 3 \(late fence\)\n",
                    r"\n  busiest pairs, of 4:\n    3 -> 0: 39.1 KiB in 10 operations\n    2 -> 3: 29.3 KiB in 10 operations\n",
                    r'\nWindow 2 "table": create, 3 ranks, 4.00 KiB to 12.0 KiB each, created in build at table.c:7\n',
                    r"\n  promoted +6 +48 B +1.50 us\n  cma +3 +24 B +1.50 us\n",
                    r"\n    cma to the memory of 1 rank: memory of a stack\n",
                    r"\n  busy lock +2 +100 us +50.0 us +50.0 us\n",
                    r"\n    50.0 us: rank [23] for rank [12] \(busy lock\)\n"):
            self.assertRegex(result.stdout, row)

    def test_the_run_is_from_init_to_finalize(self):
        for rank in range(RANKS):
            file = traces.Rank(self.traces, rank, RANKS)
            file.window(0, range(RANKS), rank, "halo")
            file.event(traces.call("fence"), 40_000_000, 20_000_000)
            file.close(200_000_000, ended=rank == 1)
        text = self.report(self.traces).stdout
        self.assertIn("; 200 ms from MPI_Init to MPI_Finalize\n", text)
        self.assertIn("\n10 % of 200 ms in window calls", text)
        for rank in range(RANKS):
            file = traces.Rank(self.traces, rank, RANKS)
            file.window(0, range(RANKS), rank, "halo")
            file.event(traces.call("fence"), 40_000_000, 20_000_000)
            file.close(200_000_000, ended=False)
        self.assertIn("; 60.0 ms from MPI_Init to the last event\n", self.report(self.traces).stdout)

    def test_windows_may_be_among_the_losses(self):
        for rank in range(RANKS):
            traces.Rank(self.traces, rank, RANKS).close(12_000_000, dropped=50)
        text = self.report(self.traces).stdout
        self.assertNotIn("No window was created", text)
        self.assertRegex(text, r"\n\n0 ns in window calls, 0 ns waiting\n +200 events \(100 %\) were dropped")
        for rank in range(RANKS):
            traces.Rank(self.traces, rank, RANKS).close(12_000_000)
        self.assertIn("\nNo window was created.\n", self.report(self.traces).stdout)

    def test_ranks_without_figures_are_not_counted(self):
        traces.Rank(self.traces, 0, RANKS).close(12_000_000)  # made no calls
        traces.Rank(self.traces, 1, RANKS).close(12_000_000, ended=False)
        traces.Rank(self.traces, 2, RANKS).close(12_000_000, dropped=1)
        text = self.report(self.traces).stdout
        self.assertIn("  4 ranks, traces of 2 of them; MPICH", text)
        self.assertIn('\nWindow 1 "halo": allocate, 4 ranks, 64.0 KiB each, unknown on 3, created in', text)
        verdict = json.loads(self.report(self.traces, "--json").stdout)["verdict"]
        self.assertEqual(verdict["ranks_ns"], 2 * 12_000_000)

    def test_losses_and_ends_are_printed(self):
        file = traces.Rank(self.traces, 2, RANKS)
        file.window(0, range(RANKS), 2, "halo")
        file.event(traces.call("fence"), 0, 10)
        file.close(100, ended=False, dropped=0)
        file = traces.Rank(self.traces, 1, RANKS)
        file.close(100, dropped=1113)
        result = self.report(self.traces)
        self.assertRegex(result.stdout, r"events, and 1,113 dropped \(\d+ % of all\), by rank 1: the writer was too slow")
        self.assertRegex(result.stdout, r" % waiting; nothing stands out\n        1,113 events \(\d+ %\) were dropped, because the disk was "
                         r"too slow or ORIEL_TRACE_LIMIT was reached, and are in no figure: --trace-filter or --trace-sample 50 trace less\.\n")
        self.assertIn("  ranks that did not reach MPI_Finalize: 2\n", result.stdout)


    def test_call_sites_have_the_sums_of_all_ranks(self):
        text = self.report(self.traces).stdout
        self.assertRegex(text, r"\ncall sites\n +share +time +waiting +calls +moved\n +95 % +12\.2 ms +12\.0 ms +40 +fence in "
                               r'exchange at halo\.c:61, "halo"\n')
        self.assertRegex(text, r'\n +1 % +80\.0 us +0 ns +40 +97\.7 KiB  put in exchange at halo\.c:60, "halo"\n')

    def test_tables_fit_a_terminal(self):
        folder = self.path("wide")
        os.mkdir(folder)
        for rank in range(RANKS):
            file = traces.Rank(folder, rank, RANKS)
            file.window(0, range(RANKS), rank, "halo", site="a_function_with_a_long_name at some_long_file_name.c:12345",
                        path="cma", reason="the memory is on the stack, of which there are several kinds, and none is shared")
            file.region(1, "a region with a rather long name, of many words")
            file.mark("region", 0, 123_400_000_000, region=1, operations=1_200_000, bytes_=1 << 40, calls_ns=1_000_000_000)
            for line in (100, 200):
                file.event(traces.operation("put"), line, 123_400_000, bytes_=1023 << 10, target=(rank + 1) % RANKS, path="cma",
                           site=f"a_function_with_a_long_name at some_long_file_name.c:{line}")
            file.event(traces.call("fence"), 1000, 123_400_000_000, waiting_ns=123_300_000_000, cause="late_fence",
                       cause_rank=(rank + 1) % RANKS, site="a_function_with_a_long_name at some_long_file_name.c:300")
            file.close(200_000_000_000)
        saved = self.write("saved.json", self.report(folder, "--json").stdout)
        for run in folder, saved:
            text = start(ORIEL, "report", run, COLUMNS="80").stdout
            lines = text[text.index("window calls"):].splitlines()
            self.assertLessEqual(max(map(len, lines)), 80, text)
            self.assertRegex(text, r"\n +100 % +494 s +493 s +4\n {8}fence in a_function_with_a_long_name at some_long_file_name\.c:300\n")
            self.assertRegex(text, r"\n +494 s +4\.00 s +[^\n]+ TiB\n {8}a region with a rather long name, of many words\n")
            self.assertRegex(self.report(run).stdout, r"\n +100 % +494 s +493 s +4 +fence in a_function_with_a_long_name at ")

    def test_many_regions_are_bounded_in_the_text_only(self):
        for regions, more in ((20, ""), (21, "  and 1 more\n"), (255, "  and 235 more\n")):
            folder = self.path(f"{regions}")
            os.mkdir(folder)
            file = traces.Rank(folder, 0, 1)
            for region in range(regions):
                file.region(region + 1, f"phase {region}")
                file.mark("region", 10 * region, 5, region=region + 1)
            file.close(100_000)
            text = self.report(folder).stdout
            self.assertEqual((text.count(" phase "), text.partition("  and ")[2]), (20, more.removeprefix("  and ")))
            self.assertEqual(len(json.loads(self.report(folder, "--json").stdout)["regions"]), regions)

    def test_the_costliest_three_problems_are_printed(self):
        for windows, more in ((3, []), (4, ["        1 more, which cost less"]), (5, ["        2 more, which cost less"])):
            folder = self.path(f"{windows} windows")
            os.mkdir(folder)
            for rank in range(2):
                file = traces.Rank(folder, rank, 2)
                for window in range(windows):
                    waiting = 18_000_000 + window if rank == 0 else 0
                    file.window(window, range(2), rank, f"w{window}", site=f"main at app.c:{window + 1}")
                    file.event(traces.call("fence"), 20_000_000 * window, waiting + 10, window=window, waiting_ns=waiting,
                               cause="late_fence" if waiting else None, cause_rank=1 if waiting else -1)
                file.close(100_000_000)
            text = self.report(folder).stdout
            self.assertEqual(text.count("Rank 1 is late:"), 3, text)
            self.assertEqual(re.findall(r"(?m)^.* more, which cost less$", text), more)

    def test_a_filter_that_is_cut_off_selects_all_ranks(self):
        for text, traced in (("rank=1", 1), ("rank=1;call=pu", 2)):
            folder = self.path(text)
            os.mkdir(folder)
            for rank in range(2):
                file = traces.Rank(folder, rank, 2)
                file.selection(1, text)
                file.close(1000)
            result = self.report(folder)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(f"  2 ranks, traces of {traced} of them", result.stdout)

    def test_sources_that_lack_what_an_option_needs_are_refused(self):
        saved = self.write("saved.json", self.report(self.traces, "--json").stdout)
        self.refused(self.report(saved, "-o", self.path("page.html")), "the page of one run needs its traces; statistics are enough to compare")
        found = self.write("found.json", '{"format": "oriel-check", "version": 3, "ranks": 1, "findings": []}')
        for option in ("--json", "--csv"):
            self.refused(self.report(found, option), f"--json and --csv need a run; {found} is JSON")
        for option in ("--perfetto", "--otf2"):
            self.refused(self.report(saved, option, self.path("out")), "need the folder of one run's traces")

    def test_one_operation_and_an_unknown_place(self):
        folder = self.path("one")
        os.mkdir(folder)
        file = traces.Rank(folder, 0, 1)
        file.window(0, [0], 0, "")
        file.event(traces.operation("put"), 0, 100, bytes_=8, target=0)
        file.close(1000)
        text = self.report(folder).stdout
        for row in ("\n    0 -> 0: 8 B in 1 operation\n", "\n  1 rank, traces of 1 of them; ", "\n  1 event, none dropped\n"):
            self.assertIn(row, text)
        saved = self.write("saved.json", self.report(folder, "--json").stdout)
        self.assertIn("\nwindow 1 of MPI_Win_allocate, 1 rank, 64.0 KiB each, never freed\n", self.report(saved).stdout)

    def test_line_of_a_site_may_be_from_any_rank(self):
        for rank, site in ((0, "app+0x12"), (1, "main at app.c:3"), (2, "app+0x12")):
            file = traces.Rank(self.traces, rank, RANKS)
            file.window(0, range(RANKS), rank, "halo", site=site)
            file.close(100)
        self.assertIn("created in main at app.c:3\n", self.report(self.traces).stdout)

    def test_full_disk_and_a_single_file_are_refused(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([ORIEL, "report", self.traces], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
        self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: No space left on device\n"))
        file = os.path.join(self.traces, "rank-0.oriel")
        self.refused(self.report(file), "rank-0.oriel is one rank's trace: name its folder instead")


class Bad(Known):
    """The command reports each error in one line with the file's name, and shows the rest."""

    def expect(self, line, ranks_left):
        result = self.report(self.traces)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, line)
        self.assertRegex(result.stderr, r"\A(oriel: [^\n]+\n)+\Z")
        self.assertIn(f"  4 ranks, traces of {ranks_left} of them;", result.stdout)

    def spoil(self, name, change):
        path = os.path.join(self.traces, name)
        with open(path, "rb") as file:
            content = bytearray(file.read())
        with open(path, "wb") as file:
            file.write(change(content))

    def test_truncated(self):
        self.spoil("rank-1.oriel", lambda content: content[:-10])
        self.expect(r"rank-1\.oriel ends within a block at byte \d+; before that, \d+ events could be read\n", 4)

    def test_damaged(self):
        self.spoil("rank-1.oriel", lambda content: content[:1500] + b"\xff" + content[1501:])
        self.expect(r"rank-1\.oriel is damaged at byte \d+", 3)  # before the first event

    def test_foreign(self):
        self.spoil("rank-2.oriel", lambda content: b"\x7fELF" + content[4:])
        self.expect(r"rank-2\.oriel is not an Oriel trace\n.*1 of 4 ranks have no readable trace", 3)

    def test_other_version(self):
        self.spoil("rank-3.oriel", lambda content: content[:8] + struct.pack("<I", 1) + content[12:])
        self.expect(r"rank-3\.oriel has version 1 of the format; this command reads versions 2 to 3\n", 3)

    def test_other_run(self):
        other = self.path("other")
        os.mkdir(other)
        traces.known(other, job=(1, 1))
        shutil.copy(os.path.join(other, "rank-0.oriel"), self.traces)
        self.expect(r"rank-0\.oriel is from another run than most files here, and is ignored\n", 3)

    def test_many_problems_are_ten_lines_and_a_count(self):
        folder = self.path("many")
        os.mkdir(folder)
        for rank in range(40):
            file = traces.Rank(folder, rank, 50, job=(1, 1) if rank >= 30 else (7, 9))
            file.window(0, range(50), rank, "w")
            file.close(1000)
            if rank < 15:
                path = os.path.join(folder, f"rank-{rank}.oriel")
                os.truncate(path, os.path.getsize(path) - 20)
        result = self.report(folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual([line.partition("rank-")[2].partition(".")[0] for line in lines[:10]], list(map(str, range(10))))
        self.assertEqual(lines[10:], [f"oriel: {folder}: 20 of 50 ranks have no readable trace here, the first is rank 30",
                                      f"oriel: {folder}: and 15 more problems"])
        self.assertIn("  50 ranks, traces of 15 of them;", result.stdout)

    def test_not_readable(self):
        os.unlink(os.path.join(self.traces, "rank-0.oriel"))
        os.symlink("/nowhere", os.path.join(self.traces, "rank-0.oriel"))
        self.expect(r"rank-0\.oriel: No such file or directory\n", 3)

    def test_non_files_are_not_opened(self):
        name = os.path.join(self.traces, "rank-0.oriel")
        os.unlink(name)
        os.mkfifo(name)
        waiting = subprocess.Popen(["sh", "-c", 'exec > "$0"', name])  # until a reader opens it
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        self.expect(r"rank-0\.oriel: is not a regular file\n", 3)
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(0.5)

    def test_nothing_that_can_be_read(self):
        self.refused(self.report(self.path("nowhere")), "nowhere")
        os.mkdir(self.path("empty"))
        self.refused(self.report(self.path("empty")), "contains no traces of oriel run")


class Perfetto(Known):
    def test_rules_of_the_format(self):
        out = self.path("events.json")
        result = self.report(self.traces, "--perfetto", out)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        with open(out, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        slices, names = collections.defaultdict(list), collections.defaultdict(set)
        arrows, counters = collections.defaultdict(list), collections.defaultdict(list)
        for event in events:
            self.assertIn(event["ph"], ("X", "M", "s", "f", "C"))
            self.assertTrue(isinstance(event["name"], str) and event["name"])
            self.assertTrue(isinstance(event["pid"], int) and event["pid"] > 0)
            if event["ph"] != "C":
                self.assertTrue(isinstance(event["tid"], int) and event["tid"] > 0)
            if event["ph"] == "M":
                names[event["name"]].add((event["pid"], event["tid"]))
                continue
            self.assertIsInstance(event["ts"], float)
            self.assertGreaterEqual(event["ts"], 0)
            if event["ph"] == "C":
                counters[event["name"], event["pid"]].append((event["ts"], event["args"][event["name"]]))
            elif event["ph"] != "X":
                arrows[event["id"]].append(event)
            else:
                self.assertIsInstance(event["dur"], float)
                self.assertGreaterEqual(event["dur"], 0)
                slices[event["pid"], event["tid"]].append(event)
        self.assertEqual(len({tid for _, tid in slices}), len(slices), "threads have numbers of their own")
        self.assertEqual(names["thread_name"], set(slices))
        self.assertEqual({pid for pid, _ in names["process_name"]}, {pid for pid, _ in slices})
        self.check_arrows(arrows, slices)
        self.check_counters(counters)
        marks = {track for track in slices if slices[track][0]["cat"] == "mark"}
        self.assertEqual({event["cat"] for track in marks for event in slices.pop(track)}, {"mark"})
        for track in slices.values():
            self.check_nesting(track)
        self.check_content([event for track in slices.values() for event in track])
        lines = {(event["name"], event["args"].get("site")) for track in slices.values() for event in track}
        self.assertLessEqual({("put", "exchange at halo.c:60"), ("fence", "exchange at halo.c:61"), ("get", None),
                              ("late fence", "exchange at halo.c:61")}, lines)

    def test_names_that_are_not_utf8_are_shown_with_question_marks(self):
        os.mkdir(self.path("odd"))
        file = traces.Rank(self.path("odd"), 0, 1, program="/opt/app/r\udcffng")
        file.window(0, [0], 0, "h\udce4lo")
        file.event(traces.call("create"), 0, 1000)
        file.close(9000)
        result = self.report(self.path("odd"), "--perfetto", self.path("events.json"))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        with open(self.path("events.json"), encoding="utf-8") as out:
            events = json.load(out)["traceEvents"]
        self.assertEqual([event["args"]["window"] for event in events if event["ph"] == "X"], ["h?lo"])
        self.assertTrue(any(event["args"].get("labels") == "/opt/app/r?ng" for event in events))

    def check_nesting(self, track):
        """Slices of a track are nested or disjoint; a wait is nested in its call."""
        open_until = []
        for event in sorted(track, key=lambda event: (event["ts"], -event["dur"])):
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            self.assertTrue(not open_until or end <= open_until[-1], event)
            self.assertEqual(len(open_until), 1 if event["cat"] == "wait" else 0, event)
            open_until.append(end)

    def check_arrows(self, arrows, slices):
        """An arrow starts and ends once, not backwards, each time in a slice, of two ranks."""
        found = collections.Counter()
        for ends in arrows.values():
            self.assertEqual([event["ph"] for event in sorted(ends, key=lambda event: event["ph"] == "f")], ["s", "f"])
            start, end = sorted(ends, key=lambda event: event["ph"] == "f")
            self.assertLessEqual(start["ts"], end["ts"])
            inside = [{event["name"] for event in slices[of["pid"], of["tid"]]
                       if event["ts"] <= of["ts"] < event["ts"] + max(event["dur"], 0.001) - 0.0005} for of in (start, end)]
            names = inside[0] & inside[1]
            self.assertEqual(len(names), 1, (start, end, inside))
            found[names.pop(), start["pid"] - 1, end["pid"] - 1] += 1
        self.assertEqual(found, {**{("put", rank, (rank + 1) % RANKS): 10 for rank in range(RANKS)},
                                 ("get", 2, 1): 3, ("get", 3, 1): 3,  # those of rank 1 are its own
                                 **{("late fence", 3, rank): 10 for rank in range(3)},
                                 ("busy lock", 1, 2): 1, ("busy lock", 2, 3): 1})

    def check_counters(self, counters):
        """The areas below the lines are the sums of the run, and each line ends at 0."""
        self.assertEqual(set(counters), {(name, rank + 1) for name in ("bytes/s", "operations/s") for rank in range(RANKS)})
        for (name, process), line in counters.items():
            self.assertEqual(line, sorted(line))
            self.assertEqual(line[-1][1], 0)
            area = sum(value * (after - at) / 1e6 for (at, value), (after, _) in zip(line, line[1:], strict=False))
            gets = 3 if process > 1 else 0
            total = 10 * 1000 * process + 8 * gets if name == "bytes/s" else 10 + gets
            self.assertAlmostEqual(area / total, 1, delta=0.01)

    def check_content(self, events):
        counts = collections.Counter(event["name"] for event in events if event["cat"] != "wait")
        self.assertEqual(counts, CALLS)
        waits = [event for event in events if event["cat"] == "wait"]
        self.assertEqual(collections.Counter(event["name"] for event in waits), {"late fence": 30, "busy lock": 2})
        self.assertEqual(round(sum(event["dur"] for event in waits)), 30 * 400 + 2 * 50)
        self.assertEqual({event["args"]["rank"] for event in waits if event["name"] == "late fence"}, {3})
        puts = [event for event in events if event["name"] == "put"]
        self.assertEqual({(event["pid"] - 1, event["args"]["target"], event["args"]["bytes"], event["args"]["path"],
                           event["args"]["window"]) for event in puts},
                         {(rank, (rank + 1) % RANKS, 1000 * (rank + 1), "direct", "halo") for rank in range(RANKS)})
        gets = {(event["pid"] - 1, event["args"]["target"]) for event in events if event["name"] == "get"}
        self.assertEqual(gets, {(1, 1), (2, 1), (3, 1)})

    def test_output_that_cannot_be_written(self):
        self.refused(self.report(self.traces, "--perfetto", "/nowhere/events.json"), "/nowhere/events.json: No such file")
        result = self.report(self.traces, "--perfetto", "/dev/full")
        self.refused(result, "/dev/full: No space left on device")
        self.assertTrue(os.path.exists("/dev/full"))


@unittest.skipUnless(HAS_OTF2, "built without the OTF2 library")
class Otf2(Known):
    def read(self, *words):
        result = subprocess.run(["otf2-print", *words, os.path.join(self.path("archive"), "traces.otf2")], capture_output=True,
                                text=True, timeout=600, check=True)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_its_own_tools_read_it(self):
        result = self.report(self.traces, "--otf2", self.path("archive"))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        definitions = self.read("-G")
        for row in (r'SYSTEM_TREE_NODE +1 +Name: "node1"', r'SYSTEM_TREE_NODE +2 +Name: "node2"',
                    r'LOCATION_GROUP +3 +Name: "rank 3"', r'RMA_WIN +0 +Name: "halo"',
                    r'GROUP +2 +Name: "table" .*3 Members: 1 .* 2 .* 3 '):
            self.assertRegex(definitions, row)
        events = self.read()
        counts = collections.Counter(line.split()[0] for line in events.splitlines() if line[:1].isupper())
        waits = 32
        self.assertEqual(counts["ENTER"], sum(CALLS.values()) + waits)
        self.assertEqual(counts["LEAVE"], counts["ENTER"])
        self.assertEqual((counts["RMA_PUT"], counts["RMA_GET"], counts["RMA_OP_COMPLETE_BLOCKING"]), (40, 9, 49))
        self.assertEqual(counts["RMA_COLLECTIVE_END"], CALLS["create"] + CALLS["fence"] + CALLS["free"])
        self.assertEqual((counts["RMA_WIN_CREATE"], counts["RMA_WIN_DESTROY"]), (4, 7))
        self.assertRegex(events, r'RMA_PUT +771 +\d+ +Window: "halo" <0>, Remote: 0 .*, Bytes: 4000,')

    def test_regions_and_pauses_nest_with_calls(self):
        folder = self.path("marks")
        os.mkdir(folder)
        for rank in range(2):
            file = traces.Rank(folder, rank, 2)
            file.window(0, range(2), rank, "halo")
            file.region(1, "inner")
            file.region(2, "outer")
            if rank == 0:
                file.event(traces.operation("put"), 1_000, 100, bytes_=8, target=1)
                file.mark("region", 900, 300, region=1)
                file.event(traces.call("flush"), 2_000, 100)
                file.mark("region", 2_200, 300, region=1)
                file.mark("pause", 2_100, 5_000)
            if rank == 1:
                file.mark("region", 500, 1_000, region=1)  # begins as the outer one does
            file.mark("region", 500, 9_000, region=2)  # it ends last
            file.close(10_000)
        self.assertEqual(self.report(folder, "--otf2", self.path("archive")).stderr, "")
        found = re.findall(r'^(ENTER|LEAVE) +(\d+) +(\d+) +Region: "([^"]+)"', self.read(), re.M)
        places = {place: [row[:1] + row[2:] for row in found if int(row[1]) == place] for place in (0, 256, 257)}
        self.assertEqual(sum(map(len, places.values())), len(found))
        self.assertEqual([(kind, name) for kind, _, name in places[0]],
                         [("ENTER", "outer"), ("ENTER", "inner"), ("ENTER", "put"), ("LEAVE", "put"), ("LEAVE", "inner"), ("ENTER", "flush"),
                          ("LEAVE", "flush"), ("ENTER", "inner"), ("LEAVE", "inner"), ("LEAVE", "outer")])
        self.assertEqual(places[256], [("ENTER", "2100", "paused"), ("LEAVE", "7100", "paused")])
        self.assertEqual(places[257], [("ENTER", "500", "outer"), ("ENTER", "500", "inner"), ("LEAVE", "1500", "inner"),
                                       ("LEAVE", "9500", "outer")])
        definitions = self.read("-G")
        self.assertRegex(definitions, r'LOCATION +256 +Name: "pauses"')
        self.assertEqual(len(re.findall(r'REGION +\d+ +Name: "(?:inner|outer|paused)"', definitions)), 3)

    def test_existing_folder_is_left_alone(self):
        os.mkdir(self.path("archive"))
        self.refused(self.report(self.traces, "--otf2", self.path("archive")), "it already exists and is not changed")
        self.assertEqual(os.listdir(self.path("archive")), [])

    def test_folder_that_cannot_be(self):
        self.refused(self.report(self.traces, "--otf2", "/proc/nothing/here"), "/proc/nothing/here")


@unittest.skipIf(HAS_OTF2, "built with the OTF2 library")
class NoOtf2(Known):
    def test_missing_otf2_is_reported(self):
        self.refused(self.report(self.traces, "--otf2", self.path("archive")), "built without the OTF2 library")


if __name__ == "__main__":
    unittest.main(verbosity=2)
