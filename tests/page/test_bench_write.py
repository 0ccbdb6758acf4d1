"""The HTML page of `oriel bench` as written: figures, failures, ratios, and that no markup in the
results takes effect."""

import base64
import copy
import hashlib
import os
import re
import unittest
from unittest import mock

import bench_page
from browser import Page
from bench_page import EXAMPLE, Case, example, page, skeleton

from page import figures, units


def cells(results):
    return {(cell.pattern, cell.memory, cell.ranks, cell.bytes, cell.in_flight): cell
            for cell in figures.Results(results).cells}


class Figures(unittest.TestCase):
    def test_ratio_is_the_better_host_over_the_slower_oriel(self):
        cell = cells(EXAMPLE)[("put", "allocate", 2, 8, 1)]
        self.assertAlmostEqual(cell.ratio, 23.6 / 11)
        self.assertEqual((cell.outcome, cell.verdict()), ("faster", "Oriel 2.1× faster"))
        self.assertEqual(cell.limit, (8.03, "store, full fence"))

    def test_limit_is_of_as_many_processes_or_of_one(self):
        results = example(lambda result: result["pattern"] in ("fence", "raw-atomic"))
        model = next(result for result in results["results"] if result["pattern"] == "raw-atomic")
        for result in results["results"]:
            result["limit"] = "raw-barrier" if result["pattern"] == "fence" else None
        for ranks, best in ((1, 100), (16, 1600)):
            results["results"].append(dict(model, pattern="raw-barrier", title="barrier", bytes=0, ranks=ranks, best=best))
        found = cells(results)
        self.assertGreater(len(found), 1)
        for (_, _, ranks, _, _), cell in found.items():
            self.assertEqual(cell.limit, (1600 if ranks == 16 else 100, "barrier"))

    def test_slower_is_shown_as_slower(self):
        cell = cells(EXAMPLE)[("accumulate", "allocate", 2, 65536, 1)]
        self.assertEqual((cell.outcome, cell.verdict()), ("slower", "Oriel 27× slower"))

    def test_a_host_that_crashed_leaves_the_other_to_compare_with(self):
        cell = cells(EXAMPLE)[("compare-and-swap", "allocate", 2, 8, 1)]
        self.assertAlmostEqual(cell.ratio, 376 / 15.7)

    def test_no_ratio_where_oriel_failed_or_no_host_worked(self):
        found = cells(EXAMPLE)
        for key, outcome in ((("accumulate", "allocate", 2, 1 << 20, 1), "oriel-fails"),
                             (("fence", "allocate", 16, 0, 1), "hosts-fail")):
            self.assertEqual((found[key].ratio, found[key].outcome), (None, outcome))

    def test_no_ratio_where_oriel_was_not_measured(self):
        found = cells(example(lambda result: not result["column"].startswith("oriel")))
        self.assertEqual({cell.outcome for cell in found.values()}, {"alone"})

    def test_a_failure_has_no_figure_even_if_the_file_has_one(self):
        results = example(lambda result: result["pattern"] == "fetch-and-op")
        for result in results["results"]:
            result["status"] = "wrong"  # its best value stays
        for cell in cells(results).values():
            self.assertEqual({figure.text() for figure in cell.figures.values()}, {"wrong"})

    def test_a_figure_is_a_finite_number_above_zero(self):
        for bad in (None, "7", [], {}, True, 0, -3.0, float("nan"), float("inf"), 10 ** 400):
            self.assertIsNone(units.number(bad))
            self.assertEqual(figures.Figure({"best": bad, "status": "ok"}).text(), "no figure")
        self.assertEqual(figures.Figure({"best": 12, "status": "ok"}).text(), "12 ns")

    def test_numbers_have_units_and_three_digits(self):
        for show, value, text in ((units.duration, 9.876, "9.88 ns"), (units.duration, 12.0, "12 ns"),
                                  (units.duration, 999.7, "1 µs"), (units.duration, 1234, "1.23 µs"),
                                  (units.duration, 29e6, "29 ms"), (units.duration, 9e8, "900 ms"),
                                  (units.duration, 12e12, "12,000 s"), (units.duration, 0.25, "0.25 ns"),
                                  (units.size, 8, "8 B"), (units.size, 65536, "64 KiB"), (units.size, 4 << 20, "4 MiB"),
                                  (units.size, 1536, "1.5 KiB"), (units.rate, 0.0123, "12.3 MB/s"),
                                  (units.rate, 41.27, "41.3 GB/s"), (units.ratio, 23.95, "24×"), (units.ratio, 2.145, "2.1×"),
                                  (units.ratio, 0.914, "0.91×"), (units.ratio, 0.0183, "0.018×")):
            self.assertEqual(show(value), text)

    def test_logarithmic_axes_hold_their_values_and_are_never_empty(self):
        for values in ([], [5.0], [8.03, 9e8], [1e-3, 1e12], [10.0, 10.0], [0.96, 1.04]):
            low, high = units.log_domain(values)
            self.assertTrue(0 < low < high and all(low <= value <= high for value in values), values)
            self.assertGreaterEqual(len(units.log_ticks((low, high), units.duration)), 2, values)


