"""The page of `oriel report` for unusual runs, in a browser: a million operations, hundreds of
ranks, hostile texts, incomplete traces, findings."""

import os
import resource
import unittest

import browser
import report_page
import traces
from report_page import FINDINGS, HOSTILE, TOOLS


class Large(report_page.Reports):
    def test_a_million_operations_are_readable(self):
        data = self.report(self.traces(traces.busy))
        self.assertGreater(data["run"]["events"], 1_000_000)
        self.assertLess(os.path.getsize(self.path()), 12_000_000)
        operations = sum(row[0] for window in data["windows"] for row in window["operations"])
        self.assertEqual(operations, sum(sum(window["pairs"]["operations"]) for window in data["windows"]))
        self.assertEqual(operations, sum(sum(window["bins"]["operations"]) for window in data["windows"]))
        self.assertEqual(len(data["events"]["kind"]) + data["events"]["left_out"], data["run"]["events"])
        # no omitted event is as long: the ranks are alike
        self.assertGreater(min(data["events"]["duration"]), data["events"]["longest_left_out"])
        self.assertEqual(set(data["events"]["rank"]), set(range(64)))
        found = self.use(TOOLS + """
            const x = share => 46 + (rows.clientWidth - 52) * share;
            const states = [[rows.dataset.detail, point(rows, x(0.2), 22 + 7)]];
            states.push([pixel(rows, x(0.5), 22 + 13 * 3 + 10) !== pixel(rows, x(0.1), 22 + 13 * 3 + 10), ""]);
            key(rows, "+", 9);
            await until(() => rows.dataset.detail === "events");
            let event = "";
            for (let share = 0; share < 1 && !event.includes("waited"); share += 0.01)
                event = point(rows, x(share), 22 + 7);
            states.push([rows.dataset.detail, event]);
            return [states, page.querySelectorAll("*").length, page.getElementById("timeline").innerText];""")
        (whole, differs, near), elements, words = found
        self.assertEqual(whole[0], "bins")
        self.assertRegex(whole[1], r"^rank 0, .* in operations .*% .*\d+ calls begin here, of them \d+ operations$")
        self.assertTrue(differs[0])
        self.assertEqual(near[0], "events")
        self.assertRegex(near[1], r"^rank 0: fence took .* waited, late fence .* for rank (1|7) ")
        self.assertLess(elements, 3000)
        self.assertRegex(words, r"(29,9\d\d|30,000) events are shown with their own times")

    def test_many_ranks_and_windows_are_combined(self):
        data = self.report(self.traces(traces.busy, ranks=600, events=300_000, windows=48))
        self.assertEqual((data["timeline"]["ranks_per_row"], data["timeline"]["rows"]), (3, 200))
        self.assertEqual((len(data["windows"]), data["windows"][-1]["others"]), (33, 16))
        self.assertLess(os.path.getsize(self.path()), 12_000_000)
        operations = sum(row[0] for window in data["windows"] for row in window["operations"])
        self.assertEqual(operations, sum(sum(window["pairs"]["operations"]) for window in data["windows"]))
        found = self.use(TOOLS + """return [all("#windows tbody tr").length, page.getElementById("windows").innerText,
            point(heat, 47, 35), point(rows, 400, 26), page.getElementById("pairs").innerText];""")
        self.assertEqual(found[0], 33)
        self.assertIn("16 other windows", found[1])
        self.assertIn("ranks 0–2 → ranks 0–2", found[2])
        self.assertIn("rank", found[3])
        self.assertIn("Each row is 3 ranks", found[4])

    def test_a_thousand_ranks_in_fifty_windows(self):
        """All forms need at most 10 s of processor time and 1 GiB, and the page opens."""
        folders = [self.traces(traces.busy, name=name, ranks=1000, events=300_000, windows=50) for name in ("before", "after")]

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        for words in ([folders[0]], folders, [*folders, "-o", self.path("changes.html")], [*folders, "--csv"],
                      [folders[0], "--perfetto", self.path("events.json")], [folders[0], "-o", self.path()]):
            result = report_page.oriel(*words, preexec_fn=limit)
            self.assertEqual((result.returncode, result.stderr), (0, ""), words)
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "6")
        for text in ("Ranks 1,000", "18 other windows", "Each row is 4 ranks."):
            self.assertIn(text, read.shown())


