"""scripts/readme-figures: a run's figures arrive in the rows of the marked tables, and the rest of
the text is unchanged. The README's rows are rows of docs/results/index.md."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

README = """# Words | with | bars

| put 8 B + flush | as it was |

<!-- figures: allocate mpich openmpi oriel-mpich oriel-openmpi oriel-is raw -->
| pattern | MPICH | Open MPI | Oriel on MPICH | Oriel on Open MPI | Oriel is | raw |
|---|---:|---:|---:|---:|---:|---:|
| put 8 B + flush | old | old | old | old | old | old |
| compare_and_swap | old | old | old | old | old | old |
| get 8 B + flush | kept | | | | | |
| no pattern of it | kept | | | | | |

| put 8 B + flush | not of the table |

<!-- figures: * mpich oriel-is -->
| pattern | memory | MPICH | Oriel is |
|---|---|---:|---:|
| put 8 B + flush | allocate | old | old |
| put 8 B + flush | cma | kept | kept |
"""


def tables(page):
    """The rows of the marked tables: by pattern and memory, the cells by column."""
    rows, wanted = {}, None
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        marker = re.fullmatch(r"<!-- figures: (\S+) (.+) -->", line)
        if marker:
            wanted = marker[1], marker[2].split()
        elif wanted and line.startswith("| ") and not line.startswith("| pattern "):
            cells = line.strip("| ").split(" | ")
            key = (cells.pop(0), cells.pop(0) if wanted[0] == "*" else wanted[0])
            rows.setdefault(key, {}).update(zip(wanted[1], cells))
        elif not line.startswith("|"):
            wanted = None
    return rows


def results():
    times = {("put", "mpich"): 300, ("put", "openmpi"): 20, ("put", "oriel-mpich"): 4, ("put", "oriel-openmpi"): 5,
             ("compare-and-swap", "mpich"): 400, ("compare-and-swap", "openmpi"): None,
             ("compare-and-swap", "oriel-mpich"): 10, ("compare-and-swap", "oriel-openmpi"): 8}
    listed = [{"pattern": pattern, "memory": "allocate", "ranks": 2, "bytes": 8, "in_flight": 1, "column": column,
               "best": best, "status": "ok" if best else "crash"} for (pattern, column), best in times.items()]
    for result in list(listed):  # neither of other memory, nor of several operations in flight
        listed.append(dict(result, memory="create", best=9999, status="ok"))
        listed.append(dict(result, in_flight=64, best=9999, status="ok"))
    listed.append({"pattern": "raw-store-fence", "memory": "local", "ranks": 1, "bytes": 8, "in_flight": 1, "column": "raw",
                   "best": 3.5, "status": "ok"})
    return listed


class ReadmeFigures(unittest.TestCase):
    def run_on(self, text, found):
        with tempfile.TemporaryDirectory() as folder:
            readme, run = os.path.join(folder, "README.md"), os.path.join(folder, "run.json")
            pathlib.Path(readme).write_text(text)
            pathlib.Path(run).write_text(found)
            done = subprocess.run([ROOT / "scripts" / "readme-figures", run, readme], capture_output=True, text=True)
            return done, pathlib.Path(readme).read_text()

    def test_rows_are_those_of_the_run(self):
        done, text = self.run_on(README, json.dumps({"results": results()}))
        self.assertEqual(text, README.replace(
            "put 8 B + flush | old | old | old | old | old | old", "put 8 B + flush | 300 ns | 20 ns | 4 ns | 5 ns | 4.0 times faster | 3.5 ns"
        ).replace("compare_and_swap | old | old | old | old | old | old",
                  "compare_and_swap | 400 ns | crash | 10 ns | 8 ns | 40 times faster | ").replace(
            "put 8 B + flush | allocate | old | old", "put 8 B + flush | allocate | 300 ns | 4.0 times faster"))
        self.assertEqual((done.returncode, done.stderr),
                         (1, "readme-figures: the results have no get 8 B + flush (allocate)\n"))

    def test_nothing_is_written_from_invalid_results(self):
        for found in ("{", "{}", "[]", json.dumps({"results": [{"pattern": "put"}]}), json.dumps({"results": 3})):
            done, text = self.run_on(README, found)
            self.assertEqual((done.returncode, text), (1, README), found)
            self.assertRegex(done.stderr, "^readme-figures: cannot read [^\n]+\n$")

    def test_the_results_have_marked_tables(self):
        text = (ROOT / "docs" / "results" / "index.md").read_text()
        for memory, rows in (("allocate", 20), ("create", 20), ("cma", 5), ("heap", 0)):
            done, written = self.run_on(text, json.dumps({"results": [dict(one, memory=memory) for one in results()
                                                                      if one["pattern"] == "put" and one["in_flight"] == 1]}))
            changed = [line for line, old in zip(written.splitlines(), text.splitlines()) if line != old]
            self.assertEqual((len(changed), len(done.stderr.splitlines())), (memory != "heap", rows), done.stderr)

    def test_the_readmes_rows_are_those_of_the_results(self):
        shown, all_rows = tables("README.md"), tables("docs/results/index.md")
        self.assertEqual(len(shown), 6)
        for key, cells in shown.items():
            self.assertEqual({column: all_rows[key][column] for column in cells}, cells, key)
        slower = [key for key, cells in shown.items() if cells["oriel-is"].endswith("slower")]
        self.assertEqual(len(slower), 1, "one row where a host is faster")


if __name__ == "__main__":
    unittest.main()
