#!/usr/bin/python3
"""Runs every scenario of a program of fault.h on one host: a rank dies, and the survivors must get
an error in time.

Each scenario is one launch, configured so that the launcher does not end the job. Each survivor
writes a report to a folder. With --net the ranks are on emulated nodes that scripts/testnet makes,
and --fault link disconnects the victim's node. With --fault stop the victim stops responding. With
--fault pause it resumes after a while and must get the error that it was given up. For these faults
ORIEL_TIMEOUT is 2 s.

--rounds N draws N deaths, each with its scenario and its time (in us, or in instructions of the
victim), several for each launch (fault_rounds.c), and runs --jobs launches at a time. After each
death the survivors free the window, whose mappings and descriptors must be gone, and continue with
a window of their own. The script prints the seed, and for each failing launch the command to
repeat it.

faults.py --launch PATH --build FOLDER --host HOST [--node-size K] PROGRAM [SCENARIO...]"""

import argparse
import concurrent.futures
import ctypes
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

BOUND_SECONDS = 5
SILENT_SECONDS = 2
REPETITIONS = {"accumulate": 3, "creations": 5, "fencing": 5, "freeing": 5, "creating": 5}
# Slightly more than the instructions of the call in which it dies: on one node, under the checker.
STEPS_OF = {"fencing": (200, 5000), "freeing": (2500, 8000), "creating": (6000, 60000)}
# These need one node. A freed window no longer reports whether an internode rank lives. After its
# main thread has ended, a process still serves internode ranks. A stopped process does not disturb
# ranks that share its memory. Queries to other nodes use open descriptors. Memory with loads and
# stores by all ranks exists on one node only.
ON_ONE_NODE = {"without-descriptors", "creation-again", "ending", "main-ended", "shared"}
SCENARIOS = {
    "faults": ["fence", "exclusive-held", "exclusive-held-shared-wanted", "exclusive-held-all-wanted", "shared-held", "all-held",
               "start", "posted", "wait", "test", "free", "without-descriptors", "fence-twice", "fencing", "freeing", "creating",
               "creation", "creation-again", "creation-late", "creations", "accumulate", "flushed", "lent", "lent-held", "awaited",
               "notification", "ending", "main-ended"],
    "faults_internode": ["put", "get", "fetch", "bulk-put", "bulk-get", "bulk-accumulate", "unlock", "lock", "lock-after-survivor",
                   "lock-after-waiter", "lock-all", "unlock-all", "complete", "own-window", "own-window-after-free",
                   "put-fence"],
    "device_faults": ["put", "get"],
    "faults_random": ["fences", "epochs", "locks", "lock-alls", "locks-mixed", "requests", "threads", "dynamics",
                      "shared", "windows"],
}
DELAY_MOST_US = 60000
STEPS_MOST = 8000
# Under the checker: the scenarios without findings, and whether a survivor queries the victim's
# checker.
CHECKED = {"faults": {"fence": False, "exclusive-held": False, "start": False, "free": False, "fencing": False, "freeing": False,
                      "creating": False, "creations": False},
           "faults_internode": {"put": True, "fetch": True, "lock": False, "unlock-all": True, "put-fence": True}}
CANNOT_TRACE = "this process cannot be traced"
CHECKER_LOST = "the checker of another node does not answer"
DEATHS = 6  # in one launch of --rounds
WINDOW_KIB = 1024  # of each rank, in a round
# Growth from the first round of a launch to its last: less than one for each death. The parts of
# the memory file that a core dump contains are separate mappings. Sanitisers add mappings.
MAY_GROW = {"mappings": 12 if os.environ.get("TESTS_SANITIZE") else 4, "sockets": 1, "other descriptors": 1,
            "KiB in its memory file": 64}
# One-time growth, if the first round did not include it: the stacks of two threads and libc's arenas
# for them, two mappings each, the area of the agent, which copies, the area for requests to a
# waiting rank, and the memory of an allocated window or of several small ones, which is retained
# for the next.
MAY_GROW_ONCE = {"threads": {"mappings": 8}, "by agent": {"mappings": 2, "KiB in its memory file": 700},
                 "allocated": {"KiB in its memory file": WINDOW_KIB}, "by copies": {"KiB in its memory file": 80},
                 "windows": {"KiB in its memory file": 256}}
