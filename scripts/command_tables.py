"""The tables of the command and the library, for scripts that generate files from them: rows of .def
files, and commands and options as `oriel --help` prints them."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def fail(text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def rows_of(path, macro):
    """The rows of a .def file: strings of C joined, numbers and names as they are."""
    code = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    token = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([,()])|([\w|-]+))')
    rows, at = [], 0
    while (start := re.compile(rf"^{macro}\(", re.M).search(code, at)) is not None:
        row, at, value = [], start.end(), ""
        while True:
            found = token.match(code, at) or fail(f"{path}: not understood: {code[at:at + 40]!r}")
            at = found.end()
            string, mark, word = found.groups()
            if mark in (",", ")"):
                row.append(value)
                value = ""
                if mark == ")":
                    break
            else:
                value += word if string is None else string.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")
        rows.append(row)
    return rows or fail(f"{path} has no {macro}(...)")


def help_of(oriel, *command):
    emulator = os.environ.get("ORIEL_EMULATOR", "").split()  # of a build for another processor
    asked = subprocess.run([*emulator, oriel, *command, "--help"], capture_output=True, text=True, check=False,
                           env={**os.environ, "COLUMNS": "80", "LC_ALL": "C"})
    if asked.returncode:
        fail(f"oriel {' '.join(command)} --help: {asked.stderr.strip()}")
    return asked.stdout


def commands_of(oriel):
    block = re.search(r"^Commands:\n((?:  .*\n)+)", help_of(oriel), re.M) or fail("oriel --help lists no commands")
    return [re.match(r"  (\S+) +(.*)", line).groups() for line in block.group(1).splitlines()]


def options_of(text):
    """Each option's forms and description, in the order of the help text."""
    found = []
    for line in text.splitlines():
        option = re.match(r" {2,6}(-\S.*?)(?:  +(\S.*))?$", line)
        if option:
            found.append([option.group(1), option.group(2) or ""])
        elif found and re.match(r" {8,}", line):
            found[-1][1] = f"{found[-1][1]} {line.strip()}".strip()
        elif found and line.strip():
            break
    return found


def usages_of(text):
    """The arguments after the command's name, for each usage line."""
    head = text.split("\n\n", 1)[0]
    lines = re.sub(r"\n {10,}", " ", head).splitlines()
    ways = [re.match(r"(?:[Uu]sage:| *or:)\s+(oriel(?: [a-z]+)?)(?: (.*))?$", line) for line in lines]
    return [(way.group(1), way.group(2) or "") for way in ways if way]
