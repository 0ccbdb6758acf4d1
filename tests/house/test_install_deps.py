"""scripts/install-deps against stubs for the package tools: silent when everything is installed,
clear when it cannot help."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class InstallDeps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-deps.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = os.path.join(self.folder, "tree")
        os.makedirs(os.path.join(self.tree, "web", "node_modules"))
        os.mkdir(os.path.join(self.tree, "scripts"))
        shutil.copy(os.path.join(ROOT, "scripts", "install-deps"), os.path.join(self.tree, "scripts"))
        self.lock("package-lock.json", 1)
        self.lock("node_modules/.package-lock.json", 2)

    def lock(self, name, time):
        path = os.path.join(self.tree, "web", name)
        with open(path, "w", encoding="utf-8"):
            os.utime(path, (time, time))

    def tool(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def apt(self, user, missing=""):
        """A system with apt, where one package may be missing; a file records the commands that run
        as root or not."""
        self.tool("dpkg-query", f'for word; do :; done; [ "$word" = "{missing}" ] || echo installed')
        self.tool("apt-get", f'echo "$*" >> {self.folder}/calls')
        self.tool("id", f"echo {user}")
        self.tool("node", "")
        self.tool("busybox", "")
        self.tool("npm", f'echo "npm $* in ${{PWD##*/}}" >> {self.folder}/calls')
        self.tool("tree/scripts/testrdma", f'[ "$*" != fetch ] || echo testrdma fetch >> {self.folder}/kernels; exit 77')
        self.tool("env", '[ "$1" = DEBIAN_FRONTEND=noninteractive ] && shift; "$@"')

    def run_script(self):
        return subprocess.run(["/bin/bash", os.path.join(self.tree, "scripts", "install-deps")], env={"PATH": self.folder}, capture_output=True, text=True,
                              timeout=60, check=False)

    def calls(self):
        try:
            with open(os.path.join(self.folder, "calls"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def test_nothing_happens_when_all_is_installed(self):
        self.apt(user=1000)
        result = self.run_script()
        self.assertEqual((result.returncode, result.stdout, result.stderr, self.calls()), (0, "", "", []))

    def test_root_installs_only_missing_packages(self):
        self.apt(user=0, missing="libmpich-dev")
        result = self.run_script()
        self.assertEqual((result.returncode, result.stdout), (0, "oriel: installing libmpich-dev\n"), result.stderr)
        self.assertEqual(self.calls(),
                         ["update -qq", "install -y -qq --no-install-recommends libmpich-dev"])

    def test_others_use_sudo(self):
        self.apt(user=1000, missing="libmpich-dev")
        self.tool("sudo", f'echo sudo >> {self.folder}/calls; "$@"')
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(self.calls(), ["sudo", "update -qq", "sudo",
                                        "install -y -qq --no-install-recommends libmpich-dev"])

    def test_without_sudo_the_command_for_root_is_printed(self):
        self.apt(user=1000, missing="libmpich-dev")
        result = self.run_script()
        self.assertEqual((result.returncode, self.calls()), (1, []))
        self.assertIn("as root: apt-get install libmpich-dev", result.stderr)

    def test_packages_of_the_pages_match_the_lock_file(self):
        self.apt(user=1000)
        self.lock("package-lock.json", 3)
        result = self.run_script()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.calls(), ["npm ci --ignore-scripts --no-audit --no-fund --loglevel=error in web"])
        os.remove(os.path.join(self.tree, "web", "node_modules", ".package-lock.json"))
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(len(self.calls()), 2)

    def test_npm_is_installed_where_it_is_missing(self):
        self.apt(user=0, missing="npm")
        os.remove(os.path.join(self.folder, "npm"))
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(self.calls(), ["update -qq", "install -y -qq --no-install-recommends npm"])

    def test_the_kernel_of_guests_is_asked_for_and_may_be_refused(self):
        self.apt(user=1000)
        self.assertEqual(self.run_script().returncode, 0)
        with open(os.path.join(self.folder, "kernels"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "testrdma fetch\n")

    def test_other_distribution_gets_the_list_of_packages(self):
        result = self.run_script()
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("this distribution has no apt", result.stderr)
        for package in ("libmpich-dev", "libopenmpi-dev", "libjansson-dev", "ninja-build", "npm"):
            self.assertIn(f"  {package}\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
