"""Call sites in statistics, traces and their reports: lines of shared libraries and of Fortran, and
programs whose debug information, symbols or file are missing or another's.

TESTS_HOST selects the host, as tests/launch has it."""

import json
import os
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from command import BUILD, Case, LAUNCH, ORIEL, environment  # noqa: E402

HOST = os.environ["TESTS_HOST"]
PROGRAMS = os.path.join(BUILD, "tests", "observe", HOST.partition("-")[0])
FORTRAN = os.path.join(BUILD, "tests", "bindings", "fortran", HOST.partition("-")[0], "extensions_f08")
RANKS, STEPS = 2, 3


def line_of(mark, source):
    with open(os.path.join(HERE, source), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if mark in line)


class Sites(Case):
    def launch(self, *command):
        """The call sites in the statistics, and the report of the trace."""
        statistics, traces = self.path("s.json"), self.path("traces")
        env = [f"--env=ORIEL_STATS={statistics}", f"--env=ORIEL_TRACE={traces}"]
        job = subprocess.run([LAUNCH, "--build", BUILD, "--host", HOST, "-n", str(RANKS), "--timeout", "100", *env, "--", *command],
                             env=environment(), capture_output=True, text=True, timeout=600, check=False)
        if job.returncode == 77:
            self.skipTest(job.stdout.strip())
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        report = subprocess.run([ORIEL, "report", traces], env=environment(), capture_output=True, text=True, timeout=600, check=True)
        with open(statistics, encoding="utf-8") as file:
            return json.load(file)["sites"], report.stdout

    def copied(self, *strip):
        """A copy of the program, stripped."""
        copy = self.path("layered")
        shutil.copy(os.path.join(PROGRAMS, "layered"), copy)
        if strip:
            subprocess.run(["strip", *strip, copy], check=True)
        return copy

    def fences_of_program(self, sites):
        return [site for site in sites if site["call"] == "fence" and os.path.basename(site["module"]) == "layered"]

    def test_a_line_in_a_shared_library_is_named(self):
        sites, report = self.launch(os.path.join(PROGRAMS, "layered"))
        line = line_of("WAITS for", "layer.c")
        [fence] = [site for site in sites if site["call"] == "fence" and site["line"] == line]
        self.assertEqual((fence["function"], os.path.basename(fence["file"]), os.path.basename(fence["module"])),
                         ("layer_exchange", "layer.c", "liblayer.so"))
        self.assertEqual((fence["count"], fence["window"]), (RANKS * STEPS, 0))
        self.assertGreater(fence["waiting_ns"], sum(site["waiting_ns"] for site in sites) / 2)
        self.assertEqual(sites[0], fence)
        [put] = [site for site in sites if site["call"] == "put"]
        self.assertEqual((put["line"], put["count"], put["bytes"]), (line_of("SITE put", "layer.c"), RANKS * STEPS, 4 * RANKS * STEPS))
        [first] = self.fences_of_program(sites)
        self.assertEqual((first["function"], first["line"]), ("main", line_of("SITE first", "layered.c")))
        self.assertIn(f"fence in layer_exchange at layer.c:{line}\n", report)

    @unittest.skipUnless(os.path.exists(os.path.join(PROGRAMS, "late_fortran")), "no Fortran for this host")
    def test_a_line_of_fortran_is_named(self):
        sites, report = self.launch(os.path.join(PROGRAMS, "late_fortran"))
        line = line_of("WAITS for", "late_fortran.f90")
        [fence] = [site for site in sites if site["call"] == "fence" and site["line"] == line]
        self.assertEqual((fence["function"], fence["count"], sites[0]), ("put_and_fence", 2 * RANKS, fence))
        [put] = [site for site in sites if site["call"] == "put"]
        self.assertEqual((put["line"], put["bytes"]), (line_of("SITE put", "late_fortran.f90"), 8 * RANKS))
        self.assertIn(f"fence in put_and_fence at late_fortran.f90:{line}\n", report)

    @unittest.skipUnless(os.path.exists(FORTRAN), "no Fortran module for this host")
    def test_a_line_that_calls_the_fortran_module_is_named(self):
        sites, _ = self.launch(FORTRAN)
        source = os.path.join("..", "bindings", "fortran", "extensions_f08.f90")
        named = [site for site in sites if site["file"] is not None]  # the table of call sites has no room for the last
        self.assertGreater(len(named), 0.9 * len(sites))
        self.assertEqual({os.path.basename(site["file"]) for site in named}, {"extensions_f08.f90"})
        for call, mark in (("put", "call MPIX_Put_notify(matrix(2:, 1)"), ("compare_and_swap", "call MPIX_Compare_and_swap_128(")):
            self.assertIn(line_of(mark, source), [site["line"] for site in named if site["call"] == call])

    def test_without_debug_information_the_function_is_named(self):
        sites, report = self.launch(self.copied("-g"))
        [first] = self.fences_of_program(sites)
        self.assertEqual((first["file"], first["line"]), (None, None))
        self.assertRegex(first["function"], r"^main\+0x[0-9a-f]+$")
        self.assertRegex(report, r"fence in main\+0x[0-9a-f]+ in layered\n")

    def check_offset(self, sites, report):
        [first] = self.fences_of_program(sites)
        self.assertEqual((first["function"], first["file"], first["line"]), (None, None, None))
        self.assertIn(f"fence in layered+0x{first['offset']:x}\n", report)

    def test_without_symbols_the_offset_is_named(self):
        self.check_offset(*self.launch(self.copied("-s")))

    def test_a_program_that_was_built_again_has_offsets(self):
        shutil.copy("/bin/true", self.path("new"))
        self.check_offset(*self.launch(self.copied(), self.path("new")))

    def test_a_program_that_is_gone_has_offsets(self):
        program = self.copied()
        self.check_offset(*self.launch("sh", "-c", '(sleep 0.1; rm -f "$0") & exec "$0"', program))


unittest.main(verbosity=2)
