"""The parts of a test network: namespaces that simulate nodes, and a switch between them.

The switch is the first process of a PID namespace, and the processes of all nodes are in namespaces
below it. Nothing of a net therefore outlives it: links and mounts belong to its namespaces, and
only a folder remains to be removed. Standard library only; it works for an ordinary user in a user
namespace."""

import ctypes
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import traceback
import uuid

from command_socket import CommandServer

INSIDE = "/tmp/.oriel-testnet"  # the net's folder, as its nodes see it
SUBNET = "10.213.47"            # not visible outside: no link connects to it
BRIDGE = "oriel-%s"             # with the net's id
NAMES = "abcdefgh"

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 0x40000, 2, 4

libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """An operation that this machine does not allow, with the reason."""


def _call(what, function, *arguments):
    if function(*arguments) != 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")


def _unshare(flags, what):
    _call(f"unshare of {what}", libc.unshare, ctypes.c_int(flags))


def _mount(source, target, kind, flags=0, options=None):
    words = [word and word.encode() for word in (source, target, kind, options)]
    _call(f"mount of {target}", libc.mount, *words[:3], ctypes.c_ulong(flags), words[3])


def _bind(source, target):
    _mount(source, target, None, MS_BIND | MS_REC)


def _ip(lines, what, files=()):
    try:
        result = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True,
                                check=False, pass_fds=files)
    except FileNotFoundError:
        raise Refused("no ip (package iproute2)") from None
    if result.returncode:
        raise Refused(f"{what}: {' '.join(result.stderr.split())}")


def _close_all_but(*files):
    for file in os.listdir("/proc/self/fd"):
        if int(file) > 2 and int(file) not in files:
            try:
                os.close(int(file))
            except OSError:
                pass  # the listing's own descriptor


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def host_name(name):
    return "oriel-" + name


def port(name):
    return "p-" + name


# A node.


def _isolate_node(name, net):
    """Sets up its own /proc, /sys, /dev/shm, names, identity, and a /tmp with only the shared
    folders of the real one."""
    _unshare(NEWNS | NEWUTS | NEWIPC | NEWNET, "mounts, host name, IPC and network")
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    host = host_name(name).encode()
    _call("sethostname", libc.sethostname, host, ctypes.c_size_t(len(host)))
    _bind(os.path.join(net.folder, "hosts"), "/etc/hosts")
    shared = [(folder, os.open(folder, os.O_PATH)) for folder in net.shares]
    state = os.open(net.folder, os.O_PATH)
    for folder in ("/tmp", "/dev/shm"):
        _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for folder, file in [*shared, (INSIDE, state)]:
        os.makedirs(folder, exist_ok=True)
        _bind(f"/proc/self/fd/{file}", folder)
        os.close(file)
    _mount("proc", "/proc", "proc")
    _mount("sysfs", "/sys", "sysfs")
    if not net.same_boot:  # nodes are distinguished by it
        _bind(os.path.join(INSIDE, name + ".boot"), "/proc/sys/kernel/random/boot_id")
    for which in ("all", "default"):
        path = f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6"
        if os.path.exists(path):
            _write(path, "1")


def _node(name, net, wire):
    """The first process of a node; it never returns. The switch signals when its link exists."""
    try:
        _close_all_but(wire.fileno())
        _isolate_node(name, net)
        net_file = os.open("/proc/self/ns/net", os.O_RDONLY)
        socket.send_fds(wire, [b"isolated"], [net_file])
        os.close(net_file)
        if not wire.recv(16):
            os._exit(1)
        address = f"{SUBNET}.{NAMES.index(name) + 1}/24"
        _ip(["link set lo up", f"addr add {address} dev eth0", "link set eth0 up"], "the node's link")
        server = CommandServer(INSIDE, name, 0o666)
        wire.sendall(b"up")
        wire.close()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        server.serve()
    except Refused as reason:
        wire.sendall(f"refused: {reason}".encode())
    except BaseException:
        wire.sendall(f"refused: {traceback.format_exc()}".encode())
    os._exit(1)


# The switch.


class Net:
    """The description of a net: its parts, and the real folders below /tmp that its nodes see."""

    def __init__(self, identity, folder, count, shares, same_boot):
        self.identity = identity
        self.folder = folder
        self.names = NAMES[:count]
        self.shares = sorted({os.path.realpath(share) for share in shares if os.path.realpath(share).startswith("/tmp/")})
        self.same_boot = same_boot

    def write_files(self):
        lines = ["127.0.0.1 localhost"]
        for index, name in enumerate(self.names):
            lines.append(f"{SUBNET}.{index + 1} {host_name(name)}")
            _write(os.path.join(self.folder, name + ".boot"), f"{uuid.uuid4()}\n")
        _write(os.path.join(self.folder, "hosts"), "\n".join(lines) + "\n")
        _write(os.path.join(self.folder, "nodes"), self.names)


