"""scripts/pictures makes all pictures of docs/images that are no drawings, of the sizes that their
readers expect, and pages show each."""

import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["TESTS_BUILD"])
HOST = os.environ["TESTS_HOSTS"].split(",")[0]
WIDTHS = {"report.png": 1400, "report-dark.png": 1400, "report-narrow.png": 400, "report-paper.png": 1744, "top-80.png": 702,
          "top-120.png": 1040}


def size(path):
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG"), path
    return struct.unpack(">II", head[16:])


class Pictures(unittest.TestCase):
    def test_the_script_makes_them(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ROOT / "scripts" / "pictures", "--build", BUILD, "--host", HOST, "--out", folder],
                                  capture_output=True, text=True, timeout=600, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            made = {path.name: path for path in pathlib.Path(folder).iterdir()}
            self.assertEqual({name: size(path)[0] for name, path in made.items()}, WIDTHS)
            for name, path in made.items():
                self.assertGreater(size(path)[1], 250, name)
                self.assertGreater(path.stat().st_size, 10_000, name)
            self.assertNotEqual(made["report.png"].read_bytes(), made["report-dark.png"].read_bytes())

    def test_pages_show_those_that_are_kept(self):
        kept = {path.name: size(path)[0] for path in (ROOT / "docs" / "images").glob("*.png")}
        self.assertEqual(kept, WIDTHS)
        pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "guides").glob("*.md"))
        self.assertEqual([name for name in WIDTHS if f"(../images/{name})" not in pages], [])

    def test_unknown_names_are_refused(self):
        done = subprocess.run([ROOT / "scripts" / "pictures", "none.png"], capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual((done.returncode, done.stderr.splitlines()[-1].partition("error: ")[2].partition(";")[0]),
                         (2, "unknown: none.png"))


if __name__ == "__main__":
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))) or not shutil.which("pdftoppm"):
        print("skipped: no chromium or no pdftoppm (Debian: chromium, poppler-utils)")
        sys.exit(77)
    if not (BUILD / "share" / "oriel" / "report.html").exists():
        print("skipped: the HTML pages were not built; scripts/install-deps pages installs their dependencies")
        sys.exit(77)
    unittest.main()
