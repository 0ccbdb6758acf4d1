"""Pages of a program that did run, on each host, at several rank counts and as an ordinary user.
The heat maps have the cells of ring_puts.c, and the page opens without console output."""

import os
import subprocess
import sys
import unittest

import browser
import report_page
import traces

HOSTS = os.environ.get("TESTS_HOSTS", "mpich,openmpi").split(",")
STEPS = 10


class Run(report_page.Reports):
    def ran(self, host, ranks, *more):
        os.chmod(self.folder, 0o755)
        folder = self.path(f"{host}.{ranks}{''.join(more)}")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        program = os.path.join(report_page.BUILD, "tests", "page", host, "ring_puts")
        job = subprocess.run([os.path.join(traces.ROOT, "tests", "launch"), "--build", report_page.BUILD, "--host", host, "-n",
                              str(ranks), "--timeout", "60", *more, "--env", f"ORIEL_TRACE={folder}", "--", program],
                             capture_output=True, text=True, timeout=600, check=False)
        if job.returncode == 77:
            self.skipTest(job.stdout)
        self.assertEqual((job.returncode, job.stdout, job.stderr), (0, "", ""))
        return self.report(folder)

    def check(self, data, host, ranks):
        run = data["run"]
        self.assertEqual((run["ranks"], run["traced"], run["dropped"], run["incomplete"], run["host"]), (ranks, ranks, 0, 0, host))
        windows = {window["name"]: window for window in data["windows"]}
        self.assertEqual(set(windows), {"ring", "counter"} if ranks > 1 else {"ring"})
        cells = {name: {(origin, target): (operations, count) for origin, target, operations, count in
                        zip(*(window["pairs"][key] for key in ("origin", "target", "operations", "bytes")))}
                 for name, window in windows.items()}
        self.assertEqual(cells["ring"], {(rank, (rank + 1) % ranks): (STEPS, STEPS * 100 * (rank + 1)) for rank in range(ranks)})
        if ranks > 1:  # the window's rank 0 is the world's last but one
            self.assertEqual(cells["counter"], {(rank, ranks - 2): (STEPS, STEPS * 8) for rank in range(ranks - 1)})
            self.assertEqual(windows["counter"]["rows"], list(range(ranks - 1)))
        for window in windows.values():
            paths = [(data["paths"][path["path"]]["name"], path["ranks"]) for path in window["memory_paths"]]
            self.assertEqual(paths, [("direct", window["ranks"])])
            self.assertIn("ring_puts", window["site"])
        names = [row["name"] for row in data["operations"]]
        [(place, _, count, size, *_)] = [site for site in windows["ring"]["sites"] if site[1] == names.index("put")]
        self.assertEqual((count, size), (STEPS * ranks, sum(STEPS * 100 * (rank + 1) for rank in range(ranks))))
        self.assertIn("ring_puts", data["places"][place]["text"])
        self.assertEqual(set(place for place, kind in zip(data["events"]["place"], data["events"]["kind"])
                             if kind == names.index("put")), {place})
        kinds = [data["epoch_kinds"][kind] for kind in data["epochs"]["kind"]]
        self.assertEqual((kinds.count("fence"), kinds.count("lock")), (STEPS * ranks, STEPS * (ranks - 1)))

    def test_cells_are_those_of_the_program(self):
        for host in HOSTS:
            for ranks in (1, 2, 4, 8):
                with self.subTest(host=host, ranks=ranks):
                    self.check(self.ran(host, ranks), host, ranks)

    @unittest.skipUnless(os.geteuid() == 0, "already an ordinary user")
    def test_as_an_ordinary_user(self):
        for host in HOSTS:
            with self.subTest(host=host):
                self.check(self.ran(host, 4, "--user"), host, 4)

    @unittest.skipIf(browser.BROWSER is None, "no chromium to open the page with")
    def test_the_page_opens(self):
        self.ran(HOSTS[0], 4)
        read = self.open()
        self.assertEqual(read.all("html")[0].get("data-drawn"), "6")
        self.assertIn("ring_puts: one-sided communication", read.shown())


if __name__ == "__main__":
    report_page.needed()
    if not HOSTS[0]:
        print("skipped: no host")
        sys.exit(77)
    unittest.main()