KILLED_ONLY = {"creation-late", "creations", "lock-after-waiter", "accumulate", "own-window", "own-window-after-free", *STEPS_OF}
MESSAGES = {"main-ended": "the main thread of rank"}
RESUMES = {"fence", "fence-twice", "free", "put-fence"}
KEEP_ALIVE = {"mpich": ["-disable-auto-cleanup"], "openmpi": ["--enable-recovery"]}
# Files that the hosts leave behind when one of their processes is killed, or that belong to
# concurrent jobs.
HOSTS_OWN = ("vader_segment", "sm_segment", "mpich", "osc_rdma", "osc_sm", "openmpi", "open_mpi", "ucx_", "psm", "sem.")


def shared_memory_files():
    try:
        return set(os.listdir("/dev/shm"))
    except FileNotFoundError:
        return set()


def processes_naming(text):
    """Processes whose command line contains the text, except this one."""
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
    """The same, after at most one second of the machine for processes that are exiting."""
    end = time.monotonic() + share_of(1)
    while processes_naming(text) and time.monotonic() < end:
        time.sleep(0.05)
    return processes_naming(text)


def what_is_left(folder, shared_before):
    return [f"process {pid} is still there" for pid in processes_left(folder)] + \
           [f"/dev/shm/{name} is left" for name in shared_memory_files() - shared_before if not name.startswith(HOSTS_OWN)]


def share_of(seconds):
    """What takes this time on a machine of its own may take longer on one where more threads want to run than it has processors,
    now or in the last minute."""
    with open("/proc/loadavg", encoding="ascii") as file:
        of_minute, _, _, now, _ = file.read().split()
    return seconds * max(1, max(float(of_minute), int(now.partition("/")[0])) / os.cpu_count())


def report_of(folder, name, rank, fields):
    """The fields of a survivor's report, the last one the rest of the line; None if missing."""
    try:
        with open(f"{folder}/{name}.{rank}") as file:
            found = (file.read().strip() + " ").split(" ", fields - 1)
    except FileNotFoundError:
        return None
    return found if len(found) == fields else None


def judge_survivor(args, folder, rank, message):
    """None when the report is right, otherwise the fault."""
    report = report_of(folder, "rank", rank, 3)
    wrong = judge_verdict(args, rank, args.victim, *report) if report else f"rank {rank} never returned"
    return wrong or (None if message in report[2] else f"rank {rank} says something else: {report[2].strip()}")


def judge_verdict(args, rank, victim, verdict, seconds, text):
    if verdict == "success":
        return f"rank {rank} got no error"
    if float(seconds) > share_of(BOUND_SECONDS + (0 if args.fault == "kill" else 2 * SILENT_SECONDS)):
        return f"rank {rank} waited for {seconds} s"
    if verdict not in ("error", "allowed"):
        return f"rank {rank} got an error of another class: {text.strip()}"
    if verdict == "error" and rank != victim and f"rank {victim} " not in text:
        return f"rank {rank} got an error that does not name rank {victim}: {text.strip()}"
    return None


def checker_output_file(folder):
    return f"{folder}/said"


def judge_checker(args, scenario, checker_output):
    """The survivors' checkers report the lost checker and no finding."""
    if CHECKER_LOST not in checker_output and CHECKED[os.path.basename(args.program)][scenario] and not args.leader_lives:
        return "no checker reported the lost one"
    found = re.search(r"^oriel: +[A-Z]\d+: .*$", checker_output, re.M)
    return f"something was found: {found.group(0)}" if found else None


