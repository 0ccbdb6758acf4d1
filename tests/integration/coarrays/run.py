"""Coarrays of gfortran: the precompiled programs of Debian's libcoarrays-HOST-dev, run through
Oriel.

Their coarrays are windows, and waiting images use locks, flushes and atomic operations. The
programs run on one node only: some use the result of MPI_Get before they unlock, which works
only if the get completes at once. Each program must exit with success, and print so if it prints
anything.

    run.py --build build --host mpich [--only TEXT] [-- ARGUMENTS OF tests/launch]"""

import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "launch")
IMAGES = 4
OTHER_IMAGES = {
    # work grows with the number of images
    "coarray_burgers_pde": 2, "get_array": 2, "send_array": 2,
    "issue-515-mimic-mpi-gatherv": 2, "issue-552-send_by_ref-singleton": 2,
    "sync_team": 8, "team_number": 8,
}
NOT_RUN = {
    r"image_fail.*": "an image kills itself, and the launchers end the job",
    r"image_status_test_1|image_fail_and_stopped_images_test_1": "the same",
    r"increment_my_neighbor": "a race of its own: images read what others have not written yet",
    r"issue-488-multi-dim-cobounds": "reads a value that it has not set",
}
# In Debian sid's package for Open MPI 6 it and many others damage their heap.
PROBE = "send_convert_nums"


def programs(host):
    found = glob.glob("/usr/lib/*/open-coarrays/%s/bin/*-tests/*" % host)
    return {os.path.basename(path): path for path in found if os.access(path, os.X_OK)}


def run(options, name, path, *launch):
    """Returns the error, or None."""
    images = OTHER_IMAGES.get(name, IMAGES)
    command = [LAUNCH, "--build", options.build, "--host", options.host, "-n", str(images), "--timeout", "60",
               *launch, *options.launch, "--", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode == 0 and not re.search(r"(?i)\btest\b.*\bfail", text):
        return None
    return "not ok %s, %d images: status %d\n%s" % (name, images, done.returncode, text[-2000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--only", default="", help="programs whose name matches this")
    parser.add_argument("launch", nargs="*")
    options = parser.parse_args()
    found = programs(options.host)
    if not found:
        print("# skipped: libcoarrays-%s-dev is not installed" % options.host)
        return 77
    if PROBE in found and run(options, PROBE, found[PROBE], "--plain"):
        print("# skipped: the coarray library crashes on this host without Oriel, too")
        return 77
    chosen = sorted(name for name in found if re.search(options.only, name)
                    and not any(re.fullmatch(left_out, name) for left_out in NOT_RUN))
    if not chosen:
        sys.exit("run.py: no program of that name")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [text for text in pool.map(lambda name: run(options, name, found[name]), chosen) if text]
    print("\n".join(wrong + ["# %d programs, %d wrong" % (len(chosen), len(wrong))]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
