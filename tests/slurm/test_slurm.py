"""Jobs that Slurm starts: `srun`, `sbatch`, and `mpiexec` in a batch script. Each task is a rank of
one job, Oriel's tools see the whole job, and a cancelled job leaves nothing.

TESTS_HOST selects the MPI. Each launch below is one that the MPI supports, as Debian 12 builds it:
MPICH has PMI-1 and PMI-2 and no PMIx, Open MPI has PMIx and no PMI-2."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import cluster
from cluster import FOLDER, oriel_sockets, output_of, processes, until

HOST = os.environ["TESTS_HOST"]
BUILD = os.environ["TESTS_BUILD"]
SANITIZE = os.environ["TESTS_SANITIZE"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORIEL = os.path.join(BUILD, "bin", "oriel")
RING = os.path.join(BUILD, "tests", "slurm", HOST, "ring")
LAUNCH = {"mpich": "pmi2", "openmpi": "pmix"}[HOST]
OTHER = {"mpich": "pmix", "openmpi": "pmi2"}[HOST]
FINDINGS = 86  # the status of oriel check
NOBODY = 65534
FOREIGN = ("ORIEL_", "OMPI_", "PMI", "MPI_LOCAL", "HYD", "MPIR_", "LD_PRELOAD", "SLURM_", "SBATCH_")


def conflict_line():
    with open(os.path.join(ROOT, "tests", "slurm", "ring.c"), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if "/* CONFLICT */" in line)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def own_jobs():
    return output_of("squeue", "--noheader", "--format=%i").split()


def setUpModule():
    slurm = cluster.Cluster()
    unittest.addModuleCleanup(slurm.stop)
    slurm.start()


class Case(unittest.TestCase):
    """A folder for the job's files and one for temporary files. Each test ends with the jobs,
    processes, sockets and shared memory with which it began, and without temporary files."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="case.", dir=FOLDER)
        self.addCleanup(shutil.rmtree, self.folder)
        self.temporary = tempfile.mkdtemp(prefix="temporary.", dir=FOLDER)
        self.addCleanup(shutil.rmtree, self.temporary)
        self.before = self.everything()
        self.addCleanup(self.nothing_is_left)
        self.addCleanup(self.cancel_all)

    def cancel_all(self):
        for number in own_jobs():
            output_of("scancel", number)

    def everything(self):
        """What may be left: nothing of Oriel's. Open MPI 5 leaves files of a job that fails in MPI_Init."""
        files = [name for folder in ("/dev/shm", self.temporary) for name in os.listdir(folder)
                 if not name.startswith(("sm_segment.", "ompi."))]
        return own_jobs(), processes(), files, oriel_sockets()

    def nothing_is_left(self):
        until(lambda: self.everything() == self.before)
        self.assertEqual(self.everything(), self.before)

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, **changes):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(FOREIGN) or name == "SLURM_CONF"}
        env.update(LC_ALL="C", TMPDIR=self.temporary, HOME=self.folder, XDG_CONFIG_HOME="/nonexistent", ORIEL_TIMEOUT="120",
                   OMPI_MCA_mpi_yield_when_idle="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_btl_tcp_if_include="lo", OMPI_MCA_oob_tcp_if_include="lo", OMPI_MCA_rmaps_base_oversubscribe="1")
        env.update(changes)
        return env

    def run_command(self, *command, **changes):
        return subprocess.run([str(word) for word in command], env=self.environment(**changes), cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)

    def srun(self, ranks, *command, launch=LAUNCH, before=(), **changes):
        """A job of its own. Slurm's own lines, such as those on waiting for the node, are left out
        of stderr."""
        result = self.run_command(*before, "srun", "--quiet", f"--mpi={launch}", "-n", ranks, *command, **changes)
        result.stderr = "".join(line for line in result.stderr.splitlines(keepends=True)
                                if not line.startswith(("srun: ", "slurmstepd")))
        return result

    def start(self, ranks, *command):
        """A job that hangs, when it does: the process of srun, and the job's number."""
        job = subprocess.Popen([str(word) for word in ("srun", f"--mpi={LAUNCH}", "-n", ranks, *command, RING, "hang")],
                               env=self.environment(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait, timeout=600)
        self.addCleanup(job.terminate)
        until(lambda: job.poll() is not None or self.waiting_ranks() == list(range(ranks - 1)))
        self.assertIsNone(job.poll())
        self.assertEqual(self.waiting_ranks(), list(range(ranks - 1)))
        (number,) = own_jobs()
        return job, number

    def jobs(self):
        result = self.run_command(ORIEL, "top", "--once", "--json")
        return json.loads(result.stdout)["jobs"] if result.returncode == 0 else []

    def waiting_ranks(self):
        """The ranks of the only job that wait for others."""
        jobs = self.jobs()
        return [rank["rank"] for rank in jobs[0]["ranks"] if rank.get("window") == "ring"] if len(jobs) == 1 else []

    def right(self, result, ranks):
        self.assertEqual((result.returncode, result.stdout), (0, f"right: {ranks} ranks\n"), result.stderr)


class Srun(Case):
    def test_all_tasks_are_ranks_of_one_job(self):
        for ranks in (2, 4):
            result = self.srun(ranks, ORIEL, "run", RING, ORIEL_VERBOSE="1")
            self.right(result, ranks)
            self.assertRegex(result.stderr, rf"\Aoriel: Oriel \S+ serves windows of {ranks} ranks, on ")
            self.assertIn(f"window 1 of {ranks} ranks on 1 node", result.stderr)
            self.assertEqual(len(result.stderr.splitlines()), 2, result.stderr)

    def test_statuses_are_the_program_s(self):
        self.assertEqual(self.srun(2, ORIEL, "run", "--host", HOST, "sh", "-c", "exit 3").returncode, 3)

    def test_a_quiet_run_prints_nothing(self):
        result = self.srun(4, ORIEL, "run", RING)
        self.right(result, 4)
        self.assertEqual(result.stderr, "")

    def test_statistics_are_one_file(self):
        path = self.path("statistics.json")
        self.right(self.srun(4, ORIEL, "run", f"--stats={path}", RING), 4)
        self.assertEqual(os.listdir(self.folder), ["statistics.json"])
        found = json.loads(read(path))
        self.assertEqual((found["host"], found["ranks"], found["missing_ranks"], found["early_ranks"]), (HOST, 4, [], []))
        (window,) = found["windows"]
        put = window["operations"]["put"]
        self.assertEqual((window["name"], put["count"], put["bytes"]), ("ring", 4, 16))

    def test_statistics_are_one_table(self):
        result = self.srun(4, ORIEL, "run", "--stats", RING)
        self.right(result, 4)
        self.assertEqual(result.stderr.count("oriel: statistics of ring, 4 ranks"), 1, result.stderr)

    def test_report_reads_the_traces(self):
        self.right(self.srun(4, ORIEL, "run", "--trace", "traces", RING), 4)
        self.assertEqual(sorted(os.listdir(self.path("traces"))), [f"rank-{rank}.oriel" for rank in range(4)])
        report = self.run_command(ORIEL, "report", "traces")
        self.assertEqual(report.returncode, 0, report.stderr)
        self.assertIn("4 ranks, traces of 4 of them", report.stdout)
        self.assertIn('Window 1 "ring": allocate, 4 ranks', report.stdout)

    def test_top_shows_the_job_on_the_node_and_as_a_step_of_it(self):
        _, number = self.start(3, ORIEL, "run")
        line = r"(?m)^ +0 +\d+ .* waits in MPI_Win_fence of \"ring\".* for rank 2\b"
        self.assertRegex(self.run_command(ORIEL, "top", "--once").stdout, line)
        step = self.run_command("srun", "--overlap", "--jobid", number, "-n", "1", ORIEL, "top", "--once")
        self.assertRegex(step.stdout, line, step.stderr)
        (job,) = self.jobs()
        self.assertEqual((job["program"], job["host"], job["size"], job["missing"]), ("ring", HOST, 3, []))

    def test_job_of_an_ordinary_user(self):
        os.chown(self.folder, NOBODY, NOBODY)
        os.chown(self.temporary, NOBODY, NOBODY)
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        if self.run_command(*user, ORIEL, "--version").returncode != 0:
            self.skipTest(f"another user cannot start {ORIEL}")
        path = self.path("statistics.json")
        self.right(self.srun(4, ORIEL, "run", f"--stats={path}", RING, before=user), 4)
        self.assertEqual((os.stat(path).st_uid, json.loads(read(path))["missing_ranks"]), (NOBODY, []))

    def test_tasks_that_cannot_connect(self):
        """The other launch. Without it MPICH makes each task a job of one rank, and Oriel warns.
        Open MPI refuses such tasks in MPI_Init. An MPI that supports both has one job."""
        alone = self.srun(2, RING, launch=OTHER)
        result = self.srun(2, ORIEL, "run", RING, launch=OTHER)
        self.assertEqual((result.returncode, result.stdout), (alone.returncode, alone.stdout), result.stderr)
        warned = "oriel: Slurm has 2 tasks, but MPI_COMM_WORLD has 1 rank: start the program with srun --mpi=pmi2"
        self.assertEqual(result.stderr.count(warned), int("right: 1 ranks" in alone.stdout), result.stderr)


@unittest.skipIf("thread" in SANITIZE, "the checker is not tested with this sanitiser")
class Check(Case):
    def test_a_right_program_has_no_findings(self):
        result = self.srun(4, ORIEL, "check", RING)
        self.right(result, 4)
        self.assertIn("oriel check: no problems on 4 ranks", result.stderr)

    def test_an_offender_is_found_once_with_its_line_and_status(self):
        path = self.path("found.json")
        result = self.srun(4, ORIEL, "check", "--json", path, RING, "conflict")
        self.assertEqual((result.returncode, result.stdout), (FINDINGS, "right: 4 ranks\n"), result.stderr)
        self.assertEqual(len(re.findall(r"(?m)^oriel check: [1-9]\d* problems? \(.* on 4 ranks$", result.stderr)), 1, result.stderr)
        self.assertRegex(result.stderr, rf"(?m)^ +--> .*\S*ring\.c:{conflict_line()} in main \(rank \d\)")
        self.assertEqual(os.listdir(self.folder), ["found.json"])
        self.assertEqual({finding["rule"] for finding in json.loads(read(path))["findings"]}, {"C1"})


class Batch(Case):
    """Batch scripts: with srun, and with the MPI's own launcher in the allocation."""

    def submit(self, ranks, *lines, options=()):
        """The job's number; the output is in the file `output`."""
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write("\n".join(["#!/bin/sh", f"#SBATCH --ntasks={ranks} --output={self.path('output')}", *lines, ""]))
        result = self.run_command("sbatch", "--parsable", *options, self.path("script"))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout.strip()

    def launches(self):
        mpiexec = shutil.which(f"mpiexec.{HOST}") or "mpiexec"
        return (f"srun --mpi={LAUNCH}", f"{mpiexec} -n 4")

    def needs(self, launch):
        """Open MPI 5's launcher refuses the test's node in an allocation, with any program."""
        if self.run_command("salloc", "--quiet", "-n", "4", *launch.split(), "true").returncode != 0:
            self.skipTest(f"{launch} does not start the program true in an allocation")

    def test_a_script_s_job(self):
        for launch in self.launches():
            with self.subTest(launch=launch):
                self.needs(launch)
                self.submit(4, f"{launch} {ORIEL} run --stats=statistics.json --trace traces-$SLURM_JOB_ID {RING}",
                            options=["--wait"])
                self.assertEqual(read(self.path("output")), "right: 4 ranks\n")
                self.assertEqual(json.loads(read(self.path("statistics.json")))["ranks"], 4)
                os.unlink(self.path("statistics.json"))

    def test_steps_at_the_same_time_are_jobs_of_their_own(self):
        step = f"srun --mpi={LAUNCH} --overlap -n 2 {ORIEL} run {RING} hang"
        self.submit(4, f"{step} &", f"{step} &", "wait")
        until(lambda: [(job["size"], job["missing"]) for job in self.jobs()] == [(2, [])] * 2)
        self.assertEqual([(job["size"], job["missing"]) for job in self.jobs()], [(2, [])] * 2)

    def test_a_cancelled_script(self):
        for launch in self.launches():
            with self.subTest(launch=launch):
                self.needs(launch)
                number = self.submit(4, f"{launch} {ORIEL} run --stats=statistics.json {RING} hang")
                until(lambda: self.waiting_ranks() == [0, 1, 2])
                self.assertEqual(self.waiting_ranks(), [0, 1, 2])
                self.run_command("scancel", number)
                self.nothing_is_left()


class Cancelled(Case):
    """A cancelled job leaves its traces and nothing else; the file of findings stays empty."""

    def cancel(self, *command, options=()):
        job, number = self.start(4, *command)
        self.run_command("scancel", *options, number)
        self.assertNotEqual(job.wait(timeout=600), 0)
        self.nothing_is_left()

    def test_run(self):
        self.cancel(ORIEL, "run", "--stats=statistics.json", "--trace", "traces")
        self.assertEqual(os.listdir(self.folder), ["traces"])
        self.assertEqual(len(os.listdir(self.path("traces"))), 4)
        self.assertIn("4 ranks, traces of 4 of them", self.run_command(ORIEL, "report", "traces").stdout)

    def test_watch(self):
        self.cancel(ORIEL, "run", "--watch")

    def test_killed(self):
        self.cancel(ORIEL, "run", options=["--signal=KILL"])

    @unittest.skipIf("thread" in SANITIZE, "the checker is not tested with this sanitiser")
    def test_check(self):
        self.cancel(ORIEL, "check", "--json=found.json")
        self.assertEqual((os.listdir(self.folder), read(self.path("found.json"))), (["found.json"], ""))

    def test_interrupted_srun(self):
        job, _ = self.start(4, ORIEL, "run")
        job.send_signal(signal.SIGTERM)
        self.assertNotEqual(job.wait(timeout=600), 0)
        self.nothing_is_left()


if __name__ == "__main__":
    cluster.enter()
    unittest.main()
