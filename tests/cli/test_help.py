"""Help and version texts, word for word; the replies to wrong usage; and the completion of shells."""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

from command import BUILD, Case, HERE, ORIEL, environment, start

COMMANDS = ["run", "check", "report", "top", "bench", "demo", "info", "help", "version"]
COMPLETION = {"bash": "bash-completion/completions/oriel", "zsh": "zsh/site-functions/_oriel",
              "fish": "fish/vendor_completions.d/oriel.fish"}


def completion(shell):
    return os.path.join(BUILD, "share", COMPLETION[shell])


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

    def test_usage(self):
        result = start(ORIEL, "info", "--usage")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\AUsage: oriel info \[-hV\] \[--json\] [^\n]* \[PROGRAM\]\n\Z")

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
        for arguments in ([], ["run"], ["run", "--watch"], ["check"], ["check", "--stacks"], ["info", "two", "words"], ["report"],
                          ["report", "a", "b", "c"], ["top", "a", "b"], ["help", "run", "check"], ["version", "word"],
                          ["bench", "word"], ["bench", "--runs"], ["demo", "word"]):
            result = start(ORIEL, *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn("--help", result.stderr, arguments)


class Terminal:
    """An interactive shell with the completion of oriel."""

    STARTS = {"bash": (["bash", "--norc", "--noprofile", "-i"],
                       "bind 'set bell-style none' 'set show-all-if-ambiguous on' 'set enable-bracketed-paste off'; . {}"),
              "zsh": (["zsh", "-f", "-i"],
                      "fpath=({} $fpath); autoload -Uz compinit; compinit -u -D; setopt no_always_last_prompt; bindkey -e")}

    def __init__(self, shell, folder):
        words, setup = self.STARTS[shell]
        where = completion(shell)
        self.text = ""
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, {**environment(), "PATH": f"{os.path.dirname(ORIEL)}:{os.environ['PATH']}",
                                         "HOME": folder, "TERM": "vt100", "PS1": "$ ", "PROMPT": "$ "})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 250, 0, 0))
        self.wait("$ ")
        self.write(setup.format(where if shell == "bash" else os.path.dirname(where)) + "; echo re''ady\r")
        self.wait("ready")

    def write(self, text):
        os.write(self.fd, text.encode())

    def wait(self, wanted):
        """Reads until the text appears, for at most half a minute; returns what was read."""
        text, end = "", time.monotonic() + 30
        while wanted not in text and time.monotonic() < end and select.select([self.fd], [], [], 1) is not None:
            if select.select([self.fd], [], [], 0)[0]:
                text += os.read(self.fd, 65536).decode(errors="replace")
                text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x00\x07\x08]|\r", "", text)
        return text

    def complete(self, typed, wanted):
        """What is shown after a tabulator, until the wanted text appears."""
        self.write("\x15" + typed + "\t\t")
        return self.wait(wanted)

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.fd)


class Completion(Case):
    """By typing in real shells. Each row: what is typed, and what must then be shown."""

    ROWS = [("oriel ver", "version"), ("oriel run --tr", "--trace"), ("oriel run --host ", "openmpi"),
            ("oriel run --host=m", "--host=mpich"), ("oriel run --trace f", "folder/"), ("oriel run --watch ./ap", "./app"),
            ("oriel check --explain L", "L1"), ("oriel help ORIEL_SPI", "ORIEL_SPIN"), ("oriel report --perf", "--perfetto"),
            ("oriel bench --groups contiguous,dat", "contiguous,datatype"), ("oriel report fo", "folder/")]
    LAUNCHED = [("mpiexec -n 4 oriel run --wat", "--watch"), ("mpirun -x ORIEL_TRACE_L", "ORIEL_TRACE_LIMIT=")]

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("folder"))
        self.write("app", "#!/bin/sh\n")

    def test_every_option_and_variable_is_completed(self):
        """In the three files, whether or not the shells are here."""
        for shell in COMPLETION:
            with open(completion(shell), encoding="utf-8") as file:
                text = file.read()
            self.assertNotRegex(text, "@[A-Z]+@")
            for command in COMMANDS:
                self.assertRegex(text, rf"\b{command}\b")
                for option in re.findall(r"(?m)^ +(?:-\w, )?--([a-z][\w-]*)", start(ORIEL, command, "--help").stdout):
                    self.assertRegex(text, rf"-l {option} " if shell == "fish" else rf"--{option}\b", command)
            for option in re.findall(r"(?m)^  (ORIEL_\w+)=", start(ORIEL, "info").stdout):
                self.assertIn(option, text)

    def test_syntax(self):
        for shell in COMPLETION:
            if shutil.which(shell):
                result = start(shell, "-n", completion(shell))
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), shell)

    def typed(self, shell, *rows):
        if shutil.which(shell) is None:
            self.skipTest(f"no {shell}")
        terminal = Terminal(shell, self.folder)
        self.addCleanup(terminal.close)
        for typed, wanted in rows:
            self.assertIn(wanted, terminal.complete(typed, wanted))

    def test_bash(self):
        self.typed("bash", *self.ROWS, *self.LAUNCHED, ("oriel run --stats=fo", "--stats=folder/"),
                   ("mpiexec -x ORIEL_NET=me", "ORIEL_NET=messages"), ("oriel run --host mpich --tra", "--trace"))

    def test_bash_leaves_the_words_of_the_program_alone(self):
        script = f'. {completion("bash")}; COMP_WORDS=(oriel run "$@"); COMP_CWORD=$(($# + 1)); _oriel; echo "${{COMPREPLY[*]}}"'
        for words, wanted in ((["./app", "--st"], ""), (["--", "./app", "--st"], ""), (["--host", "mpich", "--st"], "--stats --stats="),
                              (["--host", "=", "mpich", "./app", "--st"], ""), (["--trace", "folder", "--wa"], "--watch")):
            result = subprocess.run(["bash", "-c", script, "bash", *words], env=environment(), capture_output=True, text=True,
                                    check=False, cwd=self.folder)
            self.assertEqual(result.stdout, wanted + "\n", result.stderr)

    def test_zsh(self):
        self.typed("zsh", *self.ROWS, *self.LAUNCHED, ("ORIEL_NET=me", "ORIEL_NET=messages"))

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        for typed, wanted in self.ROWS:
            result = subprocess.run(["fish", "--no-config", "-c", f". {completion('fish')}; complete -C \"$TYPED\""],
                                    env=environment(TYPED=typed, HOME=self.folder), capture_output=True, text=True, check=False,
                                    cwd=self.folder)
            self.assertIn(wanted, result.stdout, typed + result.stderr)


if __name__ == "__main__":
    unittest.main()
