#!/usr/bin/python3
"""Runs every proof of one host under its fault: the breaker makes one mistake, and the test must
fail.

A failure is any status other than 0 and 77, or a run that exceeds several times the test's duration
without a fault. With the breaker loaded but no fault, the same test must pass; a skipped test
proves nothing.

break.py --build build --host mpich [--part functions|fortran|semantics] [--only TEXT]"""

import argparse
import math
import os
import subprocess
import sys
import time

import proofs

CONTROL_LIMIT_S = 60
ATTEMPTS = 3  # a race due to the fault may not show at the first try


def row_for(rows, test, host):
    """The row with the fewest ranks for the case, at least two if possible, in mode oriel."""
    case = test.table_row()
    wanted = max(2, case.min_ranks if case else 2)
    fitting = [row for row in rows.of(test, host) if row.ranks >= wanted] or rows.of(test, host)
    return min(fitting, key=lambda row: (row.ranks, row.mode != "oriel"))


def command_for(row, test, build, host, breaks, limit_s):
    command = list(row.command)
    parting = command.index("--")
    command[command.index("--timeout") + 1] = str(limit_s)
    interface = "abi" if host.startswith(proofs.ABI) else host
    breaker = os.path.join(build, "tests", "conformance", interface, "libbreaker.so")
    return command[:parting] + ["--env", f"LD_PRELOAD={breaker}", "--env", f"CONFORMANCE_BREAK={breaks}"] + \
        command[parting:] + test.only()


def run(command):
    # By default Open MPI gives the other ranks of a failed job two seconds to exit.
    environment = dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout="0")
    begin = time.monotonic()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                            env=environment, check=False)
    return result.returncode, result.stdout, time.monotonic() - begin


def last_complaint(output):
    lines = [line for line in output.splitlines() if line.startswith("not ok")] or output.splitlines()[-1:]
    return lines[0][:150] if lines else ""


class Host:
    def __init__(self, rows, build, host):
        self.rows, self.build, self.host = rows, build, host
        self.controls = {}

    def control(self, test):
        """None if the test passes without a fault, else its message; and its seconds."""
        key = (test.folder, test.row, tuple(test.only()))
        if key not in self.controls:
            row = row_for(self.rows, test, self.host)
            status, output, seconds = run(command_for(row, test, self.build, self.host, "", CONTROL_LIMIT_S))
            problem = None if status == 0 else f"status {status}: {last_complaint(output)}"
            self.controls[key] = (problem, seconds)
        return self.controls[key]

    def notices(self, claim):
        """Whether the test is a proof, and the line that reports it."""
        where = f"{claim.breaks}: {claim.test.name}"
        problem, seconds = self.control(claim.test)
        if problem is not None:
            return False, f"NO PROOF  {where}: does not pass without a fault ({problem})"
        row = row_for(self.rows, claim.test, self.host)
        limit_s = math.ceil(3 + 4 * seconds)
        for _ in range(ATTEMPTS if claim.breaks.startswith("fault") else 1):
            status, output, seconds = run(command_for(row, claim.test, self.build, self.host, claim.breaks, limit_s))
            if status == 99 or "breaker: CONFORMANCE_BREAK" in output:
                return False, f"UNKNOWN   {where}"
            if status not in (0, 77):
                return True, f"noticed   {where} ({seconds:.1f} s)\n          {last_complaint(output)}"
        return False, f"SURVIVED  {where}"


def chosen_claims(part, host):
    claims = []
    if part in ("functions", "all"):
        for groups in proofs.function_claims(), proofs.extension_claims():
            claims += [claim for group in groups.values() for row in group.values() for claim in row]
    if part in ("fortran", "all"):
        claims += [claim for row in proofs.fortran_claims().values() for claim in row.values()]
    if part in ("semantics", "all"):
        claims += [claim for statement in proofs.statements() for claim in statement.claims]
    mpi = proofs.mpi_of(host)
    return [claim for claim in claims if mpi in claim.test.hosts and claim.breaks.split()[0] not in ("mutant", "bare")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--host", required=True,
                        choices=proofs.HOSTS + tuple(proofs.ABI + host for host in proofs.HOSTS))
    parser.add_argument("--part", default="all", choices=["functions", "fortran", "semantics", "all"])
    parser.add_argument("--only", default="", help="claims whose test or break contains this")
    arguments = parser.parse_args()
    rows = proofs.Rows(arguments.build)
    host = Host(rows, arguments.build, arguments.host)
    claims = [claim for claim in chosen_claims(arguments.part, arguments.host)
              if arguments.only in f"{claim.breaks} {claim.test.name}"]
    survived = 0
    left_out = 0
    for claim in claims:
        if not rows.of(claim.test, arguments.host):
            left_out += 1  # no compiler for the language, or not through the ABI; scripts/conformance checks the rows
            continue
        well, line = host.notices(claim)
        survived += not well
        print(line, flush=True)
    print(f"# {len(claims)} claims on {arguments.host}, {survived} not proved, {left_out} left out")
    return 1 if survived or not claims else 77 if left_out == len(claims) else 0


if __name__ == "__main__":
    sys.exit(main())
