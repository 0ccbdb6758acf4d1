"""Shared by the tests of installations: an installation from the build folder, and jobs in it.

Components are installed one by one, which leaves the build folder's record of `make install`
unchanged."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
import command  # noqa: E402

BUILD, CC, HOSTS, SANITIZE = command.BUILD, command.CC, command.HOSTS, command.SANITIZE
RANKS = (1, 2, 4, 8)
with open(os.path.join(ROOT, "include", "oriel", "oriel.h"), encoding="utf-8") as header:
    VERSION = ".".join(re.findall(r"#define ORIEL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header.read()))

# Prints whether Oriel serves its window, how many of its libraries the process has, and whether a
# put arrived.
PROGRAM = r"""
#include <mpi.h>
#include <oriel/mpi_rma.h>
#include <oriel/oriel.h>
#include <stdio.h>
#include <string.h>

static int libraries(void)
{
    char line[4096];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "/liboriel") != NULL && strstr(line, " 00000000 ") != NULL;
    return count;
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len, rank, size, *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_library_version(version, &len);
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put_c(&rank, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    int by_oriel = strstr(version, "Oriel " ORIEL_VERSION) != NULL;
    if (strcmp(oriel_version(), ORIEL_VERSION) != 0 || oriel_active() != (by_oriel && strstr(version, "(bypassed)") == NULL))
        printf("oriel_version %s, oriel_active %d, but %s\n", oriel_version(), oriel_active(), version);
    printf("%s, %d, %s%s\n", by_oriel ? "by Oriel" : "by the host", libraries(),
           *memory == (rank + size - 1) % size ? "arrived" : "lost", oriel_last_error());
    MPI_Win_free(&win);
    return MPI_Finalize();
}
"""
SERVED = "by Oriel, 1, arrived"


def run(*words, limit_s=240, **changes):
    return subprocess.run([str(word) for word in words], env=command.environment(**changes), capture_output=True, text=True,
                          timeout=limit_s, stdin=subprocess.DEVNULL, check=False)


def launch(host, ranks, *words, user=False, through=None, **changes):
    """One job on the host; with through, by that installation's `oriel run`."""
    options = (["--build", through] if through else ["--plain"]) + (["--user"] if user else [])
    return run(os.path.join(ROOT, "tests", "launch"), "--host", host, "-n", ranks, *options, "--timeout", 60, "--", *words,
               **changes)


def wrapper(host, name="mpicc"):
    """A host's compiler wrapper: by Debian's suffix, elsewhere the first in PATH."""
    found = shutil.which(f"{name}.{host}") or shutil.which(name)
    if not found:
        raise unittest.SkipTest(f"no {name} of {host}")
    return found


class Case(unittest.TestCase):
    """A test with an installation of its own at self.prefix, removed at its end."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-install.")
        os.chmod(self.folder, 0o755)  # an ordinary user runs its programs
        self.addCleanup(shutil.rmtree, self.folder)
        self.prefix = self.path("prefix")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def good(self, *words, **changes):
        """The output of a command that must succeed."""
        result = run(*words, **changes)
        self.assertEqual(result.returncode, 0, f"{words}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def install(self, *components):
        for component in components or ("oriel", *HOSTS):
            self.good("cmake", "--install", BUILD, "--prefix", self.prefix, "--component", component)

    def served(self, result, ranks):
        """Each rank's window was Oriel's."""
        lines = result.stdout.splitlines()
        self.assertEqual((result.returncode, lines), (0, [SERVED] * ranks), result.stderr)
