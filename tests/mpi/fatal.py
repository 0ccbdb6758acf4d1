#!/usr/bin/python3
"""An error that the program does not handle ends the job. One line names the rank, the call with
its line, the window, and the numbers, however many ranks have the same error.

CTest runs it for each host."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import job_output  # noqa: E402

# The line after the rank; CALL is the marked line of fatal.c, LAST the highest rank.
CASES = {
    "rank": r'MPI_Put at CALL: target rank 7 is outside window "table" \(ranks 0 to LAST\)',
    # The number is that of rank 0, which has made one more.
    "unnamed": r"MPI_Put at CALL: target rank 9 is outside window 2 \(MPI_Win_allocate\) \(ranks 0 to LAST\)",
    "different": r'MPI_Put at CALL: target rank 1\d is outside window "table" \(ranks 0 to LAST\)',
    "threads": r'MPI_Put at CALL: target rank 7 is outside window "table" \(ranks 0 to LAST\)',
    "range": r'MPI_Put at CALL on window "table": displacement 1 in units of 8 with 1 items of 8 bytes exceeds rank 0\'s window '
             "of 8 bytes",
    "epoch": r'MPI_Put at CALL on window "table": no access epoch to rank 0 is open',
    "attach": r'MPI_Win_attach at CALL: window "table" is not dynamic',
    "size": r"MPI_Win_allocate at CALL on communicator MPI_COMM_WORLD: size -1 is negative",
    "part": r"MPI_Win_allocate at CALL on communicator MPI_COMM_WORLD: size -1 is negative",
    # Rank 0 has caused the error, but does not end the job: another rank does, after some seconds.
    "returned": r"MPI_Win_allocate at CALL on communicator MPI_COMM_WORLD: rank 0 failed to create its part of the window",
    "freed": r"MPI_Win_fence at CALL: the handle is not a window, or was freed",
}


def one_line(args, case, message, ranks, call):
    wanted = "oriel: rank " + (r"1" if case == "part" else rf"[0-{ranks - 1}]") + ": " + message
    wanted = wanted.replace("CALL", call).replace("LAST", str(ranks - 1))
    job = job_output.run(args, ranks, case)
    lines = job_output.own_lines(job)
    # the launcher of MPICH 4.2 may return 0 when two ranks abort at once
    ended = job.returncode != 0 or "Abort(" in job.stdout
    good = ended and len(lines) == 1 and re.fullmatch(wanted, lines[0]) is not None
    return job_output.report(f"an_unhandled_error_ends_the_job_with_one_line/{case}/{ranks}", good, job, wanted)


def without_lines(args):
    """Without debug information, the module and the offset that addr2line understands."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = shutil.copy(args.program, os.path.join(folder, "stripped"))
        subprocess.run(["strip", stripped], check=True)
        args.program, program = stripped, args.program
        job = job_output.run(args, 2, "rank")
        args.program = program
    lines = job_output.own_lines(job)
    wanted = r"oriel: rank [01]: MPI_Put at stripped\+0x([0-9a-f]+): target rank 7 is outside"
    found = re.match(wanted, lines[0]) if lines else None
    resolved = "" if found is None else subprocess.run(["addr2line", "-e", args.program, "0x" + found[1]], capture_output=True,
                                                       text=True, check=True).stdout
    good = re.search(job_output.marked_line("fatal.c", "rank") + r"\b", resolved) is not None
    return job_output.report("without_debug_information_the_offset_is_named", good, job, wanted + " " + resolved)


def main():
    args = job_output.arguments()
    good = True
    for case, message in CASES.items():
        for ranks in (2, 4) if case in ("rank", "part", "threads", "returned") else (2,):
            good = one_line(args, case, message, ranks, job_output.marked_line("fatal.c", case)) and good
    good = without_lines(args) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
