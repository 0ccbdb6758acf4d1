"""scripts/test-status: the page and the README's line come from CTest's results, whole runs only; the
table of hosts comes from those of scripts/test-hosts, which skips releases that cannot be had."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASE = '<testcase name="{}" status="{}">{}<system-out>{}</system-out></testcase>'
CASES = [("mpi.put.mpich.2.oriel", "run", "", ""), ("mpi.get.mpich.2.oriel", "fail", "", "lost"),
         ("unit.a", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "1\nskipped: no valgrind\n"),
         ("unit.b", "notrun", '<skipped message="Unable to find executable"/>', "")]


class Status(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-status.")
        self.addCleanup(folder.cleanup)
        self.root, self.build = pathlib.Path(folder.name), pathlib.Path(folder.name) / "build"
        os.makedirs(self.root / "docs")
        os.makedirs(self.build / "bin")
        shutil.copy(ROOT / "README.md", self.root)
        shutil.copy(ROOT / "docs" / "test-status.md", self.root / "docs")
        os.symlink(pathlib.Path(os.environ["TESTS_BUILD"]) / "bin" / "oriel", self.build / "bin" / "oriel")

    def run_on(self, cases, quick):
        """The rows that make test runs are those of a CTest folder with that number of them."""
        (self.build / "CTestTestfile.cmake").write_text("".join(
            f'add_test(t{i} "true")\nset_tests_properties(t{i} PROPERTIES LABELS quick)\n' for i in range(quick)))
        (self.build / "tests.xml").write_text('<testsuite timestamp="2026-01-02T03:04:05">' +
                                              "".join(CASE.format(*case) for case in cases) + "</testsuite>")
        return subprocess.run([ROOT / "scripts" / "test-status", self.build, "--commit", "abcdef12", "--root", self.root],
                              capture_output=True, text=True, check=False)

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def test_counts_and_reasons(self):
        done = self.run_on(CASES, 4)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        page = self.text("docs/test-status.md")
        for line in ("| commit | `abcdef12` |", "| date | 2026-01-02 |", "| rows | 4 |", "| passed | 1 |", "| skipped | 1 |",
                     "| failed | 2 |", "| `mpi` | 2 | 1 | 0 | 1 |", "| `unit.a` | no valgrind |", "| `unit.b` |"):
            self.assertIn(line + "\n", page)
        self.assertIn("## Other checks", page)
        self.assertIn("commit `abcdef12`, 2026-01-02, 4 rows, 1 passed, 1 skipped,\n2 failed", self.text("README.md"))

    def test_a_part_of_a_run_is_refused(self):
        before = self.text("docs/test-status.md")
        done = self.run_on(CASES, 5)
        self.assertEqual((done.returncode, self.text("docs/test-status.md")), (1, before))
        self.assertRegex(done.stderr, "^test-status: .*tests.xml has 4 rows, and make test runs 5: run make test first\n$")

    def test_no_results(self):
        done = subprocess.run([ROOT / "scripts" / "test-status", self.build], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^test-status: cannot read .*; make test writes it\n$")

    def test_readme_and_page_are_of_one_run(self):
        page = (ROOT / "docs" / "test-status.md").read_text(encoding="utf-8")
        commit = re.search(r"\| commit \| (`\w+`) \|", page).group(1)
        date = re.search(r"\| date \| (\S+) \|", page).group(1)
        self.assertIn(f"commit {commit}, {date}, ", (ROOT / "README.md").read_text(encoding="utf-8"))


class Hosts(unittest.TestCase):
    """The scripts in a tree of their own, with a testroot that makes no system. What it does for a
    release is in the file of that name: the status of commands, then the answer of `oriel info`."""

    TESTROOT = """#!/bin/sh
