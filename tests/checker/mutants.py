#!/usr/bin/python3
"""Removes one memory ordering or step of the checker's histories and words at a time and expects a
test to fail or hang: tests/unit/check/access/cell_store.c, or the program in PROGRAMS for the test's
name. Further mutants remove one step of the handshake by which the checkers of two nodes
authenticate each other. The rows of OFFENDERS remove a step of the whole checker, and name the case
of run.py that must fail, as an offender or as its twin.

The script builds everything in a temporary folder.  Each row of MUTANTS names the file in src/,
a text that occurs there once, and its replacement. It also names the test that must notice, and
the removed property.  The unchanged sources must pass.  The status is 0 when the tests notice
every mutant."""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import mutation  # noqa: E402

LIMIT_S = 120  # of a test of a mutant; a hang counts as a failure
ATTEMPTS = 10  # delays are random: a mutant may pass once
JOB_S = 30  # of a job of the whole checker, on a machine of its own

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

MUTANTS = [
    ("check/access/cell_store.c", "    oriel_shm_word_lock(&cell->owner);\n    if (oriel_unlikely", "    if (oriel_unlikely",
     "cells_s1_small_accesses_conflict", "S1: a cell has a lock"),
    ("check/access/cell_store.c", "atomic_load(&bucket->wide) != 0)", "false)",
     "cells_s2_small_and_wide_accesses_conflict", "S2: a small access reads wide"),
    ("check/access/cell_repeat.h", "    oriel_shm_word_lock(&cell->owner);\n", "",
     "cells_s1_repeated_accesses_conflict", "S1: a repeated access acquires the cell's lock"),
    ("check/access/cell_repeat.h", "atomic_load(&spot->bucket->wide) != 0;", "false;",
     "cells_s2_repeated_and_wide_accesses_conflict", "S2: a repeated access reads wide"),
    ("check/access/cell_repeat.h", "if (!met->peaceful && !known)", "if (false)",
     "cells_s1_repeated_accesses_conflict", "a repeated access reports accesses that do not precede it"),
    ("check/access/history.c", "    mark_extents(history, extents, count);\n    oriel_delay();\n    compare_extents(arrival, extents, count);\n",
     "    compare_extents(arrival, extents, count);\n    oriel_delay();\n    mark_extents(history, extents, count);\n",
     "cells_s2_small_and_wide_accesses_conflict", "S2: wide is raised before the cells are read"),
    ("check/order/word_clocks.c", "linked = atomic_compare_exchange_strong(link, &end, (oriel_word_link)(place / ORIEL_CACHE_LINE));",
     "linked = atomic_compare_exchange_strong(link, &end, (oriel_word_link)(place / ORIEL_CACHE_LINE)) ||\n"
     "             atomic_compare_exchange_strong(link, &end, (oriel_word_link)(place / ORIEL_CACHE_LINE));",
     "words_w0_share_as_all_do", "W0: a late rank finds the chain closed"),
    ("check/order/word_clocks.c", "mine && oriel_word_is_up_to_date(word)", "mine || word->news != 0",
     "words_w2_keep_each_publication", "W1: a release to another rank's word joins its whole clock"),
    ("check/order/word_clocks.h", "!oriel_word_is_giver(word, rank))) /* W2 */", "!oriel_word_is_giver(word, rank) && word->news == 0))",
     "words_w2_keep_each_publication", "W2: a fetch acquires the releases of others"),
    ("check/order/word_clocks.c", "    oriel_delay();\n    oriel_shm_word_unlock(&word->owner);\n    oriel_order_raise();\n",
     "    oriel_delay();\n    oriel_shm_word_unlock(&word->owner);\n",
     "words_o1_publish_nothing_of_later", "O1: the own number is raised after the release"),
    ("check/order/word_clocks.h", "offered && oriel_word_is_giver(word, rank)", "offered",
     "words_w3_keep_offers", "W3: a rank that has offered checks whether it is still the giver"),
    ("check/order/word_clocks.c", """    if (!mine)
        atomic_store_explicit(&word->giver, giver, memory_order_relaxed);
    oriel_delay();
    oriel_shm_word_lock(&word->owner);
    oriel_fence_after_locked(); /* W3 */
    if (oriel_likely(atomic_load_explicit(&word->giver, memory_order_acquire) ==
                     (mine ? oriel_order_index() : giver)))
        return mine;
    atomic_store_explicit(&word->giver, giver, memory_order_relaxed); /* W4 */
    oriel_delay();
    oriel_fence_full(); /* W3 */
    return false;
}

void oriel_word_give_to(struct oriel_word_clock *word, bool fetches)
{
    uint32_t own = oriel_order_index();
    bool mine = word_take_over(word, fetches ? own : MIXED, oriel_word_is_giver(word, own));
    if (mine && oriel_word_is_up_to_date(word)) { /* W1 */
        word->clock[own] = oriel_order_now();
    } else {
        if (fetches && !mine)
            oriel_order_merge(word->clock);
""", """    (void)giver;
    oriel_shm_word_lock(&word->owner);
    return mine && oriel_word_is_giver(word, oriel_order_index());
}

void oriel_word_give_to(struct oriel_word_clock *word, bool fetches)
{
    uint32_t own = oriel_order_index();
    bool mine = word_take_over(word, fetches ? own : MIXED, oriel_word_is_giver(word, own));
    if (mine && oriel_word_is_up_to_date(word)) { /* W1 */
        word->clock[own] = oriel_order_now();
    } else {
        if (fetches && !mine)
            oriel_order_merge(word->clock);
        oriel_delay();
        if (!mine)
            atomic_store_explicit(&word->giver, fetches ? own : MIXED, memory_order_relaxed);
""", "words_w3_keep_offers", "W3: a rank that takes over a word announces it before it reads"),
    ("check/order/word_clocks.c", "if (oriel_likely(atomic_load_explicit(&word->giver, memory_order_acquire) == (mine ? oriel_order_index() : giver)))",
     "if (true)", "words_w2_keep_each_publication", "W4: the giver is the last owner of the lock"),
    ("check/access/insert.c", "    for (size_t i = 1; i < count; i++) {\n        struct oriel_record *piece",
     "    oriel_record_change(records, number, &pieces[0]);\n    oriel_delay();\n"
     "    for (size_t i = 1; i < count; i++) {\n        struct oriel_record *piece",
     "cells_s6_small_accesses_conflict_with_cut_records", "S6: the pieces of a record are marked before it is removed"),
    ("check/access/history.c", "    if (*grown)\n        oriel_record_change(records, into, &all);\n    oriel_delay();\n"
     "    oriel_history_discard(history, number); /* S6 */\n",
     "    oriel_history_discard(history, number);\n    oriel_delay();\n    if (*grown)\n"
     "        oriel_record_change(records, into, &all);\n",
     "cells_s6_small_accesses_conflict_with_joined_records", "S6: the growth of a record is marked before the other record is removed"),
    ("check/access/cell_repeat.c", "        atomic_fetch_or(&spot->page->used, bit); /* S2 */", "        ;",
     "cells_s2_repeated_and_wide_accesses_conflict", "S2: a repeated access marks an unused cell as used"),
    ("check/order/word_clocks.h", "rank) || !oriel_word_is_up_to_date(word)", "rank)",
     "words_w3_offer_nothing_old", "W3: a rank with a newer clock releases under the lock"),
    ("check/shm/shm.c", "!oriel_identity_word_alive(found)", "false",
     "a_word_lock_of_a_dead_process_is_acquired", "a dead owner's lock is acquired"),
    ("check/shm/shm.h", "    if (!atomic_compare_exchange_strong_explicit(word, &found, own, memory_order_acquire,"
     " memory_order_relaxed))\n        oriel_shm_word_wait(word, own);\n", "    (void)found;\n    atomic_store(word, own);\n",
     "a_word_lock_excludes", "a word lock excludes"),
    ("check/access/cell_store.c", "ORIEL_CELL_ENTRIES - CELL_ROOM || pending)", "ORIEL_CELL_ENTRIES - CELL_ROOM)",
     "crowded_cells_preserve_the_remaining_accesses", "S3: outstanding accesses stay in place when a cell is compacted"),
    ("check/access/cell_store.c", "            if (!entry_is_free(&cell->entries[i]))\n                oriel_cell_fill(",
     "            if (false)\n                oriel_cell_fill(",
     "crowded_cells_preserve_the_remaining_accesses", "complete accesses remain when a cell is compacted"),
    ("check/access/cell_store.c", "    if (oriel_unlikely(cell->next != 0))\n        oriel_cell_shorten(cell);\n", "",
     "crowded_cells_become_short", "a crowded cell is compacted"),
    ("check/access/cell_repeat.c", "    if (oriel_unlikely(cell->next != 0))\n        oriel_cell_shorten(cell);\n", "",
     "crowded_cells_are_compacted_by_repeated_accesses", "a crowded cell is compacted by a repeated access"),
    ("check/remote/remote_auth.c", "    return oriel_siphash(key, input, sizeof *input);", "    return key[1];",
     "proof_p1_key_is_not_sent", "P1: the key is not sent"),
    ("check/remote/remote_auth.c", "oriel_siphash(key, input, sizeof *input)", "oriel_siphash(input->claim, input, sizeof *input)",
     "proof_p1_another_key_is_refused", "P1: a digest is under the key"),
    ("check/remote/remote_auth.c", "    if (!digest_is_same(claim.digest, digest_make(&input, CLIENT, key)))\n        return false; /* P5 */\n", "",
     "proof_p1_another_key_is_refused", "P1: the server checks the digest"),
    ("check/remote/remote_auth.c", " && digest_is_same(proof.digest, digest_make(&input, SERVER, key));", ";",
     "proof_p1_an_answer_without_the_key_is_refused", "P1: the client checks the digest"),
    ("check/remote/remote_auth.c", "return nonce_draw(out->nonce) && piece_send", "out->nonce[0] = out->nonce[1] = 1;\n    return piece_send",
     "proof_p2_claim_of_another_connection_is_refused", "P2: the server draws a number"),
    ("check/remote/remote_auth.c", "bool challenged = nonce_draw(claim.nonce) &&", "claim.nonce[0] = claim.nonce[1] = 1;\n    bool challenged =",
     "proof_p2_answer_of_another_connection_is_refused", "P2: the client draws a number"),
    ("check/remote/remote_auth.c", "    memcpy(input->challenge, challenge->nonce, sizeof input->challenge);\n", "    (void)challenge;\n",
     "proof_p2_claim_of_another_connection_is_refused", "P2: a digest covers the server's number"),
    ("check/remote/remote_auth.c", "    memcpy(input->claim, claim->nonce, sizeof input->claim);\n", "    (void)claim;\n",
     "proof_p2_answer_of_another_connection_is_refused", "P2: a digest covers the client's number"),
    ("check/remote/remote_auth.c", "    input->end = end;\n", "    (void)end;\n",
     "proof_p3_a_reflected_proof_is_refused", "P3: a digest names its side"),
    ("check/remote/remote_auth.c", "        input->port = four->sin_port;\n", "",
     "proof_p4_a_relay_is_refused", "P4: a digest covers the server's address"),
    ("check/remote/remote_auth.c", """    if (!digest_is_same(claim.digest, digest_make(&input, CLIENT, key)))
        return false; /* P5 */
    struct oriel_check_remote_proof proof = {.digest = digest_make(&input, SERVER, key)};
    return piece_send(fd, &proof, sizeof proof);
""", """    const bool is_right = digest_is_same(claim.digest, digest_make(&input, CLIENT, key));
    struct oriel_check_remote_proof proof = {.digest = digest_make(&input, SERVER, key)};
    return piece_send(fd, &proof, sizeof proof) && is_right;
""", "proof_p5_strangers_get_no_answer", "P5: the client proves first"),
    ("check/remote/remote_auth.c", "recv(fd, piece, len_bytes, MSG_DONTWAIT)", "recv(fd, piece, len_bytes, MSG_WAITALL)",
     "proof_p6_half_an_answer_is_refused", "P6: a message arrives in one piece"),
    ("check/remote/remote_socket.c", "poll(&ready, 1, (int)((until_ns - now_ns) / 1000000) + 1)", "poll(&ready, 1, -1)",
     "proof_p6_silence_is_refused", "P6: a message arrives within seconds"),
    ("check/access/history.c", "    if (is_first || now < record->access.complete)\n", "    if (is_first)\n",
     "conflicts_are_those_of_the_model", "the smaller of two completions counts"),
    ("check/access/history.c", "    if (is_first && (record->access.group & ORIEL_ACCESS_GROUP_TWICE) != 0)\n        return;\n", "",
     "conflicts_are_those_of_the_model", "an access that may be completed twice is found again"),
    ("check/access/insert.c", "        if (oriel_access_is_open(&piece->access))", "        if (oriel_access_pending(&piece->access))",
     "conflicts_are_those_of_the_model", "so are the pieces into which it is cut"),
    ("check/access/compact.c", "        close_known(history, floor);\n", "",
     "accesses_completed_once_of_twice_do_not_accumulate", "accesses that all know are not completed again"),
    ("check/order/order.c", "        if (atomic_compare_exchange_weak_explicit(number, &found, tick, memory_order_relaxed,"
     " memory_order_relaxed))\n            return true;\n",
     "        atomic_store(number, tick);\n        return true;\n",
     "handlers_come_between_two_steps", "O4: a number is raised by one atomic operation"),
    ("check/order/order.c", "    if (oriel_unlikely(oriel_threads_are_tracked()))\n        return number_raise_to(&row->known[index], tick);\n"
     "    if (tick <= oriel_rank_tick(row, index))\n        return false;\n",
     "    if (tick <= oriel_rank_tick(row, index))\n        return false;\n    oriel_delay();\n",
     "handlers_come_between_two_steps", "O4: the owner of the mutex raises a number so, too"),
    ("check/order/clock_snapshots.c", " || cached_news != news ||", " ||",
     "handlers_come_between_two_steps", "O3: a snapshot is as new as the last merge"),
    ("check/order/thread_order.c", "oriel_check_running && oriel_shm_locks == 0 && slot_open(NULL)", "oriel_check_running && slot_open(NULL)",
     "handlers_open_no_slot_under_a_lock", "T7: a handler under a lock opens no slot"),
]

