"""NVIDIA's assembler accepts all kernels, and each runs on all threads of an H100: a multiprocessor
has 65,536 registers for its 2,048 threads. Skipped where the assembler is not installed."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SKIP = 77
TEXTS = os.path.join(os.environ["TESTS_BUILD"], "tests", "gpu", "kernel_texts")
PTXAS = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
REGISTERS = 65536 // 2048


class Texts(unittest.TestCase):
    def test_all_are_assembled(self):
        text = subprocess.run([TEXTS], stdout=subprocess.PIPE, check=True).stdout
        kernels = text.count(b".entry")
        self.assertGreater(kernels, 90)
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "kernels.ptx")
            with open(source, "wb") as file:
                file.write(text)
            result = subprocess.run([PTXAS, "-arch", "sm_90", "-v", source, "-o", os.path.join(folder, "kernels.cubin")],
                                    stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        used = [int(count) for count in re.findall(r"Used (\d+) registers", result.stdout + result.stderr)]
        self.assertEqual(len(used), kernels)
        self.assertLessEqual(max(used), REGISTERS)


if __name__ == "__main__":
    if PTXAS is None:
        print("skipped: ptxas is not installed")
        sys.exit(SKIP)
    unittest.main()
