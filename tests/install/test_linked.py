"""Programs that are built against an installation by pkg-config and by CMake are served by it, without `oriel run` and
with it."""

import os
import shutil
import unittest

from place import HOSTS, PROGRAM, RANKS, SANITIZE, VERSION, Case, launch, run

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(MPI REQUIRED COMPONENTS C)
find_package(oriel {version} REQUIRED COMPONENTS {host})
add_executable(app app.c)
target_link_libraries(app PRIVATE oriel::{host} MPI::MPI_C)
add_executable(turned app.c)
target_include_directories(turned PRIVATE ${{MPI_C_INCLUDE_DIRS}})
target_link_libraries(turned PRIVATE ${{MPI_C_LIBRARIES}} oriel::{host})
"""


def wrapper(host):
    found = shutil.which(f"mpicc.{host}") or shutil.which("mpicc")
    if not found:
        raise unittest.SkipTest(f"no mpicc of {host}")
    return found


@unittest.skipIf(SANITIZE, "a sanitised library needs a sanitised program")
class Linked(Case):
    def setUp(self):
        super().setUp()
        self.install()
        self.write("app.c", PROGRAM)

    def by_pkg_config(self, host):
        flags = self.good("pkg-config", "--cflags", "--libs", f"oriel-{host}",
                          PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig").split()
        self.good(wrapper(host), self.path("app.c"), *flags, "-o", self.path(f"app-{host}"))
        return self.path(f"app-{host}")

    def project(self, host):
        os.makedirs(self.path(host))
        self.write(f"{host}/CMakeLists.txt", PROJECT.format(host=host, version=VERSION))
        shutil.copy(self.path("app.c"), self.path(host))
        return run("cmake", "-S", self.path(host), "-B", self.path(host, "build"), f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DMPI_C_COMPILER={wrapper(host)}")

    def test_by_pkg_config(self):
        for host in HOSTS:
            app = self.by_pkg_config(host)
            for ranks in RANKS:
                self.served(launch(host, ranks, app), ranks)
            self.served(launch(host, 2, app, user=os.geteuid() == 0), 2)
            self.served(launch(host, 2, app, through=self.prefix), 2)
            version = self.good("pkg-config", "--modversion", f"oriel-{host}", PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig")
            self.assertEqual(version, VERSION + "\n")

    def test_by_cmake_in_either_order(self):
        for host in HOSTS:
            result = self.project(host)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.good("cmake", "--build", self.path(host, "build"))
            for program in ("app", "turned"):
                self.served(launch(host, 2, self.path(host, "build", program)), 2)

    def test_cmake_finds_no_host_that_is_not_installed(self):
        for host in HOSTS:
            shutil.rmtree(f"{self.prefix}/lib/oriel/{host}")
            result = self.project(host)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"Oriel is not installed for {host}", " ".join(result.stderr.split()))

    @unittest.skipIf(len(HOSTS) < 2, "needs two hosts")
    def test_a_program_never_gets_the_other_hosts_library(self):
        for host, other in (HOSTS, HOSTS[::-1]):
            app = self.by_pkg_config(host)
            self.served(launch(host, 2, app, LD_LIBRARY_PATH=f"{self.prefix}/lib/oriel/{other}"), 2)


if __name__ == "__main__":
    unittest.main()
