"""The configuration of a build. Targets: `all` is the product, `tests/all` the tests. MPIs: per
host, the installation whose mpicc is first in PATH, or only those in ORIEL_MPICC. UCX: where it
is installed, unless ORIEL_UCX selects otherwise. The C library: glibc. The installation of these
tests is a wrapper and a header; test_dist.py builds for whole ones."""

import os
import re
import shutil
import unittest

from installation import BUILD, CC, HOSTS, ROOT, Case, run

WRAPPER = """#!/bin/sh
[ "$1" = -show ] && echo cc "-I{folder}" -lmpi
"""
HEADER = '#define MPICH_VERSION "4.9.9"\n'
ABI_HEADER = "#define MPI_ABI_VERSION 1\n#define MPI_ABI_SUBVERSION 2\n"


class Targets(Case):
    def objects(self, target):
        """What the compiler writes for a target."""
        commands = self.good("ninja", "-C", BUILD, "-t", "commands", target)
        return set(re.findall(r" -o (\S+\.o) -c ", commands))

    def test_the_product_is_built_without_tests_and_tests_with_the_products_objects(self):
        product, tests = self.objects("all"), self.objects("tests/all")
        own = {name for name in tests if name.startswith("tests/")}
        self.assertGreater(len(own), 500)
        self.assertEqual(product & own, set())
        self.assertEqual(tests - own - product, set())
        self.assertIn("cli/CMakeFiles/oriel_cli.dir/main.c.o", product & tests)

    def test_make_installs_and_builds_what_its_target_needs(self):
        for words, changes, tier, targets, last in (
                (["demo"], {"HOST": "some.node"}, "build", "", "oriel demo"),
                (["demo", "HOST=mpich"], {}, "build mpich", "", "oriel demo --host=mpich"),
                (["bench"], {}, "build", "", "oriel bench --quick"),
                (["test"], {}, "test", " --target all tests/all", "-L quick")):
            said = self.good("make", "-n", "-C", ROOT, f"BUILD={BUILD}", *words, MAKEFLAGS="",
                             **changes)
            lines = [" ".join(line.split()) for line in said.splitlines()]
            self.assertIn(f"scripts/install-deps {tier} || test $? -eq 1", lines)
            self.assertIn(f"cmake --build {BUILD}{targets}", lines)
            self.assertTrue(any(line.endswith(last) for line in lines), said)


class Hosts(Case):
    def setUp(self):
        super().setUp()
        self.write("mpi.h", HEADER)
        self.wrapper = self.write("mpicc", WRAPPER.format(folder=self.folder))
        os.chmod(self.wrapper, 0o755)

    def configure(self, *words, **changes):
        return run("cmake", "-S", ROOT, "-B", self.path("build"), "-G", "Ninja", f"-DCMAKE_C_COMPILER={CC}",
                   "-DBUILD_TESTING=OFF", *words, **changes)

    def found(self, *words, **changes):
        """Versions by host, and the configured parts."""
        result = self.configure(*words, **changes)
        self.assertEqual(result.returncode, 0, result.stderr)
        return dict(re.findall(r"^-- Host MPI: (\w+) (\S+)", result.stdout, re.M)), \
            re.search(r"^-- Oriel \S+ for: (.*)$", result.stdout, re.M).group(1).split(", ")

    def test_the_first_in_path_is_used(self):
        versions, hosts = self.found(PATH=f"{self.folder}:{os.environ['PATH']}")
        self.assertEqual((versions["mpich"], hosts), ("4.9.9", sorted({"mpich", *HOSTS} | set(hosts) & {"abi"})))

    def test_those_that_are_named_are_all(self):
        versions, hosts = self.found(f"-DORIEL_MPICC={self.wrapper}")
        self.assertEqual((versions, hosts), ({"mpich": "4.9.9"}, ["mpich"]))

    def test_a_relative_of_mpich_is_mpich(self):
        for version, shown in ('#define I_MPI_VERSION "2021.13"\n', "2021.13"), ("", "unknown"):
            self.write("mpi.h", "#define MPICH_NAME 4\n" + version)
            self.assertEqual(self.found(f"-DORIEL_MPICC={self.wrapper}"), ({"mpich": shown}, ["mpich"]))

    def test_a_wrapper_of_the_standard_abi_is_known_by_its_header(self):
        os.makedirs(self.path("abi"))
        self.write("abi/mpi.h", ABI_HEADER)
        wrapper = self.write("mpicc_abi", WRAPPER.format(folder=self.path("abi")))
        os.chmod(wrapper, 0o755)
        versions, hosts = self.found(f"-DORIEL_MPICC={self.wrapper};{wrapper}")
        self.assertEqual((versions, hosts), ({"mpich": "4.9.9", "abi": "1.2"}, ["abi", "mpich"]))

    def test_what_is_named_but_is_no_mpi_is_refused(self):
        self.write("empty", "#!/bin/sh\n")
        os.chmod(self.path("empty"), 0o755)
        for name, words in ((self.path("nothing"), "there is no program {}: give the wrapper's whole path"),
                            (self.path("empty"), "{} is for no MPI that Oriel knows: what it prints for -show or -showme does not lead"),
                            (self.wrapper, "{} is for the same interface \\(\\w+\\) as an earlier wrapper")):
            result = self.configure(f"-DORIEL_MPICC={self.wrapper};{name}")
            self.assertNotEqual(result.returncode, 0)
            self.assertRegex(" ".join(result.stderr.split()), "ORIEL_MPICC: " + words.format(re.escape(name)))

    def test_another_c_library_is_refused(self):
        compiler = shutil.which("musl-gcc")
        if not compiler:
            self.skipTest("no musl-gcc")
        result = self.configure(f"-DORIEL_MPICC={self.wrapper}", f"-DCMAKE_C_COMPILER={compiler}")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(f"Oriel needs glibc, and {compiler} compiles for another C library, such as musl: the "
                      "interposition of madvise and dlsym is glibc's", " ".join(result.stderr.split()))

    def built(self):
        """The sources of the internode transport."""
        with open(self.path("build", "build.ninja"), encoding="utf-8") as file:
            return set(re.findall(r"/src/transport/ucx/(\w+\.c)\b", file.read()))

    def test_ucx_is_left_out_on_request(self):
        for words in (["-DORIEL_UCX=AUTO"], ["-DORIEL_UCX=OFF"]):  # in the same folder
            self.found(*words, f"-DORIEL_MPICC={self.wrapper}")
            if words == ["-DORIEL_UCX=OFF"]:
                self.assertEqual(self.built(), {"no_ucx.c"})
        os.makedirs(self.path("nothing"))
        shutil.rmtree(self.path("build"))
        nowhere = {"PKG_CONFIG_LIBDIR": self.path("nothing"), "PKG_CONFIG_PATH": ""}
        self.found(f"-DORIEL_MPICC={self.wrapper}", **nowhere)
        self.assertEqual(self.built(), {"no_ucx.c"})
        result = self.configure(f"-DORIEL_MPICC={self.wrapper}", "-DORIEL_UCX=ON", **nowhere)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("ORIEL_UCX=ON, but pkg-config knows no ucx", result.stderr)


if __name__ == "__main__":
    unittest.main()