def job_command(args, *program, time_=None):
    command = ["--host", args.host, "-n", str(args.ranks)]
    command += [f"--launcher={word}" for word in KEEP_ALIVE[args.host.removeprefix("abi-")]]
    settings = {"TEST_VICTIM": str(args.victim), "TEST_FAULT": args.fault}
    if time_:
        settings["TEST_DEATH_TIME"] = time_
    if args.host.endswith("mpich"):  # its launcher ends the job if a rank prints after a death
        settings["UCX_LOG_LEVEL"] = "fatal"
    if args.fault != "kill":
        settings["ORIEL_TIMEOUT"] = str(SILENT_SECONDS)
    if args.node_size:
        settings["ORIEL_NODE_SIZE"] = str(args.node_size)
    command += [f"--env={key}={value}" for key, value in settings.items()]
    program = [args.program, *program]
    if args.net:
        return [args.testnet, "--id", args.net_id, "run", *command, "--", f"{args.build}/bin/oriel", "run", *program]
    if args.check:  # output after a death must not reach MPICH's launcher
        program = ["/bin/sh", "-c", 'exec "$@" 2>>"$0"', checker_output_file(program[-1]), f"{args.build}/bin/oriel", "check", *program]
    command += (["--plain"] if args.plain or args.check else []) + args.launch_arguments.split()
    return [args.launch, "--build", args.build, "--timeout", "30", *command, "--", *program]


def testnet(args, *words):
    return subprocess.run([args.testnet, "--id", args.net_id, *words], check=False).returncode


def take_link_down(args, folder, job):
    """Waits until the victim is ready, then takes its node's link down."""
    end = time.monotonic() + 20
    while not os.path.exists(f"{folder}/ready.{args.victim}") and time.monotonic() < end and job.poll() is None:
        time.sleep(0.01)
    testnet(args, "link", args.node, "down")
    with open(f"{folder}/fault", "w"):
        pass


def reports_are_there(args, folder):
    return all(os.path.exists(f"{folder}/rank.{rank}") for rank in range(args.ranks) if rank not in args.cut_off)


def run_job(args, command, folder):
    """The job's output; the link is up again when it returns."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
    if args.fault == "link":
        take_link_down(args, folder, job)
        end = time.monotonic() + 15
        while not reports_are_there(args, folder) and time.monotonic() < end and job.poll() is None:
            time.sleep(0.05)
        testnet(args, "link", args.node, "up")
    try:
        return job.communicate(timeout=400)[0]
    except subprocess.TimeoutExpired:
        job.terminate()
        return "the job did not end by itself\n" + job.communicate()[0]


def run_once(args, scenario, memory, time_):
    with tempfile.TemporaryDirectory(prefix="oriel-faults.", dir=args.build if args.net else None) as folder:
        os.chmod(folder, 0o777)
        before = shared_memory_files()
        output = run_job(args, job_command(args, scenario, memory, folder, time_=time_), folder)
        wrong = [judge_survivor(args, folder, rank, MESSAGES.get(scenario, "")) for rank in range(args.ranks)
                 if rank not in args.cut_off or args.fault == "pause"]
        if args.check:
            with open(checker_output_file(folder)) as file:
                checker_output = file.read()
            output += checker_output
            wrong.append(judge_checker(args, scenario, checker_output))
        if CANNOT_TRACE in output:
            wrong.append(CANNOT_TRACE)
        outlived = os.path.exists(f"{folder}/outlived.{args.victim}")
        return [text for text in wrong + what_is_left(folder, before) if text], output, outlived


def scenarios_of(args):
    program = os.path.basename(args.program)
    for scenario in args.scenarios or (CHECKED if args.check else SCENARIOS)[program]:
        if (args.node_size or args.net) and scenario in ON_ONE_NODE:
            continue
        if args.fault == "pause" and scenario not in RESUMES:
            continue
        if args.fault != "kill" and scenario in KILLED_ONLY:
            continue
        if scenario in STEPS_OF and not args.steps:
            continue
        yield scenario


def complain(wrong, output, what):
    print(f"{'not ok' if wrong else 'ok'} a_death_is_noticed/{what}{': ' + '; '.join(wrong) if wrong else ''}", flush=True)
    if wrong:
        print("".join(f"# {line}\n" for line in output.splitlines()[-15:]), end="", flush=True)


def can_trace():
    """Whether a process may single-step another process of its user."""
    libc = ctypes.CDLL(None, use_errno=True)
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        libc.prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER, any process
        os.write(ends[1], b"!")
        signal.pause()
    os.read(ends[0], 1)
    can = libc.ptrace(0x4206, child, None, None) == 0  # PTRACE_SEIZE
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return can


def default_time(args, scenario, repetition):
    """A random step of the repetition's part of the call, so that the first repetitions always die
    in the call; None where the scenario sets its own time."""
    if scenario not in STEPS_OF:
        return None
    part = STEPS_OF[scenario][args.check] // REPETITIONS[scenario]
    return f"{part * repetition + random.randrange(part)}steps"


def draw_time(args, chance):
    """A time by the clock (most ranks wait) or by the victim's instructions, equally likely."""
    if chance.randrange(2) and args.steps:
        return f"{int(STEPS_MOST * chance.random() ** 2)}steps"
    return str(int(DELAY_MOST_US * chance.random() ** 2))


