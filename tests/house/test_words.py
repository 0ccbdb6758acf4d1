"""The house's words: columns, phrases that the glossary refuses, file names, static names, file
headers.

Each check is a generator of faults.  The tree has none; small texts that are wrong on purpose
have the expected ones."""

import collections
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = (".c", ".h", ".cpp", ".hpp")
COLUMNS_MOST = 100
STATIC_FILES_MOST = 4
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
STATIC = re.compile(r"^static [^=;({]*?\b(\w+)\((?!\()", re.M)
# Headers that name their callers go out of date; scripts/check-layers enforces the calls between
# layers.
CALLERS = re.compile(r"\bsays who\b|\bmay call\b|(?:^|[.;:]\s)[^.;:]*\bcalls?(?: (?:it|them))?\.?$"
                     r"|\b(?:used|called|included) by \w+\.[ch]\b|\w+\.[ch] calls? (?:it|them|this|the)\b"
                     r"|\binclude this file\b|\bmain calls\b|(?:^|\. )For \w+\.c\b")
# A comment inside an expression or a declaration: what precedes it ends in an operator, or in a
# type.
INNER = re.compile(r"(?:[=(?|&+<*/-]|\b(?:int|bool|void \*))$")
# The build selects one of these for each host.
VARIANTS = {"mpich", "openmpi", "abi"}


def sources(*folders, suffixes):
    """The files below folders, from the root on; no build folder and no package of npm's."""
    for folder in folders:
        for where, inner, names in os.walk(ROOT / folder):
            inner[:] = [name for name in inner if not name.startswith((".", "build")) and name != "node_modules"]
            for name in names:
                if name.endswith(suffixes):
                    yield (pathlib.Path(where) / name).relative_to(ROOT)


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


def plain(comment):
    """A comment as one line, without its delimiters."""
    return " ".join(re.sub(r"^\s*\*( |$)", "", line) for line in comment.strip("/*").splitlines()).strip()


def refused_phrases():
    """The code spans in the glossary's section of refused phrases."""
    section = text_of("docs/glossary.md").split("## Refused phrases", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"`([^`]+)`", section)


def long_lines(path, text):
    """Lines over the limit in code and Markdown, except for tables, links, code blocks, tables of
    rows (.def) and the marks of the checker's offenders (FINDS)."""
    is_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if path.suffix == ".md":
            is_block ^= line.lstrip().startswith("```")
            if is_block or re.match(r"\s*(\||```|<!--|    )", line) or "](" in line:
                continue
        if len(line) > COLUMNS_MOST and "/* FINDS " not in line:
            yield f"{path}:{number}: {len(line)} columns"


def phrases_in(path, text, phrases):
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, phrases)) + r")\b", re.I)
    if path.suffix == ".md":
        texts = [(1, text)]
    else:
        texts = [(text.count("\n", 0, match.start()) + 1, re.sub(r"\n\s*\*? ?", " ", match.group()))
                 for kind in (COMMENT, STRING) for match in kind.finditer(text)]
    for line, piece in texts:
        for match in pattern.finditer(piece):
            at = line + piece.count("\n", 0, match.start())
            yield f'{path}:{at}: the glossary refuses "{match.group()}"'


def same_names(paths):
    names = collections.defaultdict(list)
    for path in paths:
        if not VARIANTS & set(path.parts):
            names[path.name].append(str(path))
    for name, files_of in sorted(names.items()):
        if len(files_of) > 1:
            yield f"{name}: {', '.join(files_of)}"


def common_statics(texts):
    """texts: (path, text)."""
    files_of = collections.defaultdict(set)
    for path, text in texts:
        for name in STATIC.findall(text):
            if name not in ("__attribute__", "_Atomic"):
                files_of[name].add(str(path))
    for name, files in sorted(files_of.items()):
        if len(files) > STATIC_FILES_MOST:
            yield f"static {name} is in {len(files)} files"


def header_callers(path, text):
    head = COMMENT.match(text)
    if head and CALLERS.search(plain(head.group())):
        yield f"{path}: its header says who calls"


