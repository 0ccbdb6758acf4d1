"""A QEMU guest that runs one command on this machine's files, with an RDMA device that its kernel
emulates.

QEMU ends with the process that started it, on any signal, and writes nothing to the disk: the
guest's initial file system and all its changes are in memory. Standard library only; works for any
user."""

import ctypes
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

import guest_kernel
from guest_kernel import Refused

INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest-init")
PACKAGES = {"qemu-system-x86_64": "qemu-system-x86", "busybox": "busybox-static", "ip": "iproute2", "rdma": "iproute2",
            "chrt": "util-linux", "pgrep": "procps"}
PROVIDERS = "/etc/libibverbs.d/rxe.driver"
PR_SET_PDEATHSIG = 1
LAST_BYTES = 4000  # of the console, printed when the guest fails
END_OF_TIME, GUEST_FAILED = 124, 2

libc = ctypes.CDLL(None, use_errno=True)


def _which(tool):
    found = shutil.which(tool, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if not found:
        raise Refused(f"no {tool} (package {PACKAGES[tool]})")
    return found


def _busybox():
    """The paths of the file and of the libraries that it needs; a static file needs none."""
    path = _which("busybox")
    listing = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return path, [word for word in listing.stdout.split() if word.startswith("/")] if listing.returncode == 0 else []


def check():
    """The kernel to use; raises Refused when no guest can be started."""
    for tool in PACKAGES:
        _which(tool)
    if not os.path.exists(PROVIDERS):
        raise Refused(f"no {PROVIDERS} (package ibverbs-providers)")
    return guest_kernel.find()


# The initial file system, an archive in cpio's format "newc".


class Archive:
    def __init__(self):
        self.data = bytearray()
        self.count = 0
        self.folders = set()

    def add(self, name, mode, content=b""):
        self.count += 1
        encoded = name.encode() + b"\0"
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + encoded
        self._align()
        self.data += content
        self._align()

    def _align(self):
        self.data += bytes(-len(self.data) % 4)

    def folder(self, name):
        if name and name not in self.folders:
            self.folder(os.path.dirname(name))
            self.folders.add(name)
            self.add(name, 0o040755)

    def file(self, name, content):
        self.folder(os.path.dirname(name))
        self.add(name, 0o100755, content)

    def copy(self, name, path):
        with open(path, "rb") as file:
            self.file(name, file.read())

    def end(self):
        self.add("TRAILER!!!", 0)
        return self.data


def _initial(kernel, command):
    archive = Archive()
    for name in ("bin", "proc", "sys", "dev", "machine", "layer", "root"):
        archive.folder(name)
    busybox, libraries = _busybox()
    for name, path in [("busybox", busybox), ("init", INIT), *((path[1:], path) for path in libraries)]:
        archive.copy(name, path)
    order = []
    for path in kernel.modules():
        order.append(os.path.basename(path).partition(".")[0] + ".ko")
        archive.file("modules/" + order[-1], guest_kernel.module_bytes(os.path.join(kernel.folder, path)))
    archive.file("modules/order", "".join(f"{name}\n" for name in order).encode())
    archive.file("command", command.encode("utf-8", "surrogateescape"))
    return archive.end()


def script(argv, env, folder):
    """The script of the guest's shell: the environment, the folder and the command."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in sorted(env.items()) if name.isidentifier() and name.isascii()]
    return "\n".join([*lines, f"cd {shlex.quote(folder)} || exit 127", f"exec {shlex.join(argv)}"]) + "\n"


# The machine.


class Guest:
    """One run: its process, and this end of its ports."""

    def __init__(self, kernel, command, cpus, memory, accelerator):
        initial = os.memfd_create("oriel-guest")
        with open(initial, "wb", closefd=False) as file:
            file.write(_initial(kernel, command))
        self.ends, far = {}, {}
        for name in ("console", "status", "out", "err"):
            self.ends[name], far[name] = socket.socketpair()
        # The emulated processor has all features that QEMU supports; its threads run in parallel.
        line = [_which("qemu-system-x86_64"), "-machine", "pc", "-accel", accelerator,
                "-cpu", "host" if accelerator == "kvm" else "max", "-smp", str(cpus), "-m", memory,
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", kernel.image, "-initrd", f"/proc/self/fd/{initial}",
                "-append", "console=ttyS0 quiet panic=-1 mitigations=off",
                "-fsdev", "local,id=files,path=/,security_model=none,readonly=on,multidevs=remap",
                "-device", "virtio-9p-pci,fsdev=files,mount_tag=machine", "-device", "virtio-serial-pci"]
        for name, end in far.items():
            line += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
            line += ["-serial", f"chardev:{name}"] if name == "console" else [
                "-device", f"virtserialport,chardev={name},name={name}"]
        parent = os.getpid()

        def tied():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)

        self.process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        pass_fds=[initial, *(end.fileno() for end in far.values())], preexec_fn=tied,
                                        start_new_session=True)
        os.close(initial)
        for end in far.values():
            end.close()

    def end(self):
        self.process.kill()
        self.process.wait()

    def serve(self, patience_s):
        """Forwards output until the command or the guest ends, or time is over. Returns the status,
        or None and the reason."""
        files = {end.fileno(): name for name, end in self.ends.items()}
        files[self.process.stdout.fileno()] = "emulator"
        kept = {"console": b"", "emulator": b"", "status": b""}
        poll = select.poll()
        for file in files:
            poll.register(file, select.POLLIN)
        until, ended = time.monotonic() + patience_s, False
        while files:
            left = until - time.monotonic()
            if left <= 0 and not ended:
                where = "the command did not end" if b"up" in kept["status"] else "the guest did not start"
                return END_OF_TIME, f"{where} within {patience_s:g} s", kept
            for file, _ in poll.poll(max(left, 0) * 1000 if not ended else None):
                data = _read(file)
                name = files[file]
                if not data:
                    poll.unregister(file)
                    del files[file]
                elif name in kept:
                    kept[name] = (kept[name] + data)[-LAST_BYTES:]
                else:
                    _pass_on({"out": 1, "err": 2}[name], data)
            if not ended and (b"ended" in kept["status"] and kept["status"].endswith(b"\n")):
                ended = True
                self.process.kill()  # all output of the command is already in the sockets
        words = kept["status"].split()
        if ended:
            return int(words[-1]), None, kept
        return GUEST_FAILED, "the guest has died" if b"up" in words else "the guest did not start", kept


def _read(file):
    try:
        return os.read(file, 65536)
    except ConnectionResetError:  # QEMU ended with unread data
        return b""


def _pass_on(file, data):
    while data:
        data = data[os.write(file, data):]


def run(argv, env, folder, timeout_s, cpus, memory, accelerator="tcg"):
    """Runs the command in a guest. Returns its status, or 124 or 2 with the reason on stderr."""
    guest = Guest(check(), script(argv, env, folder), cpus, memory, accelerator)
    try:
        status, reason, kept = guest.serve(timeout_s)
    finally:
        guest.end()
    if reason:
        print(f"testrdma: {reason}", file=sys.stderr)
        for name in ("emulator", "console"):
            for text in kept[name].decode(errors="replace").splitlines():
                print(f"  {name}: {text}", file=sys.stderr)
    return status
