#!/usr/bin/python3
"""Runs the protocol tests with threads instead of processes under ThreadSanitizer, without a race.

Then weakens one ordering at a time: the sanitiser must report a race in the row's test. That shows
that a clean run of the unchanged sources has meaning. x86-64 provides these orderings for free;
here they count as C11 defines them. Builds in a temporary folder, as mutants.py does. The exit
status is 0 on success, 77 if the compiler does not support the sanitiser."""

import os
import shutil
import subprocess
import sys
import tempfile

from mutants import ATTEMPTS, Builder, Failure, PROGRAMS, mutate, parser_of, parts_of, report_stale_rows

FLAGS = ("-g", "-fsanitize=thread", "-Wno-tsan")
LIMIT_S = 20  # per team
RACE = "WARNING: ThreadSanitizer"

# (file, [(text, replacement), ...], program, test, the weakened ordering)
WEAKENED = [
    ("base/wait.h", [("atomic_fetch_add_explicit(&event->value, 1, memory_order_seq_cst);",
                      "atomic_fetch_add_explicit(&event->value, 1, memory_order_relaxed);")],
     "event", "event_publishes_stores", "W1: a signal releases"),
    ("base/wait.h", [("oriel_wait_reached(oriel_load_acquire(word),", "oriel_wait_reached(oriel_load_relaxed(word),")],
     "barrier", "barrier_b2_publishes_stores", "a wait that finds its value at once acquires"),
    ("base/wait.c", [("oriel_wait_reached(oriel_load_acquire(awaited->word),", "oriel_wait_reached(oriel_load_relaxed(awaited->word),")],
     "event", "event_publishes_stores", "a wait that spins acquires"),
    ("sync/notify.h", [("&counter->arrived, 1, memory_order_seq_cst); /* N2 */", "&counter->arrived, 1, memory_order_relaxed);")],
     "notify", "notify_p1_publishes_stores", "P1: N2 releases"),
    ("sync/notify.h", [("counters[number].arrived, memory_order_acquire)", "counters[number].arrived, memory_order_relaxed)")],
     "notify", "notify_p1_publishes_stores", "P1: T1 acquires"),
    ("sync/barrier.c", [("1, memory_order_seq_cst) + 1; /* B1 */\n    if (arrived != all)",
                         "1, memory_order_relaxed) + 1;\n    if (arrived != all)")],
     "barrier", "barrier_b2_publishes_stores", "B1: arrivals are a chain of releases and acquires"),
    ("create/shm_rendezvous.c", [("1, memory_order_seq_cst) + 1; /* N2 */", "1, memory_order_relaxed) + 1;")],
     "shm_rendezvous", "rendezvous_n3_concludes_from_every_record", "N2: arrivals are a chain of releases and acquires"),
    ("sync/ticket.h", [("oriel_store_release(&lock->serving,", "oriel_store_relaxed(&lock->serving,")],
     "ticket", "ticket_p1_publishes_stores", "P1: X3 releases"),
    ("sync/ticket.h", [("&lock->departed, 1, memory_order_seq_cst); /* R3, P2 */", "&lock->departed, 1, memory_order_relaxed);")],
     "ticket", "ticket_excludes", "P2: R3 releases"),
    ("sync/ticket.h", [("oriel_load_acquire(&lock->serving) ==", "oriel_load_relaxed(&lock->serving) ==")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "P1: X1 acquires where a lock begins"),
    ("sync/ticket.h", [("oriel_load_acquire(&lock->departed) ==", "oriel_load_relaxed(&lock->departed) ==")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "P2: X2 acquires where a lock begins"),
    ("sync/lock_all_gate.h", [("ORIEL_GATE_WRITER, memory_order_seq_cst); /* G5 */", "ORIEL_GATE_WRITER, memory_order_relaxed);")],
     "lock_all_gate", "gate_g5_publishes_stores_to_lock_all", "G5 releases"),
    ("sync/lock_all_gate.c", [("    while ((uint32_t)word == 0) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_seq_cst,",
                      "    while ((uint32_t)word == 0) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_relaxed,")],
     "lock_all_gate", "gate_g5_publishes_stores_to_lock_all", "G1 acquires"),
    ("sync/lock_all_gate.c", [("ORIEL_GATE_READER, memory_order_seq_cst); /* G2 */", "ORIEL_GATE_READER, memory_order_relaxed);")],
     "lock_all_gate", "gate_g5_publishes_stores_to_lock_all", "G2 releases"),
    ("sync/lock_all_gate.c", [("    while (word >= ORIEL_GATE_READER) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_seq_cst,",
                      "    while (word >= ORIEL_GATE_READER) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_relaxed,")],
     "lock_all_gate_joins", "gate_g6_sees_stores_of_writers", "G6 acquires"),
    ("sync/lock_all_gate.c", [("(void)atomic_load_explicit(&gate->word, memory_order_acquire);", "")],
     "lock_all_gate", "gate_g5_publishes_stores_to_lock_all", "G4 acquires the whole word, which G2 releases"),
    ("sync/accumulate_mutex.c", [("as, memory_order_acquire,", "as, memory_order_relaxed,")],
     "accumulate_mutex", "mutex_p1_publishes_stores", "M1 acquires"),
    ("sync/accumulate_mutex.c", [("0, memory_order_release) & ASLEEP", "0, memory_order_relaxed) & ASLEEP")],
     "accumulate_mutex", "mutex_p1_publishes_stores", "M3 releases"),
    ("sync/atomic_mode.c", [("for (int i = 0; atomic_load_explicit(&slot->inside, memory_order_seq_cst) != 0; i++)",
                         "for (int i = 0; oriel_load_relaxed(&slot->inside) != 0; i++)")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "P2: B2 acquires from S4's release"),
    ("sync/atomic_mode.c", [("oriel_store_release(&control->bulk, 0); /* C2 */", "oriel_store_relaxed(&control->bulk, 0);"),
                        ("atomic_fetch_sub_explicit(&common_of(window)->bulk_targets, 1, memory_order_release);",
                         "atomic_fetch_sub_explicit(&common_of(window)->bulk_targets, 1, memory_order_relaxed);")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "P2: C2 releases"),
    ("sync/pscw.c", [("oriel_load_acquire(&theirs->completes.value), ORIEL_WAIT_AT_LEAST",
                      "oriel_load_relaxed(&theirs->completes.value), ORIEL_WAIT_AT_LEAST")],
     "pscw", "pscw_c4_consumes_one_complete_for_each_wait", "C4: a test acquires"),
    ("sync/pscw_counters.c", [("    atomic_store_explicit(&partners->newest, offset, memory_order_release);",
                          "    atomic_store_explicit(&partners->newest, offset, memory_order_relaxed);")],
     "pscw_counters", "partners_p1_p2_are_found_while_tables_grow", "N1 releases"),
    ("transport/remote_writers.h", [("&slot->owner, 0, memory_order_release); /* E5 */", "&slot->owner, 0, memory_order_relaxed);")],
     "remote_writers", "writers_p1_p2_p3_lose_no_write", "P2: E5 releases"),
    ("transport/remote_writers.c", [("memory_order_seq_cst) != 0) { /* M2, P2 */", "memory_order_relaxed) != 0) {")],
     "remote_writers", "writers_p1_p2_p3_lose_no_write", "P2: M2 acquires"),
    ("transport/remote_writers.c", [("memory_order_seq_cst); /* M4, P3 */", "memory_order_relaxed);")],
     "remote_writers", "writers_p1_p2_p3_lose_no_write", "P3: M4 releases"),
    ("transport/remote_writers.c", [("memory_order_seq_cst); /* E2, P3 */", "memory_order_relaxed);"),
                             ("(lives && oriel_load_acquire(", "(lives && oriel_load_relaxed("),
                             ("if (oriel_load_acquire(&event->value) != moving)",
                              "if (oriel_load_relaxed(&event->value) != moving)")],
     "remote_writers", "writers_p1_p2_p3_lose_no_write", "P3: E2 acquires"),
]


def run(program, test=None):
    """Returns the exit status and the output."""
    environment = dict(os.environ, PROTOCOL_THREADS="1", PROTOCOL_LIMIT_S=str(LIMIT_S), TSAN_OPTIONS="halt_on_error=1")
    command = [program] + ([test] if test else [])
    result = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    return result.returncode, result.stdout + result.stderr


def can_report(cc, folder):
    """Whether a threaded program builds and runs under the sanitiser on this system."""
    source = os.path.join(folder, "try.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("int main(void) { return 0; }\n")
    try:
        for command in ([cc, "-fsanitize=thread", "-pthread", source, "-o", source + ".x"], [source + ".x"]):
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                return False
        return True
    except OSError:
        return False


def link_weakened(builder, number, path, changes, program):
    folder = os.path.join(builder.folder, f"weak{number}")
    mutated = os.path.join(folder, path)
    os.makedirs(os.path.dirname(mutated))
    with open(os.path.join(builder.src, path), encoding="utf-8") as file:
        text = mutate(file.read(), changes, path)
    with open(mutated, "w", encoding="utf-8") as file:
        file.write(text)
    executable = os.path.join(folder, program)
    builder.link_changed(program, executable, path, folder)
    return executable


def check_weakened(builder, number):
    path, changes, program, test, removed = WEAKENED[number]
    try:
        executable = link_weakened(builder, number, path, changes, program)
    except Failure as failure:
        print(f"BROKEN    {path}: {removed}\n{failure}", flush=True)
        return False
    for attempt in range(1, ATTEMPTS + 1):
        _, output = run(executable, test)
        if "1 test(s) run" not in output and RACE not in output:
            print(f"BROKEN    {program} has no test {test}", flush=True)
            return False
        if RACE in output:
            print(f"reported  {path}: {removed} ({program}: {test}), attempt {attempt}", flush=True)
            return True
    print(f"SILENT    {path}: {removed} ({program}: {test})", flush=True)
    return False


def check_unchanged(folder, program):
    status, output = run(os.path.join(folder, program))
    if status in (0, 77) and RACE not in output:
        print(f"{'clean    ' if status == 0 else 'left out '} {program}", flush=True)
        return True
    print(f"FAILED    {program}\n{output}", flush=True)
    return False


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--only", choices=PROGRAMS, help="only this program")
    parser.add_argument("--rows", action="store_true", help="only check that each row matches the code")
    arguments = parser.parse_args()
    if arguments.rows:
        return 1 if report_stale_rows(arguments.tree, WEAKENED) else 0
    folder = tempfile.mkdtemp(prefix="oriel-races-")
    try:
        if not can_report(arguments.cc, folder):
            print(f"skipped: {arguments.cc} cannot build or run with -fsanitize=thread here")
            return 77
        builder = Builder(arguments.cc, arguments.tree, parts_of(arguments), folder, FLAGS)
        builder.build_unchanged()
        programs = (arguments.only,) if arguments.only else PROGRAMS
        weakened = [number for number, row in enumerate(WEAKENED) if row[2] in programs]
        for program in programs:
            builder.link(program, os.path.join(folder, program))
        ok = all([check_unchanged(folder, program) for program in programs])
        return 0 if all([check_weakened(builder, number) for number in weakened]) and ok else 1
    except Failure as failure:
        print(failure)
        return 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
