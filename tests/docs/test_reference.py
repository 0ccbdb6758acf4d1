"""The generated parts of docs/reference/ are those that the command prints; the drawings are those
of their sources."""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"


class Reference(unittest.TestCase):
    def test_pages_are_up_to_date(self):
        done = subprocess.run([ROOT / "scripts" / "reference", os.environ["TESTS_BUILD"], "--check"], capture_output=True,
                              text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_drawings_are_up_to_date(self):
        sources = sorted(IMAGES.glob("*.dot"))
        self.assertGreater(len(sources), 2)
        for source in sources:
            told = subprocess.run(["cksum"], input=source.read_bytes(), stdout=subprocess.PIPE, check=True).stdout.decode().split()[0]
            drawn = source.with_suffix(".svg").read_text(encoding="utf-8")
            self.assertIn(f"<!-- {source.name} {told}, by scripts/drawings -->", drawn, "run scripts/drawings")

    def test_each_image_is_used(self):
        text = "".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
        for image in IMAGES.iterdir():
            if image.suffix != ".dot":
                self.assertTrue(re.search(rf"\]\([^)]*images/{re.escape(image.name)}\)", text), image.name)


if __name__ == "__main__":
    unittest.main()
