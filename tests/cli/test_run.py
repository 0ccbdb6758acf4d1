"""`oriel run`: host detection, the order of its preload, and its refusals."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

from command import BUILD, CC, HERE, HOSTS, LAUNCH, LIMIT_S, ORIEL, SANITIZE, Case, environment, liboriel, program, start

SONAMES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
LAUNCHER_VARIABLES = {"mpich": ["PMI_RANK", "PMI_FD", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD"],
                      "openmpi": ["OMPI_COMM_WORLD_SIZE", "OMPI_UNIVERSE_SIZE"]}
VERSIONS = {"mpich": r"MPICH Version:\t%s\n", "openmpi": "Open MPI v%s, package: x"}
VERSION_SOURCE = """
#include <string.h>
int PMPI_Get_library_version(char *version, int *len) { strcpy(version, "%s"); *len = (int)strlen(version); return 0; }
int MPI_Get_library_version(char *version, int *len) { return PMPI_Get_library_version(version, len); }
"""
SHOW = """
#include <stdio.h>
#include <stdlib.h>
int main(void) { const char *value = getenv("LD_PRELOAD"); puts(value == NULL ? "(unset)" : value); return 7; }
"""


def other(host):
    return "openmpi" if host == "mpich" else "mpich"


def callers_are_known():
    """In most builds, exported functions jump to their implementations, which keeps the caller
    visible; not in all."""
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        return not SANITIZE and not {"CMAKE_BUILD_TYPE:STRING=Debug\n", "COVERAGE:BOOL=ON\n"} & set(file)


def listed(text):
    """A preload without the sanitiser runtime that this build's own programs need first."""
    return re.sub(r"(?m)[^:=\n]*/lib(asan\.so|clang_rt\.asan)[^:\n]*(:|$)", "", text) if "address" in SANITIZE else text


def values(text):
    """The NAME=value lines of a program's output."""
    text = listed(text)
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


