"""Shared parts of the scripts that check a job's output: their arguments, the job, and the lines that it must name.

CTest passes the launcher, the build folder, the host and the program. Standard library only."""

import argparse
import os
import re
import subprocess


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("program")
    return parser.parse_args()


def run(args, ranks, *words, options=()):
    """Runs one job of the program with these arguments; options go to the launcher."""
    job = subprocess.run([args.launch, "--build", args.build, "--host", args.host, "-n", str(ranks), *options,
                          args.program, *words],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    job.stdout = job.stdout.replace("\0", "")  # which Open MPI 5's launcher now and then puts before a line
    return job


def marked_line(source, mark):
    """A pattern for FILE:LINE of the line with the comment CALL and that mark, in a source of this folder."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), source), encoding="utf-8") as file:
        lines = file.read().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.endswith(f"/* CALL {mark} */"))
    return f"{re.escape(source)}:{number}"


def own_lines(job):
    return [line for line in job.stdout.splitlines() if line.startswith("oriel")]


def report(name, good, job, wanted):
    """Prints the line of a case and returns whether it is good."""
    print(f"{'ok' if good else 'not ok'} {name}")
    if not good:
        print(f"# status {job.returncode}, wanted: {wanted}\n{job.stdout}")
    return good
