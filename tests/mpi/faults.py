#!/usr/bin/python3
"""Runs every scenario of faults.c on one host and judges it: a rank dies by SIGKILL, the survivors must get an error soon.

Each scenario is one launch with a launcher that does not end the job itself; each survivor leaves a report in a folder.
Called by the test rows: faults.py --launch PATH --build FOLDER --host HOST PROGRAM [SCENARIO...]"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

RANKS = 3
VICTIM = 1
BOUND_SECONDS = 5
REPETITIONS = {"accumulate": 3}
SCENARIOS = ["fence", "exclusive-held", "exclusive-held-shared-wanted", "exclusive-held-all-wanted", "shared-held",
             "all-held", "start", "posted", "wait", "test", "free", "fence-twice", "creation", "creation-again", "creation-late",
             "accumulate"]
KEEP_ALIVE = {"mpich": ["-disable-auto-cleanup"], "openmpi": ["--enable-recovery"]}
# What the hosts themselves leave behind when one of their processes is killed; other jobs may run at the same time.
HOSTS_OWN = ("vader_segment", "mpich", "osc_rdma", "osc_sm", "openmpi", "ucx_", "psm", "sem.")


def shared_memory_files():
    try:
        return set(os.listdir("/dev/shm"))
    except FileNotFoundError:
        return set()


def processes_naming(text):
    """Processes whose command line has the text, this one left out."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if int(pid) != os.getpid() and text.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def processes_left(text):
    """The same after a second at most: what is on its way out may still be there at first."""
    end = time.monotonic() + 1
    while processes_naming(text) and time.monotonic() < end:
        time.sleep(0.05)
    return processes_naming(text)


def judge_survivor(folder, rank):
    """None when the report is as it must be, otherwise what is wrong."""
    try:
        with open(f"{folder}/rank.{rank}") as file:
            verdict, seconds, text = (file.read().strip() + " ").split(" ", 2)
    except (FileNotFoundError, ValueError):
        return f"rank {rank} never came back"
    if verdict == "success":
        return f"rank {rank} got no error"
    if float(seconds) > BOUND_SECONDS:
        return f"rank {rank} waited for {seconds} s"
    if verdict == "error" and f"rank {VICTIM} " not in text:
        return f"rank {rank} got an error that does not name rank {VICTIM}: {text.strip()}"
    return None


def run_once(args, scenario, memory):
    with tempfile.TemporaryDirectory(prefix="oriel-faults.") as folder:
        before = shared_memory_files()
        command = [args.launch, "--build", args.build, "--host", args.host, "-n", str(RANKS), "--timeout", "20"]
        command += [f"--launcher={word}" for word in KEEP_ALIVE[args.host]]
        command += ["--plain"] if args.plain else []
        job = subprocess.run([*command, "--", args.program, scenario, memory, folder], capture_output=True, text=True)
        wrong = [judge_survivor(folder, rank) for rank in range(RANKS) if rank != VICTIM]
        wrong += [f"process {pid} is still there" for pid in processes_left(folder)]
        wrong += [f"/dev/shm/{name} is left" for name in shared_memory_files() - before
                  if not name.startswith(HOSTS_OWN)]
        return [text for text in wrong if text], job.stdout + job.stderr


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True, choices=sorted(KEEP_ALIVE))
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("program")
    parser.add_argument("scenarios", nargs="*", default=SCENARIOS)
    args = parser.parse_args()
    failures = 0
    for scenario in args.scenarios or SCENARIOS:
        for memory in ("allocate", "create"):
            for _ in range(REPETITIONS.get(scenario, 1)):
                wrong, output = run_once(args, scenario, memory)
                print(f"{'not ok' if wrong else 'ok'} a_death_is_noticed/{scenario}/{memory}"
                      f"{': ' + '; '.join(wrong) if wrong else ''}", flush=True)
                if wrong:
                    failures += 1
                    print("".join(f"# {line}\n" for line in output.splitlines()[-15:]), end="", flush=True)
    return 1 if failures else 0


sys.exit(main())
