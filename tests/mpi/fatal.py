#!/usr/bin/python3
"""An error that the program does not handle ends the job. The message names the call, the rank, the
window and the numbers.

CTest runs it for each host."""

import re
import sys

sys.dont_write_bytecode = True
import job_output  # noqa: E402

CASES = {
    "range": r"MPI_Put by rank [01] on window table: displacement 1 in units of 8",
    "epoch": r"MPI_Put by rank [01] on window table: no access epoch to rank 0 is open",
    "size": "MPI_Win_allocate on communicator MPI_COMM_WORLD: size -1 is negative",
}


def main():
    args = job_output.arguments()
    failures = 0
    for case, pattern in CASES.items():
        job = job_output.run(args, 2, case)
        good = job.returncode != 0 and re.search(pattern, job.stdout) is not None
        failures += not good
        print(f"{'ok' if good else 'not ok'} an_unhandled_error_ends_the_job_and_says_why/{case}")
        if not good:
            print(f"# status {job.returncode}, wanted: {pattern}\n{job.stdout}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
