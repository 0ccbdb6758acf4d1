"""scripts/dist: the tarball has the committed files and the HTML bundles, and builds pages without
npm. It builds the product for MPIs in prefixes of their own, without UCX."""

import os
import re
import shlex
import shutil
import subprocess
import tarfile
import unittest

from installation import BUILD, CC, HOSTS, ROOT, SANITIZE, VERSION, Case, launch, run, wrapper

PAGES = {"report.html": "share/oriel/report.html", "library.js": "lib/oriel/bench/page/library.js"}

# The file, flags and library of an MPI in a prefix, with none of Debian's names: MPICH's releases
# name their library libmpi.so.12, and Intel MPI's wrappers have other names and print -Xlinker.
FOREIGN = {"mpich": ("cc-of-mpi", "-show", '-I"{0}/include" -L"{0}/lib" -Xlinker -rpath -Xlinker "{0}/lib" -lmpi',
                     "libmpi.so.12"),
           "openmpi": ("mpicc-of-mine", "-showme", "-I{0}/include -L{0}/lib -Wl,-rpath -Wl,{0}/lib -lmpi -pthread",
                       "libmpi.so.40")}
WRAPPER = """#!/bin/sh
flags='{flags}'
case $1 in
    {question}) echo {cc} "$flags" ;;
    -show*) exit 1 ;;
    *) eval exec {cc} '"$@"' "$flags" ;;
esac
"""


def soname_change(path, old, new):
    """Gives a library a name that is not longer, in its file."""
    with open(path, "rb") as file:
        data = file.read()
    names = (b"\0" + name.encode() for name in (old, new))
    old, new = (name + b"\0" for name in names)
    if data.count(old) != 1:
        raise AssertionError(f"{path} has its name {data.count(old)} times")
    with open(path, "wb") as file:
        file.write(data.replace(old, new.ljust(len(old), b"\0")))


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

    def unpacked(self):
        """The tarball's bytes, and the folder of its files."""
        result = self.dist()
        tarball = self.path("built", f"oriel-{VERSION}.tar.gz")
        self.assertEqual((result.returncode, result.stdout), (0, tarball + "\n"), result.stderr)
        with tarfile.open(tarball) as archive:
            archive.extractall(self.folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(self.folder)
        with open(tarball, "rb") as file:
            return file.read(), self.path(f"oriel-{VERSION}")

    def foreign(self, host):
        """A copy of a host in a prefix of its own: the wrapper and the library."""
        prefix = self.path("opt", host)
        name, question, flags, soname = FOREIGN[host]
        words = shlex.split(self.good(wrapper(host), "-show"))
        folders = {kind: [word[2:] for word in words if word.startswith(kind)] for kind in ("-I", "-L", "-l")}
        shutil.copytree(folders["-I"][0], f"{prefix}/include")
        os.makedirs(f"{prefix}/bin")
        os.makedirs(f"{prefix}/lib")
        library = f"{prefix}/lib/{soname}"
        shutil.copy(f"{folders['-L'][0]}/lib{folders['-l'][-1]}.so", library)
        os.symlink(soname, f"{prefix}/lib/libmpi.so")
        old = re.search(r"soname: \[(.*)\]", self.good("readelf", "-d", library)).group(1)
        if old != soname:
            soname_change(library, old, soname)
        with open(f"{prefix}/bin/{name}", "w", encoding="utf-8") as file:
            file.write(WRAPPER.format(flags=flags.format(prefix), question=question, cc=CC))
        os.chmod(f"{prefix}/bin/{name}", 0o755)
        return f"{prefix}/bin/{name}", library

    @unittest.skipIf(SANITIZE, "the build has no sanitiser")
    def test_it_serves_mpis_in_prefixes_of_their_own_without_ucx(self):
        _, source = self.unpacked()
        mpis = {host: self.foreign(host) for host in HOSTS}
        wrappers = ";".join(path for path, _ in mpis.values())
        printed = self.good("cmake", "-S", source, "-B", self.path("build"), "-G", "Ninja", f"-DCMAKE_C_COMPILER={CC}",
                            "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF", "-DORIEL_UCX=OFF", f"-DORIEL_MPICC={wrappers}")
        self.assertEqual(sorted(re.findall(r"^-- Host MPI: (\w+) \S+ \(C\)$", printed, re.M)), sorted(HOSTS))
        self.assertIn("No UCX (ORIEL_UCX=OFF): windows over several nodes are left to the host", printed)
        self.good("cmake", "--build", self.path("build"), limit_s=1500)
        self.good("cmake", "--install", self.path("build"), "--prefix", self.prefix)
        for host, (mpicc, library) in mpis.items():
            app = self.path(f"app-{host}")
            self.good(mpicc, os.path.join(ROOT, "tests", "cli", "one_put.c"), "-o", app)
            self.assertIn(f"=> {library} ", self.good("ldd", app))
            self.assertIn(f"served by {self.prefix}/lib/oriel/{host}/liboriel.so",
                          self.good(f"{self.prefix}/bin/oriel", "info", app))
            for nodes, line in (({}, None), ({"ORIEL_NODE_SIZE": "1"}, "oriel: rank 0: the host creates windows over "
                                             "several nodes: built without UCX [O12]\n")):
                result = launch(host, 2, app, through=self.prefix, **nodes)
                self.assertEqual((result.returncode, result.stdout.count("memory=42\n"), result.stderr),
                                 (0, 2, line or ""), result.stdout)
                self.assertEqual(result.stdout.count(f"windows by Oriel {VERSION}"), 2)
            program = f"{self.prefix}/lib/oriel/{host}/examples/histogram"
            self.assertIn(f"=> {library} ", self.good("ldd", program))

    def test_a_tarball_has_the_pages_and_needs_no_npm(self):
        first, source = self.unpacked()
        shutil.rmtree(source)
        self.assertEqual(self.unpacked()[0], first)
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
