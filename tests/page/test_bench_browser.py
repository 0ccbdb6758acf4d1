"""The HTML page of `oriel bench` in a browser: plots are drawn, filters and the pointer work, and
no text in the results is executed.

Skipped (77) where there is no Chromium."""

import json
import re

import browser
import bench_page
from browser import Page
from bench_page import EXAMPLE, example


class Browser(bench_page.Case, browser.Browser):
    def use(self, results, hand, **more):
        self.write(results)
        return super().use(hand, **more)


class Drawn(Browser):
    def test_every_plot_is_drawn_with_every_figure(self):
        self.write(EXAMPLE)
        read = self.open()
        plots = read.data()["plots"]
        self.assertEqual(read.all("html")[0].get("data-drawn"), str(len(plots)))
        lines = [plot for plot in plots if plot["kind"] == "lines"]
        points = sum(y is not None for plot in lines for line in plot["series"] if line["column"] != "raw" for y in line["y"])
        bars = sum(bar[1] is not None for plot in plots if plot["kind"] == "bars" for row in plot["rows"] for bar in row["bars"])
        dots = sum(len(row["items"]) for plot in plots if plot["kind"] == "ratios" for row in plot["rows"])
        self.assertTrue(points and bars and dots)
        self.assertEqual(len(read.all("path", class_="point")), points)
        # bars in legends have a y
        self.assertEqual(len([1 for bar in read.all("rect", class_="bar") if "y" not in bar]), bars)
        self.assertEqual(read.count("dot"), dots + 2)  # and one for each memory in the legend
        for _, attributes in read.elements:
            for name in ("d", "x", "y", "width", "height", "transform", "x1", "x2", "y1", "y2"):
                self.assertNotIn("NaN", attributes.get(name) or "", attributes)
                self.assertFalse(re.match(r"-", attributes.get("width") or ""), attributes)

    def test_failures_are_marked_in_the_plots(self):
        self.write(EXAMPLE)
        read = self.open()
        failed = sum(failed for plot in read.data()["plots"] if plot["kind"] == "lines" for line in plot["series"]
                     for failed in line["failed"])
        self.assertEqual(read.count("cross"), failed)
        self.assertGreater(failed, 0)
        self.assertEqual(len([1 for _, attributes in read.elements
                              if (attributes.get("class") or "") == "dot oriel-fails"]), 2)

    def test_each_column_has_a_mark_of_its_own_without_colour(self):
        found = self.use(EXAMPLE, """
            const look = part => part && frame.contentWindow.getComputedStyle(part);
            return ["mpich", "openmpi", "oriel-mpich", "oriel-openmpi", "raw"].map(name => {
                const group = page.querySelector("#latency figure .c-" + name + " .line").parentNode;
                const point = group.querySelector(".point"), dashes = look(group.querySelector(".line")).strokeDasharray;
                const shape = point && (point.getAttribute("d").includes("A") ? "circle" : "square");
                return [shape, point && look(point).fill === look(page.querySelector("figure")).backgroundColor, dashes];
            });""")
        dashes = [dashes for _, _, dashes in found]
        self.assertEqual([mark[:2] for mark in found], [["circle", True], ["square", True], ["circle", False], ["square", False],
                                                        [None, None]])
        self.assertEqual(dashes[2:4], ["none", "none"])
        self.assertEqual(len({dashes[0], dashes[1], dashes[4], "none"}), 4, dashes)

    def test_axes_have_titles_with_what_they_measure(self):
        self.write(EXAMPLE)
        shown = self.open().shown()
        for title in ("message size", "time of one operation", "bandwidth", "ranks", "better host's time / slower Oriel's time"):
            self.assertIn(title, shown)
        for tick in ("100 ns", "1 µs", "10 GB/s", "64 KiB", "10× faster", "even"):
            self.assertIn(tick, shown)

    def test_texts_of_the_results_are_not_run(self):
        for names in (("column", "status", "pattern", "limit", "name"), ("status",)):
            results = bench_page.hostile(EXAMPLE, names)
            self.write(results)
            read = self.open()
            self.assertEqual(read.all("img"), [])
            self.assertIn("data-drawn", read.all("html")[0])
            self.assertIn("<img src=x onerror=hostile()>", read.shown())

    def test_texts_at_the_pointer_are_not_run(self):
        found = self.use(bench_page.hostile(EXAMPLE), """
            const told = [];
            for (const part of page.querySelectorAll("#latency .plot svg, #singles .row, #overview .dot")) {
                part.dispatchEvent(new frame.contentWindow.PointerEvent("pointermove", {bubbles: true}));
                told.push(page.querySelector(".box").innerText);
            }
            return [told.length, told.every(text => text.includes("<img src=x")), page.querySelectorAll("img").length];""")
        self.assertGreater(found[0], 20)
        self.assertEqual(found[1:], [True, 0])

    def test_odd_sets_of_results_are_drawn_or_left_out(self):
        kept = {"one host": lambda result: result["column"] in ("mpich", "oriel-mpich", "raw"),
                "hosts alone": lambda result: not result["column"].startswith("oriel"),
                "oriel alone": lambda result: result["column"].startswith("oriel"),
                "one size": lambda result: result["bytes"] == 8,
                "one result": lambda result: result == EXAMPLE["results"][0],
                "only failures": lambda result: result["status"] != "ok",
                "only raw": lambda result: result["column"] == "raw",
                "nothing": lambda result: False}
        wanted = {}
        for name, keep in kept.items():
            wanted[name] = str(len(Page(self.write(example(keep), name + ".html")).data()["plots"]))
        found = self.use(example(), """
            const drawn = {};
            for (const name of %s) {
                const loaded = new Promise(done => frame.onload = done);
                frame.src = name + ".html";
                await loaded;
                drawn[name] = frame.contentDocument.documentElement.dataset.drawn;
            }
            return drawn;""" % json.dumps(list(kept)))
        self.assertEqual(found, wanted)

    def test_without_script_every_figure_is_shown(self):
        found = self.use(EXAMPLE, """
            return [page.documentElement.dataset.drawn || null, all("#filters").length, page.body.innerText];""",
                         frame='sandbox="allow-same-origin"', allowed="Blocked script execution")
        self.assertEqual(found[:2], [None, 0])
        self.assertIn("Without JavaScript", found[2])
        self.assertIn("put, 8 B 266 ns 23.6 ns 11 ns 10.9 ns", " ".join(found[2].split()))


