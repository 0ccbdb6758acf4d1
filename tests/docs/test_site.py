"""The site of docs/ (`make docs`): it builds without warnings, its links lead to pages, files and
headings that exist, each page is in the navigation, and it loads nothing from a network."""

import html.parser
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Links(html.parser.HTMLParser):
    """What a page links to, what it loads, and the names of its places."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.names.update(attrs[key] for key in ("id", "name") if attrs.get(key))
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if attrs.get(LOADED.get(tag)) and attrs.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(attrs[LOADED[tag]])


def dead_links(folder):
    """Yields the faults of a built site."""
    pages = {path.relative_to(folder): Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    for page, found in pages.items():
        if page.name == "404.html":  # its links are those of a server's root
            continue
        for address in found.loaded:
            if urllib.parse.urlsplit(address).netloc:
                yield f"{page} loads {address}"
        for link in found.links + found.loaded:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = pathlib.Path(os.path.normpath(page.parent / urllib.parse.unquote(parts.path))) if parts.path else page
            if (folder / target).is_dir():
                target /= "index.html"
            if not (folder / target).is_file():
                yield f"{page} links to {link}, which does not exist"
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].names | {"__top"}:
                yield f"{page} links to {link}, which has no such heading"


@unittest.skipUnless(shutil.which("mkdocs"), "no mkdocs: scripts/install-deps test")
class Site(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="oriel-site."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.built = subprocess.run(["mkdocs", "build", "--strict", "--site-dir", cls.folder / "site"], cwd=ROOT, text=True,
                                   env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"), stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, timeout=600, check=False)

    def test_builds_without_warnings(self):
        self.assertEqual(self.built.returncode, 0, self.built.stdout)
        self.assertNotIn("not included in the \"nav\"", self.built.stdout)

    def test_links_lead_somewhere(self):
        self.assertEqual(list(dead_links(self.folder / "site")), [])

    def test_dead_links_are_found(self):
        folder = self.folder / "wrong"
        folder.mkdir()
        (folder / "index.html").write_text('<h1 id="a"></h1><a href="#a"></a><a href="#b"></a><a href="x.html"></a>'
                                           '<a href="https://example.org/"></a><script src="https://example.org/x.js"></script>')
        self.assertEqual(len(list(dead_links(folder))), 3)

    def test_each_page_is_found_by_search(self):
        index = json.loads((self.folder / "site/search/search_index.json").read_text(encoding="utf-8"))
        found = {entry["location"].split("#")[0] for entry in index["docs"]}
        pages = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").rglob("*.md")}
        pages = {page.replace("README.html", "index.html") for page in pages}
        self.assertEqual(pages - found, set())


if __name__ == "__main__":
    unittest.main()
