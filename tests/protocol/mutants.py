#!/usr/bin/python3
"""Removes one ordering of a protocol at a time and expects the named test to fail or to hang.

Builds copies of the sources in a temporary folder. Each row of the modules next to this one names
a file of src/, its changes (exact texts, each found once), the test that must fail, and the removed
property. A changed header affects all sources that include it. The unchanged sources must pass the
same tests. A text that is not found is a failure: the row must follow the code. The exit status is
0 if every mutant is noticed."""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import mutation  # noqa: E402
from mutants_agents import AGENTS
from mutants_internode import INTERNODE
from mutants_locks import LOCKS
from mutants_node import NODE

LIMIT_S = 5  # per team of a mutated program; a hang counts as a failure
ATTEMPTS = 16  # the delays are random: a mutant may pass once

WRAPPED = "-Wl,--wrap=syscall,--wrap=oriel_net_send"
HARNESS = ("team.c", "make_window.c", "exclusion_check.c", "agent_memory.c", "accumulate_stub.c")
# left out if UCX's headers are missing
NET_PROGRAMS = ("net", "net_waiter_progress", "net_edges", "net_deaths", "internode", "internode_threads", "internode_locks", "lazy_lock",
                "lock_all_queue", "lock_all_queue_joins", "internode_message_counts", "internode_epochs", "internode_deaths", "internode_lock_deaths", "internode_holders")
PROGRAMS = ("event", "memory_wait", "barrier", "shm_rendezvous", "ticket", "lock_all_gate", "lock_all_gate_joins", "lock", "pscw", "pscw_counters", "notify", "accumulate_mutex", "atomic_mode", "regions", "deaths",
            "agent", "agent_updates", "agent_deaths", "polled", "deferred", "remote_writers", "remote_writers_deaths", "copies_and_promotion", "discard", "holder_epochs")
if subprocess.run(["pkg-config", "--exists", "ucx"], check=False).returncode == 0:
    HARNESS += ("message_service.c", "simulated_nodes.c", "no_memory.c")
    PROGRAMS += NET_PROGRAMS
    WRAPPED += ",--wrap=ppoll,--wrap=nanosleep,--wrap=oriel_pool_take,--wrap=calloc,--wrap=oriel_internode_partner"

# Each row: (file, [(text, replacement), ...], program, test, the removed property)
MUTANTS = NODE + LOCKS + AGENTS + INTERNODE


class Failure(Exception):
    pass


