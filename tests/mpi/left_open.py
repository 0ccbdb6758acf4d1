#!/usr/bin/python3
"""Windows that a program leaves open are reported once by MPI_Finalize, by name; one that frees all is told nothing.
Run by CTest for each host."""

import argparse
import re
import subprocess
import sys

CASES = {
    "0": None,
    "1": r"1 window was not freed: table-0$",
    "3": r"3 windows were not freed: (?=.*table-0)(?=.*table-2)(?=.*\(unnamed\))[^,]*, [^,]*, [^,]*$",
    "200": r"200 windows were not freed: (?!.*more.*more).*table-\d+.*, \(and more\)$",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("program")
    args = parser.parse_args()
    failures = 0
    for count, told in CASES.items():
        job = subprocess.run([args.launch, "--build", args.build, "--host", args.host, "-n", "3", args.program, count],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = [line for line in job.stdout.splitlines() if "oriel[" in line]
        wanted = 1 if told else 0
        good = job.returncode == 0 and len(lines) == wanted and all(re.search(told, line) for line in lines)
        failures += not good
        print(f"{'ok' if good else 'not ok'} windows_left_open_are_reported_once_by_name/{count}")
        if not good:
            print(f"# status {job.returncode}, wanted: {told}\n{job.stdout}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
