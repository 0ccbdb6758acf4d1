#!/usr/bin/python3
"""Runs device_observed.c under the checker, with statistics and with a trace.

test_observed.py --build FOLDER --host HOST --program PROGRAM"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(os.path.dirname(HERE), "launch")
options = None


def command(environment, how, *program):
    environment.update(LD_LIBRARY_PATH=os.path.join(options.build, "tests", "gpu", "standin"), STANDIN_STRICT="1")
    env = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    return [LAUNCH, "--build", options.build, "--host", options.host, "-n", "2", "--timeout", "60", *how, *env, "--", *program]


class Observed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="oriel-gpu.")
        self.addCleanup(self.folder.cleanup)

    def launch(self, *before, status=0, arguments=(), how=(), **environment):
        job = subprocess.run(command(environment, how, *before, options.program, *arguments), capture_output=True, text=True)
        self.assertEqual(job.returncode, status, job.stdout + job.stderr)
        self.assertIn("done", job.stdout)
        return job.stdout + job.stderr

    def check(self, **more):
        path = os.path.join(self.folder.name, "findings.json")
        oriel = os.path.join(options.build, "bin", "oriel")
        text = self.launch(oriel, "check", "--host", options.host, "--json", path, how=["--plain"], **more)
        with open(path, encoding="utf-8") as file:
            return text, json.load(file)["findings"]

    def test_no_false_alarms(self):
        text, findings = self.check()
        self.assertEqual(findings, [], text)

    def test_mistakes_on_device_memory(self):
        text, findings = self.check(arguments=["offend"], status=86)
        found = {(finding["rule"], finding["window"], finding["device"]) for finding in findings}
        # what both ranks do is one finding, of the rank that was first
        self.assertIn(found, [{("A1", "refused", a), ("C1", "shared", 0), ("C4", None, b)} for a in (0, 1) for b in (0, 1)], text)
        self.assertNotIn("gave class", text)
        words = " ".join(text.replace("|", " ").split())
        self.assertIn("rank 0, in device memory of GPU 0, elements 40 to 43 (bytes 320 to 351)", words)
        self.assertRegex(words, r"rank ([01]), in device memory of GPU \1, element 64 ")
        self.assertRegex(words, "writes the buffer in device memory of GPU [01]")

    def test_statistics(self):
        path = os.path.join(self.folder.name, "statistics.json")
        self.launch(ORIEL_STATS=path)
        with open(path, encoding="utf-8") as file:
            shared, unshared = json.load(file)["windows"]
        for window, path in ((shared, "gpu"), (unshared, "agent")):
            self.assertEqual([name for name, sums in window["paths"].items() if sums["count"]], [path])
        self.assertIn("POSIX file descriptor", json.dumps(unshared))
        self.assertNotIn("POSIX file descriptor", json.dumps(shared))

    def test_top(self):
        with subprocess.Popen(command({"ORIEL_WATCH": "1"}, [], options.program, "idle"), stdout=subprocess.PIPE, text=True) as job:
            try:
                self.assertEqual(job.stdout.readline(), "idle\n")
                oriel = os.path.join(options.build, "bin", "oriel")
                seen = subprocess.run([oriel, "top", "--once", "--json", str(job.pid)], capture_output=True, text=True)
                self.assertEqual(seen.returncode, 0, seen.stderr)
                [found] = json.loads(seen.stdout)["jobs"]
                self.assertEqual([(rank["operations"], rank["bytes"]) for rank in found["ranks"]], [(3, 96), (3, 96)])
                self.assertEqual([window["window"] for window in found["windows"]], ["shared"])
            finally:
                job.terminate()

    def test_verbose(self):
        text = self.launch(ORIEL_VERBOSE="1")
        self.assertIn("other ranks reach its memory by gpu", text)
        self.assertIn("by agent; no better path: gpu: other processes cannot map", text)

    def test_trace(self):
        self.launch(ORIEL_TRACE=os.path.join(self.folder.name, "trace"))
        oriel = os.path.join(options.build, "bin", "oriel")
        report = subprocess.run([oriel, "report", os.path.join(self.folder.name, "trace")], capture_output=True, text=True)
        self.assertEqual(report.returncode, 0, report.stderr)
        for path in ("gpu", "agent"):
            self.assertRegex(report.stdout, rf"(?m)^  {path} +6 ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("build", "host", "program"):
        parser.add_argument("--" + name, required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
