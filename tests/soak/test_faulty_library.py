#!/usr/bin/python3
"""Tests that run.py notices a faulty library and prints the seed, and that its command reproduces
the failure.

The breaker of tests/conformance is loaded in front of the library. It loses one put in seven,
makes all swaps succeed, and so on.

The test rows run `test_faulty_library.py --build FOLDER --host HOST [--all]`."""

import argparse
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = ["loses_some"]
ALL_FAULTS = FAULTS + ["swap_always", "swap_compares_one_byte", "sums_are_not_atomic", "accumulates_overtake", "no_op_replaces",
                       "padding_of_pairs_moves", "exclusive_locks_are_shared", "rget_completes_too_early",
                       "rput_reads_its_buffer_late", "derived_types_do_nothing", "the_origins_unit_scales"]
ATTEMPTS = 30  # of a command whose failure may need a race: the rarest appears once in six runs
CONFIGURATION = "--env ORIEL_STATS=1"  # a single node, with the breaker as the only addition


def run(command):
    # Open MPI gives the other ranks of a failed job two seconds to end.
    environment = dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="0")
    return subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)


def complaint(output):
    """The seed of the first failure in a program's output."""
    found = re.search(r"^not ok.*?seed (\d+)", output, re.MULTILINE)
    return found.group(1) if found else None


def tried(arguments, fault):
    """Returns the error in run.py's handling of the fault, or None."""
    breaker = os.path.join(arguments.build, "tests", "conformance", arguments.host, "libbreaker.so")
    result = run([os.path.join(HERE, "run.py"), "--build", arguments.build, "--host", arguments.host, "--only", "soak",
                  "--configuration", CONFIGURATION, "--seed", "3", "--minutes", "2", "--env", f"LD_PRELOAD={breaker}",
                  "--env", f"CONFORMANCE_BREAK=fault {fault}"])
    again = result.stdout.splitlines()[-1:]
    if result.returncode != 1 or "again with:" not in result.stdout:
        return f"not noticed: status {result.returncode}, {again}"
    command = shlex.split(again[0])
    seed = command[command.index("--seed") + 1]
    if complaint(result.stdout) != seed:
        return f"the failure does not name seed {seed}: {result.stdout[-1500:]}"
    repeated = (run(command) for _ in range(ATTEMPTS))
    if all(complaint(one.stdout) != seed or one.returncode == 0 for one in repeated):
        return f"not repeated by {again[0]}"
    unbroken = run([word.replace(f"fault {fault}", "") for word in command])
    return f"fails without the fault: {unbroken.stdout[-1500:]}" if unbroken.returncode else None


def misread(arguments):
    """Returns the error in run.py's handling of an invalid configuration, or None."""
    result = run([os.path.join(HERE, "run.py"), "--build", arguments.build, "--host", arguments.host, "--only", "soak",
                  "--configuration", CONFIGURATION, "--seed", "3", "--runs", "1", "--env", "ORIEL_SPIN=fast"])
    if result.returncode != 1 or "ORIEL_SPIN=fast is not a whole number" not in result.stdout:
        return f"status {result.returncode}, {result.stdout[-500:]}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--host", required=True)
    parser.add_argument("--all", action="store_true", help="each fault, not the first alone")
    arguments = parser.parse_args()
    wrong = misread(arguments)
    failed = wrong is not None
    print(f"{'not ok' if wrong else 'ok'} a variable that is not understood{': ' + wrong if wrong else ''}", flush=True)
    for fault in ALL_FAULTS if arguments.all else FAULTS:
        wrong = tried(arguments, fault)
        print(f"{'not ok' if wrong else 'ok'} {fault}{': ' + wrong if wrong else ''}", flush=True)
        failed += wrong is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