def inner_comments(path, text):
    """Comments inside an expression or a declaration: they belong before the statement."""
    code = COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in COMMENT.finditer(text):
        before = code[:match.start()].rstrip()
        line = before[before.rfind("\n") + 1:].strip()
        statement = before[max(before.rfind(end) for end in ";{}") + 1:]
        is_open = statement.count("(") > statement.count(")") and not line.endswith(",")
        if not line.startswith("#") and (INNER.search(line) or is_open):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: a comment inside an expression"


class Words(unittest.TestCase):
    maxDiff = None

    def none(self, faults):
        self.assertEqual(list(faults), [])

    def test_columns(self):
        paths = list(sources("src", "cli", "include", "bindings", "tests", suffixes=CODE))
        paths += [pathlib.Path(name) for name in ("Makefile", "CMakeLists.txt")]
        paths += sources("src", "cli", "bindings", "cmake", "tests", suffixes=("CMakeLists.txt", ".cmake"))
        paths += sources("bindings", suffixes=(".f90", ".inc", ".py"))
        paths += [path for path in sources("", suffixes=(".md",)) if path.name != "conformance.md"]
        self.none(fault for path in paths for fault in long_lines(path, text_of(path)))
        self.assertEqual(len(list(long_lines(pathlib.Path("a.c"), "x" * 101))), 1)
        self.assertEqual(list(long_lines(pathlib.Path("a.md"), "| " + "x" * 101)), [])

    def test_phrases(self):
        phrases = refused_phrases()
        self.assertGreater(len(phrases), 10)
        paths = list(sources("src", "cli", "include", "bindings", "tests", suffixes=(*CODE, ".def")))
        paths += [path for path in sources("", suffixes=(".md",)) if path.name not in ("glossary.md", "conformance.md")]
        self.none(fault for path in paths for fault in phrases_in(path, text_of(path), phrases))
        wrong = f"int x; /* seen by {phrases[0].split()[0]}\n * {' '.join(phrases[0].split()[1:])} */"
        self.assertEqual(len(list(phrases_in(pathlib.Path("a.c"), wrong, phrases))), 1)
        self.assertEqual(list(phrases_in(pathlib.Path("a.c"), f"int {phrases[0].replace(' ', '_')}_x;", phrases)), [])

    def test_inner_comments(self):
        paths = sources("src", "cli", suffixes=(".c", ".h"))
        self.none(fault for path in paths for fault in inner_comments(path, text_of(path)))
        for wrong in ("int x =\n    /* why */\n    f(y);\n", "f(a\n  /* why */\n  + b);\n", "static int\n    /* what */\n    x;\n"):
            self.assertEqual(len(list(inner_comments("a.c", wrong))), 1, wrong)
        for right in ("/* why */\nint x = f(y);\n", "int x; /* what */\n", "f(a, /* what */\n  b);\n", "#define X 1 + /* what */ 2\n"):
            self.assertEqual(list(inner_comments("a.c", right)), [], right)

    def test_file_names(self):
        self.none(same_names(sources("src", "cli", suffixes=(".c", ".h", ".def"))))
        twice = [pathlib.Path("src/a/x.c"), pathlib.Path("src/b/x.c")]
        self.assertEqual(len(list(same_names(twice))), 1)
        self.assertEqual(list(same_names([pathlib.Path("src/mpich/x.c"), pathlib.Path("src/openmpi/x.c")])), [])

    def test_static_names(self):
        self.none(common_statics((path, text_of(path)) for path in sources("src", "cli", suffixes=(".c",))))
        five = [(number, "static int tell(int x)\n{\n}\n") for number in range(5)]
        self.assertEqual(len(list(common_statics(five))), 1)
        self.assertEqual(list(common_statics(five[:4])), [])

    def test_headers(self):
        paths = list(sources("src", "cli", suffixes=(".c", ".h")))
        self.none(fault for path in paths for fault in header_callers(path, text_of(path)))
        for wrong in ("/* A table.  Creation and api/ call. */", "/* A table.\n * table.h says who calls. */",
                      "/* A table.  Only sync/ may call. */", "/* A table, used by lock.c and others. */",
                      "/* A table. Only lock.c and gate.c include this file. */", "/* A table. main calls it once. */"):
            self.assertEqual(len(list(header_callers("a.c", wrong))), 1, wrong)
        self.assertEqual(list(header_callers("a.c", "/* The table of host calls, one for each function. */")), [])


if __name__ == "__main__":
    unittest.main()
