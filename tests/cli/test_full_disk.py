"""Jobs and commands without space for their output: a full file system, one without inodes, files
with a size limit. The program's own results and status are unchanged, one line names the file,
and no partial output stays.

Each test mounts a small file system in a mount namespace of its own. An ordinary user (--user)
creates it inside a user namespace."""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from command import BUILD, Case, HOSTS, LAUNCH, ORIEL, environment, program

APART = "TESTS_APART"  # set in the namespace
SKIP, NOBODY = 77, 65534
FULL, LONG = "No space left on device", "File (is )?too large"
KIB = 1024
PAGE = os.path.join(BUILD, "share", "oriel", "report.html")


def observed(host, name):
    return os.path.join(BUILD, "tests", "observe", host, name)


class Disk(Case):
    """A small disk, full except for the space that a test frees."""

    def mount(self, name="disk", options="size=1m"):
        folder = self.path(name)
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=True)
        return folder

    def fill(self, folder, left_bytes=0):
        """Leaves only the given number of bytes free."""
        path = os.path.join(folder, "filler")
        with open(path, "wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4 * KIB)) > 0:
                    pass
            except OSError:
                pass
            os.truncate(path, os.path.getsize(path) - left_bytes)

    def full(self, left_bytes=0, **more):
        folder = self.mount(**more)
        self.fill(folder, left_bytes)
        return folder

    def run_words(self, *words, limit=None, **changes):
        """limit: maximum file size in bytes; its signal keeps the default action."""
        before = [] if limit is None else ["prlimit", f"--fsize={limit}"]
        # the default location may contain another user's folder
        env = environment(**{"OMPI_MCA_orte_tmpdir_base": self.folder, **changes})
        return subprocess.run([*before, *map(str, words)], env=env, capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, check=False)

    def launch(self, host, *words, ranks=2, options=(), limit=None, **variables):
        pairs = [f"--env={name}={value}" for name, value in variables.items()]
        return self.run_words(LAUNCH, "--build", BUILD, "--host", host, "-n", ranks, "--timeout", 90, *options, *pairs, "--",
                              *words, limit=limit)

    def oriel_lines(self, result):
        return [line for line in result.stderr.splitlines() if line.startswith("oriel")]

    def left_in(self, folder):
        return sorted(set(os.listdir(folder)) - {"filler"})


class TemporaryFiles(Disk):
    def test_oriel_has_none(self):
        """A host may have files in TMPDIR: Open MPI does, unless configured otherwise."""
        for host in HOSTS:
            with self.subTest(host=host):
                folder = self.full()
                if self.launch(host, "/bin/true", options=["--plain"], TMPDIR=folder).returncode != 0:
                    self.skipTest(f"the launcher of {host} needs room in TMPDIR")
                job = self.launch(host, program(host, "one_put"), TMPDIR=folder, ORIEL_STATS="1")
                self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
                self.assertEqual(job.stdout.count("memory=42\n"), 2)
                self.assertEqual([line for line in self.oriel_lines(job) if "statistics of one_put" not in line], [])
                self.assertEqual(self.left_in(folder), [])


class Statistics(Disk):
    def check(self, host, folder, words, **more):
        path = os.path.join(folder, "statistics.json")
        job = self.launch(host, observed(host, "counted"), "counts", ORIEL_STATS=path, **more)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertIn("ok counts", job.stdout)
        warnings = [line for line in self.oriel_lines(job) if "ORIEL_STATS" in line]
        self.assertEqual(len(warnings), 1, job.stderr)
        self.assertRegex(warnings[0], f"ORIEL_STATS: {path} cannot be written: {words}")
        self.assertEqual(job.stderr.count("oriel: statistics of counted, 2 ranks"), 1, job.stderr)
        self.assertEqual(self.left_in(folder), [])

    def test_the_table_is_printed_instead(self):
        for host in HOSTS:
            for left_bytes in (0, 4 * KIB):
                with self.subTest(host=host, left_bytes=left_bytes):
                    self.check(host, self.full(left_bytes), FULL)

    def test_a_disk_without_inodes(self):
        for host in HOSTS:
            with self.subTest(host=host):
                self.check(host, self.mount(options="size=1m,nr_inodes=1"), FULL)

    def test_files_that_may_not_grow(self):
        for host in HOSTS:
            with self.subTest(host=host):
                self.check(host, self.mount(), LONG, TEST_FILE_BYTES=3 * KIB)

    def test_the_target_of_a_link_is_removed_and_not_the_link(self):
        link = self.path("link.json")
        os.symlink("file.json", link)
        for host in HOSTS:
            with self.subTest(host=host):
                self.write("file.json", "earlier", 0o644)
                job = self.launch(host, observed(host, "counted"), "counts", ORIEL_STATS=link, TEST_FILE_BYTES=3 * KIB)
                self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
                self.assertRegex(job.stderr, f"ORIEL_STATS: {link} cannot be written: {LONG}")
                self.assertTrue(os.path.islink(link))
                self.assertFalse(os.path.exists(self.path("file.json")))


class Traces(Disk):
    def launch_traced(self, host, folder, *words, **more):
        job = self.launch(host, observed(host, "traced"), *words, ORIEL_TRACE=os.path.join(folder, "traces"), **more)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(job.stdout.count(" is done\n"), 2, job.stdout)
        return job

    def test_a_disk_that_is_full_from_the_beginning(self):
        for host in HOSTS:
            with self.subTest(host=host):
                folder = self.full()
                os.mkdir(os.path.join(folder, "traces"))
                job = self.launch_traced(host, folder)
                lines = self.oriel_lines(job)
                self.assertRegex(lines[0], rf"^oriel: rank [01]: \S+/traces: {FULL}; the program continues, and later events are not")
                self.assertRegex("".join(lines[1:]), rf"^(oriel: also in 1 other process: \S+/traces: {FULL}; [^\n]*)?$")
                self.assertEqual(self.left_in(os.path.join(folder, "traces")), [])

    def test_a_disk_without_inodes(self):
        for host in HOSTS:
            with self.subTest(host=host):
                job = self.launch_traced(host, self.mount(options="size=1m,nr_inodes=1"))
                [line] = self.oriel_lines(job)
                self.assertIn(f"{FULL}; 2 of 2 ranks (first: rank 0) are not traced", line)

    def test_the_part_that_fits_is_readable(self):
        for host in HOSTS:
            for left_bytes, limit in ((32 * KIB, {}), (60 * KIB, {}), (KIB * KIB, {"TEST_FILE_BYTES": 20 * KIB})):
                with self.subTest(host=host, left_bytes=left_bytes, **limit):
                    folder = self.full(left_bytes)
                    job = self.launch_traced(host, folder, "flood", **limit)
                    for line in self.oriel_lines(job):
                        self.assertRegex(line, rf"^oriel: rank [01]: \S+/traces: ({FULL}|{LONG}); the program continues")
                    self.assertIn(len(self.oriel_lines(job)), (1, 2), job.stderr)
                    report = self.run_words(ORIEL, "report", os.path.join(folder, "traces"))
                    self.assertEqual((report.returncode, report.stderr), (0, ""))
                    self.assertRegex(report.stdout, r"and [0-9,]+ dropped")


class Findings(Disk):
    def check(self, host, folder, words, **more):
        path = os.path.join(folder, "found.json")
        job = self.run_words(ORIEL, "check", "--host", host, "--json", path, program(host, "mistaken"), **more)
        self.assertEqual(job.returncode, 86, job.stdout + job.stderr)
        self.assertIn("unfinished line=1", job.stdout)
        self.assertIn("error[E1]: operation outside an access epoch\n", job.stderr)
        self.assertEqual(len(re.findall(f"(?m)^oriel check: {path} was not written: {words}$", job.stderr)), 1, job.stderr)
        self.assertEqual(self.left_in(folder), [])

    def test_findings_are_printed_all_the_same(self):
        for host in HOSTS:
            with self.subTest(host=host):
                self.check(host, self.full(), FULL)

    def test_files_that_may_not_grow(self):
        for host in HOSTS:
            with self.subTest(host=host):
                self.check(host, self.mount(), LONG, TEST_FILE_BYTES="512")

    def test_a_disk_without_inodes_is_refused_at_once(self):
        path = os.path.join(self.mount(options="size=1m,nr_inodes=1"), "found.json")
        self.refused(self.run_words(ORIEL, "check", "--json", path, program(HOSTS[0], "mistaken")), path, FULL)


class Reports(Disk):
    def setUp(self):
        super().setUp()
        self.traces = self.path("traces")
        host = HOSTS[0]
        job = self.launch(host, observed(host, "traced"), ORIEL_TRACE=self.traces)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)

    def check(self, option, name, folder, words, **more):
        path = os.path.join(folder, name)
        result = self.run_words(ORIEL, "report", self.traces, option, path, **more)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, rf"\Aoriel: [^\n]*{path}[^\n]*: {words}( \(POSIX: [^\n]*\))?\n\Z")
        self.assertEqual(self.left_in(folder), [])

    def test_pages_and_exports(self):
        formats = [("--perfetto", "events.json")]
        if os.path.exists(PAGE):
            formats.append(("-o", "page.html"))
        if os.environ.get("TESTS_OTF2") == "1":
            formats.append(("--otf2", "archive"))
        for option, name in formats:
            for left_bytes in (0, 8 * KIB):
                with self.subTest(option=option, left_bytes=left_bytes):
                    self.check(option, name, self.full(left_bytes), FULL)
            with self.subTest(option=option, what="inodes"):
                self.check(option, name, self.mount(options="size=1m,nr_inodes=1"), FULL)
            with self.subTest(option=option, what="limit"):
                self.check(option, name, self.mount(), LONG, limit=512)


