"""The command socket of a node of a test network, or of its switch, in the net's folder. A client
sends a command with its own stdin, stdout and stderr, and receives the exit status.

A command runs as the client's user, gets a signal when the client ends, and no other
process waits for it. scripts/net_namespaces.py starts the server, scripts/testnet is the client;
standard library only."""

import ctypes
import json
import os
import select
import signal
import socket
import struct
import traceback

PR_SET_NO_NEW_PRIVS = 38
SUFFIX = ".socket"

libc = ctypes.CDLL(None, use_errno=True)


def run(path, request, files=(0, 1, 2)):
    """Runs a command through the socket; returns its exit status, or 255 when the node ended."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        words = json.dumps(request).encode()
        socket.send_fds(server, [struct.pack("=I", len(words))], files)
        server.sendall(words)
        status = server.recv(4, socket.MSG_WAITALL)
    return struct.unpack("=i", status)[0] if len(status) == 4 else 255


class CommandServer:
    """Serves one node, or the switch: commands run as the client's user, in a session of their own."""

    def __init__(self, folder, name, mode):
        self.listener = socket.socket(socket.AF_UNIX)
        path = os.path.join(folder, name + SUFFIX)
        self.listener.bind(path)
        os.chmod(path, mode)
        self.listener.listen(64)
        self.commands = {}  # pid: connection
        wake, self.woken = os.pipe()
        for end in (wake, self.woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self.woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self.wake = wake

    def serve(self, others=()):
        """Returns when one of the other descriptors is ready."""
        while True:
            poll = select.poll()
            for file in (self.listener.fileno(), self.wake, *others):
                poll.register(file, select.POLLIN)
            for connection in self.commands.values():
                poll.register(connection.fileno(), select.POLLIN)
            ready = {file for file, _ in poll.poll()}
            if ready & set(others):
                return
            if self.wake in ready:
                os.read(self.wake, 4096)
                self._reap()
            for pid, connection in list(self.commands.items()):
                if connection.fileno() in ready:  # the client has ended: like a closed terminal
                    self._client_ended(pid, connection)
            if self.listener.fileno() in ready:
                self._accept()

    def _client_ended(self, pid, connection):
        try:
            os.killpg(pid, signal.SIGHUP)
        except ProcessLookupError:
            pass
        del self.commands[pid]
        connection.close()

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            connection = self.commands.pop(pid, None)  # others are orphans
            if connection:
                code = os.waitstatus_to_exitcode(status)
                try:
                    connection.sendall(struct.pack("=i", code if code >= 0 else 128 - code))
                except OSError:
                    pass
                connection.close()

    def _accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(10)
        files = []
        try:
            length, files, _, _ = socket.recv_fds(connection, 4, 3)
            words = connection.recv(struct.unpack("=I", length)[0], socket.MSG_WAITALL)
            request = json.loads(words)
            owner = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except (OSError, ValueError, struct.error):
            connection.close()
        else:
            connection.settimeout(None)
            pid = os.fork()
            if pid == 0:
                self._execute(request, files, owner)
            if request.get("stay"):  # the client does not wait for it
                connection.sendall(struct.pack("=i", 0))
                connection.close()
            else:
                self.commands[pid] = connection
        for file in files:
            os.close(file)

    def _execute(self, request, files, owner):
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            for target, file in enumerate([] if request.get("stay") else files):
                os.dup2(file, target)
            _, user, group = owner
            if user == 0 and request.get("user"):
                user = group = request["user"]
            if user != os.geteuid():
                os.setgroups([])
                os.setresgid(group, group, group)
                os.setresuid(user, user, user)
                libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            folder = request.get("cwd") or "/"
            os.chdir(folder if os.path.isdir(folder) else "/")
            os.closerange(3, 4096)
            os.execvpe(request["argv"][0], request["argv"], request["env"])
        except FileNotFoundError:
            os.write(2, f"testnet: no command {request['argv'][0]}\n".encode())
            os._exit(127)
        except BaseException:
            traceback.print_exc()
        os._exit(126)
