"""The results of scripts/release-check: a file for each tree that was checked, KEY.jsonl.

The key is a hash of the names, modes and contents of the tree's files, committed or not. Files that
few rows read are no part of it, such as documents: they have a hash of their own, which is recorded
with the results of these rows, and the results of other rows hold whatever these files contain. The
versions of compilers and MPIs are recorded, and are not part of the key: a machine with one newer
package, or another kernel, need not repeat everything, and the page shows both versions.

A line of the file is one JSON object: the rows that a suite has, with what they ran on, or one
result. A line is written in one piece, so that a run that is killed loses no result that it had.

The tree carries the results that its pages show (CARRIED): anyone can look at them, and another
machine continues there as long as the key is the same."""

import collections
import contextlib
import hashlib
import json
import lzma
import os
import re
import subprocess
import tempfile

from debian_root import source_files

DOCUMENT = re.compile(r"docs/(?!man/|CMakeLists[.]txt$)|tests/docs/|[.](github|ci)/|.*[.]md$|(LICENSE|CITATION[.]cff|mkdocs[.]yml)$"
                      # what selects rows and writes their results
                      r"|scripts/(release-check|release_suites[.]py|release_results[.]py|test-status)$")
ALL_FILES = r"house[.]words$|packaging[.](tree|linked|dist|debian)$"  # rows that read every part
READS_DOCUMENTS = re.compile(r"docs[.]|house[.](decisions|readme_figures|release_check)$|checker[.]rules$|conformance[.]page$|" + ALL_FILES)
# Files that few rows read, and these rows.
Part = collections.namedtuple("Part", "files rows")
PARTS = {
    "documents": Part(DOCUMENT, READS_DOCUMENTS),
    "mutants": Part(re.compile(r"tests/(\w+/mutants\w*|mutation)[.]py$"), re.compile(r"\w+[.](mutants|mutant_rows|races)$|conformance[.]|" + ALL_FILES)),
    "reasons": Part(re.compile(r"tests/coverage/reasons$"), re.compile(r"house[.]coverage|" + ALL_FILES)),
    "packaging": Part(re.compile(r"tests/packaging/\w+[.]py$"), re.compile(r"(packaging|docs)[.]|" + ALL_FILES)),
}
# Folders of tests, and whose rows read them, by the first word of their names. The others, such as tests/mpi, are read by most
# rows or by the product's build. house.release_check looks for readers that are missing here.
FOLDERS = {
    "bindings": "checker cxx fortran gpu observe python",
    "checker": "checker cli",
    "checker/order": "order",
    "checker/random_programs": "random_programs",
    "cli": "cli",
    "examples": "examples",
    "fuzz": "calls parsers soak",
    "house": "house",
    "integration": "arrays coarrays",
    "interpose": "interpose",
    "litmus": "litmus",
    "memcheck": "memcheck",
    "models": "models",
    "net": "net slurm",
    "observe": "cli observe page",
    "page": "observe page",
    "protocol": "protocol",
    "slurm": "slurm",
    "soak": "soak",
}
READ_ALL_FOLDERS = ("conformance", "docs", "house", "packaging")
for folder, readers in FOLDERS.items():
    inner = "".join(rf"|{other.removeprefix(folder + '/')}/" for other in FOLDERS if other.startswith(folder + "/"))
    PARTS[folder] = Part(re.compile(rf"tests/{folder}/(?!mutants{inner})"),
                         # a row without a dot is a command of a suite
                         re.compile(rf"({'|'.join([*readers.split(), *READ_ALL_FOLDERS])})[.]|[^.]+$"))
# What scripts/test-status writes into pages is no part of them here: it is made of the results.
BEGIN, END = "<!-- made by scripts/test-status -->\n", "<!-- the end of what scripts/test-status makes -->\n"
MADE = re.compile((BEGIN + ".*?" + END).encode(), re.DOTALL)

# A line with the key and the hashes of the parts, and the results without the output of failed rows. No part of the key.
CARRIED = os.path.join("docs", "results", "release-check.jsonl.xz")

BUILD_ROW = "build"  # the only row of a suite that could not be built
STATES = ("passed", "skipped", "failed", "flaky", "open")


def default_folder():
    return os.path.expanduser("~/.cache/oriel/release")


def digests(tree):
    """File: hash of its mode and contents."""
    found = {}
    for name in source_files(tree):
        if name == CARRIED:
            continue
        path = os.path.join(tree, name)
        if os.path.islink(path):
            data = b"link " + os.fsencode(os.readlink(path))
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                data = (b"%d " % (os.stat(path).st_mode & 0o100)) + MADE.sub(b"", file.read())
        else:
            continue
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def hash_of(files):
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()[:16]


