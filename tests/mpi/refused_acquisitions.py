#!/usr/bin/python3
"""Refuses each acquisition that a rank makes for its first windows, each in a job of its own.

Each job must end and satisfy the checks of refused_acquisitions.c. The loop stops at the first
number that is too high. --start N counts from MPI_Init on, the checker's start included, and
refuses each of the first N acquisitions (refuse_preload.c prints a line). The script then checks
only the exit status. CTest runs it for each host. Arguments for tests/launch follow the program."""

import argparse
import subprocess
import sys

MOST = 400
REFUSED = "# refused\n"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--refuse", required=True, help="the library to preload")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--step", type=int, default=1, help="refuse every Nth acquisition")
    parser.add_argument("--check", metavar="ORIEL", help="under `oriel check`")
    parser.add_argument("--start", type=int, default=0, metavar="N", help="the first N acquisitions from MPI_Init on")
    parser.add_argument("--only", default="plain_windows_survive_refusals", help="this case of the program")
    parser.add_argument("program")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    return parser.parse_args()


def run(args, which):
    words = [args.launch, "--build", args.build, "--host", args.host, "-n", "2", "--timeout", "50", *args.options,
             "--env", f"LD_PRELOAD={args.refuse}", "--env", "TEST_SECONDS=20", "--env", "TEST_ONCE=1"]
    if args.start:
        words += ["--env", f"TEST_REFUSE_FIRST={args.rank}:{which}", "--env", "TEST_FIRST=1000"]
    else:
        words += ["--env", f"TEST_RANK={args.rank}", "--env", f"TEST_FIRST={which}"]
    if args.check:  # errors that the program handles are findings too: the status is the program's
        words += ["--plain", "--", args.check, "check", "--no-fail"]
    else:
        words += ["--"]
    return subprocess.run([*words, args.program, "--only", args.only], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    args = arguments()
    failures = refused = 0
    is_over = bool(args.start)
    for which in range(args.step, args.start + 1 if args.start else MOST, args.step):
        job = run(args, which)
        if job.returncode != 0:
            failures += 1
            print(f"not ok acquisition {which}")
            print("\n".join(f"# {line}" for line in [f"status {job.returncode}", *job.stdout.splitlines()]))
        if "is one too many" in job.stdout and not args.start:
            is_over = True
            break
        if args.start and REFUSED not in job.stdout:
            failures += 1
            print(f"not ok acquisition {which}: nothing was refused")
        refused += 1
    if not is_over:
        failures += 1
        print(f"not ok after {MOST} there are more of them")
    print(f"{'not ok' if failures else 'ok'} {refused} acquisitions, of which {failures} did harm")
    return 1 if failures or refused == 0 else 0


sys.exit(main())
