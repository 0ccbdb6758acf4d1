"""scripts/release-check on a small project: it continues where it was killed, a change of documents
alone reopens only rows that read them, a row that failed once is flaky, and what has not run is open."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import release_results  # noqa: E402

SUITES = """from real_suites import Build, Suite, TREE, matches
TESTS = Build("build", ("sh", "make.sh"))
SUITES = [Suite("quick", 10, TESTS, "the quick rows", label="quick"),
          Suite("rest", 10, TESTS, "the others"),
          Suite("hour", 10, TESTS, "commands", commands={"one": ["sh", "one.sh"], "two": ["touch", "build/two"]})]
"""
WAIT_S = 60
SOURCES = (".c", ".cmake", ".cpp", ".f90", ".h", ".hpp", ".py", ".txt")


class Project(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-release.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree, self.kept = self.folder / "tree", self.folder / "results"
        for name in ("scripts", "docs", "tests/fuzz/parsers/corpus/net", "build/bin"):
            os.makedirs(self.tree / name)
        for name in ("release-check", "release_results.py", "debian_root.py"):
            shutil.copy(ROOT / "scripts" / name, self.tree / "scripts")
        shutil.copy(ROOT / "scripts" / "release_suites.py", self.tree / "scripts" / "real_suites.py")
        self.write("scripts/release_suites.py", SUITES)
        self.write("docs/page.md", "a page\n")
        self.write("source.c", "int x;\n")
        self.write("make.sh", "")
        self.write("one.sh", "")
        self.write("build/bin/oriel", '#!/bin/sh\necho \'{"hosts": [{"name": "mpich", "version": "4.0", "served": true}]}\'\n')
        os.chmod(self.tree / "build/bin/oriel", 0o755)
        self.write(".gitignore", "/build/\n")
        subprocess.run("git init -q && git add . && git -c user.name=a -c user.email=a commit -q -m a", shell=True, check=True,
                       cwd=self.tree)
        self.rows()

    def write(self, name, text):
        (self.tree / name).write_text(text, encoding="utf-8")

    def rows(self, **quick):
        """Quick rows with these commands; each also notes that it ran. One other row reads the pages."""
        quick = {"unit.good": "true", **{name.replace("_", "."): command for name, command in quick.items()}}
        text = ""
        for name, command in {**quick, "docs.page": "true"}.items():
            text += f'add_test({name} sh -c "echo {name} >> {self.folder}/ran; cd {self.folder}; {command}")\n' \
                    f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 LABELS {'quick' if name in quick else ''};full)\n"
        self.write("build/CTestTestfile.cmake", text)

    def ran(self):
        """The rows that ran since the last call."""
        path = self.folder / "ran"
        names = sorted(path.read_text().split()) if path.exists() else []
        path.unlink(missing_ok=True)
        return names

    def command(self, *words, tree=None):
        return [(tree or self.tree) / "scripts" / "release-check", "--results", self.kept, *words]

    def check(self, *words, status=0, **where):
        done = subprocess.run(self.command(*words, **where), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return done.stdout

    def lines(self, key="*"):
        return [json.loads(line) for path in self.kept.glob(key + ".jsonl") for line in path.read_text().splitlines()]

    def wait_for(self, happened):
        end = time.monotonic() + WAIT_S
        while not happened():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_outcomes(self):
        self.rows(unit_skip="echo skipped: no toolskipped: no tool; exit 77", unit_bad="echo worse; exit 3", unit_gone="kill -SEGV $$")
        said = self.check(status=1)
        self.assertRegex(said, r"\nquick +4 +1 +1 +2 +0 +0 ")
        self.assertRegex(said, r"\nrest +1 +1 +0 +0 +0 +0 ")
        self.assertRegex(said, r"\nhour +2 +2 +0 +0 +0 +0 ")
        self.assertIn("\nfailed: quick: unit.bad\n", said)
        found = {line["row"]: line for line in self.lines() if "row" in line}
        self.assertEqual(found["unit.skip"]["reason"], "no tool")
        self.assertRegex(found["unit.bad"]["output"], r"\Aworse\n.*Failed")
        self.assertIn("SegFault", found["unit.gone"]["output"])
        facts = next(line for line in self.lines() if "rows" in line)
        self.assertEqual((facts["rows"], facts["hosts"]), (["unit.good", "unit.skip", "unit.bad", "unit.gone"], {"mpich": "4.0"}))
        self.ran()
        self.check(status=1)
        self.assertEqual(self.ran(), [])

    def test_flaky(self):
        self.rows(unit_bad="test -e mended")
        self.check("--suite", "quick", status=1)
        (self.folder / "mended").touch()
        self.ran()
        said = self.check("--suite", "quick", "--failed")
        self.assertEqual(self.ran(), ["unit.bad"])
        self.assertRegex(said, r"\nquick +2 +1 +0 +0 +1 +0 ")
        self.assertIn("\nflaky: quick: unit.bad\n", said)
        self.assertIn("\nflaky: quick: unit.bad\n", self.check("--again", "quick"))
        self.assertEqual(self.ran(), ["unit.bad", "unit.good"])

    def test_killed(self):
        self.rows(unit_long="while ! test -e over; do sleep 0.05; done")
        self.addCleanup((self.folder / "over").touch)
        with subprocess.Popen(self.command(), stdout=subprocess.DEVNULL) as started:
            self.wait_for(lambda: any(line.get("row") == "unit.good" for line in self.lines()))
            started.send_signal(signal.SIGKILL)
        self.assertEqual(self.ran(), ["unit.good", "unit.long"])
        (self.folder / "over").touch()
        path, = self.kept.glob("*.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write('{"suite": "quick", "row": "unit.lo')
        self.check()
        self.assertEqual(self.ran(), ["docs.page", "unit.long"])
        self.assertRegex(self.check("--report"), r"\nquick +2 +2 +0 +0 +0 +0 ")

    def test_interrupted(self):
        self.rows(unit_long="exec >/dev/null 2>&1; trap 'touch ended; exit 1' TERM; touch begun; "
                            "while ! test -e over; do sleep 0.05; done")
        self.addCleanup((self.folder / "over").touch)
        with subprocess.Popen(self.command("--suite", "quick"), stdout=subprocess.PIPE, text=True) as started:
            self.wait_for((self.folder / "begun").exists)
            started.send_signal(signal.SIGTERM)
            said = started.stdout.read()
        self.wait_for((self.folder / "ended").exists)
        self.assertEqual(started.returncode, 1)
        self.assertIn("release-check: interrupted\n", said)
        self.assertIn("\nopen: quick\n", said)

    def test_only_contents_count(self):
        self.check()
        self.ran()
        shutil.copytree(self.tree, self.folder / "other", ignore=shutil.ignore_patterns("build"))
        self.check(tree=self.folder / "other")
        self.assertEqual(self.ran(), [])
        self.write("docs/page.md", "another page\n")
        self.assertRegex(self.check("--list"), r"\nrest +1 +1 ")
        self.check()
        self.assertEqual(self.ran(), ["docs.page"])
        self.write("docs/page.md", "another page\n<!-- made by scripts/test-status -->\n5 rows\n"
                                   "<!-- the end of what scripts/test-status makes -->\n")
        self.check("--report")
        os.mkdir(self.tree / "tests/coverage")
        self.write("tests/coverage/reasons", "which no row here reads\n")
        self.check("--report")
        self.write("new.c", "int y;\n")
        self.assertIn("\nopen: quick, rest, hour\n", self.check("--report", status=1))
        os.unlink(self.tree / "new.c")
        self.check("--report")

    def test_another_machine_continues(self):
        self.rows(unit_bad="echo worse; exit 3")
        shutil.copy(ROOT / "scripts/test-status", self.tree / "scripts")
        for name in ("README.md", "docs/test-status.md", "docs/compatibility.md"):
            shutil.copy(ROOT / name, self.tree / name)
        os.mkdir(self.tree / "docs/results")
        self.check("--suite", "quick", status=1)
        subprocess.run([self.tree / "scripts/test-status", "--results", self.kept], check=True)
        before = {line["row"]: line["outcome"] for line in self.lines() if "row" in line}
        shutil.rmtree(self.kept)
        self.ran()
        said = self.check(status=1)
        self.assertEqual(self.ran(), ["docs.page"])
        self.assertIn("\nfailed: quick: unit.bad\n", said)
        after = {line["row"]: line for line in self.lines() if "row" in line and line["suite"] == "quick"}
        self.assertEqual({name: line["outcome"] for name, line in after.items()}, before)
        self.assertNotIn("output", after["unit.bad"])
        self.write("new.c", "int y;\n")
        self.assertIn("\nopen: quick, rest, hour\n", self.check("--report", status=1))

    def test_a_change_meanwhile(self):
        self.rows(unit_change="echo >> tree/source.c")
        said = self.check(status=1)
        self.assertIn("\nrelease-check: stopped: the tree has changed: source.c\n", said)
        self.assertRegex(said, r"\nquick +2 +0 +0 +0 +0 +2 ")

    def test_time_is_over(self):
        said = self.check("--minutes", "0", status=1)
        self.assertIn("\nrelease-check: stopped: the time is over\n", said)
        self.assertRegex(said, r"\nquick +1 +0 +0 +0 +0 +1 ")
        self.assertEqual(self.ran(), [])

    def test_commands(self):
        wait = "for i in $(seq 100); do [ ! -e build/two ] || exit 77; sleep 0.1; done" if os.cpu_count() > 1 else "exit 77"
        self.write("one.sh", f"echo skipped: no hour; {wait}\n")
        self.assertRegex(self.check("--suite", "hour"), r"\nhour +2 +1 +1 +0 +0 +0 ")
        self.write("one.sh", "echo lost; exit 1\n")
        said = self.check("--suite", "hour", status=1)
        self.assertRegex(said, r"\nhour +2 +1 +0 +1 +0 +0 ")
        self.assertIn("hour: one failed\n    lost\n", said)

    def test_no_build(self):
        self.write("make.sh", f"echo skipped: no compiler; exit $(cat {self.folder}/status)\n")
        (self.folder / "status").write_text("1")
        self.assertRegex(self.check(status=1), r"\nquick +1 +0 +0 +1 +0 +0 ")
        (self.folder / "status").write_text("77")
        said = self.check("--failed")
        self.assertRegex(said, r"\nquick +1 +0 +1 +0 +0 +0 ")
        self.assertEqual(self.ran(), [])
        (self.folder / "status").write_text("0")
        self.assertRegex(self.check("--again", "quick"), r"\nquick +1 +1 +0 +0 +0 +0 ")
        self.assertEqual(self.ran(), ["unit.good"])

    def test_no_rows(self):
        self.write("build/CTestTestfile.cmake", "")
        said = self.check("--suite", "quick", status=1)
        self.assertIn("quick: build failed\n    ctest lists no row of this suite\n", said)

    def test_one_at_a_time(self):
        self.check("--minutes", "0", status=1)
        path, = self.kept.glob("*.jsonl")
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            done = subprocess.run(self.command(), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "release-check: another run writes the results of this tree\n"))


class Table(unittest.TestCase):
    maxDiff = None

    def test_suites(self):
        said = subprocess.run([ROOT / "scripts" / "release-check", "--list", "--results", os.devnull + "/none"],
                              capture_output=True, text=True, check=True).stdout
        rows = re.findall(r"(?m)^(\w[\w-]*) +\? +all +((?:\d+ h )?\d+ min)  \w", said)
        self.assertGreater(len(rows), 15)
        self.assertEqual(len(dict(rows)), len(rows))

    def test_readers_of_test_folders(self):
        """The rows of a file that names a folder of tests read the folder, and no file of the product does. Scripts are left
        out: rows that read all folders run those that name one."""
        tests = ROOT / "tests"
        folders = sorted(release_results.FOLDERS, reverse=True)  # the longer path first
        named = re.compile("(?:tests/|(?P<up>[.][.]/)+)(?P<folder>" + "|".join(folders) + ")/|" +
                           '"tests", "(?P<quoted>' + "|".join(folder.replace("/", '", "') for folder in folders) + ')"')
        missing = []
        for name in release_results.digests(ROOT):
            path = ROOT / name
            if path.is_symlink() or name.startswith("scripts/") or path.suffix not in SOURCES:
                continue
            area = next(folder for folder in path.parents if (folder / "CMakeLists.txt").exists())
            # The command's examples of rules are made from the checker's tests.
            row = f"{area.name if tests in area.parents or area == ROOT / 'cli' else 'none'}.row"
            text = re.sub(r"/[*].*?[*]/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
            for found in named.finditer(text):
                folder = found["folder"] or found["quoted"].replace('", "', "/")
                if found["up"] and (path.parent / found.group()).resolve() != tests / folder:
                    continue
                if not release_results.PARTS[folder].rows.match(row):
                    missing.append(f"{name} names tests/{folder}")
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
