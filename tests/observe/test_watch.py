"""`oriel run --watch`: its display and the display's location; it leaves nothing behind and does
not disturb the program."""

import os
import re
import signal
import subprocess
import unittest

from watched import ORIEL, RANKS, Case, Ended, Terminal, environment, launcher, program, until

RUN = [ORIEL, "run", "--watch"]
TITLE = rf"oriel: {RANKS} ranks?(, [0-9.]+( [kMGTP])? operations/s, [0-9.]+ [kMGTP]?B/s)?, \d+ waiting"


def watchers(token):
    """The watchers of jobs with this token in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as name, open(f"/proc/{pid}/environ", "rb") as environ:
                if name.read().strip() == "oriel-watch" and token.encode() in environ.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


class Lines(Case):
    """Where standard error is not a terminal."""

    def start(self, *arguments):
        self.token = f"WATCHED_BY=test{os.getpid()}.{self.id()}"
        return self.job(*arguments, launch=["--plain"], command=RUN, env=[self.token])

    def test_busy_job(self):
        job = self.start("busy", 0, self.end)
        self.assertEqual(job.first, "busy")
        self.assertEqual(len(until(lambda: watchers(self.token))), 1)
        lines, rates = [], 0
        while rates < 2:
            lines.append(job.process.stderr.readline())
            self.assertRegex(lines[-1], rf"\A({TITLE}.*|oriel: no window yet)\n\Z", lines)
            rates += re.search(r" [1-9][0-9.]*( [kMGTP])? operations/s", lines[-1]) is not None
        self.ask_to_end()
        out, errors = job.process.communicate(timeout=600)
        self.assertEqual((job.process.returncode, out), (0, "done\n"), errors)
        for line in errors.splitlines():
            self.assertRegex(line, rf"\A{TITLE}.*\Z")
        self.assertTrue(until(lambda: not watchers(self.token)))

    def test_job_that_hangs(self):
        job = self.start("hang", "cycle")
        until(lambda: (job.snapshot() or {}).get("deadlocks"))
        ring = " -> ".join(map(str, [*range(RANKS), 0]))
        for line in job.process.stderr:
            if "deadlock" in line:
                break
        self.assertRegex(line, rf'{TITLE}, deadlock: {ring}; \d in MPI_Win_lock of "halo" \(cycle at hang.c:\d+\) for the lock on rank \d, '
                               r"held by rank \d, .* s so far\n")
        self.assertEqual(len(watchers(self.token)), 1)
        job.end()
        self.assertTrue(until(lambda: not watchers(self.token)))

    def test_ranks_with_the_same_wait_are_shown_together(self):
        job = self.start("hang", "fence")
        alike = "0" if RANKS == 2 else "0, 1" if RANKS == 3 else f"0-{RANKS - 2}"
        for line in job.process.stderr:
            if "MPI_Win_fence" in line:
                break
        self.assertRegex(line, rf': {alike} in MPI_Win_fence of "halo" \(main at hang.c:\d+\) for rank {RANKS - 1}, [0-9.]+ s so far\n')

    def test_killed_job(self):
        job = self.start("hang", "fence")
        self.assertTrue(until(lambda: watchers(self.token)))
        for rank in until(job.ranks).values():
            os.kill(rank["process"], 9)
        job.process.wait(60)
        self.assertTrue(until(lambda: not watchers(self.token)))

    def test_program_has_no_child_and_no_descriptor_of_it(self):
        watched = self.start("hang", "fence")
        quiet = self.job("hang", "fence")

        def of(job, what):
            pid = until(job.ranks)[0]["process"]
            if what == "children":
                with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                    return file.read()
            return len(os.listdir(f"/proc/{pid}/fd"))

        self.assertEqual(of(watched, "children"), "")
        self.assertEqual(of(watched, "fd"), of(quiet, "fd"))

    def test_job_of_an_ordinary_user(self):
        job = self.job("busy", 0, self.end, launch=["--plain", "--user"], command=RUN)
        self.assertEqual(job.first, "busy")
        for line in job.process.stderr:
            if re.match(TITLE, line):
                break
        self.ask_to_end()
        _, errors = job.process.communicate(timeout=600)
        self.assertEqual(job.process.returncode, 0, errors)
        self.assertRegex(line, TITLE)

    def test_absent_program(self):
        token = f"WATCHED_BY=test{os.getpid()}.{self.id()}"
        name, value = token.split("=")
        result = subprocess.run([*RUN, "/nowhere/program"], env=environment(**{name: value}), capture_output=True, text=True,
                                timeout=600)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertRegex(result.stderr, r"\Aoriel: [^\n]*/nowhere/program[^\n]*\n\Z")
        self.assertTrue(until(lambda: not watchers(token)))


class Row(Ended):
    """On the launcher's terminal."""

    def start(self, *arguments, rows=24, columns=120, before=(), **changes):
        command, extra = launcher(*RUN, program(arguments[0]), *map(str, arguments[1:]))
        terminal = Terminal([*before, *command], rows, columns, **extra, **changes)
        self.addCleanup(terminal.close)
        return terminal

    def test_last_row_is_used_and_restored(self):
        terminal = self.start("busy", 0, self.end)
        self.assertTrue(terminal.until(b"operations/s"), terminal.text)
        self.ask_to_end()
        self.assertEqual(terminal.status(), 0)
        text = terminal.text.decode()
        self.assertEqual(text.count("\033[1;23r"), 1)
        self.assertRegex(text, rf"\033\[24;1H\033\[K\033\[7m{TITLE}")
        self.assertRegex(text, r"\033\[24;1H\033\[K\033\[r\0338\Z")
        shown = re.sub(r"\0337.*?\0338", "", text)
        self.assertEqual([line for line in re.sub(r"\033\[1A", "", shown).split("\r\n") if line], ["busy", "done"])

    def test_it_follows_the_size(self):
        terminal = self.start("hang", "cycle")
        self.assertTrue(terminal.until(b"deadlock"), terminal.text)
        terminal.size(10, 30)
        self.assertTrue(terminal.until(b"\033[1;9r"))
        terminal.text = b""
        terminal.read(2.5)
        lines = re.findall(rb"\033\[10;1H\033\[K\033\[7m(.*?)\033\[0m", terminal.text)
        self.assertTrue(lines)
        self.assertLessEqual(max(map(len, lines)), 30, lines)

    def test_eighty_columns_have_the_window_and_the_rank_waited_for(self):
        for scenario, words in (("fence", rf'\Aoriel: [0-9, -]+ in MPI_Win_fence of "halo" for rank {RANKS - 1}, [0-9.]+ s'),
                                # a longer ring takes all the room
                                ("cycle", r'deadlock: 0 -> [0-9> -]+' + (r'; \d in MPI_Win_lock of "halo" for rank \d' if RANKS < 8 else ""))):
            terminal = self.start("hang", scenario, columns=80)
            self.assertTrue(terminal.until(b"MPI_Win"), terminal.text)
            terminal.text = b""
            terminal.read(2.5)
            lines = re.findall(r"\033\[24;1H\033\[K\033\[7m(.*?)\033\[0m", terminal.text.decode())
            self.assertLessEqual(max(map(len, lines)), 80, lines)
            self.assertRegex(lines[-1], words)

    def test_terminated_watcher_restores_the_row(self):
        value = f"test{os.getpid()}.{self.id()}"
        terminal = self.start("busy", 0, self.end, WATCHED_BY=value)
        [watcher] = until(lambda: watchers(f"WATCHED_BY={value}"))
        self.assertTrue(terminal.until(b"\033[1;23r"), terminal.text)
        os.kill(watcher, signal.SIGTERM)
        self.assertTrue(until(lambda: not watchers(f"WATCHED_BY={value}")))
        self.ask_to_end()
        self.assertEqual(terminal.status(), 0)
        self.assertRegex(terminal.text, rb"(?s)\A[^r]*\033\[1;23r.*\033\[24;1H\033\[K\033\[r\0338[^\033]*done\r\n\Z")

    def test_launcher_with_errors_in_a_file(self):
        path = f"/tmp/oriel-watch.{os.getpid()}"
        self.addCleanup(os.unlink, path)
        terminal = self.start("busy", 0, self.end, before=["sh", "-c", f'exec "$@" 2>{path}', "sh"])

        def errors():
            with open(path, encoding="utf-8") as file:
                return file.read()

        self.assertTrue(terminal.until(b"busy"), terminal.text)
        self.assertTrue(until(lambda: re.search(TITLE, errors())), errors())
        self.ask_to_end()
        self.assertEqual(terminal.status(), 0)
        self.assertNotIn(b"\033", terminal.text)


if __name__ == "__main__":
    unittest.main()
