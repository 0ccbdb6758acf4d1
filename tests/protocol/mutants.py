#!/usr/bin/python3
"""Removes one ordering of a protocol at a time and expects the test that is named for it to fail, or to hang.

All is built in a temporary folder from copies.  Each row of MUTANTS says which file of src/ is changed, how (exact texts, each found once), which test must notice, and
what the change takes away.  The unchanged sources must pass the same tests.  A text that is no longer found is a failure:
the row must follow the code.  The status is 0 when every mutant is noticed."""

import argparse
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 5  # of one team of a mutated program; a hang is as good as a failure
ATTEMPTS = 4  # the delays are random: a mutant may pass once

PARTS = ("base/*.c", "sync/*.c", "memory/arena.c", "memory/file.c", "memory/limit.c", "memory/peer.c", "memory/agent.c",
         "transport/agent/*.c", "window/group.c", "window/regions.c")
HARNESS = ("team.c", "fabricate.c", "room.c", "asking.c")
PROGRAMS = ("event", "barrier", "ticket", "gate", "lock", "pscw", "mutex", "regions", "faults", "agent", "agent_deaths")

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

    ("sync/barrier.c", [("        oriel_store_relaxed(&common->arrived, 0); /* B3 */\n        oriel_delay();\n"
                         "        oriel_event_signal(&common->generation); /* B4 */\n",
                         "        oriel_event_signal(&common->generation);\n        oriel_delay();\n"
                         "        oriel_store_relaxed(&common->arrived, 0);\n")],
     "barrier", "barrier_b3_is_before_b4", "B3 before B4: the counter is reset before the barrier opens"),
    ("sync/barrier.c", [("if (arrived == (uint32_t)window->n) {", "if (arrived + 1 >= (uint32_t)window->n) {")],
     "barrier", "barrier_b4_publishes_stores", "B4: the last one opens, not the last but one"),
    ("sync/barrier.c", [("ORIEL_WAIT_NOT_EQUAL,", "ORIEL_WAIT_EQUAL,")],
     "barrier", "barrier_b4_publishes_stores", "a rank waits for B4"),
    ("sync/barrier.c", [("    if (arrived == (uint32_t)window->n) {",
                         "    generation = oriel_load_acquire(&common->generation.value);\n"
                         "    if (arrived == (uint32_t)window->n) {")],
     "barrier", "barrier_b4_publishes_stores", "B1 before B2: the generation is read before arrival"),
    ("sync/barrier.c", [("        oriel_store_release(&common->broken, 1);", "        return status;")],
     "faults", "killed_rank_is_reported_by_barrier", "a barrier that was left in vain opens to nobody"),
    ("sync/barrier.c", [("struct oriel_watch watch = {oriel_watch_all,", "struct oriel_watch watch = {oriel_watch_rank,"),
                        ("struct oriel_watched watched = {window, -1};",
                         "struct oriel_watched watched = {window, window->rank};")],
     "faults", "killed_rank_is_reported_by_barrier", "every rank is watched"),

    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, ticket, watch); /* X1, P1 */", "ORIEL_WAIT_AT_LEAST, ticket - 1, watch);")],
     "ticket", "ticket_p1_publishes_stores", "X1: a writer waits for all before it"),
    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, ticket, watch); /* R1, P1 */", "ORIEL_WAIT_AT_LEAST, ticket - 1, watch);")],
     "ticket", "ticket_excludes", "R1: a reader waits for all writers before it"),
    ("sync/ticket.c", [("oriel_wait(&lock->read, &lock->read_sleepers, ORIEL_WAIT_EQUAL, ticket, watch); /* R1, P1 */",
                        "oriel_wait(&lock->write, &lock->write_sleepers, ORIEL_WAIT_EQUAL, ticket, watch);")],
     "ticket", "ticket_shares", "R1: a reader does not wait for readers"),
    ("sync/ticket.c", [("        add_one(&lock->read, &lock->read_sleepers); /* R2 */",
                        "    {\n        add_one(&lock->read, &lock->read_sleepers);\n"
                        "        add_one(&lock->write, &lock->write_sleepers);\n    }"),
                       ("    add_one(&lock->write, &lock->write_sleepers); /* X3 or R3, P1 */",
                        "    if (exclusive)\n        add_one(&lock->write, &lock->write_sleepers);")],
     "ticket", "ticket_excludes", "R3: a reader counts for writers when it leaves, not when it enters"),
    ("sync/ticket.c", [("        add_one(&lock->read, &lock->read_sleepers); /* X2, P1 */",
                        "        add_one(&lock->write, &lock->read_sleepers);"),
                       ("    add_one(&lock->write, &lock->write_sleepers); /* X3 or R3, P1 */",
                        "    add_one(exclusive ? &lock->read : &lock->write, &lock->write_sleepers);")],
     "ticket", "ticket_wakes_sleepers", "X2, X3: each addition wakes those who wait for it"),
    ("sync/ticket.c", [("        add_one(&lock->read, &lock->read_sleepers); /* X2, P1 */\n", "")],
     "ticket", "ticket_excludes", "X2: a writer that leaves lets readers pass"),
    ("sync/ticket.c", [("    uint32_t ticket = atomic_fetch_add_explicit(&lock->next, 1, memory_order_relaxed); /* T1 */",
                        "    uint32_t ticket = oriel_load_relaxed(&lock->next);\n    oriel_delay();\n"
                        "    oriel_store_relaxed(&lock->next, ticket + 1);")],
     "ticket", "ticket_p1_publishes_stores", "T1: no two have one ticket"),

    ("sync/gate.c", [("while ((uint32_t)word == 0) {", "while (word < UINT64_MAX) {")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G1: a reader looks at the writers"),
    ("sync/gate.c", [("    while ((uint32_t)word == 0) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ONE_READER, "
                      "memory_order_seq_cst,\n"
                      "                                                  memory_order_relaxed))\n"
                      "            return true;\n    }\n    return false;",
                      "    if ((uint32_t)word != 0)\n        return false;\n    oriel_delay();\n"
                      "    atomic_fetch_add_explicit(&gate->word, ONE_READER, memory_order_seq_cst);\n    return true;")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G1: looking and counting are one step"),
    ("sync/gate.c", [("if (oriel_unlikely(before >= ONE_READER))", "if (oriel_unlikely(before == UINT64_MAX))")],
     "gate", "gate_g1_g4_keep_lock_all_and_exclusive_apart", "G4: a writer waits for the readers"),
    ("sync/gate.c", [("    uint64_t before = atomic_fetch_add_explicit(&gate->word, ONE_WRITER, memory_order_seq_cst); "
                      "/* G3 */\n    if (oriel_unlikely(before >= ONE_READER))",
                      "    uint64_t before = atomic_load(&gate->word);\n    while (before >= ONE_READER || "
                      "!atomic_compare_exchange_weak(&gate->word, &before, before + ONE_WRITER))\n"
                      "        before = atomic_load(&gate->word);\n    if (oriel_unlikely(before >= ONE_READER))")],
     "gate", "gate_readers_do_not_starve_writers", "G3: a waiting writer holds back new readers"),
    ("sync/gate.c", [("    if (!nested)\n", "    if (!nested && watch == NULL)\n")],
     "gate", "gate_writers_do_not_starve_readers", "courtesy: writers let waiting readers go first"),
    ("sync/gate.c", [("    (void)context;\n    return ORIEL_E_OTHER;", "    (void)context;\n    return ORIEL_OK;")],
     "gate", "gate_courtesy_ends", "courtesy ends after 100 ms"),
    ("sync/gate.c", [("    if (!nested)\n", "    if (!nested || watch != NULL)\n")],
     "gate", "gate_nested_writer_does_not_wait_for_readers", "a writer that is waited for is not courteous"),
    ("sync/gate.c", [("    oriel_wake(&gate->half.readers, &gate->writer_sleepers);\n", "")],
     "gate", "gate_wakes_sleepers", "G2 wakes writers"),
    ("sync/gate.c", [("    oriel_wake(&gate->half.writers, &gate->reader_sleepers);\n", "")],
     "gate", "gate_wakes_sleepers", "G5 wakes readers"),

    ("sync/lock.c", [("    if (exclusive)\n        status = oriel_gate_enter_writer",
                      "    if (exclusive && target == 0)\n        status = oriel_gate_enter_writer"),
                     ("    if (exclusive)\n        oriel_gate_leave_writer",
                      "    if (exclusive && target == 0)\n        oriel_gate_leave_writer")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "every exclusive lock passes the gate"),
    ("sync/lock.c", [("    if (exclusive)\n        oriel_gate_leave_writer",
                      "    if (!exclusive)\n        oriel_gate_leave_writer")],
     "lock", "lock_kinds_exclude_as_the_standard_says", "G5 at every exclusive unlock"),
    ("sync/lock.c", [("&none, ORIEL_ACCESS_WAITING,", "&none, ORIEL_ACCESS_NONE,")],
     "faults", "killed_waiting_ticket_is_reported", "the access word is set before its owner can block anybody"),
    ("sync/lock.c", [("    oriel_store_release(&window->control->lock_all, 1);\n", "")],
     "faults", "killed_lock_all_holder_is_reported", "lock_all is announced to those who wait for it"),

    ("sync/pscw.c", [("        oriel_event_signal(&pair_of(oriel_window_control(window, ranks[i]), window->rank)->posts); "
                      "/* C1 */",
                      "        if (i > 0)\n            oriel_event_signal(&pair_of(oriel_window_control(window, ranks[i]), "
                      "window->rank)->posts);")],
     "pscw", "pscw_c1_c3_publish_stores", "C1: a post counts for every origin"),
    ("sync/pscw.c", [("window->rank)->posts); /* C1 */", "0)->posts);"),
                     ("struct oriel_pair *pair = pair_of(window->control, ranks[i]);",
                      "struct oriel_pair *pair = pair_of(window->control, 0);"),
                     ("pair_of(window->control, ranks[i])->posts_taken++;", "pair_of(window->control, 0)->posts_taken++;")],
     "pscw", "pscw_matches_by_peer", "C1, C2: a counter for each pair"),
    ("sync/pscw.c", [("        pair_of(window->control, ranks[i])->posts_taken++;", "        (void)i;")],
     "pscw", "pscw_c2_takes_one_post_for_each_start", "C2: a start takes its post"),
    ("sync/pscw.c", [("    free(window->started);\n    window->started = NULL;",
                      "    oriel_delay();\n    for (int32_t i = 0; i < window->started_count; i++) {\n"
                      "        struct oriel_pair *pair = pair_of(window->control, window->started[i]);\n"
                      "        pair->posts_taken = oriel_load_acquire(&pair->posts.value);\n    }\n"
                      "    free(window->started);\n    window->started = NULL;")],
     "pscw", "pscw_keeps_early_posts", "C2: a post that comes early is kept"),
    ("sync/pscw.c", [("        pair_of(window->control, window->posted[i])->completes_taken++;", "        (void)i;")],
     "pscw", "pscw_c4_takes_one_complete_for_each_wait", "C4: a wait takes its completes"),
    ("sync/pscw.c", [("        status = oriel_event_wait(&pair->posts, pair->posts_taken + 1, &watch); /* C2 */",
                      "        status = oriel_event_wait(&pair->posts, pair->posts_taken, &watch);")],
     "pscw", "pscw_c1_c3_publish_stores", "C2: a start waits for its post"),
    ("sync/pscw.c", [("        status = oriel_event_wait(&pair->completes, pair->completes_taken + 1, &watch); /* C4 */",
                      "        status = oriel_event_wait(&pair->completes, pair->completes_taken, &watch);")],
     "pscw", "pscw_c4_takes_one_complete_for_each_wait", "C4: a wait waits for its completes"),
    ("sync/pscw.c", [("    return oriel_watch_rank(&watched);",
                      "    return watched.win_rank < 0 ? oriel_watch_rank(&watched) : ORIEL_OK;")],
     "faults", "killed_origin_is_reported_by_wait_and_test", "a program that polls looks for the dead"),

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

    ("sync/watch.c", [("state == ORIEL_ACCESS_WAITING || state == ORIEL_ACCESS_EXCLUSIVE",
                       "state == ORIEL_ACCESS_WAITING")],
     "faults", "killed_exclusive_holder_is_reported_to_lock_all", "lock_all watches exclusive holders"),
    ("sync/watch.c", [("state == ORIEL_ACCESS_WAITING || state == ORIEL_ACCESS_EXCLUSIVE",
                       "state == ORIEL_ACCESS_EXCLUSIVE")],
     "faults", "killed_waiting_writer_is_reported_to_lock_all", "lock_all watches those who wait, too"),
    ("sync/watch.c", [("if (i != window->rank && blocks(window, i, target))",
                       "if (i != window->rank && (true || blocks(window, i, target)))")],
     "faults", "killed_bystander_raises_no_alarm", "only who can block is watched"),
    ("memory/peer.c", [("== ORIEL_FILE_LEFT;", "== UINT32_MAX;")],
     "faults", "rank_that_left_in_good_order_raises_no_alarm", "a rank that says that it leaves has not died"),
    ("base/identity.c", [("poll(&exited, 1, 0) == 0", "poll(&exited, 1, 0) >= 0")],
     "faults", "killed_rank_is_reported_by_barrier", "a zombie is dead"),

    ("window/regions.c", [("    set(&regions->version, version + 1);       /* A1 */\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A1: a change announces itself before it writes"),
    ("window/regions.c", [("    return !is_over(regions, version);", "    return true;")],
     "regions", "regions_p2_lookups_see_one_table", "B5: a search counts only if its table was not written again"),
    ("window/regions.c", [("    int next = (int)(version / 2 + 1) % 2;", "    int next = 0;"),
                          ("tables[get(&regions->version) / 2 % 2];", "tables[0];"),
                          ("&regions->tables[version / 2 % 2];", "&regions->tables[0];"),
                          ("    apply(&regions->tables[next], &attached->last);\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A3: the present table is not written"),
    ("window/regions.c", [("    apply(&regions->tables[next], &attached->last);\n", "")],
     "regions", "regions_p2_lookups_see_one_table", "A3: the lagging table gets the last change too"),
    ("window/regions.c", [("memory->target == target && memory->version == version;",
                           "memory->target == target && memory->version <= version;")],
     "regions", "regions_p1_changes_are_seen_by_who_remembers", "what is remembered counts for one version only"),
    ("window/regions.c", [("    for (uint64_t i = 0; i < count; i++)\n"
                           "        move_region(&regions[i], &own_regions(table)[i]);\n", "")],
     "regions", "regions_p3_growth_loses_nothing", "a larger array is filled before it is the table"),
    ("window/regions.c", [("> version + 2;", "!= version;")],
     "regions", "regions_of_a_killed_owner_stay", "the present table counts while the next is made"),
    ("transport/agent/agent.c", [("    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED); /* Q3, P1 */\n"
                                  "    oriel_delay();\n    ring(there->agent, slot);",
                                  "    ring(there->agent, slot);\n    oriel_delay();\n"
                                  "    oriel_store_release(&slot->answer.value, ORIEL_AGENT_ASKED);")],
     "agent", "agent_p4_forgets_no_request", "Q3 before Q4: the request is there when the bell rings"),
    ("transport/agent/agent.c", [("    return atomic_compare_exchange_strong_explicit(&slot->owner, &from, own_word(), "
                                  "memory_order_acquire,\n"
                                  "                                                   memory_order_relaxed) /* Q1 */",
                                  "    bool mine = atomic_load(&slot->owner) == from;\n    oriel_delay();\n    if (mine)\n"
                                  "        atomic_store(&slot->owner, own_word());\n    return mine")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q1: looking and claiming are one step"),
    ("transport/agent/agent.c", [("    oriel_wake(&agent->asked, &agent->sleepers);\n", "")],
     "agent", "agent_p4_forgets_no_request", "Q4 wakes the agent"),
    ("transport/agent/agent.c", [("    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_EQUAL, "
                                  "ORIEL_AGENT_DONE,",
                                  "    return oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_NOT_EQUAL, "
                                  "UINT32_MAX,")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q5: the origin waits for the answer"),
    ("transport/agent/agent.c", [("    enum oriel_status status = await_answer(there->agent, slot);\n",
                                  "    release(there->agent, slot);\n    oriel_delay();\n"
                                  "    enum oriel_status status = await_answer(there->agent, slot);\n"),
                                 ("    release(there->agent, slot);\n    request->slot", "    request->slot")],
     "agent", "agent_p1_p2_p3_p5_bytes_arrive", "Q6 after Q5: a slot is given back when nobody needs it any more"),
    ("transport/agent/agent.c", [("    oriel_event_signal(&agent->freed);\n",
                                  "    atomic_fetch_add(&agent->freed.value, 1);\n")],
     "agent_deaths", "agent_q6_wakes_those_who_wait_for_a_slot", "Q6 wakes"),
    ("transport/agent/agent.c", [("!owner_lives(owner) && ", "")],
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
    ("transport/agent/serve.c", [("    int error = take_runs(slot, &count);",
                                  "    atomic_store(&slot->answer.value, ORIEL_AGENT_DONE);\n    oriel_delay();\n"
                                  "    int error = take_runs(slot, &count);")],
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
    ("transport/agent/serve.c", [("            return moved < 0 ? errno : EIO;", "            return 0;")],
     "agent", "memory_that_is_gone_is_a_range_error", "what could not be copied is an error"),
    ("transport/agent/serve.c", [("    keep_own_descriptor();\n    ask", "    ask"),
                                 ("static void keep_own_descriptor", "void keep_own_descriptor")],
     "agent", "agent_keeps_its_file_when_the_program_closes_it", "the agent's descriptors are its own"),
    ("transport/agent/serve.c", [("goes_on = is_own_file(agent);", "goes_on = is_own_file(agent) || true;")],
     "agent", "agent_keeps_its_file_when_the_program_closes_it", "the descriptor is looked at before it is used"),
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
        self.objects = {}

    def compile(self, source, target, first=()):
        folders = [*first, self.src, self.include, self.tests]
        command = [self.cc, "-std=c17", "-O2", "-D_GNU_SOURCE", "-DORIEL_DELAYS=1", *self.flags, "-c", source, "-o", target]
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

    def link(self, program, target, replaced=None, replacement=None):
        others = {f"{name}.c" for name in PROGRAMS if name != program}
        objects = [replacement if name == replaced else path
                   for name, path in self.objects.items() if name not in others]
        self.run([self.cc, *self.flags, "-o", target, *objects, "-lcmocka", "-pthread", "-Wl,--wrap=syscall"])


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
    builder.compile(mutated, mutated + ".o", [folder])
    executable = os.path.join(folder, program)
    builder.link(program, executable, path, mutated + ".o")
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
    chosen = [i for i, mutant in enumerate(MUTANTS) if arguments.only in " ".join([mutant[0], mutant[3], mutant[4]])]
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
