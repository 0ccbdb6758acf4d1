"""`oriel demo`: the table of real jobs on each host, and the commands that it suggests; with
stand-ins for launchers, its account of every way in which a job may end."""

import os
import re
import signal
import subprocess
import time
import unittest

from command import HOSTS, ORIEL, SANITIZE, Case, environment, liboriel, start

TITLES = {"mpich": "MPICH", "openmpi": "Open MPI"}
CORES = len(os.sched_getaffinity(0))

# Its arguments are -n N PROGRAM ..., or -n N oriel run PROGRAM ...
LAUNCHER = """#!/bin/sh
printf '%s ' "$@" >> {folder}/calls
echo "$OMPI_ALLOW_RUN_AS_ROOT $OMPI_MCA_mpi_yield_when_idle" >> {folder}/calls
case $4 in run) {oriel} ;; *) {alone} ;; esac
"""
GOOD = 'echo "counting 1"; printf "\\nseconds   %s\\n0  confirmed by a sequential count\\n"'
CRASH = "echo '[ 5] libmpi.so.40(PMPI_Compare_and_swap+0xe6)[0x7f]' >&2; exit 139"


class Jobs(Case):
    """Real jobs."""

    def test_each_host(self):
        for host in HOSTS:
            result = start(ORIEL, "demo", "--host", host, "--ranks", 2)
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
            self.assertIn(f"{TITLES[host]} alone ", result.stdout)
            row = re.search(rf"\n  2 ranks on {CORES} cores?  +(\S.*?)  +\d+\.\d+ s ",
                            result.stdout)
            self.assertIsNotNone(row, result.stdout)
            crash = next((f"failed with status {status}" for of, status in (("address", 1), ("thread", 66)) if of in SANITIZE),
                         "crashed.*")
            self.assertRegex(row.group(1), rf"\A(\d+\.\d+ s|not done after 5 s|{crash})\Z")
            self.suggestions_work(host, result.stdout.split("Try next")[1])

    def suggestions_work(self, host, text):
        script = re.search(r"\n\n((?:  .*\n)+)", text).group(1)
        result = subprocess.run(["/bin/sh", "-ec", script], cwd=self.folder, env=environment(),
                                capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(result.returncode, 0, f"{script}\n{result.stdout}\n{result.stderr}")
        self.assertEqual(result.stdout.count("confirmed by a sequential count"), 3)
        said = result.stdout + result.stderr
        for word in ("compare_and_swap", "no problems on 2 ranks"):
            self.assertIn(word, said)
        subprocess.run(["rm", "-r", self.path("oriel-demo")], check=True)


class StandIns(Case):
    """An installation of its own, and launchers that are scripts."""

    def setUp(self):
        super().setUp()
        self.oriel = self.tree(*HOSTS)
        for host in HOSTS:
            os.makedirs(self.path(f"tree/lib/oriel/{host}/examples"))
            os.symlink("/bin/true", self.path(f"tree/lib/oriel/{host}/examples/wordcount"))
        os.makedirs(self.path("tree/share/oriel/examples"))
        self.write("tree/share/oriel/examples/wordcount.c", "")

    def launcher(self, alone, oriel=GOOD % "0.5", name=f"mpiexec.{HOSTS[0]}"):
        self.write(name, LAUNCHER.format(folder=self.folder, alone=alone, oriel=oriel))

    def demo(self, *words):
        return start(self.oriel, "demo", *words, PATH=f"{self.folder}:/bin:/usr/bin")

    def rows(self, result):
        """The cells: what the host did alone, Oriel's time, and the ratio."""
        return [tuple(re.split(r" {2,}", line.strip()))[1:] for line in result.stdout.splitlines()
                if re.match(r"  \d+ ranks? on ", line)]

    def test_one_rank_per_core_then_two(self):
        self.launcher(GOOD % "2.5")
        result = self.demo("--host", HOSTS[0])
        few = max(CORES, 2)
        counts = [few, few, 2 * few, 2 * few] if CORES <= 16 else [16, 16]
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.rows(result),
                         [("2.50 s", "0.500 s", "5.0 times as fast")] * (len(counts) // 2))
        with open(self.path("calls"), encoding="utf-8") as file:
            calls = [line.split() for line in file]
        self.assertEqual([int(call[1]) for call in calls], counts)
        self.assertEqual([call[2:4] == [self.oriel, "run"] for call in calls],
                         [False, True] * (len(calls) // 2))
        for call in calls:
            self.assertEqual(call[-2:] == ["1", "1"], int(call[1]) > CORES)  # as root, yielding

    def test_each_host_that_has_a_launcher(self):
        for host in HOSTS:
            self.launcher(GOOD % "1", name=f"mpiexec.{host}")
        result = self.demo("--ranks", "2")
        self.assertEqual((result.returncode, result.stderr, len(self.rows(result))), (0, "", len(HOSTS)))
        self.assertEqual(re.findall(r"(?m)^  +(\S.*) alone ", result.stdout), [TITLES[host] for host in HOSTS])

    def test_how_a_host_may_fail(self):
        for alone, cells in ((CRASH, ("crashed in MPI_Compare_and_swap", "0.500 s")),
                             ("kill -SEGV $$", ("crashed: Segmentation fault", "0.500 s")),
                             ("exit 3", ("failed with status 3", "0.500 s")),
                             (f"{GOOD % '1'}; exit 3", ("failed with status 3", "0.500 s")),
                             ("echo WRONG; exit 1", ("a wrong result", "0.500 s"))):
            self.launcher(alone)
            result = self.demo("--host", HOSTS[0], "--ranks", "2")
            self.assertEqual((result.returncode, self.rows(result)), (0, [cells]), result.stdout)

    def test_oriel_must_not_fail(self):
        for oriel, cell in (("echo why; exit 1", "failed with status 1"),
                            ("echo WRONG why", "a wrong result")):
            self.launcher(GOOD % "1", oriel)
            result = self.demo("--host", HOSTS[0], "--ranks", "2")
            self.assertEqual((result.returncode, self.rows(result)), (1, [("1.00 s", cell)]))
            self.assertIn("why\n", result.stdout)

    def processes(self, name):
        return subprocess.run(["pgrep", "-f", self.path(name)], capture_output=True, text=True,
                              check=False).stdout

    def processes_end(self, name):
        for pid in self.processes(name).split():
            os.kill(int(pid), signal.SIGKILL)

    def test_nothing_is_left_of_a_job_that_takes_too_long(self):
        self.addCleanup(self.processes_end, "rank")
        self.write("rank", "#!/bin/sh\ntrap '' TERM HUP\nwhile :; do sleep 0.1; done\n")
        self.launcher(f"trap '' TERM; echo counting 1\n"
                      f"{self.path('rank')} & (setsid {self.path('rank')} &) ; wait")
        result = self.demo("--host", HOSTS[0], "--ranks", "2")
        self.assertEqual((result.returncode, self.rows(result)),
                         (0, [("not done after 5 s", "0.500 s", "more than 10 times as fast")]))
        self.assertEqual(self.processes("rank"), "")

    def test_a_slow_start_and_a_slow_end_do_not_count(self):
        self.launcher(f"sleep 5.2; {GOOD % 2}; exec sleep 60")
        result = self.demo("--host", HOSTS[0], "--ranks", "2")
        self.assertEqual((result.returncode, self.rows(result)),
                         (0, [("2.00 s", "0.500 s", "4.0 times as fast")]))

    def test_the_job_ends_with_the_demo(self):
        self.addCleanup(self.processes_end, "rank")
        self.write("rank", "#!/bin/sh\nwhile :; do sleep 0.1; done\n")
        self.launcher(f"trap 'kill $!; exit 1' TERM; {self.path('rank')} & wait")
        with subprocess.Popen([self.oriel, "demo", "--host", HOSTS[0]], stdout=subprocess.DEVNULL,
                              env=environment(PATH=f"{self.folder}:/bin:/usr/bin")) as demo:
            while not self.processes("rank"):
                time.sleep(0.05)
            demo.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 20
        while self.processes("rank") and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.processes("rank"), "")

    def test_a_launcher_without_suffix_is_known_by_its_version(self):
        os.makedirs(self.path("bin"))
        os.symlink("/bin/sh", self.path("bin/sh"))
        version = {"mpich": "HYDRA build details:", "openmpi": "mpiexec (OpenRTE) 4.1.4"}
        for host in HOSTS:
            self.launcher(f'case $1 in --version) echo "{version[host]}" ;; *) {GOOD % 1} ;; esac',
                          name="bin/mpiexec")
            result = start(self.oriel, "demo", "--ranks", "2", PATH=self.path("bin"))
            self.assertEqual((result.returncode, len(self.rows(result))), (0, 1), result.stdout)
            self.assertIn(f"{TITLES[host]} alone", result.stdout)
            self.assertEqual(result.stderr.count(" has no mpiexec in PATH; on Debian: "),
                             len(HOSTS) - 1)

    def test_what_is_missing_is_named(self):
        nowhere = {"PATH": self.path("nowhere")}
        self.refused(start(self.oriel, "demo", "--host", HOSTS[0], **nowhere),
                     f"{TITLES[HOSTS[0]]} has no mpiexec in PATH")
        result = start(self.oriel, "demo", **nowhere)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("oriel: the demo needs MPICH or Open MPI", result.stderr)
        self.launcher("exit 1")
        os.remove(self.path("tree/share/oriel/examples/wordcount.c"))
        self.refused(self.demo("--host", HOSTS[0]), "the demo's text is missing")
        os.remove(self.path(f"tree/lib/oriel/{HOSTS[0]}/examples/wordcount"))
        self.refused(self.demo("--host", HOSTS[0]), "the demo's program is missing")
        os.remove(liboriel(HOSTS[0], self.path("tree")))
        self.refused(self.demo("--host", HOSTS[0]),
                     f"this oriel is built without {TITLES[HOSTS[0]]}")

    def test_wrong_use(self):
        self.refused(self.demo("--host", "lam"), 'unknown host "lam"', "mpich and openmpi")
        for number in ("0", "-1", "two", "2x", "", "10001"):
            self.refused(self.demo("--ranks", number), f"--ranks {number}: give a number")


if __name__ == "__main__":
    unittest.main()
