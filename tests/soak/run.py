#!/usr/bin/python3
"""Runs random programs with known results on both hosts until the time is over, or so many have run, or one fails.

Each run is drawn: the program (soak, which is another whole program for each seed, or now and then one of the suite's with random
operations), its seed, the host, the number of ranks, and where they are: one machine with each mechanism, ranks that believe to be
on several, machines made by scripts/testnet, an ordinary user, under statistics or the checker, which must find nothing.
A failure is printed with its output and the command that repeats it.  At the end stands what the programs did; what none of them
did is a failure too, if enough have run.  The status is 0 when nothing has failed."""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT_S = 300  # of one run
SKIPPED = 77
ENOUGH = 60  # programs, after which each kind of thing must have happened
SOAK = "soak/soak"
OTHERS = ("fuzz/fuzz", "mpi/accumulate_mix", "mpi/accumulate_order", "mpi/atomicity", "mpi/derived", "mpi/derived_accumulate",
          "mpi/dynamic", "mpi/litmus", "mpi/lock", "mpi/outstanding", "mpi/pscw", "mpi/put_get", "mpi/request_storm",
          "mpi/thread_epochs", "mpi/thread_objects", "mpi/threads")
CHECK = "check"
# What tests/launch is told, and how many ranks it may have.
PLACES = (([], 16), (["--user"], 16), (["--env", "ORIEL_PROMOTE=always"], 8), (["--user", "--env", "ORIEL_PROMOTE=always"], 8),
          (["--env", "ORIEL_PROMOTE=never"], 8), (["--env", "ORIEL_PROMOTE=never", "--env", "ORIEL_CMA=never"], 8),
          (["--deny", "--env", "ORIEL_PROMOTE=never"], 8), (["--deny", "--env", "ORIEL_PROMOTE=always"], 4),
          (["--env", "ORIEL_STATS=-"], 8), ([CHECK], 8), (["--node-size", "1"], 8), (["--node-size", "2"], 8),
          (["--node-size", "3", "--user"], 8), (["--node-size", "2", "--env", "ORIEL_PROMOTE=never"], 8), ([CHECK, "--node-size", "2"], 6),
          (["--net", "2"], 8), (["--net", "3"], 8), (["--net", "2", "--map", "cyclic"], 6), (["--net", "2", "--user"], 4))


def ranks_draw(chance, host, place, most):
    """Over MPICH's own network a machine has one rank of it (tests/net says why)."""
    if host == "mpich" and "--net" in place:
        return int(place[place.index("--net") + 1])
    return chance.choice([count for count in (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 12, 16) if count <= most])


def draw(chance, arguments):
    build = os.path.abspath(arguments.build)
    hosts = [host for host in ("mpich", "openmpi") if os.path.isdir(os.path.join(build, "tests", "soak", host))]
    host = chance.choice(hosts)
    name = SOAK if chance.randrange(8) else chance.choice(OTHERS)
    place, most = chance.choice(PLACES)
    seed = chance.randrange(1, 1 << 31)
    steps = chance.choice((6, 12, 12, 25))
    if arguments.host and host != arguments.host or arguments.only and arguments.only not in name or \
            arguments.place and arguments.place not in " ".join(place) or name != SOAK and CHECK in place:
        return draw(chance, arguments)
    ranks = ranks_draw(chance, host, place, most if name == SOAK else min(most, 4))
    folder, program = name.split("/")
    path = os.path.join(build, "tests", folder, host, program)
    program = [path, "--seed", str(seed), "--steps", str(steps)] if name == SOAK else [path]
    if CHECK in place:
        program = [os.path.join(build, "bin", "oriel"), "check", *program]
    return [os.path.join(ROOT, "tests", "launch"), "--build", build, "--host", host, "-n", str(max(ranks, 1 if name == SOAK else 2)),
            "--timeout", str(LIMIT_S), *["--plain" if word == CHECK else word for word in place],
            *([] if name == SOAK else ["--env", f"TEST_SEED={seed}", "--env", f"FUZZ_SEED={seed}"]), "--", *program]


def counts_add(counts, output):
    for number, what in re.findall(r"^count (\d+) (.*)$", output, re.MULTILINE):
        counts[what] += int(number)


def told(output):
    """What is worth reading of an output."""
    return "\n".join(line for line in output.splitlines() if not line.startswith("count "))


def sum_up(runs, skipped, counts):
    print("".join(f"{number:>9} {what}\n" for what, number in counts.items()), end="")
    missing = [what for what, number in counts.items() if number == 0]
    print(f"{runs} runs, {skipped} skipped, no failure")
    if counts["programs"] < ENOUGH or not missing:
        return 0 if runs else 1
    print(f"of {counts['programs']} ranks' programs none had: {', '.join(missing)}")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--runs", type=int, help="so many runs at most")
    parser.add_argument("--seed", type=int, help="draws the same runs again")
    parser.add_argument("--host", choices=["mpich", "openmpi"], help="this one alone")
    parser.add_argument("--only", help="programs whose name contains this")
    parser.add_argument("--place", help="places whose words to tests/launch contain this")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int(time.time())
    print(f"# --seed {seed}", flush=True)
    chance = random.Random(seed)
    end = time.monotonic() + 60 * arguments.minutes
    counts = collections.Counter()
    runs = 0
    skipped = 0
    while time.monotonic() < end and (arguments.runs is None or runs + skipped < arguments.runs):
        command = draw(chance, arguments)
        begin = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if result.returncode == SKIPPED:
            skipped += 1
            continue
        if result.returncode != 0:
            print(f"{told(result.stdout)[-8000:]}\n{result.stderr[-4000:]}\nfailed with status {result.returncode}; again with:\n"
                  f"{' '.join(command)}")
            return 1
        counts_add(counts, result.stdout)
        runs += 1
        print(f"ok {time.monotonic() - begin:5.1f} s {' '.join(command[3:])}", flush=True)
    return sum_up(runs, skipped, counts)


if __name__ == "__main__":
    sys.exit(main())