class Used(Browser):
    def test_filters_show_the_selection(self):
        found = self.use(EXAMPLE, """
            const change = () => page.getElementById("filters").dispatchEvent(new Event("change", {bubbles: true}));
            const state = () => ({figures: all("figure").length, other: all("figure[data-memory=create]").length,
                                  rows: all("#overview tr[data-pattern]").length,
                                  dots: all("#overview figure .plot > svg .dot").length,
                                  patterns: [...new Set(all("#overview tr[data-pattern]").map(row => row.dataset.pattern))],
                                  crosses: all("#overview .dot.oriel-fails").length});
            const states = [state()];
            page.querySelector("input[value=create]").checked = false;
            change();
            states.push(state());
            page.querySelector("#filters select").value = "compare-and-swap";
            change();
            states.push(state());
            page.querySelector("#filters select").value = "*";
            page.querySelector("input[value=create]").checked = true;
            change();
            states.push(state());
            return states;""")
        whole, allocated, one, again = found
        self.assertEqual(whole, again)
        self.assertGreater(whole["other"], 0)
        self.assertEqual((allocated["other"], allocated["crosses"]), (0, 1))
        self.assertTrue(0 < allocated["rows"] < whole["rows"] and 0 < allocated["dots"] < whole["dots"])
        self.assertEqual((one["patterns"], one["rows"], one["dots"], one["figures"]), (["compare-and-swap"], 1, 1, 2))

    def test_the_pointer_shows_the_figures(self):
        found = self.use(EXAMPLE, """
            const told = [];
            const point = (part, x, y) => {
                part.scrollIntoView();
                const box = part.getBoundingClientRect();
                part.dispatchEvent(new frame.contentWindow.PointerEvent("pointermove", {bubbles: true,
                    clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
                told.push(page.querySelector(".box").innerText.replace(/\\s+/g, " "));
            };
            point(page.querySelector("#latency .plot svg"), 0.2, 0.5);
            point(page.querySelector("#latency .plot svg"), 0.98, 0.5);
            point(page.querySelector("#singles .row"), 0.5, 0.5);
            point(page.querySelector("#overview .dot.oriel-fails"), 0.5, 0.5);
            page.querySelector("#latency .plot svg").dispatchEvent(new frame.contentWindow.PointerEvent("pointerleave"));
            told.push(all(".box").length);
            page.querySelector("#latency .plot svg").dispatchEvent(new frame.contentWindow.KeyboardEvent("keydown",
                {key: "ArrowRight"}));
            told.push(all(".box").length);
            return told;""")
        self.assertIn("8 B, 1 in flight MPICH 266 ns Open MPI 23.6 ns Oriel on MPICH 11 ns Oriel on Open MPI 10.9 ns", found[0])
        self.assertIn("limit: store, full fence 8.03 ns Oriel 2.1× faster", found[0])
        self.assertIn("1 MiB, 1 in flight MPICH 28.3 µs", found[1])
        self.assertIn("put, 8 B", found[2])
        self.assertIn("3 runs: minimum 266 ns, median 271 ns, maximum 277 ns", found[2])
        self.assertIn("Oriel fails", found[3])
        self.assertEqual(found[4:], [0, 1])

    def test_a_narrow_screen_needs_no_scrolling_sideways(self):
        found = self.use(EXAMPLE, """
            const widths = [], fits = svg => Number(svg.getAttribute("width")) === svg.parentNode.clientWidth;
            for (const width of [375, 800]) {
                frame.width = width;
                await until(() => all(".plot > svg").every(fits));
                widths.push([page.documentElement.scrollWidth, page.documentElement.clientWidth,
                             Math.max(...all(".plot svg").map(svg => svg.getBoundingClientRect().right)),
                             all(".plot > svg").every(fits)]);
            }
            return widths;""")
        for width, (needed, there, right, redrawn) in zip((375, 800), found):
            self.assertTrue(redrawn, found)
            self.assertTrue(width - 40 < there <= width, found)  # less a scroll bar
            self.assertLessEqual(max(needed, right), there)

    def test_dark_and_light_follow_the_reader(self):
        hand = "return frame.contentWindow.getComputedStyle(page.documentElement).backgroundColor;"
        light = self.use(EXAMPLE, hand)
        dark = self.use(EXAMPLE, hand, flags=["--blink-settings=preferredColorScheme=0"])
        shades = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (light, dark)]
        self.assertTrue(shades[0] > 600 and shades[1] < 150, (light, dark))


if __name__ == "__main__":
    browser.needed()
    bench_page.main()