def draw_launch(args, seed, number):
    """The rounds of one launch: scenario, memory, victim and time; two or three ranks survive."""
    chance = random.Random(f"{seed}.{number}")
    count = min(DEATHS, args.rounds - number * DEATHS)
    ranks = count + 2 + chance.randrange(2)
    return ranks, [(chance.choice(list(scenarios_of(args))), chance.choice(("allocate", "create")), victim,
                    draw_time(args, chance)) for victim in chance.sample(range(ranks), count)]


def judge_round(args, folder, number, rank, least_kib):
    """The fault in a survivor's report of a round, and its resources after the round.

    least_kib is the least size of its memory file while the window lives."""
    report = report_of(folder, f"round-{number}", rank, 11)
    if report is None:
        return f"rank {rank} never returned", {}
    free_seconds, free_failed, lives_kib, *holds, victim, verdict, seconds, text = report
    wrong = judge_verdict(args, rank, int(victim), verdict, seconds, text)
    if not wrong and free_failed != "1":
        wrong = f"rank {rank} freed the window as if no rank had died, or did not free it"
    if not wrong and float(free_seconds) > share_of(BOUND_SECONDS):
        wrong = f"rank {rank} took {free_seconds} s to free the window"
    if not wrong and int(lives_kib) < least_kib and not args.plain:
        wrong = f"rank {rank} has {lives_kib} KiB in its memory file while the window lives"
    return wrong, dict(zip(MAY_GROW, map(int, holds)))


def prepared_in(args, scenario, memory):
    """The one-time resources of a round."""
    copies = memory == "create" or scenario in ("ending", "main-ended", "dynamics", "windows")
    return {word for word, is_there in (("threads", scenario == "threads"), ("allocated", memory == "allocate"),
                                        ("windows", scenario == "windows"), ("by copies", copies),
                                        ("by agent", copies and "--deny" in args.launch_arguments)) if is_there}


def judge_launch(args, folder, rounds, ranks):
    wrong, first, dead, prepared = [], {}, set(), set()
    # The death may prevent a rank's copies, or some of many windows.
    at_first = prepared_in(args, *rounds[0][:2]) & {"threads", "allocated"}
    for number, (scenario, memory, victim, time_) in enumerate(rounds):
        dead.add(victim)
        prepared |= prepared_in(args, scenario, memory) - at_first
        for rank in set(range(ranks)) - dead:
            fault, holds = judge_round(args, folder, number, rank, WINDOW_KIB if memory == "allocate" else 1)
            if fault:
                wrong.append(f"round {number} ({scenario}/{memory}, rank {victim} dies after {time_}): {fault}")
            for what, count in holds.items():
                may_grow = MAY_GROW[what] + sum(MAY_GROW_ONCE[word].get(what, 0) for word in prepared)
                if count > first.setdefault((rank, what), count) + may_grow:
                    wrong.append(f"round {number}: rank {rank} has {count} {what}, {first[rank, what]} after the first round")
    return wrong


