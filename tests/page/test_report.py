"""The page of `oriel report` in a browser: the heat map has the cells of a known program, zoom and the choice of a window work, a
million operations stay readable, nothing in the data is run."""

import os
import unittest

import browser
import report
import traces
from report import FINDINGS, HOSTILE

# What the hand does with the page: tells what the box at the pointer says, goes over cells, presses keys.
TOOLS = """
    const view = frame.contentWindow, told = () => all(".box").map(box => box.innerText.replace(/\\s+/g, " ").trim()).join();
    const point = (part, x, y, kind = "pointermove", more = {}) => {
        const box = part.getBoundingClientRect();
        part.dispatchEvent(new view.PointerEvent(kind, {bubbles: true, clientX: box.left + x, clientY: box.top + y, ...more}));
        return told();
    };
    const key = (part, name, times = 1) => {
        part.focus({preventScroll: true});
        for (; times > 0; times--)
            part.dispatchEvent(new view.KeyboardEvent("keydown", {key: name, bubbles: true}));
        return told();
    };
    const one = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d", {willReadFrequently: true});
    const pixel = (canvas, x, y) => {
        const scale = canvas.width / parseFloat(canvas.style.width);
        one.clearRect(0, 0, 1, 1);
        one.drawImage(canvas, -Math.round(x * scale), -Math.round(y * scale));
        return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3).join(" ");
    };
    const colour = name => {
        const hex = view.getComputedStyle(page.documentElement).getPropertyValue("--" + name).trim();
        return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16)).join(" ");
    };
    const heat = page.getElementById("heat"), rows = page.getElementById("timeline-rows"), range = page.getElementById("range");
    const cells = () => { /* by the cursor: what each says, and the colour in its corner */
        const found = {}, count = Math.round((parseFloat(heat.style.width) - 46 - 44 - 8) / 64);
        for (let i = 0; i < count; i++)
            for (let j = 0; j < count; j++)
                found[i + " " + j] = [point(heat, 46 + 64 * j + 32, 34 + 64 * i + 32), pixel(heat, 46 + 64 * j + 6, 34 + 64 * i + 6)];
        point(heat, 1, 1);
        return found;
    };
    const pick = (selector, value) => {
        const part = page.querySelector(selector);
        if (value === undefined)
            part.click();
        else {
            part.value = value;
            part.dispatchEvent(new view.Event("change", {bubbles: true}));
        }
    };
    await until(() => range.textContent);
"""


