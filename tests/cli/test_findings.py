"""The forms of findings: source lines, colours and widths, what does not count, SARIF, JUnit and
annotations. Programs are compiled here, because their sources change."""

import json
import os
import re
import shutil
import unittest
import xml.etree.ElementTree

from command import BUILD, Case, HERE, HOSTS, LAUNCH, ORIEL, SANITIZE, start

SOURCE = """#include <mpi.h>

/* Two puts to the same bytes in one epoch. */
static void put_twice(MPI_Win win)
{
    int x = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
    MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
}

int main(int argc, char **argv)
{
    int *base, y;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "halo");
    put_twice(win);
    MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
"""
FIRST, SECOND, GET = 8, 9, 21  # lines of the source
TEXT = """error[C1]: unordered MPI_Put and MPI_Put to the same bytes
  --> app.c:8 in put_twice (rank 0) and app.c:9 in put_twice (rank 0)
   |
 7 |     MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);      epoch of both: a shared lock
 8 |     MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
   |     ^^^^^^^ writes window "halo" (made at app.c:18), rank 0, element 2 (bytes 8 to 11)
 9 |     MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
   |     ^^^^^^^ writes the same bytes
   = help: call MPI_Win_flush(0, win) between app.c:8 and app.c:9

error[E1]: operation outside an access epoch
  --> app.c:21 in main (rank 0)
   |
21 |     MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
   |     ^^^^^^^ window "halo" (made at app.c:18), rank 0, element 0 (bytes 0 to 3)
   = help: call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_Win_fence or MPI_Win_start before
     app.c:21

  C1: MPI_Put at app.c:9 in put_twice and MPI_Put at app.c:8 in put_twice, window "halo": once on rank 0
  E1: MPI_Get at app.c:21 in main, window "halo": once on rank 0
oriel check: local accesses were not watched (compile with -fsanitize=thread)
oriel check: 2 problems (2 occurrences) on 1 rank
"""


def problems_of(schema, value, path="", definitions=None):
    """What the value lacks of a schema, in the few words of JSON Schema that sarif_parts.json has."""
    definitions = definitions or schema["definitions"]
    if "$ref" in schema:
        schema = definitions[schema["$ref"]]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or (kind == "integer" and isinstance(value, bool))):
        return [f"{path}: no {kind}"]
    found = [f"{path}: {value!r}" for wanted in [schema.get("enum")] if wanted is not None and value not in wanted]
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r}")
    if value is not None and value is not True and "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path}: {value}")
    if kind == "object":
        found += [f"{path}: no {name}" for name in schema.get("required", ()) if name not in value]
        for name, inner in value.items():
            if name in schema["properties"]:
                found += problems_of(schema["properties"][name], inner, f"{path}/{name}", definitions)
            else:
                found.append(f"{path}: {name} is unknown")
    if kind == "array":
        for number, inner in enumerate(value):
            found += problems_of(schema["items"], inner, f"{path}/{number}", definitions)
    return found


class Findings(Case):
    """A program with two findings, compiled in the folder where it runs."""

    host = HOSTS[0]

    def build(self, source=SOURCE, *flags, host=None):
        compiler = f"mpicc.{host or self.host}"
        if shutil.which(compiler) is None:
            self.skipTest(f"no {compiler}")
        self.write("app.c", source, 0o644)
        compiled = start(compiler, "-g", "app.c", *flags, "-o", "app", folder=self.folder)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)

    def check(self, *options, status=86, command=("./app",), **changes):
        result = start(ORIEL, "check", *options, *command, folder=self.folder, **changes)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def known(self, text):
        """The name of a suppression file."""
        return self.write("known", text, 0o644)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)