class Builder:
    """Objects of the unchanged sources, and programs linked from them with one source replaced."""

    def __init__(self, cc, tree, parts, folder, flags=()):
        self.cc = cc
        self.parts = parts
        self.flags = list(flags)
        self.folder = folder
        for part in ("src", "include", "tests"):
            shutil.copytree(os.path.join(tree, part), os.path.join(folder, part))
        self.include = os.path.join(folder, "include")
        self.src = os.path.join(folder, "src")
        self.tests = os.path.join(folder, "tests", "protocol")
        self.stand_ins = os.path.join(folder, "tests", "unit", "without_mpi")
        self.objects = {}

    def compile(self, source, target, first=()):
        folders = [*first, self.src, self.include, self.tests, self.stand_ins]
        command = [self.cc, "-std=c17", "-O2", "-D_GNU_SOURCE", "-DORIEL_DELAYS=1", *self.flags, "-MMD", "-c", source, "-o", target]
        self.run(command + [f"-I{folder}" for folder in folders])

    def run(self, command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Failure(f"{result.stderr}\n{' '.join(command)}")

    def build_unchanged(self, first=()):
        sources = [(name, os.path.join(self.src, name)) for name in self.parts]
        sources += [(name, os.path.join(self.tests, name)) for name in HARNESS]
        sources += [(f"{name}.c", os.path.join(self.tests, f"{name}.c")) for name in PROGRAMS]
        for name, path in sources:
            self.objects[name] = os.path.join(self.folder, name.replace("/", "_") + ".o")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for _ in pool.map(lambda item: self.compile(item[1], self.objects[item[0]], first), sources):
                pass

    def users(self, path):
        """The names of the sources whose objects depend on this file: itself, or its includers."""
        for name, built in self.objects.items():
            with open(built.removesuffix(".o") + ".d", encoding="utf-8") as file:
                if os.path.join(self.src, path) in file.read().replace("\\\n", " ").split():
                    yield name

    def source(self, name):
        return os.path.join(self.tests if "/" not in name else self.src, name)

    def link_changed(self, program, target, path, folder):
        """Links with the changed copy in folder instead of the file of src/."""
        others = {f"{name}.c" for name in PROGRAMS if name != program}
        replaced = {}
        for name in self.users(path):
            if name not in others:
                replaced[name] = os.path.join(folder, name.replace("/", "_") + ".o")
                self.compile(os.path.join(folder, path) if name == path else self.source(name), replaced[name], [folder])
        self.link(program, target, replaced)

    def link(self, program, target, replaced=None):
        others = {f"{name}.c" for name in PROGRAMS if name != program}
        objects = [(replaced or {}).get(name, path) for name, path in self.objects.items() if name not in others]
        self.run([self.cc, *self.flags, "-o", target, *objects, "-lcmocka", "-pthread", WRAPPED])


def mutate(text, changes, path):
    for old, new in changes:
        try:
            text = mutation.replace(text, old, new)
        except mutation.Stale as stale:
            raise Failure(f"{path}: {stale}") from stale
    return text


def complaint(program, test, limit_s=None):
    """The first line of the failing test's output, or None."""
    environment = dict(os.environ)
    if limit_s is not None:
        environment["PROTOCOL_LIMIT_S"] = str(limit_s)
    result = subprocess.run([program, test], env=environment, capture_output=True, text=True, check=False)
    if "1 test(s) run" not in result.stdout + result.stderr:
        raise Failure(f"{program} has no test {test}")
    if result.returncode == 0:
        return None
    # the sums of another group of the program's tests may come first
    return next(line for line in result.stderr.split("\n") if not line.startswith("[  PASSED  ]"))


def stale_rows(tree, rows):
    """One sentence for each row that does not match the code."""
    for path, changes, program, *_ in rows:
        if program not in PROGRAMS + NET_PROGRAMS:
            yield f"{path}: there is no {program} among the programs"
        with open(os.path.join(tree, "src", path), encoding="utf-8") as file:
            text = file.read()
        try:
            mutate(text, changes, path)
        except Failure as failure:
            yield str(failure)


def report_stale_rows(tree, rows):
    """Prints the stale rows; returns whether there are any."""
    stale = list(stale_rows(tree, rows))
    print(*stale, f"{len(rows)} rows, {len(stale)} do not follow the code", sep="\n")
    return bool(stale)


def noticed(builder, number, mutant):
    """The number of attempts until the test fails, and its message; or None."""
    path, changes, program, test, _ = mutant
    folder = os.path.join(builder.folder, str(number))
    mutated = os.path.join(folder, path)
    os.makedirs(os.path.dirname(mutated))
    with open(os.path.join(builder.src, path), encoding="utf-8") as file:
        text = mutate(file.read(), changes, path)
    with open(mutated, "w", encoding="utf-8") as file:
        file.write(text)
    executable = os.path.join(folder, program + ".test")
    builder.link_changed(program, executable, path, folder)
    for attempt in range(1, ATTEMPTS + 1):
        failure = complaint(executable, test, LIMIT_S)
        if failure is not None:
            return attempt, failure
    return None


def check(builder, number):
    path, _, program, test, removed = MUTANTS[number]
    try:
        found = noticed(builder, number, MUTANTS[number])
    except Failure as failure:
        return False, f"BROKEN    {path}: {removed}\n{failure}"
    if found is None:
        return False, f"SURVIVED  {path}: {removed} ({program}: {test})"
    return True, f"noticed   {path}: {removed} ({program}: {test})\n          attempt {found[0]}: {found[1]}"


def parser_of(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--tree", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    parser.add_argument("--parts", help="a file with the names of the sources below src/ that the programs need; the build writes "
                        "tests/protocol/parts (--rows needs none)")
    return parser


def parts_of(arguments):
    with open(arguments.parts or os.path.join(arguments.tree, os.environ.get("BUILD", "build"), "tests/protocol/parts"),
              encoding="utf-8") as file:
        return file.read().split()


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="run only mutants whose file, test or text contains this")
    parser.add_argument("--rows", action="store_true", help="only check that each row matches the code")
    arguments = parser.parse_args()
    is_stale = report_stale_rows(arguments.tree, MUTANTS)
    if is_stale or arguments.rows:
        return 1 if is_stale else 0
    chosen = [i for i, mutant in enumerate(MUTANTS)
              if arguments.only in " ".join([mutant[0], mutant[3], mutant[4]]) and mutant[2] in PROGRAMS]
    folder = tempfile.mkdtemp(prefix="oriel-mutants-")
    complaints = [] if chosen else ["no mutant is chosen"]
    try:
        builder = Builder(arguments.cc, arguments.tree, parts_of(arguments), folder)
        builder.build_unchanged()
        for program in PROGRAMS:
            builder.link(program, os.path.join(folder, program))
        for program, test in sorted({(MUTANTS[i][2], MUTANTS[i][3]) for i in chosen}):
            failure = complaint(os.path.join(folder, program), test)
            if failure is not None:
                complaints.append(f"FAILED    {program}: {test}, with the unchanged sources: {failure}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for well, line in pool.map(lambda i: check(builder, i), chosen):
                print(line, flush=True)
                if not well:
                    complaints.append(line)
    except Failure as failure:
        complaints.append(str(failure))
    finally:
        shutil.rmtree(folder)
    print(*complaints, f"{len(chosen)} mutants, {len(complaints)} complaints", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
