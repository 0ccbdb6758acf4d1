#!/usr/bin/python3
"""Runs the programs of counted.c with ORIEL_STATS and compares the statistics with the programs'
actions.

test_statistics.py --build FOLDER --host HOST --program PROGRAM --ranks N,N... [--net] [UNITTEST
ARGUMENT...]"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import jobs  # noqa: E402

LATE_NS, TIMES, THREADS, OFTEN, SERVED, WINDOWS, RECORDS = 50e6, 4, 20, 200000, 20000, 1010, 1000
LONG, CROWD = 8, 256
TITLES = {"mpich": "MPICH", "openmpi": "Open MPI", "abi": "MPI's standard ABI"}
VERSIONS = {"mpich": r"MPICH \d+\.\d+", "openmpi": r"Open MPI v\d+\.\d+"}
options = None


class Case(unittest.TestCase):
    """A temporary folder that every user can write to."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-statistics.")
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder)

    def launch(self, scenario, ranks, *launch, stats="1", timeout=120, before=(), **environment):
        env = [word for name, value in dict(environment, ORIEL_STATS=stats).items() for word in ("--env", f"{name}={value}")]
        command = [os.path.join(ROOT, "tests", "launch"), "--build", options.build, "--host", options.host, "-n", str(ranks),
                   "--timeout", str(timeout), *launch, *env, "--", *before, options.program, scenario]
        job = subprocess.run(command, capture_output=True, text=True, timeout=10 * timeout + 60)
        if job.returncode == 77:
            self.skipTest(job.stdout.strip())
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertIn(f"ok {scenario}", job.stdout)
        return job

    def statistics(self, scenario, ranks, *launch, **environment):
        path = os.path.join(self.folder, f"{scenario}.{ranks}.json")
        self.launch(scenario, ranks, *launch, stats=path, **environment)
        with open(path, encoding="utf-8") as file:
            job = json.load(file)
        self.sites = job["sites"]
        self.sites_are_all_calls(job)
        self.assertEqual((job["format"], job["version"], job["host"], job["ranks"], job["missing_ranks"]),
                         ("oriel-statistics", 2, options.library, ranks, []))
        self.assertRegex(job["host_version"], "^" + VERSIONS[options.mpi])
        return job["windows"]


    def sites_are_all_calls(self, job):
        """Each call has a call site."""
        for name in {site["call"] for site in job["sites"]}:
            wanted = sum(window["operations" if name in window["operations"] else "calls"][name]["count"]
                         for window in job["windows"])
            self.assertEqual(sum(site["count"] for site in job["sites"] if site["call"] == name), wanted, name)

    def site_at(self, call, mark):
        """The one call site of the line with this mark."""
        lines = [site for site in self.sites if site["call"] == call and site["line"] == line_of(mark)]
        self.assertEqual(len(lines), 1, (call, mark, self.sites))
        self.assertTrue(lines[0]["file"].endswith("/counted.c"), lines[0])
        return lines[0]


def line_of(mark):
    with open(os.path.join(HERE, "counted.c"), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if mark in line)