class Form(Findings):
    def test_source_lines_have_marks_and_the_count_is_the_last_line(self):
        for host in HOSTS:
            self.build(host=host)
            self.assertEqual(self.check(), TEXT)

    def test_the_json_has_the_lines_with_their_marks(self):
        self.build()
        text = self.check("--json", "found.json")
        for finding in self.read("found.json")["findings"]:
            self.assertIn("\n".join(finding["source"]) + "\n", text)
            self.assertTrue(any("^^^" in line for line in finding["source"]), finding)
        os.unlink(self.path("app.c"))
        self.check("--json", "found.json")
        self.assertEqual([finding["source"] for finding in self.read("found.json")["findings"]], [[], []])

    def test_colours_only_where_wanted(self):
        self.build()
        for options, changes in (([], {}), (["--color", "never"], {}), (["--color=auto"], {"NO_COLOR": "1"})):
            self.assertNotIn("\x1b", self.check(*options, **changes))
        for changes in ({}, {"NO_COLOR": "1"}):
            text = self.check("--color", "always", **changes)
            self.assertIn("\x1b[1;31merror[C1]\x1b[0m", text)
            self.assertEqual(re.sub("\x1b\\[[0-9;]*m", "", text), TEXT)
        self.refused(start(ORIEL, "check", "--color", "maybe", self.path("app")), '"maybe" is neither auto, always nor never')

    def test_a_terminal_decides_colour_and_width(self):
        if shutil.which("script") is None:
            self.skipTest("no script")
        self.build()
        for before, after in (("", True), ("NO_COLOR=1 ", False)):
            command = f"stty cols 40; {before}{ORIEL} check ./app"
            text = start("script", "-qec", command, "/dev/null", folder=self.folder).stdout.replace("\r", "")
            self.assertEqual("\x1b[1;31merror[C1]" in text, after, text)
            self.assertIn("= help: call MPI_Win_flush(0, win)\n", re.sub("\x1b\\[[0-9;]*m", "", text))

    def test_forty_columns_hold_all_lines_but_the_summarys(self):
        self.build()
        text = self.check(COLUMNS="40")
        findings = text.partition("\n  C1: ")[0]
        self.assertLessEqual(max(map(len, findings.splitlines())), 40, text)
        words = " ".join(re.sub(r"(?m)^ *\|", "", findings).split())
        self.assertIn('writes window "halo" (made at app.c:18), rank 0, element 2 (bytes 8 to 11)', words)
        self.assertIn("call MPI_Win_flush(0, win) between app.c:8 and app.c:9", words)

    def test_a_call_beyond_the_width_is_brought_into_view(self):
        self.build(SOURCE.replace("    MPI_Get(", "    /* before the call comes a comment that fills the line */ MPI_Get("))
        text = self.check("--only", "E1", COLUMNS="50")
        self.assertIn("21 | ...e */ MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_\n   |         ^^^^^^^\n", text)
        self.assertIn('window "halo" (made at app.c:18)', text)
        self.assertLessEqual(max(map(len, text.partition("\n  E1: ")[0].splitlines())), 50, text)
        # a second call of the line is named
        self.build(SOURCE.replace("MPI_INT, win);\n    MPI_Put(", "MPI_INT, win); MPI_Get("))
        text = self.check("--only", "C1", COLUMNS="50")
        self.assertIn(" 8 | ", text)
        self.assertRegex(text, r"(?m)^   \| MPI_(Put: writes|Get: reads) ")

    def test_marks_are_below_the_call_and_not_below_words_like_it(self):
        self.build(SOURCE.replace("    MPI_Get(", '    int MPI_Get_code = !"MPI_Get" + MPI_Get('))
        text = self.check("--only", "E1")
        self.assertRegex(text, r'(?m)^21 \|     int MPI_Get_code = !"MPI_Get" \+ MPI_Get\(&y.*\n   \| {37}\^{7}\n')
        self.build(SOURCE.replace("    MPI_Get(", '\tint MPI_Get_code = MPI_Get ('))  # after a tab, with a space before the parenthesis
        self.assertRegex(self.check("--only", "E1"), r"(?m)^21 \|     int MPI_Get_code = MPI_Get \(&y.*\n   \| {24}\^{7}\n")

    def test_a_note_without_room_beside_the_mark_is_below_it(self):
        self.build(SOURCE.replace("MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win)",
                                  "MPI_Get_accumulate(&y, 1, MPI_INT, &y, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win)"))
        text = self.check("--only", "E1", COLUMNS="40")
        self.assertIn('\n   |     ^^^^^^^^^^^^^^^^^^\n   | window "halo" (made at app.c:18),\n', text)

    def test_more_files_than_the_command_keeps_are_quoted(self):
        files = 70
        for number in range(files):
            self.write(f"part{number}.h", f"static void part{number}(MPI_Win win)\n{{\n    static int y{number};\n"
                       f"    MPI_Get(&y{number}, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\n}}\n", 0o644)
        self.build(SOURCE.replace("int main(", "".join(f'#include "part{number}.h"\n' for number in range(files)) + "int main(").replace(
            "    MPI_Win_free", "".join(f"    part{number}(win);\n" for number in range(files)) + "    MPI_Win_free"))
        text = self.check("--only", "E1", "--junit", "found.xml")
        for number in range(files):
            self.assertRegex(text, rf"(?m)^ *4 \|     MPI_Get\(&y{number}, .*\n *\|     \^{{7}} window")

    def test_characters_of_several_bytes_are_not_cut(self):
        self.build(SOURCE.replace("0, 0, 1, MPI_INT, win);", "0, 0, 1, MPI_INT, win); /* " + 80 * "\u00e4" + " */"))
        self.assertRegex(self.check("--only", "E1"), "(?m)^21 .*win\\); /\\* \u00e4+$") # start() decodes it

    def test_calls_in_one_line_have_a_help_that_tells_them_apart(self):
        self.build(SOURCE.replace("    MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\n" * 2,
                                  "    for (int i = 0; i < 2; i++)\n        MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\n"))
        self.assertIn("= help: call MPI_Win_flush(0, win) between two calls of MPI_Put at app.c:9\n", self.check("--only", "C1"))
        self.build(SOURCE.replace("MPI_INT, win);\n    MPI_Put(", "MPI_INT, win); MPI_Get("))
        self.assertIn("= help: call MPI_Win_flush(0, win) between MPI_Put and MPI_Get at app.c:8\n", self.check("--only", "C1"))

    def test_all_bytes_of_a_conflict_are_named(self):
        for first, count, bytes_named in ((14, 4, "elements 14 to 17 (bytes 56 to 71)"), (0, 40, "elements 0 to 39 (bytes 0 to 159)")):
            self.build(SOURCE.replace("(64, 4,", "(4096, 4,").replace("int x = 1", "int x[64] = {1}").replace("&x, 1", f"x, {count}").replace(
                "0, 2, 1, MPI_INT", f"0, {first}, {count}, MPI_INT"))
            self.assertIn(bytes_named, re.sub(r"\n +\|? ", " ", self.check("--only", "C1")))

    def test_a_buffer_that_ends_is_marked_as_such(self):
        put = "    MPI_Put(b, 1, MPI_INT, 0, 1, 1, MPI_INT, win);\n"
        for free, mark in (("    free(b);\n", "free(b);\n   |     ^^^^ frees the same bytes\n"),
                           ("", "MPI_Win_unlock(0, win);\n   |     ^^^^^^^^^^^^^^^^^^^^^^^ the function with the buffer has returned "
                                "before this call\n")):
            buffer = "malloc(4)" if free else "(int[1]){0}"
            self.build("#include <stdlib.h>\n" + SOURCE.replace("    put_twice(win);\n    MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\n",
                       "    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);\n    part(win);\n    MPI_Win_unlock(0, win);\n").replace(
                       "int main(", "__attribute__((noinline)) static void part(MPI_Win win)\n{\n    int *b = " + buffer + ";\n    *b = 3;\n" +
                       put + free + "}\n\nint main(").replace("int *base, y", "int *base"), "-Wno-unused-function")
            text = self.check()
            self.assertRegex(text, r"error\[L3\].*\n  --> app.c:\d+ in part \(rank 0\) and app.c:\d+ in ")
            self.assertIn("MPI_Put(b, 1, MPI_INT, 0, 1, 1, MPI_INT, win);\n   |     ^^^^^^^ reads the buffer\n", text)
            self.assertIn(mark, text)

    def test_a_program_without_debug_information_has_its_calls_told_apart(self):
        self.build(SOURCE, "-g0")
        text = re.sub(r"\n +", " ", self.check("--only", "C1"))
        self.assertRegex(text, r"MPI_Win_lock at put_twice\+0x\w+ of app: epoch of both: a shared lock")
        self.assertRegex(text, r"help: call MPI_Win_flush\(0, win\) between put_twice\+0x\w+ of app and put_twice\+0x\w+ of app")

    def test_functions_of_openmp_have_no_offsets_where_lines_are_known(self):
        self.build(SOURCE.replace("    MPI_Get(", "#pragma omp parallel num_threads(1)\n#pragma omp single nowait\n    MPI_Get("), "-fopenmp")
        self.assertRegex(self.check("--only", "E1"), r"--> app.c:23 in main\._omp_fn\.0 \(rank 0\)\n")

    def test_a_result_at_the_target_is_named(self):
        self.build(SOURCE.replace("    MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\n" * 2,
                   "    void *memory;\n    int found;\n    MPI_Win_get_attr(win, MPI_WIN_BASE, &memory, &found);\n"
                   "    MPI_Get_accumulate(&x, 1, MPI_INT, memory, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win);\n"))
        text = self.check("--only", "C1")
        self.assertRegex(text, r"\^{18} reads (the same bytes|window)")
        self.assertNotIn("updates", text)
        self.assertIn("= help: the call's own buffer is at its target, in the window's memory on rank 0: use", text)

    def test_the_path_of_a_source_has_no_way_through_a_build_folder(self):
        """Unless the folder is a link: there, the parent is another one."""
        self.write("app.c", SOURCE, 0o644)
        os.makedirs(self.path("deep/real"))
        self.write("deep/app.c", SOURCE, 0o644)
        os.makedirs(self.path("build"))
        os.symlink("deep/real", self.path("link"))
        name = os.path.basename(self.folder)
        for folder, source, shown in (("build", "../app.c", "app.c"), ("link", "../app.c", "link/../app.c"),
                                      ("build", f"..//../{name}/app.c", None)):
            compiled = start("sh", "-c", f'cd {folder} && mpicc.{self.host} -g {source} -o {self.path("app")}', folder=self.folder)
            if compiled.returncode == 127:
                self.skipTest("no mpicc")
            self.assertEqual(compiled.returncode, 0, compiled.stderr)
            text = self.check("--only", "E1")
            if shown is not None:
                self.assertIn(f"  --> {shown}:{GET} in main (rank 0)\n", text)
            self.assertIn(f"\n{GET} |     MPI_Get(&y, ", text)

    def test_a_source_that_changed_since_the_build_is_not_quoted(self):
        self.build()
        self.write("app.c", "/* a line more */\n" + SOURCE.replace("put_twice(win);", "put_twice(win); // oriel: allow C1 why"), 0o644)
        os.utime(self.path("app"), (1, 1))
        text = self.check()
        self.assertIn("app.c is newer than the program: it changed since the build, and is not quoted", text)
        self.assertIn("  --> app.c:8 in put_twice (rank 0)", text)
        self.assertNotIn("^^^", text)
        self.assertNotIn("int x", text)
        self.assertIn('= note: MPI_Put: writes window "halo"', text)
        self.assertIn("2 problems", text)

    @unittest.skipIf("address" in SANITIZE, "strip breaks what the sanitizer needs")
    def test_a_stripped_library_is_named(self):
        self.write("part.c", "#include <mpi.h>\nvoid part(MPI_Win win)\n{\n    int x = 1;\n"
                             "    MPI_Put(&x, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\n    x = 2;\n}\n", 0o644)
        if shutil.which(f"mpicc.{self.host}") is None:
            self.skipTest("no mpicc")
        start(f"mpicc.{self.host}", "-shared", "-fPIC", "-s", "part.c", "-o", "libpart.so", folder=self.folder)
        self.build(SOURCE.replace("#include <mpi.h>", "#include <mpi.h>\nvoid part(MPI_Win win);").replace("put_twice(win);\n    MPI_Get",
                   "part(win);\n    put_twice(win);\n    MPI_Get"), "-L.", "-lpart", "-Wl,-rpath," + self.folder)
        text = self.check("--only", "E1")
        self.assertRegex(text, r"(?m)^ +--> part\+0x[0-9a-f]+ of libpart\.so \(rank 0\)$")
        self.assertIn("= note: libpart.so has no debug information: compile with -g to see files and", text)
        text = self.check("--suppress", self.known( 'E1 library=libpart.so because not ours\n'))
        self.assertNotIn("libpart", text)
        self.assertIn("; 1 suppressed", text)

    def test_two_calls_in_one_line_are_one_finding(self):
        self.build(SOURCE.replace("    MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);",
                                  "    MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win); "
                                  "MPI_Get(&y, 1, MPI_INT, 0, 1, 1, MPI_INT, win);"))
        text = self.check("--only", "E1")
        self.assertEqual(text.count("error[E1]"), 1)
        self.assertIn("2 times on rank 0", text)
        self.assertIn("1 problem (2 occurrences)", text)

    def test_ten_thousand_findings_stay_readable(self):
        loop = 'for (int i = 0; i < 10000; i++) { char name[32]; snprintf(name, sizeof name, "w%d", i); ' \
               "MPI_Win_set_name(win, name); MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win); }"
        self.build("#include <stdio.h>\n" + SOURCE.replace("    put_twice(win);\n", "").replace(
            "MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);", loop))
        text = self.check("--json", "found.json")
        job = self.read("found.json")
        self.assertEqual((len(job["findings"]), job["findings_lost"]), (1024, 10000 - 1024))
        self.assertEqual(text.count("error[E1]"), 100)
        self.assertEqual(text.count("more than 100 problems on this node"), 1)
        self.assertIn("  and 974 more, which --json, --sarif and --junit list\n", text)
        self.assertIn("; no room for 8976 more findings\n", text)
        self.assertTrue(text.endswith("1024 problems (1024 occurrences) on 1 rank\n"), text[-200:])
        self.assertLess(text.count("\n"), 1000)


