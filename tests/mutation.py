"""Finds a piece of C in a source and replaces it; builds a library with such a source.

White space and comments do not count, so a row of mutants still fits when the code is wrapped or
commented anew.  One thing in comments counts: a step's label, such as P1.  Where the piece has a
comment with labels, the code must have them there too."""

import os
import re
import shlex
import subprocess

COMMENT = r"/\*(?:(?!\*/).)*\*/|//[^\n]*"  # ends at the first end: no match may extend it
GAP = rf"(?:\s|\\\n|{COMMENT})*"
LABEL = re.compile(r"\b[A-Z]{1,2}\d+[a-z]?\b")
TOKEN = re.compile(rf'{COMMENT}|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\w+|[^\w\s]', re.DOTALL)


class Stale(Exception):
    """The piece is not found once."""


def pattern_of(piece):
    parts = []
    for token in TOKEN.findall(piece.replace("\\\n", " ")):
        if token.startswith(("/*", "//")):
            labels = "".join(rf"(?=(?:(?!\*/).)*\b{label}\b)" for label in LABEL.findall(token))
            parts += [rf"/\*{labels}(?:(?!\*/).)*\*/"] if labels else []
        else:
            parts.append((r"\b" if token[0].isalnum() or token[0] == "_" else "") + re.escape(token) +
                         (r"\b" if token[-1].isalnum() or token[-1] == "_" else ""))
    return re.compile(GAP.join(parts), re.DOTALL)


def replace(text, piece, instead):
    """The text with the piece, which must be there once, replaced; white space around the piece
    stays."""
    found = [match.span() for match in pattern_of(piece).finditer(text)]
    if len(found) != 1:
        raise Stale(f"found {len(found)} times, not once:\n{piece}")
    (start, end), = found
    return text[:start] + instead.strip() + text[end:]


class Library:
    """A build folder, made of links to another one, in which mutants of one library are built.
    library: its path in the build folder."""

    def __init__(self, tree, build, folder, library):
        self.tree, self.build, self.folder, self.library = tree, build, os.path.join(folder, "build"), library
        text = subprocess.run(["ninja", "-C", build, "-t", "commands", library], capture_output=True, text=True, check=True)
        self.commands = text.stdout.splitlines()
        # a program finds its libraries beside its own file
        inside = ""
        self.shadow(inside, ["bin", "lib"])
        self.shadow("bin", ["oriel"])
        for name in library.split("/")[:-1]:
            inside = os.path.join(inside, name)
            self.shadow(inside, library.split("/"))
        for name in ("bin/oriel", library):
            subprocess.run(["cp", os.path.join(build, name), os.path.join(self.folder, name)], check=True)

    def shadow(self, inside, but):
        os.makedirs(os.path.join(self.folder, inside), exist_ok=True)
        for name in os.listdir(os.path.join(self.build, inside)):
            if name not in but:
                os.symlink(os.path.join(self.build, inside, name), os.path.join(self.folder, inside, name))

    def make(self, name, text):
        """Builds the library with the text instead of that source."""
        path, compiled = os.path.join(self.folder, "mutant.c"), os.path.join(self.folder, "mutant.o")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        own = os.path.join(self.tree, "src", name)
        words = next(words for words in map(shlex.split, self.commands) if words[-1] == own)
        object_file = words[words.index("-o") + 1]
        words[-1], words[words.index("-o") + 1], words[words.index("-MF") + 1] = path, compiled, compiled + ".d"
        subprocess.run([*words, "-w"], cwd=self.build, check=True)
        target = os.path.join(self.folder, self.library)
        os.remove(target)
        link = self.commands[-1].replace(object_file, compiled).replace("-o " + self.library, "-o " + target)
        subprocess.run(link, shell=True, cwd=self.build, check=True)
