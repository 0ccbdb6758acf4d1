"""The output of `oriel top` for jobs that hang and jobs that are busy."""

import os
import re
import signal
import time
import unittest

from watched import HOST, LIBRARY, RANKS, Case, top, until

LAST = RANKS - 1
WAITERS = range(LAST)  # all ranks except the last


def waits(call, ranks, window="halo"):
    return (call, window, ranks)


# For each kind of hang: each waiting rank's call and reason, and which ranks wait for each other.
MODES = {
    "post": ({0: waits("MPI_Win_start", [LAST])}, []),
    "self": ({0: waits("MPI_Win_start", [0])}, []),
    "complete": ({0: waits("MPI_Win_wait", [LAST])}, []),
    "notify": ({rank: waits("MPIX_Win_notify_wait", []) for rank in WAITERS}, []),
    "lock": ({rank: waits("MPI_Win_lock", [0]) for rank in range(1, RANKS)}, []),
    "lock_all": ({rank: waits("MPI_Win_lock_all", [0]) for rank in range(1, RANKS)}, []),
    "fence": ({rank: waits("MPI_Win_fence", [LAST]) for rank in WAITERS}, []),
    "free": ({rank: waits("MPI_Win_free", [LAST]) for rank in WAITERS}, []),
    "create": ({rank: waits("the creation of a window", [LAST], "") for rank in WAITERS}, []),
    "first": ({rank: waits("the creation of a window", [LAST], "") for rank in WAITERS}, []),
    "cycle": ({rank: waits("MPI_Win_lock", [(rank + 1) % RANKS]) for rank in range(RANKS)}, [list(range(RANKS))]),
    "mixed": ({**{rank: waits("MPI_Win_fence", [LAST], "rows") for rank in WAITERS},
               LAST: waits("MPI_Win_lock", [0])}, [[0, LAST]]),
}