LOCKS = """#include <mpi.h>

int main(int argc, char **argv)
{
    long *base, x = 1;
    int rank;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, "halo");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
"""


class Jobs(Findings):
    """Findings of two ranks, under each host's launcher."""

    def run_job(self, host, *options):
        return start(LAUNCH, "--build", BUILD, "--host", host, "-n", 2, "--plain", "--timeout", 50, "--", ORIEL, "check", *options,
                     "./app", folder=self.folder)

    def test_both_ranks_and_the_lock_to_use_are_named(self):
        for host in HOSTS:
            self.build(LOCKS, host=host)
            job = self.run_job(host)
            self.assertEqual(job.returncode, 86, job.stderr)
            self.assertRegex(job.stderr, r"(?m)^  --> app.c:14 in main \(rank [01]\) and app.c:14 in main \(rank [01]\)$")
            self.assertIn("13 |     MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);      epoch of both: a shared lock\n", job.stderr)
            self.assertIn("   = help: both ranks hold a shared lock: use MPI_LOCK_EXCLUSIVE at app.c:13, or MPI_Accumulate with\n",
                          job.stderr)
            count = "\noriel check: 1 problem (1 occurrence) on 2 ranks\n"
            self.assertEqual(job.stderr[-len(count):], count)
            self.assertEqual(job.stderr.count(count), 2 if "non-zero" in job.stderr else 1)  # after the launcher's words
            self.assertEqual(self.run_job(host, "--no-fail").stderr.count(count), 1)
            self.assertEqual([pid for pid in os.listdir("/proc") if pid.isdigit() and self.waits(pid)], [])

    def waits(self, pid):
        """Whether it is a helper of a job in this folder."""
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return b"--helper" in file.read() and os.readlink(f"/proc/{pid}/cwd") == os.path.realpath(self.folder)
        except OSError:
            return False

    def test_a_forgotten_unlock_is_one_finding_with_the_line_of_the_lock(self):
        for host in HOSTS:
            self.build(LOCKS.replace("    MPI_Win_unlock(0, win);\n", ""), host=host)
            job = self.run_job(host, "--only", "E*")
            self.assertEqual(job.stderr.count("error[E12]"), 1, job.stderr)
            self.assertIn("= help: the lock at app.c:13 is still held: call MPI_Win_unlock(0, win) before app.c:15\n", job.stderr)
            self.assertIn("1 problem (2 occurrences) on 2 ranks; some rules are left out\n", job.stderr)
            # the other rank waits for the lock
            self.build(LOCKS.replace("LOCK_SHARED", "LOCK_EXCLUSIVE").replace("MPI_Win_unlock(0, win)", "MPI_Barrier(MPI_COMM_WORLD)"),
                       host=host)
            job = self.run_job(host)
            self.assertEqual(job.stderr.count("error[D1]"), 1, job.stderr)
            self.assertRegex(job.stderr, r"= help: rank [01] locked at app.c:13: let it call MPI_Win_unlock before app.c:15\n")

    def test_accumulates_that_overlap_by_a_part_are_told_to_shift(self):
        put = "MPI_Put(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win)"
        for host in HOSTS:
            self.build(LOCKS.replace("(64, 8,", "(64, 1,").replace(put, put.replace("Put", "Accumulate").replace("3, 1", "4 * rank, 1").replace(
                ", win)", ", MPI_SUM, win)")), host=host)
            job = self.run_job(host)
            self.assertIn("error[C3]", job.stderr)
            self.assertIn("or let them differ by whole elements in their displacements", re.sub(r"\n +", " ", job.stderr))

    def test_a_program_under_a_lock_is_told_to_enclose_the_other_access(self):
        # a message reads window memory that another rank has put to; a file orders the two
        source = LOCKS.replace("#include <mpi.h>", "#include <mpi.h>\n#include <sys/stat.h>\n#include <unistd.h>")
        source = source.replace("    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);\n    MPI_Put(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win);\n"
                                "    MPI_Win_unlock(0, win);\n", """    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
        mkdir("done", 0700);
    } else {
        while (access("done", F_OK) != 0)
            usleep(1000);
        MPI_Sendrecv(base + 3, 1, MPI_LONG, 0, 0, &x, 1, MPI_LONG, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
""")
        for host in HOSTS:
            self.build(source, host=host)
            text = re.sub(r"\n +", " ", self.run_job(host).stderr)
            os.rmdir(self.path("done"))
            self.assertIn("help: on rank 0, enclose app.c:23 in MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) and MPI_Win_unlock(0, win)",
                          text)

    @unittest.skipIf(SANITIZE, "the program has a sanitizer of its own")
    def test_a_buffer_of_two_threads_is_named_as_such(self):
        source = """#include <mpi.h>
#include <pthread.h>
#include <unistd.h>
static int x = 1, ends[2];
static void *store(void *ready)
{
    if (read(ends[0], &ready, 1) == 1) /* order that the checker does not know */
        x = 2;
    return NULL;
}
int main(int argc, char **argv)
{
    int *base, level;
    pthread_t thread;
    MPI_Win win;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Win_allocate(64, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (pipe(ends) == 0 && pthread_create(&thread, NULL, store, NULL) == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
        write(ends[1], "", 1);
        pthread_join(thread, NULL);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
}
"""
        for host in HOSTS:
            self.build(source, "-fsanitize=thread", "-Wno-unused-result", host=host)
            text = re.sub(r"\n +", " ", self.check())
            self.assertRegex(text, r"bytes of the buffer at 0x\w+\. Two threads of the rank use it without order\.")
            self.assertIn("help: give each thread its own buffer, or complete the operation and order the threads between app.c:20 and "
                          "app.c:8", text)

    @unittest.skipIf(SANITIZE, "the program has a sanitizer of its own")
    def test_a_store_before_an_operation_is_told_to_come_first(self):
        source = LOCKS.replace("#include <mpi.h>", "#include <mpi.h>\n#include <sys/stat.h>\n#include <unistd.h>")
        source = source.replace("    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);\n    MPI_Put(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win);\n"
                                "    MPI_Win_unlock(0, win);\n", """    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        base[3] = x;
        mkdir("stored", 0700);
    } else {
        while (access("stored", F_OK) != 0)
            usleep(1000);
        MPI_Get(&x, 1, MPI_LONG, 0, 3, 1, MPI_LONG, win);
    }
    MPI_Win_unlock_all(win);
""")
        for host in HOSTS:
            self.build(source, "-fsanitize=thread", host=host)
            job = self.run_job(host)
            os.rmdir(self.path("stored"))
            self.assertIn("help: call MPI_Win_sync(win) on rank 0 after app.c:17, then a barrier or a message before app.c:22",
                          re.sub(r"\n +", " ", job.stderr))
        self.build(source.replace("\n        ", " ").replace("\n    } else", " } else"), "-fsanitize=thread")
        job = self.run_job(self.host)
        self.assertIn("after store at app.c:16, then a barrier or a message before MPI_Get at app.c:16", re.sub(r"\n +", " ", job.stderr))

    def test_the_launchers_terminal_decides_colour_and_width(self):
        if shutil.which("script") is None:
            self.skipTest("no script")
        for host in HOSTS:
            self.build(LOCKS, host=host)
            command = f"stty cols 60; {LAUNCH} --build {BUILD} --host {host} -n 2 --plain --timeout 50 -- {ORIEL} check ./app"
            text = start("script", "-qec", command, "/dev/null", folder=self.folder).stdout.replace("\r", "")
            self.assertIn("\x1b[1;31merror[C1]\x1b[0m", text)
            lines = re.sub("\x1b\\[[0-9;]*m", "", text).partition("\n  C1: ")[0].splitlines()
            self.assertLessEqual(max(map(len, lines)), 60, text)


