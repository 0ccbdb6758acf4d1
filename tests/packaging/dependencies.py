#!/usr/bin/python3
"""scripts/install-deps on a clean system: the demo runs with the packages of the tier `build`, and
all tests can be built with those of the tier `test`."""

import os
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from debian_root import clean_root  # noqa: E402


def main():
    with clean_root() as root:
        root.copy_tree(ROOT, "srv/oriel")
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
        said = [line for line in printed.splitlines() if "oriel: " in line and "oriel: herd7 is in " not in line]
        assert not said, said  # herd7 is fetched again, as the cache is gone
        printed = root.must("cd /srv/oriel && make -s tests", limit_s=3 * 3600)
        assert "warning" not in printed, printed[-4000:]
        lacking = [line for line in printed.splitlines() if line.startswith("-- No ")]
        assert not lacking, lacking  # optional parts of the build
        root.must("cd /srv/oriel && ctest --test-dir build -R '^(mpi.lock.*[.]2[.]oriel|unit.options|cli.info)$'",
                  "100% tests passed", limit_s=1800)


main()
