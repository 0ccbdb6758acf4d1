"""`oriel report` with findings and with -o, as a command: its output, its refusals, its sums, and
the removal of a page that it cannot write completely."""

import copy
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import unittest

import report_page
import traces
from report_page import FINDINGS, ORIEL, oriel

TEXT = """/opt/app/ring: 2 findings

C1: unordered MPI_Get and MPI_Put of the same bytes
    window "halo" (allocate), target rank 2, bytes 16 to 23, element 2
    rank 1: MPI_Put at halo.c:42 in exchange
    rank 0: MPI_Get at halo.c:57 in sum, before it
    epoch opened by rank 1: MPI_Win_lock_all at halo.c:30 in main
    help: call MPI_Win_flush(2, win) after halo.c:57
    12 times, rank 0, 1
    stack: exchange at halo.c:42
           main at halo.c:99

E1: operation in no epoch
    window without a name (create)
    rank 1: MPI_Put at offset 0x1234 of /opt/app/ring in exchange
    there was none
    help: Open one.
    1 time, rank 3
    does not count: old.supp:3: checked by hand

The program's own loads and stores were not watched (compile with -fsanitize=thread).

Not checked: calls of MPI_Test (3)
"""


class Command(report_page.Reports):
    def refused(self, *arguments, **more):
        """The line that it prints; nothing else, and status 2."""
        result = oriel(*arguments, **more)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Aoriel: [^\n]*\n\Z")
        return result.stderr

    def test_findings_are_printed_as_text(self):
        result = oriel(self.findings())
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, TEXT)

    def test_many_windows_are_bounded_in_the_text(self):
        def many(folder, windows):
            file = traces.Rank(folder, 0, 1)
            for window in range(windows):
                file.window(window, [0], 0, f"w{window}", site="main at a.c:1")
                file.event(traces.call("fence"), 1000 * window, 500, window=window)
            file.close(10_000_000)
        for windows, more in ((50, 0), (1251, 1)):
            folder = self.traces(many, f"many{windows}", windows=windows)
            saved = self.path(f"{windows}.json")
            with open(saved, "w", encoding="utf-8") as file:
                file.write(oriel(folder, "--json").stdout)
            for source, each, words in ((folder, r"\nWindow \d+ ", "and 1,201 more windows; --json has all\n"),
                                        (saved, r"\nwindow \d+ ", "and 1,201 more windows; --stats=FILE.json has all\n")):
                text = oriel(source).stdout
                self.assertEqual((len(re.findall(each, text)), text.count(words)), (50, more), text)

    def test_names_that_are_empty(self):
        for option, short, what in (("--output", "-o", "file"), ("--perfetto", "--perfetto", "file"), ("--otf2", "--otf2", "folder")):
            self.assertEqual(self.refused(self.findings(), short, ""), f"oriel: {option}: the name of the {what} is empty\n")
        self.assertEqual(self.refused(""), "oriel: report: the name of the folder or file is empty\n")

    def test_traces_and_findings_are_printed_in_turn(self):
        result = oriel(self.findings(), self.traces(traces.known))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.endswith("\n\n" + TEXT))
        self.assertIn('"halo"', result.stdout)

    def test_findings_of_others_steer_no_terminal(self):
        odd = copy.deepcopy(FINDINGS)
        odd["program"] = "a\x1b[31m\x9b2J\nb"
        odd["findings"][0].update(rule="C1\x07", window="\x1b]0;w\x07", offset=2**63 - 1, bytes=2**63 - 1)
        odd["findings"][0]["call"]["file"] = "\x7fhalo.c"
        odd["findings"][0]["stack"] = ["\x1b[2J"]
        result = oriel(self.findings(odd))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertNotRegex(result.stdout, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertTrue(result.stdout.startswith("a?[31m??2J?b: 2 findings\n\nC1?: "), result.stdout)
        self.assertIn(f'window "?]0;w?" (allocate), target rank 2, byte {2**63 - 1}, element 2\n', result.stdout)
        with open(self.path("odd.json"), "wb") as file:
            file.write(b"{\x1b[31m")
        self.assertNotRegex(self.refused(self.path("odd.json")), "\x1b")

    def test_nothing_but_a_rule_is_enough(self):
        odd = {"format": "oriel-check", "version": 3, "complete": True, "local_accesses_watched": True,
               "findings": [{"rule": "C1", "title": "odd", "ranks": 7, "call": "text", "stack": {}, "count": "x", "offset": 1.5}]}
        self.assertEqual(oriel(self.findings(odd)).stdout, "a program: 1 finding\n\nC1: odd\n")

    def test_files_that_are_no_findings_are_named(self):
        for name, content, words in (("empty", "", "is empty: the job"), ("list", "[]", "neither findings of oriel check"),
                                     ("foreign", '{"format": "sarif"}', "neither findings of oriel check"),
                                     ("newer", '{"format": "oriel-check", "version": 4}', "another version"),
                                     ("none", '{"format": "oriel-check", "version": 3}', "no list of findings"),
                                     ("odd", '{"format": "oriel-check", "version": 3, "findings": [7]}', "a finding has no rule"),
                                     ("cut", json.dumps(FINDINGS)[:400], "line 1"), ("binary", "\x00\x01", "line 1")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(content)
            for more in ((), ("-o", self.path())):
                line = self.refused(self.path(name), *more)
                self.assertIn(self.path(name), line)
                self.assertIn(words, line)
        self.assertFalse(os.path.exists(self.path()))

    def test_unreadable_files_are_named(self):
        self.assertIn(self.path("nowhere"), self.refused(self.path("nowhere"), "-o", self.path()))
        self.assertIn("need the folder", self.refused(self.findings(), "--perfetto", self.path("out.json")))

    def test_one_file_of_findings_is_the_most(self):
        self.assertIn("one file of findings is the most", self.refused(self.findings(), self.findings(name="second.json")))
        self.assertEqual(oriel("-o", self.path()).returncode, 2)

    def test_a_page_that_cannot_be_written_is_reported_and_removed(self):
        self.assertIn("No such file", self.refused(self.findings(), "-o", self.path("no/such/page.html")))
        self.assertIn("/dev/full: No space left", self.refused(self.findings(), "-o", "/dev/full"))
        self.assertTrue(os.path.exists("/dev/full"))

    def test_the_input_is_not_overwritten(self):
        findings, folder = self.findings(), self.traces(traces.known)
        trace = os.path.join(folder, "rank-0.oriel")
        for words, said in ((("-o", findings), "is an input"), (("-o", trace), "has the name of a trace"),
                            (("--perfetto", trace), "has the name of a trace")):
            before = [open(path, "rb").read() for path in (findings, trace)]
            self.assertIn(said, self.refused(folder, findings, *words))
            self.assertEqual([open(path, "rb").read() for path in (findings, trace)], before)

    def test_half_a_page_is_none(self):
        """A file with a size limit: the partial page is removed."""
        folder = self.traces(traces.known)
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
        result = subprocess.run([ORIEL, "report", folder, "-o", self.path()], capture_output=True, text=True, timeout=600,
                                preexec_fn=limit, check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertEqual(result.stderr, f"oriel: the page could not be written: {self.path()}: File too large\n")
        self.assertFalse(os.path.exists(self.path()))

    def test_a_build_without_pages_reports_it(self):
        os.makedirs(self.path("bin"))
        command = shutil.copy(ORIEL, self.path("bin"))
        line = self.refused(self.findings(), "-o", self.path(), command=command)
        self.assertIn("this build has no HTML pages", line)
        self.assertIn("scripts/install-deps pages", line)
        os.makedirs(self.path("share/oriel"))
        with open(self.path("share/oriel/report.html"), "w", encoding="utf-8") as file:
            file.write("<html></html>")
        self.assertIn("is not the page of this build", self.refused(self.findings(), "-o", self.path(), command=command))

    def test_an_older_page_is_written_over(self):
        for source in (self.traces(traces.known), self.findings()):
            self.report(source)
        self.assertNotIn("windows", self.page.data())

    def test_a_page_loads_nothing_and_has_its_licences(self):
        self.report(self.findings())
        code = next(content for tag, attributes, content in self.page.codes if tag == "script" and "id" not in attributes)
        for text in ("d3-zoom", "Mike Bostock", "Permission to use, copy, modify, and/or distribute"):
            self.assertIn(text, code)


class Sums(report_page.Reports):
    """The command's sums for the page."""

    def test_shares_of_bins_add_up_to_the_times(self):
        data = self.known()
        bin_ns = data["timeline"]["bin_ns"]
        for window, causes in zip(data["windows"], ({"late_fence"}, {"busy_lock"})):
            bins = window["bins"]
            inside, called = sum(row[2] for row in window["operations"]), sum(row[1] for row in window["calls"])
            waiting = sum(window["causes"])
            for key, wanted in (("operating", inside), ("working", called - waiting), ("waiting", waiting)):
                self.assertAlmostEqual(sum(bins[key]) * bin_ns / 1000, wanted, delta=wanted / 50 + 1000)
            named = {traces.CAUSES[cause] for cause, share in zip(bins["cause"], bins["waiting"]) if share}
            self.assertEqual(named, causes)
            self.assertEqual(sum(bins["calls"]), sum(row[0] for row in window["operations"] + window["calls"]))

    def epochs(self, data, kind):
        rows = zip(*(data["epochs"][key] for key in ("kind", "rank", "begin", "duration", "target", "operations", "bytes")))
        return [row[1:] for row in rows if data["epoch_kinds"][row[0]] == kind]

    def test_epochs_of_the_known_program(self):
        data = self.known()
        fences = self.epochs(data, "fence")
        self.assertEqual(len(fences), 40)
        self.assertEqual([row[1:] for row in fences if row[0] == 1][1], (605_000, 1_000_000, -1, 1, 2000))
        self.assertEqual([(row[0], row[3:]) for row in self.epochs(data, "lock")], [(rank, (1, 3, 24)) for rank in (1, 2, 3)])

    def test_epochs_of_every_kind(self):
        """Two locks at once, an exposure epoch that MPI_Win_test ends, and one that is open when
        the file ends."""
        def write(folder):
            traces.Rank(folder, 1, 2).close(9000)
            file = traces.Rank(folder, 0, 2)
            file.window(0, [0, 1], 0, "w")
            put = (traces.operation("put"), 10, 0)
            for name, begin, target in (("create", 0, -1), ("start", 1000, -1), (put, 1100, 1), ("complete", 1200, -1),
                                        ("post", 2000, -1), ("wait", 2100, -1), ("post", 3000, -1), ("test", 3050, -1),
                                        ("test", 3100, -1), ("post", 3200, -1), ("wait", 3300, -1),
                                        ("lock", 4000, 0), ("lock", 4100, 1), (put, 4200, 1), (put, 4250, 1), ("unlock", 4300, 0),
                                        ("unlock", 4400, 1), ("lock_all", 5000, -1), (put, 5100, 0), ("unlock_all", 5200, -1),
                                        ("fence", 6000, -1), ("fence", 6100, -1), (put, 6200, 1), ("lock_all", 7000, -1),
                                        (put, 7100, 1)):
                kind = name[0] if isinstance(name, tuple) else traces.call(name)
                file.event(kind, begin, 10, bytes_=8 if kind < 64 else 0, target=target)
            file.close(9000, ended=False)
        data = self.report(self.traces(write))
        self.assertEqual(self.epochs(data, "start to complete"), [(0, 1010, 200, -1, 1, 8)])
        self.assertEqual([row[1:3] for row in self.epochs(data, "post to wait")], [(2010, 100), (3010, 100), (3210, 100)])
        self.assertEqual(sorted(row[1:] for row in self.epochs(data, "lock")), [(4010, 300, 0, 0, 0), (4110, 300, 1, 2, 16)])
        self.assertEqual(self.epochs(data, "lock_all"), [(0, 5010, 200, -1, 1, 8), (0, 7010, 100, -1, 1, 8)])
        self.assertEqual([row[1] for row in self.epochs(data, "fence")], [6110])

    def test_pairs_that_do_not_fit_are_combined(self):
        """All to all of 256 ranks in three windows: more cells than a page may have."""
        def write(folder):
            for rank in range(256):
                file = traces.Rank(folder, rank, 256)
                for window in range(3):
                    file.window(window, range(256), rank, f"w{window}")
                    for target in range(256):
                        file.event(traces.operation("put"), 1000 + target, 5, window=window, bytes_=8, target=target)
                file.close(9000)
        data = self.report(self.traces(write))
        self.assertEqual((data["timeline"]["ranks_per_row"], data["pairs_ranks_per_row"]), (1, 2))
        for window in data["windows"]:
            self.assertEqual((len(window["pairs"]["origin"]), set(window["pairs"]["operations"])), (128 * 128, {4}))
            self.assertEqual(set(window["pairs"]["bytes"]), {32})


if __name__ == "__main__":
    report_page.needed()
    unittest.main()
