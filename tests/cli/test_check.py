"""`oriel check`: its refusals and explanations, its output and exit status, and that the program is
unaffected."""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import unittest

from command import BUILD, HERE, HOSTS, LAUNCH, LIMIT_S, ORIEL, SANITIZE, Case, environment, liboriel, program, start

SUMMARY = "oriel check: "
RIGHT = r"\Aoriel check: no problems on 1 rank; local accesses were not watched \(compile with -fsanitize=thread\)\n\Z"

SESSION = """#include <mpi.h>
int main(void)
{
    MPI_Session session;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    return MPI_Session_finalize(&session);
}
"""


def line_of(mark, source="mistaken.c"):
    with open(os.path.join(HERE, source), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if mark in line)


class Explain(Case):
    def test_rules_are_listed_with_their_titles(self):
        result = start(ORIEL, "check", "--rules")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^E1 +operation outside an access epoch$")
        self.assertRegex(result.stdout, r"(?m)^C1 +conflicting operations without order$")

    def test_rule_is_explained_with_example_and_remedy(self):
        for number in ("C1", "c1"):
            result = start(ORIEL, "check", "--explain", number)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith("C1: conflicting operations without order\n"))
            self.assertIn("MPI_Put(", result.stdout)
            self.assertIn("Instead:", result.stdout)
            wrong, right = result.stdout.split("\nRight, its twin:\n")
            self.assertIn("        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\n", wrong)
            self.assertIn("        MPI_Put(&rank, 1, MPI_INT, 0, rank, 1, MPI_INT, win);\n", right)
            self.assertLessEqual(max(map(len, result.stdout.splitlines())), 130)

    def test_every_rule_has_wrong_and_right_code(self):
        for rule in start(ORIEL, "check", "--rules").stdout.splitlines():
            with self.subTest(rule):
                result = start(ORIEL, "check", "--explain", rule.split()[0])
                wrong, right = result.stdout.split("\nWrong, a test of the checker:\n")[1].split("\nRight, its twin:\n")
                self.assertNotEqual(wrong.strip(), right.strip())
                self.assertRegex(wrong, r"MPI_\w+\(")
                self.assertRegex(right, r"MPI_\w+\(")
                self.assertNotIn("right", wrong + right)

    def test_unknown_rule_is_refused(self):
        self.refused(start(ORIEL, "check", "--explain", "Z9"), 'unknown rule "Z9"', "--rules")
        self.refused(start(ORIEL, "check", "--explain", ""), 'unknown rule ""')

    def test_queries_run_nothing_and_combine_with_nothing(self):
        for words in (["--explain", "C1", "true"], ["--rules", "true"], ["--rules", "--explain", "C1"], ["--rules", "--no-fail"],
                      ["--explain", "C1", "--json", self.path("found.json")]):
            self.refused(start(ORIEL, "check", *words), "--explain and --rules allow no other arguments")
        self.assertFalse(os.path.exists(self.path("found.json")))