class RunCase(Case):
    def library(self, soname, source=""):
        """A shared library with that name, in the test's folder."""
        return self.compile(soname, source, "-shared", "-fPIC", f"-Wl,-soname,{soname}")

    def job_of_4(self, host, *command):
        job = subprocess.run([LAUNCH, "--build", BUILD, "--plain", "--host", host, "-n", "4", *command], env=environment(),
                             capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertNotEqual(job.returncode, 0)
        return job

    def stand_in(self):
        """An installation of stub libraries in place of Oriel's, next to fake hosts with few
        functions."""
        oriel = self.tree()
        for host in HOSTS:
            os.makedirs(self.path(f"tree/lib/oriel/{host}"))
            self.compile(f"tree/lib/oriel/{host}/liboriel.so", "void MPI_Put(void) {} void PMPI_Put(void) {}",
                         "-shared", "-fPIC", "-Wl,-soname,liboriel.so")
        return oriel

    def stood_in(self, host):
        return liboriel(host, os.path.realpath(self.path("tree"))) + "\n"

    def using(self, *libraries):
        """A program without MPI that needs these libraries, and finds them in place."""
        return self.compile("fake", SHOW, "-Wl,--no-as-needed", f"-Wl,-rpath,{self.folder}", *libraries)


class Host(RunCase):
    def test_found_from_the_libraries(self):
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "environment"))
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(values(result.stdout)["LD_PRELOAD"], liboriel(host))
            self.assertEqual(values(result.stdout)["ORIEL_PRELOADED"], liboriel(host))

    def test_libraries_outweigh_the_launcher(self):
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "environment"), **{LAUNCHER_VARIABLES[other(host)][0]: "1"})
            self.assertEqual(values(result.stdout)["LD_PRELOAD"], liboriel(host))

    def test_found_through_another_library(self):
        oriel = self.stand_in()
        for host in HOSTS:
            fake = self.library(SONAMES[host])
            between = self.compile("libbetween.so", "", "-shared", "-fPIC", "-Wl,--no-as-needed",
                                   f"-Wl,-rpath,{self.folder}", fake)
            result = start(oriel, "run", self.using(between))
            self.assertEqual((result.returncode, result.stdout), (7, self.stood_in(host)), result.stderr)

    def relative(self, soname, without=()):
        """A library of that name with the functions that Oriel calls, but for some."""
        text = "".join(pathlib.Path(HERE, "../../src/host", name).read_text(encoding="utf-8") for name in ("functions.def", "calls.def"))
        names = set(re.findall(r"(?m)^(?:FUNCTION|FORWARD|CALL)\((\w+)", text)) - set(without)
        return self.library(soname, "".join(f"void PMPI_{name}(void) {{}}\n" for name in sorted(names)))

    def test_relatives_of_mpich_are_served_if_they_have_what_oriel_calls(self):
        if "mpich" not in HOSTS:
            self.skipTest("needs MPICH")
        oriel = self.stand_in()
        for soname in ("libmpi.so.12", "libmpi_cray.so.12"):
            program = self.using(self.relative(soname))
            result = start(oriel, "run", program)
            self.assertEqual(result.stdout, self.stood_in("mpich"), result.stderr)
            shown = start(oriel, "info", program).stdout
            self.assertRegex(shown, rf"(?m)^  uses +{re.escape(soname)} \(.*\): .*MPICH.*; expected to work, not tested$")
            self.assertRegex(shown, r"(?m)^  served by +/.*/mpich/liboriel\.so$")
            program = self.using(self.relative(soname, ("Win_flush_local",)))
            self.refused(start(oriel, "run", program), soname, "lacks functions that Oriel calls: PMPI_Win_flush_local;", "[O1]")
            shown = start(oriel, "info", program)
            self.assertRegex(shown.stdout, r"(?m)^  not served: .* lacks functions that Oriel calls: PMPI_Win_flush_local; .* \[O1\]$")
            facts = json.loads(start(oriel, "info", "--json", program).stdout)["program"]
            self.assertEqual((facts["host"], facts["soname"], facts["tested"], facts["served"]), ("mpich", soname, False, False))
        # Of two libraries in either order, the one that has it counts.
        shim, whole = self.library("libmpi_gnu.so.12"), self.relative("libmpi.so.12")
        for libraries in ((shim, whole), (whole, shim)):
            self.assertEqual(start(oriel, "run", self.using(*libraries)).stdout, self.stood_in("mpich"))

    def test_relative_without_the_mpi_of_oriels_library(self):
        if "mpich" not in HOSTS:
            self.skipTest("needs MPICH")
        oriel = self.stand_in()
        needed = self.library("libneeded.so.12")
        self.compile("tree/lib/oriel/mpich/liboriel.so", "void MPI_Put(void) {} void PMPI_Put(void) {}", "-shared", "-fPIC",
                     "-Wl,-soname,liboriel.so", "-Wl,--no-as-needed", f"-Wl,-rpath,{self.folder}", needed)
        program = self.using(self.relative("libmpi.so.12"))
        self.assertEqual(start(oriel, "run", program).returncode, 7)
        os.remove(needed)
        self.refused(start(oriel, "run", program), "needs another MPI library that is not here: ", "-DORIEL_MPICC=", "[O1]")
        self.assertIn("not served:", start(oriel, "info", program).stdout)

    def test_found_from_each_variable_of_the_launcher(self):
        for host in HOSTS:
            for variable in LAUNCHER_VARIABLES[host]:
                result = start(ORIEL, "run", "printenv", "LD_PRELOAD", **{variable: "1"})
                self.assertEqual(result.stdout, liboriel(host) + "\n", variable + result.stderr)

    def test_found_from_the_real_launcher(self):
        for host in HOSTS:
            job = subprocess.run([LAUNCH, "--build", BUILD, "--host", host, "-n", "2", "printenv", "LD_PRELOAD"],
                                 env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(job.stdout, (liboriel(host) + "\n") * 2, f"{host}: status {job.returncode}: {job.stderr}")

    def test_option_chooses_for_a_program_without_mpi(self):
        for host in HOSTS:
            result = start(ORIEL, "run", "--host", host, "printenv", "LD_PRELOAD")
            self.assertEqual(result.stdout, liboriel(host) + "\n")

    def test_option_outweighs_the_launcher(self):
        for host in HOSTS:
            result = start(ORIEL, "run", f"--host={host}", "printenv", "LD_PRELOAD",
                           **{LAUNCHER_VARIABLES[other(host)][0]: "1"})
            self.assertEqual(result.stdout, liboriel(host) + "\n")

    def test_only_host_built_is_used(self):
        for host in HOSTS:
            oriel = self.tree(host)
            result = start(oriel, "run", "printenv", "LD_PRELOAD")
            self.assertEqual(result.stdout, liboriel(host, os.path.realpath(self.path("tree"))) + "\n", result.stderr)
            shutil.rmtree(self.path("tree"))

    def test_script_of_an_interpreter_is_followed(self):
        oriel = self.stand_in()
        for host in HOSTS:
            self.using(self.library(SONAMES[host]))
            script = self.write("script", f"#!{self.path('fake')}\n")
            result = start(oriel, "run", script)
            self.assertEqual(result.stdout, self.stood_in(host), result.stderr)


class Start(RunCase):
    def test_arguments_and_status_are_the_programs(self):
        host = HOSTS[0]
        script = self.write("script", '#!/bin/sh\nfor word; do echo "<$word>"; done\nexit 9\n')
        result = start(ORIEL, "run", "--host", host, "--", script, "--host", "x y", "--", "", "-V")
        self.assertEqual((result.returncode, result.stdout), (9, "<--host>\n<x y>\n<-->\n<>\n<-V>\n"))

    def test_closed_descriptors_are_closed_for_the_program(self):
        # without writing: some shells cannot redirect a closed descriptor
        script = self.write("script", "#!/bin/sh\nfor fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] || : >\"$1-$fd\"; done\n")
        # a thread of UCX, which the host loads, has a socket for a moment (UCX 1.18, not as root)
        quiet = environment(UCX_VFS_ENABLE="n")
        for closed in (0, 1, 2):
            printed = self.path(f"closed-{closed}")
            subprocess.run([ORIEL, "run", "--host", HOSTS[0], "--", script, printed], timeout=LIMIT_S, check=True, env=quiet,
                           preexec_fn=lambda fd=closed: os.close(fd))
            self.assertEqual([fd for fd in (0, 1, 2) if os.path.exists(f"{printed}-{fd}")], [closed])

    def test_program_has_the_name_it_was_called_by(self):
        folder, name = os.path.split(program(HOSTS[0], "environment"))
        result = start(ORIEL, "run", name, PATH=f"{self.folder}:{folder}:{os.environ['PATH']}")
        self.assertEqual(values(result.stdout)["argv[0]"], name)

    def test_without_a_path_the_systems_folders_are_searched(self):
        result = start("/usr/bin/env", "-u", "PATH", ORIEL, "run", "--host", HOSTS[0], "echo", "found")
        self.assertEqual((result.returncode, result.stdout), (0, "found\n"), result.stderr)

    def test_folder_and_unexecutable_file_in_path_are_passed_over(self):
        os.makedirs(self.path("first/tool"))
        os.makedirs(self.path("second"))
        self.write("second/tool", "", 0o644)
        os.makedirs(self.path("third"))
        self.write("third/tool", "#!/bin/sh\necho third\n")
        search = ":".join(self.path(name) for name in ("missing", "first", "second", "third"))
        result = start(ORIEL, "run", "--host", HOSTS[0], "tool", PATH=search + ":/usr/bin:/bin")
        self.assertEqual(result.stdout, "third\n", result.stderr)

    def test_script_without_a_first_line_is_the_shells(self):
        result = start(ORIEL, "run", "--host", HOSTS[0], self.write("script", "echo shell\n"))
        self.assertEqual(result.stdout, "shell\n")

    def test_a_refusal_is_printed_once_for_all_ranks(self):
        for host in HOSTS:
            job = self.job_of_4(host, ORIEL, "run", "./missing")
            self.assertEqual([line for line in job.stderr.splitlines() if line.startswith("oriel")],
                             ["oriel: ./missing: program not found"], job.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can make namespaces of process numbers everywhere")
    def test_shared_memory_of_the_host_across_containers_is_left_to_it(self):
        """Across containers MPICH's processes use TCP, and its MPI_Finalize sometimes fails over
        it."""
        if "mpich" not in HOSTS:
            self.skipTest("Open MPI's ranks crash in different namespaces of process numbers")
        job = subprocess.run([LAUNCH, "--build", BUILD, "--host", "mpich", "-n", "2", "--env", "TEST_NO_FINALIZE=1",
                              "--env", "UCX_POSIX_USE_PROC_LINK=n", "unshare", "--pid", "--fork", "--kill-child",
                              os.path.join(BUILD, "tests", "mpi", "mpich", "shared"), "--only",
                              "direct_stores_are_seen_by_others"],
                             env=environment(ORIEL_VERBOSE="1"), capture_output=True, text=True, timeout=600, check=False)
        if job.returncode == 77:
            self.skipTest("to MPICH 5.0 of Debian, no two ranks share memory")
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertIn("ok direct_stores_are_seen_by_others/shared\n", job.stdout)
        self.assertRegex(job.stderr, r"(?m)^oriel: rank [01]: MPI_Win_allocate_shared at \w+\.[ch]:\d+: the host creates the window: "
                                     r"the ranks are on 2 nodes \[O12\]$")

    def test_the_job_has_one_line_however_often_mpi_is_started(self):
        if "mpich" not in HOSTS:
            self.skipTest("Open MPI 4 has no sessions, of which a program may have several")
        program_of_two = os.path.join(BUILD, "tests", "mpi", "mpich", "sessions")
        job = subprocess.run([LAUNCH, "--build", BUILD, "--host", "mpich", "-n", "2", program_of_two],
                             env=environment(ORIEL_VERBOSE="1"), capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(len(re.findall(r"(?m)^oriel: Oriel \S+ serves windows.*, on MPICH \S+; set: ORIEL_VERBOSE=1 ", job.stderr)), 1,
                         job.stderr)

    def test_children_of_a_program_whose_oriel_was_removed_start_without(self):
        if "openmpi" not in HOSTS:
            self.skipTest("Debian's MPICH cannot spawn")
        tree = os.path.dirname(os.path.dirname(self.tree("openmpi")))
        for before, child in (("true", "Oriel"), ("rm", "host")):
            job = subprocess.run([LAUNCH, "--build", tree, "--host", "openmpi", "-n", "1", "sh", "-c", f'{before} "$0"; exec "$@"',
                                  os.path.join(tree, "bin", "oriel"), program("openmpi", "spawner")],
                                 env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual((job.returncode, job.stdout), (0, f"child: {child}\n"), job.stderr)

    def test_libraries_are_constructed_once(self):
        # At the end Oriel looks for another MPI in the libraries with mpi in their names.
        says = "#include <unistd.h>\n__attribute__((constructor)) static void made(void) { write(2, \"made\\n\", 5); }"
        library = self.library("libparmpi.so", says)
        for host in HOSTS:
            result = start(self.using(), LD_PRELOAD=f"{library}:{liboriel(host)}")
            self.assertEqual((result.returncode, result.stderr), (7, "made\n"))

    def test_an_earlier_jobs_statistics_are_removed_when_this_one_dies(self):
        os.symlink("statistics.json", self.path("link.json"))
        for host in HOSTS:
            self.write("statistics.json", "earlier", 0o644)
            result = start(ORIEL, "run", f"--stats={self.path('link.json')}", program(host, "mistaken"), "right", "abort")
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(os.path.getsize(self.path("statistics.json")), 0, result.stderr)
            self.assertTrue(os.path.islink(self.path("link.json")))

    def test_bypass_changes_nothing(self):
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "environment"), ORIEL_BYPASS="1", LD_PRELOAD="")
            self.assertEqual(values(result.stdout)["LD_PRELOAD"], "")
            self.assertEqual(values(result.stdout)["ORIEL_PRELOADED"], "(unset)")
        static = self.compile("static", SHOW, "-static")
        self.assertEqual(start(ORIEL, "run", static, ORIEL_BYPASS="1").returncode, 7)


class Launcher(RunCase):
    """Under the other host's launcher, each process is a job of its own."""

    ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl_tcp_if_include": "lo"}

    def setUp(self):
        super().setUp()
        if len(HOSTS) < 2:
            self.skipTest("needs both hosts")
        if "unsupported PMI" in self.job("openmpi", 1, program("mpich", "one_put")).stderr:
            self.skipTest("MPICH 5 refuses to start under Open MPI's launcher")

    def job(self, launcher, ranks, *command, **changes):
        return subprocess.run([LAUNCH, "--build", BUILD, "--host", launcher, "-n", str(ranks), "--plain", *command],
                              env=environment(**changes), capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def line(self, host, verb):
        title = {"mpich": "MPICH", "openmpi": "Open MPI"}
        return (f"oriel: {program(host, 'one_put')} uses {title[host]}, but {title[other(host)]}'s launcher started it: "
                f"each process {verb} a separate job; use {title[host]}'s mpiexec (on Debian mpiexec.{host}) [O5]\n")

    def test_check_refuses_the_other_hosts(self):
        for host in HOSTS:
            job = self.job(other(host), 2, ORIEL, "check", program(host, "one_put"))
            self.assertEqual((job.returncode, job.stdout), (2, ""), job.stderr)
            self.assertIn(self.line(host, "would be"), job.stderr)
            self.assertNotIn("no problems", job.stderr)

    def test_program_of_the_standard_abi_is_of_the_mpi_that_implements_it(self):
        for host, title, sonames in (("mpich", "MPICH", ["libmpi_abi.so.1"]),
                                     ("openmpi", "Open MPI", ["libmpi_abi.so.1", "libopen_mpi.so.40"])):
            fake = self.using(*(self.library(soname) for soname in sonames))
            self.assertIn(f"oriel: {fake} uses MPI's standard ABI, here of {title}, but ",
                          self.job(other(host), 2, ORIEL, "check", fake).stderr)

    def test_run_warns_once_and_runs(self):
        for host in HOSTS:
            job = self.job(other(host), 3, ORIEL, "run", program(host, "one_put"))
            self.assertEqual((job.returncode, job.stdout.count("memory=42")), (0, 3), job.stderr)
            self.assertEqual(job.stderr.count(self.line(host, "is")), 1, job.stderr)

    @unittest.skipIf(SANITIZE == "thread", "the checker stands where ThreadSanitizer's runtime would")
    def test_script_with_an_explicit_other_host(self):
        script = self.write("script", "true\n")
        self.assertIn(f"oriel: {script} uses Open MPI, but MPICH's launcher started it: each process would be",
                      self.job("mpich", 2, ORIEL, "check", "--host", "openmpi", script).stderr)
        job = self.job("openmpi", 2, ORIEL, "check", "--host", "mpich", script)  # by PMIx, perhaps
        self.assertEqual((job.returncode, job.stderr), (0, ""))

    def test_mpich_that_has_pmix_may_join_the_other_launchers_job(self):
        fake = self.using(self.library(SONAMES["mpich"]), self.library("libpmix.so.2"))
        job = self.job("openmpi", 2, self.stand_in(), "run", fake)
        # the program has status 7, for which Open MPI 5 ends the other rank, perhaps before its output
        self.assertIn(job.stdout, [self.stood_in("mpich"), self.stood_in("mpich") * 2])
        self.assertNotIn("launcher started", job.stderr)

    # The checker's runtime would replace ThreadSanitizer's.
    COMMANDS = ("run",) if SANITIZE == "thread" else ("check", "run")

    def test_programs_own_launcher_inside_of_another_is_right(self):
        for host in HOSTS:
            for command in self.COMMANDS:
                options = ["--oversubscribe"] if host == "openmpi" else []
                job = self.job(other(host), 2, shutil.which(f"mpiexec.{host}"), *options, "-n", "2", ORIEL, command,
                               program(host, "one_put"), **self.ROOT)
                # two jobs
                self.assertEqual((job.returncode, job.stdout.count("memory=42")), (0, 4), job.stderr)
                self.assertNotIn("launcher", job.stderr)

    @unittest.skipIf(SANITIZE == "thread", "the checker stands where ThreadSanitizer's runtime would")
    def test_possibly_intended_preload_is_unchanged(self):
        """A single process; a script in the other host's job that starts programs itself; leftover
        variables."""
        left = {"mpich": {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
                "openmpi": {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "0", "HYDI_CONTROL_FD": "0", "MPI_LOCALNRANKS": "2"}}
        for host in HOSTS:
            check = [ORIEL, "check", program(host, "one_put")]
            for job in (self.job(other(host), 1, *check), self.job(other(host), 2, "sh", "-c", '"$@"; exit $?', "sh", *check),
                        start(*check, **left[host])):
                self.assertEqual(job.returncode, 0, job.stderr)
                self.assertIn("no problems", job.stderr)
                self.assertNotIn("launcher", job.stderr)


class OtherHost(RunCase):
    """Oriel for one host in a program of the other."""

    def setUp(self):
        super().setUp()
        if len(HOSTS) < 2:
            self.skipTest("needs both hosts")

    def ended(self, result, host, where=BUILD):
        """One line ends it, before any message of MPI."""
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        title = {"mpich": "MPICH", "openmpi": "Open MPI"}
        self.assertRegex(result.stderr, rf"\Aoriel: this is Oriel for {title[other(host)]} "
                                        rf"\({re.escape(liboriel(other(host), where))}\), but the program uses {title[host]} \([^ ]*"
                                        rf"(?:{re.escape(SONAMES[host])}|libopen_mpi.so.40)\): start it with oriel run --host {host}, or link it to "
                                        rf"oriel-{host} \[O6\]\n\Z")

    def test_program_that_a_script_starts(self):
        for host in HOSTS:
            for name in ("one_put", "one_put_linked", "one_put_tooled", "mistaken_fortran"):
                if not os.path.exists(program(host, name)):
                    continue  # no compiler for Fortran
                script = self.write("script", f"#!/bin/sh\nexec {program(host, name)}\n")
                self.ended(start(ORIEL, "run", "--host", other(host), script), host)
            if SANITIZE != "thread" and os.path.exists(os.path.join(os.path.dirname(liboriel(host)), "liboriel_check.so")):
                self.ended(start(ORIEL, "check", "--host", other(host), self.write("script", "exec " + program(host, "one_put"))),
                           host)

    def test_ranks_of_a_job_print_one_line(self):
        for host in HOSTS:
            job = self.job_of_4(host, "env", "LD_PRELOAD=" + liboriel(other(host)), program(host, "one_put"))
            lines = [line for line in job.stderr.splitlines() if line.startswith("oriel")]
            self.assertEqual(len(lines), 1, job.stderr)
            self.assertRegex(lines[0], r"\Aoriel: this is Oriel for .*: start it with ")

    def test_program_linked_to_it(self):
        for host in HOSTS:
            if shutil.which(f"mpicc.{host}") is None:
                self.skipTest(f"no mpicc.{host}")
            path, library = self.path(f"linked-{host}"), liboriel(other(host))
            subprocess.run([f"mpicc.{host}", os.path.join(HERE, "one_put.c"), "-o", path, "-Wl,--no-as-needed", library,
                            f"-Wl,-rpath,{os.path.dirname(library)}"], check=True, capture_output=True, env=environment())
            result = start(path)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (2, "", 1), result.stderr)
            self.assertIn(f"or link it to oriel-{host} [O6]\n", result.stderr)

    @unittest.skipUnless("mpich" in HOSTS, "only MPICH has sessions")
    def test_program_that_starts_sessions_alone(self):
        self.ended(start(os.path.join(BUILD, "tests", "mpi", "mpich", "sessions"), LD_PRELOAD=liboriel("openmpi")), "mpich")

    def test_entry_of_the_user(self):
        for host in HOSTS:
            self.ended(start(program(host, "one_put"), LD_PRELOAD=liboriel(other(host))), host)

    def module(self, host, *flags):
        """A library that calls MPI, and a program without MPI that loads it, as interpreters do."""
        if shutil.which(f"mpicc.{host}") is None:
            self.skipTest(f"no mpicc.{host}")
        module = self.path(f"module-{host}.so")
        subprocess.run([f"mpicc.{host}", "-shared", "-fPIC", "-Dmain=module", os.path.join(HERE, "one_put.c"), "-o", module,
                        *flags], check=True, capture_output=True, env=environment())
        return self.compile(f"loader-{host}", f"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{{
    void *library = dlopen("{module}", RTLD_NOW);
    if (library == NULL) return puts(dlerror()), 1;
    return ((int (*)(int, char **))dlsym(library, "module"))(argc, argv);
}}
""")

    def test_module_of_its_own_host_is_served(self):
        for host in HOSTS:
            result = start(ORIEL, "run", "--host", host, self.module(host))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("memory=42", result.stdout)
            self.assertIn("Oriel", result.stdout)

    def test_module_with_both_hosts_is_served_by_the_chosen_one(self):
        for host in HOSTS:
            found = start(shutil.which("ldd"), program(other(host), "one_put")).stdout
            library = re.search(rf"{re.escape(SONAMES[other(host)])} => (\S+)", found).group(1)
            result = start(ORIEL, "run", "--host", host, self.module(host, "-Wl,--no-as-needed", library))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("Oriel", result.stdout)

    @unittest.skipUnless(callers_are_known(), "this build does not report callers")
    def test_program_of_the_standard_abi(self):
        """Whatever its library is called, the version that it returns decides."""
        source = """
int PMPI_Init(int *argc, char ***argv) { return argc == 0 && argv == 0; }
int MPI_Init(int *argc, char ***argv) { return PMPI_Init(argc, argv); }
int PMPI_Abi_get_version(int *major, int *minor) { *major = %d; *minor = 0; return 0; }
"""
        caller = "int MPI_Init(int *, char ***); int main(int argc, char **argv) { return MPI_Init(&argc, &argv); }"
        for version, title, advice in (
                (1, "MPI's standard ABI", "start it with oriel run --host abi, or link it to oriel-abi"),
                (2, "version 2.0 of MPI's standard ABI", "ORIEL_BYPASS=1 runs the program without Oriel")):
            library = self.library("libsome.so", source % version)
            program_of_it = self.compile("caller", caller, "-Wl,--no-as-needed", f"-Wl,-rpath,{self.folder}", library)
            for host in HOSTS:
                result = start(program_of_it, LD_PRELOAD=liboriel(host))  # oriel run would take the library for a tool
                self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
                self.assertRegex(result.stderr, rf"\Aoriel: this is Oriel for .*, but the program uses {title} "
                                                rf"\({re.escape(library)}\): {re.escape(advice)} \[O6\]\n\Z")

    def test_module_of_the_other_host(self):
        for host in HOSTS:
            self.ended(start(ORIEL, "run", "--host", other(host), self.module(host)), host)

    def test_second_mpi_of_a_process(self):
        for host in HOSTS:
            self.module(other(host))
            source = self.write("second.c", f"""
#include <dlfcn.h>
#include <mpi.h>
int main(int argc, char **argv)
{{
    MPI_Init(&argc, &argv);
    void *library = dlopen("{self.path('module-' + other(host) + '.so')}", RTLD_NOW);
    return ((int (*)(int, char **))dlsym(library, "module"))(argc, argv);
}}
""")
            subprocess.run([f"mpicc.{host}", source, "-o", self.path("second")], check=True,
                           capture_output=True, env=environment())
            result = start(ORIEL, "run", self.path("second"))
            self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
            self.assertRegex(result.stderr, r"\Aoriel: this is Oriel for .*: it uses two MPIs; ORIEL_BYPASS=1 runs it without Oriel "
                                            r"\[O6\]\n\Z")


class Order(RunCase):
    """Words in the wrong order are refused with the user's own words in the right one."""

    def setUp(self):
        super().setUp()
        self.app = self.write("app", "#!/bin/sh\necho started\n")

    def ordered(self, *words, right, command="run"):
        self.refused(start(ORIEL, command, *words), f"oriel: put oriel after the launcher: {right}\n".replace("ORIEL", ORIEL))

    def test_launcher_before_oriel(self):
        app = self.app
        for launcher in ("mpiexec", "mpirun", "/opt/bin/mpiexec.mpich", "srun"):
            self.ordered(launcher, "-n", "4", app, "-n", "3", right=f"{launcher} -n 4 ORIEL run {app} -n 3")
        self.ordered("--trace", "my traces", "--watch", "mpirun", "-np", "2", "--oversubscribe", app, "it's", "",
                     right=f"mpirun -np 2 --oversubscribe ORIEL run --trace 'my traces' --watch {app} 'it'\\''s' ''")
        self.ordered("--json=found", "--", "mpiexec", app, right=f"mpiexec ORIEL check --json=found {app}", command="check")
        # a value may have a program's name; programs of several kinds; oriel is there already; no program
        self.ordered("mpirun", "--bind-to", "env", "-x", "cat", "-mca", "a", "b", "-H", "n1", app,
                     right=f"mpirun --bind-to env -x cat -mca a b -H n1 ORIEL run {app}")
        self.ordered("mpiexec", "-n", "1", app, "a", ":", "-n", "2", "cat", right=f"mpiexec -n 1 ORIEL run {app} a : -n 2 ORIEL run cat")
        self.ordered("--stats", "mpiexec", "-n", "2", "oriel", "run", app, right=f"mpiexec -n 2 oriel run {app}")
        self.ordered("mpiexec", "-n", "2", right="mpiexec -n 2 ORIEL run PROGRAM")
        self.refused(start(ORIEL, "mpiexec", "-n", "4", app), f"put oriel after the launcher: mpiexec -n 4 {ORIEL} run {app}\n")

    def test_launchers_options_given_to_oriel(self):
        app = self.app
        for words in (["-n", "4"], ["-np", "4"], ["-n4"], ["--np=4"], ["--ntasks", "4"], ["-c", "2", "-n", "4"]):
            self.ordered(*words, app, right=f"mpiexec {' '.join(words)} ORIEL run {app}")
        self.ordered("--trace", "t", "-n", "4", "--stats", "--host=mpich", "-q", app, "-n", "1", command="run",
                     right=f"mpiexec -n 4 -q ORIEL run --trace t --stats --host=mpich {app} -n 1")
        self.ordered("-n", "1", "--no-fail", app, ":", "-n", "1", "cat", command="check",
                     right=f"mpiexec -n 1 ORIEL check --no-fail {app} : -n 1 ORIEL check --no-fail cat")

    def test_programs_with_a_launchers_name_in_theirs(self):
        for name in ("mpiexec_test", "mysrun", "srun2"):
            result = start(ORIEL, "run", "--host", HOSTS[0], self.write(name, "echo started\n"))
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "started\n", ""))

    def test_program_taken_for_an_options_value(self):
        for command, option, value in (("run", "--trace", "FOLDER"), ("run", "--host", "HOST"), ("check", "--json", "FILE"),
                                       ("check", "--host", "HOST")):
            for rest in ([], ["input.dat"]):
                self.refused(start(ORIEL, command, option, self.app, *rest),
                             f"{option} {self.app}: the {value.lower()} is missing; write oriel {command} {option} {value} {self.app}\n")
        with open(self.app, encoding="utf-8") as file:  # not replaced by the findings
            self.assertIn("started", file.read())
        os.mkdir(self.path("traces"))
        result = start(ORIEL, "run", "--host", HOSTS[0], "--trace", self.path("traces"), self.app)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "started\n", ""))

    def test_file_of_statistics_as_a_word_of_its_own(self):
        self.refused(start(ORIEL, "run", "--stats", "out.json", self.app),
                     "--stats out.json: the file's name must follow \"=\": write --stats=out.json\n")

    def test_options_after_the_program_get_a_note(self):
        for command, words, noted in (("run", ["--stats"], "--stats"), ("run", ["a", "--trace", "t"], "--trace t"),
                                      ("run", ["--stats=a.json", "--watch"], "--stats=a.json"), ("check", ["--json", "f"], "--json f")):
            for changes, told in (({}, 1), ({"PMI_RANK": "0"}, 1), ({"PMI_RANK": "1"}, 0)):
                result = start(ORIEL, command, "--host", "mpich", self.app, *words, ORIEL_BYPASS="1" if command == "run" else "0", **changes)
                noted_word = noted.split(" ", maxsplit=1)[0]
                line = f"oriel: {noted_word} after {self.app} is passed to it; as an option of oriel: oriel {command} {noted} {self.app}\n"
                self.assertEqual(result.stderr.count(line), told, result.stderr)
                self.assertEqual(result.stderr.count("is passed to it"), told, result.stderr)
        for words in (["--help"], ["--version"], ["--statz"], ["stats"], ["-V"], ["--", "--stats"], ["--trace"]):
            self.assertEqual(start(ORIEL, "run", self.app, *words, ORIEL_BYPASS="1").stderr, "")
        self.assertEqual(start(ORIEL, "run", "--", self.app, "--stats", ORIEL_BYPASS="1").stderr, "")