echo "$*" >> calls
[ "$1" != --user ] || shift
. ./"$1"
[ "$status" != 77 ] || { echo "skipped: no mirror"; exit 77; }
case "$*" in *info*) echo "$info" ;; esac
exit $status
"""
    OLD = "| MPICH | 4.0.2 | bookworm | root | 9 | 9 |  | 2025-01-01 |"
    CASES = [("mpi.put.mpich.2.oriel", "run", "", ""), ("mpi.put.openmpi.2.oriel", "fail", "", ""), ("unit.a", "run", "", ""),
             ("mpi.put.abi-mpich.2.oriel", "notrun", '<skipped message="SKIP_RETURN_CODE=77"/>', "skipped: no a")]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-hosts.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        os.makedirs(self.root / "docs")
        os.makedirs(self.root / "scripts")
        for name in ("test-status", "test-hosts"):
            shutil.copy(ROOT / "scripts" / name, self.root / "scripts")
        self.write("scripts/testroot", self.TESTROOT)
        os.chmod(self.root / "scripts" / "testroot", 0o755)
        self.write("docs/compatibility.md", "Before.\n<!-- made by scripts/test-status -->\n\n" + self.OLD +
                   "\n\n<!-- the end of what scripts/test-status makes -->\nAfter.\n")
        self.has("trixie", 77)
        self.has("sid", 0)

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def has(self, release, status):
        """A release whose commands have this status, with results of root and of a user."""
        self.write(release, f"""status={status} info='{{"hosts": [{{"name": "mpich", "version": "MPICH 5.0.2"}},
            {{"name": "openmpi", "version": null}}, {{"name": "abi", "version": "1.0"}}]}}'\n""")
        build = self.root / "roots" / release / "srv" / "oriel" / "build"
        os.makedirs(build, exist_ok=True)
        for name, cases in (("tests.xml", self.CASES), ("tests-user.xml", self.CASES[:1])):
            (build / name).write_text('<testsuite timestamp="2026-01-02T03:04:05">' +
                                      "".join(CASE.format(*case) for case in cases) + "</testsuite>")

    def run_script(self, name, *words):
        environment = dict(os.environ, TEST_ROOTS=str(self.root / "roots"))
        return subprocess.run([self.root / "scripts" / name, *words], capture_output=True, text=True, check=False,
                              cwd=self.root, env=environment)

    def page(self):
        return (self.root / "docs" / "compatibility.md").read_text(encoding="utf-8")

    def calls(self):
        return (self.root / "calls").read_text(encoding="utf-8")

    def test_a_line_for_each_host_and_user(self):
        done = self.run_script("test-status", "--hosts", "sid")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = self.page().splitlines()
        self.assertEqual((lines[0], lines[-1]), ("Before.", "After."))
        self.assertEqual([line for line in lines if line.startswith("|")][2:], [
            self.OLD,
            "| MPICH | 5.0.2 | sid | root | 2 | 2 |  | 2026-01-02 |",
            "| Open MPI | unknown | sid | root | 2 | 1 | failed: `mpi.put.openmpi.2.oriel` | 2026-01-02 |",
            "| standard ABI on MPICH | 5.0.2 | sid | root | 1 | 0 | 1 skipped: no a | 2026-01-02 |",
            "| MPICH | 5.0.2 | sid | user | 1 | 1 |  | 2026-01-02 |"])
        first = self.page()
        self.assertEqual((self.run_script("test-status", "--hosts", "sid").returncode, self.page()), (0, first))

    def test_a_release_without_a_system_or_results(self):
        before = self.page()
        done = self.run_script("test-status", "--hosts", "trixie")
        self.assertEqual((done.returncode, self.page()), (1, before))
        self.assertRegex(done.stderr, r"\Atest-status: \S*testroot trixie build/bin/oriel info: skipped: no mirror\n\Z")
        os.unlink(self.root / "roots/sid/srv/oriel/build/tests-user.xml")
        done = self.run_script("test-status", "--hosts", "sid")
        self.assertEqual((done.returncode, self.page()), (1, before))
        self.assertRegex(done.stderr, r"\Atest-status: .*tests-user.xml.*: run scripts/test-hosts sid first\n\Z")

    def test_all_rows_as_root_and_some_as_a_user(self):
        done = self.run_script("test-hosts")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(self.calls(), r"\Atrixie make test\nsid make test\n--user sid ctest .*--output-junit tests-user.xml .*\n"
                                       r"sid build/bin/oriel info --json\n\Z")
        self.assertIn("| sid | user |", self.page())

    def test_failures_and_skips_are_statuses(self):
        self.has("sid", 2)
        self.assertEqual(self.run_script("test-hosts").returncode, 1)
        self.has("sid", 77)
        before = self.page()
        self.assertEqual((self.run_script("test-hosts").returncode, self.page()), (77, before))


if __name__ == "__main__":
    unittest.main()
