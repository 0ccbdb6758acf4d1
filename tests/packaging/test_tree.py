"""The contents of an installation; its command finds its libraries at any location; and removal
works."""

import json
import os
import re
import shutil
import tempfile
import unittest

from installation import BUILD, CC, HOSTS, ROOT, SANITIZE, VERSION, Case, launch, run

WANTED = ["bin/oriel", "include/oriel/oriel.h", "include/oriel/mpi_rma.h", "include/oriel/mpi_win.hpp",
          "include/oriel/ext.h", "include/oriel/oriel_regions.f90",
          "lib/cmake/oriel/orielConfig.cmake", "lib/cmake/oriel/orielConfigVersion.cmake", "lib/oriel/bench/bench.py",
          "lib/oriel/bench/raw", "share/doc/oriel/LICENSE", "share/doc/oriel/README.md", "share/doc/oriel/docs/guides/checking.md",
          "share/doc/oriel/docs/images/report.png", "share/doc/oriel/docs/troubleshooting.md",
          "share/man/man1/oriel-demo.1", "share/oriel/examples/wordcount.c", "share/oriel/examples/words.h",
          f"share/modulefiles/oriel/{VERSION}.lua", "share/man/man1/oriel.1", "share/man/man3/oriel_last_error.3",
          "share/man/man3/oriel_version.3", "share/man/man5/oriel.5", "share/man/man7/oriel.7",
          "share/bash-completion/completions/oriel", "share/zsh/site-functions/_oriel",
          "share/fish/vendor_completions.d/oriel.fish", "share/oriel/python/oriel.py"]
WANTED += [f"share/oriel/examples/{name}" for name in os.listdir(os.path.join(ROOT, "examples"))
           if name not in ("programs.cmake", "__pycache__")]
# If the build has a Fortran compiler that the host's module mpi_f08 is for.
WANTED_OF_FORTRAN = ["lib/oriel/{0}/fortran/liboriel_fortran.a", "lib/oriel/{0}/fortran/mpix_oriel.mod",
                     "lib/pkgconfig/oriel-{0}-fortran.pc"]
WANTED_OF_HOST = ["lib/oriel/{0}/liboriel.so", "lib/oriel/{0}/liboriel_{0}.so.0", "lib/oriel/{0}/liboriel_check.so",
                  "lib/oriel/{0}/libtsan.so.2", "lib/oriel/{0}/rma", "lib/pkgconfig/oriel-{0}.pc",
                  "lib/oriel/{0}/examples/wordcount"]


def files_of(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


class Tree(Case):
    def check_works(self, prefix, oriel):
        """The command of an installation finds its libraries, runs and checks programs, and finds
        its benchmark."""
        info = json.loads(self.good(oriel, "info", "--json"))
        for host in info["hosts"]:
            if host["name"] in HOSTS:
                self.assertEqual((host["served"], host["liboriel"]), (True, f"{prefix}/lib/oriel/{host['name']}/liboriel.so"))
        for host in HOSTS:
            program = os.path.join(BUILD, "tests", "cli", host, "one_put")
            result = launch(host, 2, oriel, "run", program)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("windows by Oriel", result.stdout)
            if SANITIZE == "thread":  # the checker replaces its runtime
                continue
            result = launch(host, 2, oriel, "check", program)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("windows by Oriel", result.stdout)
            self.assertIn("oriel check: no problems on 2 ranks", result.stderr)
            mistaken = launch(host, 2, oriel, "check", os.path.join(BUILD, "tests", "cli", host, "mistaken"))
            # the checker has found the command, which resolves lines
            self.assertIn("mistaken.c:", mistaken.stderr)
        self.assertIn("fetch-and-op", self.good(oriel, "bench", "--list"))
        self.assertIn(" with Oriel", self.good(oriel, "demo", "--host", HOSTS[-1], "--ranks", 2))
        # pages can be built on this system
        if os.path.exists(os.path.join(BUILD, "share", "oriel", "report.html")):
            traces = tempfile.mkdtemp(dir=self.folder)
            launch(HOSTS[0], 2, oriel, "run", f"--trace={traces}/traces", os.path.join(BUILD, "tests", "cli", HOSTS[0], "one_put"))
            self.good(oriel, "report", "-o", f"{traces}/page.html", f"{traces}/traces")

    def test_all_files_are_installed(self):
        has_abi = os.path.exists(os.path.join(BUILD, "lib", "oriel", "abi", "liboriel.so"))
        hosts = [*HOSTS, "abi"] if has_abi else HOSTS
        self.install("oriel", *hosts)
        files = files_of(self.prefix)
        wanted = WANTED + [name.format(host) for host in hosts for name in WANTED_OF_HOST]
        wanted += [name.format(host) for host in hosts for name in WANTED_OF_FORTRAN
                   if os.path.exists(os.path.join(BUILD, "lib", "oriel", host, "fortran"))]
        for name in wanted:
            self.assertIn(name, files)
        self.assertEqual([name for name in files if "__pycache__" in name or name.endswith(".a") and name not in wanted], [])

    def test_links_of_pages_lead_to_existing_pages(self):
        self.install()
        pages = [name for name in files_of(f"{self.prefix}/share/doc/oriel") if name.endswith(".md")]
        self.assertIn("README.md", pages)
        for page in pages:
            with open(f"{self.prefix}/share/doc/oriel/{page}", encoding="utf-8") as file:
                for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read()):
                    self.assertTrue(os.path.exists(os.path.join(self.prefix, "share/doc/oriel", os.path.dirname(page), link)),
                                    f"{page}: {link}")

    def test_nothing_leads_back_to_the_build_folder(self):
        self.install()
        for name in files_of(self.prefix):
            with open(os.path.join(self.prefix, name), "rb") as file:
                if file.read(4) == b"\x7fELF":
                    self.assertNotIn(BUILD, self.good("readelf", "-d", os.path.join(self.prefix, name)), name)

    def test_works_where_it_was_installed_and_after_a_move(self):
        self.install()
        self.check_works(self.prefix, f"{self.prefix}/bin/oriel")
        moved = self.path("elsewhere")
        os.rename(self.prefix, moved)
        self.check_works(moved, f"{moved}/bin/oriel")
        os.symlink(f"{moved}/bin/oriel", self.path("oriel"))
        self.check_works(moved, self.path("oriel"))

    def test_one_hosts_libraries_alone_serve_that_host(self):
        for host in HOSTS:
            self.install("oriel", host)
            info = json.loads(self.good(f"{self.prefix}/bin/oriel", "info", "--json"))
            self.assertEqual([each["name"] for each in info["hosts"] if each["served"]], [host])
            shutil.rmtree(self.prefix)


