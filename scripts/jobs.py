"""Starts MPI jobs for the benchmark, with or without `oriel run`, with a time limit.
No process of a job is left when launch() returns.
`oriel bench` uses an installed copy; standard library only."""

import contextlib
import os
import re
import selectors
import shutil
import signal
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LABELS = {"mpich": "MPICH", "openmpi": "Open MPI"}
VERSIONS = {"mpich": r"MPICH Version:\s*(\S+)", "openmpi": r"Open MPI v(\S+?),"}
GRACE_S = 5
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # termination signals
LINES_KEPT, LINE_CHARS_KEPT, ERRORS_KEPT = 10000, 4096, 1 << 16  # limits for a job with endless output

# For root, and for more ranks than processors. They go into the job's environment and nowhere else.
SETTINGS = {
    "mpich": {},
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    },
}
# The option that every version of Open MPI knows: the names of its settings differ.
OPTIONS = {"mpich": [], "openmpi": ["--oversubscribe"]}


def build_folder():
    """The build folder: BUILD of the Makefile, or build/."""
    return os.path.join(ROOT, os.environ.get("BUILD") or "build")


def cores():
    return len(os.sched_getaffinity(0))


def launcher(host):
    """The host's mpiexec, or None. Debian's have a suffix; elsewhere the version text of the only
    one identifies it."""
    found = shutil.which("mpiexec." + host)
    if found:
        return found
    found = shutil.which("mpiexec")
    try:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=10).stdout if found else ""
    except (OSError, subprocess.TimeoutExpired):
        return None
    is_host = "Open MPI" in version or "OpenRTE" in version if host == "openmpi" else "HYDRA" in version
    return found if is_host else None


def hosts_found(build):
    """The hosts that can launch jobs and for which liboriel was built."""
    return [host for host in LABELS
            if launcher(host)
            and os.path.exists(os.path.join(build, "lib", "oriel", host, "liboriel.so"))]


class Result:
    """How a job ended: its exit status, or None after its time was over; its output; its last
    errors."""

    def __init__(self, status, lines, errors, elapsed_s):
        self.status = status
        self.lines = lines
        self.errors = errors
        self.elapsed_s = elapsed_s

    def describe(self):
        if self.status is None:
            return "ran out of time"
        signal_number = re.search(r"signal (\d+)|signal: .*\((\d+)\)|EXIT CODE: (\d+)", "\n".join(self.lines) + self.errors)
        number = self.status - 128 if self.status > 128 else 0
        if not number and signal_number:
            number = next(int(group) for group in signal_number.groups() if group)
        try:
            return "crashed (%s)" % signal.strsignal(number).lower() if number else "exit status %d" % self.status
        except (ValueError, AttributeError):
            return "exit status %d" % self.status


def _marked(mark):
    """Processes with the job's mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open("/proc/%s/environ" % entry, "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                continue  # ended in the meantime, or another user's
    return found


@contextlib.contextmanager
def _uninterrupted():
    """Blocks termination signals until the end of the block. Yields the previous mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(process, mark):
    """Ends mpiexec first, so that it can end its ranks, then the rest of the job. Signals are
    blocked meanwhile."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    deadline = time.monotonic() + GRACE_S
    while (left := _marked(mark)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


class _Lines:
    """A job's output: passes complete lines to on_line, and keeps a limited number of them."""

    def __init__(self, on_line):
        self.kept = []
        self.partial = b""
        self.on_line = on_line

    def take(self, chunk):
        """Whether there was progress in it: with a listener, what that calls progress."""
        *whole, partial = (self.partial + chunk).split(b"\n")
        self.partial = partial[:LINE_CHARS_KEPT]
        progress = self.on_line is None
        for raw in whole:
            line = raw[:LINE_CHARS_KEPT].decode(errors="replace")
            if len(self.kept) < LINES_KEPT:
                self.kept.append(line)
            if self.on_line:
                progress = bool(self.on_line(line)) or progress
        return progress


class _Errors:
    """The beginning and the end of a job's stderr."""

    def __init__(self):
        self.first = self.last = b""

    def take(self, chunk):
        room = ERRORS_KEPT - len(self.first)
        self.first += chunk[:room]
        self.last = (self.last + chunk[room:])[-ERRORS_KEPT:]

    def text(self):
        return (self.first + self.last).decode(errors="replace")


def _listen(process, lines, errors, deadline, quiet_s, start_s):
    """Reads to the end of the output. Returns true when the job ended in time."""
    heard = time.monotonic() + start_s - quiet_s
    with selectors.DefaultSelector() as selector:
        for file in (process.stdout, process.stderr):
            selector.register(file, selectors.EVENT_READ)
        while selector.get_map():
            left_s = min(deadline, heard + quiet_s) - time.monotonic()
            ready = selector.select(max(0, left_s)) or selector.select(0)  # output from a time when this process was stopped
            if not ready:
                return False
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors.take(chunk)
                elif lines.take(chunk):
                    heard = time.monotonic()
            if left_s <= 0 and min(deadline, heard + quiet_s) <= time.monotonic():
                return False
    try:
        process.wait(max(0.1, min(deadline, time.monotonic() + quiet_s) - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _rest(process, errors):
    """The rest of the stderr pipe after the end of the job."""
    os.set_blocking(process.stderr.fileno(), False)
    try:
        for _ in range(64):
            errors.take(os.read(process.stderr.fileno(), 65536))
    except BlockingIOError:
        pass


def command(host, ranks, program, oriel=None, net=None, mark=""):
    if host is None:
        return program
    program = ([oriel, "run"] if oriel else []) + program
    if net is None:
        return [launcher(host) or "mpiexec." + host, *OPTIONS[host], "-n", str(ranks)] + program
    return [*net, "run", "--host", host, "-n", str(ranks), "--env", mark, "--"] + program


def launch(host, ranks, program, oriel=None, limit_s=60, quiet_s=1e9, on_line=None, environment=None, start_s=None,
           net=None):
    """Runs a job to its end, to the limit limit_s, or until it makes no progress for quiet_s
    (start_s at its start). Progress is a line for which on_line returns true; without on_line, any
    output. Without a host the program runs without a launcher; with net, a command prefix of
    scripts/testnet, it runs over those nodes. Termination signals are blocked while the job is
    started or ended."""
    mark = "JOB_MARK=%d.%d" % (os.getpid(), time.monotonic_ns())
    env = dict(os.environ, **SETTINGS.get(host, {}), **(environment or {}))
    env["JOB_MARK"] = mark.partition("=")[2]
    if host == "openmpi" and ranks > cores():
        env["OMPI_MCA_mpi_yield_when_idle"] = "1"
    start = time.monotonic()
    line = command(host, ranks, program, oriel, net, mark)
    lines, errors, ended = _Lines(on_line), _Errors(), False
    with _uninterrupted() as mask:
        process = subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, mask))
        try:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                ended = _listen(process, lines, errors, start + limit_s, quiet_s, quiet_s if start_s is None else start_s)
            finally:
                signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)  # may itself say that a signal came
        finally:
            _end(process, mark.encode())
            _rest(process, errors)
            process.stdout.close()
            process.stderr.close()
    return Result(process.returncode if ended else None, lines.kept, errors.text(), time.monotonic() - start)
