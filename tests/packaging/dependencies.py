#!/usr/bin/python3
"""scripts/install-deps on a clean system: the demo runs with the packages of the tier `build`, and
all tests can be built with those of the tier `test`."""

import os
import shutil
import subprocess
import time

from clean_system import Root

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def sources():
    """The files of the sources: those that git lists; without git, all except build folders."""
    asked = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           capture_output=True, text=True, check=False)
    if asked.returncode == 0:
        return [name for name in asked.stdout.split("\0") if name and os.path.lexists(os.path.join(ROOT, name))]
    return [os.path.relpath(os.path.join(where, name), ROOT) for where, _, names in os.walk(ROOT) for name in names
            if not os.path.relpath(where, ROOT).startswith("build")]


def main():
    with Root() as root:
        for name in sources():
            os.makedirs(os.path.dirname(root.path(f"srv/oriel/{name}")), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), root.path(f"srv/oriel/{name}"), follow_symlinks=False)
        root.must("apt-get update -qq && apt-get install -y -qq --no-install-recommends make")
        began = time.monotonic()
        printed = root.must("cd /srv/oriel && make -s demo HOST=mpich", "MPICH alone", "No openmpi: ",
                            limit_s=3600)
        assert "Open MPI alone" not in printed, printed[-4000:]
        print(f"the demo took {time.monotonic() - began:.0f} s from an empty system", flush=True)
        root.must("! command -v mpiexec.openmpi && ! command -v chromium && ! command -v npm")
        root.must("cd /srv/oriel && make -s demo", "MPICH alone", "Open MPI alone", "Try next",
                  limit_s=3600)
        assert not root.must("/srv/oriel/scripts/install-deps build")  # nothing is left to do

        root.must("/srv/oriel/scripts/install-deps test", limit_s=1800)
        printed = root.must("/srv/oriel/scripts/install-deps test")
        assert "oriel: " not in printed, printed  # the guest's kernel may be refused here
        printed = root.must("cd /srv/oriel && make -s tests", limit_s=3 * 3600)
        assert "warning" not in printed, printed[-4000:]
        lacking = [line for line in printed.splitlines() if line.startswith("-- No ")]
        assert not lacking, lacking  # optional parts of the build
        root.must("cd /srv/oriel && ctest --test-dir build -R '^(mpi.lock.*[.]2[.]oriel|unit.options|cli.info)$'",
                  "100% tests passed", limit_s=1800)


main()
