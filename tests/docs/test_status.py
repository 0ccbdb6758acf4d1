"""scripts/test-status: the page, the README's line and the table of hosts come from the results of
scripts/release-check, which has to have run the rows of make test."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARRIED = "docs/results/release-check.jsonl.xz"
PAGES = ("README.md", "docs/test-status.md", "docs/compatibility.md")
SYSTEM = {"commit": "abcdef12", "system": "Debian, 2 cores", "packages": ["gcc 12"], "hosts": {"mpich": "MPICH 5.0.2"}}
QUICK = {"mpi.put.mpich.2.oriel": ["passed"], "mpi.get.mpich.2.oriel": ["failed", "failed"], "unit.a": ["failed", "passed"],
         "unit.b": ["skipped"]}
SID = {"mpi.put.mpich.2.oriel": ["passed"], "mpi.put.openmpi.2.oriel": ["failed"], "unit.a": ["passed"],
       "mpi.put.abi-mpich.2.oriel": ["skipped"]}


class Status(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-status.")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        os.makedirs(self.root / "docs/results")
        for page in PAGES:
            shutil.copy(ROOT / page, self.root / page)

    def ran(self, suite, rows, facts=None, date="2026-01-02"):
        """rows: the outcomes of each, in turn."""
        lines = [{"suite": suite, "rows": list(rows), **(facts or SYSTEM)}]
        for row, outcomes in rows.items():
            lines += [{"suite": suite, "row": row, "outcome": outcome, "seconds": 1, "wall": 45, "date": date,
                       "reason": "no valgrind", "output": "lost"} for outcome in outcomes]
        with open(self.root / "tree.jsonl", "a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def write_pages(self):
        return subprocess.run([ROOT / "scripts" / "test-status", "--results", self.root, "--key", "tree", "--root", self.root],
                              capture_output=True, text=True, check=False)

    def text(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def check_pages(self):
        done = self.write_pages()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def lines_of_hosts(self, *places):
        return [line for line in self.text("docs/compatibility.md").splitlines() if any(f" | {place} | " in line for place in places)]

    def test_counts_and_reasons(self):
        self.ran("quick", QUICK)
        self.ran("lint", {"unit.d": ["passed"], "unit.e": []}, date="2026-01-03",
                 facts={**SYSTEM, "packages": ["gcc 13"], "commit": "abcdef13"})
        self.check_pages()
        page = self.text("docs/test-status.md")
        for line in (r"\| commit \| `abcdef13` \|", r"\| date \| 2026-01-03 \|", r"\| rows \| 6 \|", r"\| passed \| 2 \|",
                     r"\| skipped \| 1 \|", r"\| failed \| 1 \|", r"\| flaky \| 1 \|", r"\| open \| 1 \|", r"\| suites \| 2 of \d+ \|",
                     r"\| `quick` \| .+ \| 4 \| 1 \| 1 \| 1 \| 1 \| 0 \| 4 min \| 2026-01-02 \|",
                     r"\| `lint` \| .+ \| 2 \| 1 \| 0 \| 0 \| 0 \| 1 \| 1 min \| 2026-01-03 \|",
                     r"\| `fuzz` \| .+ \|  \|  \|  \|  \|  \| all \|  \|  \|",
                     r"\| Debian, 2 cores \| MPICH 5.0.2 \| gcc 12 \|", r"\| Debian, 2 cores \| MPICH 5.0.2 \| gcc 13 \|",
                     r"\| `quick` \| 1 \| no valgrind \|", r"\| `quick` \| `mpi.get.mpich.2.oriel` \| failed \|",
                     r"\| `quick` \| `unit.a` \| flaky \|"):
            self.assertRegex(page, f"(?m)^{line}$")
        self.assertRegex(self.text("README.md"), r"Release check of commit `abcdef13`, 2026-01-03: 2 tests passed, 1 failed,\n"
                                                 r"1 passed only when repeated, 1 skipped, each with its reason. Not run yet:\n"
                                                 r"1 tests of 2 suites, and \d\d suites \(\[status\]")

    def test_a_part_of_make_test_is_refused(self):
        before = [self.text(page) for page in PAGES]
        for rows in (None, {**QUICK, "unit.c": []}):
            if rows:
                self.ran("quick", rows)
            done = self.write_pages()
            self.assertEqual((done.returncode, [self.text(page) for page in PAGES]), (1, before))
            self.assertRegex(done.stderr, "^test-status: not all rows of make test have a result in .*: run scripts/release-check "
                                          "--suite quick\n$")

    def test_a_line_for_each_host_and_user(self):
        kept = self.lines_of_hosts("trixie")
        self.ran("quick", QUICK)
        self.ran("trixie", {"build": ["skipped"]}, facts={"commit": "abcdef12"})
        self.ran("sid", SID)
        self.ran("sid-user", {"mpi.put.mpich.2.oriel": ["passed"]})
        self.check_pages()
        self.assertEqual(self.lines_of_hosts("trixie", "sid"), kept + [
            "| MPICH | 5.0.2 | sid | root | 2 | 2 |  | 2026-01-02 |",
            "| Open MPI | unknown | sid | root | 2 | 1 | failed: `mpi.put.openmpi.2.oriel` | 2026-01-02 |",
            "| standard ABI on MPICH | 5.0.2 | sid | root | 1 | 0 | 1 skipped: no valgrind | 2026-01-02 |",
            "| MPICH | 5.0.2 | sid | user | 1 | 1 |  | 2026-01-02 |"])
        first = self.text("docs/compatibility.md")
        self.check_pages()
        self.assertEqual(self.text("docs/compatibility.md"), first)

    def test_pages_show_what_the_tree_carries(self):
        shutil.copy(ROOT / CARRIED, self.root / CARRIED)
        before = [self.text(page) for page in PAGES]
        subprocess.run([ROOT / "scripts" / "test-status", "--carried", "--root", self.root], check=True)
        self.assertEqual([self.text(page) for page in PAGES], before)


if __name__ == "__main__":
    unittest.main()
