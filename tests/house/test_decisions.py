"""docs/design/adr: each decision record has its parts and is short, and README.md lists each exactly once.

`faults` inspects a folder of records.  The real folder has no fault.  Copies that are broken on
purpose have the expected one."""

import pathlib
import re
import shutil
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "design" / "adr"
NAME = re.compile(r"(\d{3})-[a-z0-9]+(-[a-z0-9]+)*\.md")
STATUS = re.compile(r"accepted|refuted|superseded by (\d{3})")
SECTIONS = ["Context", "Decision", "Consequences"]
ROW = re.compile(r"\| \[(\d{3})\]\(([^)]+)\) \| (.+?) \| (.+?) \|")
WORDS_MOST = 250
COLUMNS_MOST = 100


def faults_of_text(text):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS_MOST:
            yield f"line {number} has {len(line)} columns"
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if not (RECORDS / link).resolve().exists():
            yield f"a link leads nowhere: {link}"


def faults_of_record(number, text, numbers):
    """The faults of a record, and its title and status (None where they are missing)."""
    found = list(faults_of_text(text))
    head = re.match(r"# (\d{3})\. (\S.*)\n\nStatus: (.+)\n\n", text)
    if head is None or head.group(1) != number:
        return found + ["it does not begin with its number, its title and its status"], None
    status = STATUS.fullmatch(head.group(3))
    if status is None:
        found.append(f"unknown status: {head.group(3)}")
    elif status.group(1) and status.group(1) not in numbers:
        found.append(f"it is superseded by a record that does not exist: {status.group(1)}")
    parts = re.split(r"^## (.*)\n", text[head.end():], flags=re.M)
    if parts[0] or parts[1::2] != SECTIONS or not all(part.strip() for part in parts[2::2]):
        found.append(f"its sections are not {', '.join(SECTIONS)}, each with text")
    words = len(re.findall(r"\S*\w\S*", text))
    if words > WORDS_MOST:
        found.append(f"it has {words} words")
    return found, (head.group(2), head.group(3))


def faults(folder):
    found, known = [], {}
    names = sorted(path.name for path in folder.iterdir() if path.name != "README.md")
    numbers = [name[:3] for name in names]
    for name in names:
        if not NAME.fullmatch(name):
            found.append(f"{name}: the name is not NNN-short-title.md")
        elif numbers.count(name[:3]) > 1:
            found.append(f"{name}: the number is used twice")
        text = (folder / name).read_text(encoding="utf-8")
        wrong, known[name] = faults_of_record(name[:3], text, numbers)
        found += [f"{name}: {fault}" for fault in wrong]
    index = (folder / "README.md").read_text(encoding="utf-8")
    found += [f"README.md: {fault}" for fault in faults_of_text(re.sub(r"(?m)^\|.*", "", index))]
    rows = [(number, name, (title, status)) for number, name, title, status in ROW.findall(index)]
    listed = [name for _, name, _ in rows]
    found += [f"README.md lists {name} {listed.count(name)} times"
              for name in names if listed.count(name) != 1]
    for number, name, stated in rows:
        if name not in known:
            found.append(f"README.md lists {name}, which does not exist")
        elif number != name[:3] or stated != known[name]:
            found.append(f"README.md has another number, title or status for {name}")
    return found


class Decisions(unittest.TestCase):
    def setUp(self):
        parent = tempfile.TemporaryDirectory(prefix="oriel-decisions.")
        self.addCleanup(parent.cleanup)
        self.copy = pathlib.Path(parent.name) / "adr"
        shutil.copytree(RECORDS, self.copy)
        self.first = min(path for path in self.copy.iterdir() if path.name != "README.md")
        self.index = self.copy / "README.md"

    def replace(self, path, old, new):
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def check_broken(self, *expected):
        found = "\n".join(faults(self.copy))
        for text in expected:
            self.assertIn(text, found)

    def row(self):
        lines = self.index.read_text(encoding="utf-8").splitlines(True)
        return next(line for line in lines if self.first.name in line)

    def test_records_and_table_are_complete(self):
        self.assertGreater(len(list(RECORDS.glob("[0-9]*.md"))), 100)
        self.assertEqual(faults(RECORDS), [])

    def test_a_missing_part_is_found(self):
        for part in SECTIONS:
            self.replace(self.first, f"## {part}\n", f"## No {part}\n")
            self.check_broken(f"{self.first.name}: its sections are not")
            self.replace(self.first, f"## No {part}\n", f"## {part}\n")
        self.assertEqual(faults(self.copy), [])
        text = self.first.read_text(encoding="utf-8")
        text = text[:text.index("## Consequences\n")] + "## Consequences\n"
        self.first.write_text(text, encoding="utf-8")
        self.check_broken(f"{self.first.name}: its sections are not")

    def test_a_wrong_head_is_found(self):
        self.replace(self.first, "Status: accepted", "Status: good")
        self.check_broken("unknown status: good", "another number, title or status")
        self.replace(self.first, "Status: good", "Status: superseded by 999")
        self.check_broken("does not exist: 999")
        self.replace(self.first, "# 001. ", "# 002. ")
        self.check_broken("it does not begin with")

    def test_a_long_record_is_found(self):
        more = "more words\n" * (WORDS_MOST // 2)
        self.replace(self.first, "## Decision\n", f"## Decision\n\n{more}")
        self.check_broken(f"{self.first.name}: it has ")

    def test_a_wide_line_and_a_dead_link_are_found(self):
        wide = "x" * (COLUMNS_MOST + 1)
        self.replace(self.first, "## Decision\n",
                     f"## Decision\n\n{wide}\n[nothing](000-nothing.md)\n")
        self.check_broken("has 101 columns", "a link leads nowhere: 000-nothing.md")

    def test_a_wrong_name_is_found(self):
        shutil.copy(self.first, self.copy / "001-Again.md")
        shutil.copy(self.first, self.copy / "001-again.md")
        self.check_broken("001-Again.md: the name is not", "001-again.md: the number is used twice",
                          "README.md lists 001-again.md 0 times")

    def test_a_record_that_is_not_listed_once_is_found(self):
        row = self.row()
        self.replace(self.index, row, row + row)
        self.check_broken(f"README.md lists {self.first.name} 2 times")
        self.replace(self.index, row + row, "")
        self.check_broken(f"README.md lists {self.first.name} 0 times")
        self.first.unlink()
        self.replace(self.index, "|---|---|---|\n", "|---|---|---|\n" + row)
        self.check_broken(f"README.md lists {self.first.name}, which does not exist")


if __name__ == "__main__":
    unittest.main()