class Refusal(Case):
    def test_locks_are_eager_despite_the_environment(self):
        for host in HOSTS:
            result = start(ORIEL, "check", "--host", host, "--", "printenv", "ORIEL_LOCK", ORIEL_LOCK="lazy")
            self.assertEqual((result.returncode, result.stdout), (0, "eager\n"), result.stderr)

    def test_file_that_cannot_be_written(self):
        target = program(HOSTS[0], "mistaken")
        self.refused(start(ORIEL, "check", "--json", self.path("none/found.json"), target), "none/found.json", "No such file")
        self.refused(start(ORIEL, "check", "--json", self.folder, target), "Is a directory")
        self.refused(start(ORIEL, "check", "--json", "", target), "--json: the file's name is empty")
        # for existing text, and the program's output
        with open(self.path("log"), "w+", encoding="utf-8") as log:
            log.write("precious\n")
            log.flush()
            job = subprocess.run([ORIEL, "check", "--json=/dev/stdout", target], stdout=log, stderr=subprocess.PIPE, text=True,
                                 env=environment(), timeout=LIMIT_S, check=False)
            self.assertEqual((job.returncode, job.stderr),
                             (2, "oriel: --json: /dev/stdout also receives the program's output; choose another file\n"))
            log.seek(0)
            self.assertEqual(log.read(), "precious\n")

    def test_pipe_that_cannot_be_written(self):
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        if start(*user, ORIEL, "--version").returncode != 0:
            self.skipTest(f"another user cannot start {ORIEL}")
        os.chmod(self.folder, 0o755)
        os.mkfifo(self.path("pipe"), 0o444)
        self.refused(start(*user, ORIEL, "check", "--json", self.path("pipe"), program(HOSTS[0], "mistaken")),
                     f"--json: {self.path('pipe')}: Permission denied")

    def test_pipe_without_a_name(self):
        self.refused(start(ORIEL, "check", "--json=/dev/stdout", program(HOSTS[0], "mistaken")),
                     "--json: /dev/stdout has no path that is valid at the end of the job; choose a file")

    def test_programs_that_cannot_be_checked(self):
        target = program(HOSTS[0], "mistaken")
        self.refused(start(ORIEL, "check", target, ORIEL_BYPASS="1"), "ORIEL_BYPASS=1")
        static = start(ORIEL, "check", self.compile("static", "int main(void) { return 0; }", "-static"))
        self.refused(static, "static program", "start the program without oriel")
        self.assertNotIn("ORIEL_BYPASS", static.stderr)
        self.refused(start(ORIEL, "check", ORIEL, "run", target), "remove the inner oriel run")
        self.refused(start(ORIEL, "check", self.path("none")), "program not found")
        self.refused(start(ORIEL, "check", "--host", "mpi", target), 'unknown host MPI "mpi"')
        self.refused(start(ORIEL, "check", "--helper", "nothing"), "only the library and the checker")

    def test_missing_checker(self):
        for host in HOSTS:
            self.refused(start(self.tree(host), "check", program(host, "mistaken")), "liboriel_check.so is missing")
            shutil.rmtree(self.path("tree"))


class Unchecked(Case):
    """Jobs that the checker does not check, though it is loaded."""

    def test_a_program_that_sets_bypass_for_itself(self):
        for host in HOSTS:
            self.write("bypass", f'#!/bin/sh\nORIEL_BYPASS=1 exec {program(host, "mistaken")} right\n')
            result = start(ORIEL, "check", "--host", host, self.path("bypass"))
            # what Open MPI 6 says of its own windows
            errors = re.sub(r"(?m)^\[\S+\] \S+/osc_ucx_component\.c:.*\n(?: *\n)?", "", result.stderr)
            self.assertEqual((result.returncode, errors), (0, ""))
            self.assertIn("unfinished line=1", result.stdout)

    def test_a_checker_that_gets_no_memory(self):
        """The checker's memory is a file; the hosts work under this limit."""
        for host in HOSTS:
            result = start("prlimit", f"--fsize={32 << 20}", ORIEL, "check", "--host", host, program(host, "mistaken"), "right")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertRegex(result.stderr, r"memory: File (is )?too large\): nothing is checked \[O26\]\n")
            self.assertNotIn(SUMMARY, result.stderr)


