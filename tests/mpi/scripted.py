"""What the scripts share that look at a job's output: their arguments, and the job.  CTest names the launcher, the build
folder, the host and the program.  Imported by the scripts of this folder; standard library only."""

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
    """One job of the program with these words, its output in .stdout; options are the launcher's."""
    return subprocess.run([args.launch, "--build", args.build, "--host", args.host, "-n", str(ranks), *options,
                           args.program, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
