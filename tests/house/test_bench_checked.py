"""bench/checked and its program: every row has figures, and the script notices wrong data and
findings.

Only the row house.checked compares figures. These tests use made-up ones."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["TESTS_BUILD"]
CC = os.environ["TESTS_CC"]
HOSTS = os.environ["TESTS_HOSTS"].split(",")
TOOL = str(ROOT / "bench" / "checked")

# Some operations do nothing, and report success.
LOSING = """
static long n;
static int is_lost(void) { n++; return %s; }
#define LIST(what) what a, what b, what c, what d, what e, what f, what g
int PMPI_Put(LIST(long), long h);
int MPI_Put(LIST(long), long h) { return is_lost() ? 0 : PMPI_Put(a, b, c, d, e, f, g, h); }
int PMPI_Fetch_and_op(LIST(long));
int MPI_Fetch_and_op(LIST(long)) { return is_lost() ? 0 : PMPI_Fetch_and_op(a, b, c, d, e, f, g); }
"""
LOSING_GETS = """
static long n;
#define LIST(what) what a, what b, what c, what d, what e, what f, what g, what h
int PMPI_Get(LIST(long));
int MPI_Get(LIST(long)) { return ++n % 10 == 0 ? 0 : PMPI_Get(a, b, c, d, e, f, g, h); }
"""
# The data is nevertheless correct in shared memory.
NOT_FLUSHING = """
int MPI_Win_flush(int rank, long win) { (void)rank; (void)win; return 0; }
"""


def tool():
    loader = importlib.machinery.SourceFileLoader("checked", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("checked", loader))
    loader.exec_module(module)
    return module


CHECKED = tool()


class Checked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-checked.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def library(self, source):
        (self.folder / "mpi.c").write_text(source, encoding="utf-8")
        built = self.folder / "mpi.so"
        subprocess.run([CC, "-shared", "-fPIC", "-o", built, self.folder / "mpi.c"], check=True)
        return str(built)

    def measured(self, *arguments, **changes):
        """Status, and title -> words of the row for each host's table."""
        result = subprocess.run([TOOL, "--runs", "1", "--repeat", "20", "--milliseconds", "10", "--ranks", "2",
                                 "--limit", "500", *arguments],
                                env=dict(os.environ, BUILD=BUILD, **changes), capture_output=True, text=True, timeout=600,
                                stdin=subprocess.DEVNULL, check=False)
        rows = [[word.strip() for word in line.strip("|").split("|")] for line in result.stdout.splitlines()
                if line.startswith("| ") and not line.startswith(("|  |", "| ---"))]
        return result, rows

    def wrong(self, source):
        """The patterns that report wrong data with a library of this source in front."""
        result = subprocess.run([str(ROOT / "tests" / "launch"), "--build", BUILD, "--host", HOSTS[0], "-n", "2", "--env",
                                 "LD_PRELOAD=" + self.library(source), os.path.join(BUILD, "bench", HOSTS[0], "checked"), "10"],
                                capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False)
        output = dict(re.findall(r"^(\S+) ([0-9.]+ [0-9.]+|WRONG)$", result.stdout, re.M))
        self.assertEqual(list(output), list(CHECKED.OPERATIONS), result.stderr)
        return {name for name, word in output.items() if word == "WRONG"}

    def test_every_row_has_its_figures(self):
        result, rows = self.measured()
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        titles = ["a word of the demo, 2 ranks"] + [title for title, _, _ in CHECKED.OPERATIONS.values()]
        self.assertEqual([row[0] for row in rows], titles * len(HOSTS))
        for row in rows:
            self.assertRegex(" ".join(row[1:6]), r"^([0-9.]+ [nu]s ){2}-?[0-9.]+ [nu]s [0-9.]+ [0-9.]+ to [0-9.]+$")

    def test_findings_are_wrong(self):
        result, rows = self.measured("--hosts", HOSTS[0], LD_PRELOAD=self.library(NOT_FLUSHING))
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertEqual({row[1] for row in rows}, {"WRONG"}, result.stdout)
        self.assertIn("oriel check: ", result.stderr)

    def test_operations_that_do_nothing_are_noticed(self):
        self.assertEqual(self.wrong(LOSING % "1"), {name for name in CHECKED.OPERATIONS if not name.startswith("get-")})

    def test_every_tenth_lost_is_noticed_but_under_a_later_one(self):
        under = {"put-8-same", "put-64k-same", "put-1m-same"}
        wanted = {name for name in CHECKED.OPERATIONS if name.startswith(("put-", "add-"))} - under
        self.assertLessEqual(wanted, self.wrong(LOSING % "n % 10 == 0"))
        self.assertLessEqual({name for name in CHECKED.OPERATIONS if name.startswith("get-")}, self.wrong(LOSING_GETS))

    def test_a_checked_job_is_clean_with_one_summary_of_nothing(self):
        def clean(errors, status=0, checked=True, lines=()):
            return CHECKED.is_clean(types.SimpleNamespace(status=status, errors=errors, lines=lines), 2, checked)
        nothing = "oriel check: no problems on 2 ranks; local accesses were not watched\n"
        self.assertTrue(clean(nothing))
        self.assertTrue(clean("the host's own words\n", checked=False))
        self.assertFalse(clean(""))
        self.assertFalse(clean(nothing, status=1))
        self.assertFalse(clean(nothing, status=None))
        self.assertFalse(clean(nothing, checked=False))
        self.assertFalse(clean(nothing, lines=["put-8-same 1.00 1.00", "put-8-next WRONG"]))
        self.assertFalse(clean(nothing.replace("on 2", "on 1")))
        self.assertFalse(clean("oriel check: no problems on this node; the program ended without MPI_Finalize; \n"))
        self.assertFalse(clean("oriel check: 1 problem (3 occurrences) on 2 ranks\n"))

    def test_the_best_pair_decides_about_the_promise(self):
        def kept(pairs, times, more_ns):
            return CHECKED.is_kept(CHECKED.Row("", pairs, None, times, more_ns))
        self.assertTrue(kept([(10.0, 31.0), (10.0, 29.0)], 3.0, None))
        self.assertFalse(kept([(10.0, 31.0), (10.0, 30.5)], 3.0, None))
        self.assertTrue(kept([(10.0, 2500.0), (10.0, 2005.0)], None, 2000.0))
        self.assertFalse(kept([(10.0, 2500.0), (10.0, 2015.0)], None, 2000.0))
        self.assertFalse(CHECKED.is_kept(CHECKED.Row("", [], "WRONG", 3.0, None)))


if __name__ == "__main__":
    unittest.main()
