"""Programs built against an installation by pkg-config, by CMake and by hand, with the commands of
the README and oriel(7). Oriel serves them with and without `oriel run`."""

import os
import re
import shutil
import unittest

from installation import HOSTS, PROGRAM, RANKS, ROOT, SANITIZE, VERSION, Case, launch, run, wrapper

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(oriel {version} REQUIRED COMPONENTS {host})
add_executable(bare app.c)
target_link_libraries(bare PRIVATE oriel::{host})
find_package(MPI REQUIRED COMPONENTS C)
add_executable(app app.c)
target_link_libraries(app PRIVATE oriel::{host} MPI::MPI_C)
add_executable(turned app.c)
target_include_directories(turned PRIVATE ${{MPI_C_INCLUDE_DIRS}})
target_link_libraries(turned PRIVATE ${{MPI_C_LIBRARIES}} oriel::{host})
"""

# The host's Fortran bindings make its calls: it refers to no symbol of Oriel's library.
FORTRAN = """
program app
  use mpi
  implicit none
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  integer :: length, error
  call MPI_Init(error)
  call MPI_Get_library_version(version, length, error)
  print '(a)', trim(merge('by Oriel   ', 'by the host', index(version, 'windows by Oriel') > 0))
  call MPI_Finalize(error)
end program
"""
FORTRAN_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(oriel REQUIRED COMPONENTS {host})
find_package(PkgConfig REQUIRED)
pkg_check_modules(listed REQUIRED IMPORTED_TARGET oriel-{host})
add_executable(app app.f90)
target_link_libraries(app PRIVATE oriel::{host} MPI::MPI_Fortran)
add_executable(by_list app.f90)
target_link_libraries(by_list PRIVATE PkgConfig::listed MPI::MPI_Fortran)
"""
# The module mpix_oriel is for programs with and without the library.
EXTENDED = """
program app
  use mpi_f08
  use mpix_oriel
  implicit none
  call MPI_Init()
  print '(a)', trim(merge('by Oriel   ', 'by the host', MPIX_Query_oriel()))
  call MPI_Finalize()
end program
"""
EXTENDED_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user C Fortran)
find_package(MPI REQUIRED COMPONENTS Fortran)
find_package(oriel REQUIRED COMPONENTS {host})
add_executable(app app.f90)
target_link_libraries(app PRIVATE oriel::{host}_fortran MPI::MPI_Fortran)
add_executable(linked app.f90)
target_link_libraries(linked PRIVATE oriel::{host}_fortran oriel::{host} MPI::MPI_Fortran)
"""


@unittest.skipIf(SANITIZE, "a sanitised library needs a sanitised program")
class Linked(Case):
    def setUp(self):
        super().setUp()
        self.install()
        self.write("app.c", PROGRAM)

    def flags(self, *names):
        return self.good("pkg-config", "--cflags", "--libs", *(f"oriel-{name}" for name in names),
                         PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig").split()

    def by_pkg_config(self, host):
        self.good(wrapper(host), self.path("app.c"), *self.flags(host), "-o", self.path(f"app-{host}"))
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

    def test_commands_of_the_pages_work(self):
        """Each command of the README and of oriel(7) that compiles app.c, copied literally."""
        commands = []
        for page in ("README.md", "docs/man/oriel.7.in"):
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = re.sub(r"\\\n +", "", file.read().replace("\\-", "-").replace("\\e", "\\"))
            found = re.findall(r"(?m)^ *(mpicc app\.c\b.*)", text)
            self.assertEqual(len(found), 1 if page == "README.md" else 2, page)
            commands += found
        for host in HOSTS:
            os.makedirs(self.path(f"bin-{host}"))
            os.chmod(self.write(f"bin-{host}/mpicc", f'#!/bin/sh\nexec "{wrapper(host)}" "$@"\n'), 0o755)
            for number, command in enumerate(commands):
                command = command.replace("PREFIX", self.prefix).replace("HOST", host).replace("oriel-mpich", f"oriel-{host}")
                app = self.path(f"copied-{host}-{number}")
                self.good("sh", "-c", f"cd '{self.folder}' && {command.split('#')[0]} -o '{app}'",
                          PATH=f"{self.path(f'bin-{host}')}:{os.environ['PATH']}",
                          PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig")
                self.served(launch(host, 2, app), 2)

    def test_by_cmake_in_either_order(self):
        for host in HOSTS:
            result = self.project(host)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.good("cmake", "--build", self.path(host, "build"))
            for program in ("bare", "app", "turned"):
                self.served(launch(host, 2, self.path(host, "build", program)), 2)

    def test_a_fortran_program_is_linked_with_the_library(self):
        self.write("app.f90", FORTRAN)
        for host in HOSTS:
            compiler = wrapper(host, "mpifort")
            programs = [self.path(f"fortran-{host}-{number}") for number in range(2)]
            for program, word in zip(programs, ("-g", "-Wl,--as-needed")):
                self.good(compiler, word, self.path("app.f90"), *self.flags(host), "-o", program)
            source = self.path(f"fortran-{host}")
            os.makedirs(source)
            self.write(f"fortran-{host}/CMakeLists.txt", FORTRAN_PROJECT.format(host=host))
            shutil.copy(self.path("app.f90"), source)
            self.good("cmake", "-S", source, "-B", f"{source}/build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                      f"-DMPI_Fortran_COMPILER={compiler}", "-DCMAKE_EXE_LINKER_FLAGS=-Wl,--as-needed",
                      PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig")
            self.good("cmake", "--build", f"{source}/build")
            for program in (*programs, f"{source}/build/app", f"{source}/build/by_list"):
                result = launch(host, 2, program)
                self.assertEqual((result.returncode, result.stdout.split("\n")), (0, ["by Oriel", "by Oriel", ""]),
                                 f"{program}\n{result.stderr}")

    def test_the_fortran_module(self):
        """By pkg-config and CMake, for programs that are preloaded or linked, and that lack Oriel."""
        self.write("app.f90", EXTENDED)
        for host in HOSTS:
            if not os.path.exists(f"{self.prefix}/lib/oriel/{host}/fortran"):
                self.skipTest("no Fortran module was built")
            compiler, folder = wrapper(host, "mpifort"), self.path(f"module-{host}")
            os.makedirs(folder)
            self.write(f"module-{host}/CMakeLists.txt", EXTENDED_PROJECT.format(host=host))
            shutil.copy(self.path("app.f90"), folder)
            self.good("cmake", "-S", folder, "-B", f"{folder}/build", f"-DCMAKE_PREFIX_PATH={self.prefix}",
                      f"-DMPI_Fortran_COMPILER={compiler}")
            self.good("cmake", "--build", f"{folder}/build")
            for name, packages in ("app", [f"{host}-fortran"]), ("linked", [f"{host}-fortran", host]):
                self.good(compiler, self.path("app.f90"), *self.flags(*packages), "-o", f"{folder}/{name}")
                for program in f"{folder}/{name}", f"{folder}/build/{name}":
                    for through in None, self.prefix:
                        result = launch(host, 2, program, through=through)
                        words = "by Oriel" if through or name == "linked" else "by the host"
                        self.assertEqual((result.returncode, result.stdout), (0, f"{words}\n{words}\n"),
                                         f"{program}\n{result.stderr}")

    def test_cmake_finds_no_host_that_is_not_installed(self):
        for host in HOSTS:
            shutil.rmtree(f"{self.prefix}/lib/oriel/{host}")
            result = self.project(host)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"Oriel is not installed for {host}", " ".join(result.stderr.split()))

    def examples(self, host, way):
        """The result of configuring the installed examples."""
        return run("cmake", "-S", f"{self.prefix}/share/oriel/examples",
                   "-B", self.path(f"examples-{host}-{way}"), f"-DMPI_C_COMPILER={wrapper(host)}",
                   f"-DORIEL_BY={way}", PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig")

    def test_the_examples_by_their_own_cmake_file(self):
        """Linked to Oriel in either way, or to the host alone, in all languages."""
        for host, way in ((HOSTS[0], "cmake"), (HOSTS[-1], "pkg-config"), (HOSTS[0], "none")):
            result = self.examples(host, way)
            self.assertEqual(result.returncode, 0, result.stderr)
            build = self.path(f"examples-{host}-{way}")
            programs = ["histogram"]
            programs += [f"histogram_{language.lower()}" for language in ("CXX", "Fortran")
                         if f"The examples in {language} are left out" not in result.stdout]
            self.good("cmake", "--build", build, "--target", *programs)
            for program in programs:
                linked = self.good("ldd", f"{build}/{program}")
                libraries = [os.path.normpath(path)
                             for path in re.findall(r"(?<= => )\S*/liboriel\S*", linked)]
                wanted = f"{self.prefix}/lib/oriel/{host}/liboriel_{host}.so.0"
                self.assertEqual(libraries, [] if way == "none" else [wanted])
                result = launch(host, 2, f"{build}/{program}")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertRegex(result.stdout, r"\Aright: .*\n\Z")

    def test_the_examples_name_what_is_missing(self):
        for host in HOSTS:
            shutil.rmtree(f"{self.prefix}/lib/oriel/{host}")
        for way, words in (("cmake", "set -DCMAKE_PREFIX_PATH to its prefix, or -DORIEL_BY=none"),
                           ("by", "ORIEL_BY is cmake, pkg-config or none, not 'by'")):
            result = self.examples(HOSTS[0], way)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(words, " ".join(result.stderr.split()))

    @unittest.skipIf(len(HOSTS) < 2, "needs two hosts")
    def test_a_program_never_gets_the_other_hosts_library(self):
        for host, other in (HOSTS, HOSTS[::-1]):
            app = self.by_pkg_config(host)
            self.served(launch(host, 2, app, LD_LIBRARY_PATH=f"{self.prefix}/lib/oriel/{other}"), 2)


if __name__ == "__main__":
    unittest.main()