def try_launch(args, seed, number):
    ranks, rounds = draw_launch(args, seed, number)
    own = argparse.Namespace(**{**vars(args), "ranks": ranks})
    with tempfile.TemporaryDirectory(prefix="oriel-faults.") as folder:
        os.chmod(folder, 0o777)
        before = shared_memory_files()
        words = [f"{scenario}:{memory}:{victim}:{time_}" for scenario, memory, victim, time_ in rounds]
        output = run_job(own, job_command(own, folder, *words), folder)
        wrong = judge_launch(own, folder, rounds, ranks) + what_is_left(folder, before)
        return number, ranks, rounds, wrong + [CANNOT_TRACE] * (CANNOT_TRACE in output), output


def try_rounds(args):
    seed = args.seed if args.seed is not None else int(time.time())
    launches = range((args.rounds + DEATHS - 1) // DEATHS) if args.launch_number is None else [args.launch_number]
    print(f"# {args.rounds} deaths, at most {DEATHS} for each launch, --seed {seed}", flush=True)
    failures = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(try_launch, args, seed, number) for number in launches]):
            number, ranks, rounds, wrong, output = done.result()
            failures += bool(wrong)
            complain(wrong, output, f"launch {number} of {ranks} ranks, {len(rounds)} of which die")
            if wrong:
                print(f"# again: add --seed {seed} --rounds {args.rounds} --launch-number {number}", flush=True)
    print(f"# {failures} of {len(launches)} launches failed", flush=True)
    return 1 if failures else 0


def try_all(args):
    if args.rounds:
        return try_rounds(args)
    failures = 0
    for scenario in scenarios_of(args):
        for memory in ("allocate",) if args.node_size or args.net else ("allocate", "create"):
            inside = 0
            for repetition in range(REPETITIONS.get(scenario, 1)):
                time_ = args.time_ or default_time(args, scenario, repetition)
                wrong, output, outlived = run_once(args, scenario, memory, time_)
                failures += bool(wrong)
                inside += not outlived
                complain(wrong, output, f"{scenario}/{memory}" + (f"/{time_}" if time_ else ""))
            if scenario in STEPS_OF and inside == 0 and not args.time_:
                failures += 1
                complain(["each time the call was over before"], "", f"{scenario}/{memory}")
    return 1 if failures else 0


def on_net(args):
    """Runs on args.net emulated nodes, one rank on each."""
    args.testnet = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(args.launch))), "scripts", "testnet")
    args.net_id = f"f{os.getpid() % 10000000}"
    args.node = "abcdefgh"[args.victim % args.net]
    args.cut_off = [args.victim]
    if args.ranks != args.net:
        sys.exit("one rank for each node")
    made = subprocess.run([args.testnet, "--id", args.net_id, "up", str(args.net), "--owner", str(os.getpid()),
                           "--share", args.build], check=False)
    if made.returncode:
        return made.returncode
    try:
        return try_all(args)
    finally:
        testnet(args, "down")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launch", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True, choices=[*KEEP_ALIVE, *("abi-" + mpi for mpi in KEEP_ALIVE)])
    parser.add_argument("-n", dest="ranks", type=int, default=3)
    parser.add_argument("--victim", type=int, default=1)
    parser.add_argument("--node-size", type=int, default=0)
    parser.add_argument("--net", type=int, default=0)
    parser.add_argument("--fault", choices=["kill", "stop", "pause", "link"], default="kill")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--time", dest="time_", help="time of the death, if the scenario allows it: 5000 (us), 5000steps")
    parser.add_argument("--launch-arguments", default="", help="more arguments for tests/launch")
    parser.add_argument("--check", action="store_true", help="under oriel check; other nodes lose the victim's checker")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=1, help="with --rounds: launches that run at a time")
    parser.add_argument("--launch-number", type=int, help="with --rounds: run this launch alone")
    parser.add_argument("program")
    parser.add_argument("scenarios", nargs="*")
    args = parser.parse_args()
    args.cut_off = [args.victim]
    args.steps = can_trace()
    if not args.steps:
        print("# deaths at an instruction are left out: no process may trace another one here")
    # a node's first rank serves its checker
    args.leader_lives = args.node_size > 0 and args.victim % args.node_size > 0
    return on_net(args) if args.net else try_all(args)


sys.exit(main())
