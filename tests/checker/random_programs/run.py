#!/usr/bin/python3
"""Generates one-sided programs, runs them under `oriel check` and compares the findings with the
oracle's errors.

Each conflicting pair of operations must be reported, by its call sites, and nothing else.  The
first access of a pair of call sites represents later ones that it makes superfluous
(src/check/access/history.c). A pair therefore also counts as reported through a later operation
that covers the first one's byte and is ordered after it. That operation must conflict with
everything the first conflicts with.  The script prints each failure with the command that
reproduces it."""

import argparse
import bisect
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

import generate
import oracle as o
import program as p

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(os.path.dirname(os.path.dirname(HERE)), "launch")
FOUND = 86
MOST_FINDINGS = 256
ARENAS_AT = 1024  # steps.c


def arguments():
    parser = argparse.ArgumentParser(description="Compares the findings of oriel check in random programs with their errors.")
    parser.add_argument("--build", required=True, type=os.path.abspath)
    parser.add_argument("--host", required=True, choices=["mpich", "openmpi"])
    parser.add_argument("--program", required=True, help="steps, built for the host")
    parser.add_argument("--ranks", default="3", help="of each job: 3, or 2-5, one after the other")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next has the next")
    parser.add_argument("--programs", type=int, default=20, help="in one job")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--node-size", type=int, default=0, help="treat every N consecutive ranks as a separate node")
    parser.add_argument("--threads", type=int, default=0, help="the number of threads per rank; they alternate")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one job")
    parser.add_argument("--show", action="store_true", help="the steps of each program that fails")
    parser.add_argument("--keep", help="a folder for the last job's table and findings")
    return parser.parse_args()


def run_job(args, ranks, table, folder):
    """Runs one job. Returns its status, text, findings (or None) and the addresses of the ranks'
    arenas."""
    steps, turns, found = (os.path.join(folder, name) for name in ("steps", "turns", "found.json"))
    with open(steps, "w", encoding="utf-8") as file:
        file.write("\n".join(table) + "\n")
    with open(turns, "wb") as file:
        file.write(bytes(4096))
    if os.path.exists(found):
        os.remove(found)
    node_options = ["--node-size", str(args.node_size)] if args.node_size else []
    threads = [str(args.threads)] if args.threads else []
    job = subprocess.run([LAUNCH, "--build", args.build, "--host", args.host, "-n", str(ranks), "--plain", *node_options, "--timeout",
                          str(args.timeout), "--", os.path.join(args.build, "bin", "oriel"), "check", "--json", found,
                          args.program, steps, turns, *threads], capture_output=True, text=True, errors="replace", check=False)
    with open(turns, "rb") as file:
        arenas = struct.unpack_from(f"{ranks}q", file.read(), ARENAS_AT)
    try:
        with open(found, encoding="utf-8") as file:
            return job.returncode, job.stdout + job.stderr, json.load(file), arenas
    except (OSError, ValueError):
        return job.returncode, job.stdout + job.stderr, None, arenas


def name_functions(report, program):
    """Resolves addresses in findings whose line lookup ran out of time."""
    symbols = []
    for line in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines():
        address, _, name = line.partition(" ")
        if address:
            symbols.append((int(address, 16), name.split()[-1]))
    symbols.sort()
    for finding in report["findings"]:
        for call in (finding["call"], finding["other"]):
            if call and not call["function"] and call["module"] == os.path.realpath(program):
                call["function"] = symbols[bisect.bisect_left(symbols, (call["offset"], "")) - 1][1]


