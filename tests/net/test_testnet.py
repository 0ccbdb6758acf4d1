"""Tests of scripts/testnet: isolated nodes, links that fail on command, and a complete cleanup
however a net ends."""

import os
import signal
import subprocess
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTNET = os.path.join(ROOT, "scripts", "testnet")
SKIP = 77
RUNTIME = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"

# Sends datagrams from one node to another, which prints the number received and the shortest and
# longest transit time.
RECEIVE = """
import socket, time
file = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); file.bind(("", 4713)); file.settimeout(4)
print("ready", flush=True)
heard, longest, shortest = 0, 0, 9
try:
    while (word := file.recv(100)) != b"end":
        took = time.monotonic() - float(word); heard += 1; longest = max(longest, took); shortest = min(shortest, took)
except TimeoutError: pass
print(heard, shortest, longest)
"""
SEND = """
import socket, time
file = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def send(word):
    try: file.sendto(word, ("oriel-b", 4713))
    except OSError: pass
for i in range(500):
    send(str(time.monotonic()).encode()); time.sleep(0.001)
for i in range(20):
    send(b"end"); time.sleep(0.01)
"""


def testnet(identity, *words, **options):
    return subprocess.run([TESTNET, "--id", identity, *words], capture_output=True, text=True, timeout=600, check=False,
                          stdin=subprocess.DEVNULL, **options)


