"""What documents name exists in the sources. Messages that end in a code, "[O12]": each code has one
paragraph in docs/troubleshooting.md and at least one message. Tests that SECURITY.md names."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A message may end in a line feed; the formatter may break it before the code.
IN_MESSAGE = re.compile(r'[ "]\[(O\d+)\](?:\\n)?"')
IN_PAGE = re.compile(r"^### (O\d+): \S", re.M)


def sources():
    for folder in ("src", "cli"):
        for path in sorted((ROOT / folder).rglob("*.c")):
            yield path, path.read_text(encoding="utf-8")


class Codes(unittest.TestCase):
    def test_codes_and_paragraphs_match(self):
        used = {code for _, text in sources() for code in IN_MESSAGE.findall(text)}
        described = IN_PAGE.findall((ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8"))
        self.assertEqual(len(described), len(set(described)), "a code has two paragraphs")
        self.assertEqual(used, set(described))
        self.assertGreater(len(used), 20)

    def test_codes_end_messages(self):
        for path, text in sources():
            self.assertEqual(len(re.findall(r"\[O\d+\]", text)), len(IN_MESSAGE.findall(text)), path)


class Tests(unittest.TestCase):
    def test_tests_of_promises_exist(self):
        rows = re.findall(r"(?m)^\| .* \| .* \| (.*) \|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
        cases = [name for row in rows for names in re.findall(r"\(([^)]*)\)", row) for name in re.findall(r"`(\w+)`", names)]
        self.assertGreater(len(cases), 10)
        suffixes = (".c", ".py", ".cpp")
        text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*") if path.suffix in suffixes)
        self.assertEqual([name for name in cases if not re.search(rf"\b{name}\b", text)], [])


if __name__ == "__main__":
    unittest.main()
