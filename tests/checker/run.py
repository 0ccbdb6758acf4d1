#!/usr/bin/python3
"""Runs offenders and their twins under `oriel check`, repeatedly with varying delays and numbers of
ranks.

Every run must find each offender's rule, at the lines that its source marks ("FINDS C1 here"),
and no other rule. No twin may have findings. The job's status is 86 with findings and 0 without.
The script prints each failure with the seed that reproduces it."""

import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LAUNCH = os.path.join(os.path.dirname(HERE), "launch")
STATUS = 86
SKIP = 77
ENDED = 128 + signal.SIGTERM  # by this script
PATIENCE_S = 10
TWIN = "_innocent"  # after the offender's name
MARK = re.compile(r"/\* FINDS ((?:[A-Z][0-9]+ )+)here(?:, (not )?saying '([^']+)')? \*/")

Case = collections.namedtuple("Case", "name rule file line ranks innocent alone apart without_threads end marks says")


def arguments():
    parser = argparse.ArgumentParser(description="Run offenders and innocent twins under oriel check.")
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--program", required=True, help="the program with the cases")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--ranks", default="2-8", help="of each run one of these: 4, or 2-8")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next has the next")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one job")
    parser.add_argument("--jobs", type=int, default=1, help="the number of concurrent jobs: those that hang mostly wait")
    parser.add_argument("--rules", default="", help="only the cases of these rules: C1,E3")
    parser.add_argument("--net", type=int, default=0, help="across N emulated nodes, made for each job")
    parser.add_argument("--node-size", type=int, default=0, help="treat every N consecutive ranks as a separate node")
    parser.add_argument("cases", nargs="*", help="only these, an offender with its twin")
    return parser.parse_args()


def marks_of(path):
    """For each line of a source, the rules that a finding must name there, and the text that it
    must or must not contain."""
    marks, texts = {}, {}
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            found = MARK.search(line)
            if found:
                marks[number] = found.group(1).split()
                if found.group(3):
                    texts[number] = (found.group(2) is None, found.group(3))
    return marks, texts


def headers_of(path):
    """The headers of the same folder that a source includes."""
    with open(path, encoding="utf-8") as file:
        names = re.findall(r'#include "([^"]+)"', file.read())
    return [os.path.join(os.path.dirname(path), name) for name in names]


def read_cases(program):
    rows = [line.split("\t") for line in
            subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()]
    by_file = collections.defaultdict(list)
    for row in rows:
        by_file[row[2]].append(int(row[3]))
    marks = {path: marks_of(path) for path in by_file}
    cases = []
    for name, rule, path, line, ranks, guilt, where in rows:
        line = int(line)
        later = [start for start in by_file[path] if start > line]
        end = min(later) if later else 1 << 30
        source, texts = marks[path]
        own = {number for number, rules in source.items() if rule in rules and line <= number < end}
        # If the faulty call is in a function that cases share, its mark is there, before the cases, or in a header.
        shared = {number for number, rules in source.items() if rule in rules and number < min(by_file[path])} or \
            {number for header in headers_of(path) for number, rules in marks_of(header)[0].items() if rule in rules}
        cases.append(Case(name, rule, path, line, int(ranks), guilt == "innocent", where in ("alone", "apart"), where == "apart",
                          where == "without threads" and guilt != "innocent", end,
                          set() if guilt == "innocent" else own or shared,
                          [texts[number] for number in own if number in texts]))
    return cases


def sites_of(finding):
    keys = ("call", "other", "opening", "init", "other_init")
    return [finding[key] for key in keys if finding[key] and finding[key]["file"]]


def case_of(finding, cases):
    """The case of a finding. Window names and lines identify an offender. A twin has the same
    lines, and its window names alone identify it."""
    for case in cases:
        if finding["window"] == case.name:
            return case
    for site in sites_of(finding):
        for case in cases:
            if not case.innocent and os.path.basename(site["file"]) == os.path.basename(case.file) and \
                    case.line <= site["line"] < case.end:
                return case
    for case in cases:
        if not case.innocent and case.rule == finding["rule"] and case.marks & {s["line"] for s in sites_of(finding)}:
            return case
    return None


def brief(finding):
    sites = ", ".join(f"{s['call']} {os.path.basename(s['file'])}:{s['line']}" for s in sites_of(finding))
    return f"{finding['rule']} ({sites or 'no lines'}; window {finding['window']}; {finding['detail']})"


def words_of(finding):
    where = "" if finding["offset"] is None else f"bytes {finding['offset']} to {finding['offset'] + finding['bytes'] - 1}"
    return f"window {finding['window']}, {where}: {finding['detail']}; help: {finding['help']}"


def findings_in(path):
    """The findings that a job has written; None if it has written none, or not yet all."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["findings"]
    except (OSError, ValueError):
        return None


def job_ended(command, path):
    """Status and text of a job that has ended, or that this script ends when path has held findings
    for a while."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        job = subprocess.Popen(command, stdout=output, stderr=output)
        while True:
            written = path is not None and findings_in(path) is not None
            try:
                status = job.wait(PATIENCE_S if written else 1)
                break
            except subprocess.TimeoutExpired:
                if written:
                    job.terminate()
        output.seek(0)
        return status, output.read()