OFFENDERS = [
    ("check/window/checked_window.c",
     "    if (window->opened.owner_id != 0 && (kind == ORIEL_ORDER_LOCK || kind == ORIEL_ORDER_WORD))", "    if (false)",
     "put_after_the_unlock_by_handle", "an opened window has the lock of its owner's"),
    ("check/rules/arguments.c", "offset + operation->window->opened.from", "offset",
     "put_by_handle_beside_a_get", "accesses through an opened window have the owner's offsets"),
    ("check/intercept/windows_passive.c", "        lock_entry_give(window, 0, BY_HANDLE);", "        return;",
     "put_after_the_epoch_of_a_withdrawn_handle", "a withdrawal takes the clocks of epochs on the handle"),
    ("check/intercept/windows_passive.c", "oriel_window_count(window, ORIEL_ENDING_LENT, 0) > 0", "false",
     "put_after_the_flag_that_a_sync_finds", "MPI_Win_sync takes the clocks of openers"),
    ("check/window/notified.c", "    accesses_complete(window, origin, number, arrived->seen > 0 ? arrived->seen - 1 : 0, upto);", "",
     "message_before_the_flush_of_a_notified_put", "T3 after a flush"),
    ("check/deadlock/deadlock.c", "any_waits_for_value(&finder->look);", "false;",
     "value_that_no_thread_stores", "a thread without MPI may store a value"),
    ("check/intercept/messages_waits.c", "            found = oriel_notify_request_needs(records[i], needs);", "            ;",
     "request_of_a_notification_that_no_rank_sends", "a request of notifications is a need"),
    ("check/intercept/request_completion.c", "            active_start_report(start, site);", "            ;", "start_of_an_active_put", "a start of an active request is reported"),
    ("check/intercept/windows_persistent.c", "    persistent->planned.init = oriel_site_number(&planned->site);", "",
     "put_started_twice_without_a_flush", "a finding names the call that made the request"),
]


