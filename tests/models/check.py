#!/usr/bin/python3
"""Checks one model of a protocol with spin: no interleaving fails an assertion or ends with a
process that waits or sleeps.

An unreached state is a failure. So is a step of the code (a comment such as /* X1, P1 */) that the
model lacks, or a step of the model that the code lacks. --mutants checks the model's mutants
instead, each without one ordering: spin must find the named error. A mutant's text that is not
found in the model is a failure. The exit status is 0 on success, 77 without spin."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))
LIMIT_S = 3000
ASSERTION, STUCK = "assertion violated", "invalid end state"

# For each model: the sources whose steps it has, the steps that it omits, and its mutants as
# (file, text, replacement, error, the removed property).
MODELS = {
    "event": (["base/wait.h", "base/wait.c"], set(), [
        ("wait.pml", "fetch_add(sleepers, 1, 8); /* S1 */", "skip;", STUCK, "S1: a sleeper announces itself"),
        ("wait.pml", "futex_wait(word, seen) /* S2 */", "seen = load(word); futex_wait(word, seen)", STUCK,
         "S2: the kernel compares with the value that was checked"),
        ("wait.pml", "-> futex_wake_all(word) /* W2 */", "-> futex_wake_one(word)", STUCK, "W2: all are woken"),
        ("wait.pml", "    fetch_add(event, 1, 8); /* W1 */\n    wake(event, sleepers)",
         "    wake(event, sleepers);\n    fetch_add(event, 1, 8)", STUCK, "W1 before W2"),
        ("wait.pml", "fetch_add(event, 1, 8); /* W1 */", "fetch_add_relaxed(event, 1, 8);", ASSERTION,
         "W1 publishes earlier stores"),
    ]),
    "memory_wait": (["sync/memory_wait.c", "internode/target/am_dispatch.c"], set(), [
        ("memory_wait.pml", "fetch_add(SLEEPERS, 1, 8); /* M1 */", "skip;", STUCK, "M1: a sleeper announces itself to calls for several targets"),
        ("memory_wait.pml", "exchange(SLEEPS, 1); /* M3 */", "skip;", STUCK, "M3: and to calls for one"),
        ("memory_wait.pml", "        do\n        :: seen = load_shared(WAKES); /* M2 */\n            exchange(SLEEPS, 1); /* M3 */\n",
         "        exchange(SLEEPS, 1);\n        do\n        :: seen = load_shared(WAKES);\n", STUCK, "M3: before each sleep"),
        ("memory_wait.pml", "        :: seen = load_shared(WAKES); /* M2 */\n            exchange(SLEEPS, 1); /* M3 */\n",
         "        :: exchange(SLEEPS, 1);\n            seen = load_shared(WAKES);\n", STUCK, "M2 before M3"),
        ("memory_wait.pml", "futex_wait(WAKES, seen) /* M5 */", "seen = load_shared(WAKES); futex_wait(WAKES, seen)", STUCK,
         "M5: the kernel compares with the value of M2"),
        ("memory_wait.pml", "fence_full(); /* W2 */", "skip;", STUCK, "W2: a fence between W1 and W3"),
        ("memory_wait.pml", "!= 0 -> wake() /* W3 */", "!= 0 -> skip", STUCK, "W3: a call for several targets wakes, too"),
        ("memory_wait.pml", "            fetch_add(WAKES, 1, 8); /* W5 */\n", "", STUCK, "W5: a thread between M3 and M5 does not sleep"),
        ("memory_wait.pml", "futex_wake_all(WAKES) /* W6 */", "futex_wake_one(WAKES)", STUCK, "W6: all are woken"),
    ]),
    "persistent": (["host/persistent.c"], set(), [
        ("persistent.pml", "    is_posted = true; /* P1 */\n    lock();\n    is_polled = true;\n    unlock()\n",
         "    lock();\n    is_polled = true;\n    unlock();\n    is_posted = true\n", ASSERTION, "P1: the receive is posted first"),
        ("persistent.pml", "            complete()\n        :: else\n        fi;\n        unlock()\n",
         "            is_polled = false;\n            unlock();\n            message_send()\n        :: else -> unlock()\n        fi\n", ASSERTION,
         "P2: the message is sent under the mutex"),
        ("persistent.pml", "    is_polled = false;\n    message_send() /* P2 */\n", "    message_send()\n", ASSERTION,
         "P2: by the thread that removes the request from the list"),
        ("persistent.pml", "    is_polled = false;\n    message_send() /* P2 */\n", "    is_polled = false\n", ASSERTION, "P2: a message completes the receive"),
        ("persistent.pml", "    lock(); /* P3 */\n", "", ASSERTION, "P3: under the mutex"),
        ("persistent.pml", "        :: withdraw(); /* MPI_Cancel, or MPI_Request_free */\n", "        :: skip;\n", ASSERTION,
         "P3: a request that is freed is removed from the list"),
        ("persistent.pml", "    :: was_polled -> host_cancel()\n", "    :: was_polled -> skip\n", ASSERTION, "P3: the receive is cancelled"),
    ]),
    "notify": (["sync/notify.h", "sync/notify.c"], set(), [
        ("notify.pml", "fetch_add(counter, 1, 8); /* N2 */", "fetch_add_relaxed(counter, 1, 8);", ASSERTION,
         "P1: N2 publishes earlier stores"),
        ("notify.pml", "        futex_wake_all(counter)\n", "        skip\n", STUCK, "N3: sleepers of one counter are woken"),
        ("notify.pml", "        signal(ANY, ANY_SLEEPERS);\n", "", STUCK, "N3: waits for any counter are woken"),
        ("notify.pml", "fetch_add(SLEEPERS(A), 1, 8); /* A1 */", "skip;", STUCK, "A1: a wait for any announces itself"),
        ("notify.pml", "    :: looked = load_shared(ANY); /* A2 */\n        take(A); /* A3 */\n        if\n        :: taken == 0 -> take(B)\n        :: else\n        fi;\n",
         "    :: take(A);\n        if\n        :: taken == 0 -> take(B)\n        :: else\n        fi;\n        looked = load_shared(ANY);\n", STUCK,
         "A2 before A3"),
        ("notify.pml", ":: memory[TAKEN(counter)] == before ->", ":: true ->", ASSERTION, "P2: each notification is taken once"),
    ]),
    "waiter_progress": (["transport/ucx/waiter_progress.c"], set(), [
        ("waiter_progress.pml", "store_seq_cst(ASIDE, 1);", "store_relaxed(ASIDE, 1);", STUCK, "A1 before A2"),
        ("waiter_progress.pml", "store_seq_cst(HELPING, 0);", "store_relaxed(HELPING, 0);", STUCK, "H1 before H2"),
        ("waiter_progress.pml", "    :: load(HELPING) == 0 -> open_gate(sleeps) /* A2 */\n", "", STUCK, "A2: the helper may have left"),
        ("waiter_progress.pml", "-> open_gate(opened) /* H2 */", "-> opened = true", STUCK, "H2: a helper that leaves opens the gate"),
        ("waiter_progress.pml", "    :: !opened -> is_woken = true\n", "", STUCK, "or wakes the agent's thread if a message has arrived"),
    ]),
    "net": (["transport/ucx/net.h", "transport/ucx/send_peers.c", "transport/ucx/recv_peers.c", "transport/ucx/reply_wait.c",
             "transport/ucx/progress_thread.c"], {"N4"}, [  # lost processes: net_death
        ("net.pml", "sequence_of[sent] = sent; /* N1 */", "sequence_of[sent] = 0;", STUCK, "N1: the sender counts its messages"),
        ("net.pml", "    :: sequence_of[at] == expected ->", "    :: sequence_of[at] >= expected ->", ASSERTION,
         "N1: early messages are queued"),
        ("net.pml", ":: expected < MOST && early[expected] != 0 -> /* N1 */", ":: false ->", STUCK,
         "N1: queued messages are served when all before them have arrived"),
        ("net.pml", "    :: else /* arrived already */\n", "    :: else -> ready ! at\n", ASSERTION, "N1: each message is served once"),
        ("net.pml", "        :: flying = flying & ~bit(at)\n",
         "        :: flying = flying & ~bit(at); answers = answers | (is_asked[at] -> bit(at) : 0)\n", ASSERTION,
         "N2: an answer is sent when a message is served, not when it arrives"),
        ("net.pml", "is_minded = true; is_woken = true /* N3 */", "is_minded = true", STUCK, "N3: the agent's thread is woken"),
        ("net.pml", """                :: pending == 0 -> is_minded = false; is_minding = false
                :: else
                fi;
                is_held = false
            }