def job_run(args, ranks, seed, threads, words):
    """Status, text and findings of one job; findings are None when the job wrote none."""
    # The nodes of a net share the build folder.
    with tempfile.TemporaryDirectory(prefix="oriel-check.", dir=args.build if args.net else None) as folder:
        path = os.path.join(os.path.abspath(folder), "findings.json")
        node_options = ["--net", str(args.net)] if args.net else []
        node_options += ["--node-size", str(args.node_size)] if args.node_size else []
        command = [LAUNCH, "--build", args.build, "--host", args.host, "-n", str(ranks), "--plain", *node_options, "--timeout",
                   str(args.timeout), "--", os.path.join(args.build, "bin", "oriel"), "check", "--json", path,
                   args.program, *(["--threads"] if threads else []), "--seed", str(seed), *words]
        # Over TCP, MPICH alone often hangs in MPI_Finalize (tests/launch), after all output is
        # written.
        hangs = bool(args.net) and args.host == "mpich"
        status, text = job_ended(command, path if hangs else None)
        if args.net and status == SKIP:
            print(text, flush=True)
            os._exit(SKIP)
        findings = findings_in(path)
        if hangs and status == ENDED and findings is not None:
            status = STATUS if findings else 0
        return status, text, findings


def innocent_judge(status, text, findings, cases):
    if findings is None:
        yield f"no findings were written; status {status}"
        return
    for finding in findings:
        case = case_of(finding, cases)
        yield f"{case.name if case else 'an unknown case'} is blamed: {brief(finding)}"
    if status != 0:
        yield f"status {status}, not 0"
    elif "[O25]" in text:
        yield "the checker of a node has refused a request (O25)"


def guilty_judge(host, status, text, findings, ran, cases):
    if findings is None:
        yield f"no findings were written; status {status}"
        return
    for case in ran:
        own = [finding for finding in findings if case_of(finding, cases) == case]
        if not any(finding["rule"] == case.rule and case.marks <= {site["line"] for site in sites_of(finding)}
                   for finding in own):
            yield (f"{case.name}: {case.rule} at {sorted(case.marks)} was not found; "
                   f"found: {'; '.join(map(brief, own)) or 'nothing'}")
        for wanted, words in case.says:
            if any(words in words_of(finding) for finding in own) != wanted:
                yield f"{case.name}: '{words}' is {'not ' if wanted else ''}said: {'; '.join(map(words_of, own))}"
        for finding in own:
            if finding["rule"] != case.rule:
                yield f"{case.name}: found besides: {brief(finding)}"
    for finding in findings:
        if case_of(finding, cases) not in ran:
            yield f"a finding of no case that ran: {brief(finding)}"
    if "[O29]" in text:
        yield "the library repeats the checker's finding of windows that are not freed (O29)"
    # MPICH 5's mpiexec returns 0 after MPI_Finalize has failed, whatever the ranks return.
    is_lost = status == 0 and "mpich" in host and "MPI_Finalize failed" in text
    if status != STATUS and ran and not is_lost:
        yield f"status {status}, not {STATUS}"


def jobs_of(args, chosen):
    """The jobs of all runs, as seed, ranks, whether MPI_THREAD_MULTIPLE is in use, and cases. Each
    run has one job for all combinable twins, one for all combinable offenders, and one for each
    case that needs its own. About half of the latter use MPI_THREAD_MULTIPLE, though no case has
    a second thread in MPI; twins run both ways."""
    least, _, most = args.ranks.partition("-")
    for seed in range(args.seed, args.seed + args.runs):
        ranks = random.Random(seed).randint(int(least), int(most or least))
        here = [case for case in chosen if case.ranks <= ranks]
        together = [[case for case in here if case.innocent and not case.apart],
                    [case for case in here if not case.innocent and not case.alone]]
        for job in together + [[case] for case in here if case.apart or (case.alone and not case.innocent)]:
            if not job:
                continue
            # the same when a case runs alone
            drawn = (seed + len(job[0].name)) % 2 == 1 and not all(case.without_threads for case in job)
            for threads in (False, True) if job[0].innocent else (drawn,):
                yield seed, ranks, threads, [case for case in job if not (threads and case.without_threads)]


def run(args, seed, ranks, threads, job, cases):
    """Runs one job; returns whether it behaved as expected."""
    status, text, findings = job_run(args, ranks, seed, threads, [case.name for case in job])
    judge = innocent_judge(status, text, findings, cases) if job[0].innocent else \
        guilty_judge(args.host, status, text, findings, job, cases)
    complaints = [f"seed {seed}, {ranks} ranks{', threads' if threads else ''}: {complaint}" for complaint in judge]
    if complaints:
        print("\n".join([*complaints, text[-6000:]]), flush=True)
    return not complaints


def main():
    args = arguments()
    cases = read_cases(args.program)
    unknown = set(args.cases) - {case.name for case in cases}
    if unknown:
        sys.exit(f"no case is named {', '.join(sorted(unknown))}")
    named = {*args.cases, *(name + TWIN for name in args.cases)}
    chosen = [case for case in cases if (not args.cases or case.name in named) and
              (not args.rules or case.rule in args.rules.split(","))]
    if args.net or args.node_size:  # ranks share no memory
        chosen = [case for case in chosen if "shared_memory" not in case.name]
    if args.net or args.node_size == 1:
        chosen = [case for case in chosen if "on_one_node" not in case.name]
    if args.net and not args.rules:  # one job per case would take long
        chosen = [case for case in chosen if not case.alone]
    for case in chosen:
        if not case.innocent and not case.marks:
            sys.exit(f"{case.name}: no line is marked with FINDS {case.rule} here")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run, args, *job, cases) for job in jobs_of(args, chosen)]
        failed = sum(not future.result() for future in futures)
    print(f"{args.runs} runs of {len(chosen)} cases on {args.host}, {failed} jobs failed")
    return 1 if failed else 0


sys.exit(main())
