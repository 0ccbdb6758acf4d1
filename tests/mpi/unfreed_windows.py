#!/usr/bin/python3
"""MPI_Finalize reports windows that a program leaves open, once, by name. Otherwise it prints
nothing.

CTest runs it for each host."""

import re
import sys

sys.dont_write_bytecode = True
import job_output  # noqa: E402

CASES = {
    "0": None,
    "1": r"1 window was not freed: table-0 \[O29\]$",
    "3": r"3 windows were not freed: (?=.*table-0)(?=.*table-2)(?=.*\(unnamed\))[^,]*, [^,]*, [^,]* \[O29\]$",
    "200": r"200 windows were not freed: (?!.*more.*more).*table-\d+.*, \(and more\) \[O29\]$",
}


def main():
    args = job_output.arguments()
    failures = 0
    for count, pattern in CASES.items():
        job = job_output.run(args, 3, count)
        lines = [line for line in job.stdout.splitlines() if "oriel[" in line]
        wanted = 1 if pattern else 0
        good = job.returncode == 0 and len(lines) == wanted and all(re.search(pattern, line) for line in lines)
        failures += not good
        print(f"{'ok' if good else 'not ok'} windows_left_open_are_reported_once_by_name/{count}")
        if not good:
            print(f"# status {job.returncode}, wanted: {pattern}\n{job.stdout}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
