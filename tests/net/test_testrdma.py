"""Tests of scripts/testrdma: it returns the output and status of a command in a guest, and cleans
up however the command ends.

test_testrdma.py BUILD"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTRDMA = os.path.join(ROOT, "scripts", "testrdma")
SKIP = 77
LIMIT_S = 600  # for a guest to start on a busy node


def testrdma(*words, **options):
    return subprocess.run([TESTRDMA, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * LIMIT_S,
                          check=False, **options)


def inside(script, limit_s=LIMIT_S, **options):
    return testrdma("run", "--timeout", str(limit_s), "--", "sh", "-c", script, **options)


def emulators(parent):
    """The children of a process, from /proc."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children", encoding="utf-8") as file:
            return [int(pid) for pid in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


class Guest(unittest.TestCase):
    def test_command_has_the_same_folder_environment_and_arguments(self):
        with tempfile.TemporaryDirectory(prefix="oriel a'b.") as folder:
            with open(os.path.join(folder, "file"), "w", encoding="utf-8") as file:
                file.write("of this system\n")
            script = ('pwd; cat file; echo "$TEST_WORDS"; echo written > file; echo elsewhere > /tmp/file; id -u; '
                      f'{BUILD}/bin/oriel info | grep "^  network"; echo an error >&2; (setsid sleep 1000 &); exit 7')
            result = inside(script, cwd=folder, env=dict(os.environ, TEST_WORDS="two\nlines and a 'quote'"))
            with open(os.path.join(folder, "file"), encoding="utf-8") as file:
                self.assertEqual(file.read(), "of this system\n")
        self.assertEqual(result.stdout, f"{folder}\nof this system\ntwo\nlines and a 'quote'\n0\n"
                                        "  network      yes  rc_verbs on rxe0:1, ud_verbs on rxe0:1; UCX_NET_DEVICES=rxe0:1\n",
                         result.stderr)
        self.assertEqual((result.stderr, result.returncode), ("an error\n", 7))

    def test_large_output_is_complete(self):
        result = inside("seq 300000; seq 1000 >&2")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "".join(f"{i}\n" for i in range(1, 300001)))
        self.assertEqual(result.stderr, "".join(f"{i}\n" for i in range(1, 1001)))

    def test_dead_guest_is_reported_with_its_kernels_last_lines(self):
        result = inside("echo here; sleep 1; echo c > /proc/sysrq-trigger; sleep 100")
        self.assertEqual((result.returncode, result.stdout), (2, "here\n"), result.stderr)
        self.assertIn("testrdma: the guest has died\n", result.stderr)
        self.assertIn("sysrq triggered crash", result.stderr)

    def test_time_is_limited(self):
        result = inside("sleep 1000", 1)
        self.assertEqual((result.returncode, result.stdout), (124, ""))
        self.assertIn("did not start within 1 s", result.stderr)

    def test_nothing_is_left_when_it_is_ended(self):
        for number, wanted in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
            with subprocess.Popen([TESTRDMA, "run", "--", "sleep", "1000"], stdin=subprocess.DEVNULL) as job:
                for _ in range(100):
                    if emulators(job.pid):
                        break
                    time.sleep(0.1)
                pids = emulators(job.pid)
                self.assertEqual(len(pids), 1)
                time.sleep(1)
                job.send_signal(number)
                self.assertEqual(job.wait(20), wanted)
            for _ in range(100):
                if not os.path.exists(f"/proc/{pids[0]}"):
                    break
                time.sleep(0.1)
            self.assertFalse(os.path.exists(f"/proc/{pids[0]}"))


class Check(unittest.TestCase):
    def test_check_prints_in_a_line_why_there_is_no_guest(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, stream in ((["check"], "stdout"), (["run", "--", "true"], "stderr")):
                result = subprocess.run(["/usr/bin/python3", "-B", TESTRDMA, *words], env={"PATH": folder}, capture_output=True,
                                        text=True, timeout=600, check=False)
                self.assertEqual(result.returncode, SKIP, result.stderr)
                self.assertRegex(getattr(result, stream), r"\Ano guest can be started here: no qemu-system-x86_64 [^\n]+\n\Z")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    if subprocess.run([TESTRDMA, "check"], stdout=subprocess.PIPE, check=False).returncode == SKIP:
        del Guest  # the remaining tests need no guest
    unittest.main()
