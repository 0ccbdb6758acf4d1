#!/usr/bin/python3
"""scripts/install-deps on a clean system: everything builds and runs with its packages."""

import os
import shutil
import subprocess

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
        root.must("/srv/oriel/scripts/install-deps", limit_s=1800)
        root.must("/srv/oriel/scripts/install-deps")  # and has nothing to do the second time
        printed = root.must("cd /srv/oriel && make -s", limit_s=3 * 3600)
        assert "warning" not in printed, printed[-4000:]
        lacking = [line for line in printed.splitlines() if line.startswith("-- No ")]
        assert not lacking, lacking  # optional parts of the build
        root.must("cd /srv/oriel && ctest --test-dir build -R '^(mpi.lock.*[.]2[.]oriel|unit.options|cli.info)$'",
                  "100% tests passed", limit_s=1800)


main()
