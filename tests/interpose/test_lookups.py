"""MPI functions found by dlsym: every put of the program lookups arrives, also with tools, under
the checker and with statistics. One line reports calls that bypass Oriel."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from command import BUILD, Case, HOSTS, LAUNCH, ORIEL, SANITIZE, environment, liboriel  # pylint: disable=wrong-import-position

SONAMES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
PUTS = (10, 11)  # of each rank of lookups: the larger number where a Fortran library exists


def built(host, name):
    return os.path.join(BUILD, "tests", "interpose", host, name)


def lookups(host, *more):
    return [built(host, "lookups"), SONAMES[host], built(host, "plugin.so"), built(host, "own_put.so"), *more]


class Lookups(Case):
    def job(self, host, *command, options=()):
        return subprocess.run([LAUNCH, "--build", BUILD, "--host", host, "-n", "2", *options, *command], env=environment(),
                              capture_output=True, text=True, timeout=600, check=False)

    def arrived(self, result):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("all arrived\n", result.stdout)
        self.assertNotIn("without Oriel", result.stderr)

    def test_every_lookup_finds_oriel(self):
        for host in HOSTS:
            counts = self.path(f"{host}.json")
            result = self.job(host, *lookups(host), options=["--env", f"ORIEL_STATS={counts}"])
            self.arrived(result)
            with open(counts, encoding="utf-8") as file:
                operations = json.load(file)["windows"][0]["operations"]
            self.assertIn(operations["put"]["count"], [2 * puts for puts in PUTS])

    @unittest.skipIf("thread" in SANITIZE, "the checker replaces that runtime")
    def test_checked(self):
        for host in HOSTS:
            result = self.job(host, ORIEL, "check", "--host", host, *lookups(host, "conflict"), options=["--plain"])
            self.assertIn("all arrived\n", result.stdout)
            # The plugin's own call is a second place where the compiler does not make it a jump.
            self.assertRegex(result.stderr, rf"check: (?:1 problem|2 problems) \(({2 * PUTS[0]}|{2 * PUTS[1]}) occurrences\) on 2 ranks\n")

    def test_tool_ahead_of_oriel(self):
        """Default lookups find the tool, which calls Oriel; lookups by handle skip it."""
        for host in HOSTS:
            result = self.job(host, *lookups(host),
                              options=["--env", f"LD_PRELOAD={built(host, 'next_tool.so')}", "--env", "LOOKUPS_TOOL=1"])
            self.arrived(result)
            self.assertEqual(result.stdout.count("tool: MPI_Put"), 2 * 5, result.stdout)

    def test_tool_after_oriel(self):
        """No lookup finds the tool, as in linked programs."""
        for host in HOSTS:
            preload = f"{liboriel(host)}:{built(host, 'next_tool.so')}"
            result = self.job(host, *lookups(host), options=["--plain", "--env", f"LD_PRELOAD={preload}"])
            self.arrived(result)
            self.assertNotIn("tool: MPI_Put", result.stdout)

    def test_python(self):
        program = os.path.join(HERE, "by_ctypes.py")
        with open(program, encoding="utf-8") as file:
            line = next(number for number, line in enumerate(file, 1) if "mpi.MPI_Win_create(" in line)
        for host in HOSTS:
            for library in (SONAMES[host], ""):
                result = self.job(host, ORIEL, "run", "--stats", "--host", host, "/usr/bin/python3", program, library,
                                  options=["--plain"])
                self.assertEqual((result.returncode, result.stdout), (0, "arrived\n"), result.stderr)
                self.assertIn(f"created in <module> at by_ctypes.py:{line}", result.stderr)

    def test_past_oriel(self):
        for host in HOSTS:
            copy = shutil.copy(self.host_library(host), self.path(f"libmpi_{host}.so"))
            # sanitisers refuse RTLD_DEEPBIND
            for more in (*([] if SANITIZE else [["deepbind"]]), ["namespace"], ["copy", copy]):
                bare = self.job(host, *lookups(host, *more), options=["--plain"]) if more[0] == "namespace" else None
                if bare is not None and re.search(r"(?i)segmentation fault|SEGV|signal (?:11|6)\b", bare.stdout + bare.stderr):
                    continue  # Open MPI, and MPICH from 4.2 on, crash in a separate namespace, without Oriel too
                result = self.job(host, *lookups(host, *more))
                # the put that bypasses Oriel is an error to Open MPI 6, which ends one rank, then the other
                lines = [line for line in result.stderr.splitlines() if line.startswith("oriel: ") and "has died" not in line]
                self.assertEqual(len(lines), 1, result.stdout + result.stderr)
                self.assertIn(f"{built(host, 'plugin.so')} calls MPI_Put of " if more[0] == "deepbind" else
                              "the program used the MPI in " + (copy if more[0] == "copy" else ""), lines[0])

    def host_library(self, host):
        found = subprocess.run(["ldd", built(host, "plugin.so")], capture_output=True, text=True, check=True).stdout
        return next(line.split()[2] for line in found.splitlines() if SONAMES[host] in line)

    def test_started_past_oriel(self):
        """Calls by addresses that did not come from dlsym."""
        source = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *(*find)(void *, const char *) = (void *(*)(void *, const char *))dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34");
    void *library = dlopen(argv[1], RTLD_NOW);
    ((int (*)(void *, void *))find(library, "MPI_Init"))(&argc, &argv);
    ((int (*)(void))find(library, "MPI_Finalize"))();
    return 0;
}
"""
        program = self.compile("past", source, "-D_GNU_SOURCE")
        for host in HOSTS:
            result = self.job(host, ORIEL, "run", "--host", host, program, SONAMES[host], options=["--plain"])
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertRegex(result.stderr, r"\Aoriel: the program started the MPI in \S+ without Oriel")
            bare = self.job(host, program, SONAMES[host], options=["--env", "ORIEL_BYPASS=1"])
            self.assertEqual((bare.returncode, bare.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
