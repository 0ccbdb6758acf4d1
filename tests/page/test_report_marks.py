"""The page of `oriel report` for runs with regions, pauses, a filter and samples, in a browser."""

import unittest

import browser
import report_page
import traces
from report_page import TOOLS

MS = 1_000_000
RANKS = 2


def marked(folder):
    """On each rank a fence epoch with a put in the region "inner" of "outer"; a pause; and after it a
    fence, which ends no epoch."""
    for rank in range(RANKS):
        file = traces.Rank(folder, rank, RANKS)
        file.window(0, range(RANKS), rank, "halo")
        file.region(0, "")
        file.region(1, "outer")
        file.region(2, "inner")
        file.event(traces.call("fence"), 0, 1 * MS)
        file.event(traces.operation("put"), 10 * MS, 1 * MS, bytes_=8, target=1 - rank)
        file.mark("region", 9 * MS, 5 * MS, region=2, operations=1, bytes_=8, calls_ns=1 * MS)
        file.event(traces.call("fence"), 18 * MS, 2 * MS)
        file.event(traces.operation("put"), 21 * MS, 1 * MS, bytes_=8, target=1 - rank)
        file.mark("region", 5 * MS, 25 * MS, region=1, operations=2, bytes_=16, calls_ns=4 * MS)
        file.mark("pause", 40 * MS, 30 * MS)
        file.event(traces.call("fence"), 80 * MS, 2 * MS)
        file.event(traces.operation("put"), 90 * MS, 1 * MS, bytes_=8, target=1 - rank)
        file.close(100 * MS)


def sampled(folder):
    file = traces.Rank(folder, 0, 1, host="abi", host_version="MPICH 5.0.2")
    file.selection(100, "call=put,fence")
    file.window(0, [0], 0, "halo")
    file.event(traces.call("fence"), 0, 1 * MS)
    file.event(traces.operation("put"), 2 * MS, 1000, bytes_=8, target=0)
    file.event(traces.operation("put"), 3 * MS, 20_000, bytes_=8, target=0)
    file.event(traces.call("fence"), 4 * MS, 1 * MS)
    file.close(6 * MS)


class Marks(report_page.Reports):
    def test_regions_have_a_table_and_lines(self):
        data = self.report(self.traces(marked))
        self.assertEqual([(row["name"], row["count"], row["operations"]) for row in data["region_sums"]],
                         [("outer", 2, 4), ("inner", 2, 2)])
        found = self.use(TOOLS + """
            const x = share => 46 + (rows.clientWidth - 52) * share;
            return [all("#regions tbody tr").map(row => row.innerText.split(/\\t|\\n/).map(text => text.trim()).filter(Boolean)),
                    point(rows, x(0.115), 22 + 13), point(rows, x(0.5), 22 + 13),
                    pixel(rows, x(0.115), 22 + 25) !== pixel(rows, x(0.25), 22 + 25),
                    pixel(rows, x(0.25), 22 + 25) !== pixel(rows, x(0.95), 22 + 25),
                    all(".legend").map(list => list.innerText).join(" ")];""")
        table, within, paused, inner, outer, legend = found
        self.assertEqual([row[:2] for row in table], [["outer", "2"], ["inner", "2"]])
        self.assertIn("in region outer 25 ms", within)
        self.assertIn("in region inner 5 ms", within)
        self.assertIn("paused 30 ms", paused)
        self.assertTrue(inner and outer)
        self.assertIn("regions", legend)
        self.assertIn("paused", legend)

    def test_a_pause_ends_epochs(self):
        data = self.report(self.traces(marked))
        epochs = [(rank, begin // MS, duration // MS) for rank, begin, duration in
                  zip(*(data["epochs"][key] for key in ("rank", "begin", "duration")))]
        self.assertEqual([epoch for epoch in epochs if epoch[0] == 0], [(0, 1, 19), (0, 20, 2), (0, 82, 9)])
        self.assertIn("2 of 2 ranks were paused by MPI_Pcontrol for 30 % of the run on average; the figures are those of the rest.",
                      self.open().shown())

    def test_shares_are_of_the_time_without_pauses(self):
        self.report(self.traces(marked))
        verdict, tiles = self.use('return ["#verdict", ".tiles"].map(part => '
                                  'page.querySelector(part).innerText.replace(/\\s+/g, " "));')
        self.assertIn("11.4 % of 70 ms in window calls, 0 % waiting", verdict)
        self.assertIn("11.4 % of the ranks' time in window calls 0 % waiting", tiles)

    def test_samples_and_filters_are_named(self):
        data = self.report(self.traces(sampled))
        self.assertEqual(data["windows"][0]["operations"][traces.operation("put")], [200, 1600, 100 * 1000 + 100 * 10_008])
        self.assertEqual(data["verdict"]["calls_ns"], 2 * MS + 100 * 1000 + 100 * 10_008)
        shown = self.open().shown()
        self.assertIn('Only calls that --trace-filter "call=put,fence" selects were traced.', shown)
        self.assertIn("One in 100 operations was traced (--trace-sample)", shown)
        self.assertIn("Operations, estimated from samples", shown)
        self.assertIn("MPI's standard ABI, MPICH 5.0.2", shown)


if __name__ == "__main__":
    browser.needed()
    report_page.needed()
    unittest.main()
