"""The manual's pages: groff reports no warnings, and the pages contain all commands, options,
variables, info keys, rules and functions."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
from command import BUILD, ORIEL, start  # noqa: E402

PAGES = sorted(glob.glob(os.path.join(BUILD, "share", "man", "man?", "*.?")))
OTHER_PROJECTS = {("gcore", "1"), ("python3", "1")}  # pages of other projects that ours refer to


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def man(page, *options, width="200"):
    return subprocess.run(["man", *options, "-l", page], capture_output=True, text=True, check=False,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANROFFSEQ": "", "MANWIDTH": width,
                               "PAGER": "cat"})


def shown(name):
    """A page's rendered text, on one line, without hyphenation."""
    return " ".join(man(next(page for page in PAGES if page.endswith("/" + name))).stdout.split()).replace("\u2010 ", "")


@unittest.skipUnless(shutil.which("man"), "no man")
class Manual(unittest.TestCase):
    def test_all_expected_pages_exist(self):
        commands = re.findall(r"^  ([a-z]+) +\S", start(ORIEL, "--help").stdout.split("Commands:")[1], re.M)
        self.assertIn("run", commands)
        wanted = {f"oriel-{command}.1" for command in commands}
        wanted |= {"oriel.1", "oriel.5", "oriel.7", "oriel_last_error.3", "oriel_mpi_rma.3", "oriel_mpi_win.3",
                   "oriel_active.3", "oriel_region_begin.3", "oriel_version.3"}
        wanted |= {os.path.basename(page).removesuffix(".in") for page in glob.glob(os.path.join(ROOT, "docs", "man", "MPIX_*.in"))}
        self.assertEqual({os.path.basename(page) for page in PAGES}, wanted)

    def test_every_extension_is_the_name_of_a_page(self):
        wanted = set(re.findall(r"ORIEL_EXTENSION_\(\s*([A-Z]\w+)", read("include", "oriel", "ext.h")))
        self.assertGreater(len(wanted), 20)
        pages = "".join(read("docs", "man", os.path.basename(page) + ".in") for page in PAGES if "/MPIX_" in page)
        self.assertEqual(set(re.findall(r"\.Nm MPIX_(\w+)", pages)), wanted)

    def test_no_warnings(self):
        for page in PAGES:
            for width in ("80", "120"):
                result = man(page, "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", width=width)
                self.assertEqual((result.returncode, result.stderr), (0, ""), page)

    def test_nothing_was_left_to_be_put_in(self):
        for page in PAGES:
            with open(page, encoding="utf-8") as file:
                self.assertNotRegex(file.read(), r"@[A-Z]+", page)

    def test_references_lead_somewhere(self):
        known = {tuple(os.path.basename(page).rsplit(".", 1)) for page in PAGES} | OTHER_PROJECTS
        for page in PAGES:
            with open(page, encoding="utf-8") as file:
                for found in re.findall(r"\bXr (\S+) (\d)", file.read()):
                    self.assertIn(found, known, page)

    def test_every_option_of_every_command(self):
        for page in PAGES:
            command = re.search(r"/oriel-(\w+)\.1$", page)
            if command:
                text = shown(os.path.basename(page))
                options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", start(ORIEL, command.group(1), "--help").stdout)
                self.assertIn("--help", options)
                for option in options:
                    self.assertIn(option, text, page)

    def test_every_command_documents_its_statuses(self):
        for page in PAGES:
            if page.endswith(".1"):
                self.assertIn(" EXIT STATUS ", shown(os.path.basename(page)), page)

    def test_queries_of_check_have_no_options(self):
        self.assertRegex(shown("oriel-check.1"), r"oriel check \[option\.\.\.\] \[--\] program \[argument\.\.\.\] "
                                                 r"oriel check --explain rule oriel check --rules DESCRIPTION")

    def test_statuses_of_bench_and_the_words_of_the_library(self):
        text = shown("oriel-bench.1")
        source = read("bench", "bench.py") + read("scripts", "testnet")
        for name in ("REFUSED, SLOWER, INTERRUPTED", "SKIP"):
            for status in re.search(rf"(?m)^{name} = ([\d, ]+)", source).group(1).split(", "):
                self.assertRegex(text, rf"; {status} (for|if|after) ")
        version = start(ORIEL, "--version").stdout.split()[1]
        for page in (shown("oriel.7"), read("README.md")):
            self.assertRegex(page, rf"ends in [\"“]windows by Oriel {version}[\"”]")

    def test_every_variable(self):
        text = shown("oriel.5")
        options = json.loads(start(ORIEL, "info", "--json").stdout)["options"]
        for option in options:
            meaning = option["meaning"].replace("`", "")
            self.assertRegex(text, rf"{option['name']} (?i:{re.escape(meaning)})\. \([^()]*; "
                                   rf"default: {re.escape(option['default'] or 'not set')}\)")
        self.assertEqual(text.count("; default: "), len(options))

    def test_every_setting_that_is_chosen_for_ucx(self):
        self.assertIn("docs/reference/environment.md describes the settings for UCX", shown("oriel.5"))
        chosen = set(re.findall(r'"(UCX_\w+[A-Z])\b', read("src", "transport", "ucx", "library.c")))
        self.assertGreater(len(chosen), 8)
        page = read("docs", "reference", "environment.md")
        for name in chosen:
            self.assertRegex(page, rf"\n\|.*`{name}`")

    def test_every_info_key_and_rule(self):
        text = shown("oriel.7")
        keys = re.findall(r'^HINT\(\w+, "(\w+)"', read("src", "window", "hints.def"), re.M)
        self.assertGreater(len(keys), 5)
        for key in keys + ["oriel_memory", "oriel_memory_reason"]:
            self.assertIn(f" {key} ", text)
        text = shown("oriel-check.1")
        for line in start(ORIEL, "check", "--rules").stdout.splitlines():
            self.assertIn(" ".join(line.split()), text)

    def test_info_keys_of_creation_and_mechanisms(self):
        text = shown("oriel.7")
        read_once = re.search(r"Only creation reads the first (\w+)", read("docs", "reference", "info-keys.md")).group(1)
        keys = re.findall(r"^\| `(\w+)`", read("docs", "reference", "info-keys.md"), re.M)[:{"two": 2}[read_once]]
        self.assertIn(f"{' and '.join(keys)} are read only at creation.", text)
        for mechanism in json.loads(start(ORIEL, "info", "--json").stdout)["mechanisms"]:
            self.assertRegex(text, rf"which mechanisms a node has: .*\b{mechanism['name']}\b")
        self.assertNotIn("(what alignment gives)", text)

    def test_every_function_of_the_headers(self):
        text = shown("oriel_mpi_rma.3")
        names = re.findall(r"ORIEL_LARGE_COUNT\(\s*(\w+_c),", read("include", "oriel", "mpi_rma.h"))
        self.assertGreater(len(names), 10)
        for name in names:
            self.assertRegex(text, rf"int MPI_{name}\([^)]*\w\)")
        text = shown("oriel_mpi_win.3")
        members = read("include", "oriel", "mpi_win.hpp").split("class Win {")[1].split("private:")[0]
        for name in re.findall(r"MPI_(?:Win_)?(\w+)\([^)]*handle", members):
            self.assertRegex(text, rf"\s{name[0].upper() + name[1:]}\(\)")

    def test_headers_and_pages_agree_on_oriels_names(self):
        declared = re.findall(r"\b(oriel_\w+)\(", read("include", "oriel", "oriel.h"))
        for name in declared:
            [page] = [page for page in PAGES if re.search(rf"^\.Nm {name}( ,)?$", read(page), re.M)]
            self.assertIn(f"{name}()", shown(os.path.basename(page)).replace("(void)", "()"))


if __name__ == "__main__":
    unittest.main()
