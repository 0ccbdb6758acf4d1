"""Runs the commands of README.md and of the guides like a reader, in one folder for each page, against
an installation of the build.

    ```LANGUAGE title="NAME"    the block is the file NAME
    ```diff                     the block changes the file that it names
    ```sh                       each line is run and must succeed; exports persist
    ```console                  a line that begins with "$ " is run. The lines below it must appear in
                                its output, in any order. The command must fail if they contain a
                                finding or a wrong result, and succeed otherwise
    # not run by the tests: ... as a block's first line: why it is not run. These blocks are counted

Numbers and folders in outputs may differ, except for line numbers; and either of two conflicting
operations may be the first. `./app` is the reader's own program, compiled from app.c. `make` runs
with -n. If the test runs as root, the reader is the user nobody, since the pages show an ordinary
user's view.

The test rows run `test_commands.py HOST PAGE...`."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "packaging"))
from installation import Case, run  # noqa: E402

HOST, PAGES = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else ("mpich", [])
del sys.argv[1:]
NOBODY = 65534
WRAPPERS = ("mpicc", "mpicxx", "mpifort", "mpiexec")
FENCE = re.compile(r"^( *)```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^\1```\n", re.M | re.S)
NOT_RUN = "# not run by the tests: "
NOT_RUN_MOST = 14
# A command outside a fenced block is a command that no test sees.
UNFENCED = re.compile(r"^    (?:\$ |mpiexec |mpirun |srun |oriel |make\b|mpicc |scripts/|ORIEL_\w+=\S* )", re.M)


def page_text(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    """The fenced blocks, as (language, title, text)."""
    return [match.group(2, 3, 4) for match in FENCE.finditer(text)]


def steps(text):
    """A console block's commands, each with its required lines of output."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shell_lines(text):
    """The commands of a shell block: lines, joined where one ends in a backslash."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def essence(line):
    """A line without the parts that may differ between runs and nodes."""
    line = re.sub(r"0x[0-9a-f]+", "#", line)
    line = re.sub(r"(?<=[ (])/\S*/", "", line)
    line = re.sub(r"on (MPICH|Open MPI) [v\d.]+;", "on #;", line)
    line = re.sub(r"(?<!\.c:)\b\d[\d,]*(\.\d+)?\b", "#", line)  # but not histogram.c:12
    line = re.sub(r"-{3,}", "---", line)  # a column is as wide as its figures
    return re.sub(r"\s+", " ", re.sub(r"\b(problem|occurrence)s\b", r"\1", line)).strip()


def row_name(line):
    """The subject of a row of figures, its first two cells. The following columns depend on the
    installation."""
    return [cell.strip() for cell in line.split("|")][1:3] if line.startswith("| ") else None


class Commands(Case):
    def setUp(self):
        super().setUp()
        self.install()
        self.prefix_command = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("no setpriv to run the commands as an ordinary user")
            self.prefix_command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        os.mkdir(self.path("bin"))
        for name in WRAPPERS:
            found = shutil.which(f"{name}.{HOST}") or shutil.which(name)
            if found:
                self.wrapper(name, f'exec "{found}" "$@"')
        self.wrapper("make", f'exec {shutil.which("make")} -C "{ROOT}" -n "$@"')

    def wrapper(self, name, command):
        os.chmod(self.write(os.path.join("bin", name), f"#!/bin/sh\n{command}\n"), 0o755)

    def reader(self, page):
        """The reader's folder and environment for one page."""
        folder = self.path("reader", page.replace("/", "-"))
        os.makedirs(folder)
        shutil.copy(os.path.join(ROOT, "tests", "docs", "app.c"), folder)
        paths = [self.path("bin"), os.path.join(self.prefix, "bin"), os.environ["PATH"]]
        changes = dict(PATH=":".join(paths), HOME=folder, TMPDIR=folder, XDG_RUNTIME_DIR=folder, PAGER="cat",
                       MANPATH=os.path.join(self.prefix, "share", "man") + ":",
                       CMAKE_PREFIX_PATH=self.prefix, PKG_CONFIG_PATH=os.path.join(self.prefix, "lib", "pkgconfig"), PYTHONDONTWRITEBYTECODE="1")
        result = run("mpicc", "-g", "-o", f"{folder}/app", f"{folder}/app.c", **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        for where, _, names in os.walk(folder):
            for name in [where] + [os.path.join(where, name) for name in names]:
                os.chown(name, NOBODY if os.geteuid() == 0 else -1, -1)
        return folder, changes

    def run_command(self, command, folder, changes):
        job = subprocess.Popen([*self.prefix_command, "/bin/sh", "-c", command], cwd=folder, start_new_session=True,
                               env=run_environment(changes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        try:
            output, _ = job.communicate(timeout=600)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            output, _ = job.communicate()
            self.fail(f"$ {command}\n{output}\nnot done after 600 s")
        return job.returncode, output

    def check_step(self, command, wanted, folder, changes):
        if command.startswith("export "):
            changes.update(word.split("=", 1) for word in command.split("#")[0].split()[1:])
            return
        status, output = self.run_command(command, folder, changes)
        told = f"$ {command}\n{output}"
        fails = any(re.match(r"WRONG: |(error|warning)\[", line) for line in wanted)
        self.assertEqual(status != 0, fails, told)
        printed = [row_name(line) or essence(line) for line in output.splitlines()]
        for line in wanted:
            if line.startswith("|  "):
                continue  # the times of the row above
            self.assertIn(row_name(line) or essence(line), printed, told)

    def read_page(self, page):
        """Follows the page. Returns the numbers of commands that were run, and of blocks that were
        not."""
        text = page_text(page)
        self.assertEqual(UNFENCED.findall(text), [], f"{page} has commands outside fenced blocks")
        folder, changes = self.reader(page)
        run_now, left = 0, 0
        for language, title, block in blocks(text):
            if block.startswith(NOT_RUN):
                left += 1
            elif title:
                with open(os.path.join(folder, title), "w", encoding="utf-8") as file:
                    file.write(block)
                os.chmod(file.name, 0o755)
            elif language == "diff":
                name = re.match(r"--- (\S+)", block).group(1)
                done = subprocess.run(["patch", "--fuzz=0", name], cwd=folder, input=block, capture_output=True, text=True,
                                      check=False)
                self.assertEqual((done.returncode, "offset" in done.stdout), (0, False), f"{block}\n{done.stdout}{done.stderr}")
            elif language in ("sh", "console"):
                wanted = steps(block) if language == "console" else [(line, []) for line in shell_lines(block)]
                for command, lines in wanted:
                    self.check_step(command.replace("oriel-mpich", f"oriel-{HOST}"), lines, folder, changes)
                    run_now += 1
        if page.endswith("tutorial.md"):
            with open(os.path.join(folder, "histogram.c"), encoding="utf-8") as file:
                self.assertEqual(file.read(), page_text("examples/histogram.c"), "the tutorial's last program")
        return run_now, left

    def try_page(self, page):
        """The page with the numbers of read_page, with a reason to skip it, or with its failure."""
        reason = refusal(page, self.prefix)
        if reason:
            return page, (0, 0), f"skipped: {reason}", None
        try:
            run_now, left = self.read_page(page)
        except AssertionError as failure:
            return page, (0, 0), "failed", failure
        return page, (run_now, left), f"{run_now} commands run, {left} blocks not run", None

    def test_as_a_reader(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(self.try_page, PAGES))
        for page, _, told, _ in results:
            print(f"{page}: {told}")
        run_now, left = (sum(counts) for counts in zip(*(counts for _, counts, _, _ in results)))
        print(f"in all {run_now} commands run, {left} blocks not run")
        for page, _, _, failure in results:
            with self.subTest(page=page):
                if failure:
                    raise failure
        self.assertLessEqual(left, NOT_RUN_MOST)


def run_environment(changes):
    import command
    return command.environment(**changes)


def refusal(page, prefix):
    """Why this system cannot show what the page shows, or None."""
    if page.endswith("mpi4py.md"):
        launcher = shutil.which(f"mpiexec.{HOST}") or "mpiexec"
        found = run(launcher, "-n", 1, "python3", "-c", "from mpi4py import MPI; print(MPI.Get_library_version())",
                    OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1").stdout
        if ("Open MPI" in found) != (HOST == "openmpi") or not found:
            return f"no mpi4py for {HOST}"
    if page.endswith("tutorial.md"):
        mechanisms = json.loads(run(os.path.join(prefix, "bin", "oriel"), "info", "--json").stdout)["mechanisms"]
        if not all(each["available"] for each in mechanisms if each["name"] in ("memfd", "cma")):
            return "the kernel refuses what the page shows: copies between processes"
    return None


if __name__ == "__main__":
    unittest.main()
