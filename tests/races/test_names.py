"""The names of functions that only a build with ThreadSanitizer uses: neither the linker nor the sanitizer reports one
that no longer exists.

Each function that the libraries' links wrap is defined in src/, and its wrapper in this folder.  Each function in
../races.supp is defined in src/."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def text_of(folder, pattern):
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob(pattern)))


def undefined(names, sources):
    """The names that no line of the sources begins the definition of."""
    return [name for name in names
            if not re.search(rf"^(?:\w[\w *]*[ *])?{name}\([^;{{}}]*\)\s*\{{", sources, re.MULTILINE)]


class Names(unittest.TestCase):
    def setUp(self):
        self.sources = text_of("src", "*.c")
        links = (ROOT / "src" / "CMakeLists.txt").read_text(encoding="utf-8")
        self.wrapped = re.findall(r"--wrap=(oriel_\w+)", links)
        self.wrapped += [f"oriel_{name}" for names in re.findall(r"foreach\(operation ([^)]*)\)", links)
                         for name in names.split()]

    def test_wrapped_functions_exist(self):
        self.assertIn("oriel_put", self.wrapped)
        self.assertEqual(undefined(self.wrapped, self.sources), [])

    def test_wrapped_functions_are_those_with_a_wrapper(self):
        wrappers = text_of("tests/races", "*.c")
        made = re.findall(r"FOR_OTHERS(?:_IF)?\(.*?\b(oriel_\w+),\s*\(", wrappers, re.DOTALL)
        made += re.findall(r"^\w+ __wrap_(\w+)\(", wrappers, re.MULTILINE)
        self.assertEqual(sorted(made), sorted(self.wrapped))

    def test_suppressed_functions_exist(self):
        rows = (ROOT / "tests" / "races.supp").read_text(encoding="utf-8")
        names = re.findall(r"^\w+:\^?([a-z_]+)\$?$", rows, re.MULTILINE)
        self.assertIn("net_thread_start", names)
        self.assertEqual(undefined(names, self.sources + text_of("tests/gpu", "*.c")), [])


if __name__ == "__main__":
    unittest.main()
