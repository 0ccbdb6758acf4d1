#!/usr/bin/python3
"""Runs random programs with known results on both hosts until the time is over, a given number have
run, or one fails.

Each run is drawn at random. First the program: soak, which is another whole program for each
seed, or sometimes a random test of the suite. Then the seed, the host, the number of ranks, and
the configuration: one node with each mechanism, simulated nodes, nodes made by scripts/testnet,
an ordinary user, statistics, traces or the checker, which must find nothing. The script prints a
failure with its output and the command that reproduces it.  At the end it prints what the
programs did. After enough runs, an action that none did is a failure too.  The status is 0 when
nothing has failed."""

import argparse
import collections
import os
import random
import re
import shlex
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT_S = 300  # per run
SKIPPED = 77
ENOUGH = 100  # runs of soak after which each kind of action must have happened
SOAK = "soak/soak"
OTHERS = ("fuzz/calls/fuzz", "mpi/accumulate_mix", "mpi/accumulate_order", "mpi/atomicity", "mpi/derived", "mpi/derived_accumulate",
          "mpi/dynamic", "mpi/litmus", "mpi/lock", "mpi/pscw", "mpi/put_get", "mpi/request_storm",
          "mpi/thread_epochs", "mpi/thread_objects", "mpi/threads")
# Arguments of tests/launch, and the maximum number of ranks. "check" selects `oriel check` instead
# of `oriel run`; @TRACES is a folder in the build.
CONFIGURATIONS = (("", 16), ("--user", 16), ("--env ORIEL_PROMOTE=always", 8), ("--user --env ORIEL_PROMOTE=always", 8),
          ("--env ORIEL_PROMOTE=never", 8), ("--env ORIEL_PROMOTE=never --env ORIEL_CMA=never", 8),
          ("--deny --env ORIEL_PROMOTE=never", 8), ("--deny --env ORIEL_PROMOTE=always", 4), ("--env ORIEL_STATS=1", 8),
          ("--env ORIEL_TRACE=@TRACES", 8), ("--node-size 2 --env ORIEL_TRACE=@TRACES", 6),
          ("check", 8), ("check --node-size 2", 6), ("check --net 2", 4),
          ("--node-size 1", 8), ("--node-size 2", 8), ("--node-size 3 --user", 8),
          ("--node-size 2 --env ORIEL_PROMOTE=never", 8), ("--net 2", 8), ("--net 3", 8), ("--net 2 --map cyclic", 6),
          ("--net 2 --user", 4))


def hosts_of(build):
    return [host for host in ("mpich", "openmpi") if os.path.isdir(os.path.join(build, "tests", "soak", host))]


def choose(chance, arguments):
    """Draws everything that the arguments leave open: host, program, configuration and maximum
    number of ranks."""
    wanted = lambda host, name, configuration: (arguments.host in (None, host) and arguments.only in name and arguments.configuration in configuration
                                        and (name == SOAK or "check" not in configuration))
    hosts = hosts_of(arguments.build)
    if not any(wanted(host, name, configuration) for host in hosts for name in (SOAK, *OTHERS) for configuration, _ in CONFIGURATIONS):
        sys.exit("no program and configuration match --host, --only and --configuration")
    while True:
        host = chance.choice(hosts)
        name = SOAK if chance.randrange(8) else chance.choice(OTHERS)
        configuration, most = chance.choice(CONFIGURATIONS)
        if wanted(host, name, configuration):
            return host, name, configuration, most if name == SOAK else min(most, 4)