class Benchmark(Disk):
    WORDS = ("bench", "--hosts", HOSTS[0], "--patterns", "put", "--memories", "allocate", "--sizes", "8", "--runs", "1")

    def test_results_are_saved_in_another_folder(self):
        folder = self.full()
        path = os.path.join(folder, "results.json")
        result = self.run_words(ORIEL, *self.WORDS, "--json", path, TMPDIR=self.folder)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertRegex(result.stderr, rf"oriel: {path}: {FULL}; the results are in {self.folder}/oriel-bench\.\w+\.json\n")
        self.assertEqual(self.left_in(folder), [])
        saved = result.stderr.rsplit("results are in ", 1)[1].strip()
        with open(saved, encoding="utf-8") as file:
            self.assertTrue(json.load(file)["complete"])

    def test_the_folder_of_temporary_files_is_full_too(self):
        """After a write of four bytes, python3 accepts a folder for temporary files. It then loses
        part of the results."""
        folder = self.full(4 * KIB)
        path = os.path.join(folder, "results.json")
        result = self.run_words(ORIEL, *self.WORDS, "--json", path, TMPDIR=folder)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(f"oriel: {path}: {FULL}; the results are in no file: {FULL}\n", result.stderr)
        self.assertIn("put", result.stdout)
        self.assertEqual(self.left_in(folder), [])

    def test_page_that_has_no_room(self):
        if not os.path.exists(PAGE):
            self.skipTest("pages were not built in")
        folder = self.full(16 * KIB)
        path = os.path.join(folder, "page.html")
        result = self.run_words(ORIEL, *self.WORDS, "--html", path, TMPDIR=self.folder)
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertRegex(result.stderr, rf"oriel: {path} could not be written: [^\n]*{FULL}\n")
        self.assertRegex(result.stderr, rf"oriel: the results are in {self.folder}/oriel-bench\.\w+\.json\n")
        self.assertEqual(self.left_in(folder), [])


def main():
    if APART in os.environ:
        unittest.main()
    user = "--user" in sys.argv
    words = ["unshare", "--mount", "--propagation", "private"]
    if user or os.geteuid() != 0:
        words[1:1] = ["--map-root-user"]
    if user and os.geteuid() == 0:
        words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", *words]
    if not shutil.which(words[0]) or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        print("skipped: no mount namespace may be made here")
        sys.exit(SKIP)
    os.environ[APART] = "1"
    os.execvp(words[0], [*words, sys.executable, "-B", *(word for word in sys.argv if word != "--user")])


if __name__ == "__main__":
    main()
