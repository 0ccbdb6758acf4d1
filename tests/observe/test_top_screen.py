"""`oriel top` on a terminal, its refusals, and files that only resemble a job's."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from watched import ORIEL, Case, Terminal, top, until


class Screen(Case):
    def start(self, *arguments, columns=120, **changes):
        terminal = Terminal([ORIEL, "top", *map(str, arguments)], columns=columns, **changes)
        self.addCleanup(terminal.close)
        return terminal

    def job_on_screen(self):
        job = self.job("hang", "cycle")
        until(job.ranks)
        terminal = self.start(job.pid)
        modes = terminal.modes()
        self.assertTrue(terminal.until(b"deadlock: \033[0m0 -> 1"), terminal.text)
        return job, terminal, modes

    def test_q_ends_it_and_the_terminal_is_as_before(self):
        _, terminal, modes = self.job_on_screen()
        self.assertTrue(terminal.text.startswith(b"\033[?1049h"))
        self.assertNotIn(b"\033[?1049l", terminal.text)
        terminal.press(b"q")
        self.assertEqual(terminal.status(), 0)
        self.assertTrue(terminal.text.endswith(b"\033[?25h\033[?1049l"), terminal.text[-80:])
        self.assertEqual(terminal.modes(), modes)

    def test_ctrl_c_and_sigterm_end_it_likewise(self):
        job = self.job("hang", "fence")
        until(job.ranks)
        for end in ("key", "signal"):
            terminal = self.start(job.pid)
            self.assertTrue(terminal.until(b"MPI_Win_fence"))
            if end == "key":
                terminal.press(b"\003")
            else:
                os.kill(terminal.pid, signal.SIGTERM)
            self.assertEqual(terminal.status(), 0 if end == "key" else signal.SIGTERM)
            self.assertTrue(terminal.text.endswith(b"\033[?25h\033[?1049l"), terminal.text[-80:])

    def lines(self, terminal):
        """The next picture, without escape sequences."""
        terminal.text = b""
        self.assertTrue(terminal.until(b"\033[H"))
        terminal.read(0.3)
        picture = terminal.text[terminal.text.rindex(b"\033[H"):]
        return re.sub(rb"\033\[[0-9;?]*[A-Za-z]", b"", picture).decode().split("\r\n")

    def test_lines_fit_another_size(self):
        _, terminal, _ = self.job_on_screen()
        terminal.size(5, 40)
        terminal.text = b""
        terminal.read(2.5)
        lines = self.lines(terminal)
        self.assertEqual(len(lines), 5)
        self.assertLessEqual(max(map(len, lines)), 40, lines)
        self.assertRegex(lines[-1], r"^\d+ more lines$")
        terminal.press(b"q")
        self.assertEqual(terminal.status(), 0)

    def test_eighty_columns_show_all_of_a_wait(self):
        job = self.job("hang", "mixed")
        until(job.ranks)
        terminal = self.start(job.pid, columns=80)
        self.assertTrue(terminal.until(b"deadlock: "), terminal.text)
        lines = self.lines(terminal)
        self.assertEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80, lines)
        words = " ".join(" ".join(lines).split())
        self.assertRegex(words, r'waits in MPI_Win_fence of "rows" \(mixed at hang.c:\d+\) for rank \d+, [0-9.]+ s so far')
        self.assertRegex(words, r'waits in MPI_Win_lock of "halo" \(mixed at hang.c:\d+\) for the lock on rank 0, held by rank 0, [0-9.]+ s')

    def test_a_wait_is_below_its_row_on_a_narrow_terminal(self):
        job = self.job("hang", "fence")
        until(job.ranks)
        lines = top("--once", job.pid, COLUMNS="50").stdout.splitlines()
        self.assertLessEqual(max(map(len, lines)), 50, lines)
        at = next(i for i, line in enumerate(lines) if re.fullmatch(r" +0 +\d+ *([\d.k M-]+ *)?", line))
        self.assertRegex(lines[at + 1], r'^    waits in MPI_Win_fence of "halo"')

    def test_keys_sort_and_help(self):
        job = self.job("hang", "lock")
        until(job.ranks)
        terminal = self.start(job.pid)
        self.assertTrue(terminal.until(b"MPI_Win_lock"))
        for key, order in ((b"w", "wait"), (b"o", "operations"), (b"b", "bytes"), (b"r", "rank")):
            terminal.press(key)
            self.assertTrue(terminal.until(b"by %s\033" % order.encode()), terminal.text)
        terminal.press(b"w")
        self.assertTrue(terminal.until(b"by wait\033"))
        ranks = [line.split()[0] for line in self.lines(terminal) if re.match(r" +\d+ +\d+  \w", line)]
        self.assertEqual(ranks[-1], "0", ranks)  # it does not wait
        terminal.press(b"h")
        self.assertTrue(terminal.until(b"sort by bytes per second"), terminal.text)
        terminal.press(b"?")
        self.assertNotIn("sort by bytes per second", "".join(self.lines(terminal)))
        terminal.press(b"q")
        self.assertEqual(terminal.status(), 0)

    def test_colours_obey_the_reader(self):
        job = self.job("hang", "fence")
        until(job.ranks)
        for arguments, changes, has_color in (([], {}, True), ([], {"NO_COLOR": "1"}, False), (["--color=never"], {}, False),
                                              (["--color", "always"], {"NO_COLOR": "1"}, True)):
            terminal = self.start(*arguments, job.pid, **changes)
            self.assertTrue(terminal.until(b"MPI_Win_fence"))
            self.assertEqual(b"\033[33mwaits" in terminal.text, has_color, (arguments, changes))
            terminal.press(b"q")
            self.assertEqual(terminal.status(), 0)

    def test_it_ends_with_the_job(self):
        job, terminal, _ = self.job_on_screen()
        job.end()
        self.assertEqual(terminal.status(), 0)
        self.assertRegex(terminal.text[-60:], rb"job [0-9a-f]{8} has ended\r\n$")

    def test_no_such_process_leaves_the_screen_alone(self):
        terminal = self.start(999999999)
        self.assertEqual(os.waitstatus_to_exitcode(terminal.status()), 2)
        self.assertRegex(terminal.text, rb"\Aoriel: [^\033]*process 999999999 with Oriel windows[^\033]*\Z")


class Refusals(Case):
    def refused(self, result, words):
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Aoriel: [^\n]+\n\Z")
        self.assertIn(words, result.stderr)

    def test_no_such_process(self):
        self.refused(top("--once", 999999999), "process 999999999 with Oriel windows")
        self.refused(top("--once", "nonsense"), "process nonsense with Oriel windows")

    def test_process_without_windows(self):
        self.refused(top("--once", os.getpid()), "an Oriel window")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root")
    def test_job_of_another_user(self):
        job = self.job("hang", "fence")
        until(job.ranks)
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.refused(top("--once", job.pid, before=as_nobody), "another user: only root")

    def test_killed_job_is_reported(self):
        job = self.job("hang", "fence")
        for rank in until(job.ranks).values():
            # the launcher ends the others when the first has died
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank["process"], signal.SIGKILL)
        job.process.wait(60)
        self.refused(top("--once", job.pid), "no job or process")

    def test_wrong_use(self):
        for arguments in (["--fly"], ["1", "2"], ["--json=1"], ["--color", "maybe"], ["--sort="]):
            result = top(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""))


# Mounts a file system of its own, in which a pipe has a memory file's name; reports when a process
# opens the pipe.
DISGUISED = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
root = sys.argv[1]
name = os.path.join(root, "memfd:oriel (deleted)")
if libc.mount(b"none", root.encode(), b"tmpfs", 0, None):
    sys.exit(77)
os.mkfifo(name)
seen = os.open(name, os.O_PATH)
os.mkdir(os.path.join(root, "old"))
os.chdir(root)
if libc.pivot_root(b".", b"old") or os.readlink(f"/old/proc/self/fd/{seen}") != "/memfd:oriel (deleted)":
    sys.exit(77)
print("ready", flush=True)
os.open("/memfd:oriel (deleted)", os.O_WRONLY)
print("opened", flush=True)
"""


