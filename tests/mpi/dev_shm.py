#!/usr/bin/python3
"""Windows need no space in /dev/shm: 256 MiB on each rank work where it has a few MiB for the
host's own files, and windows work where the program has filled it up.

Runs as root, in a mount namespace of its own. CTest runs it for each host."""

import argparse
import os
import shutil
import subprocess
import sys

ROOM = "24m"
CASES = ("windows_of_256_mib_on_each_rank_work", "windows_work_where_dev_shm_is_full")


def namespace(command):
    """The command in a namespace with a small /dev/shm."""
    script = f'mount -t tmpfs -o size={ROOM} tmpfs /dev/shm && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *command]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--plain", action="store_true", help="on the bare host, for comparison")
    parser.add_argument("program")
    args = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("unshare"):
        print("skipped: only root can mount a small /dev/shm of its own")
        return 77
    if subprocess.run(namespace(["true"]), stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no mount namespace may be made here")
        return 77
    # Open MPI touches its own memory there late, and dies where there is no room. The component's
    # name is vader before version 5.
    own = [f"--env=OMPI_MCA_btl_{name}_backing_directory=/tmp" for name in ("sm", "vader") if args.host == "openmpi"]
    status = 0
    for case in CASES:
        job = subprocess.run(namespace([args.launch, "--build", args.build, "--host", args.host, "-n", "2", "--timeout", "60",
                                        "--env", "TEST_OWN_DEV_SHM=1", *own, *(["--plain"] if args.plain else []), "--", args.program,
                                        "--only", case]),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(job.stdout, end="")
        status = status or job.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