class Counts(Case):
    def check(self, window, ranks, path):
        each = {"put": (4, 4 * LONG), "get": (2, 5 * LONG), "accumulate": (2, 4 * LONG), "get_accumulate": (2, 3 * LONG),
                "fetch_and_op": (1, LONG), "compare_and_swap": (1, LONG)}
        for kind, (count, size) in each.items():
            found = window["operations"][kind]
            self.assertEqual((found["count"], found["bytes"]), (ranks * count, ranks * size), kind)
            self.assertGreater(found["time_ns"], 0)
        total = {"count": ranks * 12, "bytes": ranks * sum(size for _, size in each.values())}
        self.assertEqual({name: sums for name, sums in window["paths"].items() if sums["count"]}, {path: total})
        calls = {name: call["count"] for name, call in window["calls"].items() if call["count"]}
        self.assertEqual(calls, {"create": ranks, "free": ranks, "lock_all": ranks, "unlock_all": ranks, "flush": 2 * ranks,
                                 "sync": ranks, "lock": 300 * ranks, "unlock": 300 * ranks})
        for name, call in window["calls"].items():
            self.assertLessEqual(call["waiting_ns"], call["time_ns"], name)
            self.assertEqual(call["count"] > 0, call["time_ns"] > 0, name)
        self.assertEqual({(pair["origin"], pair["target"]) for pair in window["busiest_pairs"]} -
                         {(rank, (rank + 1) % ranks) for rank in range(ranks)}, set())
        self.assertEqual(len(window["busiest_pairs"]), min(ranks, 5))

    def test_operations_calls_bytes_and_pairs_are_those_of_the_program(self):
        for ranks in options.ranks:
            with self.subTest(ranks=ranks):
                [window] = self.statistics("counts", ranks)
                self.check(window, ranks, "direct")
                self.assertEqual((window["name"], window["flavour"], window["freed"], window["ranks_reported"]),
                                 ("counted", "MPI_Win_allocate", True, ranks))
                self.assertEqual([(rank["rank"], rank["size_bytes"], rank["path"]) for rank in window["ranks"]],
                                 [(rank, 64 + 64 * rank, "direct") for rank in range(ranks)])

    def test_notified_operations_count_as_operations(self):
        for ranks in options.ranks:
            windows = [window for window in self.statistics("notified", ranks) if len(window["ranks"]) == 2]
            self.assertEqual(len(windows), ranks // 2)
            for window in windows:
                found = {kind: (sums["count"], sums["bytes"]) for kind, sums in window["operations"].items() if sums["count"]}
                self.assertEqual(found, {"put": (TIMES, TIMES * 2 * LONG), "get": (1, 4 * LONG), "accumulate": (1, 3 * LONG)})
                self.assertEqual(window["calls"]["notify_wait"]["count"], TIMES + 2)
            if windows:
                put = self.site_at("put", "SITE notified put")
                self.assertEqual((put["function"], put["count"], put["bytes"]),
                                 ("notified", TIMES * len(windows), TIMES * 2 * LONG * len(windows)))

    def test_lists_and_swaps_of_16_bytes_count_as_operations(self):
        for ranks in options.ranks:
            [window] = self.statistics("atomics", ranks)
            found = {kind: (sums["count"], sums["bytes"]) for kind, sums in window["operations"].items() if sums["count"]}
            self.assertEqual(found, {"fetch_and_op": (3 * ranks, 6 * LONG * ranks), "compare_and_swap": (2 * ranks, 3 * LONG * ranks)})
            self.assertEqual(window["paths"]["direct"], {"count": 5 * ranks, "bytes": 9 * LONG * ranks})
            listed = self.site_at("fetch_and_op", "SITE list")
            self.assertEqual((listed["function"], listed["count"], listed["bytes"]), ("atomics", ranks, 5 * LONG * ranks))

    def test_the_place_is_where_the_program_made_the_window(self):
        [window] = self.statistics("counts", options.ranks[-1])
        self.assertEqual(window["site"], f"counts at counted.c:{line_of('MADE here')}")

    def test_each_call_site_has_its_own_sums(self):
        for ranks in options.ranks:
            with self.subTest(ranks=ranks):
                self.statistics("counts", ranks)
                put, strided = self.site_at("put", "SITE put */"), self.site_at("put", "SITE strided put")
                self.assertEqual((put["function"], put["count"], put["bytes"]), ("operate", ranks, ranks * LONG))
                self.assertEqual((strided["count"], strided["bytes"]), (ranks, 2 * ranks * LONG))
                lock = self.site_at("lock", "SITE lock")
                self.assertEqual((lock["function"], lock["count"], lock["window"]), ("counts", 300 * ranks, 0))
                self.assertFalse([site for site in self.sites if site["line"] in (line_of("no effect"), line_of("refused"))])

    def test_extensions_count_as_the_calls_that_they_are_like(self):
        [window] = self.statistics("flushes", 2)
        calls = {name: window["calls"][name]["count"] for name in ("flush", "sync")}
        self.assertEqual(calls, {"flush": 5 * 2, "sync": 2 * 2})
        for kind, mark in (("flush", "SITE flush with request"), ("sync", "SITE wait for memory")):
            site = self.site_at(kind, mark)
            self.assertEqual((site["function"], site["count"]), ("flushes", 2))

    def test_each_start_counts_as_the_operation(self):
        [window] = self.statistics("started", 2)
        found = {kind: (row["count"], row["bytes"]) for kind, row in window["operations"].items() if row["count"]}
        self.assertEqual(found, {"put": (2 * 5, 2 * 5 * 16), "get": (2, 2 * 8), "fetch_and_op": (2, 2 * 8),
                                 "compare_and_swap": (2, 2 * 8)})
        for kind, mark, count in (("put", "SITE start", 2 * 4), ("put", "SITE start of all", 2), ("get", "SITE start of all", 2)):
            site = self.site_at(kind, mark)
            self.assertEqual((site["function"], site["count"]), ("started", count))

    def test_the_rank_of_an_opened_window_is_its_owner(self):
        for node_size in (1, 3):
            [window] = [window for window in self.statistics("opened", 3, "--node-size", str(node_size)) if window["name"] == "opened"]
            self.assertEqual([rank["rank"] for rank in window["ranks"]], [2])
            self.assertEqual({pair["target"] for pair in window["busiest_pairs"]}, {2})

    def test_an_ordinary_user_gets_the_same(self):
        [window] = self.statistics("counts", 2, "--user")
        self.check(window, 2, "direct")

    def test_threads_lose_nothing(self):
        for ranks in options.ranks[:2]:
            with self.subTest(ranks=ranks):
                [window] = self.statistics("threads", ranks)
                wanted = ranks * THREADS * OFTEN
                put = window["operations"]["put"]
                self.assertEqual((put["count"], put["bytes"]), (wanted, wanted * LONG))
                self.assertEqual(window["calls"]["flush"]["count"], wanted)
                self.assertEqual(sum(pair["count"] for pair in window["busiest_pairs"]),
                                 wanted if ranks <= 5 else 5 * THREADS * OFTEN)

    def test_windows_of_the_host_are_counted(self):
        for ranks in options.ranks:
            if ranks == 1:
                continue  # one of the hosts cannot create them for one rank
            with self.subTest(ranks=ranks):
                windows = self.statistics("sorts", ranks, ORIEL_BYPASS="1")
                self.assertEqual([window["name"] for window in windows], ["stack", "heap", "dynamic"])
                for window in windows:
                    self.assertEqual(window["paths"]["host"], {"count": ranks * ranks, "bytes": ranks * ranks * LONG})
                    self.assertEqual({(rank["path"], rank["reason"]) for rank in window["ranks"]}, {("host", "ORIEL_BYPASS")})
                    self.assertEqual(window["calls"]["fence"]["count"], 2 * ranks)


class Paths(Case):
    def paths(self, window, copied="cma"):
        """Copies, including those that a waiting target made itself."""
        paths = {name: sums["count"] for name, sums in window["paths"].items() if sums["count"]}
        served = paths.pop("polled", 0)
        return {**paths, copied: paths.get(copied, 0) + served} if served else paths

    def are_served(self, ranks, cma, copied):
        """A waiting target serves only while it has a processor. On a busy node some runs lack
        one."""
        windows = self.statistics("served", ranks, ORIEL_PROMOTE="never", ORIEL_CMA=cma)
        host, fence = (window for window in windows if window["name"] in ("host", "fence"))
        for window in host, fence:
            self.assertEqual(self.paths(window, copied), {copied: SERVED * (ranks - 1)})
        return host["paths"]["polled"]["count"] > 0, fence["paths"]["polled"]["count"] > 0

    def test_targets_that_wait_do_copies_themselves(self):
        for ranks in options.ranks:
            if ranks == 1:
                continue
            for cma, copied in ("auto", "cma"), ("never", "agent"):
                with self.subTest(ranks=ranks, cma=cma):
                    host = fence = False
                    for _ in range(20):
                        served = self.are_served(ranks, cma, copied)
                        host, fence = host or served[0], fence or served[1]
                        if host and fence:
                            break
                    self.assertEqual((host, fence), (True, True))

    def test_each_kind_of_memory_has_its_path_and_reason(self):
        for ranks in options.ranks:
            if ranks == 1:
                continue
            with self.subTest(ranks=ranks):
                stack, heap, dynamic = self.statistics("sorts", ranks, ORIEL_PROMOTE="always")
                self.assertEqual(self.paths(stack), {"direct": ranks, "cma": ranks * (ranks - 1)})
                for rank in stack["ranks"]:
                    self.assertEqual(rank["path"], "cma")
                    self.assertIn("stack", rank["reason"])
                self.assertEqual(self.paths(heap), {"promoted": ranks * ranks})
                self.assertEqual(self.paths(dynamic), {"promoted": ranks * ranks})

    def test_memory_that_stays_private_is_reached_by_copies(self):
        _, heap, dynamic = self.statistics("sorts", 2, ORIEL_PROMOTE="never")
        self.assertEqual(self.paths(heap), {"direct": 2, "cma": 2})
        self.assertEqual(self.paths(dynamic), {"direct": 2, "cma": 2})
        self.assertIn("ORIEL_PROMOTE=never", heap["ranks"][0]["reason"])

    def test_agent_and_kernel_are_distinguished(self):
        _, heap, _ = self.statistics("sorts", 2, ORIEL_PROMOTE="never", ORIEL_CMA="never")
        self.assertEqual(self.paths(heap, "agent"), {"direct": 2, "agent": 2})

    def test_a_window_of_the_host_has_a_reason(self):
        stack = self.statistics("sorts", 2, ORIEL_PROMOTE="never", ORIEL_CMA="never", ORIEL_AGENT="never")[0]
        self.assertEqual(self.paths(stack), {"host": 4})
        self.assertIn("ORIEL_AGENT=never", stack["ranks"][0]["reason"])


class Waiting(Case):
    def caused(self, window, cause, rank):
        return sum(entry["caused_ns"] for entry in window["causes"][cause]["ranks"] if entry["rank"] == rank)

    def late_is_named(self, ranks):
        [window] = self.statistics("late", ranks)
        # where processors are scarce, waiting ranks arrive late, too
        last, slept = ranks - 1, 0.25 * TIMES * LATE_NS
        self.assertGreater(self.caused(window, "late_fence", last), slept * (ranks - 1))
        self.assertGreater(self.caused(window, "late_post", last), slept)
        self.assertGreater(self.caused(window, "late_complete", 0), slept)
        self.assertGreater(self.caused(window, "busy_lock", 0), slept)
        for cause, rank in (("late_fence", last), ("late_post", last), ("late_complete", 0), ("busy_lock", 0)):
            self.assertGreater(self.caused(window, cause, rank), window["causes"][cause]["caused_ns"] / 2, cause)
        for name, least in (("fence", slept * (ranks - 1)), ("start", slept), ("wait", slept), ("lock", slept)):
            call = window["calls"][name]
            self.assertGreater(call["waiting_ns"], least, name)
            self.assertGreaterEqual(call["waited"], TIMES / 2, name)
            self.assertGreater(call["longest_ns"], 0.25 * LATE_NS, name)
        for call, mark in (("fence", "WAITS for the last"), ("start", "WAITS for the post"),
                           ("wait", "WAITS for the complete"), ("lock", "WAITS for the lock")):
            site = self.site_at(call, mark)
            self.assertGreater(site["waiting_ns"], 0.6 * window["calls"][call]["waiting_ns"], site)
            self.assertLessEqual(site["waiting_ns"], site["time_ns"])
            self.assertEqual(site["function"], "late")

    def test_late_ranks_and_lock_holders_are_named(self):
        for ranks in options.ranks:
            if ranks == 1:
                continue
            with self.subTest(ranks=ranks):
                # a rank delayed by the node is late as well, and correctly named
                for tries_left in (2, 1, 0):
                    try:
                        self.late_is_named(ranks)
                        break
                    except AssertionError:
                        if tries_left == 0:
                            raise

    def test_late_notifications_are_those_of_the_other_rank(self):
        for ranks in options.ranks:
            for window in self.statistics("notified", ranks):
                if len(window["ranks"]) == 2:
                    self.assertGreater(self.caused(window, "late_notification", window["ranks"][1]["rank"]), 0.25 * TIMES * LATE_NS)
                    self.assertEqual(self.site_at("notify_wait", "WAITS for the notification")["function"], "notified")

    def test_waits_with_requests_count_as_waits_for_notifications(self):
        least = 0.25 * TIMES * LATE_NS
        [window] = self.statistics("awaited", 2)
        self.assertEqual(window["calls"]["notify_wait"]["count"], TIMES + 3)
        for kind, mark, function, count in (("notify_wait", "WAITS with a request", "awaited_by_requests", TIMES),
                                            ("notify_wait", "WAITS with several", "awaited_by_requests", 1),
                                            ("sync", "WAITS for a value", "awaited", TIMES)):
            site = self.site_at(kind, mark)
            self.assertEqual((site["function"], site["count"]), (function, count))
            self.assertGreater(site["waiting_ns"], least / TIMES * count, site)
        self.assertGreater(self.caused(window, "late_notification", window["ranks"][1]["rank"]), 2 * least)

    def test_late_ranks_at_the_end_of_a_window_are_named(self):
        for ranks in options.ranks:
            if ranks == 1:
                continue
            with self.subTest(ranks=ranks):
                windows = self.statistics("ending", ranks)
                self.assertEqual(len(windows), TIMES)
                caused = sum(self.caused(window, "late_fence", ranks - 1) for window in windows)
                self.assertGreater(caused, 0.8 * sum(window["calls"]["free"]["waiting_ns"] for window in windows))

    def test_each_wait_has_a_cause(self):
        [window] = self.statistics("late", 1)
        self.assertEqual({cause["caused_ns"] for cause in window["causes"].values()}, {0})


class Table(Case):
    def rows(self):
        text = subprocess.run([os.path.join(options.build, "bin", "oriel"), "run", "--counters"], capture_output=True, text=True,
                              check=True, timeout=600).stdout
        found, kind = {}, None
        for line in text.splitlines()[1:]:
            if line.endswith(":"):
                kind = found.setdefault(line[:-1], {})
            else:
                kind[line[20:].split()[0]] = line[38:]
        return found

    def test_each_counter_counts_something(self):
        ranks = max(options.ranks[-1], 2)
        copied = {"ORIEL_PROMOTE": "never"}
        windows = [window for scenario, environment in
                   (("counts", {}), ("late", {}), ("notified", {}), ("sorts", {"ORIEL_PROMOTE": "always"}), ("sorts", copied),
                    ("sorts", dict(copied, ORIEL_CMA="never")), ("asked", dict(copied, ORIEL_CMA="never")),
                    ("sorts", {"ORIEL_BYPASS": "1"}))
                   for window in self.statistics(scenario, ranks, **environment)]
        measure = {"operations": "count", "paths": "count", "calls": "count", "causes": "caused_ns"}
        silent = {name for kind, rows in self.rows().items() for name in rows
                  if not any(window[kind][name][measure[kind]] for window in windows)}
        # A separate test covers waiting targets; the Machines tests cover networks; gpu.observed, GPUs.
        self.assertEqual(silent | {"polled"}, {"ucx", "polled", "gpu"})

    def test_the_keys_of_json_are_those_of_the_table(self):
        [window] = self.statistics("counts", 1)
        for kind, rows in self.rows().items():
            self.assertEqual(list(window[kind]), list(rows), kind)


class Nodes(Case):
    """Two ranks each, on simulated nodes, or on nodes that the launcher makes."""

    def check(self, table):
        self.assertIn('window 1 "counted" of MPI_Win_allocate, 4 ranks, 64 B to 256 B each', table)
        self.assertNotIn("missing", table)
        for row in ("put +16 +128 B", "direct +24 +288 B", "ucx +24 +288 B", "lock +1,200 ", "busy target +rank "):
            self.assertRegex(table, rf"\n    {row}")

    def test_ranks_that_reach_each_other_by_messages_are_added_up(self):
        self.check(self.launch("counts", 4, "--node-size", "2").stderr)

    def test_internode_windows_of_the_host_are_one_window(self):
        windows = self.statistics("sorts", 4, "--node-size", "2", ORIEL_NET="off")
        self.assertEqual([window["paths"]["host"]["count"] for window in windows], [16, 16, 16])
        self.assertEqual({rank["reason"] for window in windows for rank in window["ranks"]},
                         {"the ranks are on 2 nodes: ORIEL_NET=off"})

    def test_an_unreachable_node_is_named(self):
        closed = ("sh", "-c", 'test "$PMI_RANK$OMPI_COMM_WORLD_RANK" = 1 && export ORIEL_NET=off; exec "$@"', "sh",
                  os.path.join(options.build, "bin", "oriel"), "run")
        for window in self.statistics("sorts", 2, "--plain", "--node-size", "1", before=closed):
            self.assertEqual(window["paths"]["host"]["count"], 4)
            self.assertEqual([rank["reason"] for rank in window["ranks"]],
                             ["rank 1 cannot be reached from other nodes", "the ranks are on 2 nodes: ORIEL_NET=off"])

    def test_nodes_without_a_common_file_system(self):
        if not options.net or options.mpi == "mpich":
            self.skipTest("with --net; not MPICH, whose MPI_Finalize hangs between emulated nodes")
        self.check(self.launch("counts", 4, "--net", "2").stderr)


class End(Case):
    def test_the_table_is_printed_once(self):
        job = self.launch("counts", 2)
        mpi = f", {VERSIONS[options.mpi]}" if options.library == "abi" else "$"
        self.assertEqual(len(re.findall("(?m)^oriel: statistics of counted, 2 ranks on " + TITLES[options.library] + mpi, job.stderr)), 1)
        self.assertRegex(job.stderr, r'window 1 "counted" of MPI_Win_allocate, 2 ranks, 64 B to 128 B each, created in\s+counts\s+at\s')
        self.assertRegex(job.stderr, r"\n    put +8 +64 B\n")

    def test_a_program_without_windows_is_reported(self):
        self.assertIn("oriel: the program created no windows\n", self.launch("none", 2).stderr)

    def test_more_windows_than_have_records_share_one(self):
        windows = self.statistics("many", 1)
        self.assertEqual(len(windows), RECORDS + 1)
        self.assertEqual(windows[-1]["windows"], WINDOWS + 1 - RECORDS)
        self.assertEqual(sum(window["operations"]["put"]["count"] for window in windows), WINDOWS)
        self.assertEqual(sum(window["calls"]["create"]["count"] for window in windows), WINDOWS + 1)

    def test_a_file_that_cannot_be_written_harms_nothing(self):
        job = self.launch("counts", 2, stats="/proc/nowhere/s.json")
        self.assertEqual(job.stderr.count(": ORIEL_STATS: /proc/nowhere/s.json cannot be written: "), 1)
        self.assertIn("oriel: statistics of counted", job.stderr)

    def test_the_table_of_call_sites_begins_with_the_most_time(self):
        table = self.launch("late", 2).stderr
        rows = table[table.index("\ncall sites\n"):].splitlines()[3:]
        for row in rows:
            self.assertRegex(row, r"^ +\d+ % +[\d.]+ [nmu]?s +[\d.]+ [nmu]?s +[\d,]+ +[a-z_]+ in late at counted.c:\d+$")
        shares = [int(row.split()[0]) for row in rows]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertTrue([row for row in rows if row.endswith(f" fence in late at counted.c:{line_of('WAITS for the last')}")])

    def test_the_table_shows_twenty_call_sites(self):
        table = self.launch("counts", 2).stderr
        self.assertEqual(len(table[table.index("\ncall sites\n"):].splitlines()), 3 + 20 + 1)
        self.assertTrue(table.endswith("\n  and 1 more; --stats=FILE.json has all\n"), table)

    def test_call_sites_without_room_are_counted_together(self):
        for ranks in options.ranks[:2]:
            with self.subTest(ranks=ranks):
                self.statistics("crowd", ranks)
                line = self.site_at("put", "SITE crowded put")  # its addresses are one site
                [others] = [site for site in self.sites if site["call"] == "put" and site["file"] is None]
                self.assertEqual((others["module"], others["function"]), (None, None))
                self.assertEqual(line["count"] + others["count"], CROWD * ranks)
                self.assertGreater(line["count"], 100 * ranks)
                self.assertGreater(others["count"], 0)
                table = self.launch("crowd", ranks).stderr
                self.assertRegex(table, r"put in other call sites")

    def test_the_reader_of_a_pipe_gets_all(self):
        path = os.path.join(self.folder, "pipe.json")
        os.mkfifo(path)
        os.chmod(path, 0o666)
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE, text=True) as reader:
            try:
                self.launch("counts", 2, stats=path, timeout=60)
            finally:
                os.close(os.open(path, os.O_RDWR))  # ends a reader that still waits for a writer
            self.assertEqual(json.load(reader.stdout)["ranks"], 2)

    def test_contended_locks_are_reported(self):
        self.assertRegex(self.launch("late", 2).stderr, r"\n  contended locks: [1-9]\d* of [\d,]+ \(\d+ %\) waited, \S+ \S+ each\n")

    def test_a_full_disk_loses_nothing(self):
        os.symlink("/dev/full", os.path.join(self.folder, "full.json"))
        job = self.launch("counts", 2, stats=os.path.join(self.folder, "full.json"))
        self.assertIn("full.json cannot be written: No space left on device", job.stderr)
        self.assertIn("oriel: statistics of counted", job.stderr)

    def test_a_word_that_is_neither_is_refused(self):
        job = self.launch("counts", 2, stats="yes")
        self.assertIn(": ORIEL_STATS=yes is neither 1 nor the name of a .json file: nothing is counted [O20]\n", job.stderr)
        self.assertNotIn("statistics of", job.stderr)

    def test_late_ranks_are_waited_for(self):
        job = self.launch("counts", 2, TEST_LATE_RANK="0")
        self.assertNotIn("within 10 s", job.stderr)
        self.assertRegex(job.stderr, r"\n    put +8 +64 B\n")

    def test_a_rank_without_statistics_delays_no_other(self):
        oriel = os.path.join(options.build, "bin", "oriel")
        env = dict(os.environ, **jobs.SETTINGS[options.mpi])
        if options.library == "abi":
            env["LD_LIBRARY_PATH"] = os.path.join(options.build, "tests/abi", options.mpi)
        launcher = [jobs.launcher(options.mpi), *jobs.OPTIONS[options.mpi]]
        with_it = ["-n", "2", oriel, "run", "--stats", options.program, "counts"]
        without = ["-n", "1", oriel, "run", options.program, "counts"]
        job = subprocess.run([*launcher, *with_it, ":", *without], capture_output=True, text=True, env=env,
                             timeout=600)
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertIn("oriel: no statistics from rank 2: ", job.stderr)
        # it waits as well: all reports are read
        self.assertIn("within 10 s: statistics so far of rank 1\n", job.stderr)
        self.assertRegex(job.stderr, r"\n    put +8 +64 B\n")
        self.assertIn("statistics of 1 of its ranks are missing", job.stderr)
        job = subprocess.run([*launcher, *without, ":", *with_it], capture_output=True, text=True, env=env,
                             timeout=600)
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertNotIn("oriel: statistics", job.stderr)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True, help="as tests/launch has it: mpich, abi-mpich, ...")
    parser.add_argument("--program", required=True)
    parser.add_argument("--ranks", required=True, type=lambda text: [int(word) for word in text.split(",")])
    parser.add_argument("--net", action="store_true")
    options, rest = parser.parse_known_args()
    options.build, options.program = os.path.abspath(options.build), os.path.abspath(options.program)
    options.library, options.mpi = options.host.partition("-")[0], options.host.rpartition("-")[2]
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


main()
