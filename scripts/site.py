"""Hooks of mkdocs.yml. The site has the pages and images of docs/, and under project/ the pages
outside it that they link to."""

import os
import posixpath
import re

from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUTSIDE = "project/"
KINDS = (".md", ".svg", ".png")
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")


def repository_path(site_path):
    """A page's path in the repository."""
    return site_path[len(OUTSIDE):] if site_path.startswith(OUTSIDE) else "docs/" + site_path


def site_path(path):
    """The path in the site of a file of the repository."""
    return path[len("docs/"):] if path.startswith("docs/") else OUTSIDE + path


def linked_outside(pages):
    """The pages outside docs/ that these pages, or those, link to."""
    found, queue = [], list(pages)
    while queue:
        page = queue.pop()
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            for link in LINK.findall(file.read()):
                path = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
                if not path.startswith(("docs/", "..")) and path not in found and os.path.isfile(os.path.join(ROOT, path)):
                    found.append(path)
                    if path.endswith(".md"):
                        queue.append(path)
    return found


def on_config(config):
    """Lists the decision records in the navigation, after their index."""
    design = next(part["Design"] for part in config["nav"] if "Design" in part)
    index = next(part for part in design if "Decision records" in part)
    records = sorted(name for name in os.listdir(os.path.join(ROOT, "docs/design/adr")) if name[0].isdigit())
    index["Decision records"] = ["design/adr/" + name for name in ["README.md"] + records]


def on_files(files, config):
    for file in list(files):
        if file.abs_src_path.startswith(config["docs_dir"]) and not file.src_uri.endswith(KINDS):
            files.remove(file)
    pages = [repository_path(file.src_uri) for file in files if file.src_uri.endswith(".md")]
    for path in linked_outside(pages):
        file = File(site_path(path), ROOT, config["site_dir"], config["use_directory_urls"])
        file.abs_src_path = os.path.join(ROOT, path)
        files.append(file)
    return files


def on_page_markdown(markdown, page, **_):
    here = repository_path(page.file.src_uri)

    def moved(match):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), match.group(1)))
        return posixpath.relpath(site_path(path), posixpath.dirname(page.file.src_uri) or ".")
    return LINK.sub(moved, markdown)