class Known(report.Reports):
    def setUp(self):
        super().setUp()
        self.data = self.known()

    def hand(self, script, **more):
        return self.use(TOOLS + script, **more)

    def test_it_loads_without_a_word_on_the_console(self):
        read = self.open()  # which looks at the console
        self.assertEqual(read.all("html")[0].get("data-drawn"), "5")
        shown = read.shown()
        for text in ("ring: one-sided communication", "Machines 2", "MPICH", "within 200 ns",
                     "main at halo.c:42", "memory of a stack", "late fence", "busy lock"):
            self.assertIn(text, shown)
        for _, attributes in read.elements:
            for name in ("d", "x", "y", "width", "height", "transform", "x1", "x2", "y1", "y2"):
                self.assertNotIn("NaN", attributes.get(name) or "", attributes)

    def test_heat_map_has_the_cells_of_the_program(self):
        found, card = self.hand("return [cells(), colour('card')];")
        self.assertEqual(len(found), 16)
        put = {(0, 1): "9.77 KiB", (1, 2): "19.5 KiB", (2, 3): "29.3 KiB", (3, 0): "39.1 KiB"}
        got = {(1, 1): "24 B", (2, 1): "24 B", (3, 1): "24 B"}
        for place, (told, shade) in found.items():
            origin, target = map(int, place.split())
            words = {**put, **got}.get((origin, target), "nothing")
            self.assertTrue(told.startswith(f"rank {origin} → rank {target} bytes {words}"), told)
            self.assertEqual(shade == card, words == "nothing", (place, shade))
        shades = [sum(map(int, found[f"{origin} {target}"][1].split())) for origin, target in ((1, 1), (0, 1), (1, 2), (2, 3), (3, 0))]
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
        self.assertTrue(waiting["0 3"][0].startswith("rank 0 waits for rank 3 time waited 4 ms of rank 0 4 ms of all for rank 3 12 ms"))
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

    def test_windows_tell_their_paths_and_reasons(self):
        halo, table = self.hand("""return all("#windows tbody tr").map(row => row.innerText.replace(/\\s+/g, " ").trim());""")
        self.assertEqual(halo, "halo made by main at halo.c:42 allocate 4 64 KiB a rank direct 40 97.7 KiB 80 µs 12.6 ms 12 ms")
        self.assertEqual(table, "table made by build at table.c:7 create 3 4 KiB to 12 KiB, 24 KiB in all promoted on 2 ranks cma on "
                                "1 rank memory of a stack 9 6 promoted, 3 cma 72 B 13.5 µs 165 µs 100 µs")

    def test_one_window_can_be_chosen(self):
        found = self.hand("""
            const state = () => ({chosen: all("tr.chosen").map(row => row.dataset.window), list: page.getElementById("choice").value,
                pressed: all("button[aria-pressed=true]").length, cells: Object.keys(cells()).length, first: cells()["0 0"][0], put: cells()["1 2"][0],
                calls: all("#calls tbody th").map(head => head.innerText), sizes: all("#sizes .name").map(name => name.textContent),
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
        self.assertEqual((everything["chosen"], everything["cells"], everything["list"], everything["middle"]), ([], 16, "-1", late))
        self.assertEqual((table["chosen"], table["cells"], table["list"], table["pressed"]), (["1"], 9, "1", 1))
        self.assertTrue(table["first"].startswith("rank 1 → rank 1 bytes 24 B"), table)
        self.assertIn("nothing", table["put"])  # from rank 2 to 3: the other window's
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
        self.assertEqual(found, [run, half, "5.602 ms to 6.348 ms of 11.9 ms", "5.23 ms to 6.72 ms of 11.9 ms", run, half, run, run])

    def test_the_timeline_zooms_and_moves_by_hand(self):
        found = self.hand("""
            const box = rows.getBoundingClientRect(), states = [];
            const wheel = more => rows.dispatchEvent(new view.WheelEvent("wheel", {bubbles: true, cancelable: true, deltaY: -300,
                clientX: box.left + 46, clientY: box.top + 40, ...more}));
            wheel({});
            states.push(range.textContent);
            wheel({ctrlKey: true});
            states.push(range.textContent);
            rows.dispatchEvent(new view.MouseEvent("mousedown", {bubbles: true, clientX: box.left + 400, clientY: box.top + 40, view}));
            view.dispatchEvent(new view.MouseEvent("mousemove", {bubbles: true, clientX: box.left + 300, clientY: box.top + 40, view}));
            view.dispatchEvent(new view.MouseEvent("mouseup", {bubbles: true, clientX: box.left + 300, clientY: box.top + 40, view}));
            states.push(range.textContent);
            rows.dispatchEvent(new view.MouseEvent("dblclick", {bubbles: true, clientX: box.left + 300, clientY: box.top + 40}));
            states.push(range.textContent);
            const strip = page.querySelector(".overview .overlay"), edge = strip.getBoundingClientRect();
            key(rows, "0");
            strip.dispatchEvent(new view.MouseEvent("mousedown", {bubbles: true, clientX: edge.left + 100, clientY: edge.top + 9, view}));
            view.dispatchEvent(new view.MouseEvent("mousemove", {bubbles: true, clientX: edge.left + 200, clientY: edge.top + 9, view}));
            view.dispatchEvent(new view.MouseEvent("mouseup", {bubbles: true, clientX: edge.left + 200, clientY: edge.top + 9, view}));
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

    def test_the_timeline_tells_events_epochs_and_waits(self):
        found = self.hand("""
            const x = ns => 46 + (rows.clientWidth - 52) * ns / 11.95e6, y = row => 22 + row * 29 + 14;
            const said = [point(rows, x(0.3e6), y(0)), point(rows, x(1.101e6), y(2)), point(rows, x(11.08e6), y(2)),
                          pixel(rows, x(0.3e6), y(1)), pixel(rows, x(0.3e6), y(3)), pixel(rows, x(0.9e6), y(1)),
                          pixel(rows, x(5e6), y(0) - 13.5), pixel(rows, x(11.4e6), y(0) - 13.5)];
            return [...said, colour("cause-late-fence"), colour("card"), colour("epoch"), key(rows, "ArrowDown"), key(rows, "ArrowDown", 2),
                    rows.dataset.detail];""")
        fence, put, lock, late_pixel, slow_pixel, idle_pixel, in_epoch, out_of_epoch, late, card, epoch, first, third, detail = found
        self.assertTrue(fence.startswith("rank 0: fence took 405 µs waited, late fence 400 µs for rank 3 window halo"), fence)
        self.assertIn("in an epoch: fence", fence)
        self.assertTrue(put.startswith("rank 2: put 2.93 KiB → 3 took 2 µs path direct window halo"), put)
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
        sizes, times, calls, told, words = found
        self.assertEqual(sizes, [["0", "10", 10], ["0", "11", 10], ["0", "12", 20], ["1", "4", 9]])
        self.assertEqual(sum(count for _, _, count in times), 49)
        self.assertEqual(sum(count for _, _, count in calls), 44 + 7 + 7 + 3 + 3 - 3)
        self.assertTrue(told.startswith("put, 512 B to 1,023 B calls 10"), told)
        self.assertIn("40, median ≥ 1 KiB, 99 % ≥ 2 KiB", words)

    def test_times_are_split_in_working_and_waiting(self):
        found = self.hand("""return all("#calls tbody tr").map(row => row.innerText.replace(/\\s+/g, " ").trim());""")
        self.assertIn("put 40 97.7 KiB 80 µs 2 µs", found)
        self.assertIn("fence 44 12.2 ms 12 ms 30 400 µs", found)
        self.assertIn("lock 3 103 µs 100 µs 2 50 µs", found)
        self.assertTrue(any(row.startswith("late fence 12 ms 99.2 % a rank came late to MPI_Win_fence") for row in found), found)
        self.assertIn("rank 3 12 ms late fence", found)

    def test_a_narrow_screen_needs_no_scrolling_sideways(self):
        found = self.hand("""
            const widths = [];
            for (const width of [375, 800, 1300]) {
                frame.width = width;
                await until(() => Math.abs(parseFloat(rows.style.width) - rows.parentNode.clientWidth) < 1 && view.innerWidth === width);
                await new Promise(done => setTimeout(done, 100));
                widths.push([page.documentElement.scrollWidth, page.documentElement.clientWidth, parseFloat(rows.style.width)]);
            }
            return widths;""")
        for needed, there, canvas in found:
            self.assertLessEqual(needed, there, found)
            self.assertLess(canvas, there)

    def test_dark_and_light_follow_the_reader_and_paper_is_light(self):
        hand = """
            const shade = () => [pixel(rows, 60, 3), pixel(heat, 50, 38), view.getComputedStyle(page.documentElement).backgroundColor];
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

    def test_every_part_can_be_reached_by_the_keyboard_and_has_a_name(self):
        found = self.hand("""
            const named = part => part.getAttribute("aria-label") || part.innerText || part.labels && part.labels.length;
            const parts = all("button, select, input, a, canvas[tabindex], [role=img]");
            return [parts.length, parts.filter(part => !named(part)).map(part => part.outerHTML),
                    parts.filter(part => part.tagName === "CANVAS" && part.tabIndex !== 0).length];""")
        self.assertGreater(found[0], 15)
        self.assertEqual(found[1:], [[], 0])

    def test_without_script_it_says_what_to_do(self):
        found = self.use("return page.body.innerText;", frame='sandbox="allow-same-origin"', allowed="Blocked script execution")
        self.assertIn("oriel report without -o prints a summary", found)


class Large(report.Reports):
    def test_a_million_operations_are_readable(self):
        data = self.report(self.traces(traces.busy))
        self.assertGreater(data["run"]["events"], 1_000_000)
        self.assertLess(os.path.getsize(self.path()), 12_000_000)
        operations = sum(row[0] for window in data["windows"] for row in window["operations"])
        self.assertEqual(operations, sum(sum(window["pairs"]["operations"]) for window in data["windows"]))
        self.assertEqual(operations, sum(sum(window["bins"]["operations"]) for window in data["windows"]))
        self.assertEqual(len(data["events"]["kind"]) + data["events"]["left_out"], data["run"]["events"])
        self.assertGreaterEqual(min(data["events"]["duration"]), data["events"]["longest_left_out"])
        found = self.use(TOOLS + """
            const x = share => 46 + (rows.clientWidth - 52) * share, states = [[rows.dataset.detail, point(rows, x(0.2), 22 + 7)]];
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
        self.assertIn("30,000 events have their own times here", words)

    def test_many_ranks_and_windows_are_taken_together(self):
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
        self.assertIn("Each row stands for 3 ranks", found[4])


class Odd(report.Reports):
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
        self.assertEqual(read.all("html")[0].get("data-drawn"), "6")
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

    def test_what_is_missing_stands_at_the_top(self):
        folder = self.traces(traces.known)
        with open(os.path.join(folder, "rank-2.oriel"), "r+b") as file:
            file.truncate(os.path.getsize(file.name) - 200)
        os.remove(os.path.join(folder, "rank-3.oriel"))
        result = report.oriel(folder, "-o", self.path())
        self.assertEqual(result.returncode, 0)
        self.assertIn("rank-2.oriel", result.stderr)
        shown = self.open().shown()
        self.assertIn("Traces of 3 of 4 ranks are there.", shown)
        self.assertIn("1 rank with something missing", shown)
        self.assertIn("did not come to MPI_Finalize", shown)

    def test_dropped_events_stand_at_the_top(self):
        def write(folder):
            file = traces.Rank(folder, 0, 1)
            file.window(0, [0], 0, "w")
            file.event(traces.operation("put"), 0, 100, bytes_=8, target=0)
            file.close(1000, dropped=17)
        self.report(self.traces(write))
        self.assertIn("17 events were dropped while the program ran, besides the 1 that are here", self.open().shown())

    def test_a_run_without_windows_or_events_is_a_page_too(self):
        for name, windows in (("none", 0), ("idle", 1)):
            def write(folder, windows=windows):
                file = traces.Rank(folder, 0, 1)
                if windows:
                    file.window(0, [0], 0, "idle")
                    file.event(traces.call("create"), 5, 0)
                file.close(1000)
            result = report.oriel(self.traces(write, name), "-o", self.path())
            if result.returncode == 0:
                self.assertIn("data-drawn", self.open().all("html")[0])
            else:
                self.assertRegex(result.stderr, r"^oriel: .*\n$")
        self.assertEqual(result.returncode, 0)


class Found(report.Reports):
    def test_findings_alone_make_a_page(self):
        self.report(self.findings())
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "1")
        shown = read.shown()
        for text in ("C1 conflicting operations without order", "“halo” (allocate), target rank 2, bytes 16 to 23, element 2",
                     "rank 1: MPI_Put at halo.c:42 in exchange", "Before it rank 0: MPI_Get at halo.c:57 in sum",
                     "Epoch opened rank 1: MPI_Win_lock_all at halo.c:30 in main", "MPI_Win_flush(2, win) between them",
                     "Give each rank a place of its own.", "12 times, by ranks 0, 1", "main at halo.c:99",
                     "without a name (create)", "offset 0x1234 of /opt/app/ring", "there was none", "1 time, by rank 3",
                     "Not looked at: calls of MPI_Test (3).", "compile it with -fsanitize=thread"):
            self.assertIn(text, shown)

    def test_findings_and_traces_share_a_page(self):
        data = self.report(self.traces(traces.known), self.findings())
        self.assertEqual((len(data["windows"]), len(data["check"]["findings"])), (2, 2))
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "6")
        self.assertIn("2 findings", read.shown())

    def test_findings_with_nothing_but_a_rule_are_shown(self):
        self.report(self.findings({"format": "oriel-check", "version": 1, "findings": [{"rule": "C1", "title": "odd", "ranks": 7,
                                                                                      "call": "text", "stack": {}, "count": "x"}]}))
        self.assertIn("C1 odd", self.open().shown())


if __name__ == "__main__":
    browser.needed()
    report.needed()
    unittest.main()
