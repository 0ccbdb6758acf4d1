"""scripts/dist: the tarball has the committed files and the HTML bundles, and builds pages without
npm."""

import os
import shutil
import subprocess
import tarfile
import unittest

from place import BUILD, ROOT, VERSION, Case, run

PAGES = {"report.html": "share/oriel/report.html", "library.js": "lib/oriel/bench/page/library.js"}


@unittest.skipUnless(os.path.isdir(os.path.join(ROOT, ".git")) or os.path.isfile(os.path.join(ROOT, ".git")),
                     "not a git checkout")
class Dist(Case):
    def setUp(self):
        super().setUp()
        self.clone = self.path("clone")
        self.good("git", "clone", "-q", ROOT, self.clone)
        for page in PAGES.values():
            os.makedirs(os.path.dirname(self.path("built", page)))
            with open(self.path("built", page), "w", encoding="utf-8") as file:
                file.write(f"the text of {page}\n")

    def dist(self):
        return run(os.path.join(self.clone, "scripts", "dist"), self.path("built"))

    def test_a_tarball_has_the_pages_and_needs_no_npm(self):
        result = self.dist()
        tarball = self.path("built", f"oriel-{VERSION}.tar.gz")
        self.assertEqual((result.returncode, result.stdout), (0, tarball + "\n"), result.stderr)
        with open(tarball, "rb") as file:
            first = file.read()
        self.dist()
        with open(tarball, "rb") as file:
            self.assertEqual(file.read(), first)
        with tarfile.open(tarball) as archive:
            archive.extractall(self.folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(self.folder)
        source = self.path(f"oriel-{VERSION}")
        self.assertFalse(os.path.exists(os.path.join(source, "web", "node_modules")))
        self.good("cmake", "-S", source, "-B", self.path("build"), "-G", "Ninja", "-DBUILD_TESTING=OFF")
        self.good("cmake", "--build", self.path("build"), "--target", "web_report", "web_bench")
        for page in PAGES.values():
            with open(self.path("build", page), encoding="utf-8") as file:
                self.assertEqual(file.read(), f"the text of {page}\n")

    def test_what_is_missing_is_named(self):
        os.remove(self.path("built", PAGES["report.html"]))
        result = self.dist()
        self.assertEqual(result.returncode, 1)
        self.assertIn("report.html is missing: run scripts/install-deps pages", result.stderr)

    def test_changes_that_are_not_committed_are_refused(self):
        with open(os.path.join(self.clone, "README.md"), "a", encoding="utf-8") as file:
            file.write("more\n")
        result = self.dist()
        self.assertEqual(result.returncode, 1)
        self.assertIn("not committed", result.stderr)

    def test_a_tarball_is_made_from_a_checkout_only(self):
        shutil.rmtree(os.path.join(self.clone, ".git"))
        result = subprocess.run([os.path.join(self.clone, "scripts", "dist"), BUILD], capture_output=True, text=True,
                                env=dict(os.environ, GIT_CEILING_DIRECTORIES=self.folder), check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a git checkout", result.stderr)


if __name__ == "__main__":
    unittest.main()
