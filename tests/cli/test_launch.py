"""The tests' own launcher: it forwards a job's output and exit status, and leaves no process of the
job running."""

import os
import re
import subprocess
import time
import unittest

from command import BUILD, HOSTS, LAUNCH, LIMIT_S, Case, environment



def launch(host, *arguments):
    return subprocess.run([LAUNCH, "--build", BUILD, "--host", host, *arguments], env=environment(),
                          capture_output=True, text=True, timeout=LIMIT_S, check=False)


class Launch(Case):
    def test_status_and_output_are_the_jobs(self):
        # Open MPI 6's launcher may take a program that ends at once for one that it could not start.
        for host in HOSTS:
            result = launch(host, "-n", "2", "--", "sh", "-c", "echo here; exit 0")
            self.assertEqual((result.returncode, result.stdout), (0, "here\nhere\n"), result.stderr)
            self.assertNotEqual(launch(host, "-n", "2", "--", "sh", "-c", "exit 3").returncode, 0)
            self.assertEqual(launch(host, "-n", "1", "--plain", "sh", "-c", "sleep 0.3; exit 77").returncode, 77)

    def test_plain_has_no_preload_and_env_is_passed_on(self):
        for host in HOSTS:
            result = launch(host, "-n", "1", "--plain", "--env", "TESTS_WORD=a=b", "sh", "-c",
                            'echo "${LD_PRELOAD-none} $TESTS_WORD"')
            self.assertEqual(result.stdout, "none a=b\n", result.stderr)

    def test_time_limit_ends_the_whole_job(self):
        for host in HOSTS:
            stamp = f"oriel-launch-{os.getpid()}-{host}"
            result = launch(host, "-n", "2", "--plain", "--timeout", "2", "sh", "-c", "sleep 3000; true", stamp)
            self.assertEqual(result.returncode, 124, result.stderr)
            self.assertIn("ended after 2 s", result.stdout)
            self.assertEqual(len(re.findall(r"(?m)^launch: of this job: \d+: sleep S \w+$", result.stdout)), 2, result.stdout)
            self.assertEqual(self.running(stamp), [])

    def test_any_number_of_signals_ends_the_whole_job(self):
        for host in HOSTS:
            stamp = f"oriel-launch-{os.getpid()}-{host}"
            job = subprocess.Popen([LAUNCH, "--build", BUILD, "--host", host, "-n", "2", "--plain", "--timeout", "50", "sh",
                                    "-c", "trap '' TERM; sleep 49; true", stamp], env=environment(), stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
            while len(self.found(stamp)) < 4:  # this script, the host's launcher, and both ranks
                time.sleep(0.1)
            for _ in range(20):
                job.terminate()
                time.sleep(0.05)
            self.assertEqual(job.wait(30), 128 + 15)
            job.stdout.close()
            self.assertEqual(self.running(stamp), [])

    def test_launcher_that_misses_the_end_of_its_proxy_is_woken(self):
        # As MPICH's mpiexec at times after MPI_Abort: the proxy was killed, a rank lives on, and only a signal ends the launcher.
        stamp = f"oriel-launch-{os.getpid()}-missed"
        launcher = self.write("mpiexec.mpich", "#!/usr/bin/python3\n"
                              "import os, signal\n"
                              "signal.signal(signal.SIGTERM, lambda number, _: os._exit(86))\n"
                              "if os.fork() == 0:\n"
                              "    os.setsid()\n"
                              f"    os.posix_spawn('/bin/sh', ['sh', '-c', 'sleep 3000; true', '{stamp}'], os.environ)\n"
                              "    os._exit(1)\n"
                              "signal.pause()\n")
        os.chmod(launcher, 0o755)
        words = [LAUNCH, "--build", BUILD, "--host", "mpich", "-n", "1", "--plain", "--timeout", "50", "--", "program"]
        result = subprocess.run(words, env={**environment(), "PATH": f"{self.folder}:{os.environ['PATH']}"}, capture_output=True,
                                text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((result.returncode, result.stdout), (86, ""), result.stderr)
        self.assertEqual(self.running(stamp), [])

    def found(self, stamp):
        """Processes with the stamp on their command line."""
        return subprocess.run(["pgrep", "-f", stamp], capture_output=True, text=True, check=False).stdout.split()

    def running(self, stamp):
        """The same, after time to exit."""
        for _ in range(50):
            found = self.found(stamp)
            if not found:
                break
            time.sleep(0.1)
        return found

    @unittest.skipUnless(os.geteuid() == 0, "only root can start a job as another user")
    def test_user_is_unprivileged_with_a_temporary_home(self):
        for host in HOSTS:
            result = launch(host, "-n", "1", "--user", "--plain", "sh", "-c", 'id -u; echo "$HOME"; touch "$HOME/file"')
            self.assertEqual(result.returncode, 0, result.stderr)
            user, home = result.stdout.split()
            self.assertEqual(user, "65534")
            self.assertFalse(os.path.exists(home))

    @unittest.skipUnless(os.geteuid() == 0, "only root can start a job as another user")
    def test_program_that_the_user_cannot_read_is_skipped_with_the_reason(self):
        script = self.write("script", "#!/bin/sh\nexit 0\n")  # in a folder for its owner only
        result = launch(HOSTS[0], "-n", "1", "--user", "--plain", script)
        self.assertEqual(result.returncode, 77, result.stderr)
        self.assertIn(f"skipped: another user cannot read {script}: no permission for others on {self.folder}",
                      result.stdout)


if __name__ == "__main__":
    unittest.main()
