"""Shared by the tests of the page of `oriel report`: pages of known runs and findings, and the
command that makes them."""

import copy
import json
import os
import subprocess
import sys

import browser
import traces

BUILD = os.environ.get("TESTS_BUILD", os.path.join(traces.ROOT, "build"))
ORIEL = os.path.join(BUILD, "bin", "oriel")
HOSTILE = "</script x></script><!-- <script><img src=x onerror=hostile()>\u2028\"'&"

# Functions for scripted use: read the tooltip at the pointer, move over cells, press keys.
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
    const one = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
        .getContext("2d", {willReadFrequently: true});
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
                found[i + " " + j] = [point(heat, 46 + 64 * j + 32, 34 + 64 * i + 32),
                                      pixel(heat, 46 + 64 * j + 6, 34 + 64 * i + 6)];
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

SITE = {"call": "MPI_Put", "rank": 1, "file": "halo.c", "line": 42, "function": "exchange", "inlined": None,
        "module": "/opt/app/ring", "offset": 4660}
FINDINGS = {
    "format": "oriel-check", "version": 3, "oriel": "0.1.0", "host": "mpich", "ranks": 4, "program": "/opt/app/ring",
    "complete": True, "local_accesses_watched": False, "findings_lost": 0,
    "not_checked": [{"what": "calls of MPI_Test", "count": 3}],
    "findings": [
        {"rule": "C1", "title": "conflicting operations without order",
         "headline": "unordered MPI_Get and MPI_Put of the same bytes",
         "window": "halo", "flavour": "allocate", "target": 2, "offset": 16, "bytes": 8, "element": 2, "elements": 1,
         "call": SITE, "other": dict(SITE, call="MPI_Get", rank=0, line=57, function="sum"),
         "opening": dict(SITE, call="MPI_Win_lock_all", line=30, function="main"),
         "help": "call MPI_Win_flush(2, win) after halo.c:57",
         "source": ["42 |     MPI_Put(row, 1, MPI_DOUBLE, 2, 2, 1, MPI_DOUBLE, win);", "   |     ^^^^^^^ writes window <halo>"],
         "detail": None, "count": 12, "ranks": [0, 1], "stack": ["exchange at halo.c:42", "main at halo.c:99"]},
        {"rule": "E1", "title": "operation in no epoch", "help": "Open one.",
         "reason": "old.supp:3: checked by hand", "window": None, "flavour": "create",
         "target": None, "offset": None, "bytes": None, "element": None, "elements": None,
         "call": dict(SITE, file=None, line=None), "other": None, "opening": None,
         "detail": "there was none", "count": 1, "ranks": [3], "stack": []}]}


def needed():
    """Ends the caller's script as a skip where Oriel was built without pages."""
    if not os.path.exists(os.path.join(BUILD, "share", "oriel", "report.html")):
        print("skipped: the HTML pages were not built; scripts/install-deps pages installs their dependencies")
        sys.exit(77)


def oriel(*arguments, **more):
    return subprocess.run([more.pop("command", ORIEL), "report", *arguments], capture_output=True, text=True, timeout=600,
                          errors="replace", check=False, **more)


class Reports(browser.Browser):
    def traces(self, write, name="traces", **more):
        folder = self.path(name)
        os.mkdir(folder)
        write(folder, **more)
        return folder

    def findings(self, value=None, name="found.json"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            json.dump(copy.deepcopy(FINDINGS) if value is None else value, file)
        return self.path(name)

    def report(self, *sources):
        """The page of these sources, and its data."""
        result = oriel(*sources, "-o", self.path())
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        with open(self.path(), encoding="utf-8") as file:
            self.page = browser.Page(file.read())
        return self.page.data()

    def known(self, **changes):
        return self.report(self.traces(traces.known, **changes))
