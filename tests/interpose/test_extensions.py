"""The functions of <oriel/ext.h> are the same, with the same parameters, in the header, the table of
entries, the Fortran module and the Python module, and exported.

The environment variable TESTS_CC names the C compiler, which expands the table's macros."""

import ast
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def split_parameters(text):
    """[(type, name)] of a C parameter list. Arrays are pointers."""
    found = []
    for parameter in text.split(","):
        kind, name, array = re.fullmatch(r"\s*(.*?)\s*(\w+)(\[\])?\s*", parameter, re.S).groups()
        found.append((" ".join(kind.replace("*", " * ").split()) + (" *" if array else ""), name))
    return found


def rows(pattern, text):
    return {name: split_parameters(parameters) for name, parameters in re.findall(pattern, text)}


def of_header():
    return rows(r"ORIEL_EXTENSION_\((\w+),\s*\(([^)]*)\)\)", text_of("include", "oriel", "ext.h"))


def of_table():
    table = os.path.join(ROOT, "src", "host", "extensions.def")
    text = subprocess.run([os.environ["TESTS_CC"], "-E", "-P", "-x", "c", table], capture_output=True,
                          text=True, check=True).stdout
    return rows(r"EXTENSION\((\w+),\s*\(([^)]*)\)", text)


def of_fortran():
    """The dummy arguments by public name, and the public constants."""
    module = text_of("bindings", "fortran", "mpix_oriel.f90")
    counted = text_of("bindings", "fortran", "mpix_counted.inc")
    constants = dict(re.findall(r"(MPIX_[A-Z_]+) = (\d+)",
                                text_of("bindings", "fortran", "mpix_shims.f90")))
    public = {name for line in re.findall(r"^  public :: (.*)$", module, re.M)
              for name in line.split(", ")}
    generic = dict(re.findall(r"interface (\w+)\s+module procedure (\w+)\s", counted))
    joined = re.sub(r"&\n\s*", "", counted + module)
    arguments = {name: words.split(", ")
                 for name, words in re.findall(r"^  subroutine (\w+)\((.*)\)$", joined, re.M)}
    found = {name[len("MPIX_"):]: arguments[generic.get(name, name)]
             for name in public - set(constants) - {"MPIX_Query_oriel", "MPIX_Memory_handle"}}
    return found, {name: int(value) for name, value in constants.items() if name in public}


def of_python():
    """The parameters' types by name, the public functions, and the constants."""
    tree = ast.parse(text_of("bindings", "python", "oriel.py"))
    values = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                pass
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            first, last = (ast.literal_eval(argument) for argument in node.value.args)
            values.update(zip((name.id for name in node.targets[0].elts), range(first, last)))
    functions = {node.name for node in tree.body
                 if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    return values, functions


class Extensions(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.header = of_header()

    def test_the_table_has_the_functions_of_the_header(self):
        self.assertEqual(of_table(), self.header)

    def test_each_is_exported(self):
        for host in ("mpich", "openmpi", "abi"):
            exports = set(text_of("tests", "interpose", f"exports.{host}.txt").split())
            wanted = {f"{prefix}MPIX_{name}" for name in (*self.header, "Query_oriel") for prefix in ("", "P")}
            wanted.remove("MPIX_Query_oriel")  # inline
            self.assertEqual(wanted - exports, set())

    def test_the_fortran_module_has_them_with_the_same_arguments(self):
        functions, constants = of_fortran()
        wanted = {name: [word for _, word in parameters] + ["ierror"]
                  for name, parameters in self.header.items()}
        self.assertEqual(functions, wanted)
        self.assertEqual(constants, self.constants())

    def test_the_python_module_has_them_with_the_same_parameters(self):
        values, functions = of_python()
        wanted = {name: " ".join("pointer" if "*" in kind else kind.replace("MPI_", "")
                                 for kind, _ in parameters)
                  for name, parameters in self.header.items()}
        self.assertEqual(values["_PARAMETERS"], wanted)
        self.assertEqual(functions - {"query"}, set(wanted))
        constants = {f"MPIX_{name}": value for name, value in values.items()
                     if isinstance(value, int) and name != "MEMORY_HANDLE_BYTES"}
        self.assertEqual(constants, self.constants())

    def constants(self):
        """Those of the header's enumerations."""
        found = {}
        for body in re.findall(r"^enum \{ (.*?) \};", text_of("include", "oriel", "ext.h"), re.M):
            value = -1
            for word in body.split(", "):
                name, _, given = word.partition(" = ")
                found[name] = value = int(given) if given else value + 1
        self.assertIn("MPIX_CMP_GE", found)
        return found


unittest.main()
