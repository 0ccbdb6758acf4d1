"""Shared by the tests of the command line: paths, and starting `oriel` in a clean environment.

The caller's launcher, preload and options do not reach the command under test."""

import os
import shutil
import subprocess
import tempfile
import unittest

BUILD = os.environ["TESTS_BUILD"]
CC = os.environ["TESTS_CC"]
HOSTS = os.environ["TESTS_HOSTS"].split(",")
SANITIZE = os.environ["TESTS_SANITIZE"]
ORIEL = os.path.join(BUILD, "bin", "oriel")
HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(os.path.dirname(HERE), "launch")

LIMIT_S = 600  # of one command, which takes a second: only a hang reaches it, also on a busy machine

FOREIGN = ("ORIEL_", "OMPI_", "PMI", "MPI_LOCAL", "HYD", "MPIR_", "LD_PRELOAD")


def environment(**changes):
    env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    env["LC_ALL"] = "C"
    env["XDG_CONFIG_HOME"] = "/nonexistent"  # the caller's settings file
    if "address" in SANITIZE:
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"
    env.update(changes)
    return env


def start(*command, folder=None, **changes):
    return subprocess.run([str(word) for word in command], env=environment(**changes), capture_output=True,
                          text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, cwd=folder)


def program(host, name):
    return os.path.join(BUILD, "tests", "cli", host, name)


def liboriel(host, build=BUILD):
    return os.path.join(build, "lib", "oriel", host, "liboriel.so")


class Case(unittest.TestCase):
    """A test with a temporary folder."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-cli.")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o755):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def compile(self, name, source, *flags):
        self.write(name + ".c", source, 0o644)
        subprocess.run([CC, self.path(name + ".c"), "-o", self.path(name), *flags], check=True, capture_output=True)
        return self.path(name)

    def tree(self, *hosts):
        """An installation in which Oriel is built for the given hosts only; returns the path of its
        command."""
        os.makedirs(self.path("tree/bin"))
        shutil.copy(ORIEL, self.path("tree/bin/oriel"))
        for host in hosts:
            os.makedirs(self.path(f"tree/lib/oriel/{host}"))
            shutil.copy(liboriel(host), liboriel(host, self.path("tree")))
        return self.path("tree/bin/oriel")

    def refused(self, result, *words):
        """Status 2, nothing on stdout, and one line on stderr that begins with the command's name
        and contains these words."""
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertRegex(result.stderr, r"\Aoriel: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, result.stderr)
