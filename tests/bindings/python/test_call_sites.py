"""Findings, statistics and traces name lines of Python.

Arguments: the build folder, and the host."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from host import mpi4py_host

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "mistaken.py")
BUILD, HOST = sys.argv[1:3]
ORIEL = os.path.join(BUILD, "bin", "oriel")
STATUS = 86
SKIP = 77


def mpi4py_is_here():
    try:
        return mpi4py_host() == HOST
    except ImportError:
        return False


def marks(word):
    """The lines that a comment with this word marks, with its other words."""
    with open(PROGRAM, encoding="utf-8") as file:
        return [(number, found.group(1).split()) for number, line in enumerate(file, 1)
                if (found := re.search(rf"# {word} (.+)$", line))]


def job(*command, program=(PROGRAM,)):
    done = subprocess.run([os.path.join(HERE, "../../launch"), "--build", BUILD, "--host", HOST, "-n", "2", "--plain",
                           "--env", "PYTHONDONTWRITEBYTECODE=1", "--env", f"PYTHONPATH={BUILD}/share/oriel/python",
                           "--", ORIEL, *command, "/usr/bin/python3", *program],
                          capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


@unittest.skipUnless(mpi4py_is_here(), "no mpi4py for this host")
class Mpi4py(unittest.TestCase):
    def test_findings(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "found.json")
            status, text = job("check", "--json", path)
            self.assertEqual(status, STATUS, text)
            with open(path, encoding="utf-8") as file:
                found = json.load(file)["findings"]
        sites = {(site["line"], finding["rule"], site["function"]) for finding in found
                 for site in (finding["call"], finding["other"]) if site and site["file"].endswith("mistaken.py")}
        for line, (rule, function) in marks("FINDS"):
            self.assertIn((line, rule, function), sites, text)
            self.assertIn(f"mistaken.py:{line} in {function}", text)
        self.assertIn("local accesses were not watched; Python processes, whose loads and stores of NumPy "
                      "arrays are not watched (2)", text)

    def test_statistics_and_traces(self):
        (line, (function,)), = marks("CREATES")
        calls = marks("CALLS")
        with tempfile.TemporaryDirectory() as folder:
            _, text = job("run", "--stats", f"--trace={folder}")
            report = subprocess.run([ORIEL, "report", folder], capture_output=True, text=True, timeout=600, check=True).stdout
        for shown in text, report:
            self.assertIn(f"created in {function} at mistaken.py:{line}", shown)
            for number, (call, place) in calls:
                self.assertRegex(shown, rf" +2 [^\n]*{call} in {place} at mistaken.py:{number}\n")
        self.assertEqual(len(calls), 4)


class HeldLock(unittest.TestCase):
    """A thread in a call of MPI may hold the interpreter's lock until another thread's call. A
    library in a folder mpi4py counts as a binding, whose lines are looked up."""

    def test_no_thread_waits_for_the_lock(self):
        compiler = shutil.which(f"mpicc.{HOST}") or shutil.which("mpicc")
        if compiler is None:
            self.skipTest("no mpicc")
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "mpi4py", "held_lock.so")
            os.mkdir(os.path.dirname(library))
            subprocess.run([compiler, "-shared", "-fPIC", "-o", library, os.path.join(HERE, "held_lock.c")], check=True)
            status, text = job("check", program=(os.path.join(HERE, "held_lock.py"), library))
        if status == SKIP:
            self.skipTest("no MPI_THREAD_MULTIPLE")
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count("arrived"), 2, text)
        self.assertIn("no problems on 2 ranks", text)


unittest.main(argv=sys.argv[:1])
