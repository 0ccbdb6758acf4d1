"""A Slurm cluster of one node: munged, slurmctld and slurmd, in namespaces of their own.

`enter` restarts the script as the only program of new namespaces: processes, network, mounts, host
name. Ports, process ids, /run and /dev/shm are therefore the cluster's own. The kernel ends and
removes all of it when the script ends, however it ends."""

import os
import re
import shutil
import subprocess
import sys
import time

SKIP = 77
DAEMONS = ("munged", "slurmctld", "slurmd")
COMMANDS = ("srun", "sbatch", "scancel", "squeue", "sinfo", "unshare", "setpriv", "ip", "ps")
ENTERED = "TESTS_SLURM_ENTERED"
FOLDER = "/run/cluster"  # on a file system of the namespace
CONFIGURATION = f"{FOLDER}/slurm.conf"
SOCKET = f"{FOLDER}/munge.socket"
PATIENCE_S = 600  # for a busy node

NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts", "--ipc"]
# The shell is process 1, and waits for orphans. Names are looked up only where an interface has an
# address other than 127.0.0.1.
START = """
mount -t tmpfs -o mode=755 tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /dev/shm &&
ip link set lo up && ip address add 192.0.2.1/32 dev lo && hostname localhost ||
{ echo "skipped: no file systems or network for a cluster"; exit 77; }
"$@"; exit $?
"""

# Jobs may have more tasks than the node has processors. No plugin here changes the system's
# cgroups.
SETTINGS = f"""
ClusterName=oriel
SlurmctldHost=localhost(127.0.0.1)
NodeName=localhost NodeAddr=127.0.0.1 CPUs=16
PartitionName=all Nodes=localhost Default=YES MaxTime=10
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={SOCKET}
StateSaveLocation={FOLDER}/state
SlurmdSpoolDir={FOLDER}/spool
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdPidFile={FOLDER}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
"""


def missing():
    """Why no cluster can start here; None if one can start."""
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    for tool in DAEMONS + COMMANDS:
        if not shutil.which(tool):
            return f"no {tool}: scripts/install-deps test installs what is needed"
    result = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return result.stderr.strip() if result.returncode else None


def enter():
    """Returns in the namespaces only. The status is 77 where they or Slurm are missing."""
    if os.environ.pop(ENTERED, None):
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    reason = missing()
    if reason:
        print(f"skipped: {reason}", flush=True)
        sys.exit(SKIP)
    os.environ[ENTERED] = "1"
    os.execvp(NAMESPACES[0], [*NAMESPACES, "sh", "-c", START, "sh", sys.executable, "-B", *sys.argv])


def until(condition):
    """Waits until the condition is true or time is over; returns its last value."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600).stdout.strip()


def version():
    """Slurm's, as (23, 11)."""
    return tuple(map(int, re.search(r"(\d+)\.(\d+)", output_of("slurmd", "-V")).groups()))


def processes():
    """The processes of the cluster as {pid: command}, without this one's children."""
    found = {}
    for line in output_of("ps", "-e", "-o", "pid=,ppid=,stat=,args=").splitlines():
        pid, parent, state, command = line.split(None, 3)
        if int(parent) != os.getpid() and not state.startswith("Z"):
            found[int(pid)] = command
    return found


def oriel_sockets():
    """The names of Oriel's sockets, which belong to the namespace of the network."""
    with open("/proc/net/unix", encoding="utf-8") as file:
        return re.findall(r"@(oriel\S*)", file.read())


class Cluster:
    def __init__(self):
        self.daemons = []

    def start(self):
        """Returns when the node accepts jobs. If it never does, raises with the daemons' output."""
        for name in ("", "state", "spool"):
            os.mkdir(os.path.join(FOLDER, name))
        with open(CONFIGURATION, "w", encoding="ascii") as file:
            file.write(SETTINGS)
        with open(f"{FOLDER}/cgroup.conf", "w", encoding="ascii") as file:
            if version() >= (23, 11):  # from here on slurmd refuses to start without cgroups otherwise
                file.write("CgroupPlugin=disabled\n")
        with open(os.open(f"{FOLDER}/munge.key", os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
            file.write(os.urandom(128))
        os.environ["SLURM_CONF"] = CONFIGURATION
        self.daemon("munged", "--foreground", f"--key-file={FOLDER}/munge.key", f"--socket={SOCKET}",
                    f"--pid-file={FOLDER}/munged.pid", f"--log-file={FOLDER}/munged.log", f"--seed-file={FOLDER}/munged.seed")
        until(lambda: os.path.exists(SOCKET))
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D")
        if not until(lambda: output_of("sinfo", "--noheader", "--format=%T") == "idle"):
            raise RuntimeError("the cluster did not start:\n" + self.output())

    def daemon(self, *command):
        with open(f"{FOLDER}/{command[0]}.output", "wb") as file:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file))

    def output(self):
        texts = []
        for name in DAEMONS:
            with open(f"{FOLDER}/{name}.output", encoding="utf-8", errors="replace") as file:
                texts.append(f"{name}:\n{file.read()}")
        return "\n".join(texts)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(timeout=PATIENCE_S)
