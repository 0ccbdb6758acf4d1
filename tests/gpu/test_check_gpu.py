"""scripts/check-gpu with the stand-in for the driver: packed here, run here, and, as
`test_check_gpu.py clean`, in a Debian system with nothing but bash and python3.

The other rows of this folder show whether the tests pass; these, whether they are run and reported."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["TESTS_BUILD"]
HOST = os.environ["TESTS_HOSTS"].split(",")[0]
TOOL = str(ROOT / "scripts" / "check-gpu")
STANDIN = os.path.join(BUILD, "tests", "gpu", "standin")
ROW = f"gpu.device_windows.{HOST}.2.oriel"
NODES_ROW = f"gpu.device_pipeline.{HOST}.2.node1"  # each rank counts as a node
NOBODY = 65534
sys.path.insert(0, str(ROOT / "scripts"))


def check_gpu(*words, tool=TOOL, prefix=()):
    env = {name: value for name, value in os.environ.items() if name not in ("OUT", "LD_LIBRARY_PATH")}
    return subprocess.run([*prefix, "/usr/bin/python3", "-B", tool, *words], env=env, capture_output=True, text=True,
                          check=False)


def pack(archive, *words):
    made = check_gpu("pack", "--build", BUILD, *words, archive)
    if made.returncode:
        sys.exit(f"not packed: {made.stdout}{made.stderr}")
    return made.stdout


class CheckGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="oriel-check-gpu-test.")
        os.chmod(cls.folder.name, 0o777)
        cls.archive = os.path.join(cls.folder.name, "pack.tar.gz")
        cls.said = pack(cls.archive, "--hosts", HOST)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def out(self, name):
        return os.path.join(self.folder.name, name)

    def run_and_read(self, archive, name, *words, prefix=()):
        """The status and the output of a run with the stand-in, and its result file."""
        done = check_gpu("run", archive, "--driver", STANDIN, "--out", self.out(name), *words, prefix=prefix)
        with open(os.path.join(self.out(name), "gpu-check.md"), encoding="utf-8") as file:
            return done.returncode, done.stdout + done.stderr, file.read()

    def test_a_row_and_the_figures_are_in_the_result(self):
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        is_root = os.geteuid() == 0 and shutil.which("setpriv")
        status, said, result = self.run_and_read(self.archive, "good", "--rows", f"^({ROW}|{NODES_ROW})$",
                                                 prefix=user if is_root else [])
        self.assertEqual(status, 0, said + result)
        for row in (ROW, NODES_ROW):
            self.assertRegex(result, rf"\| {row} \| passed \|")
        self.assertIn("| rows | 2 passed |", result)
        self.assertIn("with a stand-in, not on hardware", result)
        for figure in ("put, 64 MiB", "get, 64 MiB", "put, 8 B", "fetch_and_op", "accumulate, 1,048,576 doubles",
                       "put, 64 MiB from host memory", "put, 4,096 blocks of 1 KiB"):
            self.assertRegex(result, rf"\n\| {figure} \| [0-9.]+ us \| copy|bandwidth")
        self.assertNotIn("WRONG", result)

    def test_a_failed_row_is_reported(self):
        archive = self.out("failing.tar.gz")
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(self.archive) as packed:
                packed.extractall(folder)
            at = os.path.join(folder, "gpu-check", "pack.json")
            with open(at, encoding="utf-8") as file:
                text = json.load(file)
            text["rows"] = [dict(row, arguments=["--only", "no_such_case"]) for row in text["rows"] if row["name"] == ROW]
            with open(at, "w", encoding="utf-8") as file:
                json.dump(text, file)
            with tarfile.open(archive, "w:gz") as packed:
                packed.add(os.path.join(folder, "gpu-check"), "gpu-check")
        status, _, result = self.run_and_read(archive, "failing")
        self.assertEqual(status, 1)
        self.assertRegex(result, rf"\| {ROW} \| failed \|")
        self.assertRegex(result, rf"## Output of {ROW}\n\n(    .*\n)*    no case of that name\n")

    def test_no_time_is_no_success(self):
        status, _, result = self.run_and_read(self.archive, "late", "--limit", "1")
        self.assertEqual(status, 1)
        self.assertRegex(result, rf"\| {ROW} \| not run: no time left \|")

    def test_without_a_driver_nothing_is_run(self):
        done = check_gpu("run", self.archive, "--driver", self.folder.name)
        self.assertEqual(done.returncode, 77)
        self.assertRegex(done.stdout, "^skipped: there is no driver")

    def test_settings_of_the_standin_need_it(self):
        loader = importlib.machinery.SourceFileLoader("check_gpu", TOOL)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_gpu", loader))
        loader.exec_module(module)
        with tarfile.open(self.archive) as packed:
            packed.extract("gpu-check/pack.json", self.out("packed"))
        driver = types.SimpleNamespace(is_standin=False, folder=None)
        options = types.SimpleNamespace(limit=100, rows="")
        checks = module.Checks(self.out("packed/gpu-check"), driver, options)
        launched = []
        checks.launch = lambda *words: launched.append(words) or ("passed", 0, "")
        row = dict(checks.rows[0], settings={"STANDIN_STRICT": "1", "STANDIN_FAIL": "cuMemAlloc:1:2"})
        self.assertEqual(checks.row(row)[0], "left out: needs STANDIN_FAIL")
        self.assertEqual(checks.row(dict(row, settings={"STANDIN_STRICT": "1"}))[0], "passed")
        self.assertEqual(len(launched), 1)
        environment = checks.environment({"STANDIN_STRICT": "1", "ORIEL_NODE_SIZE": "1"})
        self.assertNotIn("STANDIN_STRICT", environment)
        self.assertEqual(environment["ORIEL_NODE_SIZE"], "1")


# A network with nothing but the loopback interface, which is set up by the call that ip(8) makes.
ALONE = """
cat >/tmp/lo.py <<'END'
import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 0x43))
END
exec unshare --net sh -ec 'python3 /tmp/lo.py; cd /tmp; tar xf /srv/pack.tar.gz gpu-check/check-gpu gpu-check/jobs.py
exec %s python3 gpu-check/check-gpu run /srv/pack.tar.gz --driver /srv/driver --limit 900 --out /srv/out'
"""


def in_a_clean_system():
    """Packs all hosts, and runs the pack in a new Debian system without a network, as root and as another user."""
    from debian_root import clean_root
    with clean_root() as root:
        root.must("apt-get update -qq && apt-get install -qq --no-install-recommends python3-minimal libpython3-stdlib >/dev/null"
                  " && ! command -v mpiexec")
        os.makedirs(root.path("srv/out"))
        os.chmod(root.path("srv/out"), 0o777)
        print(pack(root.path("srv/pack.tar.gz")).strip(), flush=True)
        shutil.copytree(STANDIN, root.path("srv/driver"), ignore=shutil.ignore_patterns("CMakeFiles"))
        for as_user in ("", f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"):
            done = root.run(ALONE % as_user, limit_s=1000)
            result = pathlib.Path(root.path("srv/out/gpu-check.md"))
            print(done.stdout, result.read_text(encoding="utf-8") if result.exists() else "", flush=True)
            if done.returncode:
                sys.exit(f"not ok, {as_user or 'as root'}: status {done.returncode}")
            result.unlink()


if __name__ == "__main__":
    if sys.argv[1:] == ["clean"]:
        in_a_clean_system()
    else:
        unittest.main()
