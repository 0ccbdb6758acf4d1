"""`oriel info`: both forms agree, every option is listed, and it works for every user."""

import json
import os
import re
import shutil
import subprocess
import unittest

from command import BUILD, HERE, HOSTS, LAUNCH, LIMIT_S, ORIEL, SANITIZE, Case, liboriel, program, start

ROOT = os.path.dirname(os.path.dirname(HERE))


def info(oriel=ORIEL, **changes):
    result = start(oriel, "info", "--json", **changes)
    return json.loads(result.stdout), result


def mechanisms_by(*command):
    """The mechanisms in the output of `oriel info`, the end of this command."""
    value = json.loads(start(*command, "info", "--json").stdout)
    return {mechanism["name"]: mechanism for mechanism in value["mechanisms"]}


class Info(Case):
    def test_json_is_complete(self):
        value, result = info()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(set(value), {"version", "hosts", "mechanisms", "settings", "options"})
        self.assertEqual([host["name"] for host in value["hosts"]], ["mpich", "openmpi", "abi"])
        self.assertEqual([mechanism["name"] for mechanism in value["mechanisms"]],
                         ["memfd", "cma", "userfaultfd", "xpmem", "ucx", "promotion", "agent", "network"])

    def test_network_has_the_devices_that_would_be_used(self):
        ucx = info()[0]["mechanisms"][4]
        for changes, available, words in (({"UCX_NET_DEVICES": "lo"}, True, ("on lo", "UCX_NET_DEVICES=lo")),
                                          ({"UCX_NET_DEVICES": "none0"}, False, ("no UCX", "UCX_NET_DEVICES=none0")),
                                          ({"UCX_TLS": "sm"}, False, ("no network device", "UCX_TLS=sm")),
                                          ({"ORIEL_NET": "off"}, False, ("ORIEL_NET=off",))):
            network = info(**changes)[0]["mechanisms"][-1]
            if "built without" in network["detail"] or not ucx["available"]:
                self.skipTest(network["detail"])
            self.assertEqual((network["name"], network["available"]), ("network", available), network)
            for word in words:
                self.assertIn(word, network["detail"])

    def test_long_network_settings_are_cut_visibly(self):
        for value_set, shown in (("lo" + ",lo" * 12 + ",l", "=lo" + ",lo" * 12 + ",l"), ("lo" + ",lo" * 13, "=lo" + ",lo" * 12 + ",l...")):
            network = info(UCX_NET_DEVICES=value_set)[0]["mechanisms"][-1]
            if "built without" in network["detail"]:
                self.skipTest(network["detail"])
            self.assertTrue(network["detail"].endswith("; UCX_NET_DEVICES" + shown), network)

    def test_hosts_built_for_are_found_and_served(self):
        version = {"mpich": "MPICH Version", "openmpi": "Open MPI v"}
        value, _ = info()
        for host in value["hosts"]:
            if host["name"] in HOSTS:
                self.assertTrue(host["found"] and host["served"], host)
                self.assertTrue(host["version"].startswith(version[host["name"]]), host)
                self.assertTrue(os.path.exists(host["library"]), host)
                self.assertEqual(host["liboriel"], liboriel(host["name"]))
                self.assertIsNone(host["reason"])

    def test_host_in_a_folder_of_its_own_is_found_through_liboriel(self):
        oriel = self.tree()
        os.makedirs(self.path("opt"))
        for host, soname in (("mpich", "libmpi.so.12"), ("openmpi", "libmpi.so.40")):
            source = f'#include <string.h>\nint MPI_Get_library_version(char *t, int *l) {{ strcpy(t, "MPI of {host}"); return *l = 0; }}'
            library = self.compile(f"opt/{soname}", source, "-shared", "-fPIC", "-Wl,-soname," + soname)
            os.makedirs(self.path(f"tree/lib/oriel/{host}"))
            self.compile(f"tree/lib/oriel/{host}/liboriel.so", "", "-shared", "-fPIC", "-Wl,--no-as-needed",
                         "-Wl,-rpath," + self.path("opt"), library)
            value = [found for found in info(oriel)[0]["hosts"] if found["name"] == host][0]
            self.assertEqual((value["found"], value["library"], value["version"]), (True, library, "MPI of " + host), value)

    def test_host_without_liboriel_is_not_served(self):
        value, _ = info(self.tree())
        self.assertEqual([host["served"] for host in value["hosts"]], [False, False, False])
        text = start(self.path("tree/bin/oriel"), "info").stdout
        self.assertIn("not served: cannot find " + self.path("tree/lib/oriel/mpich/liboriel.so"), text)

    def test_program_without_liboriel_or_mpi_is_not_served(self):
        oriel = self.tree()
        for host in HOSTS:
            self.assertIn("not served:  Oriel is not built for it: cannot find " + liboriel(host, self.path("tree")) + "\n",
                          start(oriel, "info", program(host, "one_put")).stdout)
        for path in ("/bin/true", self.write("script", "echo a script without an interpreter line\n")):
            self.assertIn("unknown:     its libraries name no MPI;", start(oriel, "info", path).stdout)
        gone = self.compile("libgone.so", "", "-shared", "-fPIC")
        path = self.compile("missing", "int main(void) { return 0; }", "-Wl,--no-as-needed", gone)
        os.remove(gone)
        self.assertIn(f"not served:  the loader does not list the libraries of {path} ", start(oriel, "info", path).stdout)

    def test_program_that_a_preload_does_not_reach_is_described(self):
        static = self.compile("static", "int main(void) { return 0; }", "-static")
        result = start(ORIEL, "info", "--json", static)
        value = json.loads(result.stdout)["program"]
        self.assertEqual((result.returncode, value["served"], value["host"]), (0, False, None))
        self.assertRegex(value["reason"], r"is a static program .* \[O8\]$")
        self.assertIn("not served:  " + value["reason"], start(ORIEL, "info", static).stdout)

    def test_version_of_the_programs_library_decides_what_is_tested(self):
        names = [("mpich", "libmpich.so.12", "MPICH Version:      3.4\\n", "MPICH 3.4"),
                 ("mpich", "libmpi.so.12", "MVAPICH2 Version      :\\t2.3.7\\n", "MVAPICH2 2.3.7"),
                 ("openmpi", "libmpi.so.40", "Open MPI v3.1.6, package", "Open MPI v3.1.6"),
                 ("abi", "libmpi_abi.so.1", "MPICH Version:      3.4\\n", "MPICH 3.4")]
        for host in HOSTS:
            value = json.loads(start(ORIEL, "info", "--json", program(host, "one_put")).stdout)["program"]
            self.assertTrue(value["tested"] and re.match(r"(MPICH |Open MPI v)\d", value["version"]), value)
        for host, soname, text, version in names:
            source = f'#include <string.h>\nint MPI_Get_library_version(char *t, int *l) {{ strcpy(t, "{text}"); return *l = 0; }}'
            library = self.compile(soname, source, "-shared", "-fPIC", "-Wl,-soname," + soname)
            path = self.compile("old", "int main(void) { return 0; }", "-Wl,--no-as-needed", "-Wl,-rpath," + self.folder, library)
            value = json.loads(start(ORIEL, "info", "--json", path).stdout)["program"]
            self.assertEqual((value["host"], value["version"], value["tested"]), (host, version, False))
            title = "MPI's standard ABI, " if host == "abi" else ""
            self.assertIn(f": {title}{version}; expected to work, not tested\n", start(ORIEL, "info", path).stdout)

    def test_library_in_a_relative_folder_is_found(self):
        library = self.compile("libmpi.so.40", "", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40")
        path = self.compile("app", "int main(void) { return 0; }", "-Wl,--no-as-needed", library)
        result = start(ORIEL, "info", "--json", path, LD_LIBRARY_PATH=os.path.relpath(self.folder))
        self.assertEqual(json.loads(result.stdout)["program"]["library"], os.path.realpath(library))

    def test_host_that_does_not_load_gives_the_reason(self):
        for name in ("libmpich.so.12", "libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1"):
            self.write(name, "no library")
        value, result = info(LD_LIBRARY_PATH=self.folder)
        self.assertEqual(result.returncode, 0)
        for host in value["hosts"]:
            self.assertFalse(host["found"])
            self.assertIn("libmpi", host["reason"])
            self.assertIsNone(host["version"])

    def test_host_that_crashes_or_exits_is_survived(self):
        for body, words in (("kill(getpid(), SIGKILL)", "Killed"), ("_exit(0)", "it ended the process")):
            source = ("#include <signal.h>\n#include <unistd.h>\n"
                      f"int MPI_Get_library_version(char *t, int *l) {{ {body}; return *t + *l; }}")
            for name in ("libmpich.so.12", "libmpi.so.12", "libmpi.so.40", "libmpi_abi.so.1"):
                self.compile(name, source, "-shared", "-fPIC")
            value, result = info(LD_LIBRARY_PATH=self.folder)
            self.assertEqual(result.returncode, 0)
            for host in value["hosts"]:
                self.assertFalse(host["found"])
                self.assertIn("could not be queried: " + words, host["reason"])

    def test_every_option_is_shown(self):
        with open(os.path.join(ROOT, "src", "base", "options.def"), encoding="utf-8") as file:
            rows = re.findall(r'^OPTION\((\w+), \w+, "(\w+)", "([^"]*)", "([^"]*)", ([01])', file.read(), re.M)
        self.assertGreater(len(rows), 1)
        shown = [(name, kind, initial, words or None) for kind, name, initial, words, is_shown in rows
                 if is_shown == "1"]
        value, _ = info()
        self.assertEqual([(option["name"], option["kind"], option["default"], option["words"])
                          for option in value["options"]], shown)

    def test_value_in_effect_is_shown(self):
        value, _ = info(ORIEL_SPIN="77", ORIEL_RESERVE="65536K")
        options = {option["name"]: option for option in value["options"]}
        self.assertEqual((options["ORIEL_SPIN"]["value"], options["ORIEL_SPIN"]["set"]), ("77", True))
        self.assertEqual(options["ORIEL_RESERVE"]["value"], "64M")
        self.assertFalse(options["ORIEL_CMA"]["set"])

    def test_values_and_paths_of_any_bytes_are_shown(self):
        for value_set, shown in ((b"/\xff\x1b[1m/t", "/??[1m/t"), (b"/" + b"a" * 255, "/" + "a" * 255),
                             (("/a" + "\u00e4" * 2000).encode(), "/a" + "\u00e4" * 2000)):
            value, result = info(ORIEL_TRACE=os.fsdecode(value_set))
            self.assertIn("  ORIEL_TRACE=" + shown + "  (", start(ORIEL, "info", ORIEL_TRACE=os.fsdecode(value_set)).stdout)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn(shown, [option["value"] for option in value["options"]])
        os.makedirs(os.path.join(os.fsencode(self.folder), b"\xe4", b"bin"))
        oriel = os.path.join(os.fsencode(self.folder), b"\xe4", b"bin", b"oriel")
        shutil.copy(ORIEL, oriel)
        self.assertEqual(info(os.fsdecode(oriel))[0]["hosts"][0]["liboriel"], self.path("?/lib/oriel/mpich/liboriel.so"))

    def test_unknown_and_malformed_variables_are_warned_about_once_per_job(self):
        jobs = [[ORIEL, "info"], [ORIEL, "bench", "--list"], [ORIEL, "help"]]
        for host in HOSTS:
            # the checker replaces ThreadSanitizer's runtime
            for command in ("run",) if SANITIZE == "thread" else ("run", "check"):
                jobs.append([LAUNCH, "--build", BUILD, "--host", host, "-n", "3", "--plain", ORIEL, command, program(host, "one_put")])
        for words in jobs:
            result = start(*words, ORIEL_SPINN="1", ORIEL_SPIN="fast")
            self.assertEqual(result.returncode, 0, result.stderr)
            warnings = [line for line in result.stderr.splitlines() if "ORIEL_" in line]
            self.assertEqual(warnings[0], "oriel: ORIEL_SPIN=fast is not a whole number of 0 or more; using the default, 2000")
            self.assertRegex(warnings[1], r"^oriel: ORIEL_SPINN is not an option of Oriel \S+ and is ignored; did you mean ORIEL_SPIN\?$")
            self.assertEqual(warnings[2:], [], words)
        self.assertIn("ORIEL_SPIN=2000", start(ORIEL, "info", ORIEL_SPIN="fast").stdout)

    def test_text_equals_json(self):
        value, _ = info()
        text = start(ORIEL, "info").stdout
        self.assertTrue(text.startswith(f"Oriel {value['version']}\n"))
        for host in value["hosts"]:
            self.assertIn(host["version"] or host["reason"], text)
        for mechanism in value["mechanisms"]:
            answer = "yes" if mechanism["available"] else "no"
            self.assertRegex(text, rf"(?m)^  {mechanism['name']} +{answer} +{re.escape(mechanism['detail'])}$")
        for option in value["options"]:
            self.assertIn(f"  {option['name']}={option['value']}  (default {option['default']}", text)
            self.assertIn(option["meaning"], text)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_ordinary_user_sees_it_too(self):
        oriel = self.tree(*HOSTS)
        os.chmod(self.folder, 0o755)
        result = start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", oriel, "info", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        value = json.loads(result.stdout)
        mechanisms = {mechanism["name"]: mechanism for mechanism in value["mechanisms"]}
        self.assertTrue(mechanisms["memfd"]["available"] and mechanisms["agent"]["available"])
        self.assertEqual([host["served"] for host in value["hosts"] if host["name"] in HOSTS], [True] * len(HOSTS))

    def test_agent_is_available_where_copies_are_refused(self):
        found = mechanisms_by(os.path.join(BUILD, "tests", "mpi", "deny"), ORIEL)
        self.assertFalse(found["cma"]["available"])
        self.assertEqual((found["agent"]["available"], found["agent"]["detail"]),
                         (True, "one page copied for another process by a thread of its owner"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_agent_that_cannot_start_gives_the_reason(self):
        oriel = self.tree(*HOSTS)
        os.chmod(self.folder, 0o755)
        found = mechanisms_by("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--nproc=0:0", oriel)
        self.assertFalse(found["agent"]["available"])
        self.assertIn("cannot create the agent's thread: Resource temporarily unavailable", found["agent"]["detail"])
        self.assertFalse(found["network"]["available"])  # UCX alone would end the process

    def test_full_device_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["info"], ["run", "--counters"], ["check", "--rules"], ["check", "--explain", "C1"], ["--help"],
                          ["--version"], ["version"], ["help"], ["help", "ORIEL_SPIN"],
                          *([name, "--help"] for name in ("run", "check", "report", "top", "bench", "demo", "info"))):
                result = subprocess.run([ORIEL, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: No space left on device\n"), words)

    def test_closed_output_is_an_error(self):
        # rather than a file opened with that number
        for words in (["info"], ["info", "--json"], ["check", "--rules"], ["--version"], ["run", "--help"]):
            result = subprocess.run([ORIEL, *words], stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False,
                                    preexec_fn=lambda: os.close(1))
            self.assertEqual((result.returncode, result.stderr), (2, "oriel: stdout: Bad file descriptor\n"), words)


if __name__ == "__main__":
    unittest.main()
