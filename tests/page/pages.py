"""What the tests of the HTML page share: the example's results, the page's writer as the build has laid it out, a reader of HTML.

The example's figures are made up; each outcome that a cell can have occurs in it.
Imported by test_write.py and test_browser.py."""

import copy
import html.parser
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ["ORIEL_TEST_BENCH"])
from page import page, skeleton  # noqa: E402, F401

HOSTILE = ("</script x=1 </script></style></title>--><script>hostile()</script><img src=x onerror=hostile()>\"'&\x00\ud800"
           "<!-- <script x=1 ")

with open(os.path.join(HERE, "example.json"), encoding="utf-8") as file:
    EXAMPLE = json.load(file)


def example(keep=lambda result: True):
    """The example with some of its results only, to be changed freely."""
    results = copy.deepcopy(EXAMPLE)
    results["results"] = [result for result in results["results"] if keep(result)]
    return results


def hostile(value, names=("column", "status", "pattern", "limit", "name")):
    """The same results where every text says something that no page must obey, but for the keys in names."""
    if isinstance(value, dict):
        return {key: part if key in names and isinstance(part, str) else hostile(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [hostile(part, names) for part in value]
    return HOSTILE + value if isinstance(value, str) else value


class Page(html.parser.HTMLParser):
    """The elements of a page: (tag, attributes) in order, the text outside of scripts and styles, and what those hold."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.text = []
        self.codes = []  # [tag, attributes, content] of scripts and styles
        self.inside = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = [tag, dict(attrs), ""]
            self.codes.append(self.inside)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = None

    def handle_data(self, data):
        if self.inside is not None:
            self.inside[2] += data
        else:
            self.text.append(data)

    def all(self, tag, **wanted):
        return [attributes for name, attributes in self.elements if name == tag
                and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())]

    def count(self, kind):
        """Elements of a class, among others."""
        return sum(kind in (attributes.get("class") or "").split() for _, attributes in self.elements)

    def shown(self):
        return " ".join(" ".join(self.text).split())

    def data(self):
        return json.loads(next(content for tag, attributes, content in self.codes if attributes.get("id") == "data"))


class Case(unittest.TestCase):
    """A test with a folder of its own, gone at its end."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="oriel-page.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name="page.html"):
        return os.path.join(self.folder, name)

    def write(self, results, name="page.html"):
        page.write(results, self.path(name))
        with open(self.path(name), encoding="utf-8") as text:
            return text.read()


def main():
    """Runs the caller's tests, or says why they cannot run."""
    try:
        skeleton.library()
    except skeleton.MissingLibrary as reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main()
