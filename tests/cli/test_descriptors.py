"""Jobs whose processes have few descriptors, with statistics, traces, checker and agent. From the
smallest number on which the bare host works, the program works and exits as without a limit. The
library reports every feature that it had to leave out."""

import os
import unittest

from command import BUILD, Case, HOSTS, LAUNCH, ORIEL, start

MORE = 20
MOST = 128
# UCX 1.23, where its thread gets no descriptor: it ends the process that a host or a program gives it.
ABORTS = "Assertion `ucs_async_thread_global_context.thread != NULL' failed"
ABORTS_BELOW = 3  # descriptors more than the host needs


def observed(host, name):
    return os.path.join(BUILD, "tests", "observe", host, name)


class Few(Case):
    def launch(self, host, descriptors, *words, **variables):
        pairs = [f"--env={name}={value}" for name, value in variables.items()]
        return start(LAUNCH, "--build", BUILD, "--host", host, "-n", 2, "--plain", "--timeout", 40, *pairs, "--", "prlimit",
                     f"--nofile={descriptors}:{descriptors}", *words)

    def least(self, host):
        """The smallest number such that the bare host works with it and the next four."""
        good = 0
        for descriptors in range(8, MOST):
            job = self.launch(host, descriptors, observed(host, "traced"))
            good = good + 1 if job.returncode == 0 and job.stdout.count(" is done\n") == 2 else 0
            if good == 5:
                return descriptors - 4
        self.fail(f"{host} does not work with {MOST} descriptors")

    def commands(self):
        """Commands, their requested outputs, and the minimum number of descriptors of their own in
        a process: the memory file is one, the checker's another."""
        return (("run", 1, {"ORIEL_STATS": self.path("statistics.json"), "ORIEL_TRACE": self.path("traces")}),
                ("run", 1, {"ORIEL_PROMOTE": "never", "ORIEL_CMA": "never"}), ("run", 1, {"ORIEL_NODE_SIZE": "1"}),
                ("check --no-fail", 2, {}))

    def test_the_program_works_whatever_is_asked_for(self):
        for host in HOSTS:
            least = self.least(host)
            for descriptors in range(least, least + MORE + 1):
                for command, own, variables in self.commands():
                    if descriptors < least + own:
                        continue
                    with self.subTest(host=host, descriptors=descriptors, command=command, **variables):
                        job = self.launch(host, descriptors, ORIEL, *command.split(), observed(host, "traced"), **variables)
                        if descriptors < least + ABORTS_BELOW and ABORTS in job.stdout + job.stderr:
                            continue
                        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
                        self.assertEqual(job.stdout.count(" is done\n"), 2, job.stdout + job.stderr)
                        if command != "run":
                            self.assertIn("oriel check: 1 problem (38 occurrences) on 2 ranks\n", job.stderr)
                        self.check_report(job, variables.get("ORIEL_STATS"))

    def check_report(self, job, path):
        """Only the requested but impossible features are reported, each once, or by each rank without a descriptor to agree
        on who does."""
        lines = [line for line in job.stderr.splitlines() if line.startswith("oriel: ")]
        for words, most in (("the statistics are lost", 1), ("not traced", 2), ("no UCX", 2)):
            self.assertLessEqual(sum(words in line for line in lines), most, job.stderr)
        if path is not None:
            self.assertEqual(os.path.exists(path), not any("statistics are lost" in line for line in lines), job.stderr)
            if os.path.exists(path):
                os.remove(path)


if __name__ == "__main__":
    unittest.main()
