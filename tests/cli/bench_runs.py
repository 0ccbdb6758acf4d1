"""Runs of `oriel bench` for its tests.

A stub replaces the benchmark's program where a host has to misbehave."""

import json
import os
import re
import shutil
import subprocess
import sys

from command import BUILD, Case, HOSTS, ORIEL, environment

SCRIPTS = os.path.join(BUILD, "lib", "oriel", "bench")
sys.path.insert(0, SCRIPTS)

# Rank 0 answers for the job. The pattern's name selects its behaviour.
STAND_IN = """#!/bin/bash
[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ] || exit 0
echo "library MPICH Version: 9 Open MPI v9, %(library)s"
for name in "$@"; do
    case $name in --*) continue ;; esac
    echo "begin $name"
    case $name in
        get:*) echo "end $name WRONG"; continue ;;
        accumulate:*) exec -a bench-stand-in yes "still here" ;;
        get-accumulate:*) echo "end $name 0.00"; echo "end $name inf"; exit 0 ;;
        fetch-and-op:*) kill -SEGV $$ ;;
        compare-and-swap:*|hot-*) touch %(folder)s/hangs; exec -a bench-stand-in sleep 300 ;;
        fence:*) printf "the host's last\\033[2J words" >&2; exit 3 ;;
    esac
    echo "end $name 12.5"
done
"""


def bench(oriel, *arguments, timeout=600, **changes):
    return without_load(subprocess.run([oriel, "bench", *arguments], env=environment(**changes), capture_output=True, text=True,
                                       timeout=timeout, stdin=subprocess.DEVNULL, check=False))


def without_load(result):
    """The result without the warning of other load, which depends on the node."""
    result.stderr = re.sub(r"^oriel bench: the node is loaded: .*\n", "", result.stderr, flags=re.M)
    return result


class BenchCase(Case):
    def measured(self, *arguments, oriel=ORIEL, **changes):
        """Status, and the results by (pattern, column), of a run on allocated memory."""
        result = bench(oriel, "--memories", "allocate", "--runs", "1", "--json", self.path("out.json"), *arguments, **changes)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        return result, self.read_results()

    def read_results(self):
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.record = json.load(file)
        return {(entry["pattern"], entry["column"]): entry for entry in self.record["results"]}

    def stand_in(self, library="windows by Oriel"):
        """An installation whose benchmark program is the stub, for the first host only."""
        oriel, host = self.tree(HOSTS[0]), HOSTS[0]
        shutil.copytree(SCRIPTS, self.path("tree/lib/oriel/bench"))
        self.write(f"tree/lib/oriel/{host}/rma", STAND_IN % {"library": library, "folder": self.folder})
        return oriel
