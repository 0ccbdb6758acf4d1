"""Each rule of the table has an offender and an innocent twin, and docs/reference/findings.md matches the table.

Arguments: oriel, the programs with the cases, the page, and the rules whose programs this build
cannot make."""

import re
import subprocess
import sys
import unittest

ORIEL, PROGRAMS, PAGE, UNBROKEN = sys.argv[1], sys.argv[2].split(","), sys.argv[3], sys.argv[4:]
LIBRARY = set("if for while sizeof calloc malloc realloc free memset exit".split())


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout


def cases():
    return [line.split("\t") for program in PROGRAMS for line in output(program, "--list").splitlines()]


class Table(unittest.TestCase):
    def test_each_rule_has_an_offender_and_a_twin(self):
        rules = [line.split()[0] for line in output(ORIEL, "check", "--rules").splitlines()]
        self.assertEqual([rule for rule in UNBROKEN if rule not in rules], [])
        rules = [rule for rule in rules if rule not in UNBROKEN]
        guilty = {row[1] for row in cases() if row[5] == "guilty"}
        innocent = {row[1] for row in cases() if row[5] == "innocent"}
        self.assertEqual([rule for rule in rules if rule not in guilty], [], "rules without an offender")
        self.assertEqual([rule for rule in rules if rule not in innocent], [], "rules without an innocent twin")

    def test_each_case_is_of_a_rule_and_has_its_twin(self):
        rules = {line.split()[0] for line in output(ORIEL, "check", "--rules").splitlines()}
        names = {row[0] for row in cases()}
        self.assertEqual([row[0] for row in cases() if row[1] not in rules], [])
        self.assertEqual([row[0] for row in cases() if row[5] == "guilty" and row[0] + "_innocent" not in names], [])

    def test_rules_are_numbered_once(self):
        rules = [line.split()[0] for line in output(ORIEL, "check", "--rules").splitlines()]
        self.assertEqual(sorted(rules), sorted(set(rules)))

    def test_each_rule_is_explained(self):
        for line in output(ORIEL, "check", "--rules").splitlines():
            number, title = line.split(None, 1)
            text = output(ORIEL, "check", "--explain", number)
            self.assertTrue(text.startswith(f"{number}: {title}\n"), text)
            self.assertIn("Instead:", text)
            if number in UNBROKEN:
                continue
            code = text[text.index("\nWrong, a test"):]
            self.assertIn("\nRight, its twin:\n", code)
            # No function that only the tests have, apart from one whose name says what it returns.
            self.assertLessEqual(set(re.findall(r"\b(?!MPIX?_)(\w+)\(", code)), LIBRARY | {"group_of"}, number)

    def test_page_equals_the_table(self):
        with open(PAGE, encoding="utf-8") as file:
            self.assertEqual(output(ORIEL, "check", "--rules-page"), file.read(), "run scripts/reference")


unittest.main(argv=sys.argv[:1])
