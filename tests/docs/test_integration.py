"""The guide's parts for continuous integration: the test of CTest runs in a project of one program,
and the workflow's commands run as its runner would run them, but for the installation."""

import os
import re
import shutil
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    yaml = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
from command import Case, HOSTS, ORIEL, environment  # noqa: E402

GUIDE = os.path.join(ROOT, "docs", "guides", "checking.md")
FINDINGS = 86
PROJECT = """cmake_minimum_required(VERSION 3.18)
project(halo C)
enable_testing()
{snippet}
add_executable(halo halo.c)
target_link_libraries(halo PRIVATE MPI::MPI_C)
"""
PUTS = """#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, ranks, *memory;
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Win_allocate(ranks * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&rank, 1, MPI_INT, 0, PLACE, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
"""
WRONG, RIGHT = PUTS.replace("PLACE", "0"), PUTS.replace("PLACE", "rank")


def blocks(language):
    with open(GUIDE, encoding="utf-8") as file:
        return re.findall(rf"^```{language}(?: title=\"[^\"]+\")?\n(.*?)^```\n", file.read(), re.M | re.S)


def suppressions():
    return next(block for block in blocks("text") if block.startswith("# RULE"))


class Integration(Case):
    def run_in(self, folder, *command, **changes):
        return subprocess.run(command, cwd=folder, env=environment(**changes), capture_output=True, text=True, timeout=600,
                              stdin=subprocess.DEVNULL, check=False)

    def tools(self, host):
        """A folder with oriel, and the host's compiler and launcher under their plain names."""
        folder = self.path(f"{host}-bin")
        os.makedirs(folder)
        os.symlink(ORIEL, os.path.join(folder, "oriel"))
        for name in ("mpicc", "mpiexec"):
            found = shutil.which(f"{name}.{host}") or shutil.which(name)
            more = " --oversubscribe" if (host, name) == ("openmpi", "mpiexec") else ""
            script = self.write(f"{host}-bin/{name}", f'#!/bin/sh\nexec "{found}"{more} "$@"\n')
            self.assertTrue(os.access(script, os.X_OK))
        return {"PATH": f"{folder}:{os.environ['PATH']}",
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def project(self, host, name, source):
        """Configures and builds a project with the guide's test; returns its build folder and what
        its ctest did."""
        snippet, = blocks("cmake")
        folder = self.path(f"{host}-{name}")
        os.makedirs(folder)
        for file, text in (("CMakeLists.txt", PROJECT.format(snippet=snippet)), ("halo.c", source), ("known.supp", suppressions())):
            self.write(os.path.join(folder, file), text, 0o644)
        tools = self.environments[host]
        for command in (("cmake", "-S", ".", "-B", "build"), ("cmake", "--build", "build")):
            done = self.run_in(folder, *command, **tools)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return os.path.join(folder, "build"), self.run_in(folder, "ctest", "--test-dir", "build", "--output-on-failure", **tools)

    def setUp(self):
        super().setUp()
        self.environments = {host: self.tools(host) for host in HOSTS}

    def test_ctest_passes_without_findings_and_fails_with_them(self):
        for host in HOSTS:
            with self.subTest(host):
                build, done = self.project(host, "right", RIGHT)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("no problems on 4 ranks", self.last_log(build))
                self.assertTrue(os.path.getsize(os.path.join(build, "halo.xml")))
                build, done = self.project(host, "wrong", WRONG)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("error[C1]", done.stdout)
                with open(os.path.join(build, "halo.xml"), encoding="utf-8") as file:
                    self.assertIn("<failure", file.read())

    def last_log(self, build):
        with open(os.path.join(build, "Testing", "Temporary", "LastTest.log"), encoding="utf-8") as file:
            return file.read()

    def workflow(self):
        if yaml is None:
            self.skipTest("no yaml module for Python")
        text, = blocks("yaml")
        return yaml.safe_load(text)

    def test_workflow_has_the_parts_that_its_runner_needs(self):
        workflow = self.workflow()
        self.assertTrue(workflow["name"])
        self.assertIn("push", workflow[True])  # YAML reads `on` as true
        for job in workflow["jobs"].values():
            self.assertTrue(job["runs-on"])
            for step in job["steps"]:
                self.assertEqual(("run" in step) + ("uses" in step), 1, step)
                self.assertRegex(step.get("uses", "a/b@v1"), r"\A[\w-]+/[\w/-]+@v\d+\Z")

    def test_workflow_runs_and_uploads_what_it_wrote(self):
        steps = [step for job in self.workflow()["jobs"].values() for step in job["steps"]]
        uploaded = [step["with"]["sarif_file"] for step in steps if "upload-sarif" in step.get("uses", "")]
        self.assertEqual(len(uploaded), 1)
        for host in HOSTS:
            for name, source in (("right", RIGHT), ("wrong", WRONG)):
                with self.subTest(host=host, program=name):
                    folder = self.path(f"{host}-{name}")
                    os.makedirs(folder)
                    self.write(f"{host}-{name}/app.c", source, 0o644)
                    self.write(f"{host}-{name}/known.supp", suppressions(), 0o644)
                    commands = [step["run"] for step in steps if "run" in step and not step["run"].startswith("sudo ")]
                    self.assertTrue(any("oriel check" in command for command in commands))
                    for command in commands:
                        done = self.run_in(folder, "bash", "-e", "-c", command, **self.environments[host])
                        found = name == "wrong" and "oriel check" in command
                        self.assertEqual(done.returncode, FINDINGS if found else 0, done.stdout + done.stderr)
                        self.assertEqual("error[C1]" in done.stderr + done.stdout, found)
                    self.assertTrue(os.path.getsize(os.path.join(folder, uploaded[0])))


if __name__ == "__main__":
    unittest.main()