class Odd(report_page.Reports):
    def test_texts_of_the_program_are_not_run(self):
        data = self.known(program="/opt/" + HOSTILE)

        def write(folder):
            file = traces.Rank(folder, 0, 1, program="/x/" + HOSTILE)
            file.window(0, [0], 0, HOSTILE[:50], site=HOSTILE, reason=HOSTILE, path="cma")
            file.window(1, [0], 0, "bytes \udcff\udcfe", window_id=77)
            file.event(traces.operation("put"), 0, 100, bytes_=8, target=0)
            file.event(traces.operation("put"), 200, 100, window=1, bytes_=8, target=0)
            file.close(1000)
        self.assertIn("<img", data["run"]["program"])
        found = dict(FINDINGS, program=HOSTILE, findings=[{key: HOSTILE if isinstance(value, str) else value
                                                           for key, value in FINDINGS["findings"][0].items()}])
        data = self.report(self.traces(write, "hostile"), self.findings(found))
        self.assertTrue(data["windows"][0]["name"].startswith("</script x>"))
        self.assertEqual(len(self.page.codes), 3)
        read = self.open()
        self.assertEqual(read.all("img"), [])
        self.assertEqual(read.all("html")[0].get("data-drawn"), "7")
        self.assertIn("<img src=x onerror=hostile()>", read.shown())

    def test_long_names_break(self):
        def write(folder):
            file = traces.Rank(folder, 0, 1, program="/opt/" + "x" * 200)
            file.window(0, [0], 0, "y" * 60, site="z" * 120, reason="w" * 150, path="cma")
            file.event(traces.operation("put"), 0, 100, bytes_=8, target=0)
            file.close(1000)
        self.report(self.traces(write))
        found = self.use(TOOLS + """
            frame.width = 375;
            await until(() => view.innerWidth === 375 && parseFloat(rows.style.width) < 375);
            return [page.documentElement.scrollWidth, page.documentElement.clientWidth];""")
        self.assertLessEqual(*found)

    def test_the_page_allows_its_own_script_and_style_alone(self):
        self.known()
        policy = next(meta["content"] for meta in self.page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
        self.assertTrue(policy.startswith("default-src 'none';"))
        self.assertNotIn("unsafe", policy)
        for tag in ("link", "img", "iframe"):
            self.assertEqual(self.page.all(tag), [])
        self.assertFalse(any("src" in attributes for _, attributes in self.page.elements))

    def test_missing_data_is_named_at_the_top(self):
        folder = self.traces(traces.known)
        with open(os.path.join(folder, "rank-2.oriel"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 200)
        os.remove(os.path.join(folder, "rank-3.oriel"))
        result = report_page.oriel(folder, "-o", self.path())
        self.assertEqual(result.returncode, 0)
        self.assertIn("rank-2.oriel", result.stderr)
        shown = self.open().shown()
        self.assertIn("The page has traces of 2 of 4 ranks.", shown)
        self.assertIn("1 rank with incomplete data", shown)
        self.assertIn("did not reach MPI_Finalize", shown)

    def test_dropped_events_are_named_at_the_top(self):
        def write(folder):
            file = traces.Rank(folder, 0, 1)
            file.window(0, [0], 0, "w")
            file.event(traces.operation("put"), 0, 100, bytes_=8, target=0)
            file.close(1000, dropped=17)
        self.report(self.traces(write))
        self.assertIn("17 events were dropped during the run, in addition to the 1 that are here", self.open().shown())

    def test_a_run_without_windows_or_events_is_a_page_too(self):
        for name, windows in (("none", 0), ("idle", 1)):
            def write(folder, windows=windows):
                file = traces.Rank(folder, 0, 1)
                if windows:
                    file.window(0, [0], 0, "idle")
                    file.event(traces.call("create"), 5, 0)
                file.close(1000)
            result = report_page.oriel(self.traces(write, name), "-o", self.path())
            if result.returncode == 0:
                self.assertIn("data-drawn", self.open().all("html")[0])
            else:
                self.assertRegex(result.stderr, r"^oriel: .*\n$")
        self.assertEqual(result.returncode, 0)


class Found(report_page.Reports):
    def test_findings_alone_make_a_page(self):
        self.report(self.findings())
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "1")
        shown = read.shown()
        for text in ("C1 unordered MPI_Get and MPI_Put of the same bytes", "“halo” (allocate), target rank 2, bytes 16 to 23, element 2",
                     "rank 1: MPI_Put at halo.c:42 in exchange", "Before it rank 0: MPI_Get at halo.c:57 in sum",
                     "Epoch opened rank 1: MPI_Win_lock_all at halo.c:30 in main", "Help call MPI_Win_flush(2, win) after halo.c:57",
                     "Does not count old.supp:3: checked by hand", "12 times, by ranks 0, 1", "main at halo.c:99",
                     "without a name (create)", "offset 0x1234 of /opt/app/ring", "there was none", "1 time, by rank 3",
                     "Not checked: calls of MPI_Test (3).", "compile it with -fsanitize=thread"):
            self.assertIn(text, shown)

    def test_findings_and_traces_share_a_page(self):
        data = self.report(self.traces(traces.known), self.findings())
        self.assertEqual((len(data["windows"]), len(data["check"]["findings"])), (2, 2))
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "7")
        self.assertIn("2 findings", read.shown())

    def test_findings_with_nothing_but_a_rule_are_shown(self):
        odd = {"rule": "C1", "title": "odd", "ranks": 7, "call": "text", "stack": {}, "count": "x"}
        self.report(self.findings({"format": "oriel-check", "version": 3, "findings": [odd]}))
        self.assertIn("C1 odd", self.open().shown())


if __name__ == "__main__":
    browser.needed()
    report_page.needed()
    unittest.main()