""", """                :: pending == 0 -> is_minding = false
                :: else
                fi;
                is_held = false
            };
            is_minded = is_minding
""", ASSERTION, "N3: it clears its flag with the mutex held"),
        ("net.pml", ":: is_minding /* the limit */", ":: false", STUCK, "N3: and sleeps with a limit until then"),
        ("net.pml", """        gathered = gathered | bit(sent);
        sent++;
        half++;
        if
        :: !is_later(how) -> send_gathered()
        :: else
        fi
""", """        if
        :: !is_later(how) -> flying = flying | bit(sent)
        :: else -> gathered = gathered | bit(sent)
        fi;
        sent++;
        half++
""", STUCK, "a message takes coalesced ones along"),
        ("net.pml", """(gathered | pending | answers) != 0 && !is_held -> is_held = true };
        atomic {
            is_turned = true;
            send_gathered();
""", """(pending | answers) != 0 && !is_held -> is_held = true };
        atomic {
            is_turned = true;
""", STUCK, "and so does a wait"),
        ("net.pml", ":: half >= half_most && is_done[SYNC] ->", ":: half >= half_most ->", ASSERTION,
         "a half waits until the one before it has been served"),
    ]),
    "net_death": (["transport/ucx/net.h", "transport/ucx/send_peers.c", "transport/ucx/recv_peers.c", "transport/ucx/reply_wait.c",
                   "transport/ucx/progress_thread.c"], {"N1", "N3"}, [  # messages: net
        ("net_death.pml", ":: has_request[number] -> has_request[number] = false; is_failed[number] = true /* N4 */",
         ":: false -> skip", STUCK, "N4: outstanding requests end"),
        ("net_death.pml", ":: is_lost[number] && !AWAITS && !LEAVES -> is_failed[number] = true /* N4 */",
         ":: is_lost[number] && !AWAITS && !LEAVES -> has_request[number] = ASKS", STUCK, "N4: and so do later ones"),
        ("net_death.pml", ":: atomic { timeout && runs(number) &&", ":: atomic { false &&", STUCK,
         "N4: a silent process is lost if the connection does not report its end"),
        ("net_death.pml", "!has_ended[1 - (p)] && ", "", STUCK, "N4: a process that was given up gets no sign of life"),
        ("net_death.pml", "    must_shun[number] = true\n", "    skip\n", STUCK,
         "N4: a process that was given up, and was only slow, learns that"),
        ("net_death.pml", ":: else -> has_ended[number] = true /* before it began */", ":: else", STUCK,
         "N4: even if none of its messages had arrived"),
        ("net_death.pml", ":: !is_lost[number] -> lose(); close(number, true) /* and no message from it arrives */",
         ":: !is_lost[number]", STUCK, "N4: a process that cannot be heard any more is lost for waits"),
        ("net_death.pml", "is_broken[number] && empty(ready[number]) ->", "is_broken[number] ->", ASSERTION,
         "N4: earlier messages have been served"),
        ("net_death.pml", "        has_ended[number] = true;\n        answers[other]", "        answers[other]", ASSERTION,
         "a process that has said goodbye is not lost"),
        ("net_death.pml", "        has_request[number] = false /* the leaving process owes no answer */\n", "        skip\n", ASSERTION,
         "and no wait for its answer remains"),
    ]),
    "ticket": (["sync/ticket.h", "sync/ticket.c"], set(), [
        ("ticket_steps.pml", "    fence_full();\n", "", STUCK, "X3 before the check for sleepers"),
        ("ticket_steps.pml", "store_release(SERVING", "store_relaxed(SERVING", ASSERTION, "P1: X3 is a release"),
        ("ticket_steps.pml", "    await(SERVING, SERVING_SLEEPERS, seen == ticket_of(position)); /* X1 */\n", "", ASSERTION,
         "X1: one writer after the other"),
        ("ticket_steps.pml", "    await(DEPARTED, DEPARTED_SLEEPERS, seen == readers_of(position)); /* X2 */\n", "", ASSERTION,
         "X2: the earlier readers have left"),
        ("ticket_steps.pml", "at_least(seen, ticket_of(position))); /* R2 */", "seen == ticket_of(position));", STUCK,
         "R2: serving may have advanced further"),
        ("ticket_steps.pml", "readers_of(position) == 7 && !FAILED -> pass_on() /* R4 */", "false -> pass_on()", STUCK,
         "R4: the reader that wraps passes the ticket on"),
        ("ticket_steps.pml", "    wake(DEPARTED, DEPARTED_SLEEPERS)\n", "    skip\n", STUCK, "R3 wakes the writer"),
        ("ticket_steps.pml", "fetch_add(DEPARTED, 1, 8); /* R3 */", "fetch_add_relaxed(DEPARTED, 1, 8);", ASSERTION,
         "R3 is a release: the writer sees a reader's stores"),
    ]),
    "lock_all_gate": (["sync/lock_all_gate.h", "sync/lock_all_gate.c"], set(), [
        ("lock_all_gate_steps.pml", "seen == 0) /* G4 */", "true)", ASSERTION, "G4: the readers inside have left"),
        ("lock_all_gate_steps.pml", "drained && memory[GATE_WRITERS] == 0 -> /* G1 */", "drained ->", ASSERTION,
         "G1: no reader enters while a writer is inside"),
        ("lock_all_gate_steps.pml", "drained && memory[GATE_READERS] > 0 -> /* G6 */", "drained ->", ASSERTION,
         "G6: a reader joins readers, not writers"),
        ("lock_all_gate_steps.pml", "    wake(GATE_WRITERS, READER_SLEEPERS)\n", "    skip\n", STUCK, "G5 wakes the readers"),
        ("lock_all_gate_steps.pml", "    wake(GATE_READERS, WRITER_SLEEPERS)\n", "    skip\n", STUCK, "G2 wakes the writers"),
        ("lock_all_gate_steps.pml", "fetch_add(GATE_WRITERS, 7, 8); /* G5 */", "fetch_add_relaxed(GATE_WRITERS, 7, 8);", ASSERTION,
         "G5 is a release"),
        ("lock_all_gate_steps.pml", "fetch_add(GATE_READERS, 7, 8); /* G2 */", "fetch_add_relaxed(GATE_READERS, 7, 8);", ASSERTION,
         "G2 is a release: the writer sees a reader's stores"),
        ("lock_all_gate.pml", "enter_writer(held > 0)", "enter_writer(false)", STUCK, "a writer that is inside is not courteous"),
        ("lock_all_gate_steps.pml", "        signal(ADMISSIONS, ADMISSIONS_SLEEPERS);\n", "        skip;\n", STUCK,
         "admissions end courtesy"),
    ]),
    "lock": (["sync/lock.h", "sync/lock_all_gate.h", "sync/ticket.h"], {"L1", "L2", "L3"}, [  # these serve internode/origin/liveness.c: deaths
        ("lock.pml", "    lock_writer();\n", "", ASSERTION, "the gate alone does not exclude two writers"),
        ("lock.pml", "    enter_writer(false); /* L1 is before */\n", "", ASSERTION, "the queue alone does not exclude lock_all"),
        ("lock.pml", "    wake(SERVING, SERVING_SLEEPERS);\n", "", STUCK, "an unlock wakes the queue"),
        ("lock.pml", "    wake(GATE_WRITERS, READER_SLEEPERS);\n", "", STUCK, "an unlock wakes at the gate"),
        ("lock.pml", "    pull_writer();\n    wake(SERVING, SERVING_SLEEPERS);\n",
         "    wake(SERVING, SERVING_SLEEPERS);\n    pull_writer();\n", STUCK, "G5 provides the fence between X3 and the check"),
    ]),
    "lock_death": (["sync/lock.h", "sync/lock_all_gate.h", "sync/ticket.h"], {"L2"}, [
        ("lock_death.pml", "unlock_reader();\n            store_release(ACCESS, 0)",
         "store_seq_cst(ACCESS, 0);\n            unlock_reader()", STUCK, "L3 of a shared lock is after its departure"),
        ("lock_death.pml", "            ticket_leave();\n            pull_writer();\n            store_release(ACCESS, 0);",
         "            store_seq_cst(ACCESS, 0);\n            ticket_leave();\n            pull_writer();", STUCK,
         "L3 of an exclusive lock is after its departure"),
        ("lock_death.pml", "store_seq_cst(ACCESS, ALL);\n            enter_reader();",
         "enter_reader();\n            store_seq_cst(ACCESS, ALL);", STUCK, "L1: a death inside lock_all is detected"),
        ("lock_death.pml", "    :: failed -> leave_writer()\n", "    :: failed\n", STUCK,
         "a rank that gives up after the gate leaves the gate"),
        ("wait_death.pml", ":: limit_comes ->", ":: false ->", STUCK, "a sleep has a limit"),
    ]),
    "pscw": (["sync/pscw.c"], set(), [
        ("pscw.pml", "reached_of_4(wanted)); /* C2 */", "true);", ASSERTION, "C2: a start waits for the post"),
        ("pscw.pml", "reached_of_4(wanted)); /* C4 */", "true);", ASSERTION, "C4: a wait waits for the complete"),
        ("pscw.pml", "fetch_add(POSTS + me, 1, 4); /* C1 */", "fetch_add_relaxed(POSTS + me, 1, 4);", ASSERTION,
         "C1 is a release"),
        ("pscw.pml", "fetch_add(COMPLETES + me, 1, 4); /* C3 */", "fetch_add_relaxed(COMPLETES + me, 1, 4);", ASSERTION,
         "C3 is a release"),
        ("pscw.pml", "        wake(POSTS + me, POSTS_SLEEPERS + me);\n", "", STUCK, "C1 wakes"),
        ("pscw.pml", "reached_of_4(wanted)); /* C2 */", "seen == wanted && seen != 0);", STUCK, "counters wrap"),
    ]),
    "pscw_death": (["sync/pscw.c"], set(), [
        ("wait_death.pml", ":: limit_comes ->", ":: false ->", STUCK, "a sleep has a limit"),
        ("pscw_death.pml", "#define lost_peer(peer) ((peer == VICTIM && is_gone) || load(ABANDONED + peer) != 0)",
         "#define lost_peer(peer) (peer == VICTIM && is_gone)", STUCK, "a living rank that has left the window does not arrive"),
        ("pscw_death.pml", "#define lost_peer(peer) ((peer == VICTIM && is_gone) || load(ABANDONED + peer) != 0)",
         "#define lost_peer(peer) (load(ABANDONED + peer) != 0)", STUCK, "a dead rank does not arrive"),
        ("pscw_death.pml", ":: failed -> store_release(ABANDONED + me, 1)", ":: failed", STUCK,
         "a rank that gives up notifies the ranks that wait for it"),
        ("pscw_death.pml", "watched = origin;", "watched = target;", STUCK, "C4 watches the origin"),
        ("wait_death.pml", ":: lost -> failed", ":: true -> failed", ASSERTION, "a wait for a living rank continues"),
        ("pscw_death.pml", "reached_of_4(wanted)); /* C2 */", "true);", ASSERTION, "C2: a start waits for the post"),
        ("pscw_death.pml", "fetch_add(COMPLETES + me, 1, 4); /* C3 */", "fetch_add_relaxed(COMPLETES + me, 1, 4);", ASSERTION,
         "C3 is a release, also before a death"),
    ]),
    "pscw_internode": (["sync/pscw.c", "internode/origin/origin_epochs.c"], set(), [
        ("pscw_internode.pml", "reached_of_4((completes + 1) % 4)); /* C2 */", "true);", ASSERTION, "C2: a start waits for the post"),
        ("pscw_internode.pml", "reached_of_4(posts)); /* C4 */", "true);", ASSERTION, "C4: a wait waits for the complete"),
        ("pscw_internode.pml", "posts = (posts + 1) % 4; /* C1 */", "skip;", ASSERTION, "C1: the posting rank counts it, too"),
        ("pscw_internode.pml", "completes = (completes + 1) % 4; /* C3 */", "skip;", ASSERTION, "C3: and so does the completing rank"),
        ("pscw_internode.pml", "        device_put[1 - me] == 0; /* D1 */\n", "", ASSERTION,
         "D1: device puts arrive before the complete"),
        ("pscw_internode.pml", """        put();
        device_put[1 - me] == 0; /* D1 */
        send_message(COMPLETE, 0);
""", """        send_message(COMPLETE, 0);
        put();
        device_put[1 - me] == 0;
""", ASSERTION, "C3: a complete is sent after the operations"),
        ("pscw_internode.pml", "    atomic { drained; messages[1 - me] ! what, value }", "    messages[1 - me] ! what, value", ASSERTION,
         "C1: a post is sent after earlier stores"),
        ("pscw_internode.pml", "fetch_add(COMPLETES + here, 1, 4);", "fetch_add_relaxed(COMPLETES + here, 1, 4);", ASSERTION,
         "the agent counts a complete by a release"),
        ("pscw_internode.pml", "            wake(POSTS + here, POSTS_SLEEPERS + here)\n", "            skip\n", STUCK,
         "the agent wakes ranks that wait for a post"),
        ("pscw_internode.pml", "            wake(COMPLETES + here, COMPLETES_SLEEPERS + here)\n", "            skip\n", STUCK,
         "and for a complete"),
        ("pscw_internode.pml", "reached_of_4((completes + 1) % 4)", "(seen == (completes + 1) % 4 && seen != 0)", STUCK,
         "counters wrap"),
    ]),
    "pscw_internode_death": (["sync/pscw.c", "internode/origin/origin_epochs.c"], set(), [
        ("pscw_internode_death.pml", "#define lost(peer) ((peer == VICTIM && dead) || has_left[peer])",
         "#define lost(peer) (peer == VICTIM && dead)", STUCK, "a living rank that has left the window does not arrive"),
        ("pscw_internode_death.pml", "#define lost(peer) ((peer == VICTIM && dead) || has_left[peer])",
         "#define lost(peer) (has_left[peer])", STUCK, "a dead rank does not arrive"),
        ("pscw_internode_death.pml", ":: failed -> has_left[number] = true", ":: failed", STUCK,
         "a rank that gives up answers the ranks that ask"),
        ("pscw_internode_death.pml", "        watched = origin_of(number);\n        if\n",
         "        watched = target_of(number);\n        if\n", STUCK, "C4 watches the origin"),
        ("pscw_internode_death.pml", ":: lost(watched) -> failed = true", ":: true -> failed = true", ASSERTION,
         "a wait for a living rank continues"),
        ("pscw_internode_death.pml", "await(reached_of_4(posts_here[number], (completes + 1) % 4)) /* C2 */", "true", ASSERTION,
         "C2: a start waits for the post"),
        ("pscw_internode_death.pml", ":: device_put[number] == 0 /* D1 */", ":: true", ASSERTION,
         "D1: device puts arrive before the complete, also before a death"),
        ("pscw_internode_death.pml", """            :: dead && watched == VICTIM -> failed = true
            fi
        fi;
""", """            fi
        fi;
""", STUCK, "D1: except if their target is lost"),
        ("pscw_internode_death.pml", ":: to_target[origin_of(number)] ? COMPLETE, value ->",
         ":: to_target[origin_of(number)] ?? COMPLETE, value ->", ASSERTION, "a complete arrives after the operations"),
    ]),
    "pscw_counters": (["sync/pscw_counters.c"], set(), [
        ("pscw_counters.pml",
         "    store_release(PLACE(table, i, capacity), peer + 1); /* N2 */\n    signal(MADE, MADE_SLEEPERS) /* N3 */\n",
         "    signal(MADE, MADE_SLEEPERS);\n    store_release(PLACE(table, i, capacity), peer + 1)\n", STUCK, "P1: N2 before N3"),
        ("pscw_counters.pml", "    :: made = load_shared(MADE); /* F1 */\n        find();\n",
         "    :: find();\n        made = load_shared(MADE);\n", STUCK, "P1: F1 before F2"),
        ("pscw_counters.pml", "store_release(NEWEST, 2); /* N1 */", "store_relaxed(NEWEST, 2);", ASSERTION,
         "N1: a table is published as a whole"),
        ("pscw_counters.pml", "table = (table == 2 -> load(OLDER_OF_SECOND) : 0)", "table = 0", STUCK,
         "F2: older tables are searched"),
    ]),
    "barrier": (["sync/barrier.c"], {"M1"}, [  # several nodes: barrier_internode
        ("barrier.pml", "arrivals) /* B2 */", "(arrivals + 7) % 8)", ASSERTION, "B2: a rank waits for all"),
        ("barrier.pml", "fetch_add(ARRIVALS, 1, 8); /* B1 */", "fetch_add_relaxed(ARRIVALS, 1, 8);", ASSERTION,
         "B1 is a release"),
        ("barrier.pml", "-> wake(ARRIVALS, SLEEPERS)", "-> skip", STUCK, "the last arrival wakes"),
        ("barrier.pml", "arrivals = (arrivals + PROCESSES) % 8;", "arrivals = (FIRST + PROCESSES) % 8;", ASSERTION,
         "each barrier requires n arrivals more"),
    ]),
    "barrier_death": (["sync/barrier.c"], {"M1"}, [
        ("wait_death.pml", ":: limit_comes ->", ":: false ->", STUCK, "a sleep has a limit"),
        ("wait_death.pml", ":: lost -> failed", ":: false -> failed", STUCK, "a wait for a dead rank detects it"),
        ("wait_death.pml", ":: lost -> failed", ":: true -> failed", ASSERTION, "a wait for a living rank continues"),
        ("barrier_death.pml", ":: load_shared(BROKEN) != 0 -> failed = true", ":: false -> failed = true", ASSERTION,
         "later calls return the error at once"),
        ("barrier_death.pml", "memory[BROKEN] = 1 /* before it returns */", "skip", ASSERTION,
         "a rank that leaves publishes it before it returns"),
        ("barrier_death.pml", "fetch_add(ARRIVALS, 1, 8); /* B1 */", "fetch_add_relaxed(ARRIVALS, 1, 8);", ASSERTION,
         "B1 is a release, also before a death"),
        ("barrier_death.pml", "-> wake(ARRIVALS, SLEEPERS)", "-> skip", STUCK, "the last arrival wakes"),
    ]),
    "barrier_internode": (["sync/barrier.c"], set(), [
        ("barrier_internode.pml", "(was + 2) % 8 == arrivals -> /* M1 */", "(was + 2) % 8 == arrivals || here == 2 ->", ASSERTION,
         "M1: the last rank of a node meets the others"),
    ]),
    "barrier_rounds": (["internode/origin/origin_sync.c"], {"D1", "F1", "F2", "F3", "J2", "J3"}, [  # flushes and locks
        ("barrier_rounds.pml", "        meet_round(1, 2);\n", "", ASSERTION, "as many rounds as all nodes require"),
        ("barrier_rounds_steps.pml", "at_least(seen, times) -> break", "seen > 0 -> break", ASSERTION,
         "each barrier has messages of its own"),
        ("barrier_rounds_steps.pml", "at_least(seen, times) -> break", "seen == times -> break", STUCK,
         "a message of the next barrier may come early"),
    ]),
    "flush": (["internode/origin/origin_sync.c", "internode/origin/origin_epochs.c"], {"J2", "J3"}, [  # of locks
        ("flush.pml", "    await_arrivals(); /* D1 */\n", "", ASSERTION, "D1: an unlock is sent when all puts have arrived"),
        ("flush.pml", "    :: put = put | bit(number);\n        put_flag = true /* F1 */\n",
         "    :: put_flag = true;\n        put = put | bit(number)\n", ASSERTION, "F1: a put is marked after it has begun"),
        ("flush.pml", "    :: messages ! number;\n        message_flag = true /* F1 */\n",
         "    :: message_flag = true;\n        messages ! number\n", ASSERTION, "F1: a message is marked after it was sent"),
        ("flush.pml", "    :: atomic { put_flag -> put_flag = false }; /* F2 */\n        known = put /* F3 */\n",
         "    :: put_flag ->\n        known = put;\n        put_flag = false\n", ASSERTION, "F2 before F3, for puts"),
        ("flush.pml", "    :: atomic { message_flag -> message_flag = false }; /* F2 */\n        ask(FLUSH)\n",
         "    :: message_flag ->\n        ask(FLUSH);\n        message_flag = false\n", ASSERTION, "F2 before F3, for messages"),
        ("flush.pml", "inline flush()\n{\n    atomic { !is_flushing; is_flushing = true };\n",
         "inline flush()\n{\n    skip;\n", ASSERTION, "a second flush waits for the first"),
    ]),
    "lazy_lock": (["internode/origin/lazy_lock.c", "internode/target/target_sync.c"], {"J2", "J5", "T1", "G3", "H6"}, [  # lock_all, the queue, the gate and holders
        ("lazy_lock.pml", "-> deferred[at(t, o)] ! what /* K2 */", "-> serve(t, o, what)", ASSERTION, "K2: early operations are deferred"),
        ("lazy_lock.pml", "        :: deferred[at(t, o)] ? what -> serve(t, o, what) /* K2 */\n        :: empty(deferred[at(t, o)]) -> break\n",
         "        :: break\n", ASSERTION, "K2: and executed when the lock is acquired"),
        ("lazy_lock.pml", "            is_shut[at(t, o)] = true; /* K3 */\n", "", ASSERTION, "K3: a refused lock blocks its epoch"),
        ("lazy_lock.pml", "is_shut[at(t, o)] = false; answered", "answered", ASSERTION, "K3: up to its unlock"),
        ("lazy_lock.pml", "    settle(0); /* K4 */\n", "", STUCK, "K4: no other lock is requested before the answer"),
    ]),
    "lock_all_queue": (["internode/target/lock_all_queue.c", "internode/origin/origin_sync.c", "sync/ticket.h", "sync/ticket.c"], {"D1", "F1", "F2", "F3", "R4"}, [
        ("lock_all_queue.pml", "at[t].count && in_turn && is_followed", "at[t].count && is_followed", STUCK,
         "J1: an operation waits for no other epoch"),
        ("lock_all_queue.pml", "at[t].count && in_turn && is_followed", "at[t].count && false && is_followed", ASSERTION,
         "J4: a lock that waits for its turn is queued after the writers"),
        ("lock_all_queue.pml", "followed[t] = is_followed(t, where) /* J2 */", "skip", ASSERTION,
         "J2: an epoch is notified of a writer that waits for it"),
        ("lock_all_queue.pml", ":: followed[1] -> acquire(1, true) /* J3 */", ":: false -> skip", ASSERTION,
         "J3: a writer is overtaken once"),
        ("lock_all_queue.pml", """        :: followed[0] -> acquire(0, true) /* J3 */
        :: else
        fi;
        if
        :: followed[1] -> acquire(1, true) /* J3 */
""", """        :: followed[origin] -> acquire(origin, true)
        :: else
        fi;
        if
        :: followed[1 - origin] -> acquire(1 - origin, true)
""", STUCK, "J3: lock_all acquires by rank"),
    ]),
    "lock_all_queue_windows": (["internode/target/lock_all_queue.c", "internode/origin/origin_sync.c", "sync/ticket.h", "sync/ticket.c"], {"D1", "F1", "F2", "F3", "R4"}, [
        ("lock_all_queue.pml", "in_turn && where != nth(t, 0) &&", "false &&", STUCK, "J5: a lock that has waited long joins"),
        ("lock_all_queue.pml", "        moved[where]++;\n", "        positions[where].members--;\n        at[t].departed++;\n", ASSERTION,
         "J5: its own position is left when its turn has come"),
        ("lock_all_queue.pml", "        moved[where]++;\n", "", STUCK, "J5: its own position is left"),
    ]),
    "atomic_mode": (["sync/atomic_mode.h", "sync/atomic_mode.c"], {"W1", "W2"}, [  # swaps: atomic_mode_wide
        ("atomic_mode.pml", "    store_seq_cst(SLOT + me, 1); /* S1 */\n    if\n", "    store_release(SLOT + me, 1);\n    if\n",
         ASSERTION,
         "P1: S1 before the check of bulk_targets"),
        ("atomic_mode.pml", "        store_seq_cst(SLOT + me, 1); /* S1 */\n        if\n",
         "        store_release(SLOT + me, 1);\n        if\n",
         ASSERTION, "P1: S1 before the check of bulk"),
        ("atomic_mode.pml", "store_seq_cst(BULK + target, 1);", "store_release(BULK + target, 1);", ASSERTION, "P1: B1 before B2"),
        ("atomic_mode.pml", "        load(SLOT) == 0; /* B2 */\n", "", ASSERTION, "B2: singles that are inside have left"),
        ("atomic_mode.pml", "load(BULK + target) == 0 -> /* S2 */", "true ->", ASSERTION, "S2: a single checks bulk"),
        ("atomic_mode.pml", "    unlock(target)\n}\n\nactive [2] proctype single",
         "    memory[LOCK + target] = 0\n}\n\nactive [2] proctype single",
         ASSERTION, "P2: the unlock publishes a bulk update"),
    ]),
    "holder_epochs": (["sync/holder_epochs.c"], set(), [
        ("holder_epochs.pml", "store_seq_cst(STATE + me, SHARED); /* H4 */", "store_release(STATE + me, SHARED);", ASSERTION,
         "P1: H4 before H5"),
        ("holder_epochs.pml", "    :: load_shared(WITHDRAWN) != 0 -> /* H5 */", "    :: false ->", ASSERTION, "P1: H5 checks again"),
        ("holder_epochs.pml", "store_seq_cst(STATE + me, WAITING); /* H1 */", "store_release(STATE + me, WAITING);", ASSERTION,
         "P2: H1 before H2"),
        ("holder_epochs.pml", "    :: load_shared(WITHDRAWN) != 0 -> refused[me] = true /* H2 */\n", "    :: false\n", ASSERTION,
         "P2: H2 checks"),
        ("holder_epochs.pml", "    search(WAITING);\n", "", ASSERTION, "W2: open epochs are waited for"),
        ("holder_epochs.pml", "    search(NONE);\n", "", ASSERTION, "W2: lock calls are waited for, too"),
        ("holder_epochs.pml", "-> signal(LEFT, SLEEPERS)", "-> skip", STUCK, "P3: H6 wakes the owner"),
        ("holder_epochs.pml", "store_seq_cst(STATE + me, NONE); /* H6 */", "store_relaxed(STATE + me, NONE);", ASSERTION,
         "P4: H6 publishes the epoch"),
        ("holder_epochs.pml", "    :: left = load_shared(LEFT); /* W2 */\n        if\n        :: load(STATE) > limit || load(STATE + 1) > limit -> ",
         "    :: if\n        :: load(STATE) > limit || load(STATE + 1) > limit -> left = load_shared(LEFT); ", STUCK,
         "P3: W2 loads left first"),
    ]),
    "atomic_mode_wide": (["sync/atomic_mode.h", "sync/atomic_mode.c", "rma/accumulate.c", "rma/accumulate_layouts.c"], set(), [
        ("atomic_mode_wide.pml", "        lock();\n        store_release(WIDE, 1); /* W1 */\n        unlock()\n",
         "        store_release(WIDE, 1) /* W1 */\n", ASSERTION, "W1: plain updates before it have ended"),
        ("atomic_mode_wide.pml", "load(WIDE) == 1 && load(BULK) == 0 -> /* W2 */", "false -> /* W2 */", ASSERTION,
         "W2: later ones keep swaps out"),
        ("atomic_mode_wide.pml", "        load(SLOT) == 0; /* B2 */\n", "", ASSERTION, "B2: swaps that are inside have left"),
        ("atomic_mode_wide.pml", "        store_seq_cst(BULK, 1);\n", "        store_release(BULK, 1);\n", ASSERTION, "B1 before B2"),
        ("atomic_mode_wide.pml", "load(BULK) == 0 -> /* S2 */", "true ->", ASSERTION, "S2: a swap checks bulk"),
    ]),
    "atomic_mode_internode": (["internode/target/target_rma.c", "sync/atomic_mode.h", "sync/atomic_mode.c"], {"W1", "W2"}, [
        ("atomic_mode_internode.pml", "load(SLOT + AGENT) == 0; /* B2 */\n", "true; /* B2 */\n", ASSERTION,
         "B2: singles from other nodes are in the agent's slot"),
        ("atomic_mode_internode.pml", "    store_seq_cst(SLOT + me, 1); /* S1 */\n    if\n    :: load_shared",
         "    store_release(SLOT + me, 1);\n    if\n    :: load_shared", ASSERTION, "S1 before S2, also in the agent"),
        ("atomic_mode_internode.pml", "load(BULK) == 0 -> /* S2 */", "true ->", ASSERTION, "S2: a single checks bulk"),
        ("atomic_mode_internode.pml", "        store_seq_cst(BULK, 1);\n", "        store_release(BULK, 1);\n", ASSERTION, "B1 before B2"),
        ("atomic_mode_internode.pml", "    lock();\n    was = load(WIDE);\n", "    was = load(WIDE);\n    lock();\n", ASSERTION,
         "elements without an instruction are read under the lock"),
        ("atomic_mode_internode.pml", "    atomic { drained -> memory[LOCK] = 0 }", "    memory[LOCK] = 0", ASSERTION,
         "the next holder sees the update, on any node"),
        ("atomic_mode_internode.pml", "answers[from] ! was", "answers[from] ! was + 1", ASSERTION, "an answer has the previous value"),
        ("atomic_mode_internode.pml", ":: messages[0] ? what, is_asked ->",
         ":: messages[0] ?? MANY, is_asked -> what = MANY; from = 0\n        :: messages[0] ? what, is_asked ->", ASSERTION,
         "one origin's updates execute in its order"),
    ]),
    "accumulate_mutex": (["sync/accumulate_mutex.c"], set(), [
        ("accumulate_mutex_steps.pml", "try_lock(ASLEEP + me + 1)", "try_lock(me + 1)", STUCK,
         "a process that has slept acquires the lock with asleep set"),
        ("accumulate_mutex_steps.pml", "seen >= ASLEEP\n", "true\n", STUCK, "M2: the word records that a process sleeps"),
        ("accumulate_mutex_steps.pml", "atomic { drained; was = memory[WORD]; memory[WORD] = 0 }; /* M3 */",
         "atomic { was = memory[WORD]; memory[WORD] = 0 };", ASSERTION, "M3 is a release"),
        ("accumulate_mutex_steps.pml", "-> futex_wake_one(WORD)", "-> skip", STUCK, "M3 wakes"),
    ]),
    "accumulate_mutex_death": (["sync/accumulate_mutex.c"], set(), [
        ("accumulate_mutex_death.pml", ":: dead && !looked ->", ":: false ->", STUCK,
         "a sleep has a limit"),
        ("accumulate_mutex_death.pml", "asleep[me] = 0; /* the limit */\n        seen = load_shared(WORD);", "asleep[me] = 0;", STUCK,
         "the process under the liveness check holds the lock now"),
        ("accumulate_mutex_death.pml", ":: names_dead(seen) -> failed = true", ":: false -> failed = true", STUCK,
         "a wait for a dead process detects it"),
        ("accumulate_mutex_death.pml", ":: names_dead(seen) -> failed = true", ":: true -> failed = true", ASSERTION,
         "a wait for a living process continues"),
        ("accumulate_mutex_steps.pml", "atomic { drained; was = memory[WORD]; memory[WORD] = 0 }; /* M3 */",
         "atomic { was = memory[WORD]; memory[WORD] = 0 };", ASSERTION, "M3 is a release, also before a death"),
    ]),
}

STEP = re.compile(r"/\* ((?:[A-Z]\d, )*[A-Z]\d)\b(?! and)")


class Failure(Exception):
    pass


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def steps(text):
    return {step for found in STEP.findall(text) for step in found.split(", ") if step[0] != "P"}


def check_steps(name):
    sources, left_out, _ = MODELS[name]
    texts = [read(os.path.join(TREE, "src", source)) for source in sources]
    model = read(os.path.join(HERE, name + ".pml"))
    own = "".join(read(os.path.join(HERE, f)) for f in re.findall(r'#include "(\w+\.pml)"', model)) + model
    of_code = set().union(*(steps(text) for text in texts)) - left_out
    missing = of_code - steps(own)
    if missing:
        raise Failure(f"steps of {', '.join(sources)} that {name}.pml lacks: {' '.join(sorted(missing))}")
    everywhere = " ".join(texts)
    unknown = [step for step in steps(model) - left_out if not re.search(rf"\b{step}\b", everywhere)]
    if unknown:
        raise Failure(f"steps of {name}.pml that {', '.join(sources)} lack: {' '.join(sorted(unknown))}")


def run(command, folder):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)}: {result.stdout}{result.stderr}")
    return result.stdout


def search(name, folder, defines, optimise):
    """The output of spin's search."""
    run(["spin", *defines, "-a", name + ".pml"], folder)
    run(["cc", optimise, "-w", "-DCOLLAPSE", "-o", "pan", "pan.c"], folder)
    output = run(["./pan", "-m100000", "-w22"], folder)
    cut_short = "max search depth too small" in output or "out of memory" in output
    if cut_short or "errors:" not in output or ("Search not completed" in output and "errors: 0" in output):
        raise Failure(f"{name}.pml: the search is not complete\n{output}")
    return output


def found_error(output):
    return next((line for line in output.splitlines() if line.startswith("pan:1:")), None)


def check_model(name, folder, defines):
    output = search(name, folder, defines, "-O1")
    error = found_error(output)
    if error is not None:
        trail = subprocess.run(["spin", "-t", "-p", "-g", name + ".pml"], cwd=folder, capture_output=True, text=True, check=False)
        raise Failure(f"{name}.pml: {error}\n{trail.stdout[-6000:]}")
    output_of_living = re.sub(r"(?ms)^unreached in proctype victim$.*?(?=^unreached|\Z)", "", output)  # the victim never sees a death
    if "unreached in " not in output_of_living:
        raise Failure(f"{name}.pml: the search does not say what it reached\n{output}")
    unreached = [line.strip() for line in output_of_living.splitlines()
                 if re.match(r"\t\S+, state ", line) and '"-end-"' not in line]
    if unreached:
        raise Failure(f"{name}.pml: never reached: {'; '.join(unreached)}")
    return re.search(r"(\d\S*) states, stored", output).group(1)


def check_mutant(name, folder, mutant, defines):
    path, text, replacement, error, removed = mutant
    unchanged = read(os.path.join(HERE, path))
    if unchanged.count(text) != 1:
        raise Failure(f"BROKEN    {name}: {removed}: the text is found {unchanged.count(text)} times in {path}")
    with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
        file.write(unchanged.replace(text, replacement))
    output = found_error(search(name, folder, defines, "-O0"))
    shutil.copy(os.path.join(HERE, path), folder)
    if output is None or error not in output or "invalid array index" in output:
        raise Failure(f"SURVIVED  {name}: {removed}: {output}")
    return f"noticed   {name}: {removed} ({error}, {re.search(r'at depth [0-9]+', output).group()})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("-D", action="append", default=[], help="define a larger model: NAME=VALUE")
    parser.add_argument("--mutants", action="store_true", help="check the mutants instead of the model")
    arguments = parser.parse_args()
    if shutil.which("spin") is None:
        print("SKIP: no spin")
        return 77
    name = arguments.model
    failures = 0
    with tempfile.TemporaryDirectory(prefix="oriel-model-") as folder:
        for file in os.listdir(HERE):
            if file.endswith(".pml"):
                shutil.copy(os.path.join(HERE, file), folder)
        defines = ["-D" + define for define in arguments.D]
        if arguments.mutants:
            checks = [lambda mutant=mutant: check_mutant(name, folder, mutant, defines) for mutant in MODELS[name][2]]
        else:
            checks = [lambda: check_steps(name) or f"steps     {name}: as in the code",
                      lambda: f"holds     {name}: {check_model(name, folder, defines)} states"]
        for check in checks:
            try:
                print(check(), flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failures += 1
                print(failure, flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
