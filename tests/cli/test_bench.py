"""`oriel bench`: its output, its reports of hosts that crash, hang or corrupt data, and its
refusals."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from bench_runs import SCRIPTS, BenchCase, bench, without_load
from command import HOSTS, LIMIT_S, ORIEL, environment

import catalogue  # in SCRIPTS

# Ends a job that ignores signals, and is interrupted meanwhile.
ENDED_TWICE = """
import signal, subprocess, sys
sys.path.insert(0, sys.argv[1])
import jobs
signal.signal(signal.SIGINT, signal.default_int_handler)
subprocess.Popen(["bash", "-c", "sleep 1.5; kill -INT $PPID"])
try:
    jobs.launch(None, 1, ["bash", "-c", "trap '' TERM; exec -a bench-stand-in sleep 300"], limit_s=0.5)
except KeyboardInterrupt:
    sys.exit(42)
"""

# Stopped for longer than the job may be silent, while the job is not silent. Afterwards the job
# prints only noise.
STOPPED = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import jobs
subprocess.Popen(["bash", "-c", "sleep 0.7; kill -STOP $PPID; sleep 2; kill -CONT $PPID"])
told = jobs.launch(None, 1, ["bash", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.25; done"], quiet_s=1,
                   on_line=lambda line: True)
useless = jobs.launch(None, 1, ["bash", "-c", "while echo x; do sleep 0.01; done"], quiet_s=0.5, on_line=lambda line: False)
print(told.status, len(told.lines), useless.status)
"""


def processes(word):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", encoding="utf-8", errors="replace") as line:
                    if word in line.read().split("\0")[0]:
                        found.append(int(entry))
            except OSError:
                continue
    return found


