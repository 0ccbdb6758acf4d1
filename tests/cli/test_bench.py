"""`oriel bench`: what it writes, what it says of hosts that crash, hang or are wrong, and what it refuses.

A program of the test's own stands in for the benchmark's where a host has to misbehave; figures are never looked at."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

from command import BUILD, Case, HERE, HOSTS, ORIEL, environment

SCRIPTS = os.path.join(BUILD, "lib", "oriel", "bench")
LAUNCH = os.path.join(os.path.dirname(HERE), "launch")
sys.path.insert(0, SCRIPTS)
import catalogue  # noqa: E402

# Rank 0 answers for the job. What it does follows from the pattern's name.
STAND_IN = """#!/bin/bash
[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ] || exit 0
echo "library MPICH Version: 9 Open MPI v9, %(library)s"
for name in "$@"; do
    case $name in --*) continue ;; esac
    echo "begin $name"
    case $name in
        get:*) echo "end $name WRONG"; continue ;;
        fetch-and-op:*) kill -SEGV $$ ;;
        compare-and-swap:*|hot-*) touch %(folder)s/hangs; exec -a bench-stand-in sleep 300 ;;
        fence:*) echo "the host's last words" >&2; exit 3 ;;
    esac
    echo "end $name 12.5"
done
"""

# Every operation does nothing, and says that it did.
DROPPED = """
int MPI_Put(void) { return 0; }
int MPI_Get(void) { return 0; }
int MPI_Accumulate(void) { return 0; }
int MPI_Get_accumulate(void) { return 0; }
int MPI_Fetch_and_op(void) { return 0; }
int MPI_Compare_and_swap(void) { return 0; }
#define REQUEST(name)                                                                             \\
    int PMPI_##name(long, long, long, long, long, long, long, long, long);                        \\
    int MPI_##name(long o, long oc, long ot, long t, long d, long tc, long tt, long w, long r)    \\
    { (void)oc; (void)tc; return PMPI_##name(o, 0, ot, t, d, 0, tt, w, r); }
REQUEST(Rput)
REQUEST(Rget)
"""


def bench(oriel, *arguments, timeout=170, **changes):
    return subprocess.run([oriel, "bench", *arguments], env=environment(**changes), capture_output=True, text=True,
                          timeout=timeout, stdin=subprocess.DEVNULL, check=False)


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


class BenchCase(Case):
    def measured(self, *arguments, oriel=ORIEL, **changes):
        """Status, and the results by (pattern, column), of a run on allocated memory."""
        result = bench(oriel, "--memories", "allocate", "--runs", "1", "--json", self.path("out.json"), *arguments, **changes)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result, self.read_results()

    def read_results(self):
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.record = json.load(file)
        return {(entry["pattern"], entry["column"]): entry for entry in self.record["results"]}

    def stand_in(self, library="windows by Oriel"):
        """An installation whose benchmark program is the stand-in, for the first host only."""
        oriel, host = self.tree(HOSTS[0]), HOSTS[0]
        shutil.copytree(SCRIPTS, self.path("tree/lib/oriel/bench"))
        self.write(f"tree/lib/oriel/{host}/rma", STAND_IN % {"library": library, "folder": self.folder})
        return oriel


class Measuring(BenchCase):
    def test_results_are_read_back(self):
        result, found = self.measured("--patterns", "put,fetch-and-op,put-strided", "--sizes", "8,4K")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(self.record["complete"])
        columns = [name for host in HOSTS for name in (host, "oriel-" + host)]
        self.assertEqual({entry["name"] for entry in self.record["columns"]}, {*columns, "raw"})
        for pattern in ("put", "fetch-and-op", "put-strided"):
            for column in columns:
                entry = found[pattern, column]
                self.assertEqual((entry["status"], entry["reason"], entry["unit"]), ("ok", "", "ns"), entry)
                self.assertEqual(entry["best"], min(entry["samples"]))
                self.assertGreater(entry["best"], 0)
                self.assertAlmostEqual(entry["bandwidth"], entry["bytes"] / entry["best"] * 1e9, delta=1)
                self.assertEqual(entry["way"], "arena" if column.startswith("oriel") else "")
        puts = {(entry["bytes"], entry["in_flight"]) for entry in self.record["results"] if entry["pattern"] == "put"}
        self.assertEqual(puts, {(8, 1), (4096, 1), (8, 64), (4096, 64)})
        for entry in self.record["results"]:
            if entry["limit"] in ("raw-store-fence", "raw-memcpy-shared", "raw-atomic", "raw-strided"):
                raw = [other for other in self.record["results"]
                       if (other["pattern"], other["bytes"]) == (entry["limit"], entry["bytes"])]
                self.assertEqual([other["status"] for other in raw], ["ok"], entry)
        self.assertRegex(result.stdout, r"put, 4 KiB, flush +\| allocate \|.* x \|")

    def test_hosts_alone_need_no_oriel_column(self):
        _, found = self.measured("--patterns", "lock-exclusive", "--alone", "--hosts", HOSTS[0])
        self.assertEqual([column for pattern, column in found if pattern == "lock-exclusive"], [HOSTS[0]])

    def test_programs_know_the_catalogue(self):
        rma = subprocess.run([LAUNCH, "--build", BUILD, "--host", HOSTS[0], "-n", "1", "--plain",
                              os.path.join(BUILD, "lib", "oriel", HOSTS[0], "rma"), "--list"],
                             env=environment(), capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(set(rma.stdout.split()), set(catalogue.PATTERNS))
        raw = subprocess.run([os.path.join(SCRIPTS, "raw"), "--list"], capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(set(raw.stdout.split()), set(catalogue.RAW))

    def test_every_pattern_notices_operations_that_do_nothing(self):
        host = HOSTS[0]
        dropped = self.compile("dropped.so", DROPPED, "-shared", "-fPIC")
        names = []
        for name, pattern in catalogue.PATTERNS.items():
            cell = catalogue.Cell(name, "allocate", 2, pattern.sizes[0], pattern.flights[0])
            names.append(catalogue.program_name(cell))
        result = subprocess.run([LAUNCH, "--build", BUILD, "--host", host, "-n", "2", "--plain", "--env",
                                 f"LD_PRELOAD={dropped}", "--timeout", "100",
                                 os.path.join(BUILD, "lib", "oriel", host, "rma"), "--batches=1", "--budget=0.01", *names],
                                env=environment(), capture_output=True, text=True, timeout=120, check=False)
        ends = dict(re.findall(r"^end (\S+) (\S+)$", result.stdout, re.M))
        self.assertEqual({name for name in names if ends.get(name) != "WRONG"}, set(), result.stderr)


class Misbehaviour(BenchCase):
    def test_each_failure_is_told_and_loses_no_other(self):
        result, found = self.measured("--patterns", "put,get,fetch-and-op,compare-and-swap,lock-exclusive,fence", "--sizes", "8",
                                      "--ranks", "2", "--hosts", HOSTS[0], "--limit", "8", oriel=self.stand_in())
        self.assertEqual(result.returncode, 1, result.stderr)
        for column in (HOSTS[0], "oriel-" + HOSTS[0]):
            told = {pattern: entry["status"] for (pattern, where), entry in found.items() if where == column}
            self.assertEqual(told, {"put": "ok", "get": "wrong", "fetch-and-op": "crash", "compare-and-swap": "timeout",
                                    "lock-exclusive": "ok", "fence": "crash"})
            for entry in (entry for (_, where), entry in found.items() if where == column):
                self.assertEqual(entry["best"] is None, entry["status"] != "ok")
                self.assertEqual(entry["reason"] == "", entry["status"] == "ok")
        self.assertIn("8 s", found["compare-and-swap", HOSTS[0]]["reason"])
        self.assertIn("the host's last words", found["fence", HOSTS[0]]["reason"])
        self.assertRegex(result.stdout, r"get, 8 B, flush .*\| +wrong \| +wrong \| +- \|")
        self.assertEqual(processes("bench-stand-in"), [])

    def test_column_without_oriel_has_no_figures(self):
        result, found = self.measured("--patterns", "put", "--sizes", "8", "--hosts", HOSTS[0],
                                      oriel=self.stand_in("windows by nobody"))
        self.assertEqual(result.returncode, 1)
        self.assertEqual(found["put", HOSTS[0]]["status"], "ok")
        self.assertEqual(found["put", "oriel-" + HOSTS[0]]["status"], "refused")
        self.assertIn("does not say that it is Oriel", found["put", "oriel-" + HOSTS[0]]["reason"])

    def test_interrupted_run_keeps_what_was_measured(self):
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
                output, errors = job.communicate(timeout=60)
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


class Refusal(BenchCase):
    def test_options_that_make_no_sense(self):
        for arguments, word in ((["--patterns", "put,fly"], '"fly"'), (["--groups", "birds"], '"birds"'),
                                (["--memories", "x"], '"x"'),
                                (["--hosts", "lam"], '"lam"'), (["--sizes", "7"], '"7"'), (["--sizes", ""], "no size"),
                                (["--ranks", "1"], '"1"'), (["--runs", "0"], '"0"'), (["--limit", "-1"], "--limit"),
                                (["--fly"], "--fly"), (["word"], "word"), (["--qui"], "--qui"),
                                (["--patterns", "create-free", "--memories", "agent"], "no pattern is left")):
            self.refused(bench(ORIEL, *arguments), word)

    def test_file_that_cannot_be_written(self):
        for option in ("--json", "--html"):
            self.refused(bench(ORIEL, option, self.path("none/out")), self.path("none/out"), "cannot be written")
            self.refused(bench(ORIEL, option, self.folder), "cannot be written")

    def test_refused_run_leaves_files_as_they_are(self):
        self.write("out.json", "old\n")
        self.refused(bench(ORIEL, "--json", self.path("out.json"), "--html", self.folder), "cannot be written")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "old\n")

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
        self.refused(bench(self.tree(), "--help"), "the benchmark is not there")
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
