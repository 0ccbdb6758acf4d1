"""Runs the examples on one host: `test_examples.py run|check|plain HOST PROGRAM...`, and those in
Python if mpi4py is for that host.

They run with 2 and 4 ranks, through `oriel run` or `oriel check`, or with 2 ranks on the bare host,
where 4 take minutes on two cores. Each must exit with 0 and print one line that begins with
"right: ", and the checker must find nothing.

`test_examples.py notice HOST` spoils a piece of each example. Each must exit with 1 and print a
line that begins with "WRONG: "."""

import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXAMPLES = os.path.join(ROOT, "examples")
sys.path[:0] = [os.path.join(ROOT, "tests", *part) for part in (["cli"], ["bindings", "python"])]
from command import BUILD, LAUNCH, ORIEL, environment  # noqa: E402
from host import mpi4py_host  # noqa: E402

INSTRUMENTED = os.environ["TESTS_INSTRUMENTED"] == "1"
# The driver of GPUs for runs with Oriel: a stand-in, where the tests are built.
STANDIN = os.path.join(BUILD, "tests", "gpu", "standin")

# A piece of each example, and one that makes its result wrong.
SPOILED = {
    "halo_fence.c": ("up, step % 2 * 2 + BELOW,", "up, step % 2 * 2 + ABOVE,"),
    "halo_fence.cpp": ("up, 2 * turn + below,", "up, 2 * turn + above,"),
    "halo_fence.f90": ("left, 2 * turn + after - 1,", "left, 2 * turn + before - 1,"),
    "halo_fence.py": ("up, 2 * turn + BELOW)", "up, 2 * turn + ABOVE)"),
    "halo_notify.c": ("edge_copy(-directions[d][0], -directions[d][1], 1,",
                      "edge_copy(directions[d][0], directions[d][1], 1,"),
    "halo_pscw.c": ("up, BELOW,", "up, ABOVE,"),
    "hash_table.c": ("if (found != FREE && found != key)", "if (found != FREE)"),
    "histogram.c": ("MPI_SUM, win);", "MPI_REPLACE, win);"),
    "histogram.cpp": ("MPI_SUM, win);", "MPI_REPLACE, win);"),
    "histogram.f90": ("MPI_SUM, win)", "MPI_REPLACE, win)"),
    "histogram.py": ("MPI.SUM)", "MPI.REPLACE)"),
    "mcs_lock.c": ("value++;", "value += round;"),
    "pipeline.c": ("(MPI_Aint)slot * NUMBERS, FULL)", "0, FULL)"),
    "producer_consumer.c": ("item = words[FIRST_ITEM + slot];", "item = words[FIRST_ITEM];"),
    "ring_gpu.c": ("(rank + 1) % ranks, to,", "(rank + 1) % ranks, from,"),
    "sparse_push.c": ("push(item, target, rank);", "push(item + 1, target, rank);"),
    "task_queue.c": ("count += n > 1 &&", "count +="),
    "ticket_lock.c": ("value++;", "value += round;"),
    "ticket_lock.cpp": ("value++;", "value += round;"),
    "ticket_lock.f90": ("value = value + 1", "value = value + round"),
    "ticket_lock.py": ("value += 1", "value += 2"),
    "work_stealing.c": ("count += n > 1 &&", "count +="),
}


def start(host, ranks, *words):
    return subprocess.run([LAUNCH, "--build", BUILD, "--host", host, "-n", str(ranks), *words],
                          env=environment(), capture_output=True, text=True, timeout=600,
                          check=False)


def report(what, result):
    return f"{what}: status {result.returncode}\n{result.stdout}{result.stderr}"


def command_of(program):
    return ["/usr/bin/python3", "-B", program] if program.endswith(".py") else [program]


def fault_of(how, host, ranks, program):
    """None, or the output of a run that was not as expected."""
    words = {"run": [], "plain": ["--plain"], "check": ["--plain", "--", ORIEL, "check"]}[how]
    wanted = r"right: .*\n"
    if how == "run" and program.endswith("_gpu") and os.path.exists(STANDIN):
        words = ["--env", f"LD_LIBRARY_PATH={STANDIN}", "--env", "STANDIN_STRICT=1"]
        wanted = r"right: .* in device memory\n"
    result = start(host, ranks, *words, "--", *command_of(program))
    good = result.returncode == 0 and re.fullmatch(wanted, result.stdout)
    if how == "check":
        watched = "were watched"
        if program.endswith(".py") or not INSTRUMENTED:
            watched = "were not watched"
        summary = f"oriel check: no problems on {ranks} ranks; local accesses {watched}"
        good = good and result.stderr.startswith(summary) and result.stderr.count("\n") == 1
    return None if good else report(f"{program}, {ranks} ranks", result)


def unnoticed(host, name):
    """None, or the output of a spoiled example that did not report a wrong result."""
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
        text = file.read()
    line, spoiled = SPOILED[name]
    if text.count(line) != 1:
        return f"{name}: '{line}' is there {text.count(line)} times, not once"
    with tempfile.TemporaryDirectory(prefix="oriel-examples.") as folder:
        source = os.path.join(folder, name)
        with open(source, "w", encoding="utf-8") as file:
            file.write(text.replace(line, spoiled))
        program = source
        if not name.endswith(".py"):
            program = os.path.join(folder, "program")
            compiler = compiler_of(host, name)
            subprocess.run([*compiler, source, "-o", program], cwd=folder, check=True)
        result = start(host, 2, "--", *command_of(program))
    if result.returncode == 1 and re.search(r"(?m)^WRONG: ", result.stdout):
        return None
    return report(f"{name}, spoiled", result)


def compiler_of(host, name):
    wrapper = {".c": "mpicc", ".cpp": "mpicxx", ".f90": "mpifort"}[os.path.splitext(name)[1]]
    return [shutil.which(f"{wrapper}.{host}") or shutil.which(wrapper), "-w",
            "-I" + os.path.join(ROOT, "include")]


def main(how, host, *programs):
    try:
        has_python = mpi4py_host() == host
    except ImportError:
        has_python = False
    sources = {name for name in os.listdir(EXAMPLES)
               if name.endswith((".c", ".cpp", ".f90", ".py"))}
    if sources - {"wordcount.c", "words.c"} != set(SPOILED):
        sys.exit("SPOILED has other names than examples/")
    names = [name for name in sorted(SPOILED) if has_python or not name.endswith(".py")]
    if how == "notice":
        jobs = [(unnoticed, host, name) for name in names]
    else:
        scripts = [os.path.join(EXAMPLES, name) for name in names if name.endswith(".py")]
        jobs = [(fault_of, how, host, ranks, program)
                for ranks in ((2,) if how == "plain" else (2, 4))
                for program in [*programs, *scripts]]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(lambda job: job[0](*job[1:]), jobs) if fault]
    print(f"{len(jobs)} runs, {len(faults)} faults", *faults, sep="\n")
    return bool(faults)


sys.exit(main(*sys.argv[1:]))