# Tests whose names begin with the first string are in the second program, in tests/unit/.
PROGRAMS = [("handlers", "check/order/thread_order"), ("crowded", "check/access/cell_store_crowded"), ("proof", "check/remote/remote_auth"),
            ("conflicts", "check/access/history"), ("accesses", "check/access/history")]


def program_of(test):
    return next((program for start, program in PROGRAMS if test.startswith(start)), "check/access/cell_store")


class Builder:
    """Programs of tests/unit/ built from the sources that the build uses for them, one of which may
    be changed."""

    def __init__(self, cc, tree, parts, folder):
        self.cc, self.tree, self.parts, self.folder = cc, tree, parts, folder
        self.includes = [os.path.join(tree, part) for part in ("src", "include", "tests/unit", "tests/unit/without_mpi")]

    def compile(self, source, out, variant, first=()):
        folders = [f"-I{folder}" for folder in (*first, *self.includes)]
        subprocess.run([self.cc, "-std=c17", "-O2", "-D_GNU_SOURCE", *(["-DORIEL_DELAYS=1"] if variant == "delays" else []), *folders,
                        "-MMD", "-c", source, "-o", out], check=True)

    def objects(self, tests):
        """The variant of a program and its sources, each with its object when unchanged."""
        with open(os.path.join(self.parts, tests + ".parts"), encoding="utf-8") as file:
            variant, *sources = file.read().split()
        place = os.path.join(self.folder, "whole", tests)
        return variant, {os.path.join(self.tree, name): os.path.join(place, name.replace("/", "_") + ".o") for name in sources}

    def link(self, tests, place, objects):
        program = os.path.join(place, "program")
        subprocess.run([self.cc, "-o", program, *objects, "-lcmocka", "-lpthread", "-ldl"], check=True)
        return program

    def whole(self, tests):
        """Builds the program from the unchanged sources."""
        variant, objects = self.objects(tests)
        place = os.path.join(self.folder, "whole", tests)
        os.makedirs(place)
        for path, built in objects.items():
            self.compile(path, built, variant)
        return self.link(tests, place, objects.values())

    def mutant(self, tests, place, name):
        """The same with the file in place instead of that of src/."""
        own = os.path.join(self.tree, "src", name)
        variant, objects = self.objects(tests)
        for path, built in objects.items():
            with open(built.removesuffix(".o") + ".d", encoding="utf-8") as file:
                if own not in file.read().replace("\\\n", " ").split():
                    continue
            objects[path] = os.path.join(place, os.path.basename(built))
            self.compile(os.path.join(place, name) if path == own else path, objects[path], variant, [place])
        return self.link(tests, place, objects.values())


