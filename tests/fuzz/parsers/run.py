#!/usr/bin/python3
"""Runs fuzzers, for a number of inputs each (at most 4 s) or for a number of minutes in total, from
the checked-in corpus.

A run by inputs starts with that corpus alone and draws the same inputs each time, as many as the
4 s allow. Its result depends on the code and not on earlier runs. A run by minutes draws new
inputs, stores those that reach new code next to the program (NAME.found), and starts with them
next time.  Either kind stores a failing input and prints the command to repeat it. libFuzzer
limits an input by elapsed time, which on a busy machine includes the time of others. An input
over that limit therefore runs again alone, where only its own CPU time counts.  The status is 0
when nothing has failed."""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

INPUT_MOST_BYTES = 4096
LIMIT_S = 10  # per input
SHORT_S = 4  # of a run by inputs
WAIT_S = 120  # for an input that waits without using CPU time
ATTEMPTS = 3
TOO_LONG = 70  # libFuzzer's status


HERE = os.path.dirname(os.path.abspath(__file__))


def ends_by_itself(program, path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))
    try:
        return subprocess.run([program, "-timeout=0", path], capture_output=True, timeout=WAIT_S, preexec_fn=limit,
                              check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run(program, limits, found, attempts=ATTEMPTS):
    """found: folder with inputs that have reached new code, where new ones are stored, too."""
    name = os.path.basename(program)
    command = [program, f"-max_len={INPUT_MOST_BYTES}", f"-timeout={LIMIT_S}", "-rss_limit_mb=2048",
               f"-artifact_prefix={program}.failed-", *limits, found, os.path.join(HERE, "corpus", name)]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode != 0:
        inputs = [line.split()[-1] for line in result.stderr.splitlines() if "Test unit written to" in line]
        if result.returncode == TOO_LONG and inputs and attempts > 1 and ends_by_itself(program, inputs[-1]):
            print(f"{name}: the node was busy, {inputs[-1]} is not slow; once more", flush=True)
            os.unlink(inputs[-1])
            return run(program, limits, found, attempts - 1)
        print(f"{result.stderr[-8000:]}\n{name}: failed; again with: {program} {' '.join(inputs)}")
        return False
    lines = [line.strip() for line in result.stderr.splitlines() if "DONE" in line]
    print(f"{name}: {lines[-1] if lines else 'no inputs'}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="the folder of the build")
    parser.add_argument("--only", help="this fuzzer alone")
    parser.add_argument("--runs", type=int, default=10000, help="the number of inputs of each, in at most 4 s")
    parser.add_argument("--minutes", type=float, help="so long instead, shared out among them")
    arguments = parser.parse_args()
    names = [arguments.only] if arguments.only else sorted(os.listdir(os.path.join(HERE, "corpus")))
    programs = [os.path.join(arguments.build, "tests", "fuzz", "parsers", name) for name in names]
    # two need the headers of UCX
    programs = [program for program in programs if os.path.exists(program)]
    limits = ["-seed=1", f"-runs={arguments.runs}", f"-max_total_time={SHORT_S}"]
    if arguments.minutes is not None:
        limits = [f"-max_total_time={max(1, int(60 * arguments.minutes / max(1, len(programs))))}"]
    results = []
    for program in programs:
        if arguments.minutes is not None:
            os.makedirs(program + ".found", exist_ok=True)
            results.append(run(program, limits, program + ".found"))
            continue
        with tempfile.TemporaryDirectory() as nothing_yet:
            results.append(run(program, limits, nothing_yet))
    if not results:
        print("no fuzzers: they are built where there is clang")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