class Counting(Findings):
    def test_a_suppression_names_a_finding_and_a_reason(self):
        self.build()
        for fields in ("function=put_*", "file=app.c", 'file="*/app.c"', "library=app", 'window="ha*"',
                       "function=put_twice file=a?p.c window=halo"):
            with self.subTest(fields=fields):
                name = self.known( f"# old code\n\nC* {fields} because both write the same\nE2 because never\n")
                text = self.check("--suppress", name, "--json", "found.json")
                self.assertNotIn("[C1]", text)
                self.assertIn("error[E1]", text)
                self.assertIn("oriel check: known:4: this suppression matches no finding of the job\n", text)
                self.assertTrue(text.endswith("1 problem (1 occurrence) on 1 rank; 1 suppressed\n"), text)
                excused = {finding["rule"]: (finding["excused"], finding["reason"]) for finding in self.read("found.json")["findings"]}
                self.assertEqual(excused, {"C1": ("suppressed", "known:3: both write the same"), "E1": (None, None)})
        for fields in ("function=put", "file=other.c", "library=libc*", "window=h", "function=put_twice window=x"):
            with self.subTest(fields=fields):
                self.assertIn("2 problems", self.check("--suppress", self.known( f"C1 {fields} because it differs\n")))
        everything = self.known( "* because all of it is old\n")
        self.assertIn("no problems on 1 rank; 2 suppressed", self.check("--suppress", everything, status=0))

    def test_errors_of_a_suppression_file_are_named_by_line(self):
        self.build()
        name = self.known( 'C1 because\nZ9 because x\n# fine\nE1 fil=x because y\nC1 file="a b because x\nC1 file= because x\n'
                          "C1 file=a file=b because x\nD1 because x\nC1 function=f\n")
        result = start(ORIEL, "check", "--suppress", name, "./app", folder=self.folder)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        lines = result.stderr.splitlines()
        self.assertEqual([re.search(r"known:(\d+): ", line).group(1) for line in lines], list("12456789"))
        for line, words in zip(lines, ("the reason is missing", 'no rule is named "Z9"', '"fil=x" is neither', "a quote has no end",
                                       "file= has no pattern", "file= is given twice", "D1 is always reported",
                                       "the reason is missing")):
            self.assertIn(words, line)
        self.refused(start(ORIEL, "check", "--suppress", self.path("none"), self.path("app")), "none: No such file")
        self.refused(start(ORIEL, "check", "--suppress", self.folder, self.path("app")), f"{self.folder}:1: Is a directory")
        # where the command has not read them: the first file with errors is named
        for variables in ({}, {"ORIEL_CHECK_BASELINE": self.path("none")}):
            named = self.check(ORIEL_CHECK_SUPPRESS=name, **variables)
            self.assertIn("known:2: no rule is named", named)
            self.assertNotIn("none", named)

    def test_rules_are_chosen(self):
        self.build()
        for options, rules in ((["--only", "C1"], ["C1"]), (["--only=c*,H3"], ["C1"]), (["--ignore", "C*"], ["E1"]),
                               (["--only", "C*,E*", "--ignore", "E1"], ["C1"])):
            text = self.check(*options)
            self.assertEqual(re.findall(r"(?m)^error\[(\w+)\]", text), rules)
            self.assertTrue(text.endswith("1 problem (1 occurrence) on 1 rank; some rules are left out\n"), text)
        self.assertIn("no problems on 1 rank; some rules", self.check("--only", "H*", status=0))
        for options, words in ((["--only", "Z9"], '--only: no rule is named "Z9"'), (["--ignore", ""], "--ignore: no rule is named"),
                               (["--ignore", "D1"], "D1 is always reported")):
            self.refused(start(ORIEL, "check", *options, self.path("app")), words)

    def test_a_baseline_excuses_each_finding_once(self):
        self.build()
        self.check("--json", "before.json")
        self.assertIn("no problems on 1 rank; 2 known", self.check("--baseline", "before.json", status=0))
        # the same findings some lines further down, and one more
        self.build("\n\n\n" + SOURCE.replace("    MPI_Win_free", "    MPI_Get(&y, 1, MPI_INT, 0, 0, 1, MPI_INT, win);\n    MPI_Win_free"))
        text = self.check("--baseline", "before.json", "--sarif", "new.sarif")
        self.assertEqual(re.findall(r"(?m)^error\[(\w+)\]", text), ["E1"])
        self.assertTrue(text.endswith("1 problem (1 occurrence) on 1 rank; 2 known\n"), text)
        states = [result["baselineState"] for result in self.read("new.sarif")["runs"][0]["results"]]
        self.assertEqual(sorted(states), ["new", "unchanged", "unchanged"])
        self.refused(start(ORIEL, "check", "--baseline", "before.json", "--json", "./before.json", "./app", folder=self.folder),
                     "--baseline and --json name the same file")
        for content, words in (("{", "line"), ("{}", "not a findings file of oriel check"), (None, "none")):
            name = self.path("none") if content is None else self.write("odd.json", content, 0o644)
            result = start(ORIEL, "check", "--baseline", name, "./app", folder=self.folder)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
            self.assertIn("--baseline: ", result.stderr)

    def test_a_comment_allows_a_rule_for_a_reason(self):
        put = "    MPI_Put(&x, 1, MPI_INT, 0, 2, 1, MPI_INT, win);\n    MPI_Win_unlock"
        for comment in ("// oriel: allow C1 both write 1", "/* oriel: allow E1,C1 both write 1 */", "// oriel: allow C* both write 1",
                        "//oriel:allow C1 both write 1", "// oriel: allow E2, C1: both write 1"):
            with self.subTest(comment=comment):
                self.build(SOURCE.replace(put, put.replace("win);\n", f"win); {comment}\n")))
                text = self.check()
                self.assertEqual(re.findall(r"(?m)^error\[(\w+)\]", text), ["E1"], text)
                self.assertTrue(text.endswith("; 1 allowed\n"), text)
        self.build(SOURCE.replace(put, "    /* oriel: allow C1 both write 1 */\n" + put))
        self.assertIn("; 1 allowed\n", self.check("--json", "found.json"))
        reasons = [finding["reason"] for finding in self.read("found.json")["findings"]]
        self.assertEqual(reasons, ["app.c:10: both write 1", None])
        for comment, note in (("// oriel: allow C1", True), ("// oriel: allow C2 why", False), ("", False)):
            self.build(SOURCE.replace(put, put.replace("win);\n", f"win); {comment}\n", 1)))
            text = self.check()
            self.assertIn("2 problems", text)
            self.assertEqual("app.c:9 has no reason, so it allows nothing" in text, note, text)
        self.build(SOURCE.replace(put, put.replace("win);\n", 'win); "oriel: allow C1 no comment";\n', 1)), "-Wno-unused-value")
        self.assertIn("2 problems", self.check())

    def test_comments_of_other_languages(self):
        fortran = f"mpif90.{self.host}"
        if shutil.which(fortran) is None:
            self.skipTest(f"no {fortran}")
        with open(os.path.join(HERE, "mistaken_fortran.f90"), encoding="utf-8") as file:
            source = file.read()
        self.write("app.f90", source.replace("! the mistake", "! oriel: allow E1 for a test"), 0o644)
        compiled = start(fortran, "-g", "app.f90", "-o", "app", folder=self.folder)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertIn("no problems on 1 rank; 1 allowed", self.check(status=0))