class Findings(Case):
    def check(self, host, *words, status=86, oriel=ORIEL, name="mistaken"):
        result = start(oriel, "check", "--host", host, *words[:self.options(words)], program(host, name),
                       *words[self.options(words):])
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result

    @staticmethod
    def options(words):
        """The number of words for the command: those before the first that is not its own."""
        count = 0
        while count < len(words) and words[count].startswith("--"):
            count += 2 if words[count] == "--json" else 1
        return count

    def test_right_program_prints_one_line_and_has_its_own_status(self):
        for host in HOSTS:
            self.assertRegex(self.check(host, "right", status=0).stderr, RIGHT)
            self.assertRegex(self.check(host, "right", "exit", "5", status=5).stderr, RIGHT)

    def test_finding_names_window_line_and_remedy(self):
        for host in HOSTS:
            text = self.check(host).stderr
            self.assertIn("error[E1]: operation outside an access epoch\n", text)
            self.assertIn('window "halo" (made at ', text)
            line = line_of("/* the mistake */")
            self.assertRegex(text, rf"(?m)^ +--> \S*mistaken.c:{line} in mistake \(rank 0\)$")
            self.assertRegex(text, rf"(?m)^ *{line} \|     MPI_Put\(&value.*\n +\|     \^{{7}}\W")
            words = " ".join(re.sub(r"(?m)^ *\|", "", text).split())
            self.assertRegex(words, r'window "halo" \(made at \S+mistaken.c:\d+\), rank 0, element 0 \(bytes 0 to 3\)')
            self.assertRegex(text, rf"= help: call MPI_Win_lock\(MPI_LOCK_SHARED, 0, 0, win\).* before\n? +\S*mistaken.c:{line}\n")
            self.assertTrue(text.endswith(SUMMARY + "1 problem (1 occurrence) on 1 rank\n"), text)

    def test_a_name_of_a_window_steers_no_terminal(self):
        for host in HOSTS:
            text = self.check(host, "wrong", "named").stderr
            self.assertIn('window "ha?lo?[31m??H" (made at ', text)

    def test_a_program_of_sessions_alone_is_reported_as_not_checked(self):
        if "mpich" not in HOSTS or shutil.which("mpicc.mpich") is None:
            self.skipTest("Open MPI 4 has no sessions")
        self.write("session.c", SESSION)
        compiled = start("mpicc.mpich", self.path("session.c"), "-o", self.path("session"))
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        job = start(LAUNCH, "--build", BUILD, "--host", "mpich", "-n", "2", "--plain", "--timeout", "50", "--", ORIEL, "check",
                    "--host", "mpich", self.path("session"))
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(job.stderr.count("without MPI_Init: nothing was checked [O26]\n"), 1, job.stderr)

    def test_program_is_not_disturbed(self):
        for host in HOSTS:
            lines = self.check(host).stdout.splitlines()
            for expected in ("descriptors=0", "children=0", "wait=same", "unfinished line=1"):
                self.assertIn(expected, lines)

    def test_status_is_the_programs_own_where_that_is_not_0_or_it_is_wanted(self):
        for host in HOSTS:
            self.check(host, "wrong", "exit", "5", status=5)
            self.check(host, "--no-fail", status=0)

    def test_program_without_finalize_has_its_summary(self):
        for host in HOSTS:
            self.assertIn("ended without MPI_Finalize", self.check(host, "leave").stderr)
            aborted = start(ORIEL, "check", program(host, "mistaken"), "abort")
            self.assertNotEqual(aborted.returncode, 0)
            self.assertIn("ended without MPI_Finalize", aborted.stderr)

    def test_summary_before_an_abort_goes_to_a_file_as_well(self):
        for host in HOSTS:
            with open(self.path("told"), "w+", encoding="utf-8") as output:
                subprocess.run([ORIEL, "check", program(host, "mistaken"), "abort"], env=environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=output, timeout=LIMIT_S, check=False)
                output.seek(0)
                text = output.read()
            self.assertIn(SUMMARY + "1 problem (1 occurrence) on this node; the program ended without MPI_Finalize", text)
            self.assertIn("local accesses were not watched", text.partition(SUMMARY)[2])

    def test_ranks_that_all_abort_write_one_summary(self):
        for host in HOSTS:
            for ranks in ("2", "8", "8", "8", "8"):
                aborted = start(LAUNCH, "--build", BUILD, "--host", host, "-n", ranks, "--plain", "--timeout", "50", "--", ORIEL,
                                "check", program(host, "mistaken"), "abort")
                self.assertEqual(aborted.returncode, 3)
                self.assertEqual(aborted.stderr.count("oriel check: local accesses were"), 1, aborted.stderr)
                self.assertIn("ended without MPI_Finalize", aborted.stderr)
                self.assertIn(SUMMARY + "1 problem", aborted.stderr)

    def test_clang_program_has_lines(self):
        if shutil.which("clang") is None or "mpich" not in HOSTS or shutil.which("mpicc.mpich") is None:
            self.skipTest("no clang")
        line = line_of("/* the mistake */")
        source = os.path.join(HERE, "mistaken.c")
        with open(source, encoding="utf-8") as file:
            text = file.read().splitlines()
        # as a call that clang merges from several lines: it has that of the code before it
        lineless = self.write("mistaken.c", "\n".join([*text[:line - 1], "#line 0", text[line - 1], f"#line {line + 1}", *text[line:]]))
        for flags, path, found in ((("-g", "-O0"), source, line), (("-gdwarf-4", "-O0"), source, line),
                                   (("-g", "-O0", "-I", HERE), lineless, line - 1)):
            compiled = start("mpicc.mpich", "-cc=clang", *flags, path, "-o", self.path("clanged"))
            self.assertEqual(compiled.returncode, 0, compiled.stderr)
            self.assertRegex(start(ORIEL, "check", "--host", "mpich", self.path("clanged")).stderr,
                             rf"--> \S*mistaken.c:{found} in mistake \(rank 0\)")

    def test_loads_and_stores_are_watched_where_clangs_runtime_is_shared(self):
        folder = os.path.join(start("clang", "-print-resource-dir").stdout.strip(), "lib/linux") if shutil.which("clang") else ""
        if "mpich" not in HOSTS or not os.path.exists(os.path.join(folder, "libclang_rt.tsan-x86_64.so")):
            self.skipTest("no shared runtime of clang")
        compiled = start("mpicc.mpich", "-cc=clang", "-fsanitize=thread", "-shared-libsan", f"-Wl,-rpath,{folder}",
                         os.path.join(HERE, "mistaken.c"), "-o", self.path("clanged"))
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertIn("local accesses were watched", start(ORIEL, "check", "--host", "mpich", self.path("clanged")).stderr)

    @unittest.skipIf(SANITIZE, "the library has a runtime of its own")
    def test_places_in_a_program_with_a_sanitiser_are_the_programs(self):
        if "mpich" not in HOSTS or shutil.which("mpicc.mpich") is None:
            self.skipTest("no mpicc.mpich")
        for compiler in ("gcc", "clang"):
            compiled = start("mpicc.mpich", f"-cc={compiler}", "-g", "-O0", "-fsanitize=address", os.path.join(HERE, "mistaken.c"),
                             "-o", self.path("sanitised"))
            if compiled.returncode != 0:
                continue
            output = start(ORIEL, "check", "--host", "mpich", "--stacks", self.path("sanitised"),
                         ASAN_OPTIONS="detect_leaks=0").stderr
            frames = [line.split(" in ")[1] for line in output.partition("stack: ")[2].splitlines()[:3]]
            self.assertEqual(frames, ["mistake", "look", "main"], output)

    def test_stack_leads_to_main(self):
        for host in HOSTS:
            text = self.check(host, "--stacks").stderr
            frames = [line.split(" in ")[1] for line in text.partition("stack: ")[2].splitlines()[:3]]
            self.assertEqual(frames, ["mistake", "look", "main"])

    def test_line_in_a_fortran_program_is_the_programs(self):
        for host in HOSTS:
            if not os.path.exists(program(host, "mistaken_fortran")):
                self.skipTest("no Fortran")
            line = line_of("! the mistake", "mistaken_fortran.f90")
            self.assertRegex(self.check(host, name="mistaken_fortran").stderr,
                             rf"--> \S*mistaken_fortran.f90:{line} in put_without_epoch\b")

    def test_without_a_helper_that_answers_places_are_offsets(self):
        for host in HOSTS:
            oriel = self.tree(host)
            checker = os.path.join(os.path.dirname(liboriel(host)), "liboriel_check.so")
            shutil.copy(checker, self.path(f"tree/lib/oriel/{host}"))
            # The helper's file when the program runs: missing, a program that dies, a program that
            # prints something else.
            for number, helper in enumerate(("rm -f", "install -m 755 dies", "install -m 755 talks")):
                self.write("dies", "#!/bin/sh\nkill -9 $$\n")
                self.write("talks", "#!/bin/sh\necho hello, this is somebody else\n")
                shutil.copy(ORIEL, oriel)
                self.write("script", f'#!/bin/sh\ncd {self.folder}\n{helper} tree/bin/oriel\nexec {program(host, "mistaken")}\n')
                result = start(oriel, "check", "--host", host, self.path("script"))
                self.assertEqual(result.returncode, 86, f"{number}: {result.stderr}")
                self.assertRegex(result.stderr, r"--> offset 0x[0-9a-f]+ of mistaken \(rank 0\): MPI_Put\n")
            shutil.rmtree(self.path("tree"))

    def helped(self, host, helper, findings, ranks=1):
        """A job of the given number of findings, all reported with their lines, with a script as
        the helper (the command is `real`). Returns how many helpers were started."""
        oriel, real = self.tree(host), self.path("tree/bin/real")
        shutil.copy(os.path.join(os.path.dirname(liboriel(host)), "liboriel_check.so"), self.path(f"tree/lib/oriel/{host}"))
        shutil.move(oriel, real)
        self.write("tree/bin/oriel", helper.replace("FOLDER", self.folder))
        job = start(LAUNCH, "--build", BUILD, "--host", host, "-n", ranks, "--plain", "--timeout", "50", "--", real, "check",
                    "--host", host, "--json", self.path("found.json"), program(host, "mistaken"), "many", findings - 1)
        self.assertEqual(job.returncode, 86, job.stdout + job.stderr)
        with open(self.path("found.json"), encoding="utf-8") as file:
            found = json.load(file)["findings"]
        line = line_of("/* the mistake */")
        lines = [(finding["call"]["line"], finding["call"]["function"]) for finding in found]
        self.assertEqual(lines, [(line, "mistake")] * findings)
        with open(self.path("started"), encoding="utf-8") as file:
            started = file.read().split()
        os.remove(self.path("started"))
        shutil.rmtree(self.path("tree"))
        return started.count("finding")

    def test_many_findings_have_one_helper(self):
        helper = '#!/bin/sh\necho $3 >> FOLDER/started\nexec FOLDER/tree/bin/real "$@"\n'
        for host in HOSTS:
            for ranks in (1, 4):
                self.assertEqual(self.helped(host, helper, 150, ranks), 1)

    def test_helper_that_has_ended_is_replaced(self):
        helper = '#!/bin/sh\necho $3 >> FOLDER/started\nexec FOLDER/tree/bin/real "$@" 3>&-\n'
        for host in HOSTS:
            self.assertEqual(self.helped(host, helper, 5), 5)

    def test_helper_that_dies_with_a_question_is_replaced(self):
        helper = """#!/usr/bin/python3
import signal, socket, subprocess, sys
signal.alarm(20)  # the last one is asked no more
print(sys.argv[3], file=open("FOLDER/started", "a"))
subprocess.run(["FOLDER/tree/bin/real", *sys.argv[1:]], check=True)
if sys.argv[3] == "finding":
    socket.socket(fileno=3).accept()[0].recv(4)
"""
        for host in HOSTS:
            self.assertEqual(self.helped(host, helper, 5), 5)

    @unittest.skipIf("address" in SANITIZE, "strip breaks what the sanitizer needs")
    def test_missing_debug_information_is_reported(self):
        for host in HOSTS:
            bare = self.path("bare")
            shutil.copy(program(host, "mistaken"), bare)
            os.system(f"strip --strip-debug {bare}")
            result = start(ORIEL, "check", bare)
            self.assertIn("--> mistake+0x", result.stderr)
            self.assertIn("compile with -g", result.stderr)


