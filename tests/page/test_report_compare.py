"""The page of two runs in a browser: totals, windows, pairs of bars, and names that are no elements."""

import unittest

import browser
import report_page
import traces


def write(folder, puts=10, waiting_ns=1_000_000, called="halo", ranks=4, windows=1, named="phase"):
    for rank in range(ranks):
        file = traces.Rank(folder, rank, ranks)
        for window in range(windows):
            file.window(window, range(ranks), rank, called + (str(window) if windows > 1 else ""), site="main at halo.c:42")
            for i in range(puts):
                file.event(traces.operation("put"), 1000 * i, 500, window=window, bytes_=1024, target=(rank + 1) % ranks)
            late = rank == ranks - 1
            file.event(traces.call("fence"), 100_000, 5_000 if late else waiting_ns + 5_000, window=window, site="step at halo.c:82",
                       waiting_ns=0 if late else waiting_ns, cause=None if late else "late_fence", cause_rank=-1 if late else ranks - 1)
        file.region(1, named)
        file.mark("region", 90_000, 50_000 + waiting_ns, region=1, operations=puts, calls_ns=waiting_ns, waiting_ns=waiting_ns)
        file.close(300_000 + waiting_ns)


class Compared(report_page.Reports):
    def compared(self, before, after):
        return self.report(self.traces(write, "before", **before), self.traces(write, "after", **after))

    def test_changes_are_drawn(self):
        self.compared({}, {"waiting_ns": 50_000_000, "puts": 20})
        found = self.use("""
            await until(() => all(".compared").length);
            return {
                title: page.title,
                tiles: all(".tile").map(tile => [tile.className, tile.innerText.replace(/\\s+/g, " ")]),
                rows: all(".compared tbody tr").map(row => [...row.cells].map(cell => cell.innerText.trim())),
                bars: all(".compared tbody tr").map(row => [...row.querySelectorAll("i")].map(bar => bar.style.width)),
            };""")
        self.assertEqual(found["title"], "ring: what changed")
        self.assertIn(["tile slower", "50 times waiting: 3 ms before, 150 ms after"], found["tiles"])
        self.assertIn(["tile ", "2.0 times operations: 40 before, 80 after"], found["tiles"])
        at = found["rows"].index(["", "waiting", "3 ms", "150 ms", "", "50 times"])
        self.assertEqual(found["bars"][at], ["2%", "100%"])
        self.assertIn(["rank 3", "waiting", "3 ms", "150 ms", "", "50 times"], found["rows"])
        self.assertEqual(self.use("""return all("#changed-sites tbody tr").map(row => [...row.cells].map(cell => cell.innerText.trim()));""")[:2],
                         [["fence in step at halo.c:82", "count", "4", "4", "", "the same"],
                          ["", "time", "3.02 ms", "150 ms", "", "50 times"]])

        self.assertEqual(self.use("""return all("#changed-regions tbody tr").map(row => [...row.cells].map(cell => cell.innerText.trim()));"""),
                         [["phase", "count", "4", "4", "", "the same"], ["", "time", "4.2 ms", "200 ms", "", "48 times"],
                          ["", "waiting", "4 ms", "200 ms", "", "50 times"], ["", "in calls", "4 ms", "200 ms", "", "50 times"],
                          ["", "operations", "40", "80", "", "2.0 times"]])

    def test_names_are_text(self):
        hostile = {"called": report_page.HOSTILE, "named": report_page.HOSTILE[:60]}
        self.compared(hostile, {**hostile, "puts": 12})
        shown = self.use("await until(() => all('.compared').length); return all('.compared summary').map(part => part.innerText);")
        self.assertEqual(len(shown), 1)
        self.assertIn(report_page.HOSTILE[:40], shown[0])

    def test_contents_are_bounded(self):
        data = self.compared({"windows": 210, "puts": 1}, {"windows": 210, "puts": 2, "ranks": 4})
        self.assertEqual((len(data["comparison"]["windows"]), data["comparison"]["windows_left_out"]), (200, 10))
        self.assertIn("and 10 windows with smaller changes", self.open().shown())


if __name__ == "__main__":
    browser.needed()
    report_page.needed()
    unittest.main()
