"""Debian systems in a folder, made by debootstrap, and commands in them.

Commands run in mount and process namespaces of their own, and none of their processes survives."""

import contextlib
import ctypes
import filecmp
import os
import shutil
import signal
import subprocess
import sys
import tempfile

SKIP = 77
PR_SET_PDEATHSIG = 1
NOBODY = 65534
# local certificate authorities of this machine's network, if any
AUTHORITIES = "/usr/local/share/ca-certificates"
# The folder becomes a mount, so that commands can make mount namespaces of their own.
SETTLE = """
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t tmpfs tmpfs "$1/tmp"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -sf pts/ptmx "$1/dev/ptmx"
exec chroot "$@"
"""


def skip(reason):
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIP)


def release():
    with open("/etc/os-release", encoding="utf-8") as file:
        return dict(line.strip().split("=", 1) for line in file if "=" in line).get("VERSION_CODENAME", "stable").strip('"')


def mirror():
    """The mirror from which this system's own packages come."""
    asked = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"],
                           capture_output=True, text=True, check=False)
    for line in asked.stdout.splitlines():
        site, name = line.split()
        if name in (release(), "sid"):  # sid calls itself by the next release's name
            return site
    skip("apt does not say where this system's packages come from")


def source_files(tree):
    """The files of a tree: those that git lists; without git, all except build folders."""
    asked = subprocess.run(["git", "-C", tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return [name for name in asked.stdout.split("\0") if name and os.path.lexists(os.path.join(tree, name))]
    return [os.path.relpath(os.path.join(where, name), tree) for where, _, names in os.walk(tree) for name in names
            if not os.path.relpath(where, tree).startswith("build")]


def is_same(source, copy):
    """Whether the contents and modes agree. Times do not count: the copy of another tree may be newer."""
    if os.path.islink(source):
        return os.path.islink(copy) and os.readlink(source) == os.readlink(copy)
    return (os.path.isfile(copy) and not os.path.islink(copy) and os.stat(source).st_mode == os.stat(copy).st_mode
            and filecmp.cmp(source, copy, shallow=False))


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Root:
    """The system of a release in a folder."""

    def __init__(self, folder, home="/tmp"):
        self.folder = folder
        self.home = home

    def make(self, name):
        if os.geteuid() != 0:
            skip("only root can make a system in a folder")
        if not shutil.which("debootstrap"):
            skip("no debootstrap")
        for _ in range(3):  # continues after a failed download
            made = subprocess.run(["debootstrap", "--variant=minbase", name, self.folder, mirror()], capture_output=True,
                                  text=True, check=False)
            if made.returncode == 0:
                break
        else:
            shutil.rmtree(self.folder)
            skip(f"debootstrap: {(made.stdout + made.stderr).strip().splitlines()[-1]}")
        for name in ("etc/resolv.conf", "etc/hosts"):  # the node's own name is in the second
            if os.path.exists(f"/{name}"):
                shutil.copy(f"/{name}", self.path(name))
        if os.path.isdir(AUTHORITIES):
            shutil.copytree(AUTHORITIES, self.path(AUTHORITIES[1:]), dirs_exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def copy_tree(self, tree, name):
        """Brings the sources in a folder of the system up to date, and leaves build folders alone."""
        files = set(source_files(tree))
        for where, folders, names in os.walk(self.path(name)):
            if where == self.path(name):
                folders[:] = [folder for folder in folders if not folder.startswith("build")]
            folders[:] = [folder for folder in folders if folder != "node_modules"]
            for old in names:
                path = os.path.join(where, old)
                if os.path.relpath(path, self.path(name)) not in files:
                    os.unlink(path)
        for file in files:
            source, copy = os.path.join(tree, file), self.path(f"{name}/{file}")
            if is_same(source, copy):
                continue
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if os.path.lexists(copy):
                os.unlink(copy)
            shutil.copy(source, copy, follow_symlinks=False)

    def start(self, words, user=None, **options):
        """Runs a command in the system. It ends with this process."""
        if user:
            words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs", *words]
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.home,
                       "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive",
                       "NODE_EXTRA_CA_CERTS": "/etc/ssl/certs/ca-certificates.crt"}
        if not user:
            environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        environment.update({name: value for name, value in os.environ.items() if name.endswith("_proxy")})
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-c", SETTLE, "sh",
                               self.folder, *words], env=environment, stdin=subprocess.DEVNULL, check=False, preexec_fn=end_with_parent,
                              **options)

    def run(self, script, user=None, limit_s=600):
        """Runs a shell script in the system: its status and all its output."""
        return self.start(["/bin/sh", "-ec", script], user, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=limit_s)

    def must(self, script, *words, **options):
        """The same for a script that must succeed and print these words."""
        result = self.run(script, **options)
        lacking = [word for word in words if word not in result.stdout]
        if result.returncode or lacking:
            sys.exit(f"not ok: {script}\n{result.stdout[-4000:]}\nstatus {result.returncode}, not said: {lacking}")
        print(f"ok {script if chr(10) not in script else script.strip().splitlines()[-1].strip()}", flush=True)
        return result.stdout


@contextlib.contextmanager
def clean_root():
    """A new system of this machine's release, which is removed at the end."""
    folder = tempfile.mkdtemp(prefix="oriel-clean.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    os.chmod(folder, 0o755)
    root = Root(folder)
    try:
        root.make(release())
        print(f"made {release()} from {mirror()}", flush=True)
        yield root
    finally:
        shutil.rmtree(folder, ignore_errors=True)
