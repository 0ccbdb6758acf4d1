#!/usr/bin/python3
"""packaging/Containerfile: its instructions, and, as a test row, the same steps on clean systems.
The row needs no container runtime: each FROM is a new system made by debootstrap."""

import contextlib
import glob
import json
import os
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTAINERFILE = os.path.join(ROOT, "packaging", "Containerfile")
KNOWN = {"FROM", "COPY", "WORKDIR", "RUN", "USER", "CMD"}


def instructions(text):
    """Pairs of an instruction and its argument. Comments are left out, continued lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not re.match(r"\s*(#|$)", line))
    for line in re.sub(r"\s*\\\n\s*", " ", lines).splitlines():
        name, _, argument = line.partition(" ")
        yield name, argument.strip()


def faults(text):
    """What is wrong with a Containerfile of Oriel's; only instructions that follow() knows count."""
    stages = []
    for name, argument in instructions(text):
        words = argument.split()
        if name not in KNOWN:
            yield f"unknown instruction: {name}"
        elif not words:
            yield f"{name} without an argument"
        elif name != "FROM" and not stages:
            yield f"{name} before FROM"
        elif name == "FROM":
            if len(words) not in (1, 3) or words[1:2] not in ([], ["AS"]):
                yield f"FROM {argument}"
            stages.append(words[2] if len(words) == 3 else None)
        elif name == "COPY":
            origin = words[0].removeprefix("--from=") if words[0].startswith("--") else None
            if len(words) - (origin is not None) != 2:
                yield f"COPY {argument}"
            elif origin is not None and origin not in stages[:-1]:
                yield f"COPY from {origin}, which is no earlier stage"
            elif origin is None and not os.path.exists(os.path.join(ROOT, words[0])):
                yield f"COPY of {words[0]}, which does not exist"
        elif name == "CMD":
            try:
                json.loads(argument)
            except ValueError:
                yield f"CMD {argument}"


class Stage:
    """A system, and the folder and user of the next command in it."""

    def __init__(self, root):
        self.root, self.folder, self.user = root, "/", None

    def run(self, script):
        self.root.must(f"cd {self.folder} && {script}", user=self.user, limit_s=3600)

    def copy(self, words, stages):
        if not words[0].startswith("--from="):
            self.root.copy_tree(ROOT, words[1].strip("/"))
            return
        os.makedirs(self.root.path(words[2].strip("/")), exist_ok=True)
        found = glob.glob(stages[words[0].removeprefix("--from=")].root.path(words[1].strip("/")))
        assert found, words
        for path in found:
            shutil.copy(path, self.root.path(words[2].strip("/")))

    def follow(self, name, argument, stages):
        if name == "COPY":
            self.copy(argument.split(), stages)
        elif name == "WORKDIR":
            self.folder = argument
        elif name == "USER":
            self.user = argument
        elif name == "RUN":
            self.run(argument)
        else:
            self.run(" ".join(json.loads(argument)))


def main():
    sys.path.insert(0, os.path.join(ROOT, "scripts"))
    from debian_root import clean_root, release
    with open(CONTAINERFILE, encoding="utf-8") as file:
        text = file.read()
    if release() != "bookworm":
        print("skipped: the Containerfile is for Debian 12")
        sys.exit(77)
    with contextlib.ExitStack() as open_roots:
        stages, stage = {}, None
        for name, argument in instructions(text):
            if name == "FROM":
                stage = Stage(open_roots.enter_context(clean_root()))
                stages[argument.split()[-1]] = stage
            else:
                stage.follow(name, argument, stages)


if __name__ == "__main__":
    main()
