"""Executes docs/tutorial.md like a reader: writes its program, makes its changes, runs its
commands, and compares their output.

The C block is histogram.c. A diff block is applied to it, and the last one makes it the program of
examples/. A line that begins with "$ " is run, and its exports persist. The lines below it must
appear in its output, in any order. Numbers and folders may differ, except for line numbers; and
either of two conflicting operations may be the first. A command fails if it finds a fault or a
wrong result. If the test runs as root, the reader is the user nobody, since the page shows an
ordinary user's view.

The test rows run `test_tutorial.py HOST`."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
from command import BUILD, environment  # noqa: E402

HOST = sys.argv.pop()
NOBODY = 65534


def blocks():
    """The fenced blocks, as (kind, text)."""
    with open(os.path.join(ROOT, "docs", "tutorial.md"), encoding="utf-8") as file:
        return re.findall(r"^```(\w*)\n(.*?)^```\n", file.read(), re.M | re.S)


def steps(text):
    """A block's commands, each with its required lines of output."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def essence(line):
    """A line without the parts that may differ between runs and nodes."""
    line = re.sub(r"0x[0-9a-f]+", "#", line)
    line = re.sub(r"(?<=[ (])/\S*/", "", line)
    line = re.sub(r", before it$", "", line)
    line = re.sub(r"(?<!\.c:)\b\d[\d,]*(\.\d+)?\b", "#", line)  # but not histogram.c:12
    return re.sub(r"\s+", " ", line.replace("findings", "finding")).strip()


def row_name(line):
    """The subject of a row of figures, its first two cells. The following columns depend on the
    installation."""
    return [cell.strip() for cell in line.split("|")][1:3] if line.startswith("| ") else None


def readable_by_all(path):
    while path != "/":
        if not os.stat(path).st_mode & 0o001:
            return False
        path = os.path.dirname(path)
    return True


class Tutorial(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-tutorial.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv") or not readable_by_all(BUILD):
                self.skipTest(f"another user cannot read {BUILD}, and root's paths are not those of the page")
            self.prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
            os.chown(self.folder, NOBODY, NOBODY)
        os.mkdir(self.path("bin"))
        for name in ("mpicc", "mpiexec", "oriel"):
            found = os.path.join(BUILD, "bin", name) if name == "oriel" else shutil.which(f"{name}.{HOST}") or shutil.which(name)
            if not found:
                self.skipTest(f"no {name} of {HOST}")
            self.write(f"bin/{name}", f'#!/bin/sh\nexec "{found}" "$@"\n')
            os.chmod(self.path(f"bin/{name}"), 0o755)
        self.environment = environment(PATH=f"{self.path('bin')}:{os.environ['PATH']}", HOME=self.folder, TMPDIR=self.folder,
                                       XDG_RUNTIME_DIR=self.folder)

        transcript = subprocess.run([*self.prefix, os.path.join(BUILD, "bin", "oriel"), "info", "--json"], env=self.environment,
                              capture_output=True, text=True, check=True)
        if not all(each["available"] for each in json.loads(transcript.stdout)["mechanisms"] if each["name"] in ("memfd", "cma")):
            self.skipTest("the kernel refuses what the page shows: copies between processes")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def run_step(self, command, wanted):
        done = subprocess.run([*self.prefix, "/bin/sh", "-c", command], cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                              check=False)
        transcript = f"$ {command}\n{done.stdout}"
        fails = any(re.match(r"WRONG: |oriel: [A-Z]\d+:", line) for line in wanted)
        self.assertEqual(done.returncode != 0, fails, transcript)
        printed = [row_name(line) or essence(line) for line in done.stdout.splitlines()]
        for line in wanted:
            self.assertIn(row_name(line) or essence(line), printed, transcript)

    def test_as_a_reader(self):
        commands, texts = 0, []
        for kind, text in blocks():
            if kind == "c":
                self.write("histogram.c", text)
            elif kind == "diff":
                done = subprocess.run(["patch", "--fuzz=0", "histogram.c"], cwd=self.folder, input=text, capture_output=True,
                                      text=True, check=False)
                self.assertEqual((done.returncode, "offset" in done.stdout), (0, False), f"{text}\n{done.stdout}{done.stderr}")
            else:
                for command, wanted in steps(text):
                    if command.startswith("export "):
                        self.environment.update(word.split("=", 1) for word in command.split()[1:])
                    else:
                        self.run_step(command, wanted)
                    commands += 1
        self.assertGreater(commands, 15)
        for path in (self.path("histogram.c"), os.path.join(ROOT, "examples", "histogram.c")):
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        self.assertEqual(*texts)


if __name__ == "__main__":
    unittest.main()