def draw(chance, arguments):
    """The command, and its name in the summary."""
    host, name, configuration, most = choose(chance, arguments)
    seed = chance.randrange(1, 1 << 31)
    ranks = chance.choice([count for count in (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 12, 16) if count <= most])
    steps = chance.choice((6, 12, 12, 25))
    folder, _, program = name.rpartition("/")
    words = [os.path.join(arguments.build, "tests", folder, host, program)]
    settings = [*arguments.env]
    if name == SOAK:
        words += ["--seed", str(seed), "--steps", str(steps)]
    else:
        settings += [f"TEST_SEED={seed}", f"FUZZ_SEED={seed}"]
        ranks = max(2, ranks)
    label = f"{host} {'soak' if name == SOAK else 'others'} {configuration}"
    if "check" in configuration:
        # with its loads and stores, too
        watched = os.path.join(os.path.dirname(words[0]), "watched")
        words[0] = watched if os.path.exists(watched) else words[0]
        words = [os.path.join(arguments.build, "bin", "oriel"), "check", *words]
        configuration = configuration.replace("check", "--plain")
    # over its own network, MPICH has one rank per node (tests/net explains why)
    if host == "mpich" and "--net" in configuration:
        ranks = int(re.search(r"--net (\d+)", configuration).group(1))
    settings = [word for setting in settings for word in ("--env", setting)]
    configuration = configuration.replace("@TRACES", os.path.join(arguments.build, "tests", "soak", "traces"))
    return [os.path.join(ROOT, "tests", "launch"), "--build", arguments.build, "--host", host, "-n", str(ranks),
            "--timeout", str(LIMIT_S), *configuration.split(), *settings, "--", *words], label


class Sum:
    """Statistics of the runs, and the programs' own counts."""

    def __init__(self):
        self.runs = 0
        self.skipped = collections.Counter()
        self.configurations = collections.Counter()
        self.counts = collections.Counter()

    def add(self, label, output):
        self.runs += 1
        self.configurations[label] += 1
        for number, what in re.findall(r"^count (\d+) (.*)$", output, re.MULTILINE):
            self.counts[what] += int(number)

    def print_counts(self):
        for what, number in [*sorted(self.configurations.items()), *self.counts.items()]:
            print(f"{number:>9} {what}")
        for what, number in sorted(self.skipped.items()):
            print(f"{number:>9} {what}: skipped, and never run" if what not in self.configurations else f"{number:>9} {what}: skipped")
        missing = [what for what, number in self.counts.items() if number == 0]
        if self.counts["programs"] >= ENOUGH and missing:
            print(f"{self.counts['programs']} programs, and none had: {', '.join(missing)}")
            return 1
        print(f"{self.runs} runs, {self.skipped.total()} skipped, no failure")
        return 0 if self.runs else 1


def run(command, label, done):
    """Runs one command; returns whether it succeeded."""
    begin = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode == SKIPPED:
        done.skipped[label] += 1
        return True
    # An option that the library does not understand would change the configuration.
    misread = re.search(r"^oriel.*\bORIEL_\S+ is (not|neither) .*$", result.stderr, re.MULTILINE)
    if result.returncode != 0 or misread:
        output = "\n".join(line for line in result.stdout.splitlines() if not line.startswith("count "))
        print(f"{output[-8000:]}\n{result.stderr[-4000:]}\nfailed with status {result.returncode}"
              f"{' and ' + misread.group() if misread else ''}; again with:\n"
              f"{shlex.join(command)}")
        return False
    done.add(label, result.stdout)
    print(f"ok {time.monotonic() - begin:5.1f} s {' '.join(command[3:])}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", type=os.path.abspath)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--runs", type=int, help="at most this number of programs")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="draws the same runs again")
    parser.add_argument("--host", choices=["mpich", "openmpi"], help="this one alone")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--configuration", default="", help="configurations whose arguments of tests/launch contain this")
    parser.add_argument("--env", action="append", default=[], metavar="K=V", help="for all programs")
    arguments = parser.parse_args()
    print(f"# --seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    done = Sum()
    while time.monotonic() < end and (arguments.runs is None or done.runs + done.skipped.total() < arguments.runs):
        if not run(*draw(chance, arguments), done):
            return 1
    return done.print_counts()


if __name__ == "__main__":
    sys.exit(main())