class Slurm(RunCase):
    """Tasks that cannot connect to Slurm's PMI: each is a job of one rank."""

    TASKS = {"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"}
    LINE = ("Slurm has 4 tasks, but MPI_COMM_WORLD has 1 rank: start the program with srun --mpi=pmi2 or --mpi=pmix "
            "(srun --mpi=list shows what Slurm has), or with mpiexec\n")

    def test_singletons_are_warned_about_once(self):
        for host in HOSTS:
            for changes, told in (({**self.TASKS, "SLURM_PROCID": "0"}, 1), ({"SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, 1),
                                  ({**self.TASKS, "SLURM_PROCID": "1"}, 0),
                                  ({**self.TASKS, "SLURM_PROCID": "0", "ORIEL_BYPASS": "1"}, 0),
                                  # a shell of salloc; a step of one task
                                  (self.TASKS, 0), ({"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, 0)):
                result = start(ORIEL, "run", program(host, "one_put"), **changes)
                self.assertEqual((result.returncode, result.stderr.count(self.LINE)), (0, told), f"{host} {changes} {result.stderr}")

    def test_hosts_own_launcher_in_a_task_is_intended(self):
        for host in HOSTS:
            for ranks in ("1", "2"):
                job = start(LAUNCH, "--build", BUILD, "--host", host, "-n", ranks, program(host, "one_put"), SLURM_PROCID="0",
                            **self.TASKS)
                self.assertEqual(job.returncode, 0, job.stderr)
                self.assertNotIn("Slurm", job.stderr)


class Preload(RunCase):
    def setUp(self):
        super().setUp()
        self.host = HOSTS[0]
        self.oriel = liboriel(self.host)

    def preload(self, *command, **changes):
        result = start(*command, **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        return values(result.stdout)["LD_PRELOAD"], values(result.stdout)["ORIEL_PRELOADED"]

    def test_existing_entries_remain_first(self):
        first, second = self.library("first.so"), self.library("second.so")
        for separator in (":", " "):
            self.assertEqual(self.preload(ORIEL, "run", program(self.host, "environment"),
                                          LD_PRELOAD=first + separator + second),
                             (f"{first}:{second}:{self.oriel}", self.oriel))

    def test_nothing_is_added_twice(self):
        target = program(self.host, "environment")
        once = (self.oriel, self.oriel)
        self.assertEqual(self.preload(ORIEL, "run", ORIEL, "run", target), once)
        self.assertEqual(self.preload(ORIEL, "run", "--host", self.host, "sh", "-c", f"exec {ORIEL} run {target}"), once)
        first = self.library("first.so")
        self.assertEqual(self.preload(ORIEL, "run", "--host", self.host, "sh", "-c", f"exec {ORIEL} run {target}",
                                      LD_PRELOAD=first), (f"{first}:{self.oriel}", self.oriel))

    def test_entry_of_the_user_is_not_mistaken_for_oriels(self):
        self.assertEqual(self.preload(ORIEL, "run", program(self.host, "environment"), LD_PRELOAD=self.oriel),
                         (self.oriel, ""))

    def test_inner_run_replaces_the_outer_ones_host(self):
        if len(HOSTS) < 2:
            self.skipTest("needs both hosts")
        inner = program(HOSTS[1], "environment")
        self.assertEqual(self.preload(ORIEL, "run", "--host", HOSTS[0], "sh", "-c", f"exec {ORIEL} run {inner}"),
                         (liboriel(HOSTS[1]), liboriel(HOSTS[1])))

    def test_linked_tool_precedes_oriel(self):
        for host in HOSTS:
            tool = os.path.join(BUILD, "tests", "cli", host, "libmpitool.so")
            result = start(ORIEL, "run", program(host, "one_put_tooled"))
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = result.stdout.splitlines()
            self.assertIn("tool: MPI_Put of 1", lines)
            self.assertIn("memory=42", lines)
            self.assertIn("Oriel", result.stdout)
            # The test reads it after MPI_Init, which removes the entries. The loader saw them in
            # this order.
            seen = start(ORIEL, "run", self.tooled_environment(host, tool))
            self.assertEqual(listed(seen.stdout), f"{tool}:{liboriel(host)}\n", seen.stderr)

    def tooled_environment(self, host, tool):
        return self.compile("tooled", SHOW, "-Wl,--no-as-needed", f"-Wl,-rpath,{os.path.dirname(tool)}", tool)

    def test_library_without_window_functions_is_no_tool(self):
        library = self.library("libmpiwrap.so", "int MPI_Not_a_function; void mpi_put(void) {} void PMPI_Put(void) {}")
        host = self.library(SONAMES[self.host])
        result = start(self.stand_in(), "run", self.using(library, host))
        self.assertEqual(result.stdout, self.stood_in(self.host), result.stderr)

    def test_tools_remain_in_their_order_and_position(self):
        tools = [self.library(name, "void MPI_Put(void) {}") for name in ("libmpiP.so", "libtrace.so.1")]
        oriel, fake = self.stand_in(), self.using(*tools, self.library(SONAMES[self.host]))
        ours = self.stood_in(self.host)
        self.assertEqual(start(oriel, "run", fake).stdout, f"{tools[0]}:{tools[1]}:{ours}")
        # A tool in the user's own preload keeps its position.
        self.assertEqual(start(oriel, "run", fake, LD_PRELOAD=tools[1]).stdout, f"{tools[1]}:{tools[0]}:{ours}")

    def test_init_removes_the_entries(self):
        users = f"{self.library('first.so')}:{self.library('second.so')}"
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "one_put"), LD_PRELOAD=users)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("Oriel", result.stdout)
            self.assertEqual((values(result.stdout)["LD_PRELOAD"], values(result.stdout)["ORIEL_PRELOADED"]),
                             (users, "(unset)"))

    def test_linked_program_needs_no_run(self):
        for host in HOSTS:
            result = start(program(host, "one_put_linked"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("memory=42", result.stdout)
            self.assertIn("Oriel", result.stdout)
            self.assertIn("Oriel", start(ORIEL, "run", program(host, "one_put_linked")).stdout)

    def test_path_that_cannot_be_preloaded_is_refused(self):
        os.makedirs(self.path("a folder/bin"))
        os.makedirs(self.path(f"a folder/lib/oriel/{self.host}"))
        shutil.copy(ORIEL, self.path("a folder/bin/oriel"))
        shutil.copy(self.oriel, self.path(f"a folder/lib/oriel/{self.host}/liboriel.so"))
        self.refused(start(self.path("a folder/bin/oriel"), "run", "true"), "its path contains a space or a colon")


class Sanitised(RunCase):
    """Programs compiled with -fsanitize=address. Their runtime aborts if another library precedes
    it."""

    def build(self, host, compiler, *flags):
        """one_put, or None where it does not compile with these flags, or does not run without Oriel."""
        if shutil.which(f"mpicc.{host}") is None or shutil.which(compiler) is None:
            return None
        path = self.path(f"{host}-{compiler}")
        compiled = start(f"mpicc.{host}", "-fsanitize=address", *flags, os.path.join(HERE, "one_put.c"), "-o", path,
                         MPICH_CC=compiler, OMPI_CC=compiler)
        works = compiled.returncode == 0 and start(path, ASAN_OPTIONS="detect_leaks=0").returncode == 0
        return path if works else None

    @unittest.skipIf(SANITIZE, "the library has a runtime of its own")
    def test_program_runs_with_its_runtime_shared_or_static(self):
        clangs = start("clang", "-print-resource-dir").stdout.strip() + "/lib/linux" if shutil.which("clang") else ""
        first, tried = self.library("first.so"), 0
        for host in HOSTS:
            for compiler, *flags in (["gcc"], ["gcc", "-static-libasan"], ["clang"],
                                     ["clang", "-shared-libsan", f"-Wl,-rpath,{clangs}"]):
                path = self.build(host, compiler, *flags)
                if path is None:
                    continue
                tried += 1
                for command in ("run", "check") if not flags else ("run",):
                    result = start(ORIEL, command, path, ASAN_OPTIONS="detect_leaks=0", LD_PRELOAD=first)
                    self.assertEqual(result.returncode, 0, f"{command} {host} {compiler} {flags}: {result.stderr}")
                    self.assertIn("memory=42", result.stdout)
                    self.assertIn("Oriel", result.stdout)
                    # After MPI_Init, the program's children get the user's own values.
                    self.assertEqual((values(result.stdout)["LD_PRELOAD"], values(result.stdout)["ORIEL_PRELOADED"]),
                                     (first, "(unset)"))
        self.assertGreater(tried, 0)

    @unittest.skipIf("address" in SANITIZE, "the command itself would get the replacement of its runtime")
    def test_sanitiser_runtime_precedes_all(self):
        host = self.library(SONAMES[HOSTS[0]])
        oriel, first, ours = self.stand_in(), self.library("first.so"), self.stood_in(HOSTS[0])
        for name in ("libasan.so.8", "libclang_rt.asan-x86_64.so"):
            runtime, tool = self.library(name), self.library("libmpiP.so", "void MPI_Put(void) {}")
            fake = self.using(tool, runtime, host)
            self.assertEqual(start(oriel, "run", fake).stdout, f"{runtime}:{tool}:{ours}")
            self.assertEqual(start(oriel, "run", fake, LD_PRELOAD=first).stdout, f"{runtime}:{first}:{tool}:{ours}")
            self.assertEqual(start(oriel, "run", fake, LD_PRELOAD=f"{runtime} {first}").stdout,
                             f"{runtime}:{first}:{tool}:{ours}")
            inner = start(oriel, "run", "--host", HOSTS[0], "sh", "-c", f"exec {oriel} run {fake}")
            self.assertEqual(inner.stdout, f"{runtime}:{tool}:{ours}", inner.stderr)


class Refusal(RunCase):
    def test_unknown_host_name(self):
        self.refused(start(ORIEL, "run", "--host", "mpi", "true"), 'unknown host MPI "mpi"', "mpich, openmpi and abi")

    def test_option_against_the_libraries(self):
        for host in HOSTS:
            self.refused(start(ORIEL, "run", "--host", other(host), program(host, "environment")),
                         f"--host {other(host)} contradicts", program(host, "environment"))

    def test_no_host_to_be_found(self):
        if len(HOSTS) < 2:
            self.skipTest("needs both hosts")
        self.refused(start(ORIEL, "run", "true"), "cannot determine which MPI", "--host mpich, openmpi or abi")
        self.refused(start(self.tree(), "run", "true"), "cannot determine which MPI")

    def test_file_of_statistics_that_is_none(self):
        for name in ("out.txt", "1", "json", "a.json/b"):
            self.refused(start(ORIEL, "run", "--host", HOSTS[0], f"--stats={name}", "true"), f"--stats={name}", "must end in .json")

    def test_two_launchers_at_once(self):
        self.refused(start(ORIEL, "run", "true", PMI_RANK="0", OMPI_COMM_WORLD_SIZE="1"), "two launchers")

    def test_two_hosts_in_one_program(self):
        libraries = [self.library(soname) for soname in SONAMES.values()]
        self.refused(start(ORIEL, "run", self.using(*libraries)), "two host MPIs, through", *SONAMES.values(), "[O7]")

    def test_host_that_oriel_is_not_built_for(self):
        oriel = self.tree()
        for host in HOSTS:
            self.refused(start(oriel, "run", program(host, "environment")), "Oriel is not built for",
                         liboriel(host, os.path.realpath(self.path("tree"))))

    def test_untested_major_version(self):
        for host in HOSTS:
            for version, is_tested in (("3.4.1", False), ("4.9.9", True), ("9.0", False)):
                library = self.library(f"version-{version}.so", VERSION_SOURCE % (VERSIONS[host] % version))
                job = subprocess.run([LAUNCH, "--build", BUILD, "--plain", "--host", host, "-n", "2", "--env",
                                      f"LD_PRELOAD={liboriel(host)}:{library}", program(host, "one_put")], env=environment(),
                                     capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual(job.returncode, 0, job.stderr)
                lines = [line for line in job.stderr.splitlines() if line.startswith("oriel: ")]
                self.assertEqual(len(lines), 0 if is_tested else 1, job.stderr)
                self.assertTrue(is_tested or re.match(rf"oriel: .*{version} is a version that Oriel has not been tested with .* ORIEL_BYPASS=1 ",
                                                      lines[0]), job.stderr)

    def test_unknown_soname_of_a_host(self):
        for soname in ("libmpi.so.20", "libmpi.so.0", "libmpich.so.10", "libmpi.so", "libmpi_abi.so.0", "libmpi_abi.so.2"):
            self.refused(start(ORIEL, "run", self.using(self.library(soname))), soname, "does not support")
        # of any name, if it defines MPI itself
        for soname in ("libmpi_strange.so.4", "libmpi_intel.so.4"):
            self.refused(start(ORIEL, "run", self.using(self.library(soname, "void PMPI_Init(void) {}"))), soname, "does not support")

    def test_absent_program(self):
        self.refused(start(ORIEL, "run"), "the program is missing: mpiexec -n 2 oriel run [--] PROGRAM [ARGUMENT...]; ")
        self.refused(start(ORIEL, "run", "no-such-program"), "no-such-program: program not found")
        self.refused(start(ORIEL, "run", self.path("none")), self.path("none") + ": program not found")
        self.refused(start(ORIEL, "run", ""), "the program's name is empty")

    def test_program_that_cannot_be_executed(self):
        self.refused(start(ORIEL, "run", self.write("text", "echo no\n", 0o644)), "Permission denied")
        self.refused(start(ORIEL, "run", self.folder), f"{self.folder}: Is a directory")
        os.mkdir(self.path("folder"))
        self.refused(start(ORIEL, "run", "folder", PATH=self.folder), "folder: program not found")

    def test_script_whose_interpreter_is_missing(self):
        line = "the interpreter in its first line, /usr/bin/pythn3, does not exist\n"
        script = self.write("script", "#! /usr/bin/pythn3 -u\n")
        for command, changes in (("run", {}), ("run", {"ORIEL_BYPASS": "1"}), ("check", {})):
            self.refused(start(ORIEL, command, script, **changes), f"{script}: {line}")
        self.refused(start(ORIEL, "run", self.write("second", f"#!{script}\n")), f"{script}: {line}")
        self.refused(start(ORIEL, "run", self.write("third", f"#!{self.write('text', '', 0o644)}\n")), "/text, Permission denied")
        self.refused(start(ORIEL, "run", self.write("windows", "#!/bin/sh\r\necho\r\n")),
                     "the first line ends in a carriage return", f"sed -i 's/\\r$//' {self.path('windows')}")

    def test_program_of_another_c_library(self):
        path = self.compile("other", SHOW, "-Wl,--dynamic-linker=/lib/ld-none.so.1")
        self.refused(start(ORIEL, "run", path), f"{path}: its loader /lib/ld-none.so.1 does not exist here: ", "glibc", "[O8]")
        os.symlink("/bin/true", self.path("ld-musl-here.so.1"))
        path = self.compile("musl", SHOW, f"-Wl,--dynamic-linker={self.path('ld-musl-here.so.1')}")
        self.refused(start(ORIEL, "run", path), "is musl's: ", "glibc", "[O8]")

    def test_program_that_cannot_be_read(self):
        path = self.compile("unreadable", SHOW)
        os.chmod(path, 0o711)
        os.chmod(self.folder, 0o755)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        if not user:
            os.chmod(path, 0o111)
        if start(*user, ORIEL, "--version").returncode != 0:
            self.skipTest(f"another user cannot start {ORIEL}")
        self.refused(start(*user, ORIEL, "run", path), "unreadable", "the file cannot be read")
        # it reads /proc/self/maps, which belongs to root in such a program
        if "address" not in SANITIZE:
            self.assertEqual(start(*user, ORIEL, "run", "--host", HOSTS[0], path).returncode, 7)

    def test_long_names_leave_room_for_the_reason(self):
        name = "begin" + 5000 * "x" + "end"
        self.refused(start(ORIEL, "run", name), "oriel: beginx", "xend: File name too long")

    def test_static_program(self):
        self.refused(start(ORIEL, "run", self.compile("static", SHOW, "-static")), "static program", "ORIEL_BYPASS=1")
        self.refused(start(ORIEL, "run", self.compile("pie", SHOW, "-static-pie")), "static program")

    def test_program_with_its_own_mpi(self):
        own = "int PMPI_Init(void) { return 0; }\n"
        self.refused(start(ORIEL, "run", self.compile("own", own + SHOW)), "has MPI linked into it", "ORIEL_BYPASS=1")
        self.refused(start(ORIEL, "check", self.compile("stripped", own + SHOW, "-rdynamic", "-s")), "has MPI linked into it",
                     "start the program without oriel")
        tool = self.compile("tool", "int MPI_Init(void) { return 0; }\n" + SHOW)
        self.assertEqual(start(ORIEL, "run", "--host", HOSTS[0], tool).returncode, 7)

    def test_program_with_privileges(self):
        path = self.compile("privileged", SHOW)
        os.chmod(path, 0o4755)
        self.refused(start(ORIEL, "run", path), "setuid program")
        os.chmod(path, 0o2755)
        self.refused(start(ORIEL, "run", path), "setgid program")

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file capabilities")
    def test_program_with_capabilities(self):
        path = self.compile("capable", SHOW)
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
        self.refused(start(ORIEL, "run", path), "file capabilities")

    def test_program_of_another_architecture(self):
        path = self.compile("foreign", SHOW)
        with open(path, "r+b") as file:
            file.seek(18)
            machine = struct.unpack("<H", file.read(2))[0]
            file.seek(18)
            file.write(struct.pack("<H", 183 if machine != 183 else 62))  # aarch64, or x86-64 there
        self.refused(start(ORIEL, "run", path), "another architecture")

    def test_damaged_programs_do_no_harm(self):
        with open(self.compile("whole", SHOW), "rb") as file:
            whole = file.read()
        for size in (4, 16, 52, 64, 100, 600, len(whole) // 2):
            path = self.path("cut")
            with open(path, "wb") as file:
                file.write(whole[:size])
            os.chmod(path, 0o755)
            result = start(ORIEL, "run", "--host", HOSTS[0], path)
            try:
                alone = start(path).returncode  # some are complete enough to start, and crash
            except OSError:
                alone = 126
            self.assertNotEqual(result.returncode, 0)
            if result.returncode < 0:
                self.assertEqual(result.returncode, alone, f"cut to {size} bytes: {result.stderr}")


if __name__ == "__main__":
    unittest.main()
