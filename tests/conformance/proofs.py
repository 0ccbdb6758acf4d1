"""Reads the tables of this folder and compares them with the tree: the tests that prove each claim,
and the fault that makes each test fail.

functions.toml names tests for each function of Oriel, extensions.toml for each extension,
fortran.toml those of the Fortran names, semantics.toml tests for each statement of MPI with the
fault that breaks it. A test is "folder/program:case", "folder/program:case/kind" or
"folder/program", with an optional " on mpich" or " on openmpi"; "program@x" stands for CTest's rows
program_x. scripts/conformance and break.py read functions.def, extensions.def, CTest's rows and the
tests' sources only through this module."""

import collections
import glob
import json
import os
import re
import subprocess
import sys
import tomllib

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
HOSTS = ("mpich", "openmpi")
ABI = "abi-"  # the standard ABI in front of the MPI with that name
# The kinds of faults. break.py applies them, except mutants (tests/protocol/mutants.py) and bare
# hosts, which were tried once.
BREAKS = ("function", "error", "fault", "mutant", "bare")

# The first kind of memory of a case's kinds, by the harness's name.
FIRST_KIND = {"KINDS_ALL": "allocate", "KINDS_BOTH": "allocate", "KINDS_THREE": "allocate", "KIND_ALLOCATE": "allocate",
              "KIND_SHARED": "shared", "KINDS_MEMORY": "arena", "KIND_ARENA": "arena", "KIND_HEAP": "heap"}

Row = collections.namedtuple("Row", "host ranks mode quick command")
Case = collections.namedtuple("Case", "kinds min_ranks")
# The subject (a function's name or a statement's text), the test that proves it, and the fault that
# the test must notice.
Claim = collections.namedtuple("Claim", "subject test breaks")
Statement = collections.namedtuple("Statement", "group clause text claims")


class Broken(Exception):
    """A table does not fit the tree."""


def mpi_of(host):
    return host.removeprefix(ABI)


def text_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def table(name):
    with open(os.path.join(FOLDER, name), "rb") as file:
        return tomllib.load(file)


def functions_of_oriel():
    """Every function of Oriel with its hosts: functions.def and the files of one host."""
    rows = re.findall(r"^(?:FUNCTION|FORWARD|LARGE)\((\w+),", text_of(ROOT, "src", "host", "functions.def"), re.MULTILINE)
    found = {name: HOSTS for name in rows}
    paths = {host: glob.glob(os.path.join(ROOT, "src", "api", host, "*.c")) for host in HOSTS}
    paths["mpich"].append(os.path.join(ROOT, "src", "api", "sessions.c"))  # Open MPI has them from version 5 on
    for host in HOSTS:
        for path in paths[host]:
            for name in re.findall(r"^ORIEL_EXPORT [\w ]+?\*?\b(\w+)\([^;]*\)\s*\{", text_of(path), re.MULTILINE):
                found[re.sub(r"^P?MPI_", "", name)] = (host,)
    return found


def extensions_of_oriel():
    rows = re.findall(r"^EXTENSION\((\w+),", text_of(ROOT, "src", "host", "extensions.def"), re.MULTILINE)
    return {name: HOSTS for name in rows}


class Test:
    """One test by its name in the tables."""

    def __init__(self, name):
        match = re.fullmatch(r"(\w+)/(\w+)(?:@(\w+))?(?::(\w+)(?:/(\w+))?)?(?: on (\w+))?", name)
        if not match:
            raise Broken(f"not a test's name: {name}")
        self.name = name
        self.folder, self.program, row, self.case, self.kind, host = match.groups()
        self.row = f"{self.program}_{row}" if row else self.program
        self.hosts = (host,) if host else HOSTS

    def sources(self):
        return sorted(glob.glob(os.path.join(ROOT, "tests", "**", self.folder, self.program + ".*"), recursive=True))

    def table_row(self):
        """The case's row in its program's table, for programs that take --only; else None."""
        for path in self.sources():
            match = re.search(rf"\bCASE\({self.case}, ([A-Z_| ]+), (\d+)\)", text_of(path)) if self.case else None
            if match:
                return Case(match.group(1), int(match.group(2)))
        return None

    def check(self):
        if not self.sources():
            raise Broken(f"{self.name}: there is no program tests/{self.folder}/{self.program}")
        if self.case and not self.table_row() and not any(
                re.search(rf"\b{self.case}\b", text_of(path)) for path in self.sources()):
            raise Broken(f"{self.name}: {self.program} has no case of that name")

    def only(self):
        """The arguments that select the case: its first kind by default."""
        row = self.table_row()
        if not row:
            return []
        first = FIRST_KIND.get(row.kinds.split(" | ")[0])
        kind = self.kind or first
        return ["--only", f"{self.case}/{kind}" if kind else self.case]


