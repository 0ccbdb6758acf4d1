"""Shared by the tests of `oriel top` and `oriel run --watch`: jobs to observe, and terminals to
display them.

Other jobs may run on the node: each snapshot names the job by its launcher's process."""

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BUILD = os.environ["TESTS_BUILD"]
HOST = os.environ.get("TESTS_HOST", "mpich")
LIBRARY = HOST.partition("-")[0]  # abi of abi-mpich
RANKS = int(os.environ.get("TESTS_RANKS", "4"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORIEL = os.path.join(BUILD, "bin", "oriel")
PATIENCE_S = 400  # for a busy node
FOREIGN = ("ORIEL_", "OMPI_", "PMI", "MPI_LOCAL", "HYD", "MPIR_", "LD_PRELOAD")


def environment(**changes):
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env.update(LC_ALL="C", **changes)
    return env


def program(name):
    return os.path.join(BUILD, "tests", "observe", LIBRARY, name)


def top(*arguments, before=(), **changes):
    return subprocess.run([*before, ORIEL, "top", *map(str, arguments)], env=environment(**changes), capture_output=True, text=True,
                          timeout=600, stdin=subprocess.DEVNULL)


def until(condition):
    """Waits until the condition is true or time is over; returns its last value."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


class Job:
    """A job of tests/launch; ready after rank 0's line."""

    def __init__(self, name, *arguments, ranks=RANKS, launch=(), command=(), env=()):
        words = [word for pair in env for word in ("--env", pair)]
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(ROOT, "tests", "launch"), "--build", BUILD, "--host", HOST, "-n", str(ranks),
             "--timeout", "100", *words, *launch, "--", *command, program(name), *map(str, arguments)],
            env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.pid = self.process.pid
        self.first = self.process.stdout.readline().strip()
        if self.first.startswith("skipped"):
            self.end()
            raise unittest.SkipTest(self.first)

    def snapshot(self):
        """The job as JSON; None if it does not exist yet."""
        result = top("--once", "--json", self.pid)
        if result.returncode != 0:
            return None
        jobs = json.loads(result.stdout)["jobs"]
        return jobs[0] if len(jobs) == 1 else None

    def ranks(self):
        job = self.snapshot()
        return {rank["rank"]: rank for rank in job["ranks"]} if job else {}

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=600)


class Ended(unittest.TestCase):
    """Jobs that run until the test ends them."""

    def setUp(self):
        self.end = os.path.join(tempfile.gettempdir(), f"oriel-busy.{os.getpid()}.{self.id()}")
        self.addCleanup(self.forget)

    def ask_to_end(self):
        with open(self.end, "x", encoding="ascii"):
            pass

    def forget(self):
        if os.path.exists(self.end):
            os.unlink(self.end)


class Case(Ended):
    def job(self, *arguments, **words):
        job = Job(*arguments, **words)
        self.addCleanup(job.end)
        return job


class Terminal:
    """A command on a terminal of its own, in its foreground process group."""

    def __init__(self, command, rows=24, columns=120, **changes):
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], command, environment(TERM="xterm", **changes))
        self.before = None

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                more = os.read(self.fd, 65536)
            except OSError:
                return False
            if not more:
                return False
            self.text += more
        return True

    def until(self, words):
        """Whether these bytes appear."""
        until(lambda: words in self.text or not self.read(0.3) or words in self.text)
        return words in self.text

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self):
        return termios.tcgetattr(self.fd)[3]

    def press(self, key):
        os.write(self.fd, key)

    def status(self):
        """Reads to the end."""
        end = time.monotonic() + PATIENCE_S
        while self.read(0.3) and time.monotonic() < end:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.read(0.3)
                self.pid = 0
                return status
        if self.pid:
            status = os.waitpid(self.pid, 0)[1]
            self.pid = 0
        return status

    def close(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def launcher(*command, ranks=RANKS):
    """Command and environment of the host's own launcher, for use on a terminal."""
    mpi = HOST.rpartition("-")[2]
    mpiexec = shutil.which(f"mpiexec.{mpi}") or shutil.which("mpiexec")
    options, extra = [], {}
    if LIBRARY == "abi":
        extra = {"LD_LIBRARY_PATH": os.path.join(BUILD, "tests/abi", mpi)}
    if mpi == "openmpi":
        options = ["--oversubscribe"]
        extra |= dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1",
                     OMPI_MCA_btl_tcp_if_include="lo")  # as tests/launch does
    return [mpiexec, *options, "-n", str(ranks), *command], extra