def _expect(wire, word):
    """Returns the descriptors that come with the word."""
    received, files, _, _ = socket.recv_fds(wire, 65536, 1)
    if received.decode() != word:
        raise Refused(received.decode().partition("refused: ")[2] or "a node's first process has died")
    return files


def _build(net):
    """Starts the nodes in namespaces of their own, then creates their links."""
    bridge = BRIDGE % net.identity
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    cables, wires = [f"link add {bridge} type bridge", f"link set {bridge} up", "link set lo up"], []
    for name in net.names:
        wire, theirs = socket.socketpair()
        _unshare(NEWPID, "process ids")
        pid = os.fork()
        if pid == 0:
            _node(name, net, theirs)
        theirs.close()
        _call("setns", libc.setns, own, NEWPID)
        wires.append(wire)
    os.close(own)
    files = []
    for name, wire in zip(net.names, wires):
        file, = _expect(wire, "isolated")
        files.append(file)
        # by a file: /proc here is not that of this process's own numbers
        cables += [f"link add {port(name)} type veth peer name eth0 netns /proc/self/fd/{file}",
                   f"link set {port(name)} master {bridge} up"]
    _ip(cables, "the bridge", files)
    for file in files:
        os.close(file)
    for wire in wires:
        wire.sendall(b"go")
    for wire in wires:
        _expect(wire, "up")
        wire.close()


def _switch(net, report, commit, owner):
    """The first process of the net: when it ends, the kernel ends all others. It ends on request,
    when its creator dies before the net is complete, or when its owner has ended."""
    end_read, end_write = os.pipe()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: os.write(end_write, b"."))
    try:
        _build(net)
        server = CommandServer(net.folder, "switch", 0o600)
        os.write(report, b"up")
        os.close(report)
        if os.read(commit, 1):
            os.close(commit)
            server.serve([end_read] if owner is None else [end_read, owner])
    except Refused as reason:
        os.write(report, str(reason).encode())
    except BaseException:
        os.write(report, traceback.format_exc().encode())
    shutil.rmtree(net.folder, ignore_errors=True)
    os._exit(0)


def _isolate_switch():
    """Creates the switch's namespaces: directly as root, otherwise in a user namespace in which the
    user is root."""
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(NEWPID | NEWNET, "process ids and network")
    except Refused:
        _unshare(NEWUSER, "user names (unprivileged user namespaces)")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
        _unshare(NEWPID | NEWNET, "process ids and network")


def start(net, owner_pid):
    """Creates the net, or raises Refused. Returns the process id of its switch, which continues to
    run."""
    owner = os.pidfd_open(owner_pid) if owner_pid else None
    received, report = os.pipe()
    commit, committed = os.pipe()
    helper = os.fork()
    if helper == 0:
        try:
            _close_all_but(report, commit, owner)
            os.setsid()
            log = os.open(os.path.join(net.folder, "log"), os.O_WRONLY | os.O_CREAT, 0o600)
            for target, file in enumerate((os.open("/dev/null", os.O_RDONLY), log, log)):
                os.dup2(file, target)
            _isolate_switch()
            pid = os.fork()
            if pid == 0:
                _switch(net, report, commit, owner)
            _write(os.path.join(net.folder, "switch"), str(pid))
        except (Refused, OSError) as reason:
            os.write(report, str(reason).encode())
        os._exit(0)
    os.close(report)
    os.close(commit)
    try:
        os.waitpid(helper, 0)
    except BaseException:  # after an interruption, stop needs what the helper is about to write
        os.waitpid(helper, 0)
        raise
    words = b""
    while chunk := os.read(received, 65536):
        words += chunk
    if words != b"up":
        raise Refused(words.decode() or "the switch has died")
    os.write(committed, b".")
    with open(os.path.join(net.folder, "switch"), encoding="utf-8") as file:
        return int(file.read())


def stop(folder):
    """Ends the net of this folder, if there is one, and waits until all of it has ended."""
    try:
        with open(os.path.join(folder, "switch"), encoding="utf-8") as file:
            handle = os.pidfd_open(int(file.read()))
    except (FileNotFoundError, ProcessLookupError, ValueError):
        handle = None
    if handle is not None:
        for number, patience_ms in ((signal.SIGTERM, 5000), (signal.SIGKILL, 5000)):
            try:
                if not _is_switch(folder):
                    break
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                break
            if select.select([handle], [], [], patience_ms / 1000)[0]:
                break
        os.close(handle)
    if os.path.isdir(folder) and stat.S_ISDIR(os.lstat(folder).st_mode) and os.lstat(folder).st_uid == os.geteuid():
        shutil.rmtree(folder, ignore_errors=True)


def _is_switch(folder):
    """True when the process in the folder's file is its switch: process ids are reused."""
    try:
        with open(os.path.join(folder, "switch"), encoding="utf-8") as file:
            pid = file.read()
        log = os.stat(os.path.join(folder, "log"))
        its = os.stat(f"/proc/{pid}/fd/2")
    except OSError:
        return False
    return (log.st_dev, log.st_ino) == (its.st_dev, its.st_ino)
