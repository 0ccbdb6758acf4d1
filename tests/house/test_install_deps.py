"""scripts/install-deps against stubs for the package tools: silent when everything is installed,
clear when it cannot help."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

SCRIPT = os.path.join(ROOT, "scripts", "install-deps")
NPM_CI = "npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --loglevel=error in web"


class InstallDeps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-deps.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.tree = os.path.join(self.folder, "tree")
        os.makedirs(os.path.join(self.tree, "web", "node_modules"))
        os.mkdir(os.path.join(self.tree, "scripts"))
        shutil.copy(SCRIPT, os.path.join(self.tree, "scripts"))
        os.symlink(shutil.which("grep"), os.path.join(self.folder, "grep"))
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

    def apt(self, user, missing=(), unknown=(), fails=False, offline=False):
        """A system with apt, where some packages are missing, and apt does not know some of them.
        Two files record the packages that were asked about, and the commands that change
        something."""
        found = "".join(f"    {name}) ;;\n" for name in missing)
        self.tool("dpkg-query", f'for word; do :; done; echo "$word" >> {self.folder}/asked\n'
                                f'case $word in\n{found}    *) echo installed ;;\nesac')
        self.tool("apt-get", 'case "$*" in\n    *--simulate*) %s exit ;;\n' % ("" if offline else 'echo "Inst a"; echo "Inst b";') +
                             f'esac\necho "$*" >> {self.folder}/calls\n'
                             f'[ "$1" = update ] || {{ echo "E: no route" >&2; exit {int(fails)}; }}')
        found = "".join(f"    {name}) ;;\n" for name in unknown)
        self.tool("apt-cache", f'for word; do :; done\ncase $word in\n{found}    *) echo "$word | 1" ;;\nesac')
        self.tool("id", f"echo {user}")
        self.tool("node", "")
        self.tool("busybox", "")
        self.npm()
        for name in ("testrdma", "herd7"):
            self.tool(f"tree/scripts/{name}", f'echo "{name} $*" >> {self.folder}/fetched; exit 77')
        self.tool("env", '[ "$1" = DEBIAN_FRONTEND=noninteractive ] && shift; "$@"')

    def npm(self, status=0):
        self.tool("npm", f'echo "npm $* in ${{PWD##*/}}" >> {self.folder}/calls; exit {status}')

    def run_script(self, *words):
        script = os.path.join(self.tree, "scripts", "install-deps")
        return subprocess.run(["/bin/bash", script, *words], env={"PATH": self.folder},
                              capture_output=True, text=True, timeout=600, check=False)

    def lines(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def calls(self):
        return self.lines("calls")

    def one_line(self, result, *words):
        """It failed with one line, which has these words."""
        self.assertEqual(result.returncode, 1, result.stderr)
        ours = [line for line in result.stderr.splitlines() if line.startswith("oriel: ")]
        self.assertEqual(len(ours), 1, result.stderr)
        for word in words:
            self.assertIn(word, ours[0])

    def test_nothing_happens_when_all_is_there(self):
        self.apt(user=1000)
        for words in ((), ("build",), ("build", "mpich"), ("pages",), ("test",)):
            result = self.run_script(*words)
            self.assertEqual((result.returncode, result.stdout + result.stderr, self.calls()),
                             (0, "", []), words)

    def test_a_tier_asks_for_its_own_packages_only(self):
        self.apt(user=0)
        asked = {}
        for words in ((), ("build",), ("build", "mpich"), ("pages", "openmpi"), ("test",)):
            self.assertEqual(self.run_script(*words).returncode, 0)
            asked[words] = set(self.lines("asked"))
            os.remove(os.path.join(self.folder, "asked"))
        self.assertEqual(asked[()], asked[("build",)])
        self.assertLess(len(asked[()]), 16)
        self.assertLess(asked[()], asked[("test",)])
        self.assertLess({"chromium", "valgrind", "qemu-system-x86"}, asked[("test",)] - asked[()])
        self.assertEqual(asked[()] - asked[("build", "mpich")], {"openmpi-bin", "libopenmpi-dev"})
        self.assertEqual(asked[()] - asked[("pages", "openmpi")], {"mpich", "libmpich-dev"})

    def test_wrong_use_has_status_2(self):
        for words in (("fly",), ("build", "fly"), ("test", "mpich"), ("mpich",),
                      ("build", "mpich", "openmpi")):
            result = self.run_script(*words)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("usage: ", result.stderr)

    def test_root_installs_what_is_missing_only_and_says_it_first(self):
        self.apt(user=0, missing=["libmpich-dev"])
        result = self.run_script()
        self.assertEqual((result.returncode, result.stdout.splitlines()), (0, [
            'oriel: the tier "build" needs these packages, which are missing: libmpich-dev',
            "oriel: installing 2 packages: these and what they depend on"]), result.stderr)
        self.assertEqual(self.calls(),
                         ["update -qq", "install -y -qq --no-install-recommends libmpich-dev"])

    def test_another_mpiexec_is_told(self):
        self.apt(user=0, missing=["openmpi-bin"])
        self.tool("mpiexec", "")
        self.tool("readlink", f'[ -e {self.folder}/calls ] && grep -q install {self.folder}/calls && echo /new || echo /old')
        told = self.run_script().stdout.splitlines()
        self.assertEqual(len(told), 3, told)
        self.assertIn("/new, before /old;", told[2])
        self.tool("readlink", "echo /old")
        self.assertEqual(len(self.run_script().stdout.splitlines()), 2)

    def test_others_use_sudo(self):
        self.apt(user=1000, missing=["libmpich-dev"])
        self.tool("sudo", f'echo sudo >> {self.folder}/calls; "$@"')
        self.assertEqual(self.run_script().returncode, 0)
        self.assertEqual(self.calls(), ["sudo", "update -qq", "sudo",
                                        "install -y -qq --no-install-recommends libmpich-dev"])

    def test_without_sudo_it_says_what_root_should_do(self):
        self.apt(user=1000, missing=["libmpich-dev"])
        self.one_line(self.run_script(), "as root: apt-get install libmpich-dev")
        self.assertEqual(self.calls(), [])

    def test_a_failed_installation_says_what_to_do(self):
        self.apt(user=0, missing=["libmpich-dev"], fails=True)
        result = self.run_script("pages")
        self.one_line(result, "could not install", "run scripts/install-deps pages again")
        self.assertIn("E: no route", result.stderr)

    def test_what_apt_does_not_know_is_named_and_the_rest_installed(self):
        self.apt(user=0, missing=["libmpich-dev", "libjemalloc2"], unknown=["libjemalloc2"])
        self.one_line(self.run_script("test"), "knows no libjemalloc2:", "network")
        self.assertEqual(self.calls()[1:], ["install -y -qq --no-install-recommends libmpich-dev"])
        self.apt(user=0, missing=["libmpich-dev"], unknown=["libmpich-dev"])
        self.one_line(self.run_script(), "knows no libmpich-dev:")
        self.assertEqual(self.calls()[2:], ["update -qq"])

    def test_one_of_several_names_is_enough(self):
        self.apt(user=0, missing=["libmimalloc2.0"])
        self.assertEqual((self.run_script("test").returncode, self.calls()), (0, []))
        self.apt(user=0, missing=["libmimalloc2.0", "libmimalloc3"], unknown=["libmimalloc2.0"])
        self.assertEqual(self.run_script("test").returncode, 0)
        self.assertEqual(self.calls()[1:], ["install -y -qq --no-install-recommends libmimalloc3"])

    def test_without_a_network_nothing_is_installed(self):
        self.apt(user=0, missing=["libmpich-dev"], offline=True)
        self.one_line(self.run_script(), "without a network")
        self.assertEqual(self.calls(), ["update -qq"])

    def test_packages_of_the_pages_match_the_lock_file(self):
        self.apt(user=1000)
        self.lock("package-lock.json", 3)
        self.assertEqual((self.run_script("build").returncode, self.calls()), (0, []))
        for count, tier in enumerate(("pages", "test"), 1):
            result = self.run_script(tier)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(self.calls(), [NPM_CI] * count)
        os.remove(os.path.join(self.tree, "web", "node_modules", ".package-lock.json"))
        self.assertEqual(self.run_script("pages").returncode, 0)
        self.assertEqual(len(self.calls()), 3)

    def test_npm_that_fails_or_is_missing_says_that_there_are_no_pages(self):
        self.apt(user=1000)
        self.lock("package-lock.json", 3)
        self.npm(status=1)
        self.one_line(self.run_script("pages"), "HTML pages are not built", "network")
        self.apt(user=1000, missing=["npm"])
        os.remove(os.path.join(self.folder, "npm"))
        result = self.run_script("pages")
        self.assertEqual(result.returncode, 1)
        self.assertIn("as root: apt-get install npm", result.stderr)
        self.assertIn("no npm, so the HTML pages are not built", result.stderr)

    def test_npm_is_installed_where_there_is_none(self):
        self.apt(user=0, missing=["npm"])
        os.remove(os.path.join(self.folder, "npm"))
        self.assertEqual(self.run_script("pages").returncode, 0)
        self.assertEqual(self.calls(), ["update -qq", "install -y -qq --no-install-recommends npm"])

    def test_what_is_fetched_is_for_tests_and_may_be_refused(self):
        self.apt(user=1000)
        for tier in ("build", "pages", "test"):
            self.assertEqual(self.run_script(tier).returncode, 0)
        self.assertEqual(self.lines("fetched"), ["testrdma fetch", "herd7 fetch"])

    def test_other_distribution_is_told_what_is_needed(self):
        result = self.run_script("build", "mpich")
        self.one_line(result, "no apt here", " libmpich-dev", " libjansson-dev", " ninja-build")
        self.assertEqual((result.stdout, "openmpi" in result.stderr), ("", False))


if __name__ == "__main__":
    unittest.main()
