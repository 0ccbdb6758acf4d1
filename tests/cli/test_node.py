"""Jobs that crash, run under a memory limit or run under valgrind. Oriel's reserve of memory for
windows costs the node no time, disk or memory."""

import glob
import os
import re
import shutil
import struct
import subprocess
import time
import unittest

from command import BUILD, Case, HOSTS, LAUNCH, SANITIZE, environment, program

MIB = 1 << 20
MEMORY_BYTES = 300 * MIB
KINDS = ["MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Alloc_mem", "malloc"]


def launch(host, *command, inside=(), folder=None, **changes):
    """A job of two ranks in the folder, started through the command in inside."""
    return subprocess.run([*inside, LAUNCH, "--build", BUILD, "--host", host, "-n", "2", "--", *command],
                          env=environment(**changes), cwd=folder, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=600)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def segments(core):
    """The memory segments of a 64-bit ELF core file: address, bytes, offset in the file."""
    header = struct.unpack("<16sHHIQQQIHHHHHH", core.read(64))
    assert header[0][:5] == b"\x7fELF\x02"
    start, size, number = header[5], header[9], header[10]
    found = []
    for i in range(number):
        core.seek(start + i * size)
        kind, _, offset, address, _, in_file, _, _ = struct.unpack("<IIQQQQQQ", core.read(56))
        if kind == 1:
            found.append((address, in_file, offset))
    return sorted(found)


def dumped(core, address, wanted):
    """The bytes at the address, without those that the core file omits."""
    data = b""
    core.seek(0)
    for first, in_file, offset in segments(core):
        at = address + len(data)
        if first <= at < first + in_file:
            core.seek(offset + at - first)
            data += core.read(min(wanted - len(data), first + in_file - at))
    return data


@unittest.skipIf(SANITIZE, "a sanitiser's process has terabytes of its own, and no core file")
class CoreFiles(Case):
    def test_a_crash_leaves_the_windows_and_not_the_reserve(self):
        pattern = read("/proc/sys/kernel/core_pattern")
        if "/" in pattern or pattern.startswith(("|", "@")):
            self.skipTest(f"core files of this node go to {pattern}")
        for host in HOSTS:
            with self.subTest(host=host):
                folder = self.path(host)
                os.mkdir(folder)
                job = launch(host, program(host, "crashing"), folder=folder)
                cores = glob.glob(os.path.join(folder, "*"))
                output = job.stdout + job.stderr
                self.assertNotIn(job.returncode, (0, 77, 124), output)
                self.assertEqual(len(cores), 1, output)
                self.assertLess(os.path.getsize(cores[0]), 200 * MIB)
                pieces = re.findall(r"(?m)^([a-zA-Z_]+) (\d+) (\d+) (\d+)$", job.stdout)
                self.assertEqual([piece[0] for piece in pieces], KINDS, output)
                with open(cores[0], "rb") as core:
                    for name, address, size, word in pieces:
                        wanted = struct.pack("<q", int(word)) * (int(size) // 8)
                        found = dumped(core, int(address), int(size))
                        self.assertTrue(found == wanted, f"the core file lacks memory of {name}")


class MemoryLimit(Case):
    """The job runs in a cgroup inside the cgroup with the limit."""

    def setUp(self):
        super().setUp()
        outer, name = self.make_group()
        self.addCleanup(self.remove, outer)
        self.inner = os.path.join(outer, "inner")
        try:
            with open(os.path.join(outer, name), "w", encoding="ascii") as file:
                file.write(str(MEMORY_BYTES))
            os.mkdir(self.inner)
        except OSError as error:
            self.skipTest(f"a memory cgroup takes no limit here: {error}")

    def make_group(self):
        """A cgroup of either version, and its limit file."""
        if os.geteuid() != 0:
            self.skipTest("only root makes cgroups")
        for line in read("/proc/self/mountinfo").splitlines():
            mount, kind = line.split(" - ")
            folder = mount.split()[4]
            if kind.startswith("cgroup2 "):
                name = "memory.max"
                with open(os.path.join(folder, "cgroup.subtree_control"), encoding="ascii") as file:
                    if "memory" not in file.read().split():
                        continue
            elif kind.startswith("cgroup ") and "memory" in kind.split()[2].split(","):
                name = "memory.limit_in_bytes"
            else:
                continue
            group = os.path.join(folder, f"oriel-test.{os.getpid()}")
            try:
                os.mkdir(group)
            except OSError as error:
                self.skipTest(f"no cgroup may be made here: {error}")
            return group, name
        return self.skipTest("no memory cgroups here")

    @staticmethod
    def remove(outer):
        """The job's last processes exit shortly after the job."""
        for group in (os.path.join(outer, "inner"), outer):
            for _ in range(50):
                try:
                    os.rmdir(group)
                except FileNotFoundError:
                    pass
                except OSError:
                    time.sleep(0.1)
                    continue
                break

    @unittest.skipIf(SANITIZE, "a sanitiser takes memory of its own")
    def test_windows_of_more_than_the_limit_that_are_little_used(self):
        enter = ("sh", "-c", f'echo $$ >{self.inner}/cgroup.procs && exec "$@"', "sh")
        for host in HOSTS:
            with self.subTest(host=host):
                job = launch(host, program(host, "memory_limit"), inside=enter)
                self.assertEqual((job.returncode, job.stdout.count("done")), (0, 2), job.stdout + job.stderr)


@unittest.skipUnless(shutil.which("valgrind"), "no valgrind")
@unittest.skipIf(SANITIZE, "valgrind runs no sanitised programs")
class Valgrind(Case):
    def test_a_job_under_valgrind_ends(self):
        for host in HOSTS:
            with self.subTest(host=host):
                job = launch(host, "valgrind", "--leak-check=full", program(host, "one_put"))
                self.assertEqual((job.returncode, job.stdout.count("memory=42")), (0, 2), job.stdout + job.stderr)
                self.assertEqual(job.stdout.count("windows by Oriel"), 2, job.stdout)
                self.assertEqual(job.stderr.count("HEAP SUMMARY:"), 2, job.stderr)

    def test_a_larger_reserve_serves_windows(self):
        for host in HOSTS:
            with self.subTest(host=host):
                job = launch(host, "valgrind", "--leak-check=full", program(host, "one_put"),
                             ORIEL_RESERVE="128M", ORIEL_VERBOSE="1")
                self.assertEqual((job.returncode, job.stdout.count("memory=42")), (0, 2), job.stdout + job.stderr)
                self.assertIn("other ranks reach its memory by direct", job.stderr)


if __name__ == "__main__":
    unittest.main()