class Passed(Case):
    def test_correct_calls_are_forwarded(self):
        for host in HOSTS:
            for words in ("callback", "none", "large"):
                result = start(ORIEL, "check", program(host, "forwarded_calls"), words)
                self.assertEqual((result.returncode, result.stdout.replace("none\n", "")), (0, ""), result.stderr)
                self.assertRegex(result.stderr, r"\Aoriel check: no problems on 1 rank;")

    def test_counted_calls_are_forwarded_too(self):
        for host in HOSTS:
            for words in ("callback", "none", "large"):
                result = start(ORIEL, "run", program(host, "forwarded_calls"), words, ORIEL_STATS=self.path("counted.json"))
                self.assertEqual((result.returncode, result.stdout.replace("none\n", ""), result.stderr), (0, "", ""))


class Json(Case):
    def found(self, host, *words, status=86, cwd=None):
        path = os.path.join(cwd, "found.json") if cwd else self.path("found.json")
        result = start(ORIEL, "check", "--json", path, program(host, "mistaken"), *words)
        self.assertEqual(result.returncode, status, result.stderr)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_findings_file_has_all_that_is_printed(self):
        for host in HOSTS:
            job = self.found(host)
            self.assertEqual((job["format"], job["version"], job["host"], job["ranks"], job["complete"]),
                             ("oriel-check", 3, host, 1, True))
            self.assertRegex(job["host_version"], {"mpich": r"^MPICH \d", "openmpi": r"^Open MPI v?\d"}[host])
            self.assertEqual(job["program"], os.path.realpath(program(host, "mistaken")))
            self.assertFalse(job["local_accesses_watched"])
            [finding] = job["findings"]
            self.assertEqual((finding["rule"], finding["window"], finding["flavour"], finding["target"], finding["count"],
                              finding["ranks"]), ("E1", "halo", "allocate", 0, 1, [0]))
            self.assertIsNone(finding["other"])
            call = finding["call"]
            self.assertEqual((call["call"], call["rank"], os.path.basename(call["file"]), call["line"], call["function"]),
                             ("MPI_Put", 0, "mistaken.c", line_of("/* the mistake */"), "mistake"))

    def test_a_stack_is_a_list_of_frames(self):
        for host in HOSTS:
            result = start(ORIEL, "check", "--stacks", "--json", self.path("found.json"), program(host, "mistaken"))
            self.assertEqual(result.returncode, 86, result.stderr)
            with open(self.path("found.json"), encoding="utf-8") as file:
                [finding] = json.load(file)["findings"]
            self.assertEqual([frame.split(" in ")[1] for frame in finding["stack"]][:3], ["mistake", "look", "main"])

    def test_a_window_that_cannot_be_freed_does_not_hang_the_program(self):
        for host in HOSTS:
            job = self.found(host, "right", "post")
            self.assertEqual({finding["rule"] for finding in job["findings"]}, {"E10", "E12"})
            self.assertTrue(job["complete"])

    def test_unchecked_accesses_are_counted(self):
        for host in HOSTS:
            job = self.found(host, "right", "file", status=0)
            self.assertEqual(job["findings"], [])
            self.assertEqual({row["what"].split(": ")[-1]: row["count"] for row in job["not_checked"]},
                             {"MPI_File_open": 3, "MPI_File_close": 3})
            text = start(ORIEL, "check", program(host, "mistaken"), "right", "file").stderr
            self.assertRegex(text, r"; calls not modelled: MPI_File_open \(3\), MPI_File_close \(3\)\n")

    def test_error_handlers_without_room_are_called_and_counted(self):
        for host in HOSTS:
            result = start(ORIEL, "check", "--json", self.path("found.json"), program(host, "many_handlers"))
            self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
            with open(self.path("found.json"), encoding="utf-8") as file:
                rows = {row["what"]: row["count"] for row in json.load(file)["not_checked"]}
            self.assertEqual(rows["error handlers beyond the first 64: their calls are not checked"], 2)

    def test_a_rank_that_leaves_a_call_by_a_jump_is_no_longer_checked(self):
        line = (r"oriel: rank (\d): (MPI_\w+|a call) at [^\n]*jumps.c:\d+[^\n]* was left by a jump; this rank is no longer checked, "
                "and no conflicts are reported from now on \\[O27\\]\n")
        calls = {"send": "MPI_Send", "wait": "MPI_Wait", "handler": "MPI_Send", "copy": "MPI_Comm_dup",
                 "register": "MPI_Request_free", "deeper": "MPI_Send", "room": "MPI_Send", "thread": "MPI_Allreduce",
                 "stack": "MPI_Waitall", "fiber": None, "use": None}
        for host in HOSTS:
            for mode, call in calls.items():
                with self.subTest(host=host, mode=mode):
                    job = start(LAUNCH, "--build", BUILD, "--host", host, "-n", 3, "--plain", "--timeout", 50, "--", ORIEL, "check",
                                program(host, "jumps"), mode)
                    self.assertEqual((job.returncode, job.stdout.count("end")), (86, 3), job.stderr)
                    self.assertEqual(re.findall(line, job.stderr), [] if call is None else [("0", call)], job.stderr)
                    self.assertEqual(re.findall(r"(?m)^error\[([A-Z]\d+)\]: ", job.stderr), ["E1"], job.stderr)
                    self.assertNotRegex(job.stderr, "(?s)registered\n.*was left by a jump; this rank")

    def test_other_nodes_know_of_a_rank_that_jumped_out_of_a_call(self):
        for host in HOSTS:
            job = start(LAUNCH, "--build", BUILD, "--host", host, "-n", 3, "--plain", "--node-size", 1, "--timeout", 50, "--", ORIEL,
                        "check", program(host, "jumps"), "send")
            self.assertEqual((job.returncode, job.stdout.count("end")), (86, 3), job.stderr)
            self.assertEqual(re.findall(r"(?m)^error\[([A-Z]\d+)\]: ", job.stderr), ["E1"], job.stderr)
            self.assertEqual(job.stderr.count("this rank is no longer checked"), 1, job.stderr)

    def test_unchecked_accesses_of_several_nodes_are_added(self):
        for host in HOSTS:
            job = start(LAUNCH, "--build", BUILD, "--host", host, "-n", 2, "--plain", "--node-size", 1, "--timeout", 50, "--",
                        ORIEL, "check", "--no-fail", "--json", self.path("found.json"), program(host, "mistaken"), "right", "file")
            self.assertEqual(job.returncode, 0, job.stderr)
            with open(self.path("found.json"), encoding="utf-8") as file:
                rows = [(row["what"].split(": ")[-1], row["count"]) for row in json.load(file)["not_checked"]]
            self.assertEqual(sorted(rows), [("MPI_File_close", 6), ("MPI_File_open", 6)])

    def test_a_name_that_is_no_text_is_written_as_one(self):
        for host in HOSTS:
            odd = self.path(os.fsdecode(b"mist\xfftaken"))
            shutil.copy(program(host, "mistaken"), odd)
            self.assertEqual(start(ORIEL, "check", "--json", self.path("found.json"), odd).returncode, 86)
            with open(self.path("found.json"), encoding="utf-8") as file:
                self.assertTrue(json.load(file)["program"].endswith("/mist?taken"))

    def test_nothing_found_is_written_too(self):
        for host in HOSTS:
            job = self.found(host, "right", status=0)
            self.assertEqual((job["findings"], job["findings_lost"], job["complete"]), ([], 0, True))

    def test_an_existing_file_is_replaced(self):
        self.write("found.json", "x" * 100000, 0o644)
        self.assertEqual(len(self.found(HOSTS[0])["findings"]), 1)

    def test_an_earlier_jobs_findings_are_removed_when_this_one_dies(self):
        os.symlink("found.json", self.path("link.json"))
        dies = self.write("dies", "#!/bin/sh\nkill -9 $$\n")
        for words, left in (([self.path("none")], "earlier"), ([dies], "")):
            self.write("found.json", "earlier", 0o644)
            result = start(ORIEL, "check", "--host", HOSTS[0], "--json", self.path("link.json"), *words)
            self.assertNotEqual(result.returncode, 0)
            with open(self.path("found.json"), encoding="utf-8") as file:
                self.assertEqual(file.read(), left)
        self.assertTrue(os.path.islink(self.path("link.json")))
        self.refused(start(ORIEL, "report", self.path("found.json")), "is empty: the job that writes it")

    def test_the_reader_of_a_pipe_gets_all(self):
        os.mkfifo(self.path("pipe"))
        for host in HOSTS:
            with subprocess.Popen(["cat", self.path("pipe")], stdout=subprocess.PIPE, text=True) as reader:
                result = start(ORIEL, "check", "--json", self.path("pipe"), program(host, "mistaken"))
                # ends a reader that still waits for a writer
                os.close(os.open(self.path("pipe"), os.O_RDWR))
                self.assertEqual(result.returncode, 86, result.stderr)
                self.assertEqual(len(json.load(reader.stdout)["findings"]), 1)

    def test_a_pipe_without_a_reader_is_awaited_and_then_reported(self):
        os.mkfifo(self.path("pipe"))
        result = start(ORIEL, "check", "--json", self.path("pipe"), program(HOSTS[0], "mistaken"))
        # a waiting reader continues
        os.close(os.open(self.path("pipe"), os.O_RDWR | os.O_NONBLOCK))
        self.assertEqual(result.returncode, 86, result.stderr)
        self.assertIn(f"oriel check: {self.path('pipe')} was not written: the oriel command does not answer\n",
                      result.stderr)

    def test_program_may_change_its_folder(self):
        os.makedirs(self.path("elsewhere"))
        before = os.getcwd()
        try:
            os.chdir(self.folder)
            result = start(ORIEL, "check", "--json", "here.json", program(HOSTS[0], "mistaken"), "wrong", "chdir",
                           self.path("elsewhere"))
        finally:
            os.chdir(before)
        self.assertEqual(result.returncode, 86, result.stderr)
        with open(self.path("here.json"), encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["findings"]), 1)


