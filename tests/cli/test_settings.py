"""Settings files: which one decides, what `oriel info` shows of them, and that jobs obey them.

tests/unit/base/settings.c has the syntax, and which files are refused."""

import json
import os
import re
import shutil
import subprocess
import unittest

from command import BUILD, HOSTS, LAUNCH, LIMIT_S, ORIEL, Case, environment, program, start


class Settings(Case):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("here"))
        self.settings = {"XDG_CONFIG_HOME": self.path("home")}

    def file(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        return self.write(name, text, 0o644)

    def info(self, oriel=ORIEL, **changes):
        """The options and the settings files of `oriel info` by name, its text, and its complaints."""
        result = start(oriel, "info", "--json", folder=self.path("here"), **{**self.settings, **changes})
        self.assertEqual(result.returncode, 0, result.stderr)
        value = json.loads(result.stdout)
        text = start(oriel, "info", folder=self.path("here"), **{**self.settings, **changes}).stdout
        return ({option["name"]: option for option in value["options"]},
                {file["name"]: file for file in value["settings"]}, text, result.stderr)

    def test_the_first_that_sets_an_option_decides(self):
        oriel = self.tree()
        files = [("named", "named.conf"), ("folder", "here/oriel.conf"), ("user", "home/oriel/oriel.conf"),
                 ("system", "tree/etc/oriel.conf")]
        for value, (_, name) in enumerate(files, 2):
            self.file(name, f"# {name}\nORIEL_SPIN = {value}\n")
        self.settings["ORIEL_CONFIG"] = self.path("named.conf")
        option = self.info(oriel, ORIEL_SPIN="1")[0]["ORIEL_SPIN"]
        self.assertEqual((option["value"], option["source"], option["file"], option["line"], option["set"]),
                         ("1", "environment", None, None, True))
        for value, (kind, name) in enumerate(files, 2):
            options, found, text, complaints = self.info(oriel)
            option = options["ORIEL_SPIN"]
            self.assertEqual((option["value"], option["source"], option["file"], option["line"], option["set"]),
                             (str(value), "file", self.path(name), 2, True))
            self.assertIn(f"  ORIEL_SPIN={value}  (from {self.path(name)}:2; default 2000)\n", text)
            self.assertEqual(complaints, "")
            self.assertRegex(text, rf"(?m)^  {'ORIEL_CONFIG' if kind == 'named' else kind} +{re.escape(self.path(name))}: read$")
            self.assertTrue(found["ORIEL_CONFIG" if kind == "named" else kind]["read"])
            os.unlink(self.path(name))
            self.settings.pop("ORIEL_CONFIG", None)
        options, found, text, _ = self.info(oriel)
        self.assertEqual([options["ORIEL_SPIN"][key] for key in ("value", "source", "file", "line", "set")],
                         ["2000", "default", None, None, False])
        self.assertIn("  ORIEL_SPIN=2000  (default 2000)\n", text)
        self.assertEqual([(name, file["read"], file["detail"]) for name, file in found.items()],
                         [(name, False, "No such file or directory") for name in ("folder", "user", "system")])

    def test_home_has_the_users_file(self):
        self.file("home/.config/oriel/oriel.conf", "ORIEL_SPIN = 3\n")
        for folder in ("", "relative"):
            option = self.info(XDG_CONFIG_HOME=folder, HOME=self.path("home"))[0]["ORIEL_SPIN"]
            self.assertEqual(option["file"], self.path("home/.config/oriel/oriel.conf"))

    def test_named_file_must_be_there(self):
        self.assertEqual(self.info(ORIEL_CONFIG="missing")[3],
                         f"oriel: {self.path('here/missing')}: No such file or directory; the file is ignored\n")

    def test_a_file_is_read_once(self):
        self.file("here/oriel.conf", "ORIEL_SPIN = fast\n")
        for name in ("oriel.conf", self.path("here/oriel.conf")):
            _, found, _, complaints = self.info(ORIEL_CONFIG=name)
            self.assertEqual(complaints.count("\n"), 1, complaints)
            self.assertEqual(found["folder"]["detail"], "read as " + self.path("here/oriel.conf"))

    def test_job_in_a_removed_folder(self):
        os.makedirs(self.path("here/gone"))
        result = start("sh", "-c", 'cd gone && rmdir ../gone && exec "$0" info --json', ORIEL, folder=self.path("here"),
                       **self.settings, ORIEL_CONFIG="own.conf")
        self.assertEqual(result.stderr, "oriel: own.conf: No such file or directory; the file is ignored\n")
        self.assertNotIn("folder", [file["name"] for file in json.loads(result.stdout)["settings"]])

    def test_pipe_does_not_stop_a_job(self):
        os.mkfifo(self.path("here/oriel.conf"))
        self.assertEqual(self.info()[3], f"oriel: {self.path('here/oriel.conf')}: is not a regular file; the file is ignored\n")

    def test_mistakes_are_reported_once_for_each_job(self):
        path = self.file("here/oriel.conf", "ORIEL_SPIN = fast\nORIEL_SPINN = 1\nORIEL_VERBOSE = 1\n")
        for host in HOSTS:
            job = subprocess.run([LAUNCH, "--build", BUILD, "--host", host, "-n", "2", program(host, "one_put")],
                                 cwd=self.path("here"), env=environment(), capture_output=True, text=True, timeout=LIMIT_S, check=False)
            self.assertEqual(job.returncode, 0, job.stderr)
            lines = [line for line in job.stderr.splitlines() if line.startswith("oriel: ")]
            self.assertEqual(len(lines), 4, job.stderr)
            self.assertTrue(lines[0].startswith(f"oriel: {path}:1: ORIEL_SPIN=fast is not a whole number"), lines)
            self.assertTrue(lines[1].startswith(f"oriel: {path}:2: ORIEL_SPINN is not an option of Oriel"), lines)
            self.assertIn(f"ORIEL_VERBOSE=1 ({path}:3)", lines[2])
            self.assertTrue(lines[3].endswith("other ranks reach its memory by direct"), lines)

    def test_checker_reports_them_no_second_time(self):
        self.file("here/oriel.conf", "ORIEL_SPIN = fast\n")
        for host in HOSTS:
            result = start(ORIEL, "check", program(host, "one_put"), folder=self.path("here"))
            self.assertEqual(result.stderr.count("ORIEL_SPIN=fast"), 1, result.stderr)

    def test_linked_program_needs_no_run(self):
        self.file("here/oriel.conf", "ORIEL_VERBOSE = 1\n")
        for host in HOSTS:
            result = start(program(host, "one_put_linked"), folder=self.path("here"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"ORIEL_VERBOSE=1 ({self.path('here/oriel.conf')}:1)\n", result.stderr)

    def test_program_without_mpi_reads_nothing(self):
        self.file("here/oriel.conf", "never\n")
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "environment"), folder=self.path("here"))
            self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_options_of_the_command_decide(self):
        self.file("here/oriel.conf", "ORIEL_STATS = /nonexistent/stats.json\n")
        for host in HOSTS:
            result = start(ORIEL, "run", "--stats=own.json", program(host, "one_put"), folder=self.path("here"))
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertGreater(os.path.getsize(self.path("here/own.json")), 0)

    def test_bypass(self):
        path = self.file("here/oriel.conf", "\nORIEL_BYPASS = yes\n")
        for host in HOSTS:
            result = start(ORIEL, "run", program(host, "environment"), folder=self.path("here"))
            self.assertIn("LD_PRELOAD=(unset)\n", result.stdout)
            self.refused(start(ORIEL, "check", program(host, "one_put"), folder=self.path("here")),
                         f"ORIEL_BYPASS=1 ({path}:2) disables the checker")
            result = start(ORIEL, "check", program(host, "one_put"), folder=self.path("here"), ORIEL_BYPASS="0")
            self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a file to another user")
    def test_foreign_file_of_the_folder_is_ignored(self):
        path = self.file("here/oriel.conf", "ORIEL_SPIN = 3\n")
        os.chown(path, 65534, 65534)
        options, _, _, complaints = self.info()
        self.assertEqual(options["ORIEL_SPIN"]["source"], "default")
        self.assertEqual(complaints, f"oriel: {path}: belongs to another user (uid 65534); the file is ignored\n")

    @unittest.skipUnless(os.geteuid() == 0, "only root can make programs of other users")
    def test_program_with_privileges_reads_the_systems_file_only(self):
        self.file("named.conf", "ORIEL_VERBOSE = 1\n")
        self.file("here/oriel.conf", "ORIEL_VERBOSE = 1\n")
        self.file("home/oriel/oriel.conf", "ORIEL_VERBOSE = 1\n")
        os.chmod(self.folder, 0o755)
        for host in HOSTS:
            copy = self.path("privileged." + host)
            shutil.copy(program(host, "one_put_linked"), copy)
            for mode, wanted in ((0o755, "ORIEL_VERBOSE=1 ("), (0o4755, "")):
                os.chown(copy, 65534, 65534)
                os.chmod(copy, mode)
                result = start(copy, folder=self.path("here"), **self.settings, ORIEL_CONFIG=self.path("named.conf"))
                self.assertEqual("ORIEL_VERBOSE=1 (" in result.stderr, bool(wanted), result.stderr)
            self.assertIn(f"oriel: {self.path('named.conf')}: is not read by a program with privileges of its own; "
                          "the file is ignored\n", result.stderr)


if __name__ == "__main__":
    unittest.main()
