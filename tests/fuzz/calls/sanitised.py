#!/usr/bin/python3
"""Builds the library and the fuzzing program for one host with the address and undefined-behaviour
sanitisers. Then runs the program with new seeds until the time is over.

The build folder stays: a second run rebuilds only changes.  Any sanitiser report ends the row,
and the output names its seed.  The status is 0, 1, or 77 where sanitisers are unavailable."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

SANITIZERS = "address,undefined"
LIMIT_S = 240  # per job
SETTINGS = ("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0", "UBSAN_OPTIONS=print_stacktrace=1")


def can_sanitise(cc):
    with tempfile.TemporaryDirectory(prefix="oriel-fuzz-") as folder:
        source = os.path.join(folder, "try.c")
        with open(source, "w", encoding="utf-8") as file:
            file.write("int main(void) { return 0; }\n")
        command = [cc, f"-fsanitize={SANITIZERS}", source, "-o", source + ".x"]
        try:
            return (subprocess.run(command, capture_output=True, check=False).returncode == 0 and
                    subprocess.run([source + ".x"], capture_output=True, check=False).returncode == 0)
        except OSError:
            return False


def build(arguments):
    """Returns None, or the error."""
    commands = [["cmake", "-S", arguments.tree, "-B", arguments.build, "-G", "Ninja", f"-DSANITIZE={SANITIZERS}",
                 f"-DCMAKE_C_COMPILER={arguments.cc}"],
                ["cmake", "--build", arguments.build, "-j2", "--target", "oriel", f"oriel_{arguments.host}",
                 arguments.program]]
    # When the compiler of a build folder changes, CMake drops every other setting. Such a folder is
    # created anew.
    marker = os.path.join(arguments.build, "configured-as")
    wanted = " ".join(commands[0])
    if not os.path.exists(marker) or open(marker, encoding="utf-8").read() != wanted:
        shutil.rmtree(arguments.build, ignore_errors=True)
        os.makedirs(arguments.build)
        with open(marker, "w", encoding="utf-8") as file:
            file.write(wanted)
    for command in commands:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if result.returncode != 0:
            return " ".join(command) + "\n" + result.stdout[-4000:] + result.stderr[-4000:]
    for path in (("lib", "oriel", arguments.host, "liboriel.so"), ("tests", "fuzz", "calls", arguments.host, "fuzz")):
        with open(os.path.join(arguments.build, *path), "rb") as file:
            text = file.read()
        if b"__asan_report" not in text or b"__ubsan_handle" not in text:
            return f"{path[-1]} was built without the sanitisers"
    return None


def run(arguments):
    program = os.path.join(arguments.build, "tests", "fuzz", "calls", arguments.host, "fuzz")
    command = [os.path.join(arguments.tree, "tests", "launch"), "--build", arguments.build, "--host", arguments.host,
               "-n", "2", "--timeout", str(LIMIT_S)]
    for setting in SETTINGS:
        command += ["--env", setting]
    result = subprocess.run(command + ["--", program], capture_output=True, text=True, errors="replace", check=False)
    return result.returncode, result.stdout + result.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--host", required=True)
    parser.add_argument("--program", required=True, help="the fuzzing program's target")
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    if not can_sanitise(arguments.cc):
        print(f"skipped: {arguments.cc} cannot build or run with -fsanitize={SANITIZERS} here")
        return 77
    failure = build(arguments)
    if failure is not None:
        print(failure)
        return 1
    begin = time.monotonic()
    runs = 0
    while runs == 0 or time.monotonic() - begin < arguments.seconds:
        status, output = run(arguments)
        if status != 0:
            print(output)
            return status if status == 77 else 1
        print("\n".join(line for line in output.splitlines() if line.startswith("# ")), flush=True)
        runs += 1
    print(f"{runs} runs, no report")
    return 0


if __name__ == "__main__":
    sys.exit(main())
