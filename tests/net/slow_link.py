#!/usr/bin/python3
"""Runs slow_link.c across emulated nodes, one of which has a link that delays and loses packets.

slow_link.py --build FOLDER --host HOST PROGRAM. ORIEL_TIMEOUT is short: the job fails if Oriel
takes a slow rank for a dead one."""

import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTNET = os.path.join(ROOT, "scripts", "testnet")
NODES = 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--loss", default="5")
    parser.add_argument("--delay", default="20")
    parser.add_argument("program")
    args = parser.parse_args()
    net = [TESTNET, "--id", f"s{os.getpid() % 10000000}"]
    made = subprocess.run([*net, "up", str(NODES), "--owner", str(os.getpid()), "--share", args.build], check=False)
    if made.returncode:
        return made.returncode
    # MPICH sometimes hangs in MPI_Finalize (tests/launch gives the reason), here in 1 of 20 runs.
    options = ["--env=ORIEL_TIMEOUT=10", *(["--env=TEST_NO_FINALIZE=1"] if args.host == "mpich" else [])]
    try:
        subprocess.run([*net, "delay", "b", args.delay], check=True)
        subprocess.run([*net, "loss", "b", args.loss], check=True)
        job = subprocess.Popen([*net, "run", "--host", args.host, "-n", str(NODES), *options, "--",
                                f"{args.build}/bin/oriel", "run", args.program], stdin=subprocess.DEVNULL)
        try:
            return job.wait(150)
        except subprocess.TimeoutExpired:
            job.terminate()
            print("the job did not end")
            return 1
    finally:
        subprocess.run([*net, "down"], check=False)


sys.exit(main())
