"""The Spack recipe, against a stub of Spack's own modules: its options are those of the build.
Whether Spack itself accepts it is not tested: no distribution contains Spack."""

import os
import re
import sys
import types
import unittest

from installation import BUILD, ROOT, VERSION

RECIPE = os.path.join(ROOT, "packaging", "spack", "spack_repo", "oriel", "packages", "oriel", "package.py")


class Spack(types.ModuleType):
    """spack.package and its CMake build system in one: directives record their arguments."""

    def __init__(self):
        super().__init__("spack.package")
        self.calls = []
        for name in ("version", "variant", "depends_on", "conflicts", "license", "generator"):
            setattr(self, name, lambda *words, _name=name, **options: self.calls.append((_name, words, options)))

        class Spec(dict):
            has_ucx = True

            def satisfies(self, variant):
                return variant == ("+ucx" if self.has_ucx else "~ucx")

        class CMakePackage:
            spec = Spec(mpi=types.SimpleNamespace(mpicc="/spack/mpich/bin/mpicc"))

            def define(self, name, value):
                return f"-D{name}:STRING={value}" if isinstance(value, str) else f"-D{name}:BOOL={'ON' if value else 'OFF'}"

        self.CMakePackage = CMakePackage


class Recipe(unittest.TestCase):
    def setUp(self):
        self.spack = Spack()
        self.spack.__all__ = [name for name in vars(self.spack) if not name.startswith("_")]
        for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["spack.package"] = sys.modules["spack_repo.builtin.build_systems.cmake"] = self.spack
        self.names = {}
        with open(RECIPE, encoding="utf-8") as file:
            # a recipe is Python that Spack executes
            exec(compile(file.read(), RECIPE, "exec"), self.names)

    def test_version_is_that_of_the_header(self):
        self.assertEqual([words for name, words, _ in self.spack.calls if name == "version"], [(VERSION,)])

    def test_options_are_the_builds(self):
        with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
            cache = file.read()
        for word in self.names["Oriel"]().cmake_args():
            name, kind = re.fullmatch(r"-D(\w+):(BOOL|STRING)=\S+", word).groups()
            self.assertRegex(cache, rf"(?m)^{name}:{kind}=")

    def test_variants_reach_the_build(self):
        self.assertEqual([words for name, words, _ in self.spack.calls if name == "variant"], [("ucx",)])
        recipe = self.names["Oriel"]()
        for has_ucx, value in ((True, "ON"), (False, "OFF")):
            recipe.spec.has_ucx = has_ucx
            self.assertIn(f"-DORIEL_UCX:STRING={value}", recipe.cmake_args())

    def test_packages_that_the_build_uses_are_dependencies(self):
        known = {words[0].split("@")[0] for name, words, _ in self.spack.calls if name == "depends_on"}
        self.assertLessEqual({"mpi", "jansson", "elfutils", "cmake", "ninja", "python", "ucx", "pkgconfig"}, known)


if __name__ == "__main__":
    unittest.main()