@unittest.skipUnless(os.geteuid() == 0, "only root can ask as another user")
class Helper(Case):
    """A persistent helper, found by a name that is visible to all processes of the node."""

    QUESTION = struct.pack("<II", 0x4f724832, 0)  # zero addresses; the answer is the same
    NOBODY = 65534

    def setUp(self):
        super().setUp()
        listener = socket.socket(socket.AF_UNIX)
        self.name = f"\0oriel-test-{os.getpid()}"
        listener.bind(self.name)
        listener.listen()
        own, theirs = socket.socketpair()
        os.set_inheritable(listener.fileno(), True)
        helper = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{listener.fileno()}', "sh", ORIEL, "check", "--helper", "places"],
                                  stdin=theirs, stdout=theirs, env=environment(), close_fds=False)
        listener.close()
        theirs.close()
        self.addCleanup(helper.wait, 60)
        self.addCleanup(helper.kill)
        self.addCleanup(own.close)
        own.sendall(self.QUESTION)
        self.assertEqual(own.recv(100), self.QUESTION)

    def ask_as(self, user):
        """The answer, to a process of that user."""
        code = ("import os, socket, sys\n"
                "user, name, question = int(sys.argv[1]), '\\0' + sys.argv[2], bytes.fromhex(sys.argv[3])\n"
                "os.setresuid(user, user, user)\n"
                "asker = socket.socket(socket.AF_UNIX)\n"
                "asker.settimeout(20)\n"
                "asker.connect(name)\n"
                "try:\n"
                "    asker.sendall(question)\n"
                "    print(asker.recv(100).hex())\n"
                "except (BrokenPipeError, ConnectionResetError):\n"
                "    print()\n")
        asked = subprocess.run(["/usr/bin/python3", "-c", code, str(user), self.name[1:], self.QUESTION.hex()],
                               capture_output=True, text=True, timeout=LIMIT_S, check=True)
        return bytes.fromhex(asked.stdout.strip())

    def test_another_user_gets_no_answer(self):
        self.assertEqual(self.ask_as(self.NOBODY), b"")
        self.assertEqual(self.ask_as(0), self.QUESTION)


if __name__ == "__main__":
    unittest.main()
