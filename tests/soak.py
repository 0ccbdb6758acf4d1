#!/usr/bin/python3
"""Runs programs with random operations, whose results are known, on both hosts until the time is over or one fails.

Each run is drawn: the program, its seed, the host, the number of ranks, and where they are (one machine with each mechanism, ranks
that believe to be on several, machines made by scripts/testnet, an ordinary user).  A failure is printed with its output and the command
that repeats it.  The status is 0 when nothing has failed."""

import argparse
import os
import random
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 300  # of one run
PROGRAMS = ("fuzz/fuzz", "mpi/accumulate_mix", "mpi/accumulate_order", "mpi/atomicity", "mpi/derived", "mpi/derived_accumulate",
            "mpi/dynamic", "mpi/litmus", "mpi/lock", "mpi/outstanding", "mpi/pscw", "mpi/put_get", "mpi/request_storm",
            "mpi/thread_epochs", "mpi/thread_objects", "mpi/threads")
# What tests/launch is told, and how many ranks it may have.
PLACES = ((["--user"], 8), ([], 8), (["--env", "ORIEL_PROMOTE=always"], 4), (["--env", "ORIEL_PROMOTE=never"], 4),
          (["--deny", "--env", "ORIEL_PROMOTE=never"], 4), (["--node-size", "1"], 4), (["--node-size", "2"], 4),
          (["--net", "2"], 4), (["--net", "2", "--map", "cyclic"], 4))
SKIPPED = 77


def draw(chance, build):
    host = chance.choice([host for host in ("mpich", "openmpi") if os.path.isdir(os.path.join(build, "tests", "mpi", host))])
    folder, name = chance.choice(PROGRAMS).split("/")
    place, most = chance.choice(PLACES)
    seed = chance.randrange(1, 1 << 31)
    return [os.path.join(HERE, "launch"), "--build", build, "--host", host, "-n", str(chance.randint(2, most)),
            "--timeout", str(LIMIT_S), *place, "--env", f"TEST_SEED={seed}", "--env", f"FUZZ_SEED={seed}",
            "--", os.path.join(build, "tests", folder, host, name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="draws the same runs again")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else int(time.time())
    print(f"# --seed {seed}", flush=True)
    chance = random.Random(seed)
    end = time.monotonic() + 60 * arguments.minutes
    runs = 0
    skipped = 0
    while time.monotonic() < end:
        command = draw(chance, os.path.abspath(arguments.build))
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if result.returncode == SKIPPED:
            skipped += 1
            continue
        if result.returncode != 0:
            print(f"{result.stdout[-8000:]}{result.stderr[-2000:]}\nfailed with status {result.returncode}; again with:\n"
                  f"{' '.join(command)}")
            return 1
        runs += 1
        print(f"ok {' '.join(command[5:])}", flush=True)
    print(f"{runs} runs, {skipped} skipped, no failure")
    return 0 if runs else 1


if __name__ == "__main__":
    sys.exit(main())