class Judge:
    """One program's oracle and conflicts, and whether the findings match them."""

    def __init__(self, program, index, arenas):
        self.index, self.program, self.arenas = index, program, arenas
        self.oracle = o.Oracle(program)
        self.all = self.oracle.accesses + self.oracle.buffers
        self.at = collections.defaultdict(list)  # accesses by byte
        for access in self.all:
            for byte_id in access.byte_ids:
                self.at[byte_id].append(access)
        self.made_names()
        self.find_conflicts()

    def made_names(self):
        """The window names under which each access may be reported."""
        names, making = {}, {}
        now = {}
        for step in self.program.steps:
            if step.what == "window":
                making[step.rank, step.fields[0]] = step.window
            elif step.what == "free":
                making.pop((step.rank, step.fields[0]))
            elif step.what == "name":
                now[step.rank, step.fields[0]] = f"{step.fields[1]}.{step.fields[0]}.{step.fields[2]}"
            elif step.what in ("op", "send", "recv"):
                names[step.line] = {now[step.rank, number]: window for (rank, number), window in making.items()
                                    if rank == step.rank and (step.rank, number) in now}
        self.windows_named = names

    def names_of(self, access, byte_id):
        """The windows of a byte under which the access may be reported."""
        return [name for name, window in self.windows_named[access.line].items()
                if (access.local or window == access.step.window) and self.offset_in(window, byte_id) is not None]

    @staticmethod
    def offset_in(window, byte_id):
        target, memory, at = byte_id
        if memory == "arena" and window.is_in_arena() and window.at <= at < window.at + window.size:
            return at - window.at
        return at if memory == (window.number, window.making) else None

    def find_conflicts(self):
        """Pairs that the least order leaves unordered, each with its bytes, by call sites; and the
        pairs that the most order leaves unordered."""
        self.open, self.sure = {}, {}
        self.by_sites = collections.defaultdict(list)
        for byte_id, touching in self.at.items():
            for i, a in enumerate(touching):
                for b in touching[i + 1:]:
                    key = (id(a), id(b))
                    if key in self.open:
                        self.open[key][2].add(byte_id)
                        continue
                    if (a.local and b.local and a.rank != b.rank) or not o.conflicts(a, b) or \
                            not self.oracle.is_unordered(self.oracle.least, a, b):
                        continue
                    self.open[key] = (a, b, {byte_id})
                    self.by_sites[tuple(sorted((a.site, b.site)))].append(key)
                    if self.oracle.is_unordered(self.oracle.most, a, b):
                        self.sure[key] = self.open[key]

    # --- no other finding ---

    def explains(self, finding):
        """Whether a finding matches one of the program's conflicts in every detail."""
        later, earlier = finding["call"], finding["other"]
        if earlier is None:
            return False
        for key in self.by_sites.get(tuple(sorted((later["function"] or "?", earlier["function"] or "?"))), ()):
            a, b, byte_ids = self.open[key]
            for first, second in ((a, b), (b, a)):
                if (second.site, second.rank) == (later["function"], later["rank"]) and \
                        (first.site, first.rank) == (earlier["function"], earlier["rank"]) and \
                        self.is_reported_as(finding, first, second, byte_ids):
                    return True
        return False

    def is_reported_as(self, finding, first, second, byte_ids):
        opening = finding["opening"]
        if finding["rule"] not in o.rules(first, second) | o.MISTAKES:
            return False
        if (opening["call"] if opening else None) != second.opening or (opening and opening["rank"] != second.rank):
            return False
        if not finding["window"]:
            return first.local and second.local
        for name, window in self.windows_named[second.line].items():
            if name != finding["window"] or not (second.local or window == second.step.window):
                continue
            start = self.arenas[finding["target"]] + window.at if window.kind == p.DYNAMIC else 0
            if window.byte_id(finding["target"], finding["offset"] - start) in byte_ids:
                return True
        return False

    # --- every conflict has a finding ---

    def representatives(self, access, byte_id):
        """The access and those that represent it at this byte."""
        found, open_ = [access], [access]
        while open_:
            earlier = open_.pop()
            for later in self.at[byte_id]:
                if later not in found and o.supersedes(later, earlier) and \
                        self.oracle.is_ordered(self.oracle.most, earlier, later):
                    found.append(later)
                    open_.append(later)
        return found

    def is_reported(self, a, b, byte_id, reported):
        """Whether the pair has a finding. Each pair of sites has one finding, by one rule, even
        where several rules apply (an operation and its buffer)."""
        for x in self.representatives(a, byte_id):
            for y in self.representatives(b, byte_id):
                sites = tuple(sorted((x.site, y.site)))
                names = [*self.names_of(x, byte_id), *self.names_of(y, byte_id)]
                if x.local and y.local:
                    names.append("")
                if o.conflicts(x, y) and any((name, sites) in reported for name in names):
                    return True
        return False

    def missed(self, reported):
        for a, b, byte_ids in self.sure.values():
            sites = tuple(sorted((a.site, b.site)))
            names = {name for byte_id in byte_ids for name in (*self.names_of(a, byte_id), *self.names_of(b, byte_id))}
            if any((name, sites) in reported for name in names):
                continue
            for byte_id in byte_ids:
                if not self.is_reported(a, b, byte_id, reported):
                    yield a, b, byte_id
                    break