class Rows:
    """CTest's rows of one build folder, by folder and program."""

    def __init__(self, build):
        output = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True,
                                check=True).stdout
        self.rows = collections.defaultdict(list)
        for test in json.loads(output)["tests"]:
            words = test["name"].split(".")
            labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
            host, ranks, mode = (*words[2:], None, None, None)[:3]
            if host is None or mpi_of(host) in HOSTS:
                self.rows[words[0], words[1]].append(
                    Row(host, int(ranks) if ranks else 0, mode, "quick" in labels, test.get("command", [])))

    def of(self, test, host):
        """The rows that run the test on the host; tests without MPI belong to all hosts."""
        rows = self.rows[test.folder, test.row]
        return [row for row in rows if row.host in (host, None) and mpi_of(host) in test.hosts]


def mutants():
    """The tests that a mutant of a protocol must make fail."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "protocol"))
    import mutants as module
    return {f"protocol/{row[2]}:{row[3]}" for row in module.MUTANTS}


def as_list(value):
    return [value] if isinstance(value, str) else value


def claims_of_each(file, known):
    """Group title -> function -> its claims. known: all functions, with their hosts."""
    groups = {title: {name: [Claim(name, Test(test), f"function {name}") for test in as_list(tests)]
                      for name, tests in group.items()} for title, group in table(file).items()}
    named = [name for group in groups.values() for name in group]
    for name in set(named) - set(known):
        raise Broken(f"{file}: {name} is no function of Oriel")
    for name in known:
        if named.count(name) != 1:
            raise Broken(f"{file}: {name} has {named.count(name)} rows")
    for group in groups.values():
        for name, claims in group.items():
            for claim in claims:
                claim.test.hosts = tuple(host for host in claim.test.hosts if host in known[name])
    return groups


def function_claims():
    return claims_of_each("functions.toml", functions_of_oriel())


def extension_claims():
    return claims_of_each("extensions.toml", extensions_of_oriel())


def fortran_claims():
    """Function -> interface -> claim."""
    rows = table("fortran.toml")
    hosts = rows.get("one_host", {})
    found = {}
    for name in [*rows["functions"], *hosts]:
        if name not in functions_of_oriel():
            raise Broken(f"fortran.toml: {name} is no function of Oriel")
        found[name] = {}
        for interface, program in rows["programs"].items():
            test = Test(f"{program} on {hosts[name]}" if name in hosts else program)
            found[name][interface] = Claim(name, test, f"function {name}")
    return found


def statements():
    found = []
    for group, rows in table("semantics.toml").items():
        for row in rows:
            claims = [Claim(row["text"], Test(test), breaks) for test, breaks in row.get("proofs", [])]
            found.append(Statement(group, row["clause"], row["text"], claims))
    return found


def check(claims, rows):
    """The faults of the claims, a list of sentences. Without rows only names are checked."""
    wrong = []
    known_mutants = mutants()
    for claim in claims:
        try:
            claim.test.check()
        except Broken as error:
            wrong.append(str(error))
            continue
        if claim.breaks.split()[0] not in BREAKS:
            wrong.append(f"{claim.test.name}: \"{claim.breaks}\" breaks nothing")
        if claim.breaks == "mutant" and claim.test.name not in known_mutants:
            wrong.append(f"{claim.test.name}: tests/protocol/mutants.py has no mutant for it")
        for host in claim.test.hosts:
            if rows and not rows.of(claim.test, host):
                wrong.append(f"{claim.test.name}: no row of CTest runs it on {host}")
    return wrong
