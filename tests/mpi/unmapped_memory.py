#!/usr/bin/python3
"""Memory that is unmapped under an open window does no harm; MPI_Win_free reports it with the
window's name.

CTest runs it for each host: as root and as an ordinary user. An ordinary user cannot stop
ThreadSanitizer's own thread to promote memory, so that combination is left out."""

import os
import re
import sys

sys.dont_write_bytecode = True
import job_output  # noqa: E402

# The windows whose shared memory is unmapped when they are freed: unmapped_memory.c gives each the
# name of its case.
REPORTED = ["vanished", "hole", "mapped-over", "moved"]
SKIP = 77


def main():
    args = job_output.arguments()
    failures = 0
    as_user = os.geteuid() == 0 and os.environ.get("TESTS_SANITIZE") != "thread"
    for user in [[]] + ([["--user"]] if as_user else []):
        user_name = "an_ordinary_user" if user or os.geteuid() != 0 else "root"
        job = job_output.run(args, 2, options=["--timeout", "100", *user, "--env", "ORIEL_PROMOTE=always"])
        if job.returncode == SKIP:
            print(f"skip unmapped_memory_is_harmless/{user_name}: {job.stdout.strip()}")
            continue
        good = job.returncode == 0 and "not ok" not in job.stdout
        failures += not good
        print(f"{'ok' if good else 'not ok'} unmapped_memory_is_harmless/{user_name}")
        if not good:
            print("\n".join(f"# {line}" for line in [f"status {job.returncode}", *job.stdout.splitlines()]))
        for name in REPORTED:
            found = re.search(rf"oriel\[\d+\].*\b{name}\b.*unmapped or replaced", job.stdout)
            failures += not found
            print(f"{'ok' if found else 'not ok'} the_window_with_unmapped_memory_is_named/{name}/{user_name}")
    return 1 if failures else 0


sys.exit(main())