class Written(Case):
    def test_page_is_one_file_that_loads_nothing(self):
        read = Page(self.write(EXAMPLE))
        for tag, attributes in read.elements:
            self.assertNotIn(tag, ("link", "img", "iframe", "object", "embed", "base", "video", "audio", "a", "use"))
            self.assertFalse({"src", "href", "srcset", "style"} & set(attributes), (tag, attributes))
        styles = "".join(content for tag, _, content in read.codes if tag == "style")
        self.assertEqual(set(re.findall(r"url\((?!#)|@import|@font-face", styles)), set())
        self.assertIn("default-src 'none'", read.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"])

    def test_policy_allows_the_scripts_and_styles_of_the_page_and_no_others(self):
        read = Page(self.write(EXAMPLE))
        policy = read.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
        ours = ["'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"
                for tag, attributes, content in read.codes if attributes.get("type") != "application/json"]
        self.assertEqual(sorted(re.findall(r"'sha256-[^']*'", policy)), sorted(ours))
        self.assertNotIn("unsafe", policy)

    def test_figures_ratios_and_limits_are_in_tables(self):
        shown = Page(self.write(EXAMPLE)).shown()
        self.assertIn("put, 8 B 266 ns 23.6 ns 11 ns 10.9 ns 8.03 ns ▲ 2.1× faster", shown)
        self.assertIn("accumulate, sum of doubles, 64 KiB 9 µs 1.5 µs 41 µs 40.8 µs 2.68 µs ▼ 27× slower", shown)
        for text in ("An Example Processor, 2 cores", "MPICH 4.0.2, Open MPI 4.1.4", "Linux 6.1.0-18-amd64", "runs: 3"):
            self.assertIn(text, shown)

    def test_each_plot_has_a_table(self):
        read = Page(self.write(EXAMPLE))
        self.assertEqual(len(read.all("figure")), len(read.data()["plots"]))
        self.assertGreaterEqual(len(read.all("details")), len(read.all("figure")))

    def test_failures_are_shown_with_their_reasons(self):
        shown = Page(self.write(EXAMPLE)).shown()
        self.assertIn("compare_and_swap 376 ns ✕ crash 15.7 ns 15.5 ns", shown)
        self.assertIn("MPICH fence, 16 ranks allocate 16 ✕ timeout printed nothing for 20 s", shown)
        self.assertIn("✕ wrong element 17 is 3, not 4", shown)
        self.assertIn("✕ refused no window of Oriel: the memory is a stack", shown)
        self.assertIn("where Oriel fails", shown)

    def test_texts_of_the_results_stay_texts(self):
        calm = Page(self.write(EXAMPLE))
        for names in (("column", "status", "pattern", "limit", "name"), ("status",), ()):
            results = bench_page.hostile(EXAMPLE, names)
            results["options"] = {bench_page.HOSTILE: bench_page.HOSTILE, "list": [bench_page.HOSTILE]}
            read = Page(self.write(results))
            self.assertEqual(len(read.codes), len(calm.codes))
            self.assertLessEqual({tag for tag, _ in read.elements}, {tag for tag, _ in calm.elements})
            for _, attributes in read.elements:
                self.assertFalse([name for name in attributes if name.startswith("on")])
            self.assertIn("<img src=x onerror=hostile()>", read.shown())
            data = next(content for _, attributes, content in read.codes if attributes.get("id") == "data")
            self.assertFalse(set("<>&") & set(data))
            read.data()

    def test_one_host_alone_is_a_page(self):
        for host in ("mpich", "openmpi"):
            read = Page(self.write(example(lambda result, host=host: result["column"] in (host, "oriel-" + host, "raw"))))
            other = "Open MPI" if host == "mpich" else "Oriel on MPICH"
            heads = " ".join(read.text).split("Oriel compared with", 1)[1].split("Memory of", 1)[0]
            self.assertNotIn(other, heads)
            self.assertTrue(read.data()["plots"])

    def test_hosts_alone_are_a_page_without_ratios(self):
        read = Page(self.write(example(lambda result: not result["column"].startswith("oriel"))))
        self.assertNotIn("Oriel compared with", read.shown())
        self.assertIn("266 ns", read.shown())

    def test_one_size_alone_is_a_page_with_a_note(self):
        read = Page(self.write(example(lambda result: result["bytes"] in (0, 8))))
        self.assertIn("No operation was measured with more than one size", read.shown())
        # lines: over ranks
        self.assertEqual({plot["kind"] for plot in read.data()["plots"]}, {"ratios", "bars", "lines"})

    def test_a_memory_with_one_size_of_an_operation_has_no_plot_over_sizes(self):
        read = Page(self.write(example(lambda result: result["memory"] != "create" or result["bytes"] == 8)))
        titles = [plot["title"] for plot in read.data()["plots"] if plot["kind"] == "lines"]
        self.assertIn("put, allocate", titles)
        self.assertNotIn("put, create", titles)

    def test_operations_in_flight_and_alone_have_names_of_their_own(self):
        results = figures.Results(EXAMPLE)
        labels = [(cell.memory, results.label(cell)) for cell in results.cells]
        self.assertEqual(len(labels), len(set(labels)))
        self.assertIn(("allocate", "put, 8 B"), labels)
        self.assertIn(("allocate", "put, 64 in flight, 8 B"), labels)

    def test_bandwidth_is_of_as_many_in_flight_as_each_size_has(self):
        results = example(lambda result: result["in_flight"] == 1 or result["bytes"] < 1 << 20)
        plot = [plot for plot in Page(self.write(results)).data()["plots"] if plot["title"] == "put, allocate"][1]
        self.assertEqual(plot["x"]["heads"], ["8 B, 64 in flight", "512 B, 64 in flight", "64 KiB, 64 in flight",
                                              "1 MiB, 1 in flight"])

    def test_alignments_are_compared_side_by_side_and_have_no_plot_over_sizes(self):
        plots = Page(self.write(EXAMPLE)).data()["plots"]
        self.assertNotIn("put at an odd byte, allocate", [plot["title"] for plot in plots if plot["kind"] == "lines"])
        rows = [row["label"] for plot in plots if plot["kind"] == "bars" for row in plot["rows"]]
        self.assertEqual([row for row in rows if "odd" in row], ["put at an odd byte, 8 B", "put at an odd byte, 64 KiB"])

    def test_nothing_measured_is_a_page_with_a_note(self):
        for results in ({}, example(lambda result: False), {"results": [None, 3, "x", []], "columns": 7, "machine": "none"},
                        example(lambda result: result["column"] == "raw")):
            self.assertIn("Nothing was measured", Page(self.write(results)).shown())

    def test_only_failures_are_a_page(self):
        results = example(lambda result: result["column"] != "raw")
        for result in results["results"]:
            result.update(status="crash", best=None, samples=[], reason="gone")
        self.assertIn("✕ crash gone", Page(self.write(results)).shown())

    def test_odd_values_are_no_figures_and_no_error(self):
        for odd in (None, "text", float("nan"), float("inf"), -1, 10 ** 400, [], {}, True):
            results = copy.deepcopy(EXAMPLE)
            for place, result in enumerate(results["results"]):
                keys = sorted(result)
                result[keys[place % len(keys)]] = odd
            self.write(results)
            results["machine"]["cores"] = results["machine"]["hosts"] = results["options"] = odd
            self.write(results)

    def test_an_interrupted_run_is_shown(self):
        self.assertNotIn("interrupted", Page(self.write(EXAMPLE)).shown())
        self.assertIn("This run was interrupted", Page(self.write(dict(EXAMPLE, complete=False))).shown())

    def test_missing_library_is_named_and_nothing_is_written(self):
        with mock.patch.object(skeleton, "LIBRARY", "no-such.js"):
            with self.assertRaisesRegex(RuntimeError, "not built in: .*no-such.js.*install-deps pages"):
                page.write(EXAMPLE, self.path())
        self.assertEqual(os.listdir(self.folder), [])

    def test_an_unwritable_file_is_an_error_of_the_system(self):
        with self.assertRaises(OSError):
            page.write(EXAMPLE, self.path("no/such/folder.html"))

    def test_the_library_has_its_licence(self):
        text = self.write(EXAMPLE)
        for part in ("d3-scale", "Mike Bostock", "Permission to use, copy, modify, and/or distribute"):
            self.assertIn(part, text)

    def test_code_that_is_inlined_cannot_end_its_element(self):
        for code in ('x = "</script>";', 'x = "</SCRIPT >";', 'x = "<!-- <script>";', "a\r\nb\rc"):
            text = "<script>" + skeleton.inline(code) + "</script>"
            read = Page(text)
            self.assertEqual([tag for tag, _ in read.elements], ["script"])
            self.assertEqual(read.text, [])
            self.assertNotIn("\r", text)


if __name__ == "__main__":
    bench_page.main()
