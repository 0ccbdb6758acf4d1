#!/usr/bin/python3
"""ORIEL_VERBOSE=1 prints one line for the job and one for each window, however many ranks it has.
Ranks whose memory has other paths get a line for each kind of path.

CTest runs it for each host."""

import re
import sys

sys.dont_write_bytecode = True
import job_output  # noqa: E402

HOSTS = {"mpich": r"MPICH \d\S*", "openmpi": r"Open MPI v\d\S*"}


def call(mark):
    return job_output.marked_line("verbose.c", mark)


def plural(count, noun):
    return f"{count} {noun}" + ("" if count == 1 else "s")


def banner(args, ranks, options=""):
    """The launcher of the tests sets ORIEL_TIMEOUT."""
    return (rf"Oriel \d\S* serves windows of {plural(ranks, 'rank')} on 1 node, on {HOSTS[args.host]}; "
            rf"set: ORIEL_VERBOSE=1{options} ORIEL_TIMEOUT=\d+")


def window(number, ranks, nodes=1):
    return rf"window {number} of {plural(ranks, 'rank')} on {plural(nodes, 'node')}"


def check(args, name, ranks, wanted, *options):
    """All lines, in any order: a rank does not wait until another has printed. Each wanted text is a pattern."""
    variables = [word for option in ("ORIEL_VERBOSE=1", *options) for word in ("--env", option)]
    job = job_output.run(args, ranks, name, options=variables)
    lines = job_output.own_lines(job)
    left = list(lines)
    missing = []
    for text in wanted:
        found = next((line for line in left if re.fullmatch("oriel: " + text, line)), None)
        if found is None:
            missing.append(text)
        else:
            left.remove(found)
    good = job.returncode == 0 and not left and not missing
    case = "/".join([name, str(ranks), *options])
    return job_output.report(f"verbose_prints_a_line_for_the_job_and_each_window/{case}", good, job, missing or wanted)


def allocated(args, ranks):
    path = "other ranks reach its memory by direct" if ranks > 1 else "there are no other ranks"
    sizes = "0 bytes to 24 bytes" if ranks > 1 else "0 bytes"
    return check(args, "allocated", ranks, [
        banner(args, ranks),
        rf"MPI_Win_allocate at {call('twice')}: {window(1, ranks)}, 1 MiB per rank: {path}",
        rf"MPI_Win_allocate at {call('twice')}: {window(2, ranks)}, 1 MiB per rank: {path}",
        rf"MPI_Win_allocate at {call('once')}: {window(3, ranks)}, {sizes} per rank: {path}"])


def paths(args):
    """By the kernel's copies, or by the agent where the kernel refuses them."""
    line = rf"MPI_Win_create at {call('paths')}: {window(1, 4)}, 64 bytes per rank: other ranks reach the memory of 2 of 4 ranks "
    return check(args, "paths", 4, [
        banner(args, 4, " ORIEL_PROMOTE=never"),
        line + r"\(first: rank 0\) by direct",
        line + r"\(first: rank 1\) by (cma|agent); no better path: promotion: ORIEL_PROMOTE=never.*"], "ORIEL_PROMOTE=never")


def dynamic(args, ranks):
    return check(args, "dynamic", ranks, [
        banner(args, ranks),
        rf"MPI_Win_create_dynamic at {call('dynamic')}: {window(1, ranks)}: no memory is attached yet",
        rf"rank [0-{ranks - 1}]: MPI_Win_attach at {call('attach')}: other ranks reach the memory attached to window 1 "
        r"\(MPI_Win_create_dynamic\) by direct"])


def handled(args, ranks):
    return check(args, "handled", ranks, [
        banner(args, ranks),
        rf"MPI_Win_allocate at {call('window')}: {window(1, ranks)}, 8 bytes per rank: other ranks reach its memory by direct",
        rf"rank [0-{ranks - 1}]: MPI_Win_unlock at {call('handled')} on window 1 \(MPI_Win_allocate\): rank 0 is not locked by this process"])


def left_to_host(args, ranks):
    """A decision of all ranks."""
    return check(args, "handled", ranks, [
        banner(args, ranks, " ORIEL_NET=off ORIEL_NODE_SIZE=1"),
        rf"rank [0-{ranks - 1}]: MPI_Win_allocate at {call('window')}: the host creates the window: the ranks are on {ranks} nodes: "
        r"ORIEL_NET=off \[O12\]"], "ORIEL_NET=off", "ORIEL_NODE_SIZE=1")


def without_device(args, ranks):
    """The first rank warns, too: a program on several nodes may never ask for notes."""
    reason = r"(no UCX: it has no network device|built without UCX).*\[O12\]"
    return check(args, "handled", ranks, [
        banner(args, ranks, " ORIEL_NODE_SIZE=1"),
        rf"rank 0: the host creates windows over several nodes: {reason}",
        rf"rank [0-{ranks - 1}]: MPI_Win_allocate at {call('window')}: the host creates the window: the ranks are on "
        rf"{ranks} nodes: {reason}"], "UCX_TLS=sm", "ORIEL_NODE_SIZE=1")


def main():
    args = job_output.arguments()
    good = True
    for ranks in (1, 2, 4, 8):
        good = allocated(args, ranks) and good
    for ranks in (2, 4):
        good = dynamic(args, ranks) and good
        good = handled(args, ranks) and good
    good = left_to_host(args, 2) and good
    good = without_device(args, 2) and good
    good = paths(args) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
