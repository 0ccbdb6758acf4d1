"""Shared by the tests of the page of `oriel bench`: the example's results, and the page's writer as
the build has laid it out.

The example's figures are made up; it contains each possible outcome of a cell."""

import copy
import json
import os
import sys
import unittest

from browser import Folder

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ["TESTS_BENCH"])
from page import page, skeleton  # noqa: E402, F401

HOSTILE = ("</script x=1 </script></style></title>--><script>hostile()</script><img src=x onerror=hostile()>\"'&\x00\ud800"
           "<!-- <script x=1 ")

with open(os.path.join(HERE, "example.json"), encoding="utf-8") as file:
    EXAMPLE = json.load(file)


def example(keep=lambda result: True):
    """The example with a selection of its results, as a modifiable copy."""
    results = copy.deepcopy(EXAMPLE)
    results["results"] = [result for result in results["results"] if keep(result)]
    return results


def hostile(value, names=("column", "status", "pattern", "limit", "name")):
    """The same results with hostile markup in every text, except for the keys in names."""
    if isinstance(value, dict):
        return {key: part if key in names and isinstance(part, str) else hostile(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [hostile(part, names) for part in value]
    return HOSTILE + value if isinstance(value, str) else value


class Case(Folder):
    def write(self, results, name="page.html"):
        page.write(results, self.path(name))
        with open(self.path(name), encoding="utf-8") as text:
            return text.read()


def main():
    """Runs the caller's tests, or prints why they cannot run."""
    try:
        skeleton.library()
    except skeleton.MissingLibrary as reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main()