class Files(Case):
    """Memory files that this process forges, with its own identity or another one's."""

    PAGE = 4096
    MAGIC = 0x314c4549524f0a1a
    STATE_MAGIC = 0x0a544154534c524f
    VERSION = 9

    def setUp(self):
        with open("/proc/self/stat", encoding="ascii") as file:
            self.start_time = int(file.read().rsplit(")", 1)[1].split()[19])

    def file(self, pid=None, version=VERSION, state=b"", tail=b""):
        fd = os.memfd_create("oriel")
        self.addCleanup(os.close, fd)
        header = struct.pack("<QIIQQQiiQ", self.MAGIC, version, 1, 1, 2, self.start_time, os.getpid() if pid is None else pid, fd,
                             1 << 30)
        os.pwrite(fd, header.ljust(2 * self.PAGE, b"\0") + state.ljust(self.PAGE, b"\0") + tail, 0)
        return fd

    def state(self, records=0, changed=0, name=b"evil\033]0;x\007\xff", waiting=1, version=3):
        head = struct.pack("<QIiiIQ64s16s128s", self.STATE_MAGIC, version, 3, 4, 0, 0x1234567800000000, name, b"mpich", b"MPICH 4.0.2")
        wait = struct.pack("<IIiiQQQQII1024s64s", changed, waiting, -1, -1, 7, 7, 1, 1, 0, 0, b"\xff" * 1024, name)
        place = struct.pack("<256s20s4xQ128s256s256sII", b"/" + name, b"", 0x1234, b"", b"", b"", 0, 0)
        return head + wait + struct.pack("<Q", records) + place

    def test_file_of_another_process_is_none_of_this_one(self):
        self.file(pid=1, state=self.state())
        self.assertIn("an Oriel window", top("--once", os.getpid()).stderr)

    def test_no_escape_reaches_the_terminal(self):
        self.file(state=self.state())
        result = top("--once", os.getpid())
        self.assertIn("job 12345678: evil?]0;x?? on MPICH, 4 ranks (1 here), 1 waiting", result.stdout)
        self.assertNotIn("\033", result.stdout)
        self.assertIn('waits in MPI_Win_fence of "evil?]0;x??" (evil?]0;x??+0x1234) for ranks 0-2, 4-8191', result.stdout)
        self.assertIn('"program": "evil?]0;x??"', top("--once", "--json", os.getpid()).stdout)

    def test_full_device_is_an_error(self):
        self.file(state=self.state())
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["--once"], ["--once", "--json"]):
                result = subprocess.run([ORIEL, "top", *words, str(os.getpid())], stdout=full, stderr=subprocess.PIPE, text=True,
                                        timeout=600, check=False)
                self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: No space left on device\n"))

    def test_state_that_is_being_written_for_good(self):
        self.file(state=self.state(changed=1))
        self.assertIn("an Oriel window", top("--once", os.getpid()).stderr)

    def test_records_that_lead_to_themselves(self):
        own = struct.pack("<Q", 3 * self.PAGE).ljust(2 * self.PAGE, b"\1")
        for records in (3 * self.PAGE, 1 << 40, (1 << 64) - 8):
            fd = self.file(state=self.state(records=records), tail=own)
            self.assertEqual(top("--once", os.getpid()).returncode, 0)
            os.ftruncate(fd, 0)

    def test_windows_are_named_by_what_is_known(self):
        """The busiest five are shown; a freed one is not."""
        at, chain = 3 * self.PAGE, b""
        for number in range(8):
            name = b"seen\033" if number == 0 else b""
            record = struct.pack("<QQiiIIQqIIQQQQQQQQBBH4x64s160s", 0, number, 4, 3, 1, 1 + (number == 7), 64, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                 0, 0, 0, name, b"").ljust(512, b"\0")
            chain += struct.pack("<Q", at + 512 * (number + 1) if number < 7 else 0) + record[8:]
        self.file(state=self.state(records=at), tail=chain)
        lines = top("--once", os.getpid()).stdout.splitlines()
        first = lines.index("  ranks     op/s      B/s  window")
        self.assertEqual(lines[first + 1:first + 7], ['      1        0        0  "seen?"', *["      1        0        0  unnamed, allocate"] * 4,
                                                      "  and 2 more"])

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user_cannot_observe_a_job(self):
        begun, begins = os.pipe()
        holder = os.fork()
        if holder == 0:
            os.setuid(65534)
            self.setUp()
            self.file(state=self.state())
            os.write(begins, b".")
            time.sleep(120)
            os._exit(0)
        self.addCleanup(os.waitpid, holder, 0)
        self.addCleanup(os.kill, holder, signal.SIGKILL)
        os.read(begun, 1)
        self.file(state=self.state())
        # the lock's holder is a child of this process
        printed = json.loads(top("--once", "--json", os.getpid()).stdout)["jobs"]
        self.assertEqual(sorted([rank["process"] for rank in job["ranks"]] for job in printed), sorted([[os.getpid()], [holder]]))

    def test_a_file_with_only_the_name_of_a_memory_file_is_not_opened(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, folder)
        holder = subprocess.Popen(["unshare", "-rm", sys.executable, "-c", DISGUISED, folder], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(holder.stdout.close)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        if holder.stdout.readline() != "ready\n":
            self.skipTest("no file systems of its own for a process")
        self.assertIn("an Oriel window", top("--once", holder.pid).stderr)
        self.assertEqual(select.select([holder.stdout], [], [], 0.5)[0], [])

    def test_unknown_wait_is_none(self):
        self.file(state=self.state(waiting=77))
        self.assertRegex(top("--once", os.getpid()).stdout, r"(?m)^ +3 .* (computes|sleeps outside Oriel)$")

    def test_a_state_of_one_word_ends_its_line(self):
        begun, begins = os.pipe()
        holder = os.fork()
        if holder == 0:
            self.setUp()
            self.file(state=self.state(waiting=77))
            os.write(begins, b".")
            while True:
                pass
        self.addCleanup(os.waitpid, holder, 0)
        self.addCleanup(os.kill, holder, signal.SIGKILL)
        os.read(begun, 1)
        self.assertRegex(top("--once", holder).stdout, r"(?m)^ +3 .* computes\n")

    def test_other_versions_are_reported(self):
        self.file(version=self.VERSION - 1)
        self.assertIn(f"process {os.getpid()}: it uses another version of Oriel (memory file {self.VERSION - 1}, "
                      f"this command reads {self.VERSION})", top("--once", os.getpid()).stdout)
        self.assertRegex(top("--once", "--json", os.getpid()).stdout,
                         rf'(?s)"process": {os.getpid()},\s+"why": "it uses another version of Oriel')

    def test_other_versions_of_the_state_are_reported(self):
        self.file(state=self.state(version=9))
        self.assertIn(f"process {os.getpid()}: it uses another version of Oriel (state 9, this command reads 3)",
                      top("--once", os.getpid()).stdout)


if __name__ == "__main__":
    unittest.main()