class Testnet(unittest.TestCase):
    def setUp(self):
        self.nets = []
        self.addCleanup(self.end)

    def end(self):
        for identity in self.nets:
            testnet(identity, "down")

    def up(self, *words, letter="t"):
        identity = f"{letter}{os.getpid()}"[:8]
        self.nets.append(identity)
        result = testnet(identity, "up", *words)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        return identity

    def inside(self, identity, node, *command):
        result = testnet(identity, "exec", node, *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def nothing_is_left(self, identity, switch):
        self.assertFalse(os.path.exists(self.folder(identity)))
        for _ in range(50):  # the kernel needs a short time
            if not os.path.exists(f"/proc/{switch}"):
                break
            time.sleep(0.1)
        self.assertFalse(os.path.exists(f"/proc/{switch}"))
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            self.assertNotIn(identity, file.read())
        links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=False).stdout
        self.assertNotIn(identity, links)

    def folder(self, identity):
        return os.path.join(RUNTIME, "oriel-testnet-" + identity)

    def switch(self, identity):
        with open(os.path.join(self.folder(identity), "switch"), encoding="utf-8") as file:
            return int(file.read())

    def passes(self, identity):
        """The link passes datagrams, after a delay: discovery repeats each second."""
        heard = self.traffic(identity)[0]
        for _ in range(5):
            if heard > 450:
                break
            heard = self.traffic(identity)[0]
        self.assertGreater(heard, 450)

    def traffic(self, identity):
        """Of 500 datagrams from a to b: the number received, the shortest and the longest time."""
        with subprocess.Popen([TESTNET, "--id", identity, "exec", "b", sys.executable, "-c", RECEIVE], stdout=subprocess.PIPE,
                              text=True) as receiver:
            self.assertEqual(receiver.stdout.readline(), "ready\n")
            self.inside(identity, "a", sys.executable, "-c", SEND)
            heard, shortest, longest = receiver.communicate(timeout=600)[0].split()
        return int(heard), float(shortest), float(longest)

    def test_nodes_have_names_processes_memory_and_files_of_their_own(self):
        net = self.up("3")
        outside = os.readlink("/proc/self/ns/ipc")
        seen = set()
        for name in "abc":
            self.assertEqual(self.inside(net, name, "hostname"), "oriel-" + name)
            self.assertNotIn(str(os.getpid()), self.inside(net, name, "ls", "/proc").split())
            self.assertEqual(self.inside(net, name, "ls", "/dev/shm"), "")
            self.inside(net, name, "touch", f"/dev/shm/{name}", f"/tmp/{name}.{net}")
            for kind in ("ipc", "uts", "net", "pid", "mnt"):
                seen.add(self.inside(net, name, "readlink", f"/proc/self/ns/{kind}"))
            seen.add(self.inside(net, name, "cat", "/proc/sys/kernel/random/boot_id"))
        self.assertEqual(len(seen), 18)
        self.assertNotIn(outside, seen)
        self.assertFalse(os.path.exists(f"/tmp/a.{net}"))

    def test_status_of_a_command_is_passed_on(self):
        net = self.up()
        self.assertEqual(testnet(net, "exec", "a", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(testnet(net, "exec", "b", "sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(testnet(net, "exec", "b", "/no/such").returncode, 127)

    def test_down_leaves_nothing_whatever_runs(self):
        net = self.up()
        switch = self.switch(net)
        with subprocess.Popen([TESTNET, "--id", net, "exec", "b", "sh", "-c", "setsid sleep 987 & sleep 987"]) as job:
            time.sleep(0.5)
            self.assertEqual(testnet(net, "down").returncode, 0)
            self.assertEqual(job.wait(10), 255)
        self.nothing_is_left(net, switch)
        self.assertEqual(testnet(net, "down").returncode, 0)  # a second time

    def test_nothing_is_left_when_the_switch_is_killed_and_the_net_removed(self):
        net = self.up()
        switch = self.switch(net)
        os.kill(switch, signal.SIGKILL)
        self.assertEqual(testnet(net, "down").returncode, 0)
        self.nothing_is_left(net, switch)

    def test_net_ends_with_its_owner(self):
        with subprocess.Popen(["sleep", "60"]) as owner:
            net = self.up("2", "--owner", str(owner.pid))
            switch = self.switch(net)
            owner.kill()
        for _ in range(50):
            if not os.path.exists(self.folder(net)):
                break
            time.sleep(0.1)
        self.nothing_is_left(net, switch)

    def test_up_that_is_interrupted_leaves_nothing(self):
        identity = f"i{os.getpid()}"[:8]
        self.nets.append(identity)
        for delay_ms in range(20, 200, 20):
            with subprocess.Popen([TESTNET, "--id", identity, "up"], stderr=subprocess.DEVNULL) as making:
                time.sleep(delay_ms / 1000)
                making.send_signal(signal.SIGTERM)
                status = making.wait(20)
            if status == 0:
                testnet(identity, "down")
            for _ in range(50):
                if not os.path.exists(self.folder(identity)):
                    break
                time.sleep(0.1)
            self.assertFalse(os.path.exists(self.folder(identity)), f"interrupted after {delay_ms} ms, status {status}")

    def test_two_nets_do_not_know_each_other(self):
        one, two = self.up(), self.up(letter="u")
        self.inside(one, "a", "touch", "/dev/shm/one")
        self.assertEqual(self.inside(two, "a", "ls", "/dev/shm"), "")
        testnet(one, "link", "a", "down")
        self.passes(two)
        self.assertEqual(testnet(one, "down").returncode, 0)
        self.passes(two)

    def test_second_net_of_a_name_is_refused_and_the_first_continues(self):
        net = self.up()
        result = testnet(net, "up")
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"the net {net} is up", result.stderr)
        self.assertEqual(self.inside(net, "a", "hostname"), "oriel-a")

    def test_link_that_is_down_passes_nothing_and_passes_again_when_up(self):
        net = self.up()
        self.passes(net)
        testnet(net, "link", "a", "down")
        self.assertEqual(self.traffic(net)[0], 0)
        testnet(net, "link", "a", "up")
        self.passes(net)

    def test_loss_loses_about_its_percentage(self):
        net = self.up()
        self.passes(net)
        result = testnet(net, "loss", "b", "30")
        if result.returncode == SKIP:
            self.skipTest(result.stderr)
        self.assertEqual(result.returncode, 0, result.stderr)
        heard = self.traffic(net)[0]
        self.assertGreater(heard, 250)
        self.assertLess(heard, 450)
        self.assertEqual(testnet(net, "loss", "b", "100").returncode, 0)
        self.assertEqual(self.traffic(net)[0], 0)
        testnet(net, "loss", "b", "0")
        self.passes(net)

    def test_delay_holds_each_packet_at_least_so_long(self):
        net = self.up()
        self.passes(net)
        for ms in (40, 10):
            self.assertEqual(testnet(net, "delay", "a", str(ms)).returncode, 0)
            heard, shortest, _ = self.traffic(net)
            self.assertGreater(heard, 450)
            self.assertGreaterEqual(shortest, ms / 1000)
        self.assertEqual(testnet(net, "delay", "a", "0").returncode, 0)
        heard, shortest, _ = self.traffic(net)
        self.assertGreater(heard, 450)
        self.assertLess(shortest, 0.010)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_ordinary_user_makes_nodes_or_gets_the_reason(self):
        result = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-u", "XDG_RUNTIME_DIR",
                                 TESTNET, "check"], capture_output=True, text=True, timeout=600, check=False, cwd="/")
        self.assertIn((result.returncode, result.stdout.partition(":")[0].strip()),
                      [(0, "nodes can be created"), (SKIP, "cannot create nodes here")], result.stderr)


class Check(unittest.TestCase):
    def test_check_prints_in_a_line_why_there_are_no_nodes(self):
        narrow = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\""
        able = subprocess.run(["unshare", "-r", "true"], check=False, stderr=subprocess.DEVNULL).returncode == 0
        if not able:
            self.skipTest("no user namespace to forbid network namespaces in")
        for words, wanted in ((["check"], "cannot create nodes here: unshare of process ids and network: "),
                              (["--id", f"n{os.getpid()}"[:8], "up"], "testnet: cannot create nodes here: ")):
            result = subprocess.run(["unshare", "-r", "sh", "-c", narrow, "sh", TESTNET, *words], capture_output=True, text=True,
                                    timeout=600, check=False)
            self.assertEqual(result.returncode, SKIP, result.stderr)
            self.assertRegex(result.stdout + result.stderr, rf"\A{wanted}[^\n]+\n\Z")


if __name__ == "__main__":
    if subprocess.run([TESTNET, "check"], stdout=subprocess.PIPE, check=False).returncode == SKIP:
        del Testnet  # the remaining tests need no net
    unittest.main()
