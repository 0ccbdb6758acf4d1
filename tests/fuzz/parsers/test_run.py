#!/usr/bin/python3
"""run.py's handling of a fuzzer that fails, with shell scripts in place of fuzzers."""

import contextlib
import io
import os
import stat
import tempfile
import unittest

import run

# An input in the corpus is a folder; an input that runs alone is a file.
STAND_IN = """#!/bin/sh
for last; do :; done
unit="$0.failed-%(kind)s-1"
if [ "$last" = "$unit" ]; then
    %(alone)s
fi
[ ! -e "$0.again" ] || exit 0
touch "$0.again"
echo "artifact_prefix; Test unit written to $unit" >&2
touch "$unit"
exit %(status)d
"""


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="oriel-fuzzers.")
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, "fuzzer")
        self.unit = self.program + ".failed-timeout-1"
        run.LIMIT_S, run.WAIT_S = 1, 2

    def is_well(self, **script):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(STAND_IN % {"kind": "timeout", "status": run.TOO_LONG, **script})
        os.chmod(self.program, stat.S_IRWXU)
        with contextlib.redirect_stdout(io.StringIO()) as self.output:
            return run.run(self.program, ["-runs=1"], os.path.dirname(self.program))

    def test_delayed_input_is_no_failure(self):
        self.assertTrue(self.is_well(alone="exit 0"))
        self.assertIn("the node was busy", self.output.getvalue())
        self.assertFalse(os.path.exists(self.unit))

    def test_input_that_computes_too_long_is_a_failure(self):
        self.assertFalse(self.is_well(alone="while :; do :; done"))
        self.assertIn("failed; again with: " + self.program, self.output.getvalue())
        self.assertTrue(os.path.exists(self.unit))

    def test_input_that_waits_for_ever_is_a_failure(self):
        self.assertFalse(self.is_well(alone="exec sleep 1000"))

    def test_other_failures_are_not_tried_again(self):
        self.assertFalse(self.is_well(alone="exit 0", status=77))

    def test_node_that_is_always_too_busy_is_reported(self):
        self.assertFalse(self.is_well(alone="rm -f $0.again; exit 0"))


unittest.main()
