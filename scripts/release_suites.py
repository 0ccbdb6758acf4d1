"""The suites of scripts/release-check: what is run before a release, and why."""

import collections
import os
import re
import time

from release_results import READS_DOCUMENTS

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# A build folder, the command that makes it, and the words before each command that runs in it. hosts: `oriel info` runs there
# and names the MPIs that were tested.
Build = collections.namedtuple("Build", "folder make run hosts", defaults=((), True))
# minutes: the plan, on two idle cores. A row of CTest belongs to the first suite of its build that has its label, whose pattern
# rows it matches, and whose pattern leave it does not: docs.status fails until scripts/test-status has run. commands: rows that
# are no rows of CTest; one runs on each core.
Suite = collections.namedtuple("Suite", "name minutes build proves label rows leave commands",
                               defaults=("full", "", r"docs[.]status$", None))

# `make ready` installs what the tests need and builds them.
DEBIAN12 = Build("build", ("make", "ready"))
ASAN = Build("build-asan", ("make", "ready", "BUILD=build-asan", "SANITIZE=address,undefined"), hosts=False)
TSAN = Build("build-tsan", ("make", "ready", "BUILD=build-tsan", "SANITIZE=thread"), hosts=False)
CLANG = Build("build-clang", ("make", "ready", "BUILD=build-clang", "CC=clang"))


def other_release(name, *how):
    return Build("build", ("scripts/testroot", name, "make", "ready"), ("scripts/testroot", *how, name))


# Rows that a compiler or sanitiser does not change.
SAME_IN_ALL = READS_DOCUMENTS.pattern + "|(models|litmus|parsers)[.]"
ONE_THREAD = SAME_IN_ALL + "|(cli|house|page|packaging)[.]"  # the command and the scripts have one
USER_ROWS = r"cli[.]|mpi[.][^.]+[.][^.]+[.]2[.]oriel$"
FUZZERS = sorted(os.listdir(os.path.join(TREE, "tests/fuzz/parsers/corpus")))

SUITES = [
    Suite("quick", 12, DEBIAN12, "what every change must pass (make test)", label="quick"),
    Suite("lint", 20, DEBIAN12, "clang-tidy and cppcheck find nothing", rows=r"house[.](cppcheck|clang_tidy)$"),
    Suite("docs", 2, DEBIAN12, "the pages' commands on the other host, and the pictures", rows=r"docs[.]"),
    Suite("models", 8, DEBIAN12, "the large models of the protocols, and a broken one of each", rows=r"(models|litmus)[.]"),
    Suite("mutants", 40, DEBIAN12, "a test fails for every step that is removed from a protocol", rows=r"\w+[.](mutants|races)$"),
    Suite("gpu", 6, DEBIAN12, "memory of GPUs on the stand-in: every rank count, mode and host", rows=r"gpu[.]"),
    Suite("breakers", 8, DEBIAN12, "each proof of conformance fails when what it proves is broken", rows=r"conformance[.]break_"),
    Suite("valgrind", 12, DEBIAN12, "unit tests and jobs lose no memory and read none that is freed", rows=r"memcheck[.]"),
    Suite("coverage", 30, DEBIAN12, "each line that no test executes has a reason", rows=r"house[.]coverage$"),
    Suite("packages", 60, DEBIAN12, "packages, container and install-deps on clean systems; 64-bit Arm", rows=r"packaging[.]"),
    Suite("faults", 60, DEBIAN12, "survivors go on after 2,000 deaths at random times on each host", rows=r"mpi[.]faults"),
    Suite("offenders", 45, DEBIAN12, "the checker finds each offender in every of fifty runs", rows=r"checker[.]\w+_many"),
    Suite("full", 110, DEBIAN12, "the other rank counts and modes (make test-full)"),
    Suite("clang", 20, CLANG, "the quick rows with clang", label="quick", leave=SAME_IN_ALL),
    Suite("asan", 40, ASAN, "the quick rows with AddressSanitizer and UBSan", label="quick", leave=SAME_IN_ALL),
    Suite("tsan", 60, TSAN, "the quick rows with ThreadSanitizer", label="quick", leave=ONE_THREAD),
]
for release in ("trixie", "sid"):
    SUITES += [Suite(release, 30, other_release(release), f"the quick rows on Debian {release}", label="quick"),
               Suite(release + "-user", 5, other_release(release, "--user"), "the command and MPI programs as an ordinary user",
                     label="quick", rows=USER_ROWS)]
SUITES += [
    Suite("fuzz", 30, DEBIAN12, "an hour of new inputs for the parsers", commands={
        name: ["tests/fuzz/parsers/run.py", "--build", "build", "--only", name, "--minutes", f"{60 / len(FUZZERS):.1f}"]
        for name in FUZZERS}),
    Suite("soak", 30, DEBIAN12, "an hour of random programs with known results", commands={
        f"soak{part}": ["tests/soak/run.py", "--build", "build", "--minutes", "15", "--seed", str(int(time.time()) + part)]
        for part in range(1, 5)}),
]


def matches(suite, row, labels):
    """Whether the suite has this row of ctest."""
    return suite.commands is None and suite.label in labels and re.match(suite.rows, row) and not re.match(suite.leave, row)