class Make(Case):
    """`make install` and `make uninstall` themselves; the build folder's record of an earlier
    installation is preserved."""

    def setUp(self):
        super().setUp()
        for name in ("install_manifest.txt", "install_earlier.txt", "install_folders.txt"):
            path = os.path.join(BUILD, name)
            if os.path.exists(path):
                shutil.move(path, self.path(name))
                self.addCleanup(shutil.move, self.path(name), path)

    def make(self, target, destination, prefix="/opt/oriel"):
        return run("make", "-C", ROOT, "-o", "all", target, f"BUILD={BUILD}", f"CC={CC}", f"PREFIX={prefix}",
                   f"DESTDIR={destination}")

    def test_missing_pages_are_reported(self):
        """By the last step of the installation, which `make deb` runs as well."""
        with open(os.path.join(BUILD, "cmake_install.cmake"), encoding="utf-8") as file:
            last = re.findall(r"include\(\"(.*?)\"\)", file.read())[-1]
        self.assertEqual(last, os.path.join(ROOT, "packaging", "after.cmake"))
        for name in ("without", "with/share/oriel"):
            os.makedirs(self.path(name))
        self.write("with/share/oriel/report.html", "")
        for name, words in (("without", "oriel: the HTML pages.*scripts/install-deps pages.*\n"), ("with", "")):
            result = run("cmake", "-D", f"ORIEL_BUILD={self.path(name)}", "-P", last)
            self.assertEqual(result.returncode, 0)
            self.assertRegex(result.stderr, rf"\A{words}\Z")

    def test_all_may_read_it_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0o077))
        os.makedirs(self.path("dest"))
        self.assertEqual(self.make("install", self.path("dest")).returncode, 0)
        closed = [os.path.join(where, name) for where, *names in os.walk(self.path("dest")) for name in sum(names, [])
                  if os.stat(os.path.join(where, name)).st_mode & 0o044 != 0o044]
        self.assertEqual(closed, [])
        self.assertEqual(self.make("uninstall", self.path("dest")).returncode, 0)

    def test_uninstall_leaves_nothing(self):
        os.makedirs(self.path("dest"))
        for prefix in ("/opt/oriel", "/usr/local"):
            result = self.make("install", self.path("dest"), prefix)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("bin/oriel", files_of(self.path("dest") + prefix))
            result = self.make("uninstall", self.path("dest"), prefix)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.listdir(self.path("dest")), [])
        for prefix in ("/opt/oriel", "/"):  # into a folder that does not exist yet
            self.assertEqual(self.make("install", self.path("dest", "new"), prefix).returncode, 0)
            self.assertIn("bin/oriel", files_of(self.path("dest", "new") + prefix))
            self.assertEqual(self.make("uninstall", self.path("dest", "new"), prefix).returncode, 0)
            self.assertEqual(os.listdir(self.path("dest")), [])

    def test_uninstall_removes_what_earlier_installations_had(self):
        os.makedirs(self.path("dest"))
        for prefix in ("/opt/oriel", "/usr/local"):
            self.assertEqual(self.make("install", self.path("dest"), prefix).returncode, 0)
            with open(os.path.join(BUILD, "install_manifest.txt"), "a", encoding="utf-8") as file:
                file.write(f"\n{prefix}/share/oriel/earlier")
            self.write(f"dest{prefix}/share/oriel/earlier", "")
            self.assertEqual(self.make("install", self.path("dest"), prefix).returncode, 0)
        for prefix, left in (("/opt/oriel", ["usr"]), ("/usr/local", [])):
            result = self.make("uninstall", self.path("dest"), prefix)
            self.assertEqual((result.returncode, os.listdir(self.path("dest"))), (0, left), result.stderr)

    def test_uninstall_leaves_files_of_others(self):
        others = ["usr/local/bin", "usr/local/lib/pkgconfig", "usr/local/share/modulefiles/other"]
        for name in others:
            os.makedirs(self.path("dest", name))
        self.write("dest/usr/local/bin/other", "")
        for _ in range(2):  # the second installation finds the folders of the first one
            self.assertEqual(self.make("install", self.path("dest"), "/usr/local").returncode, 0)
        self.write("dest/usr/local/include/other.h", "")
        self.assertEqual(self.make("uninstall", self.path("dest"), "/usr/local").returncode, 0)
        found = sorted(os.path.relpath(where, self.path("dest")) for where, below, _ in os.walk(self.path("dest")) if not below)
        self.assertEqual(found, sorted(others + ["usr/local/include"]))
        self.assertEqual(files_of(self.path("dest")), ["usr/local/bin/other", "usr/local/include/other.h"])

    def test_a_place_is_the_same_however_it_is_written(self):
        relative = os.path.relpath(self.path("d e"), ROOT)
        spellings = (self.path("d e"), f"{relative}/", relative), ("/opt/oriel", "/opt//oriel/", "/usr/../opt/oriel")
        for destination, prefix in zip(*spellings):
            for end in spellings[0]:
                os.makedirs(self.path("d e"))
                self.assertEqual(self.make("install", destination, prefix).returncode, 0)
                self.assertIn("opt/oriel/bin/oriel", files_of(self.path("d e")))
                result = self.make("uninstall", end)
                self.assertEqual((result.returncode, os.listdir(self.path("d e"))), (0, []), result.stderr)
                os.rmdir(self.path("d e"))

    def test_a_prefix_that_nothing_can_be_preloaded_from_is_refused(self):
        os.makedirs(self.path("dest"))
        for prefix in ("/opt/oriel of mine", "/opt/oriel:0", "/opt/oriel;0", "/opt/oriel,0", "/opt/oriel$$0", "/opt/oriel\n0",
                       "/opt/o'riel", '/opt/o"riel', "/opt/o\\riel"):
            result = self.make("install", self.path("dest"), prefix)
            self.assertNotEqual(result.returncode, 0)
            shown = " ".join(prefix.replace("$$", "$").split())
            self.assertIn(f"libraries in '{shown}' cannot be preloaded or linked", " ".join(result.stderr.split()))
            self.assertEqual(os.listdir(self.path("dest")), [])

    def test_uninstall_refuses_unknown_builds(self):
        for destination, prefix, words in (("dest", "/opt/other", "set PREFIX to its prefix"),
                                           ("other", "/opt/oriel", "set DESTDIR as for its installation")):
            self.assertEqual(self.make("install", self.path("dest")).returncode, 0)
            before = files_of(self.path("dest"))
            result = self.make("uninstall", self.path(destination), prefix)
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(result.stderr, rf"(?m)^oriel: .*{words}$")
            self.assertEqual(files_of(self.path("dest")), before)
            self.assertEqual(self.make("uninstall", self.path("dest")).returncode, 0)
        result = self.make("uninstall", self.path("dest"))
        self.assertRegex(result.stderr, r"(?m)^oriel: nothing to remove")

    def test_uninstall_after_a_part_was_removed_by_hand(self):
        os.makedirs(self.path("dest"))
        self.assertEqual(self.make("install", self.path("dest")).returncode, 0)
        shutil.rmtree(self.path("dest/opt/oriel/share"))
        result = self.make("uninstall", self.path("dest"))
        self.assertEqual((result.returncode, os.listdir(self.path("dest"))), (0, []), result.stderr)

    def test_uninstall_reports_what_it_cannot_remove_and_can_continue(self):
        self.assertEqual(self.make("install", self.path("dest")).returncode, 0)
        page = self.path("dest/opt/oriel/share/doc/oriel/README.md")
        os.remove(page)
        os.mkdir(page)
        result = self.make("uninstall", self.path("dest"))
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, rf"(?m)^oriel: {page} cannot be removed: Is a directory; ")
        os.rmdir(page)
        self.assertEqual(self.make("uninstall", self.path("dest")).returncode, 0)
        self.assertEqual(files_of(self.path("dest")), [])


if __name__ == "__main__":
    unittest.main()