def lines_of(mode):
    """The lines of hang.c in which ranks wait in this mode."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hang.c"), encoding="utf-8") as file:
        return {number for number, line in enumerate(file, 1) if mode in line.partition("WAITS ")[2].split()}


class Hangs(Case):
    def snapshot(self, job):
        seen = job.snapshot()
        if seen is None:
            return None
        return ({rank["rank"]: (rank["call"], rank["window"], rank["waits_for"])
                 for rank in seen["ranks"] if "call" in rank}, seen["deadlocks"])

    def check(self, mode):
        job = self.job("hang", mode)
        self.assertEqual(job.first, "ready")
        until(lambda: self.snapshot(job) == MODES[mode])
        self.assertEqual(self.snapshot(job), MODES[mode])
        text = top("--once", job.pid).stdout
        for rank, (call, window, ranks) in MODES[mode][0].items():
            other = rf"\b{ranks[0]}\b" if ranks else ""
            name = f' of "{window}"' if window else ""
            self.assertRegex(text, rf"(?m)^ +{rank} +\d+  waits in {call}{name} \(\w+ at hang.c:\d+\) "
                             rf"?.*{other}.*, [0-9.]+ s so far$")
        for ring in MODES[mode][1]:
            self.assertIn("deadlock: " + " -> ".join(map(str, ring + [ring[0]])), text)
        self.assertEqual("deadlock" in text, bool(MODES[mode][1]))
        found = [rank for rank in job.snapshot()["ranks"] if "call" in rank]
        self.assertEqual({rank["line"] for rank in found}, lines_of(mode))
        self.assertEqual({os.path.basename(rank["file"]) for rank in found}, {"hang.c"})
        missing = [LAST] if mode == "first" else []
        until(lambda: job.snapshot()["missing"] == missing)
        seen = job.snapshot()
        self.assertEqual(seen["missing"], missing)
        self.assertEqual((seen["program"], seen["host"], seen["size"]), ("hang", LIBRARY, RANKS))
        self.assertRegex(seen["host_version"], {"mpich": r"^MPICH \d", "openmpi": r"^Open MPI v\d"}[HOST.rpartition("-")[2]])

    def test_rank_that_never_posts(self):
        self.check("post")

    def test_rank_that_waits_for_itself(self):
        job = self.job("hang", "self")
        until(lambda: self.snapshot(job) == MODES["self"])
        for _ in range(15):  # a cycle is reported after a second
            self.assertEqual(self.snapshot(job), MODES["self"])
            time.sleep(0.2)

    def test_rank_that_never_completes(self):
        self.check("complete")

    def test_notification_that_never_comes(self):
        self.check("notify")

    def test_held_lock(self):
        self.check("lock")

    def test_exclusive_lock_before_lock_all(self):
        self.check("lock_all")

    def test_rank_missing_from_the_fence(self):
        self.check("fence")

    def test_name_that_is_not_utf8_has_question_marks(self):
        job = self.job("hang", "fence", "h\udce4lo")
        expected = {rank: waits("MPI_Win_fence", [LAST], "h?lo") for rank in WAITERS}
        until(lambda: self.snapshot(job) == (expected, []))
        self.assertEqual(self.snapshot(job), (expected, []))

    def test_rank_that_does_not_free(self):
        self.check("free")

    def test_rank_that_does_not_make_the_window(self):
        self.check("create")

    def test_rank_that_does_not_make_the_first_window(self):
        self.check("first")

    def test_ring_of_locks(self):
        self.check("cycle")

    def test_ring_of_a_lock_and_a_fence(self):
        self.check("mixed")

    def test_ranks_are_sorted(self):
        job = self.job("hang", "lock")
        until(lambda: self.snapshot(job) == MODES["lock"])

        def ranks(*words):
            return [int(rank) for rank in re.findall(r"(?m)^ +(\d+) +\d+  \w", top("--once", *words, job.pid).stdout)]
        self.assertEqual(ranks(), list(range(RANKS)))
        self.assertEqual(ranks("--sort", "rank"), list(range(RANKS)))
        order = ranks("--sort=wait")
        self.assertEqual((sorted(order[:-1]), order[-1]), (list(range(1, RANKS)), 0))  # rank 0 does not wait
        result = top("--sort", "age", job.pid)
        self.assertEqual((result.returncode, result.stderr),
                         (2, 'oriel: --sort: "age" is neither rank, wait, operations nor bytes\n'))

    def test_colours_only_where_wanted(self):
        job = self.job("hang", "cycle")
        until(lambda: self.snapshot(job) == MODES["cycle"])
        self.assertNotIn("\033", top("--once", job.pid).stdout)
        text = top("--once", "--color", "always", job.pid).stdout
        self.assertEqual(text.count("\033[33mwaits\033[0m in MPI_Win_lock"), RANKS)
        self.assertIn("\033[1;31m  deadlock: \033[0m0 -> 1", text)

    def test_stopped_rank_is_shown(self):
        job = self.job("hang", "fence")
        pid = until(lambda: job.ranks().get(LAST, {}).get("process"))
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        until(lambda: job.ranks().get(LAST, {}).get("state") == "stopped")
        self.assertEqual(job.ranks()[LAST]["state"], "stopped")

    def test_job_of_an_ordinary_user(self):
        job = self.job("hang", "fence", launch=["--user"])
        until(lambda: self.snapshot(job) == MODES["fence"])
        self.assertEqual(self.snapshot(job), MODES["fence"])
        seen = job.ranks()[0]["process"]
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.assertIn('waits in MPI_Win_fence of "halo" (main at hang.c:', top("--once", seen, before=as_nobody).stdout)
        self.assertRegex(top("--once", seen).stdout, r'waits in MPI_Win_fence of "halo" \(hang\+0x[0-9a-f]+\) for')


class Counts(Case):
    def test_operations_and_bytes(self):
        job = self.job("busy", 1000, env=["ORIEL_WATCH=1"])
        self.assertEqual(job.first, "done")
        ranks = job.ranks()
        self.assertEqual(sorted(ranks), list(range(RANKS)))
        for rank in ranks.values():
            self.assertEqual((rank["operations"], rank["bytes"]), (1000, 64000))
            self.assertEqual((rank["operations_per_s"], rank["bytes_per_s"]), (0, 0))

    def test_rates_while_busy(self):
        job = self.job("busy", 0, self.end, env=["ORIEL_WATCH=1"])
        self.assertEqual(job.first, "busy")
        # Where processors are scarce, some ranks start late, and pause between two snapshots.
        rates = {}

        def all_put():
            for rank, seen in job.ranks().items():
                if seen["operations_per_s"]:
                    rates[rank] = (seen["operations_per_s"], seen["bytes_per_s"])
            return len(rates) == RANKS

        self.assertTrue(until(all_put), rates)
        for operations, size in rates.values():
            self.assertAlmostEqual(size / operations, 64, delta=1)

    def test_windows_have_the_rates_of_their_ranks(self):
        job = self.job("busy", 0, self.end, env=["ORIEL_WATCH=1"])
        self.assertEqual(job.first, "busy")

        def busy():
            seen = job.snapshot()
            return seen if seen and len(seen["ranks"]) == RANKS and sum(rank["bytes_per_s"] or 0 for rank in seen["ranks"]) else None
        seen = until(busy)
        [window] = seen["windows"]
        self.assertEqual((window["window"], window["ranks"]), ("busy", RANKS))
        for key in ("operations_per_s", "bytes_per_s"):
            self.assertAlmostEqual(window[key] / sum(rank[key] or 0 for rank in seen["ranks"]), 1, delta=0.001)
        text = top("--once", "--sort", "bytes", job.pid).stdout
        self.assertRegex(text, rf'(?m)^  ranks     op/s      B/s  window\n {{6}}{RANKS} +[\d.]+( k| M)? +[\d.]+( k| M| G)?  "busy"$')
        self.assertRegex(text, r"(?m)^   rank  process     op/s      B/s$")

    def test_windows_are_sorted_by_bytes_and_operations(self):
        job = self.job("busy", 0, self.end, "more windows", env=["ORIEL_WATCH=1"])
        self.assertEqual(job.first, "busy")

        def names():
            seen = job.snapshot()
            return [window["window"] for window in seen["windows"]] if seen else None
        until(lambda: names() == ["busy", "empty", "idle"])
        self.assertEqual(names(), ["busy", "empty", "idle"])

    def test_nothing_is_counted_in_a_quiet_run(self):
        job = self.job("busy", 1000)
        for rank in until(job.ranks).values():
            self.assertEqual((rank["operations"], rank["operations_per_s"]), (None, None))
        self.assertEqual(job.snapshot()["windows"], [])


if __name__ == "__main__":
    unittest.main()