def words(access):
    return f"rank {access.rank} {access.site} at line {access.line} ({access.kind}{', buffer' if access.local else ''})"


def judge_job(programs, status, text, report, arenas):
    """The errors of a job, as lines, and the number of conflicting pairs."""
    if report is None or not report["complete"]:
        return [f"did not end normally; status {status}\n{text[-3000:]}"], 0
    complaints = []
    if report["not_checked"]:
        complaints.append(f"not checked: {report['not_checked']}")
    if status != (FOUND if report["findings"] else 0):
        complaints.append(f"status {status}\n{text[-3000:]}")
    judges = [Judge(program, index, arenas) for index, program in enumerate(programs)]
    reported = set()
    for finding in report["findings"]:
        sites = tuple(sorted(call["function"] or "?" for call in (finding["call"], finding["other"]) if call))
        reported.add((finding["window"] or "", sites))
        index = (finding["window"] or "").split(".")[0]
        candidates = [judges[int(index)]] if index.isdigit() else judges
        if not any(judge.explains(finding) for judge in candidates):
            seed = f"program seed {candidates[0].program.seed}: " if index.isdigit() else ""
            complaints.append(f"{seed}blamed falsely: {json.dumps(finding)}")
    full = len(report["findings"]) >= MOST_FINDINGS or report["findings_lost"]
    for judge in judges:
        for a, b, byte_id in [] if full else judge.missed(reported):
            complaints.append(f"program seed {judge.program.seed}: not reported: {words(a)} and {words(b)}, byte {byte_id}, windows "
                              f"{judge.names_of(a, byte_id)} {judge.names_of(b, byte_id)}")
    return complaints, sum(len(judge.sure) for judge in judges)


def main():
    args = arguments()
    least, _, most = args.ranks.partition("-")
    failed = pairs = found = 0
    with tempfile.TemporaryDirectory(prefix="oriel-drawn.") as folder:
        for job in range(args.jobs):
            seed = args.seed + job * args.programs
            ranks = int(least) + job % (int(most or least) - int(least) + 1)
            programs, table = [], []
            for index in range(args.programs):
                programs.append(generate.draw(seed + index, ranks, index, together=not args.node_size))
                table += programs[-1].table(len(table))
            status, text, report, arenas = run_job(args, ranks, table, args.keep or folder)
            if report and any(call and not call["function"] for f in report["findings"] for call in (f["call"], f["other"])):
                name_functions(report, args.program)
            complaints, sure = judge_job(programs, status, text, report, arenas)
            pairs += sure
            found += len(report["findings"]) if report else 0
            if complaints:
                failed += 1
                print(*complaints[:20], f"({len(complaints)} in all)", sep="\n")
                print(f"again with: {os.path.relpath(__file__)} --build {args.build} --host {args.host} --program {args.program} "
                      f"--ranks {ranks} --seed {seed} --programs {args.programs}"
                      f"{f' --node-size {args.node_size}' if args.node_size else ''}"
                      f"{f' --threads {args.threads}' if args.threads else ''}", flush=True)
    print(f"{args.jobs} jobs of {args.programs} programs on {args.host}: {pairs} pairs of operations in conflict, "
          f"{found} findings, {failed} jobs failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
