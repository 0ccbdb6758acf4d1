"""Messages that end in a code, "[O12]", and the paragraphs of docs/troubleshooting.md: each code has
one paragraph and at least one message."""

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


if __name__ == "__main__":
    unittest.main()
