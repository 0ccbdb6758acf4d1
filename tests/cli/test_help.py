"""Help and version texts, word for word, and the replies to wrong usage."""

import os
import re
import unittest

from command import Case, HERE, ORIEL, start

COMMANDS = ["run", "check", "report", "top", "bench", "info", "help", "version"]


class Help(Case):
    def golden(self, name, *arguments):
        with open(os.path.join(HERE, "golden", name + ".txt"), encoding="utf-8") as file:
            expected = file.read()
        result = start(ORIEL, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, expected)

    def test_help_lists_the_commands(self):
        for arguments in (["--help"], ["-h"], ["-?"], ["help"]):
            self.golden("help", *arguments)
        self.assertEqual(re.findall(r"(?m)^  ([a-z]+) ", start(ORIEL, "help").stdout), COMMANDS)

    def test_help_of_each_command(self):
        for command in COMMANDS:
            for arguments in ([command, "--help"], [command, "-h"], [command, "-?"], ["help", command]):
                if command == "bench":  # Python wraps its lines in different ways
                    self.assertRegex(start(ORIEL, *arguments).stdout, r"\Ausage: oriel bench (.*\n)+  -h, --help ")
                else:
                    self.golden("help-" + command, *arguments)

    def test_help_of_a_variable(self):
        result = start(ORIEL, "help", "ORIEL_CMA", ORIEL_CMA="never")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\AORIEL_CMA=never  \(default auto; one of auto\|never\)\n    [^\n]+CMA[^\n]+\n\Z")

    def test_version_everywhere(self):
        for arguments in ([], *([command] for command in COMMANDS)):
            self.golden("version", *arguments, "--version")
            self.golden("version", *arguments, "-V")
        self.golden("version", "version")


class Refusal(Case):
    def test_similar_command_is_suggested(self):
        for word, similar in (("ru", "run"), ("chekc", "check"), ("rep", "report"), ("TOP", "top"), ("versoin", "version")):
            self.refused(start(ORIEL, word), f'unknown command "{word}"; did you mean {similar}? oriel --help lists the commands')
            self.refused(start(ORIEL, "help", word), f'"{word}" is neither a command nor a variable; did you mean {similar}?')
        for word in ("fly", ""):
            self.refused(start(ORIEL, word), f'unknown command "{word}"; oriel --help lists the commands')
        self.refused(start(ORIEL, "help", "fly"), '"fly" is neither a command nor a variable; oriel --help')
        self.refused(start(ORIEL, "help", "ORIEL_SPINN"), "did you mean ORIEL_SPIN?")

    def test_program_needs_a_command(self):
        self.refused(start(ORIEL, "/bin/cat", "x"), 'unknown command "/bin/cat"; to run a program: oriel run /bin/cat')

    def test_similar_option_is_suggested(self):
        for command, word, similar in (("run", "--statz", "--stats"), ("run", "--stat", "--stats"), ("run", "--trase=x", "--trace"),
                                       ("check", "--no_fail", "--no-fail"), ("check", "--rules-pag", None), ("report", "--oupt", None),
                                       ("report", "--ouput", "--output"), ("report", "--otf", "--otf2"), ("top", "--onec", "--once"),
                                       ("info", "--JSON", "--json"), ("help", "--hlep", "--help"), ("run", "--fly", None),
                                       ("bench", "--grups", "--groups"), ("bench", "--quik", "--quick"), ("bench", "--fly", None),
                                       ("version", "--verson", "--version"), ("report", "-x", None), ("info", "-Vx", None)):
            text = f"oriel: unknown option {word.split('=')[0] if command == 'bench' else word}; "
            text += (f"did you mean {similar}? " if similar else "") + f"oriel {command} --help lists the options\n"
            result = start(ORIEL, command, word, "x")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (2, "", text))
        self.refused(start(ORIEL, "--hepl"), "unknown option --hepl; did you mean --help? oriel --help lists the options")

    def test_options_of_a_command_follow_its_name(self):
        self.refused(start(ORIEL, "--trace", "traces", "run", "true"),
                     "unknown option --trace; a command's options follow its name, as in oriel run --stats; oriel --help")

    def test_values_of_options(self):
        for words in (["run", "--host"], ["check", "--json"], ["check", "--explain"], ["report", "--output"], ["report", "-o"]):
            self.refused(start(ORIEL, *words), f"{words[1]} needs a value: {words[1]} ", f"oriel {words[0]} --help")
        self.refused(start(ORIEL, "info", "--json=1"), "--json=1: --json takes no value; oriel info --help")

    def test_wrong_use_has_status_2(self):
        for arguments in ([], ["run"], ["run", "--watch"], ["check"], ["check", "--stacks"], ["info", "word"], ["report"],
                          ["report", "a", "b", "c"], ["top", "a", "b"], ["help", "run", "check"], ["version", "word"],
                          ["bench", "word"], ["bench", "--runs"]):
            result = start(ORIEL, *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("--help", result.stderr, arguments)


if __name__ == "__main__":
    unittest.main()
