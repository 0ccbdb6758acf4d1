#!/usr/bin/python3
"""Checks one litmus test of a protocol's memory orders with herd7, in the repaired C11 model (RC11).

The test's comment has lines that this script reads:

    source FILE: CODE     the code that the test stands for, with its memory orders: FILE must have it
    weaken: OLD => NEW    the same test with a weaker order must fail; without NEW, OLD is left out

The outcome that the test names must be impossible, and no execution may have a data race. With each
weaker order the outcome is possible, or there is a data race. The exit status is 0 on success, 77
without herd7."""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
HERD = os.path.join(TREE, "scripts", "herd7")
SKIP = 77

# The orders of helpers, whose names the sources use.
HELPERS = {
    "src/base/atomic.h": [
        "oriel_load_acquire(const _Atomic uint32_t *word) { return atomic_load_explicit(word, memory_order_acquire); }",
        "oriel_load_relaxed(const _Atomic uint32_t *word) { return atomic_load_explicit(word, memory_order_relaxed); }",
        "{ atomic_store_explicit(word, value, memory_order_release); }",
        "{ atomic_store_explicit(word, value, memory_order_relaxed); }",
        "#else atomic_thread_fence(memory_order_seq_cst); #endif }",
    ],
}


def in_one_line(text):
    return re.sub(r"\s+", "", text)


def has_code(path, code):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return in_one_line(code) in in_one_line(file.read())


def parse(path):
    """The body of a test, which herd7 reads, and the lines of its comment."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    name, comment, body = re.fullmatch(r"C (\w+)\n\(\*(.*?)\*\)\n(\{.*)", text, re.DOTALL).groups()
    sources = re.findall(r"^\s*source (\S+): (.+?)\s*$", comment, re.MULTILINE)
    weaker = re.findall(r"^\s*weaken: (.+?) =>[ ]*(.*?)[ ]*$", comment, re.MULTILINE)
    return name, sources, weaker, body


def observe(name, body):
    """herd7's observation, Never or Sometimes, and whether an execution has undefined behaviour."""
    with tempfile.NamedTemporaryFile("w", suffix=".litmus", encoding="utf-8") as file:
        file.write(f"C {name}\n{body}")
        file.flush()
        ran = subprocess.run([HERD, "-model", "rc11.cat", file.name], capture_output=True, text=True, check=False)
    if ran.returncode == SKIP:
        print(ran.stderr.strip())
        sys.exit(SKIP)
    found = re.search(r"^Observation \w+ (\w+)", ran.stdout, re.MULTILINE)
    if ran.returncode != 0 or found is None:
        sys.exit(f"herd7 does not understand {name}:\n{ran.stdout}{ran.stderr}")
    return found[1], "Flag *undef*" in ran.stdout


def stop_if(name, failures):
    for failure in failures:
        print(f"{name}: {failure}")
    if failures:
        sys.exit(1)


def main():
    name = sys.argv[1]
    known, sources, weaker, body = parse(os.path.join(HERE, name + ".litmus"))
    failures = []
    if known != name:
        failures.append(f"its first line names it {known}")
    if not sources or not weaker:
        failures.append("it names no source, or no weaker order")
    for path, codes in HELPERS.items():
        sources += [(path, code) for code in codes]
    for path, code in sources:
        if not has_code(path, code):
            failures.append(f"{path} lacks: {code}")
    stop_if(name, failures)  # also without herd7
    observed, is_undefined = observe(name, body)
    if observed != "Never" or is_undefined:
        failures.append(f"observed: {observed}{', with a data race' if is_undefined else ''}")
    for old, new in weaker:
        if old not in body:
            failures.append(f"the test lacks: {old}")
        elif observe(name, body.replace(old, new)) == ("Never", False):
            failures.append(f"still impossible with {new or 'nothing'} instead of {old}")
    stop_if(name, failures)
    print(f"{name}: impossible, and possible with each of {len(weaker)} weaker orders")


main()
