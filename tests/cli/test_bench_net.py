"""`oriel bench --net`: its output for windows between nodes, and its clean-up.

The nodes are network namespaces on this one; where these are impossible, the test covers the
refusal. It never compares timings."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from command import BUILD, HERE, HOSTS, LIMIT_S, ORIEL, environment
from bench_runs import SCRIPTS, BenchCase, bench

CHECK = subprocess.run([os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts", "testnet"), "check"],
                       capture_output=True, text=True, check=False)
LIMITS = """
import sys
sys.path.insert(0, sys.argv[1])
import argparse, catalogue, overnet
overnet.choose()
nothing = dict.fromkeys(("groups", "patterns", "memories", "sizes", "ranks", "alignment"))
for quick, more in ((False, {}), (True, {}), (False, {"groups": ["alignment"]})):
    cells = catalogue.cells(argparse.Namespace(quick=quick, **dict(nothing, **more)))
    print(len(cells), {cell.ranks for cell in cells})
    for cell in catalogue.raw_cells(cells):
        assert cell.bytes in catalogue.RAW[cell.pattern].sizes, cell
"""


def nets():
    folder = os.environ.get("XDG_RUNTIME_DIR") or "/tmp"
    return {name for name in os.listdir(folder) if name.startswith("oriel-testnet-b")}


@unittest.skipUnless(CHECK.returncode == 0, CHECK.stdout.strip())
class Nodes(BenchCase):
    def test_internode_windows_are_measured_with_the_link(self):
        before = nets()
        result, found = self.measured("--net", "--patterns", "put,fence", "--sizes", "8", "--limit", "60")
        self.assertEqual(result.returncode, 0, result.stderr)
        for host in HOSTS:
            for pattern in ("put", "fence"):
                entry = found[pattern, "oriel-" + host]
                self.assertEqual((entry["status"], entry["reason"]), ("ok", ""), entry)
                self.assertIn("ucx", entry["path"])
        if "openmpi" in HOSTS:  # up to version 5 it has no windows over TCP
            alone = found["put", "openmpi"]
            self.assertIn(alone["status"], ("ok", "crash"))
            if alone["status"] == "crash":
                self.assertIn("MPI_Win_allocate", alone["reason"])
        if "mpich" in HOSTS:
            self.assertEqual(found["put", "mpich"]["status"], "ok")
        self.assertEqual(nets(), before)
        if shutil.which("ucx_perftest"):
            self.assertEqual(found["link-put", "raw"]["status"], "ok", found["link-put", "raw"])
            self.assertEqual([found[name, "raw"]["status"] for name in ("link-asleep", "link-awake", "link-busy")],
                             ["ok", "ok", "ok"])
            columns = {entry["column"] for entry in self.record["figures"] if entry["figure"] == "put 8 B + flush"}
            self.assertEqual(columns, {"oriel-" + host for host in HOSTS})
            self.assertIn("1.3 x 2 put_lat + wake-up", result.stdout)

    @unittest.skipUnless("mpich" in HOSTS, "the host must make windows between nodes itself")
    def test_window_of_the_host_is_no_figure_of_oriel(self):
        result, found = self.measured("--net", "--patterns", "fence", "--hosts", "mpich", "--limit", "60", ORIEL_NET="off")
        self.assertEqual(result.returncode, 1)
        entry = found["fence", "oriel-mpich"]
        self.assertEqual((entry["status"], entry["best"]), ("refused", None))
        self.assertIn("not Oriel's", entry["reason"])

    def test_interrupted_run_leaves_no_nodes(self):
        before = nets()
        with subprocess.Popen([ORIEL, "bench", "--net", "--patterns", "put", "--json", self.path("out.json")], env=environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
            deadline = time.monotonic() + 60
            while nets() == before and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(1)
            job.send_signal(signal.SIGTERM)
            _, errors = job.communicate(timeout=LIMIT_S)
        self.assertEqual(job.returncode, 130, errors)
        self.assertEqual(nets(), before)
        self.read_results()
        self.assertFalse(self.record["complete"])


class Refused(BenchCase):
    def test_missing_nodes_are_reported(self):
        for name in ("python3", *(f"mpiexec.{host}" for host in HOSTS)):
            os.symlink(sys.executable if name == "python3" else shutil.which(name), self.path(name))
        result = bench(ORIEL, "--net", "--patterns", "put", "--json", self.path("out.json"), PATH=self.folder)
        self.assertEqual((result.returncode, result.stdout), (77, ""), result.stderr)
        self.assertRegex(result.stderr, "^oriel: --net: cannot create nodes here: .+\n$")
        self.assertFalse(os.path.exists(self.path("out.json")))

    def test_patterns_of_one_node_are_refused(self):
        self.refused(bench(ORIEL, "--net", "--patterns", "put,pscw-ring"), "pscw-ring", "not measured between nodes")

    def test_all_limits_are_known(self):
        result = subprocess.run([sys.executable, "-B", "-c", LIMITS, SCRIPTS], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        full, quick, alignment = result.stdout.splitlines()
        self.assertTrue(full.endswith("{2}") and quick.endswith("{2}") and alignment.endswith("{2}"), result.stdout)
        self.assertLess(int(quick.split()[0]), int(full.split()[0]))

    def test_echo_that_is_wrong_is_no_figure(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def answer():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1)
                    connection.sendall(connection.recv(1))
                    connection.recv(1)
            thread = threading.Thread(target=answer)
            thread.start()
            result = subprocess.run([os.path.join(BUILD, "lib", "oriel", "bench", "link"), "ask", "127.0.0.1",
                                     str(listener.getsockname()[1]), "awake"], capture_output=True, timeout=LIMIT_S, check=False)
            thread.join()
        self.assertEqual((result.returncode, result.stdout), (1, b""))


if __name__ == "__main__":
    unittest.main()
