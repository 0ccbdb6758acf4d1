"""Starts MPI jobs for the demo and the benchmark: on a bare host or through `oriel run`, with a time limit.
Whatever happens to a job, none of its processes is left when launch() returns.
Imported by scripts/demo, bench/instructions and `oriel bench`, beside which a copy is installed; standard library only."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LABELS = {"mpich": "MPICH", "openmpi": "Open MPI"}
VERSIONS = {"mpich": r"MPICH Version:\s*(\S+)", "openmpi": r"Open MPI v(\S+?),"}
GRACE_S = 5

# For root, and for more ranks than processors. They go into the job's environment and nowhere else.
SETTINGS = {
    "mpich": {},
    "openmpi": {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    },
}


def build_folder():
    """The build folder that the Makefile names in BUILD, else build/."""
    return os.path.join(ROOT, os.environ.get("BUILD") or "build")


def cores():
    return len(os.sched_getaffinity(0))


def launcher(host):
    """The host's mpiexec, or None. Debian tells them apart by a suffix, elsewhere the only one is asked what it is."""
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
    """How a job ended: its exit status, or None after its time was over; its output; its last errors."""

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
    """Processes that carry the job's mark in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open("/proc/%s/environ" % entry, "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                continue  # ended meanwhile, or another user's
    return found


def _end(process, mark):
    """mpiexec first, so that it can end its ranks; then whatever of the job is still there."""
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


def _read_lines(process, on_line, deadline, quiet_s, start_s):
    """Reads to the end of the output. Returns the lines, and whether the job ended by itself in time."""
    lines, partial = [], b""
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    heard = time.monotonic() + start_s - quiet_s
    while True:
        limit = min(deadline, heard + quiet_s)
        if not selector.select(max(0, limit - time.monotonic())):
            return lines, False
        chunk = os.read(process.stdout.fileno(), 65536)
        if not chunk:
            break
        heard = time.monotonic()
        *whole, partial = (partial + chunk).split(b"\n")
        for raw in whole:
            line = raw.decode(errors="replace")
            lines.append(line)
            if on_line:
                on_line(line)
    try:
        process.wait(max(0.1, min(deadline, time.monotonic() + quiet_s) - time.monotonic()))
    except subprocess.TimeoutExpired:
        return lines, False
    return lines, True


def command(host, ranks, program, oriel=None):
    if host is None:
        return program
    return [launcher(host) or "mpiexec." + host, "-n", str(ranks)] + ([oriel, "run"] if oriel else []) + program


def launch(host, ranks, program, oriel=None, limit_s=60, quiet_s=1e9, on_line=None, environment=None, start_s=None):
    """Runs a job to its end, or until limit_s are over or it has printed nothing for quiet_s, at its start for start_s.
    Without a host the program is started as it is."""
    mark = "JOB_MARK=%d.%d" % (os.getpid(), time.monotonic_ns())
    env = dict(os.environ, **SETTINGS.get(host, {}), **(environment or {}))
    env["JOB_MARK"] = mark.partition("=")[2]
    if host == "openmpi" and ranks > cores():
        env["OMPI_MCA_mpi_yield_when_idle"] = "1"
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command(host, ranks, program, oriel), env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        try:
            lines, ended = _read_lines(process, on_line, start + limit_s, quiet_s,
                                       quiet_s if start_s is None else start_s)
        finally:
            _end(process, mark.encode())
            process.stdout.close()
        elapsed_s = time.monotonic() - start
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return Result(process.returncode if ended else None, lines, text, elapsed_s)
