"""scripts/test-status: the page and the README's line come from CTest's results, whole runs only."""

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


if __name__ == "__main__":
    unittest.main()