class Machines(Findings):
    """Files for other programs."""

    def test_sarif_has_the_shape_of_the_standard(self):
        with open(os.path.join(HERE, "sarif_parts.json"), encoding="utf-8") as file:
            schema = json.load(file)
        for host in HOSTS:
            self.build(host=host)
            self.check("--sarif", "found.sarif", "--suppress", self.known( "C1 because of age\n"))
            log = self.read("found.sarif")
            self.assertEqual(problems_of(schema, log), [])
            [run] = log["runs"]
            first, second = run["results"]
            rules = run["tool"]["driver"]["rules"]
            self.assertEqual([rules[result["ruleIndex"]]["id"] for result in run["results"]], ["C1", "E1"])
            place = first["locations"][0]["physicalLocation"]
            self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("app.c", SECOND))
            self.assertEqual([other["physicalLocation"]["region"]["startLine"] for other in first["relatedLocations"]],
                             [FIRST, FIRST - 1, FIRST - 1, 18])
            self.assertEqual(first["suppressions"], [{"kind": "external", "justification": "known:1: of age"}])
            self.assertEqual((second["suppressions"], second["level"]), ([], "error"))
            self.assertIn("Help: call MPI_Win_lock(", second["message"]["text"])
        self.assertEqual(problems_of(schema, dict(log, runs=[{"results": [{"level": "bad"}]}])),
                         ["/runs/0: no tool", "/runs/0/results/0: no message", "/runs/0/results/0/level: 'bad'"])

    def test_junit_has_a_case_for_each_finding(self):
        self.build()
        self.check("--junit", "found.xml", "--suppress", self.known( 'C1 because a < "b"\n'))
        suite = xml.etree.ElementTree.parse(self.path("found.xml")).getroot().find("testsuite")
        self.assertEqual([suite.get(name) for name in ("tests", "failures", "errors", "skipped")], ["2", "1", "0", "1"])
        conflict, outside = suite.findall("testcase")
        self.assertEqual(conflict.find("skipped").get("message"), 'known:1: a < "b"')
        self.assertEqual((outside.get("classname"), outside.get("file"), outside.get("line")), ("E1", "app.c", str(GET)))
        self.assertIn("MPI_Get(&y, 1,", outside.find("failure").text)
        with open(self.known(""), "wb") as file: # the reason is not UTF-8
            file.write(b"C1 because \xe4 \xc3\xa4\x7f\n")
        self.check("--junit", "found.xml", "--suppress", "known")
        suite = xml.etree.ElementTree.parse(self.path("found.xml")).getroot().find("testsuite")
        self.assertEqual(suite.find("testcase/skipped").get("message"), "known:1: ? \u00e4\x7f")
        self.check("--junit", "found.xml", "--only", "H*", status=0)
        suite = xml.etree.ElementTree.parse(self.path("found.xml")).getroot().find("testsuite")
        self.assertEqual([case.get("name") for case in suite.findall("testcase")], ["no findings"])

    def test_github_shows_findings_at_their_lines(self):
        self.build()
        self.assertNotIn("::error", self.check(GITHUB_ACTIONS=""))
        text = self.check(GITHUB_ACTIONS="true")
        self.assertIn(f"\n::error file=app.c,line={GET},title=oriel check E1::operation outside an access epoch%0Acall MPI_Win_lock(",
                      text)
        self.assertIn(f"\n::error file=app.c,line={SECOND},title=oriel check C1::", text)
        self.assertTrue(text.endswith("oriel check: 2 problems (2 occurrences) on 1 rank\n"))

    def test_names_of_files_may_have_any_character(self):
        self.build()
        os.rename(self.path("app.c"), self.path("an: odd,na%me.c"))
        compiled = start(f"mpicc.{self.host}", "-g", "an: odd,na%me.c", "-o", "app", folder=self.folder)
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        text = self.check("--sarif", "found.sarif", GITHUB_ACTIONS="true")
        self.assertIn(f"\n::error file=an%3A odd%2Cna%25me.c,line={GET},title=oriel check E1::", text)
        places = [result["locations"][0]["physicalLocation"] for result in self.read("found.sarif")["runs"][0]["results"]]
        self.assertEqual([place["artifactLocation"]["uri"] for place in places], 2 * ["an%3A%20odd%2Cna%25me.c"])

    def test_a_file_whose_folder_is_gone_is_named(self):
        os.mkdir(self.path("gone"))
        self.build("#include <stdlib.h>\n" + SOURCE.replace("    MPI_Finalize", '    if (system("rm -r gone") != 0)\n        return 1;\n'
                                                            "    MPI_Finalize"))
        for option in ("--json", "--sarif", "--junit"):
            os.makedirs(self.path("gone"), exist_ok=True)
            self.assertIn(f"\noriel check: {self.path('gone/found')} was not written: No such file or directory\n",
                          self.check(option, "gone/found"))

    def test_files_that_cannot_be_written_are_refused(self):
        for option in ("--sarif", "--junit"):
            self.refused(start(ORIEL, "check", option, self.path("none/found"), self.path("app")), f"{option}: ", "No such file")


if __name__ == "__main__":
    unittest.main()
