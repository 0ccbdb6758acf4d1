"""Help and version texts, word for word, and the replies to wrong usage."""

import os
import unittest

from command import Case, HERE, ORIEL, start


class Help(Case):
    def golden(self, name, *arguments):
        with open(os.path.join(HERE, "golden", name + ".txt"), encoding="utf-8") as file:
            expected = file.read()
        result = start(ORIEL, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, expected)

    def test_help_lists_the_commands(self):
        self.golden("help", "--help")

    def test_help_of_run(self):
        self.golden("help-run", "run", "--help")

    def test_help_of_check(self):
        self.golden("help-check", "check", "--help")

    def test_help_of_report(self):
        self.golden("help-report", "report", "--help")

    def test_help_of_info(self):
        self.golden("help-info", "info", "--help")

    def test_help_of_demo(self):
        self.golden("help-demo", "demo", "--help")

    def test_help_of_top(self):
        self.golden("help-top", "top", "--help")

    def test_version_everywhere(self):
        self.golden("version", "--version")
        self.golden("version", "run", "--version")
        self.golden("version", "check", "--version")
        self.golden("version", "report", "--version")
        self.golden("version", "info", "--version")
        self.golden("version", "bench", "--version")
        self.golden("version", "demo", "--version")
        self.golden("version", "top", "--version")

    def test_unknown_command_is_refused(self):
        self.refused(start(ORIEL, "fly"), 'unknown command "fly"')
        self.refused(start(ORIEL, "ru"), 'unknown command "ru"')
        self.refused(start(ORIEL, ""), 'unknown command ""')

    def test_wrong_use_has_status_2(self):
        for arguments in ([], ["run"], ["--fly"], ["run", "--fly", "true"], ["run", "--host"], ["check"],
                          ["check", "--fly", "true"], ["check", "--json"], ["check", "--explain"], ["info", "word"],
                          ["info", "--json=1"], ["bench", "--fly"], ["bench", "word"],
                          ["demo", "--fly"], ["demo", "word"]):
            result = start(ORIEL, *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("--help", result.stderr, arguments)


if __name__ == "__main__":
    unittest.main()
