#!/usr/bin/python3
"""Removes one ordering of a protocol at a time and expects the test that is named for it to fail, or to hang.

All is built in a temporary folder from copies.  Each row of MUTANTS says which file of src/ is changed, how (exact texts, each found once),
which test must notice, and what the change takes away; a header is changed for all sources that include it.  The unchanged sources
must pass the same tests.  A text that is no longer found is a failure: the row must follow the code.  The status is 0 when every mutant is noticed."""

import argparse
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 5  # of one team of a mutated program; a hang is as good as a failure
ATTEMPTS = 8  # the delays are random: a mutant may pass once

PARTS = ("base/*.c", "sync/*.c", "memory/*.c", "transport/*.c", "transport/agent/*.c", "transport/cma/*.c", "kernel/*.c",
         "window/group.c", "window/regions.c", "window/board.c", "ops/lookup.c")
WRAPPED = "-Wl,--wrap=syscall,--wrap=oriel_net_send"
HARNESS = ("team.c", "fabricate.c", "room.c", "asking.c")
NET_PROGRAMS = ("net", "net_help", "net_edges", "net_deaths", "far", "far_threads", "far_locks", "far_lock_all",
                "far_counts", "far_epochs", "far_deaths", "far_lock_deaths")  # left out where UCX has no headers
PROGRAMS = ("event", "barrier", "board", "ticket", "gate", "lock", "pscw", "partners", "mutex", "singles", "regions", "faults", "agent",
            "agent_updates", "agent_deaths", "writers", "writers_deaths", "copies")
if subprocess.run(["pkg-config", "--exists", "ucx"], check=False).returncode == 0:
    PARTS += ("transport/ucx/[!n]*.c", "window/serve.c")  # without none.c
    HARNESS += ("netting.c", "apart.c", "poor.c")
    PROGRAMS += NET_PROGRAMS
    WRAPPED += ",--wrap=ppoll,--wrap=oriel_pool_take,--wrap=calloc,--wrap=oriel_far_partner"