class Misbehaviour(BenchCase):
    def test_each_failure_is_reported_and_hides_no_other(self):
        result, found = self.measured("--patterns", "put,get,accumulate,get-accumulate,fetch-and-op,compare-and-swap,"
                                      "lock-exclusive,fence", "--sizes", "8", "--ranks", "2", "--hosts", HOSTS[0], "--limit", "6",
                                      oriel=self.stand_in())
        self.assertEqual(result.returncode, 1, result.stderr)
        for column in (HOSTS[0], "oriel-" + HOSTS[0]):
            printed = {pattern: entry["status"] for (pattern, where), entry in found.items() if where == column}
            self.assertEqual(printed, {"put": "ok", "get": "wrong", "accumulate": "timeout", "get-accumulate": "crash",
                                    "fetch-and-op": "crash", "compare-and-swap": "timeout",
                                    "lock-exclusive": "ok", "fence": "crash"})
            for entry in (entry for (_, where), entry in found.items() if where == column):
                self.assertEqual(entry["best"] is None, entry["status"] != "ok")
                self.assertEqual(entry["reason"] == "", entry["status"] == "ok")
        self.assertIn("6 s", found["compare-and-swap", HOSTS[0]]["reason"])
        self.assertIn("the host's last?[2J words", found["fence", HOSTS[0]]["reason"])
        self.assertIn("valid result", found["get-accumulate", HOSTS[0]]["reason"])
        self.assertRegex(result.stdout, r"get, 8 B, flush .*\| +wrong \| +wrong \| +- \|")
        self.assertEqual(processes("bench-stand-in"), [])

    def test_column_without_oriel_has_no_figures(self):
        result, found = self.measured("--patterns", "put", "--sizes", "8", "--hosts", HOSTS[0],
                                      oriel=self.stand_in("windows by no library"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(found["put", HOSTS[0]]["status"], "ok")
        self.assertEqual(found["put", "oriel-" + HOSTS[0]]["status"], "refused")
        self.assertIn("the job's MPI library is not Oriel's: ", found["put", "oriel-" + HOSTS[0]]["reason"])

    def test_interrupted_run_preserves_its_results(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            oriel = self.stand_in() if not os.path.exists(self.path("tree")) else self.path("tree/bin/oriel")
            with subprocess.Popen([oriel, "bench", "--patterns", "put,hot-fetch-and-op", "--sizes", "8", "--ranks", "3",
                                   "--memories", "allocate", "--hosts", HOSTS[0], "--json", self.path("out.json")],
                                  env=environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
                deadline = time.monotonic() + 60
                while not os.path.exists(self.path("hangs")) and time.monotonic() < deadline:
                    time.sleep(0.05)
                job.send_signal(number)
                output, errors = job.communicate(timeout=LIMIT_S)
            self.assertEqual(job.returncode, 130, errors)
            found = self.read_results()
            self.assertFalse(self.record["complete"])
            self.assertEqual(found["put", HOSTS[0]]["best"], 12.5)
            self.assertEqual(found["put", "oriel-" + HOSTS[0]]["status"], "ok")
            self.assertNotIn(("hot-fetch-and-op", HOSTS[0]), found)
            self.assertIn("interrupted", output)
            self.assertEqual(processes("bench-stand-in"), [])
            os.remove(self.path("hangs"))
            os.remove(self.path("out.json"))


    def start(self, oriel, *arguments, **popen):
        return subprocess.Popen([oriel, "bench", "--memories", "allocate", "--hosts", HOSTS[0], "--runs", "1", "--sizes", "8",
                                 "--ranks", "3", *arguments], env=environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)

    def wait_for(self, is_there):
        deadline = time.monotonic() + 60
        while not (there := is_there()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return there

    def test_interruption_before_the_beginning_leaves_files_as_they_are(self):
        self.write("out.json", "old\n")
        blocked = lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        with self.start(self.stand_in(), "--patterns", "put", "--json", self.path("out.json"), preexec_fn=blocked) as job:
            job.send_signal(signal.SIGTERM)
            _, errors = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130, errors)
        self.assertIn("oriel: interrupted before anything was measured\n", errors)
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

    def test_interruption_while_results_are_written_loses_none(self):
        # absent without a bundler
        has_page = os.path.exists(os.path.join(SCRIPTS, "page", "library.js"))
        page = ["--html", self.path("out.html")] if has_page else []
        os.mkfifo(self.path("fifo"))  # the write blocks until a reader opens the pipe
        with self.start(self.stand_in(), "--patterns", "put,pscw-pair", "--json", self.path("fifo"), *page) as job:
            waits = self.wait_for(lambda: job.poll() is not None or self.waits_for_a_reader(job.pid))
            if not waits or job.poll() is not None:
                job.kill()  # otherwise nothing writes the expected data
                self.fail(job.communicate())
            for _ in range(2):
                job.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            with open(self.path("fifo"), encoding="utf-8") as file:
                record = json.load(file)
            output, errors = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130, errors)
        self.assertEqual({entry["best"] for entry in record["results"] if entry["column"] == HOSTS[0]}, {12.5})
        self.assertIn("start, put, complete", output)
        self.assertTrue(not page or os.path.getsize(self.path("out.html")))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    @staticmethod
    def waits_for_a_reader(pid):
        with open(f"/proc/{pid}/wchan", encoding="utf-8") as file:
            return file.read() in ("fifo_open", "wait_for_partner")

    def test_hangup_is_ignored_where_it_was(self):
        with self.start(self.stand_in(), "--patterns", "put,hot-fetch-and-op", "--json", self.path("out.json"),
                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
            self.wait_for(lambda: os.path.exists(self.path("hangs")))
            job.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            self.assertIsNone(job.poll())
            job.send_signal(signal.SIGTERM)
            _, errors = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130, errors)

    def test_interruption_while_a_job_is_ended_leaves_none_of_it(self):
        result = subprocess.run([sys.executable, "-c", ENDED_TWICE, SCRIPTS], env=environment(), capture_output=True, text=True,
                                timeout=LIMIT_S, check=False)
        self.assertEqual(result.returncode, 42, result.stderr)
        self.assertEqual(processes("bench-stand-in"), [])

    def test_a_stopped_bench_does_not_call_its_job_silent(self):
        result = subprocess.run([sys.executable, "-c", STOPPED, SCRIPTS], env=environment(), capture_output=True, text=True,
                                timeout=LIMIT_S, check=False)
        self.assertEqual(result.stdout, "0 8 None\n", result.stderr)


class Files(BenchCase):
    def run_stand_in(self, *arguments, **popen):
        tree = self.path("tree/bin/oriel")
        command = [tree if os.path.exists(tree) else self.stand_in(), "bench", "--memories", "allocate", "--hosts", HOSTS[0],
                   "--runs", "1", "--patterns", "pscw-pair", *arguments]
        return without_load(subprocess.run(command, env=environment(), text=True, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                           timeout=LIMIT_S, check=False, **popen))

    def test_link_to_nothing_is_written_through(self):
        os.symlink(self.path("there.json"), self.path("out.json"))
        result = self.run_stand_in("--json", self.path("out.json"), stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(os.path.islink(self.path("out.json")))
        self.assertFalse(os.path.islink(self.path("there.json")))
        self.read_results()

    def test_standard_output_gets_results_and_table(self):
        with open(self.path("both"), "w", encoding="utf-8") as file:
            into_file = self.run_stand_in("--json", "/dev/stdout", stdout=file)
        with open(self.path("both"), encoding="utf-8") as file:
            written = file.read()
        into_pipe = self.run_stand_in("--json", "/dev/stdout", stdout=subprocess.PIPE)
        for status, text in ((into_file.returncode, written), (into_pipe.returncode, into_pipe.stdout)):
            self.assertEqual(status, 0, into_file.stderr + into_pipe.stderr)
            record, end = json.JSONDecoder().raw_decode(text)
            self.assertTrue(record["complete"])
            self.assertIn("start, put, complete", text[end:])

    def test_full_standard_output_is_reported_in_a_line(self):
        for arguments in (("--json", self.path("out.json")), ("--list",), ("--help",)):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = self.run_stand_in(*arguments, stdout=full)
            self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: No space left on device\n"))
        self.read_results()

    def test_closed_streams_lose_only_their_own_output(self):
        for closed in (0, 1, 2):
            result = self.run_stand_in("--json", self.path("out.json"), stdout=subprocess.PIPE,
                                       preexec_fn=lambda number=closed: os.close(number))
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual("start, put, complete" in result.stdout, closed != 1)
            self.read_results()
            os.remove(self.path("out.json"))
        self.assertEqual(self.run_stand_in("--sizes", "7", preexec_fn=lambda: os.close(2)).returncode, 2)

    def test_cells_without_enough_memory_are_left_out_and_reported(self):
        with open("/proc/meminfo", encoding="ascii") as info:
            room_mib = next(int(line.split()[1]) for line in info if line.startswith("MemAvailable:")) >> 10
        if not 1024 < room_mib < 65536:
            self.skipTest("a node with %d MiB" % room_mib)
        self.stand_in()
        os.remove(self.path("tree/lib/oriel/bench/raw"))
        # this test ignores copies of that length
        self.write("tree/lib/oriel/bench/raw", "#!/bin/sh\n")
        result = self.run_stand_in("--patterns", "put", "--sizes", "8,256M", "--json", self.path("out.json"),
                                   stdout=subprocess.PIPE)
        printed = "put, 268435456 B, 64 in flight: skipped, because it may need 65536 MiB of memory, and "
        self.assertIn(printed, result.stderr)
        self.read_results()
        self.assertIn(printed, self.record["notes"][0])
        found = {(entry["bytes"], entry["in_flight"]) for entry in self.record["results"] if entry["column"] == HOSTS[0]}
        self.assertEqual(found, {(8, 1), (8, 64), (1 << 28, 1)})

    def test_options_in_vain_are_named(self):
        result = self.run_stand_in("--sizes", "8", "--ranks", "4", "--groups", "lock", stdout=subprocess.PIPE)
        self.assertEqual(result.returncode, 0, result.stderr)
        for option in ("--sizes", "--ranks", "--groups"):
            self.assertIn("oriel bench: " + option + " has no effect", result.stderr)


class Refusal(BenchCase):
    def test_options_that_make_no_sense(self):
        for arguments, word in ((["--patterns", "put,fly"], '"fly"'), (["--groups", "birds"], '"birds"'),
                                (["--memories", "x"], '"x"'),
                                (["--hosts", "lam"], '"lam"'), (["--sizes", "7"], '"7"'), (["--sizes", ""], "not a size"),
                                (["--ranks", "1"], '"1"'), (["--runs", "0"], '"0"'), (["--limit", "-1"], "--limit"),
                                (["--sizes", "٨"], "not a size"), (["--ranks", "٢٢"], "not a list of rank counts"), (["--limit", "٣"], "not a number"),
                                (["--limit", "1000000"], "from 1 to 999999"),
                                (["--fly"], "--fly"), (["word"], "word"), (["--qui"], "--qui"),
                                (["--patterns", "create-free", "--memories", "agent"], "no pattern")):
            self.refused(bench(ORIEL, *arguments), word)

    def test_unknown_name_gets_a_similar_one_suggested(self):
        errors = bench(ORIEL, "--patterns", "puts,xyzzy").stderr
        self.assertRegex(errors, r'^oriel: .*unknown pattern "puts, xyzzy" \(similar: put[;,][^)]* --list shows all\);')
        self.assertLess(len(errors), 300)
        self.assertIn("(--list shows all);", bench(ORIEL, "--patterns", "xyzzy").stderr)

    def test_file_that_cannot_be_written(self):
        for option in ("--json", "--html"):
            self.refused(bench(ORIEL, option, self.path("none/out")), self.path("none/out"), "cannot be written")
            self.refused(bench(ORIEL, option, self.folder), "cannot be written")
            self.refused(bench(ORIEL, option, ""), option + ": the file's name is empty")

    def test_refused_run_leaves_files_as_they_are(self):
        self.write("out.json", "old\n")
        self.refused(bench(ORIEL, "--json", self.path("out.json"), "--html", self.folder), "cannot be written")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

    def test_one_file_for_two(self):
        os.symlink(self.path("out"), self.path("link"))
        for other in ("out", "link", "./out"):
            self.refused(bench(ORIEL, "--json", self.path("out"), "--html", self.path(other)), "the same file")
        self.assertFalse(os.path.exists(self.path("out")))

    def test_folder_that_cannot_be_preloaded_from(self):
        self.stand_in()
        for name in ("a tree", "a:tree"):
            os.rename(self.path("tree"), self.path(name))
            self.refused(bench(self.path(name + "/bin/oriel")), self.path(name), "a space or a colon")
            os.rename(self.path(name), self.path("tree"))

    def test_no_host(self):
        oriel = self.tree()
        shutil.copytree(SCRIPTS, self.path("tree/lib/oriel/bench"))
        self.refused(bench(oriel), "no host MPI found")
        self.refused(bench(oriel, "--hosts", HOSTS[0]), HOSTS[0], "found: none")

    def test_missing_program(self):
        oriel = self.stand_in()
        os.remove(self.path(f"tree/lib/oriel/{HOSTS[0]}/rma"))
        self.refused(bench(oriel), self.path(f"tree/lib/oriel/{HOSTS[0]}/rma"), "missing")

    def test_missing_scripts_and_missing_python(self):
        self.refused(bench(self.tree(), "--help"), "cannot find the benchmark")
        self.refused(bench(ORIEL, "--help", PATH=self.folder), "needs python3")

    def test_help_and_list(self):
        for option in ("--help", "-?"):
            result = bench(ORIEL, option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("--json FILE", result.stdout)
        listed = bench(ORIEL, "--list").stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], list(catalogue.PATTERNS))


if __name__ == "__main__":
    unittest.main()
