"""The recipes of other package managers: versions and options are those of the build, and the files
that they list are installed. RPM's own tools read the spec. No distribution contains Spack and
EasyBuild: Spack's recipe runs against a stub of its modules, EasyBuild's file is executed, as
EasyBuild does. container.py reads the container file."""

import fnmatch
import os
import re
import shutil
import sys
import types
import unittest

import container
from installation import BUILD, HOSTS, ROOT, VERSION, Case

PACKAGING = os.path.join(ROOT, "packaging")
EASYBUILD = os.path.join(PACKAGING, "easybuild")
RECIPE = os.path.join(PACKAGING, "spack", "spack_repo", "oriel", "packages", "oriel", "package.py")


def cache():
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        return file.read()


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


class OfSpack(unittest.TestCase):
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
        for word in self.names["Oriel"]().cmake_args():
            name, kind = re.fullmatch(r"-D(\w+):(BOOL|STRING)=\S+", word).groups()
            self.assertRegex(cache(), rf"(?m)^{name}:{kind}=")

    def test_variants_reach_the_build(self):
        self.assertEqual([words for name, words, _ in self.spack.calls if name == "variant"], [("ucx",)])
        recipe = self.names["Oriel"]()
        for has_ucx, value in ((True, "ON"), (False, "OFF")):
            recipe.spec.has_ucx = has_ucx
            self.assertIn(f"-DORIEL_UCX:STRING={value}", recipe.cmake_args())

    def test_packages_that_the_build_uses_are_dependencies(self):
        known = {words[0].split("@")[0] for name, words, _ in self.spack.calls if name == "depends_on"}
        self.assertLessEqual({"mpi", "jansson", "elfutils", "cmake", "ninja", "python", "ucx", "pkgconfig"}, known)


def installed(prefix):
    return {os.path.relpath(os.path.join(where, name), prefix)
            for where, _, names in os.walk(prefix) for name in names}


class OfRpm(Case):
    SPEC = os.path.join(PACKAGING, "oriel.spec")

    def setUp(self):
        super().setUp()
        if not shutil.which("rpmspec"):
            self.skipTest("no rpmspec")
        self.text = self.good("rpmspec", "-P", self.SPEC)

    def sections(self):
        """The lines of %files by package."""
        found, name = {}, None
        for line in filter(None, self.text.splitlines()):
            start = re.fullmatch(r"%files(?: (\S+))?", line)
            if start:
                name = start.group(1) or "oriel"
                found[name] = []
            elif re.match(r"%(?!(dir|doc|license) )", line):
                name = None
            elif name:
                found[name].append(line)
        return found

    def test_its_tools_accept_it(self):
        packages = self.good("rpmspec", "-q", "--qf", "%{name} %{version}\\n", self.SPEC)
        self.assertEqual(packages.splitlines(),
                         [f"{name} {VERSION}" for name in ("oriel", "oriel-mpich", "oriel-openmpi")])
        if not shutil.which("rpmlint"):
            self.skipTest("no rpmlint")
        printed = self.good("rpmlint", "-r", os.path.join(PACKAGING, "oriel.rpmlintrc"), self.SPEC)
        self.assertIn(" 0 errors, 0 warnings", printed)

    def test_each_installed_file_is_in_one_package(self):
        libraries = self.good("rpmspec", "--eval", "%{_libdir}").strip()
        for name, lines in self.sections().items():
            if name not in ("oriel", *HOSTS):
                continue
            self.prefix = self.path(name)
            self.install(name)
            files = {"/usr/" + file for file in installed(self.prefix)}
            files = {re.sub("^/usr/lib/pkgconfig", f"{libraries}/pkgconfig", file) for file in files}
            listed = set()
            for line in lines:
                mark, path = re.fullmatch(r"(?:%(\w+) )?(/\S+)", line).groups()
                found = {file for file in files
                         if fnmatch.fnmatchcase(file, path) or file.startswith(f"{path}/")}
                self.assertTrue(found, f"{name}: {line}")
                listed |= found if mark != "dir" else set()
            self.assertEqual(files - listed, set(), name)

    def test_options_are_the_builds(self):
        for name in re.findall(r"-D(\w+)=", self.text.split("%build", 1)[-1]):
            self.assertRegex(cache(), rf"(?m)^{name}:")


class OfEasyBuild(Case):
    def parameters(self):
        names = os.listdir(EASYBUILD)
        self.assertEqual(len(names), 1)
        values = {}
        with open(os.path.join(EASYBUILD, names[0]), encoding="utf-8") as file:
            exec(compile(file.read(), names[0], "exec"), values)
        return names[0], values

    def test_name_and_version_are_right_and_nothing_is_missing(self):
        file, values = self.parameters()
        for name in ("easyblock", "name", "version", "homepage", "description", "toolchain",
                     "sources", "moduleclass"):
            self.assertTrue(values[name], name)
        self.assertEqual(values["version"], VERSION)
        self.assertEqual(file, "{name}-{version}-{toolchain[name]}-{toolchain[version]}.eb".format(**values))
        words = {"namelower": values["name"].lower(), "version": VERSION}
        self.assertEqual([source % words for source in values["sources"]], [f"oriel-{VERSION}.tar.gz"])

    def test_options_are_the_builds(self):
        _, values = self.parameters()
        for word in values["configopts"].split():
            self.assertRegex(cache(), rf"(?m)^{re.fullmatch(r'-D([A-Z_]+)=.+', word).group(1)}:")

    @unittest.skipIf("openmpi" not in HOSTS, "no Open MPI")
    def test_what_it_checks_is_installed(self):
        self.install("oriel", "openmpi")
        _, values = self.parameters()
        for name in values["sanity_check_paths"]["files"]:
            self.assertTrue(os.path.isfile(f"{self.prefix}/{name}"), name)
        for name in values["sanity_check_paths"]["dirs"]:
            self.assertTrue(os.path.isdir(f"{self.prefix}/{name}"), name)
        for words in values["sanity_check_commands"]:
            self.good("sh", "-c", words, PATH=f"{self.prefix}/bin:{os.environ['PATH']}")


class OfContainers(unittest.TestCase):
    def test_instructions_are_right(self):
        with open(container.CONTAINERFILE, encoding="utf-8") as file:
            self.assertEqual(list(container.faults(file.read())), [])

    def test_faults_are_found(self):
        for text, fault in (("RUN a", "RUN before FROM"), ("FROM a\nRUM b", "unknown instruction: RUM"),
                            ("FROM a\nCMD b", "CMD b"), ("FROM a IN b", "FROM a IN b"),
                            ("FROM a\nCOPY --from=b c d", "COPY from b, which is no earlier stage"),
                            ("FROM a\nCOPY no_such_file b", "COPY of no_such_file, which does not exist")):
            self.assertEqual(list(container.faults(text)), [fault])


if __name__ == "__main__":
    unittest.main()