# (file, [(text, replacement), ...], program, test, what is taken away)
MUTANTS = [
    ("base/wait.c", [("syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);", "(void)word;")],
     "event", "event_w2_wakes_all_sleepers", "W2: a wake that never wakes"),
    ("base/wait.c", [("FUTEX_WAKE, INT_MAX,", "FUTEX_WAKE, 1,")],
     "event", "event_w2_wakes_all_sleepers", "W2: a wake of one sleeper only"),
    ("base/wait.c", [("atomic_fetch_add_explicit(sleepers, 1, memory_order_seq_cst); /* S1 */",
                      "oriel_store_relaxed(sleepers, 0);"),
                     ("atomic_fetch_sub_explicit(sleepers, 1, memory_order_seq_cst);", "")],
     "event", "event_w2_wakes_all_sleepers", "S1: a sleeper that does not say so"),
    ("base/wait.c", [("SLEEP_NS = 1000000,", "SLEEP_NS = 900000000,")],
     "faults", "killed_rank_is_reported_by_barrier", "no sleep is longer than 100 ms"),
    ("base/wait.c", [("WATCH_NS = 100000000", "WATCH_NS = 2000000000")],
     "faults", "killed_rank_is_reported_by_barrier", "the watch is asked every 100 ms"),
    ("base/wait.c", [("if (watch == NULL || ", "if (watch != NULL || ")],
     "faults", "killed_rank_is_reported_by_barrier", "a sleeper asks its watch"),
    ("base/wait.c", [("FUTEX_WAIT, value, &limit,", "FUTEX_WAIT, oriel_load_acquire(word), &limit,"),
                     ("            break;\n        syscall", "            break;\n        usleep(200);\n        syscall")],
     "event", "event_w1_s1_lose_no_wake", "S2: the kernel compares with the value that was looked at"),

    ("sync/barrier.c", [("    if (arrived != all)\n        return false;\n", "    if (arrived + 1 < all)\n        return false;\n")],
     "barrier", "barrier_b2_publishes_stores", "B1: the last one need not wait, not the last but one"),
    ("sync/barrier.c", [("oriel_event_wait(&window->common->arrivals, window->arrivals, &watch); /* B2 */",
                         "oriel_event_wait(&window->common->arrivals, window->arrivals - 1, &watch);")],
     "barrier", "barrier_b2_publishes_stores", "B2: a rank waits for all"),
    ("sync/barrier.c", [("window->arrivals += (uint32_t)window->n;", "(uint32_t)window->n;")],
     "barrier", "barrier_of_two_publishes_stores", "B2: each barrier needs n arrivals more than the one before"),
    ("sync/barrier.c", [("    oriel_wake(&common->arrivals.value, &common->arrivals.sleepers);\n", "")],
     "barrier", "barrier_wakes_all_sleepers", "the last arrival wakes"),
    ("sync/far_epochs.c", [("&whole, (uint32_t)rank + 1,", "&whole, 0,")],
     "faults", "killed_rank_is_reported_by_barrier", "a barrier that was left in vain opens to nobody"),
    ("sync/barrier.c", [("struct oriel_watch watch = {oriel_watch_all,", "struct oriel_watch watch = {oriel_watch_rank,"),
                        ("{.window = window, .win_rank = -1};", "{.window = window, .win_rank = window->rank};")],
     "faults", "killed_rank_is_reported_by_barrier", "every rank is watched"),

    ("window/board.c", [("    memcpy(record_of(board, board->rank), record, len_bytes); /* N1 */\n", ""),
                        ("memory_order_seq_cst) + 1; /* N2 */",
                         "memory_order_seq_cst) + 1;\n    oriel_delay();\n"
                         "    memcpy(record_of(board, board->rank), record, len_bytes);")],
     "board", "board_n3_concludes_from_every_record", "N1 before N2: a record is written before its rank arrives"),
    ("window/board.c", [("    board->side ^= 1;\n", "")],
     "board", "board_records_stay_until_the_next_meeting", "N1: sides alternate"),
    ("window/board.c", [("    uint32_t turn = oriel_load_acquire(&words->turn.value);\n    oriel_delay();\n", ""),
                        ("memory_order_seq_cst) + 1; /* N2 */",
                         "memory_order_seq_cst) + 1;\n    oriel_delay();\n"
                         "    uint32_t turn = oriel_load_acquire(&words->turn.value);")],
     "board", "board_n3_concludes_from_every_record", "the turn is read before N2"),
    ("window/board.c", [("    uint32_t arrived = atomic_fetch_add_explicit(&words->arrived, 1, memory_order_seq_cst) + 1; "
                         "/* N2 */",
                         "    uint32_t arrived = oriel_load_relaxed(&words->arrived) + 1;\n    oriel_delay();\n"
                         "    oriel_store_relaxed(&words->arrived, arrived);")],
     "board", "board_n3_concludes_from_every_record", "N2: reading and counting are one step"),
    ("window/board.c", [("if (arrived == (uint32_t)board->group->n) {", "if (arrived + 1 >= (uint32_t)board->group->n) {")],
     "board", "board_n3_concludes_from_every_record", "N3: the last one concludes, not the last but one"),
    ("window/board.c", [("        oriel_store_relaxed(&words->verdict, *verdict); /* N3 */\n", ""),
                        ("        oriel_event_signal(&words->turn); /* N4 */\n",
                         "        oriel_event_signal(&words->turn);\n        oriel_delay();\n"
                         "        oriel_store_relaxed(&words->verdict, *verdict);\n")],
     "board", "board_n3_concludes_from_every_record", "N3 before N4: the conclusion is there before the turn moves on"),
    ("window/board.c", [("        oriel_store_relaxed(&words->arrived, 0);\n", ""),
                        ("        oriel_event_signal(&words->turn); /* N4 */\n",
                         "        oriel_event_signal(&words->turn);\n        oriel_delay();\n"
                         "        oriel_store_relaxed(&words->arrived, 0);\n")],
     "board", "board_n3_concludes_from_every_record", "N4: the counter is reset before the turn moves on"),
    ("window/board.c", [("        oriel_event_signal(&words->turn); /* N4 */\n",
                         "        oriel_store_release(&words->turn.value, turn + 1);\n")],
     "board", "board_n4_wakes_sleepers", "N4 wakes those who sleep"),
    ("window/board.c", [("ORIEL_WAIT_NOT_EQUAL,", "ORIEL_WAIT_EQUAL,")],
     "board", "board_n3_concludes_from_every_record", "N5: a rank waits for N4"),
    ("window/board.c", [("    if (is_left(board))\n        return somebody_left(board); /* oriel_wait looks at the turn after "
                         "this */\n", "")],
     "board", "board_n6_meetings_end_for_all_or_for_none", "N6: who waits for one that has left is told"),
    ("window/board.c", [("    else if (status == ORIEL_E_PEER)\n", "    else\n")],
     "board", "board_n6_meetings_end_for_all_or_for_none", "N6: who came in vain since somebody left breaks nothing"),
    ("window/board.c", [("        oriel_store_release(&words->broken, 1);\n", "        return status;\n")],
     "board", "killed_rank_is_reported_by_a_meeting", "a meeting that was left in vain ends for nobody"),
    ("window/board.c", [("look_at(board, board->looked_at, count);", "look_at(board, board->looked_at, 0);")],
     "board", "killed_rank_is_reported_by_a_meeting", "the others are watched"),
    ("window/board.c", [("    board->looked_at = (board->looked_at + count) % board->group->n;\n", "")],
     "board", "killed_rank_is_reported_to_one_who_waits_alone", "who waits looks at all in turn"),
    ("window/board.c", [("    if (oriel_load_acquire(&board->words->broken) != 0)\n        return name_dead(board);\n"
                         "    if (is_left(board))\n", "    if (is_left(board))\n"),
                        ("look_at(board, board->looked_at, count);", "look_at(board, board->rank, count);")],
     "board", "killed_rank_is_reported_to_all_by_who_finds_it", "broken tells those who look elsewhere"),

    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, oriel_ticket_number(place), watch); /* X1, P1 */",
                        "ORIEL_WAIT_AT_LEAST, oriel_ticket_number(place) - 1, watch);")],
     "ticket", "ticket_p1_publishes_stores", "X1: a writer waits for the writers before it"),
    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, readers, watch); /* X2, P2 */", "ORIEL_WAIT_NOT_EQUAL, readers + 1, watch);")],
     "ticket", "ticket_excludes", "X2: a writer waits for the readers before it"),
    ("sync/ticket.h", [("oriel_load_acquire(&lock->departed) == oriel_ticket_readers(place);",
                        "oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place) + 1;")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "X2: an exclusive lock that is begun looks at the readers"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */", "ORIEL_WAIT_AT_LEAST, ticket - 1, watch);")],
     "ticket", "ticket_excludes", "R2: a reader waits for all writers before it"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */", "ORIEL_WAIT_EQUAL, ticket, watch);")],
     "ticket", "ticket_shares_across_the_wrap", "R2: a reader that is late has not missed its turn"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */",
                        "ORIEL_WAIT_AT_LEAST, ticket, watch);\n"
                        "    status = oriel_wait(&lock->departed, &lock->departed_sleepers, ORIEL_WAIT_EQUAL, "
                        "oriel_ticket_readers(place), watch);")],
     "ticket", "ticket_shares", "R2: a reader does not wait for readers"),
    ("sync/ticket.c", [("    uint32_t ticket = oriel_ticket_number(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place)) {\n"
                        "        (void)oriel_wait(&lock->serving, &lock->serving_sleepers, ORIEL_WAIT_AT_LEAST, "
                        "oriel_ticket_number(place), watch);\n"
                        "        oriel_ticket_depart(lock);\n        oriel_delay();\n        place = oriel_ticket_come(lock);\n    }\n"
                        "    uint32_t ticket = oriel_ticket_number(place);\n")],
     "ticket", "ticket_overtakes_nobody", "a reader that must wait keeps its place"),
    ("sync/ticket.c", [("    uint32_t readers = oriel_ticket_readers(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place)) {\n"
                        "        if (oriel_load_acquire(&lock->serving) == oriel_ticket_number(place)) {\n"
                        "            pass_on(lock);\n            oriel_delay();\n            place = oriel_ticket_take(lock);\n        }\n"
                        "        oriel_delay();\n    }\n"
                        "    uint32_t readers = oriel_ticket_readers(place);\n")],
     "ticket", "ticket_overtakes_nobody", "a writer that must wait for readers keeps its place"),
    ("sync/ticket.c", [("    uint32_t readers = oriel_ticket_readers(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place)) {\n"
                        "        if (oriel_load_acquire(&lock->serving) == oriel_ticket_number(place)) {\n"
                        "            pass_on(lock);\n            oriel_delay();\n            place = oriel_ticket_take(lock);\n        }\n"
                        "        oriel_delay();\n    }\n"
                        "    uint32_t readers = oriel_ticket_readers(place);\n")],
     "lock", "lock_that_waits_is_overtaken_by_nobody", "an exclusive lock that must wait keeps its place"),
    ("sync/ticket.c", [("        pass_on(lock); /* R4 */", "        (void)lock;")],
     "ticket", "ticket_counts_across_the_wrap", "R4: the ticket that a wrap makes is passed on"),
    ("sync/ticket.c", [("        pass_on(lock); /* R4 */",
                        "    {\n        status = oriel_ticket_await(lock, place, watch);\n        pass_on(lock);\n    }")],
     "ticket", "ticket_shares_across_the_wrap", "R4: who passes it on waits for no reader"),
    ("sync/ticket.c", [("    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))",
                        "    oriel_ticket_depart(lock);\n"
                        "    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))"),
                       ("        oriel_ticket_depart(lock);\n}", "        (void)lock;\n}")],
     "ticket", "ticket_excludes", "R3: a reader departs when it leaves, not when it enters"),
    ("sync/ticket.h", [("    oriel_wake(&lock->serving, &lock->serving_sleepers);\n", "    (void)lock;\n")],
     "ticket", "ticket_wakes_sleepers", "X3 wakes"),
    ("sync/ticket.h", [("    oriel_wake(&lock->departed, &lock->departed_sleepers);\n", "")],
     "ticket", "ticket_wakes_sleepers", "R3 wakes the writer behind"),
    ("sync/ticket.h", [("    atomic_fetch_add_explicit(&lock->departed, 1, memory_order_seq_cst); /* R3, P2 */",
                        "    uint32_t departed = oriel_load_relaxed(&lock->departed);\n    oriel_delay();\n"
                        "    oriel_store_release(&lock->departed, departed + 1);")],
     "ticket", "ticket_excludes", "R3: readers leave at the same time"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, UINT64_C(1) << 32, memory_order_relaxed); /* T1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    atomic_store(&lock->queue, place + (UINT64_C(1) << 32));\n    return place;")],
     "ticket", "ticket_p1_publishes_stores", "T1: no two have one ticket"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, UINT64_C(1) << 32, memory_order_relaxed); /* T1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n"
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           !atomic_compare_exchange_weak(&lock->queue, &place, place + (UINT64_C(1) << 32))) {\n"
                        "        place = atomic_load(&lock->queue);\n        oriel_delay();\n    }\n    return place;")],
     "ticket", "ticket_is_fifo", "T1: who waits has a ticket"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed); /* R1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    atomic_store(&lock->queue, place + 1);\n    return place;")],
     "ticket", "ticket_excludes", "R1: every reader counts"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed); /* R1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    return place - (uint32_t)place +\n"
                        "           (uint32_t)atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed);")],
     "ticket", "ticket_excludes", "R1: a reader is counted where it has looked for writers"),

    ("sync/gate.c", [("while ((uint32_t)word == 0) {", "while (word < UINT64_MAX) {")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G1: a reader looks at the writers"),
    ("sync/gate.c", [("    while ((uint32_t)word == 0) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_seq_cst,\n"
                      "                                                  memory_order_relaxed))\n"
                      "            return true;\n    }\n    return false;",
                      "    if ((uint32_t)word != 0)\n        return false;\n    oriel_delay();\n"
                      "    atomic_fetch_add_explicit(&gate->word, ORIEL_GATE_READER, memory_order_seq_cst);\n    return true;")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G1: looking and counting are one step"),
    ("sync/gate.h", [("memory_order_seq_cst) < ORIEL_GATE_READER;", "memory_order_seq_cst) < UINT64_MAX;")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G4: a writer waits for the readers"),
    ("sync/gate.h", [("    return atomic_fetch_add_explicit(&gate->word, ORIEL_GATE_WRITER, memory_order_seq_cst) < "
                      "ORIEL_GATE_READER;",
                      "    uint64_t before = atomic_load(&gate->word);\n    while (before >= ORIEL_GATE_READER ||\n"
                      "           !atomic_compare_exchange_weak(&gate->word, &before, before + ORIEL_GATE_WRITER))\n"
                      "        before = atomic_load(&gate->word);\n    return true;")],
     "gate", "gate_readers_do_not_starve_writers", "G3: a waiting writer holds back new readers"),
    ("sync/gate.c", [("    if (!nested)\n", "    if (!nested && watch == NULL)\n")],
     "gate", "gate_writers_do_not_starve_readers", "courtesy: writers let waiting readers go first"),
    ("sync/gate.c", [("    (void)context;\n    return ORIEL_E_OTHER;", "    (void)context;\n    return ORIEL_OK;")],
     "gate", "gate_courtesy_ends", "courtesy ends after 100 ms"),
    ("sync/gate.c", [("    if (!nested)\n", "    if (!nested || watch != NULL)\n")],
     "gate", "gate_nested_writer_does_not_wait_for_readers", "a writer that is waited for is not courteous"),
    ("sync/gate.c", [("    oriel_wake(&gate->half.readers, &gate->writer_sleepers);\n", "")],
     "gate", "gate_wakes_sleepers", "G2 wakes writers"),
    ("sync/gate.h", [("    oriel_wake(&gate->half.writers, &gate->reader_sleepers);\n", "    (void)gate;\n")],
     "gate", "gate_wakes_sleepers", "G5 wakes readers"),

    ("sync/lock.h", [("    if (oriel_unlikely(!oriel_gate_push_writer(gate)))",
                      "    if (target == 0 && oriel_unlikely(!oriel_gate_push_writer(gate)))"),
                     ("    oriel_gate_pull_writer(gate); /* G5 */", "    if (target == 0)\n        oriel_gate_pull_writer(gate);")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "every exclusive lock passes the gate"),
    ("sync/lock.h", [("    oriel_gate_pull_writer(gate); /* G5 */", "")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "G5 at every exclusive unlock"),
    ("sync/lock.h", [("    if (oriel_unlikely(!oriel_ticket_is_first(lock, *place)))",
                      "    if (oriel_ticket_is_first(lock, *place + 1))")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "X1, X2: an exclusive lock that is begun looks at the queue"),
    ("sync/lock.h", [("    if (oriel_unlikely(oriel_gate_has_waiting_readers(gate)))", "    if (window->n < 0)")],
     "gate", "gate_writers_do_not_starve_readers", "courtesy begins where a lock begins"),
    ("sync/lock.h", [("oriel_ticket_has_sleepers(lock) || oriel_gate_has_sleeping_readers(gate)",
                      "oriel_ticket_has_sleepers(lock)")],
     "gate", "gate_wakes_sleepers", "an exclusive unlock looks for readers that sleep at the gate"),
    ("sync/lock.h", [("oriel_ticket_has_sleepers(lock) || oriel_gate_has_sleeping_readers(gate)",
                      "oriel_gate_has_sleeping_readers(gate)")],
     "lock", "lock_wakes_sleepers", "and for those who sleep in the queue"),
    ("sync/lock.h", [("&none, ORIEL_ACCESS_WAITING,", "&none, ORIEL_ACCESS_NONE,")],
     "faults", "killed_waiting_ticket_is_reported", "L1: the access word is set before its owner can block anybody"),
    ("sync/lock.h", [("atomic_store_explicit(access, ORIEL_ACCESS_EXCLUSIVE, memory_order_release); /* L2 */",
                      "atomic_store_explicit(access, ORIEL_ACCESS_SHARED, memory_order_release);")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "L2: the access word says what is to be left"),
    ("sync/lock.c", [("    oriel_store_release(&window->control->lock_all, 1);\n", "")],
     "faults", "killed_lock_all_holder_is_reported", "lock_all is announced to those who wait for it"),
    ("sync/lock.c", [("at_gate = {oriel_watch_reads,", "at_gate = {oriel_watch_lock,")],
     "faults", "killed_lock_all_holder_is_reported", "writers at the gate watch readers"),
    ("sync/lock.c", [("in_queue = {oriel_watch_lock,", "in_queue = {oriel_watch_reads,")],
     "faults", "killed_shared_holder_is_reported", "writers in the queue watch who holds or waits for the lock"),

    ("sync/pscw.c", [("        oriel_event_signal(&posted->partners[i]->posts); /* C1 */",
                      "        if (i > 0)\n            oriel_event_signal(&posted->partners[i]->posts);")],
     "pscw", "pscw_c1_c3_publish_stores", "C1: a post counts for every origin"),
    ("sync/pscw.c", [("        oriel_event_signal(&posted->partners[i]->posts); /* C1 */",
                      "        for (int32_t j = 0; j < window->n; j++)\n"
                      "            if (oriel_partners_own(window, j) != NULL)\n"
                      "                oriel_event_signal(&oriel_partners_own(window, j)->posts);")],
     "pscw", "pscw_c1_c3_publish_stores", "C1: a post counts for its origins alone"),
    ("sync/pscw.c", [("        status = await_post(window, window->started.partners[i]);",
                      "    {\n        if (window->started.partners[i]->peer == 2 && window->n == 3)\n"
                      "            oriel_partners_make(window, 2, &window->started.partners[i]);\n"
                      "        status = await_post(window, window->started.partners[i]);\n    }")],
     "pscw", "pscw_matches_by_peer", "C2: a start waits for the posts of its own group"),
    ("sync/pscw.c", [("    if (partners == NULL)\n        return;\n", "")],
     "pscw", "pscw_members_are_kept_for_the_next_epoch", "an epoch of the same group has the members of the last"),
    ("sync/pscw.c", [("    *members = (struct oriel_members){.partners = partners, .count = count};",
                      "    members->partners = partners;\n    members->count = count;")],
     "pscw", "pscw_members_are_kept_for_the_next_epoch", "members of another group are not known by the last one's handle"),
    ("sync/pscw.c", [("    if (!locks && !oriel_load_acquire(&window->accessing))", "    if (!locks)")],
     "pscw", "pscw_members_are_kept_for_the_next_epoch", "a start leaves the members alone while another thread completes"),
    ("sync/pscw.c", [("    if (!oriel_load_acquire(&window->accessing) ||\n        ", "    if (")],
     "pscw", "pscw_members_are_kept_for_the_next_epoch", "a complete leaves the members alone while another thread starts"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */",
                      "oriel_load_relaxed(&own->completes.value), &watch);")],
     "pscw", "pscw_c2_takes_one_post_for_each_start", "C2: a start waits for one post more than those it has taken"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */", "1, &watch);")],
     "pscw", "pscw_c2_takes_one_post_for_each_start", "C2: a start takes its post"),
    ("sync/pscw.c", [("    oriel_store_release(&window->accessing, 0);\n",
                      "    oriel_delay();\n    for (int32_t i = 0; i < targets->count; i++) {\n"
                      "        struct oriel_partner *own = targets->partners[i];\n"
                      "        own->completes.value = oriel_partners_theirs(window, own)->posts.value;\n    }\n"
                      "    oriel_store_release(&window->accessing, 0);\n")],
     "pscw", "pscw_keeps_early_posts", "C2: a post that comes early is kept"),
    ("sync/pscw.c", [("        oriel_event_signal(&targets->partners[i]->completes); /* C3 */",
                      "        if (i > 0)\n            oriel_event_signal(&targets->partners[i]->completes);")],
     "pscw", "pscw_c1_c3_publish_stores", "C3: a complete counts for every target"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */",
                      "oriel_load_relaxed(&own->posts.value) - 1, &watch);")],
     "pscw", "pscw_c4_takes_one_complete_for_each_wait", "C4: a wait waits for its completes"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */", "1, &watch);")],
     "pscw", "pscw_c4_takes_one_complete_for_each_wait", "C4: a wait takes its completes"),
    ("sync/pscw.c", [("                                                oriel_load_relaxed(&own->posts.value)); /* C4 */",
                      "                                                oriel_load_relaxed(&own->posts.value) - 1);")],
     "pscw", "pscw_c4_takes_one_complete_for_each_wait", "C4: a test looks for its completes"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */",
                      "oriel_load_relaxed(&own->completes.value) + 1, NULL);")],
     "faults", "killed_origin_or_poster_after_an_epoch_is_reported", "a start watches its target"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */", "oriel_load_relaxed(&own->posts.value), NULL);")],
     "faults", "killed_origin_is_reported_by_wait_and_test", "a wait watches its origin"),
    ("sync/pscw.c", [("    return oriel_watch_rank(&watched);",
                      "    return watched.win_rank < 0 ? oriel_watch_rank(&watched) : ORIEL_OK;")],
     "faults", "killed_origin_is_reported_by_wait_and_test", "a program that polls looks for the dead"),

    ("sync/partners.c", [("    table->older = atomic_load_explicit(&partners->newest, memory_order_relaxed);\n", "")],
     "partners", "partners_of_any_number_have_an_entry_each", "N1: a table leads to the one before"),
    ("sync/partners.c", [("    atomic_store_explicit(&partners->newest, offset, memory_order_release);\n    oriel_delay();\n",
                          "    atomic_store_explicit(&partners->newest, offset, memory_order_release);\n    oriel_delay();\n"
                          "    if (*newest != NULL) {\n        for (uint64_t i = 0; i < (*newest)->capacity; i++)\n"
                          "            if ((*newest)->entries[i].peer != 0) {\n"
                          "                *place_of(table, (int32_t)(*newest)->entries[i].peer - 1) = (*newest)->entries[i];\n"
                          "                table->count++;\n            }\n        oriel_delay();\n    }\n")],
     "partners", "partners_of_any_number_have_an_entry_each", "an entry never moves"),
    ("sync/partners.c", [("    if (newest == NULL || 2 * (newest->count + 1) > newest->capacity)",
                          "    if (newest == NULL || newest->count > newest->capacity)")],
     "partners", "partners_of_any_number_have_an_entry_each", "P2: a table keeps free entries"),
    ("sync/partners.c", [("    oriel_store_release(&(*own)->peer, (uint32_t)peer + 1); /* N2 */\n"
                          "    oriel_delay();\n    oriel_event_signal(&partners->made); /* N3 */\n",
                          "    oriel_event_signal(&partners->made);\n    oriel_delay();\n"
                          "    oriel_store_release(&(*own)->peer, (uint32_t)peer + 1);\n")],
     "partners", "partners_p1_p2_are_found_while_tables_grow", "P1: N2 is before N3"),
    ("sync/partners.c", [("    oriel_event_signal(&partners->made); /* N3 */\n", "")],
     "partners", "partners_p1_p2_are_found_while_tables_grow", "N3: who looks is told"),
    ("sync/partners.c", [("ORIEL_WAIT_NOT_EQUAL, v, watch); /* F3 */",
                          "ORIEL_WAIT_NOT_EQUAL, oriel_load_acquire(&made->value), watch);")],
     "partners", "partners_p1_p2_are_found_while_tables_grow", "F1 is before F2"),
    ("sync/partners.c", [("ORIEL_WAIT_NOT_EQUAL, v, watch); /* F3 */", "ORIEL_WAIT_NOT_EQUAL, v, NULL);")],
     "faults", "killed_poster_is_reported_by_start", "F3: who looks for an entry watches its owner"),
    ("sync/partners.c", [("    pthread_mutex_lock(&making);\n", ""), ("    pthread_mutex_unlock(&making);\n", "")],
     "partners", "partners_p3_are_made_once_by_many_threads", "P3: the mutex"),
    ("sync/partners.c", [("    if (*own != NULL)\n        return ORIEL_OK;\n    enum", "    enum")],
     "partners", "partners_p3_are_made_once_by_many_threads", "P3: another look under the mutex"),
    ("sync/pscw.c", [("    enum oriel_status status = ranks == NULL ? ORIEL_OK : make_entries(window, ranks, count, &targets);",
                      "    enum oriel_status status = oriel_epoch_leave_fence(window);\n    if (status == ORIEL_OK && ranks != NULL)\n"
                      "        status = make_entries(window, ranks, count, &targets);")],
     "partners", "partners_and_access_without_memory_change_nothing", "a start allocates before anything changes"),
    ("sync/lock.c", [("    if (status == ORIEL_OK)\n        status = oriel_access_need(window);\n    if (status == ORIEL_OK)\n"
                      "        status = oriel_epoch_leave_fence(window);\n",
                      "    if (status == ORIEL_OK)\n        status = oriel_epoch_leave_fence(window);\n    if (status == ORIEL_OK)\n"
                      "        status = oriel_access_need(window);\n")],
     "partners", "partners_and_access_without_memory_change_nothing", "a lock allocates before anything changes"),
    ("sync/access.c", [("    atomic_store_explicit(&window->control->access_offset, offset, memory_order_release);\n", "")],
     "faults", "killed_shared_holder_is_reported", "access words are published before L1"),
    ("sync/access.c", [("    pthread_mutex_lock(&making);\n", ""), ("    pthread_mutex_unlock(&making);\n", "")],
     "partners", "partners_p3_are_made_once_by_many_threads", "access words are made once"),
    ("sync/access.c", [("    if (oriel_window_access(window) != window->group->absent)\n        return ORIEL_OK;\n    if (oriel_file",
                        "    if (oriel_file")],
     "partners", "partners_p3_are_made_once_by_many_threads", "access words: another look under the mutex"),

    ("sync/mutex.c", [("    return atomic_compare_exchange_strong_explicit(&mutex->word, &free_word, as, memory_order_acquire,\n"
                       "                                                   memory_order_relaxed); /* M1 */",
                       "    free_word = oriel_load_relaxed(&mutex->word);\n    if (free_word == 0)\n"
                       "        oriel_store_relaxed(&mutex->word, as);\n    return free_word == 0;")],
     "mutex", "mutex_p1_publishes_stores", "M1: looking and taking are one step"),
    ("sync/mutex.c", [("        syscall(SYS_futex, &mutex->word, FUTEX_WAKE, 1, NULL, NULL, 0);", "        sched_yield();")],
     "mutex", "mutex_m3_wakes_a_sleeper", "M3 wakes"),
    ("sync/mutex.c", [("while (!try_lock(mutex, as | ASLEEP)) {", "while (!try_lock(mutex, as)) {")],
     "mutex", "mutex_woken_holder_wakes_the_next", "a woken holder wakes the next one"),
    ("sync/mutex.c", [("*status = watched.win_rank < 0 ? ORIEL_OK : oriel_watch_rank(&watched);",
                       "*status = watched.win_rank < window->n ? ORIEL_OK : oriel_watch_rank(&watched);")],
     "faults", "killed_mutex_holder_is_reported", "the word's holder is watched"),

    ("sync/singles.h", [("    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */\n", "")],
     "singles", "singles_p1_stay_out_of_bulk_updates", "S1: a single announces itself"),
    ("sync/singles.h", [("    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */\n    oriel_delay();\n"
                         "    if (oriel_likely(atomic_load_explicit(&window->common->bulk_targets, memory_order_seq_cst) == 0)) /* S2 */\n",
                         "    bool none = atomic_load_explicit(&window->common->bulk_targets, memory_order_seq_cst) == 0;\n"
                         "    oriel_delay();\n    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst);\n    if (none)\n")],
     "singles", "singles_p1_stay_out_of_bulk_updates", "S1 is before S2"),
    ("sync/singles.h", [("memory_order_seq_cst) == 0)) /* S2 */", "memory_order_seq_cst) < 1000)) /* S2 */")],
     "singles", "singles_p1_stay_out_of_bulk_updates", "S2 looks for bulk updates"),
    ("sync/singles.c", [("&oriel_window_control(window, target)->bulk, memory_order_seq_cst) == 0)",
                         "&oriel_window_control(window, target)->bulk, memory_order_seq_cst) < 2)")],
     "singles", "singles_p1_stay_out_of_bulk_updates", "S2 looks at its target's word, too"),
    ("sync/singles.c", [("    atomic_fetch_add_explicit(&window->common->bulk_targets, 1, memory_order_seq_cst); /* B1 */\n", "")],
     "singles", "singles_p1_stay_out_of_bulk_updates", "B1 is announced to the window"),
    ("sync/singles.c", [("            await_slot(&oriel_file_singles(peer->base)[i], peer);", "            (void)await_slot;")],
     "singles", "singles_b2_waits_for_who_is_inside", "B2 waits"),
    ("sync/singles.c", [("    for (int32_t rank = 0; rank < window->n; rank++) {", "    for (int32_t rank = 1; rank < window->n; rank++) {")],
     "singles", "singles_b2_waits_for_who_is_inside", "B2 waits for every rank"),
    ("sync/singles.c", [("        for (uint32_t i = 0; i < count; i++)\n", "        for (uint32_t i = 1; i < count; i++)\n")],
     "singles", "singles_b2_waits_for_who_is_inside", "B2 waits for every thread"),
    ("sync/singles.c", [("        if (!oriel_peer_alive(peer))\n            return;\n", "")],
     "singles", "singles_of_the_dead_are_passed_over", "B2 does not wait for the dead"),
    ("sync/singles.c", [("    control->singles_in_a_row = 0;\n", "")],
     "singles", "singles_c2_are_free_again_after_many", "C2: a bulk update begins the row anew"),
    ("sync/singles.c", [("        atomic_fetch_sub_explicit(&window->common->bulk_targets, 1, memory_order_release);\n", "")],
     "singles", "singles_c2_are_free_again_after_many", "C2 takes back what B1 added"),
    ("sync/singles.c", [("    atomic_fetch_and_explicit(&slots.taken, ~(UINT64_C(1) << ((struct oriel_single *)slot - first)), "
                         "memory_order_release);\n", "    (void)slot;\n    (void)first;\n")],
     "singles", "singles_of_more_threads_than_slots_take_the_lock", "a thread that ends gives its slot back"),

    ("sync/watch.c", [("state == ORIEL_ACCESS_WAITING || state == ORIEL_ACCESS_EXCLUSIVE",
                       "state == ORIEL_ACCESS_WAITING")],
     "faults", "killed_exclusive_holder_is_reported_to_lock_all", "lock_all watches exclusive holders"),
    ("sync/watch.c", [("state == ORIEL_ACCESS_WAITING || state == ORIEL_ACCESS_EXCLUSIVE",
                       "state == ORIEL_ACCESS_EXCLUSIVE")],
     "faults", "killed_waiting_writer_is_reported_to_lock_all", "lock_all watches those who wait, too"),
    ("sync/watch.c", [("        if (i != window->rank && blocks(window, i, watched->win_rank))",
                       "        if (i != window->rank && (true || blocks(window, i, watched->win_rank)))")],
     "faults", "killed_bystander_raises_no_alarm", "only who can block is watched"),
    ("sync/watch.c", [("    return status == ORIEL_OK ? watch_blockers(watched, queues) : status;",
                       "    status = status == ORIEL_OK ? watch_blockers(watched, queues) : status;\n"
                       "    return status != ORIEL_OK ? status : watch_blockers(watched, reads_all);")],
     "faults", "killed_bystander_raises_no_alarm", "whoever is in the queue has passed the gate"),
    ("memory/peer.c", [("== ORIEL_FILE_LEFT;", "== UINT32_MAX;")],
     "faults", "rank_that_left_in_good_order_raises_no_alarm", "a rank that says that it leaves has not died"),
    ("base/identity.c", [("poll(&exited, 1, 0) <= 0", "poll(&exited, 1, 0) >= 0")],
     "faults", "killed_rank_is_reported_by_barrier", "a zombie is dead"),

    ("window/regions.c", [("    set(&regions->version, version + 1);       /* A1 */\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A1: a change announces itself before it writes"),
    ("ops/lookup.c", [("    return !is_over(regions, version);", "    return true;")],
     "regions", "regions_p2_lookups_see_one_table", "B5: a search counts only if its table was not written again"),
    ("window/regions.c", [("    int next = (int)(version / 2 + 1) % 2;", "    int next = (int)(version / 2) % 2;"),
                          ("version + 2, memory_order_release", "version + 4, memory_order_release"),
                          ("    apply(&regions->tables[next], &arrays->last);\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A3: the present table is not written"),
    ("window/regions.c", [("    apply(&regions->tables[next], &arrays->last);\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A3: the lagging table gets the last change too"),
    ("ops/lookup.c", [("memory->target == target && memory->version == version;",
                           "memory->target == target && memory->version <= version;")],
     "regions", "regions_p1_changes_are_seen_by_who_remembers", "what is remembered counts for one version only"),
    ("window/regions.c", [("    for (uint64_t i = 0; i < count; i++)\n"
                           "        move_region(&regions[i], &own_regions(table)[i]);\n", "")],
     "regions", "regions_p3_growth_loses_nothing", "a larger array is filled before it is the table"),
    ("window/regions.c", [(" && (oriel_lookup_get(&regions[end].place) & ORIEL_REGION_CONTINUES) != 0", "")],
     "regions", "regions_p2_lookups_see_one_table", "what goes is what came in one piece"),
    ("window/regions.c", [("    set(&region->place, place);\n", "    if (place == 0 || oriel_lookup_get(&region->place) == 0)\n        set(&region->place, place);\n")],
     "regions", "regions_p2_lookups_see_one_table", "a region's place moves with it"),
    ("ops/lookup.c", [("> version + 2;", "!= version;")],
     "regions", "regions_of_a_killed_owner_stay", "the present table counts while the next is made"),
    ("transport/agent/agent.c", [("    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED); /* Q3, P1 */\n"
                                  "    oriel_delay();\n    ring(agent, slot);",
                                  "    ring(agent, slot);\n    oriel_delay();\n"
                                  "    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED);")],
     "agent", "agent_p4_forgets_no_request", "Q3 before Q4: the request is there when the bell rings"),
    ("transport/agent/agent.c", [("    return atomic_compare_exchange_strong_explicit(&slot->owner, &from, oriel_identity_own_word(), "
                                  "memory_order_acquire,\n"
                                  "                                                   memory_order_relaxed) /* Q1 */",
                                  "    bool mine = atomic_load(&slot->owner) == from;\n    oriel_delay();\n    if (mine)\n"
                                  "        atomic_store(&slot->owner, oriel_identity_own_word());\n    return mine")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q1: looking and claiming are one step"),
    ("transport/agent/agent.c", [("    oriel_wake(&agent->asked, &agent->sleepers);\n", "")],
     "agent", "agent_p4_forgets_no_request", "Q4 wakes the agent"),
    ("transport/agent/agent.c", [("    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_EQUAL, "
                                  "ORIEL_AGENT_DONE,",
                                  "    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_NOT_EQUAL, "
                                  "UINT32_MAX,")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q5: the origin waits for the answer"),
    ("transport/agent/agent.c", [("    enum oriel_status status = await(job->there, request->slot);\n",
                                  "    release(job->there->agent, request->slot);\n    oriel_delay();\n"
                                  "    enum oriel_status status = await(job->there, request->slot);\n"),
                                 ("    release(job->there->agent, request->slot);\n    request->slot", "    request->slot")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q6 after Q5: a slot is given back when nobody needs it any more"),
    ("transport/agent/agent.c", [("    oriel_event_signal(&agent->freed);\n",
                                  "    atomic_fetch_add(&agent->freed.value, 1);\n")],
     "agent_deaths", "agent_q6_wakes_those_who_wait_for_a_slot", "Q6 wakes"),
    ("transport/agent/agent.c", [("!oriel_identity_word_lives(owner) && ", "")],
     "agent_deaths", "agent_slots_of_the_living_are_theirs", "only slots of the dead are taken over"),
    ("transport/agent/agent.c", [("        heir->slot = take_over(heir->agent);", "        heir->slot = NULL;")],
     "agent_deaths", "agent_slots_of_the_dead_are_taken_over", "who waits for a slot looks for the dead"),
    ("transport/agent/agent.c", [("    ring(agent, slot);\n    enum oriel_status status = await_answer(agent, slot);",
                                  "    enum oriel_status status = await_answer(agent, slot);")],
     "agent_deaths", "agent_slots_of_the_dead_are_taken_over", "an heir rings: the dead may not have"),
    ("transport/agent/agent.c", [("oriel_load_acquire(&slot->answer.value) == ORIEL_AGENT_DONE", "slot != NULL")],
     "agent_deaths", "agent_slots_of_the_dead_are_taken_over", "an heir awaits what was asked"),
    ("transport/agent/agent.c", [("oriel_identity_alive(&agent->process))", "agent->process.pid > 0)")],
     "agent_deaths", "killed_target_is_reported_to_those_who_ask", "who waits for an answer asks whether the target lives"),
    ("transport/agent/agent.c", [("    enum oriel_status status = watch_agent(heir->agent);",
                                  "    enum oriel_status status = ORIEL_OK;")],
     "agent_deaths", "killed_target_is_reported_to_those_who_wait_for_a_slot", "so does who waits for a slot"),
    ("transport/agent/agent.c", [("    if (oriel_load_acquire(&agent->state) == ORIEL_AGENT_RUNNING && ", "    if (")],
     "agent", "agent_ends_in_good_order_and_starts_again", "an agent that has ended answers nobody"),
    ("transport/agent/serve.c", [("        return; /* Z2, P5 */", "        slot->error = 0;")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Z2: a bit alone is no request"),
    ("transport/agent/serve.c", [("    slot->error = inside != NULL ? oriel_agent_execute(",
                                  "    atomic_store(&slot->answer.value, ORIEL_AGENT_DONE);\n    oriel_delay();\n"
                                  "    slot->error = inside != NULL ? oriel_agent_execute(")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Z3 comes last"),
    ("transport/agent/serve.c", [("    oriel_wake(&slot->answer.value, &slot->answer.sleepers);\n", "")],
     "agent_deaths", "agent_z3_wakes_those_who_ask", "Z3 wakes"),
    ("transport/agent/serve.c", [("    uint32_t bits = atomic_exchange_explicit(&agent->asked, 0, memory_order_seq_cst); "
                                  "/* Z1 */",
                                  "    uint32_t bits = oriel_load_acquire(&agent->asked);\n    oriel_delay();\n"
                                  "    oriel_store_release(&agent->asked, 0);")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Z1: looking and taking are one step"),
    ("transport/agent/serve.c", [("    atomic_fetch_add_explicit(&agent->sleepers, 1, memory_order_seq_cst); /* S1 */\n", ""),
                                 ("    atomic_fetch_sub_explicit(&agent->sleepers, 1, memory_order_seq_cst);\n", "")],
     "agent", "agent_p4_forgets_no_request", "S1: the agent says that it sleeps"),
    ("transport/agent/serve.c", [("FUTEX_WAIT, 0, NULL, NULL, 0); /* S2 */",
                                  "FUTEX_WAIT, oriel_load_relaxed(&agent->asked), NULL, NULL, 0);"),
                                 ("(oriel_load_relaxed(&agent->asked) == 0)\n        syscall",
                                  "(oriel_load_relaxed(&agent->asked) == 0 && usleep(200) == 0)\n        syscall")],
     "agent", "agent_p4_forgets_no_request", "S2: the kernel compares with nothing asked"),
    ("transport/agent/execute.c", [("            return moved < 0 ? errno : EIO;", "            return 0;")],
     "agent", "memory_that_is_gone_is_a_range_error", "what could not be copied is an error"),
    ("transport/agent/serve.c", [("    keep_own_descriptor();\n    oriel", "    oriel"),
                                 ("static void keep_own_descriptor", "void keep_own_descriptor")],
     "agent", "agent_keeps_its_file_when_the_program_closes_it", "the agent's descriptors are its own"),
    ("transport/agent/serve.c", [("goes_on = is_own_file(agent);", "goes_on = is_own_file(agent) || true;")],
     "agent", "agent_keeps_its_file_when_the_program_closes_it", "the descriptor is looked at before it is used"),
    ("transport/agent/execute.c", [("    int error = transfer_elements(kind, FROM_USER);", "    int error = 0;")],
     "agent_updates", "updates_are_what_the_kernels_compute", "U: the agent reads before it computes"),
    ("transport/agent/execute.c", [("    return operator == ORIEL_OPERATOR_NO_OP ? 0 : transfer_elements(kind, TO_USER);",
                                    "    return 0;")],
     "agent_updates", "updates_are_what_the_kernels_compute", "U: it writes what it has computed"),
    ("transport/agent/execute.c", [("operator == ORIEL_OPERATOR_NO_OP ? 0 : ", "")],
     "agent_updates", "update_of_what_is_gone_is_a_range_error", "NO_OP only reads"),
    ("transport/agent/execute.c", [("    if (error != 0)\n        return error;\n    char *data", "    char *data")],
     "agent_updates", "update_of_what_is_gone_is_a_range_error", "what cannot be read is not written"),
    ("transport/agent/execute.c", [("    return kind->padded ? transfer_pairs(kind, direction) : ", "    return ")],
     "agent_updates", "update_leaves_padding_alone", "pairs are written by their fields"),
    ("transport/agent/execute.c", [("run->len_bytes - oriel_kind_tail_bytes(kind));", "run->len_bytes);")],
     "agent_updates", "update_leaves_padding_alone", "nothing is read behind the last field"),
    ("transport/agent/execute.c", [("    for (uint64_t done = 0; done < run->len_bytes && error == 0;) {",
                                    "    for (uint64_t done = 0; done == 0;) {")],
     "agent_updates", "update_leaves_padding_alone", "all pairs of a long run are written"),
    ("transport/agent/execute.c", [("number >= ORIEL_KIND_COUNT || ", "")],
     "agent_updates", "bad_requests_are_refused", "a kind is one of the table's"),
    ("transport/agent/execute.c", [("operator >= ORIEL_OPERATOR_COUNT || ", "")],
     "agent_updates", "bad_requests_are_refused", "an operator is one of the table's"),
    ("transport/agent/execute.c", [(" || oriel_kinds[number].plain[operator] == NULL", "")],
     "agent_updates", "bad_requests_are_refused", "an operator is allowed on the kind"),
    ("transport/agent/execute.c", [("        if (now.runs[i].len_bytes % kind->extent_bytes != 0)", "        if (false)")],
     "agent_updates", "bad_requests_are_refused", "a run has whole elements"),
    ("transport/agent/execute.c", [("    if (now.run_count > ORIEL_AGENT_RUNS)", "    if (false)")],
     "agent_updates", "bad_requests_are_refused", "no more runs than there are"),
    ("transport/agent/execute.c", [("        if (now.runs[i].len_bytes > ORIEL_AGENT_DATA_BYTES - now.data_bytes)",
                                    "        if (false)")],
     "agent_updates", "bad_requests_are_refused", "no more data than there is room"),
    ("transport/agent/execute.c", [("    return now.data_bytes == now.slot->data_bytes ? 0 : EINVAL;", "    return 0;")],
     "agent_updates", "bad_requests_are_refused", "the runs are as long as they say together"),
    ("transport/agent/execute.c", [("now.run_count != 1 || ", "")],
     "agent_updates", "bad_requests_are_refused", "a swap has one run"),
    ("transport/agent/execute.c", [(" || len_bytes > ORIEL_AGENT_DATA_BYTES / 2", "")],
     "agent_updates", "bad_requests_are_refused", "a swap has room for both"),
    ("transport/agent/execute.c", [("error == 0 && memcmp(found, wanted, len_bytes) == 0", "error == 0")],
     "agent_updates", "swap_writes_if_all_bytes_are_as_wanted", "a swap compares"),
    ("transport/agent/execute.c", [("        error = transfer_runs(TO_USER, wanted + len_bytes);",
                                    "        error = transfer_runs(TO_USER, wanted);")],
     "agent_updates", "swap_writes_if_all_bytes_are_as_wanted", "a swap writes what is desired"),
    ("transport/agent/agent.c", [("    slot->returns = job->out != NULL;", "    slot->returns = 0;")],
     "agent_updates", "updates_are_what_the_kernels_compute", "the answer is the old contents"),
    ("transport/agent/agent.c", [("job->operation == ORIEL_AGENT_UPDATE && kind->padded", "false")],
     "agent_updates", "update_leaves_padding_alone", "the padding of pairs is nobody's at the origin either"),
    ("transport/agent/agent.c", [("    if (oriel_likely(oriel_load_acquire(&slot->answer.value) == ORIEL_AGENT_DONE))",
                                  "    if (slot->operation == ORIEL_AGENT_UPDATE ||\n"
                                  "        oriel_load_acquire(&slot->answer.value) == ORIEL_AGENT_DONE)")],
     "agent_deaths", "update_of_the_dead_is_done_once_and_the_lock_stays_with_it", "an heir has an update of the dead done"),

    ("transport/writers.c", [("        struct oriel_writers_slot *slot = take_slot(writers, word);\n        oriel_delay();\n"
                              "        uint32_t moving = atomic_load_explicit(&writers->moving.value, memory_order_seq_cst); "
                              "/* E2, P3 */\n",
                              "        uint32_t moving = atomic_load_explicit(&writers->moving.value, memory_order_seq_cst);\n"
                              "        oriel_delay();\n"
                              "        struct oriel_writers_slot *slot = take_slot(writers, word);\n")],
     "writers", "writers_p1_p2_p3_lose_no_write", "E1 before E2: a writer announces itself before it looks"),
    ("transport/writers.c", [("if (oriel_likely(moving % 2 == 0) || !again)", "if (moving != UINT32_MAX || again)")],
     "writers", "writers_p1_p2_p3_lose_no_write", "E2: a writer looks whether pages move"),
    ("transport/writers.c", [("        oriel_writers_leave(slot);\n        again", "        again")],
     "writers", "writers_m4_wakes_those_who_wait", "E3: a writer that waits has no slot"),
    ("transport/writers.c", [("            lives = oriel_identity_alive(&writers->process);", "            lives = true;")],
     "writers_deaths", "writers_do_not_wait_for_a_dead_target", "E3: who waits asks whether the target lives"),
    ("transport/writers.c", [("    if (!oriel_identity_equal(&writers->process, self))\n        writers->process = *self;\n",
                              "    (void)self;\n")],
     "writers", "writers_e3_waits_while_the_target_lives", "M1: the target says who it is"),
    ("transport/writers.c", [("    atomic_fetch_add_explicit(&writers->moving.value, 1, memory_order_seq_cst); /* M1 */\n", ""),
                             ("    return ORIEL_OK;\n}\n\nvoid oriel_writers_resume",
                              "    atomic_fetch_add_explicit(&writers->moving.value, 1, memory_order_seq_cst);\n"
                              "    return ORIEL_OK;\n}\n\nvoid oriel_writers_resume")],
     "writers", "writers_p1_p2_p3_lose_no_write", "M1 before M2: nobody comes in after the look"),
    ("transport/writers.c", [("memory_order_seq_cst) != 0) { /* M2, P2 */", "memory_order_seq_cst) == UINT64_MAX) {")],
     "writers", "writers_p1_p2_p3_lose_no_write", "M2: the mover waits for those who are in"),
    ("transport/writers.c", [("for (unsigned i = 0; i < ORIEL_WRITERS_SLOTS; i++) {\n        struct",
                              "for (unsigned i = 0; i < ORIEL_WRITERS_SLOTS / 8; i++) {\n        struct")],
     "writers", "writers_p1_p2_p3_lose_no_write", "M2: the mover looks at all slots"),
    ("transport/writers.c", [("    if (word != 0 && !oriel_identity_word_lives(word))", "    if (word != 0)")],
     "writers", "writers_m2_waits_for_the_living", "M2: only the dead are not waited for"),
    ("transport/writers.c", [("            bury(slot);\n            looked_ns", "            looked_ns")],
     "writers_deaths", "writers_that_are_dead_are_not_waited_for", "M2: the dead are not waited for"),
    ("base/identity.c", [("{.start_time = word >> PID_BITS, .pid", "{.start_time = own_word >> PID_BITS, .pid")],
     "writers_deaths", "another_process_with_the_number_is_another", "a slot's start time is looked at"),
    ("transport/writers.c", [("            bury_all(writers);\n        if", "            (void)bury_all;\n        if")],
     "writers_deaths", "slots_of_the_dead_are_taken_over", "E1: who finds all slots taken looks for the dead"),
    ("transport/writers.c", [("        } else if (now_ns - begin_ns > limit_ns) {\n            return false;\n",
                              "        } else if (limit_ns == 0) {\n            return false;\n")],
     "writers", "copies_that_do_not_end_are_refused_and_reported", "a mover does not wait for ever"),
    ("transport/writers.c", [("        oriel_writers_resume(writers);\n        return oriel_fail", "        return oriel_fail")],
     "writers", "copies_that_do_not_end_are_refused_and_reported", "M4 is done after a refusal"),
    ("transport/writers.c", [("    atomic_fetch_add_explicit(&event->sleepers, 1, memory_order_seq_cst); /* S1 */\n", ""),
                             ("    atomic_fetch_sub_explicit(&event->sleepers, 1, memory_order_seq_cst);\n", "")],
     "writers", "writers_m4_wakes_those_who_wait", "E3, S1: who sleeps says so"),
    ("transport/writers.c", [("    oriel_wake(&writers->moving.value, &writers->moving.sleepers);\n", "")],
     "writers", "writers_m4_wakes_those_who_wait", "M4 wakes"),
    ("transport/writers.c", [("    atomic_fetch_add_explicit(&writers->moving.value, 1, memory_order_seq_cst); /* M4, P3 */\n",
                              "")],
     "writers", "writers_m4_wakes_those_who_wait", "M4: writers are let in again"),
    ("transport/cma/cma.c", [("    if (there->writers == NULL)\n", "    if (there->pid > 0)\n")],
     "copies", "no_copy_is_lost_where_threads_are_stopped", "a write is announced"),
    ("transport/cma/cma.c", [("    if (there->writers == NULL)\n",
                              "    if (there->writers == NULL || call == process_vm_readv)\n")],
     "copies", "no_copy_reads_what_is_not_there_by_either_means", "a read is announced, too"),
    ("transport/cma/cma.c", [("    ssize_t moved = call(there->pid, local, count, remote, count, 0);\n"
                              "    oriel_writers_leave(slot);",
                              "    oriel_writers_leave(slot);\n"
                              "    ssize_t moved = call(there->pid, local, count, remote, count, 0);")],
     "copies", "no_copy_is_lost_where_threads_are_stopped", "E5 follows E4: the slot is kept while the kernel copies"),
    ("transport/agent/serve.c", [("    struct oriel_writers_slot *inside = oriel_writers_enter(serving.writers);\n",
                                  "    static struct oriel_writers none;\n"
                                  "    struct oriel_writers_slot *inside = oriel_writers_enter(&none);\n")],
     "copies", "no_request_to_the_agent_is_lost_by_either_means", "the agent keeps out while pages move"),
    ("memory/threads.c", [(" && !oriel_writers_is_helper(tid))", ")")],
     "copies", "no_request_to_the_agent_is_lost_by_either_means", "the agent, which blocks all signals, need not be stopped"),
    ("memory/promote.c", [("        status = begin_moving(false);\n",
                           "        oriel_file_writers(oriel_file_base())->moving.value++;\n")],
     "copies", "no_copy_is_lost_where_threads_are_stopped", "promotion waits for copies"),
    ("memory/promote.c", [("            begin_moving(true);\n",
                           "        oriel_file_writers(oriel_file_base())->moving.value++;\n")],
     "copies", "no_copy_is_lost_where_threads_are_stopped", "release waits for copies"),

    ("transport/ucx/callers.c", [("    if (ahead == 0) {\n        make_ready(held);", "    if (ahead <= 8) {\n        make_ready(held);")],
     "net", "net_n1_puts_late_and_double_messages_right", "N1: what comes early is held back"),
    ("transport/ucx/callers.c", [("        while (caller->early != NULL && caller->early->wire.sequence == caller->expected) { /* N1 */",
                                  "        while (false) {")],
     "net", "net_n1_puts_late_and_double_messages_right", "N1: what was held back is served in its turn"),
    ("transport/ucx/callers.c", [("    if (ahead > UINT64_MAX / 2 || is_twice) {", "    if (ahead > UINT64_MAX / 2) {\n"
                                  "        make_ready(held);\n        caller->expected--;\n    } else if (is_twice) {")],
     "net", "net_n1_puts_late_and_double_messages_right", "N1: each once"),
    ("transport/ucx/peers.c", [("    peer->sent++; /* N1 */", "    peer->sent += request_is_odd();"),
                               ("static void count_sent(", "static bool request_is_odd(void)\n{\n    static unsigned n;\n"
                                "    return n++ % 50 != 49;\n}\n\nstatic void count_sent(")],
     "net", "net_n1_serves_messages_of_all_sizes_in_order", "N1: messages are counted"),
    ("transport/ucx/await.c", [("    oriel_net_send_gathered();\n", "")],
     "net", "net_gathered_questions_are_all_answered", "who waits sends what was gathered"),
    ("transport/ucx/serve.c", [("    oriel_net_send_answers();\n", "")],
     "net", "net_gathered_questions_are_all_answered", "answers that were gathered leave"),
    ("transport/ucx/peers.c", [("    if (origin->gather.whose != NULL && origin->gather.whose != peer)\n", "    if (false)\n")],
     "net", "net_n1_holds_for_gathered_messages", "what is gathered goes to one peer"),
    ("transport/ucx/callers.c", [("    if (agent->gather.whose != NULL && agent->gather.whose != caller)\n", "    if (false)\n")],
     "net", "net_gathered_questions_are_all_answered", "answers that were gathered go to one caller"),
    ("transport/ucx/gather.c", [("    return (len_bytes + 7) & ~(size_t)7;", "    return len_bytes;")],
     "net", "net_gathered_questions_are_all_answered", "gathered messages are aligned"),
    ("transport/ucx/await.c", [("    if (must_wake)\n        oriel_net_wake_agent();", "    (void)must_wake;")],
     "net", "net_n3_sends_while_the_sender_computes", "N3: the agent's thread is told that something is unsent"),
    ("transport/ucx/serve.c", [("        mind_origin(&turn);\n", "")],
     "net", "net_n3_sends_while_the_sender_computes", "N3: the agent's thread goes on with it"),
    ("transport/ucx/peers.c", [("        (void)oriel_net_await(&peer->sync, NULL);\n", "        peer->half_messages = 0;\n"
                                "        peer->half_bytes = 0;\n")],
     "net", "net_sender_waits_for_a_slow_receiver", "flow control: the second half waits for the first"),
    ("transport/ucx/send.c", [("    char *to = buffer->data;", "    char *to = buffer->data + (len_bytes > 100000);")],
     "net", "net_n1_serves_messages_of_all_sizes_in_order", "all bytes are copied"),
    ("transport/ucx/serve.c", [("must_look || turn->is_minding ? &limit : NULL", "&limit")],
     "net", "net_sleeps_when_nothing_is_sent", "the agent's thread sleeps without a limit"),
    ("transport/ucx/serve.c", [("    if (*served || looks)", "    if (*served)")],
     "net", "net_looks_until_there_is_nothing_to_see", "look is called again"),
    ("transport/ucx/serve.c", [("    bool any = serve_turn(&served);\n", "    bool any = served = false;\n")],
     "net_help", "net_helper_serves_what_comes", "a helper serves"),
    ("transport/ucx/serve.c", [("    if (atomic_load_explicit(&is_aside, memory_order_seq_cst) ||\n        (", "    if ((")],
     "net_help", "net_helper_that_leaves_is_replaced", "H2: who stops helping wakes the agent's thread"),
    ("transport/ucx/serve.c", [("    if (atomic_load_explicit(&is_helping, memory_order_seq_cst) && ppoll", "    if (ppoll")],
     "net_help", "net_helper_that_leaves_is_replaced", "A2: nobody steps aside for who has left"),
    ("transport/ucx/serve.c", [("ppoll(&woken, 1, &limit, NULL)", "ppoll(&woken, 1, NULL, NULL)")],
     "net_help", "net_helper_that_is_held_up_is_replaced", "the agent's thread is aside for a while only"),
    ("transport/ucx/serve.c", [("(has_helped && (atomic_load_explicit(&looks, memory_order_relaxed) ||\n", "(has_helped && (\n")],
     "net_help", "net_helper_leaves_its_looks_to_the_agent", "what is to be looked after is handed over"),
    ("transport/ucx/serve.c", [("        has_helped = true;\n", "")],
     "net_help", "net_helper_leaves_its_looks_to_the_agent", "who has served knows that there may be something to hand over"),
    ("transport/ucx/workers.c", [("    atomic_store_explicit(&is_started, false, memory_order_release);\n    pthread_mutex_unlock",
                                  "    pthread_mutex_unlock"),
                                 ("    shut_out();\n", "    atomic_store_explicit(&is_started, false, memory_order_release);\n")],
     "net_edges", "net_progress_beside_stops_and_starts_is_harmless", "who is in a call is waited for by the stop"),
    ("transport/ucx/workers.c", [("oriel_now_ns() + oriel_net.timeout_ns;", "oriel_now_ns() + 2000000000;")],
     "net_edges", "net_stop_waits_for_a_slow_receiver", "who stops waits for who is slow, as long as for any other"),
    ("transport/ucx/peers.c", [(" && !renew_peer(peer, &head, address)", "")],
     "net_edges", "net_knows_no_more_of_one_that_starts_again_and_again", "a process that starts anew is the same peer"),
    ("transport/ucx/callers.c", [("        replace_others(caller);\n        const char *address", "        const char *address")],
     "net_edges", "net_knows_no_more_of_one_that_starts_again_and_again", "and takes the place of its former caller"),
    ("transport/ucx/callers.c", [("        end_caller(caller);\n        replace_others(caller);\n", "        end_caller(caller);\n")],
     "net_edges", "net_knows_no_more_of_one_that_starts_again_and_again", "also where it had sent nothing"),
    ("transport/ucx/peers.c", [("    oriel_net_disconnect(&oriel_net.origin, peer->ep); /* nothing may be sent before its hello */\n"
                                "    peer->ep = NULL;\n", "")],
     "net_edges", "net_lack_of_memory_is_told_and_over_when_there_is_some", "a hello that was not sent is sent later"),
    ("transport/ucx/workers.c", [("    say_goodbye();\n", "")],
     "net", "net_stops_and_starts_again", "who stops says so: it is not dead"),
    ("transport/ucx/send.c", [(" || out->to != oriel_net.session ||", " ||")],
     "net", "messages_for_an_earlier_start_are_dropped", "a message is for one start of a process"),
    ("transport/ucx/library.c", [('"UCX_HANDLE_ERRORS=none", ', "")],
     "net", "net_answers_come_later_and_in_any_order", "a program's handlers of signals stay"),
    ("transport/ucx/library.c", [(".features = UCP_FEATURE_AM |", ".features = UCP_FEATURE_RMA | UCP_FEATURE_AM |")],
     "net_edges", "net_serves_no_put_get_or_atomic_of_ucx", "UCX's own puts and gets have no way in"),
    ("transport/ucx/library.c", [(".features = UCP_FEATURE_AM |", ".features = UCP_FEATURE_AMO64 | UCP_FEATURE_AM |")],
     "net_edges", "net_serves_no_put_get_or_atomic_of_ucx", "nor have its atomics"),
    ("transport/ucx/library.c", [(', "UCX_MEM_EVENTS=n"', "")],
     "net", "net_answers_come_later_and_in_any_order", "libc's functions stay as they are"),
    ("transport/ucx/peers.c", [("        oriel_net_end_request(request, ORIEL_E_PEER); /* N4 */", "")],
     "net_deaths", "net_n4_tells_of_a_killed_process", "N4: what a lost process was asked ends"),
    ("transport/ucx/peers.c", [("    peer->is_broken = true;\n    oriel_net.any_broken = true;\n}", "}")],
     "net_deaths", "net_n4_tells_of_a_killed_process", "N4: UCX's word that a connection broke"),
    ("transport/ucx/callers.c", [("        oriel_net.service.lost(&who);\n", "")],
     "net_deaths", "net_n4_tells_of_a_killed_process", "N4: the service is told"),
    ("transport/ucx/await.c", [("    if (peer->silence_ns >= oriel_net.timeout_ns) {", "    if (false) {")],
     "net_deaths", "net_n4_gives_up_who_is_silent", "N4: silence has an end"),
    ("transport/ucx/callers.c", [("    if (wire.kind == ORIEL_WIRE_PING)\n", "    if (wire.kind == ORIEL_WIRE_PING)\n        return UCS_OK;\n    else if (false)\n")],
     "net_deaths", "net_n4_waits_for_who_lives", "N4: who lives says so"),
    ("transport/ucx/workers.c", [("    atomic_store_explicit(&is_started, false, memory_order_relaxed);\n}", "}")],
     "net_deaths", "net_n4_tells_of_a_killed_process_whose_child_lives", "a forked child has no net"),

    ("sync/far.c", [("    oriel_delay();\n    set_mark(window, target, ORIEL_FAR_TOLD); /* F1 */\n", "")],
     "far", "far_flush_completes_what_was_told", "F1: what is told is marked"),
    ("sync/far.c", [("    set_mark(window, target, ORIEL_FAR_TOLD); /* F1 */\n", ""),
                    ("    enum oriel_status status = oriel_net_tell_later(peer, &bytes);\n    if",
                     "    set_mark(window, target, ORIEL_FAR_TOLD);\n    oriel_delay();\n"
                     "    enum oriel_status status = oriel_net_tell_later(peer, &bytes);\n    if")],
     "far_threads", "far_f1_f3_flush_completes_what_other_threads_told", "F1: it is marked after it has been sent"),
    ("sync/far.c", [("    int32_t rank = take_mark(window, target, mark); /* F2 */",
                     "    int32_t rank = target >= 0 && kind == ORIEL_FAR_FLUSH ? target : take_mark(window, target, mark);"),
                    ("        rank = target < 0 && *is_asked ? take_mark(window, -1, mark) : -1;\n",
                     "        oriel_delay();\n"
                     "        if (target >= 0 && kind == ORIEL_FAR_FLUSH)\n            (void)take_mark(window, target, mark);\n"
                     "        rank = target < 0 ? take_mark(window, -1, mark) : -1;\n")],
     "far_threads", "far_f1_f3_flush_completes_what_other_threads_told", "F2: the mark is taken before the flush is sent"),
    ("sync/far.c", [("    pthread_mutex_lock(&far->flushing);\n", ""), ("    pthread_mutex_unlock(&far->flushing);\n", "")],
     "far_threads", "far_f1_f3_flush_completes_what_other_threads_told", "a second flush waits for the first"),
    ("sync/far.c", [("    await_open(window, target, &first);\n    note_first(&first, take_failure(far));",
                     "    note_first(&first, take_failure(far));")],
     "far", "far_flush_completes_what_was_told", "F3: its answer is awaited"),
    ("sync/far.c", [("    bool many; /* or not: the flush awaits them all */\n"
                     "    return open_request(window, target, peer, &head, NULL, 0, request, &many);",
                     "    return oriel_far_ask(window, target, peer, &head, NULL, 0, request);")],
     "far", "far_flush_awaits_all_that_was_asked", "a flush does not wait for itself"),
    ("sync/far.c", [("    far->failure = ORIEL_OK;\n", "")],
     "far", "far_failure_is_told_by_the_next_flush_once", "a failure is told once"),
    ("sync/far.c", [("    if (kind == ORIEL_FAR_UNLOCK && target >= 0)\n        rank = target;", "    if (kind == ORIEL_FAR_UNLOCK && target >= 0 && rank >= 0)\n        rank = target;"),
                    ("        return finish(window, target, ORIEL_FAR_TOLD, ORIEL_FAR_UNLOCK, is_given_back);",
                     "    {\n        set_mark(window, target, ORIEL_FAR_TOLD);\n        oriel_delay();\n"
                     "        return finish(window, target, ORIEL_FAR_TOLD, ORIEL_FAR_UNLOCK, is_given_back);\n    }")],
     "far_threads", "far_unlock_beside_another_threads_flushes_gives_back", "an unlock is sent whoever has flushed"),
    ("sync/far.c", [("    set_mark(window, target, ORIEL_FAR_HELD);\n", "")],
     "far_locks", "far_lock_kinds_exclude_as_the_standard_says", "HELD: what lock_all has taken is given back"),
    ("sync/far.c", [("    pthread_mutex_lock(&window->far->entering); /* one thread takes it */\n", ""),
                    ("    pthread_mutex_unlock(&window->far->entering);\n", "")],
     "far_threads", "far_lock_all_takes_each_lock_once", "HELD: one thread takes it"),
    ("sync/far.c", [("oriel_net_tell_later(peer, &bytes)", "oriel_net_tell(peer, &bytes)")],
     "far_counts", "far_put_and_get_are_a_round_trip_each", "what is told goes with the flush"),
    ("sync/lock.c", [("lock_far(window, target, exclusive, true)", "lock_far(window, target, exclusive, false)")],
     "far_counts", "far_lock_that_is_not_checked_is_no_round_trip", "TRUSTED: no lock is asked for"),
    ("sync/far.c", [("        flushed = finish(window, -1, ORIEL_FAR_TOLD, ORIEL_FAR_FLUSH, is_given_back);", "        flushed = ORIEL_OK;")],
     "far_counts", "far_lock_that_is_not_checked_is_no_round_trip", "TRUSTED: unlock_all flushes all the same"),
    ("sync/far.c", [("        status = take_one_of_all(window, target);\n", "        ;\n")],
     "far_locks", "far_lock_kinds_exclude_as_the_standard_says", "HELD: lock_all takes a far target's lock"),
    ("sync/far_epochs.c", [("    enum oriel_status status = oriel_far_flush_local(window, target);\n"
                     "    return status != ORIEL_OK ? status : tell_kind(window, target, ORIEL_FAR_COMPLETE, 0);",
                     "    return tell_kind(window, target, ORIEL_FAR_COMPLETE, 0);")],
     "far_epochs", "far_post_start_complete_wait_publish", "what was got is here when an epoch is completed"),
    ("sync/far_epochs.c", [("round = 0, step = 1; step < count && ", "round = 0, step = 1; step * 2 < count && ")],
     "far_epochs", "far_barrier_opens_when_all_have_come", "as many rounds as it takes to hear of all"),
    ("sync/far_epochs.c", [("oriel_event_wait(&machines->arrived[round], number, &watch);",
                     "oriel_event_wait(&machines->arrived[round], number - 1, &watch);")],
     "far_epochs", "far_barrier_opens_when_all_have_come", "each barrier needs a message more than the one before"),
    ("sync/far_epochs.c", [("ORIEL_FAR_ARRIVED, (uint64_t)round);", "ORIEL_FAR_ARRIVED, 0);"),
                    ("oriel_event_wait(&machines->arrived[round], number,", "oriel_event_wait(&machines->arrived[0], number,")],
     "far_epochs", "far_barrier_opens_when_all_have_come", "each round has a counter of its own"),
    ("sync/far_epochs.c", [("        if (status != ORIEL_OK)\n            break;\n        *lost_rank = waiting.rank;\n",
                     "        *lost_rank = waiting.rank;\n        if (status != ORIEL_OK)\n            break;\n")],
     "far_deaths", "far_dead_rank_is_reported_by_barrier", "who cannot be told is named"),
    ("sync/far_epochs.c", [("    enum oriel_status status = oriel_watch_all(&waiting->watched);", "    enum oriel_status status = ORIEL_OK;")],
     "far_deaths", "far_killed_rank_is_reported_by_who_meets_the_others", "who waits for a machine looks at its own one's ranks, too"),
    ("sync/far_epochs.c", [("++waiting->looks % ORIEL_WATCH_ASKS == 0", "false")],
     "far_deaths", "far_window_that_was_given_up_is_reported", "who waits for a machine asks whether it serves the window"),
    ("sync/watch.c", [(" || ++looks % ORIEL_WATCH_ASKS == 0", " || looks > 0")],
     "far_deaths", "far_window_that_was_given_up_is_reported", "who waits for a far rank asks whether it serves the window"),
    ("sync/far_epochs.c", [("            (void)tell_kind(window, machines->machine[i].leader, ORIEL_FAR_LOST, (uint64_t)rank);", "            continue;")],
     "far_deaths", "far_killed_rank_is_reported_by_barrier", "a machine that finds a rank dead tells the others"),

    ("sync/far_serve.c", [("    return oriel_ticket_is_first(queue, lock->place);", "    return true;")],
     "far_locks", "far_lock_kinds_exclude_as_the_standard_says", "X1, X2: a far writer waits for its turn"),
    ("sync/far_serve.c", [("        if (!oriel_ticket_may_read(queue, lock->place))\n            return false;\n", "")],
     "far_locks", "far_lock_kinds_exclude_as_the_standard_says", "R2: a far reader waits for its turn"),
    ("sync/far_serve.c", [("        if (oriel_load_acquire(&gate->half.readers) != 0)\n            return false;\n", "")],
     "far_locks", "far_lock_kinds_exclude_as_the_standard_says", "G4: a far writer waits for readers to leave"),
    ("sync/far_serve.c", [("        if (courtesy_is_due(gate, lock, now_ns))\n            return false;\n", "")],
     "far_locks", "far_lock_is_courteous", "readers of lock_all that wait go first"),
    ("sync/far_serve.c", [("        oriel_gate_leave_writer(&window->common->gate);\n}\n\n/* It will", "        (void)window;\n}\n\n/* It will")],
     "far_locks", "far_lock_misuse_is_refused_and_leaves_no_trace", "G5: a far writer leaves the gate"),
    ("sync/far_serve.c", [("        if (lock->from == from && lock->stage == STAGE_HELD) {", "        if (lock->stage == STAGE_HELD) {")],
     "far_locks", "far_lock_misuse_is_refused_and_leaves_no_trace", "a rank gives its own lock back"),
    ("sync/far_serve.c", [("    while (*link != NULL)\n        link = &(*link)->next;\n    *link = lock;", "    lock->next = *link;\n    *link = lock;")],
     "far_locks", "far_lock_at_the_gate_is_overtaken_by_nobody", "who comes first is looked at first"),
    ("sync/far_serve.c", [("    oriel_far_answer_well(&lock->asker, &(", "    oriel_far_answer(window, &lock->asker, lock->from, &(")],
     "far_locks", "far_lock_after_a_failure_is_held", "a lock that is held is not answered by a failure"),
    ("sync/far_shares.c", [("!(holds_others && number < (*link)->limit)", "true")],
     "far_lock_all", "far_lock_all_and_waiting_locks_close_no_circle", "J3: who holds locks shares a place before a lock that waits"),
    ("sync/far_shares.c", [("!(holds_others && number < (*link)->limit)", "!holds_others")],
     "far_lock_all", "far_lock_all_overtakes_once", "J3: who shares such a place has a number below its limit"),
    ("sync/far_shares.c", [("!(holds_others && number < (*link)->limit)", "!(number < (*link)->limit)")],
     "far_lock_all", "far_lock_all_that_holds_nothing_overtakes_nobody", "J3: who holds no lock shares no such place"),
    ("sync/far_shares.c", [("    limit_last(window);\n", "    (void)limit_last;\n")],
     "far_lock_all", "far_lock_all_overtakes_once", "J2: a place before a writer has a limit"),
    ("sync/far_shares.c", [("(last->greatest > far->limit ? last->greatest : far->limit) + 1;", "far->limit + 1;")],
     "far_lock_all", "far_lock_all_limits_are_above_all_numbers", "J2: a limit is above the numbers of all who share the place"),
    ("sync/far.c", [("    if (!far->is_numbered)\n        far->epoch_number", "    far->epoch_number")],
     "far_lock_all", "far_lock_all_keeps_its_number", "J1: an epoch's number is fixed before its first lock"),
    ("sync/far.c", [("        far->next_number = limit; /* J4 */", "        ;")],
     "far_lock_all", "far_lock_all_overtakes_once", "J4: the next number is not below the limits"),
    ("sync/far.c", [("    window->far->is_numbered = window->far->is_numbered && !*is_given_back;\n", "")],
     "far_lock_all", "far_lock_all_that_holds_nothing_overtakes_nobody", "J3: an epoch that begins holds nothing"),
    ("sync/far_shares.c", [("    if (--share->members > 0)", "    if (share->members-- > 2)")],
     "far_lock_all", "far_lock_all_of_many_targets_excludes_and_ends", "a place is left by the last of those who share it"),
    ("sync/far_shares.c", [("!share->is_in && oriel_ticket_may_read(queue, share->place)", "!share->is_in")],
     "far_lock_all", "far_lock_all_of_many_targets_excludes_and_ends", "R2: who share a place wait for its turn"),
    ("window/serve.c", [("    oriel_far_answer_well(asker, data, 2);", "    oriel_far_answer(window, asker, head->from, data, 2);")],
     "far", "far_failure_at_a_leader_keeps_nobody_from_its_machine", "an address is no answer to an operation"),
    ("sync/far_answers.c", [("    while (*link != NULL && (*link)->from != from)", "    while (*link != NULL && from < 0)")],
     "far", "far_failure_is_told_to_its_origin", "a failure is its origin's"),
    ("sync/far_answers.c", [("    if (window->far->refused[from] != ORIEL_OK)\n        return; /* the first counts */\n", "")],
     "far", "far_failure_is_told_by_the_next_flush_once", "the first failure counts"),
    ("sync/far_serve.c", [("head->kind == ORIEL_FAR_POST ? &partner->posts", "head->kind == ORIEL_FAR_COMPLETE ? &partner->posts")],
     "far_epochs", "far_post_start_complete_wait_publish", "C1, C3: posts and completes are counted apart"),
    ("sync/far_serve.c", [("        if (lock->stage >= STAGE_QUEUE)\n            name_lost(window, lock);\n", "")],
     "far_lock_deaths", "far_killed_holder_is_reported_to_all_who_wait", "who waits for a lost holder's lock is told"),
    ("sync/far_serve.c", [("        if (lock->stage >= STAGE_QUEUE)\n", "        if (lock->stage >= STAGE_HELD)\n")],
     "far_lock_deaths", "far_killed_waiter_is_reported_to_who_comes_behind", "a lost rank's place in the queue stays taken"),
    ("sync/far_serve.c", [("        if (lock->stage != STAGE_HELD)\n            give_up(window, lock);\n", "")],
     "far_lock_deaths", "far_killed_waiter_at_the_gate_is_in_nobodys_way", "a lost rank leaves the gate"),
    ("sync/far_serve.c", [("            oriel_far_refuse(&lock->asker, ORIEL_E_PEER);\n            give_up(window, lock);\n", "            oriel_far_refuse(&lock->asker, ORIEL_E_PEER);\n")],
     "far_lock_deaths", "far_lock_refused_at_the_gate_keeps_nobody_out", "a refused rank leaves the gate"),
    ("sync/far_serve.c", [("    return lock->stage == STAGE_QUEUE ? oriel_watch_lock(&watched) : oriel_watch_reads(&watched);", "    return ORIEL_OK;")],
     "far_lock_deaths", "far_killed_holder_is_reported_to_all_who_wait", "who waits elsewhere for a lost holder's lock is told"),
    ("sync/watch.c", [("        status = watch_far_lock(watched, i, true);\n", "        break;\n")],
     "far_lock_deaths", "far_killed_exclusive_holder_is_reported_to_lock_all", "lock_all looks for lost holders elsewhere"),
    ("sync/watch.c", [("    if (window->group->peers[watched->win_rank] == NULL) {", "    if (false) {")],
     "far_deaths", "far_killed_poster_is_reported_by_start", "who waits for a far rank gets in touch with it"),
    ("sync/pscw.c", [("    enum oriel_status status = oriel_is_far(window, rank) ? tell(window, rank) : ORIEL_OK;",
                      "    enum oriel_status status = first == ORIEL_OK && oriel_is_far(window, rank) ? tell(window, rank) : ORIEL_OK;")],
     "far_deaths", "far_killed_rank_keeps_no_epoch_from_others", "the others are told after an error, too"),
    ("sync/far.c", [("            set_mark(window, rank, mark); /* this", "            ; /* this")],
     "far", "far_lack_of_memory_is_no_loss_of_a_rank", "a flush that was not sent is sent by the next"),
    ("sync/far_answers.c", [("    window->far->refused[from] = (uint8_t)status;\n", "")],
     "far", "far_failure_is_told_where_there_is_no_memory_for_it", "a failure without memory is told"),
    ("sync/far.c", [("kind == ORIEL_FAR_UNLOCK ? take_put_by(window->far) : NULL;", "NULL;")],
     "far", "far_lock_is_given_back_without_memory", "a lock puts by what its unlock needs"),
    ("sync/lock.c", [("    if (is_given_back)\n        set_access", "    set_access")],
     "far", "far_lock_is_given_back_without_memory", "an unlock that was not sent leaves the lock to its holder"),
    ("sync/lock.c", [("    if (!is_given_back) { /* the epoch goes on */", "    if (false) {")],
     "far", "far_lock_is_given_back_without_memory", "so does unlock_all"),
    ("sync/far_serve.c", [("        oriel_store_release(&window->far->uncounted, (uint32_t)head->from + 1);", "        ;")],
     "far_epochs", "far_post_that_cannot_be_counted_is_told", "a post without memory for it is told"),
    ("sync/barrier.c", [("    enum oriel_status flushed = oriel_far_flush(window, -1);", "    enum oriel_status flushed = ORIEL_OK;")],
     "far_epochs", "far_barrier_opens_when_all_have_come", "M: what was told is done when a barrier opens"),
    ("sync/barrier.c", [("    if (arrived != all - 1)\n        return await_all(window, watched);", "    if (arrived != all - 1 && window->here < 2)\n        return await_all(window, watched);")],
     "far_epochs", "far_barriers_follow_each_other", "M: the last one of a machine meets the others"),
    ("sync/barrier.c", [("(uint32_t)window->here + 1;\n", "(uint32_t)window->here + 1;\n    all--;\n"),
                        ("    if (arrived != all - 1)", "    if (arrived != all)"), ("    (void)arrive(common, all);", "    (void)arrive(common, all + 1);"),
                        ("oriel_event_wait(&window->common->arrivals, window->arrivals, &watch); /* B2 */",
                         "oriel_event_wait(&window->common->arrivals, window->arrivals - (window->far != NULL), &watch); /* B2 */")],
     "far_epochs", "far_barrier_opens_when_all_have_come", "M: the other machines count as one more"),
]


class Failure(Exception):
    pass


class Builder:
    """Objects of the unchanged sources, and programs linked from them with one of them replaced."""

    def __init__(self, cc, tree, folder, flags=()):
        self.cc = cc
        self.flags = list(flags)
        self.folder = folder
        for part in ("src", "include", "tests"):
            shutil.copytree(os.path.join(tree, part), os.path.join(folder, part))
        self.include = os.path.join(folder, "include")
        self.src = os.path.join(folder, "src")
        self.tests = os.path.join(folder, "tests", "protocol")
        self.stand_ins = os.path.join(folder, "tests", "unit", "without_mpi")
        self.objects = {}

    def compile(self, source, target, first=()):
        folders = [*first, self.src, self.include, self.tests, self.stand_ins]
        command = [self.cc, "-std=c17", "-O2", "-D_GNU_SOURCE", "-DORIEL_DELAYS=1", *self.flags, "-MMD", "-c", source, "-o", target]
        self.run(command + [f"-I{folder}" for folder in folders])

    def run(self, command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Failure(f"{result.stderr}\n{' '.join(command)}")

    def build_unchanged(self, first=()):
        parts = sorted(path for part in PARTS for path in glob.glob(os.path.join(self.src, part)))
        sources = [(os.path.relpath(path, self.src), path) for path in parts]
        sources += [(name, os.path.join(self.tests, name)) for name in HARNESS]
        sources += [(f"{name}.c", os.path.join(self.tests, f"{name}.c")) for name in PROGRAMS]
        for name, path in sources:
            self.objects[name] = os.path.join(self.folder, name.replace("/", "_") + ".o")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for _ in pool.map(lambda item: self.compile(item[1], self.objects[item[0]], first), sources):
                pass

    def users(self, path):
        """The sources, by name, whose objects are made of this file: itself, or those that include it."""
        for name, built in self.objects.items():
            with open(built.removesuffix(".o") + ".d", encoding="utf-8") as file:
                if os.path.join(self.src, path) in file.read().replace("\\\n", " ").split():
                    yield name

    def source(self, name):
        return os.path.join(self.tests if "/" not in name else self.src, name)

    def link_changed(self, program, target, path, folder):
        """Links with what is below folder in the place of a file of src/."""
        others = {f"{name}.c" for name in PROGRAMS if name != program}
        replaced = {}
        for name in self.users(path):
            if name not in others:
                replaced[name] = os.path.join(folder, name.replace("/", "_") + ".o")
                self.compile(os.path.join(folder, path) if name == path else self.source(name), replaced[name], [folder])
        self.link(program, target, replaced)

    def link(self, program, target, replaced=None):
        others = {f"{name}.c" for name in PROGRAMS if name != program}
        objects = [(replaced or {}).get(name, path) for name, path in self.objects.items() if name not in others]
        self.run([self.cc, *self.flags, "-o", target, *objects, "-lcmocka", "-pthread", WRAPPED])


def mutate(text, changes, path):
    for old, new in changes:
        if text.count(old) != 1:
            raise Failure(f"{path}: found {text.count(old)} times, not once:\n{old}")
        text = text.replace(old, new)
    return text


def complaint(program, test, limit_s=None):
    """What the test says when it fails, or None."""
    environment = dict(os.environ)
    if limit_s is not None:
        environment["PROTOCOL_LIMIT_S"] = str(limit_s)
    result = subprocess.run([program, test], env=environment, capture_output=True, text=True, check=False)
    if "1 test(s) run" not in result.stdout + result.stderr:
        raise Failure(f"{program} has no test {test}")
    return None if result.returncode == 0 else result.stderr.split("\n", maxsplit=1)[0]


def noticed(builder, number, mutant):
    """What the test said when it failed, or None."""
    path, changes, program, test, _ = mutant
    folder = os.path.join(builder.folder, str(number))
    mutated = os.path.join(folder, path)
    os.makedirs(os.path.dirname(mutated))
    with open(os.path.join(builder.src, path), encoding="utf-8") as file:
        text = mutate(file.read(), changes, path)
    with open(mutated, "w", encoding="utf-8") as file:
        file.write(text)
    executable = os.path.join(folder, program)
    builder.link_changed(program, executable, path, folder)
    said = None
    for _ in range(ATTEMPTS):
        said = said or complaint(executable, test, LIMIT_S)
    return said


def check(builder, number):
    path, _, program, test, taken = MUTANTS[number]
    try:
        said = noticed(builder, number, MUTANTS[number])
    except Failure as failure:
        return False, f"BROKEN    {path}: {taken}\n{failure}"
    if said is None:
        return False, f"SURVIVED  {path}: {taken} ({program}: {test})"
    return True, f"noticed   {path}: {taken} ({program}: {test})\n          {said}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--tree", default=os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    parser.add_argument("--only", default="", help="mutants whose file, test or text contains this")
    arguments = parser.parse_args()
    chosen = [i for i, mutant in enumerate(MUTANTS)
              if arguments.only in " ".join([mutant[0], mutant[3], mutant[4]]) and mutant[2] in PROGRAMS]
    folder = tempfile.mkdtemp(prefix="oriel-mutants-")
    ok = bool(chosen)
    try:
        builder = Builder(arguments.cc, arguments.tree, folder)
        builder.build_unchanged()
        for program in PROGRAMS:
            builder.link(program, os.path.join(folder, program))
        for program, test in sorted({(MUTANTS[i][2], MUTANTS[i][3]) for i in chosen}):
            said = complaint(os.path.join(folder, program), test)
            if said is not None:
                ok = False
                print(f"FAILED    {program}: {test}, with the unchanged sources: {said}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for well, line in pool.map(lambda i: check(builder, i), chosen):
                ok = ok and well
                print(line, flush=True)
    except Failure as failure:
        ok = False
        print(failure)
    finally:
        shutil.rmtree(folder)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