def keys(files):
    """The key, and the hash of each part."""
    def hash_where(has):
        return hash_of({name: digest for name, digest in files.items() if has(name)})
    return (hash_where(lambda name: not any(part.files.match(name) for part in PARTS.values())),
            {of: hash_where(part.files.match) for of, part in PARTS.items()})


def commit_of(tree):
    asked = subprocess.run(["git", "-C", tree, "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"], capture_output=True,
                           text=True, check=False)
    return asked.stdout.strip() or "unknown"


def carry(tree, results):
    """Makes the tree carry these results."""
    with open(results.path, encoding="utf-8") as file:
        lines = [{name: value for name, value in json.loads(line).items() if name != "output"} for line in file]
    with lzma.open(os.path.join(tree, CARRIED), "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in [{"key": results.key, "parts": results.parts}, *lines])


def unpack(tree, folder):
    """Puts the results that the tree carries into the folder, unless it has some of this key. Returns their key and parts."""
    with lzma.open(os.path.join(tree, CARRIED), "rt", encoding="utf-8") as file:
        of, text = json.loads(file.readline()), file.read()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, of["key"] + ".jsonl")
    if not os.path.exists(path):
        # in one piece, also when two checkouts begin
        with tempfile.NamedTemporaryFile("w", dir=folder, encoding="utf-8", delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    return of["key"], of["parts"]


def results_of(tree, files, folder):
    """The tree's results, which begin with those that it carries. files: its digests."""
    with contextlib.suppress(OSError):  # it carries none, or the folder cannot be written, which matters to who writes results
        unpack(tree, folder)
    return Results(folder, *keys(files))


class Results:
    def __init__(self, folder, key, parts):
        self.key, self.parts = key, parts
        self.path = os.path.join(folder, key + ".jsonl")
        self.read()

    def read(self):
        """A line that was cut off when a run was killed does not count."""
        self.begun, self.results = [], {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for line in file:
                    with contextlib.suppress(json.JSONDecodeError):
                        self.add(json.loads(line))

    def add(self, line):
        if "rows" in line:
            self.begun.append(line)
        elif line.get("parts", {}) == self.parts_of(line["row"]):
            self.results.setdefault((line["suite"], line["row"]), []).append(line)

    def parts_of(self, row):
        """The hashes of the parts that the row reads."""
        return {of: self.parts[of] for of, part in PARTS.items() if part.rows.match(row)}

    def append(self, line):
        with open(self.path, "ab+", buffering=0) as file:
            is_whole = file.seek(0, os.SEEK_END) == 0 or file.seek(-1, os.SEEK_END) < 0 or file.read(1) == b"\n"
            file.write((b"" if is_whole else b"\n") + json.dumps(line).encode() + b"\n")
        self.add(line)

    def begin(self, suite, facts):
        """Records the suite's rows and what they run on, unless that is the latest record."""
        line = {"suite": suite, **facts}
        if self.facts(suite) != line:
            self.append(line)

    def write(self, found):
        """Records a row's result."""
        self.append({**found, "parts": self.parts_of(found["row"])})

    def size(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def cut(self, size):
        os.truncate(self.path, size)
        self.read()

    def facts(self, suite):
        """The latest record of the suite's rows, or None."""
        return next((line for line in reversed(self.begun) if line["suite"] == suite), None)

    def rows(self, suite):
        """The suite's rows; None before its first run."""
        facts = self.facts(suite)
        return facts["rows"] if facts else None

    def state(self, suite, row):
        outcomes = [found["outcome"] for found in self.results.get((suite, row), [])]
        if not outcomes:
            return "open"
        return "flaky" if outcomes[-1] == "passed" and "failed" in outcomes else outcomes[-1]

    def reason(self, suite, row):
        """Why it was skipped."""
        return self.results[suite, row][-1]["reason"]

    def counts(self, suite):
        found = collections.Counter(self.state(suite, row) for row in self.rows(suite) or [])
        return {state: found[state] for state in STATES}

    def all_of(self, suite):
        """All results of the suite, repetitions included."""
        return [found for (name, _), several in self.results.items() if name == suite for found in several]

    def seconds(self, suite):
        return sum(found["wall"] for found in self.all_of(suite))

    def date(self, suite):
        return max((found["date"] for found in self.all_of(suite)), default="")


def time_text(seconds):
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min" if minutes else f"{seconds:.0f} s"
