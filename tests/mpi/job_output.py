"""Shared parts of the scripts that check a job's output: their arguments, and the job.

CTest passes the launcher, the build folder, the host and the program. Standard library only."""

import argparse
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
    return subprocess.run([args.launch, "--build", args.build, "--host", args.host, "-n", str(ranks), *options,
                           args.program, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