def failure_of(program, test, limit_s=None):
    """How the test fails, or None."""
    try:
        done = subprocess.run([program, test], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return f"no end in {limit_s} s"
    if done.returncode != 0:
        return f"status {done.returncode}"
    return None if b"1 test(s) run" in done.stdout else "there is no such test"


def source(tree, name):
    with open(os.path.join(tree, "src", name), encoding="utf-8") as file:
        return file.read()


def mutate(builder, number, row):
    """The number of attempts until the test fails, and how it fails; or None."""
    name, text, instead, test, what = row
    place = os.path.join(builder.folder, str(number))
    changed = os.path.join(place, name)
    os.makedirs(os.path.dirname(changed))
    whole = source(builder.tree, name)
    with open(changed, "w", encoding="utf-8") as file:
        file.write(mutation.replace(whole, text, instead))
    program = builder.mutant(program_of(test), place, name)
    for attempt in range(1, ATTEMPTS + 1):
        failure = failure_of(program, test, LIMIT_S)
        if failure is not None:
            return f"attempt {attempt}, {failure}"
    return None


def whole_failure_of(whole, cases):
    """The first complaint of run.py, or None."""
    program = os.path.join(whole.build, "tests", "checker", "mpich", "offenders")
    run = os.path.join(whole.tree, "tests", "checker", "run.py")
    command = [sys.executable, run, "--build", whole.folder, "--host", "mpich", "--program", program, "--ranks", "2", "--timeout", str(JOB_S)]
    done = subprocess.run([*command, *cases], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout.strip().split("\n", maxsplit=1)[0] if done.returncode != 0 else None


def offenders_try(tree, build, folder, rows):
    whole = mutation.Library(tree, os.path.abspath(build), folder, "lib/oriel/mpich/liboriel_check.so")
    failure = whole_failure_of(whole, [row[3] for row in rows])
    if failure is not None:
        return [f"the unchanged checker fails: {failure}"]
    complaints = []
    for name, text, instead, case, what in rows:
        whole.make(name, mutation.replace(source(tree, name), text, instead))
        failure = whole_failure_of(whole, [case])
        print(f"noticed ({failure}):" if failure else "not noticed:", what, flush=True)
        complaints += [] if failure else [f"{name}: {what}: {case} does not notice"]
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--tree", default=TREE)
    parser.add_argument("--parts", help="the build's folder with the lists of sources of the programs: tests/unit there (--rows needs none)")
    parser.add_argument("--build", help="a build folder with MPICH, for the rows of OFFENDERS")
    parser.add_argument("--only", metavar="TEXT", default="", help="the rows with this in their file or in what is taken away")
    parser.add_argument("--rows", action="store_true", help="only look whether each row still follows the code")
    args = parser.parse_args()
    tree = os.path.abspath(args.tree)
    complaints = []
    for name, text, instead, _, what in MUTANTS + OFFENDERS:
        try:
            mutation.replace(source(tree, name), text, instead)
        except mutation.Stale as stale:
            complaints.append(f"{name}: {what}: {stale}")
    if complaints or args.rows:
        count = len(MUTANTS) + len(OFFENDERS)
        print(*complaints, f"{count} rows, {len(complaints)} do not follow the code", sep="\n")
        return 1 if complaints else 0
    rows = [row for row in MUTANTS if args.only in row[0] or args.only in row[4]]
    wholes = [row for row in OFFENDERS if args.build and (args.only in row[0] or args.only in row[4])]
    with tempfile.TemporaryDirectory() as folder:
        parts = args.parts or os.path.join(tree, os.environ.get("BUILD", "build"), "tests/unit")
        builder = Builder(args.cc, tree, parts, folder)
        for tests in sorted({program_of(row[3]) for row in rows}):
            program = builder.whole(tests)
            for test in sorted({row[3] for row in rows if program_of(row[3]) == tests}):
                failure = failure_of(program, test)
                complaints += [f"{tests}: {test} fails with the unchanged sources: {failure}"] if failure else []
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # their tests wait half of the time
            for row, failure in zip(rows, pool.map(lambda each: mutate(builder, *each), enumerate(rows))):
                print(f"noticed ({failure}):" if failure else "not noticed:", row[4], flush=True)
                complaints += [] if failure else [f"{row[0]}: {row[4]}: {row[3]} does not notice"]
        if wholes:
            complaints += offenders_try(tree, args.build, folder, wholes)
    print(*complaints, f"{len(rows) + len(wholes)} mutants, {len(complaints)} complaints", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
