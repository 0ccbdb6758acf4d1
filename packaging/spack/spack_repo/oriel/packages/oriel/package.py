"""Oriel for Spack 1.0 and later, built from a checkout, for the one MPI of its dependency tree:

    spack repo add packaging/spack/spack_repo/oriel
    spack dev-build oriel@0.2.0 ^mpich@4        (or ^openmpi@4)"""

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Oriel(CMakePackage):
    """One-sided communication (windows) for unmodified MPI programs, in front of MPICH and Open MPI."""

    license("BSD-3-Clause")

    version("0.2.0")

    variant("ucx", default=True, description="Internode windows")

    depends_on("c", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("mpi")
    depends_on("jansson")
    depends_on("elfutils")
    depends_on("ucx@1.13:", when="+ucx")

    generator("ninja")

    conflicts("^mpich@:3", msg="Oriel needs MPICH 4 or later")
    conflicts("^openmpi@:3", msg="Oriel needs Open MPI 4 or later")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    def cmake_args(self):
        ucx = "ON" if self.spec.satisfies("+ucx") else "OFF"
        return [self.define("BUILD_TESTING", False), self.define("ORIEL_MPICC", self.spec["mpi"].mpicc),
                self.define("ORIEL_UCX", ucx)]

    def setup_run_environment(self, env):
        env.prepend_path("PKG_CONFIG_PATH", self.prefix.lib.pkgconfig)
