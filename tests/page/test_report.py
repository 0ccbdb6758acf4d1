"""The page of `oriel report` for a known program, in a browser: the heat map has its cells, zoom
and the choice of a window work, and the pointer and the keyboard show the values."""

import unittest

import browser
import report_page
import traces
from report_page import TOOLS


class Known(report_page.Reports):
    def setUp(self):
        super().setUp()
        self.data = self.known()

    def hand(self, script, **more):
        return self.use(TOOLS + script, **more)

    def test_it_loads_without_a_word_on_the_console(self):
        read = self.open()  # which checks the console
        self.assertEqual(read.all("html")[0].get("data-drawn"), "6")
        shown = read.shown()
        for text in ("ring: one-sided communication", "Nodes 2", "MPICH", "within 200 ns",
                     "main at halo.c:42", "memory of a stack", "late fence", "busy lock"):
            self.assertIn(text, shown)
        for _, attributes in read.elements:
            for name in ("d", "x", "y", "width", "height", "transform", "x1", "x2", "y1", "y2"):
                self.assertNotIn("NaN", attributes.get(name) or "", attributes)

    def test_it_begins_with_the_verdict(self):
        order, words = self.hand("""
            return [[...page.getElementById("page").children].map(part => part.id || part.tagName).slice(1, 4),
                    page.getElementById("verdict").innerText.replace(/\\s+/g, " ")];""")
        self.assertEqual(order, ["H1", "verdict", "DL"])
        self.assertEqual(words, "26.8 % of 11.9 ms in window calls, 25.3 % waiting. 25.1 % Rank 3 is late: the others wait 12.0 ms for it, "
                                "most in MPI_Win_fence of \"halo\", in exchange at halo.c:61. Load imbalance: give rank 3 less work.")

    def test_heat_map_has_the_cells_of_the_program(self):
        found, card = self.hand("return [cells(), colour('card')];")
        self.assertEqual(len(found), 16)
        put = {(0, 1): "9.77 KiB", (1, 2): "19.5 KiB", (2, 3): "29.3 KiB", (3, 0): "39.1 KiB"}
        got = {(1, 1): "24 B", (2, 1): "24 B", (3, 1): "24 B"}
        for cell, (tooltip, shade) in found.items():
            origin, target = map(int, cell.split())
            words = {**put, **got}.get((origin, target), "nothing")
            self.assertTrue(tooltip.startswith(f"rank {origin} → rank {target} bytes {words}"), tooltip)
            self.assertEqual(shade == card, words == "nothing", (cell, shade))
        shades = [sum(map(int, found[cell][1].split())) for cell in ("1 1", "0 1", "1 2", "2 3", "3 0")]
        self.assertEqual(sorted(shades, reverse=True), shades)  # more is darker
        self.assertEqual(len(set(shades)), 5)

    def test_heat_map_counts_operations_and_waiting(self):
        operations, waiting, pairs = self.hand("""
            pick("input[value=operations]");
            const first = cells();
            pick("input[value=waiting]");
            return [first, cells(), page.querySelector(".pairs").innerText.replace(/\\s+/g, " ")];""")
        self.assertIn("operations 10", operations["3 0"][0])
        self.assertIn("operations 3 ", operations["2 1"][0])
        self.assertIn("rank 0 waits for rank 3 time waited 4 ms of rank 0 4 ms of all for rank 3 12 ms", waiting["0 3"][0])
        self.assertIn("mostly for a late fence", waiting["0 3"][0])
        self.assertIn("time waited 50 µs", waiting["3 2"][0])
        self.assertIn("mostly for a busy lock", waiting["3 2"][0])
        self.assertIn("time waited nothing", waiting["3 0"][0])
        self.assertIn("0 3 4 ms 33.1 % late fence", pairs)

    def test_heat_map_obeys_the_keyboard(self):
        found = self.hand("""
            const said = [key(heat, "ArrowDown"), key(heat, "ArrowDown"), key(heat, "ArrowRight", 2), key(heat, "ArrowUp", 9)];
            heat.blur();
            return [...said, told()];""")
        self.assertEqual([text[:15] for text in found],
                         ["rank 0 → rank 0", "rank 1 → rank 0", "rank 1 → rank 2", "rank 0 → rank 2", ""])

    def test_call_sites_have_the_sums_of_the_program(self):
        found = self.hand("""return all("#sites tbody tr").map(row => row.innerText.replace(/\\s+/g, " ").trim());""")
        self.assertEqual(found[0], "exchange at halo.c:61 fence 40 12.2 ms 12 ms 30 400 µs 95.2 %")
        self.assertIn("exchange at halo.c:60 put 40 97.7 KiB 80 µs 0 0 0 0.624 %", found)
        self.assertIn("look_up at table.c:20 lock 3 103 µs 100 µs 2 50 µs 0.804 %", found)
        self.assertIn("other call sites get 9 72 B 13.5 µs 0 0 0 0.105 %", found)

    def test_call_sites_are_sorted_by_any_column(self):
        first, again, by_name, sorts = self.hand("""
            const names = () => all("#sites tbody th").map(head => head.innerText.trim());
            pick("#sites button[data-key=bytes]");
            const first = names();
            pick("#sites button[data-key=bytes]");
            const again = names();
            pick("#sites button[data-key=name]");
            return [first, again, names(), all("#sites thead th").map(head => head.getAttribute("aria-sort"))];""")
        self.assertEqual(first[:2], ["exchange at halo.c:60", "other call sites"])
        self.assertEqual(again[-2:], ["other call sites", "exchange at halo.c:60"])
        self.assertEqual(by_name[:4], ["exchange at halo.c:60", "exchange at halo.c:61", "look_up at table.c:20",
                                       "main at halo.c:42"])
        self.assertEqual(sorts[:3], ["ascending", "none", "none"])

    def test_call_sites_are_boxes_by_file_function_and_line(self):
        widths, bytes_, chosen, rest, tooltip, table = self.hand("""
            const boxes = () => Object.fromEntries(all("#sites .boxes li").map(box =>
                [box.dataset.level + " " + box.querySelector("span").innerText, Math.round(box.getBoundingClientRect().width /
                 page.querySelector("#sites .boxes").getBoundingClientRect().width * 1000) / 1000]));
            const names = () => all("#sites tbody th").map(head => head.innerText.trim());
            const widths = boxes(), tooltip = point(page.querySelector("#sites .box-name"), 5, 5);
            page.querySelector("#sites input[value=bytes]").click();
            const bytes = boxes();
            page.querySelector("#sites li[data-level='2'] .box-name").click();
            const chosen = names();
            page.querySelector("#sites .hint button").click();
            const rest = names();
            pick("#choice", "1");
            return [widths, bytes, chosen, rest.length, tooltip, names()];""")
        self.assertGreater(widths["0 halo.c"], 0.9)
        self.assertAlmostEqual(widths["1 exchange"], 12.23e6 / 12.77e6, delta=0.02)
        self.assertAlmostEqual(widths["2 fence, line 61"], 12.15e6 / 12.77e6, delta=0.02)
        self.assertEqual(bytes_["2 put, line 60"], bytes_["0 halo.c"])
        self.assertNotIn("2 fence, line 61", bytes_)
        self.assertEqual(chosen, ["exchange at halo.c:60"])
        self.assertEqual(rest, 8)
        self.assertIn("halo.c: ", tooltip)
        self.assertEqual(sorted(set(table)), ["look_up at table.c:20", "other call sites"])

    def test_windows_show_their_paths_and_reasons(self):
        halo, table = self.hand("""return all("#windows tbody tr").map(row => row.innerText.replace(/\\s+/g, " ").trim());""")
        self.assertEqual(halo, "halo created in main at halo.c:42 allocate 4 64 KiB a rank direct 40 97.7 KiB 80 µs 12.6 ms 12 ms")
        self.assertEqual(table, "table created in build at table.c:7 create 3 4 KiB to 12 KiB, 24 KiB in all promoted on 2 ranks "
                                "cma on 1 rank memory of a stack 9 6 promoted, 3 cma 72 B 13.5 µs 165 µs 100 µs")

    def test_one_window_can_be_chosen(self):
        found = self.hand("""
            const state = () => ({
                chosen: all("tr.chosen").map(row => row.dataset.window), list: page.getElementById("choice").value,
                pressed: all("button[aria-pressed=true]").length, cells: Object.keys(cells()).length,
                first: cells()["0 0"][0], put: cells()["1 2"][0], calls: all("#calls tbody th").map(head => head.innerText),
                sizes: all("#sizes .name").map(name => name.textContent),
                middle: pixel(rows, 46 + (rows.clientWidth - 52) * 0.3e6 / 11.95e6, 22 + 14)});
            const states = [state()];
            pick("button[data-window='1']");
            states.push(state());
            pick("#choice", "0");
            states.push(state());
            pick("button[data-window='0']");
            states.push(state());
            return [states, colour("cause-late-fence")];""")
        (everything, table, halo, again), late = found
        self.assertEqual(everything, again)
        self.assertEqual([everything[key] for key in ("chosen", "cells", "list", "middle")], [[], 16, "-1", late])
        self.assertEqual((table["chosen"], table["cells"], table["list"], table["pressed"]), (["1"], 9, "1", 1))
        self.assertTrue(table["first"].startswith("rank 1 → rank 1 bytes 24 B"), table)
        self.assertIn("nothing", table["put"])  # from rank 2 to 3: in the other window
        self.assertIn("nothing", halo["first"])
        self.assertIn("19.5 KiB", halo["put"])
        self.assertNotEqual(table["middle"], late)
        self.assertEqual(table["calls"], ["get", "lock", "free", "unlock", "busy lock", "rank 1", "rank 2"])
        self.assertEqual((table["sizes"], halo["sizes"], everything["sizes"]), (["get"], ["put"], ["put", "get"]))
        self.assertEqual((halo["chosen"], halo["cells"], halo["middle"]), (["0"], 16, late))

    def test_the_timeline_zooms_by_keys_and_buttons(self):
        found = self.hand("""
            const states = [range.textContent];
            key(rows, "+");
            states.push(range.textContent);
            key(rows, "+", 3);
            states.push(range.textContent);
            key(rows, "-");
            states.push(range.textContent);
            key(rows, "0");
            states.push(range.textContent);
            const [out, into, whole] = all("#timeline .buttons button");
            into.click();
            states.push(range.textContent);
            out.click();
            states.push(range.textContent);
            into.click();
            whole.click();
            states.push(range.textContent);
            return states;""")
        run = "the whole run, 11.9 ms"
        half = "2.99 ms to 8.96 ms of 11.9 ms"
        self.assertEqual(found, [run, half, "5.602 ms to 6.348 ms of 11.9 ms", "5.23 ms to 6.72 ms of 11.9 ms", run, half, run,
                                 run])

    def test_the_timeline_zooms_and_moves_by_hand(self):
        found = self.hand("""
            const box = rows.getBoundingClientRect(), states = [];
            const drag = (part, from, to) => {
                const edge = part.getBoundingClientRect();
                for (const [kind, where, x] of [["mousedown", part, from], ["mousemove", view, to], ["mouseup", view, to]])
                    where.dispatchEvent(new view.MouseEvent(kind, {bubbles: true, clientX: edge.left + x, clientY: edge.top + 9,
                                                                   view}));
            };
            const wheel = more => rows.dispatchEvent(new view.WheelEvent("wheel", {bubbles: true, cancelable: true, deltaY: -300,
                clientX: box.left + 46, clientY: box.top + 40, ...more}));
            wheel({});
            states.push(range.textContent);
            wheel({ctrlKey: true});
            states.push(range.textContent);
            drag(rows, 400, 300);
            states.push(range.textContent);
            rows.dispatchEvent(new view.MouseEvent("dblclick", {bubbles: true, clientX: box.left + 300, clientY: box.top + 40}));
            states.push(range.textContent);
            const strip = page.querySelector(".overview .overlay"), edge = strip.getBoundingClientRect();
            key(rows, "0");
            drag(strip, 100, 200);
            states.push(range.textContent);
            return [states, edge.width];""")
        (plain, wheeled, moved, doubled, brushed), width = found

        def seen(text):
            return tuple(float(part.split()[0]) * {"ms": 1, "µs": 1e-3, "ns": 1e-6}[part.split()[1]]
                         for part in text.split(" of ")[0].split(" to "))

        self.assertEqual(plain, "the whole run, 11.9 ms")  # the wheel alone scrolls the page
        begin, end = seen(wheeled)
        self.assertLess(begin, 0.1)
        self.assertTrue(1 < end < 11, wheeled)
        step = end * 100 / width
        self.assertAlmostEqual(seen(moved)[0], begin + step, delta=step / 10)
        self.assertAlmostEqual((seen(doubled)[1] - seen(doubled)[0]) * 4, end - begin, delta=0.05)
        self.assertAlmostEqual(seen(brushed)[0], 11.95 * 100 / width, delta=0.02)
        self.assertAlmostEqual(seen(brushed)[1], 11.95 * 200 / width, delta=0.02)

    def test_the_timeline_shows_events_epochs_and_waits(self):
        found = self.hand("""
            const x = ns => 46 + (rows.clientWidth - 52) * ns / 11.95e6, y = row => 22 + row * 29 + 14;
            const said = [point(rows, x(0.3e6), y(0)), point(rows, x(1.101e6), y(2)), point(rows, x(11.08e6), y(2)),
                          pixel(rows, x(0.3e6), y(1)), pixel(rows, x(0.3e6), y(3)), pixel(rows, x(0.9e6), y(1)),
                          pixel(rows, x(5e6), y(0) - 13.5), pixel(rows, x(11.4e6), y(0) - 13.5)];
            return [...said, colour("cause-late-fence"), colour("card"), colour("epoch"), key(rows, "ArrowDown"),
                    key(rows, "ArrowDown", 2), rows.dataset.detail];""")
        fence, put, lock, late_pixel, slow_pixel, idle_pixel, in_epoch, out_of_epoch, *found = found
        late, card, epoch, first, third, detail = found
        self.assertTrue(fence.startswith("rank 0: fence took 405 µs waited, late fence 400 µs for rank 3 "
                                         "called in exchange at halo.c:61 window halo"), fence)
        self.assertIn("in an epoch: fence", fence)
        self.assertTrue(put.startswith("rank 2: put 2.93 KiB → 3 took 2 µs path direct called in exchange at halo.c:60 window halo"),
                        put)
        self.assertTrue(lock.startswith("rank 2: lock took 51 µs waited, busy lock 50 µs for rank 1"), lock)
        self.assertEqual((late_pixel, slow_pixel, idle_pixel), (late, card, card))
        self.assertEqual((in_epoch, out_of_epoch), (epoch, card))
        self.assertTrue(first.startswith("rank 0") and third.startswith("rank 2"), (first, third))
        self.assertEqual(detail, "events")

    def test_histograms_count_each_call_once(self):
        found = self.hand("""
            const counts = id => all(`#${id} .bin`).map(bin => [bin.dataset.kind, bin.dataset.bin, Number(bin.dataset.count)]);
            return [counts("sizes"), counts("times"), counts("call-times"), point(page.querySelector("#sizes .bin"), 1, 1),
                    page.querySelector("#sizes").textContent];""")
        sizes, times, calls, tooltip, words = found
        self.assertEqual(sizes, [["0", "10", 10], ["0", "11", 10], ["0", "12", 20], ["1", "4", 9]])
        self.assertEqual(sum(count for _, _, count in times), 49)
        self.assertEqual(sum(count for _, _, count in calls), 44 + 7 + 7 + 3 + 3 - 3)
        self.assertTrue(tooltip.startswith("put, 512 B to 1,023 B calls 10"), tooltip)
        self.assertIn("40, median ≥ 1 KiB, 99 % ≥ 2 KiB", words)

    def test_times_are_split_in_working_and_waiting(self):
        found = self.hand("""return all("#calls tbody tr").map(row => row.innerText.replace(/\\s+/g, " ").trim());""")
        self.assertIn("put 40 97.7 KiB 80 µs 2 µs", found)
        self.assertIn("fence 44 12.2 ms 12 ms 30 400 µs", found)
        self.assertIn("lock 3 103 µs 100 µs 2 50 µs", found)
        self.assertTrue(any(row.startswith("late fence 12 ms 99.2 % a rank arrived late at MPI_Win_fence") for row in found), found)
        self.assertIn("rank 3 12 ms late fence", found)

    def test_a_narrow_screen_needs_no_scrolling_sideways(self):
        found, tops = self.hand("""
            const widths = [], tops = [];
            for (const width of [375, 800, 1300]) {
                frame.width = width;
                await until(() => view.innerWidth === width
                    && Math.abs(parseFloat(rows.style.width) - rows.parentNode.clientWidth) < 1);
                await new Promise(done => setTimeout(done, 100));
                widths.push([page.documentElement.scrollWidth, page.documentElement.clientWidth, parseFloat(rows.style.width)]);
                tops.push([...page.querySelector("#sites tbody tr").cells].map(cell => Math.round(cell.getBoundingClientRect().top)));
            }
            return [widths, tops];""")
        for needed, there, canvas in found:
            self.assertLessEqual(needed, there, found)
            self.assertLess(canvas, there)
        # A call site has its time and share below its name, then the other columns; on a wide screen all are side by side.
        name, call, calls, _, time, waiting, *_, share = tops[0]
        self.assertTrue(name < time == share < min(call, calls, waiting), tops)
        self.assertEqual(len(set(tops[2])), 1, tops)

    def test_dark_and_light_follow_the_reader_and_paper_is_light(self):
        hand = """
            const shade = () => [pixel(rows, 60, 3), pixel(heat, 50, 38),
                                 view.getComputedStyle(page.documentElement).backgroundColor];
            const screen = shade();
            view.dispatchEvent(new view.Event("beforeprint"));
            const paper = shade();
            view.dispatchEvent(new view.Event("afterprint"));
            return [screen, paper, shade()];"""
        light = self.hand(hand)
        dark = self.hand(hand, flags=["--blink-settings=preferredColorScheme=0"])
        self.assertEqual(light[0][:2], ["255 255 255"] * 2)
        for part in dark[0][:2]:
            self.assertLess(sum(map(int, part.split())), 150)
        self.assertEqual(dark[1][:2], ["255 255 255"] * 2)
        self.assertEqual(dark[2], dark[0])

    def test_paper_has_the_timeline_on_sheets_of_its_own(self):
        """Of one width and resolution, whatever the screen's, and none too high for a page."""
        self.report(self.traces(traces.busy, name="busy", ranks=40, events=40_000))
        hand = """
            view.dispatchEvent(new view.Event("beforeprint"));
            const sheets = [...page.querySelectorAll(".sheets canvas")];
            const seen = sheets.map(sheet => [Number(sheet.dataset.rows), sheet.width, sheet.height,
                                              pixel(sheet, 2, 2)]);
            const middle = [...Array(100).keys()].map(x => pixel(sheets[0], 46 + 264 + x, 22 + 4));
            view.dispatchEvent(new view.Event("afterprint"));
            const print = [...page.styleSheets].flatMap(sheet => [...sheet.cssRules])
                .filter(rule => rule.conditionText === "print").map(rule => rule.cssText).join("");
            return [seen, middle, page.querySelectorAll(".sheets canvas").length, colour("cause-late-fence"), print];"""
        for flags in ([], ["--blink-settings=preferredColorScheme=0"]):
            seen, middle, after, late, print_style = self.hand(hand, flags=flags)
            self.assertEqual([rows for rows, *_ in seen], [20, 20])
            self.assertEqual({width for _, width, *_ in seen}, {3 * 680})
            self.assertTrue(all(height <= 3 * 390 for _, _, height, *_ in seen), seen)
            self.assertEqual({pixel for *_, pixel in seen}, {"255 255 255"})
            if not flags:  # rank 0 waits in the middle third
                self.assertIn(late, middle)
            self.assertEqual(after, 0)
            self.assertRegex(print_style, r"#timeline-rows \{ display: none")

    def test_equal_values_have_a_dark_colour_and_a_legend(self):
        def write(folder, counts):
            for rank in range(4):
                file = traces.Rank(folder, rank, 4)
                file.window(0, range(4), rank, "ring")
                for put in range(counts[rank]):
                    file.event(traces.operation("put"), 1000 * put, 100, bytes_=1024, target=(rank + 1) % 4)
                file.close(100_000)
        hand = """return [cells(), page.querySelector(".ramp").innerText.replace(/\\s+/g, " ").trim(), colour("heat-4")];"""
        for name, counts, words in (("equal", (8, 8, 8, 8), "8 KiB bytes per pair: all pairs are equal"),
                                    ("similar", (8, 8, 8, 7), "7 KiB 8 KiB bytes per pair, logarithmic")):
            self.report(self.traces(write, name=name, counts=counts))
            found, legend, darkest = self.hand(hand)
            self.assertEqual(legend, words)
            self.assertEqual({found[cell][1] for cell in ("0 1", "1 2", "2 3")}, {darkest})
            dark, last = (sum(map(int, shade.split())) for shade in (darkest, found["3 0"][1]))
            self.assertLess(last - dark, 60, name)

    def test_findings_show_lines_of_the_program_and_their_rule(self):
        data = self.report(self.findings())
        sources, rules, examples = self.use("""
            const said = selector => all(selector).map(part => part.innerText);
            page.querySelectorAll("details").forEach(part => { part.open = true; });
            return [said(".source"), said(".finding dl"), said(".finding details")];""")
        self.assertEqual(sources, ["\n".join(report_page.FINDINGS["findings"][0]["source"])])
        self.assertEqual(sorted(data["rules"]), ["C1", "E1"])
        for words, rule in zip(rules, ("C1", "E1"), strict=True):
            self.assertIn(data["rules"][rule]["text"], words)
        self.assertIn(data["rules"]["E1"]["example"].strip(), examples[-1])
        self.assertIn(data["rules"]["E1"]["remedy"], examples[-1])

    def test_every_part_can_be_reached_by_the_keyboard_and_has_a_name(self):
        found = self.hand("""
            const named = part => part.getAttribute("aria-label") || part.innerText || part.labels && part.labels.length;
            const parts = all("button, select, input, a, canvas[tabindex], [role=img]");
            return [parts.length, parts.filter(part => !named(part)).map(part => part.outerHTML),
                    parts.filter(part => part.tagName === "CANVAS" && part.tabIndex !== 0).length];""")
        self.assertGreater(found[0], 15)
        self.assertEqual(found[1:], [[], 0])

    def test_without_script_a_note_says_what_to_do(self):
        found = self.use("return page.body.innerText;", frame='sandbox="allow-same-origin"', allowed="Blocked script execution")
        self.assertIn("oriel report without -o prints a summary", found)


if __name__ == "__main__":
    browser.needed()
    report_page.needed()
    unittest.main()
