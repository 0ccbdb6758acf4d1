"""Mutants of locks, PSCW and atomics on one node.

mutants.py describes a row."""
LOCKS = [
    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, oriel_ticket_number(place), watch); /* X1, P1 */",
                        "ORIEL_WAIT_AT_LEAST, oriel_ticket_number(place) - 1, watch);")],
     "ticket", "ticket_p1_publishes_stores", "X1: a writer waits for the writers before it"),
    ("sync/ticket.c", [("ORIEL_WAIT_EQUAL, readers, watch); /* X2, P2 */", "ORIEL_WAIT_NOT_EQUAL, readers + 1, watch);")],
     "ticket", "ticket_excludes", "X2: a writer waits for the readers before it"),
    ("sync/ticket.h", [("oriel_load_acquire(&lock->departed) == oriel_ticket_readers(place);",
                        "oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place) + 1;")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "X2: the start of an exclusive lock checks the readers"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */", "ORIEL_WAIT_AT_LEAST, ticket - 1, watch);")],
     "ticket", "ticket_excludes", "R2: a reader waits for all writers before it"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */", "ORIEL_WAIT_EQUAL, ticket, watch);")],
     "ticket", "ticket_shares_across_the_wrap", "R2: a late reader has not missed its turn"),
    ("sync/ticket.c", [("ORIEL_WAIT_AT_LEAST, ticket, watch); /* R2, P1 */",
                        "ORIEL_WAIT_AT_LEAST, ticket, watch);\n"
                        "    status = oriel_wait(&lock->departed, &lock->departed_sleepers, ORIEL_WAIT_EQUAL, "
                        "oriel_ticket_readers(place), watch);")],
     "ticket", "ticket_shares", "R2: a reader does not wait for readers"),
    ("sync/ticket.c", [("    uint32_t ticket = oriel_ticket_number(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place)) {\n"
                        "        (void)oriel_wait(&lock->serving, &lock->serving_sleepers, ORIEL_WAIT_AT_LEAST, "
                        "oriel_ticket_number(place), watch);\n"
                        "        oriel_ticket_depart(lock);\n        oriel_delay();\n        place = oriel_ticket_enter_reader(lock);\n    }\n"
                        "    uint32_t ticket = oriel_ticket_number(place);\n")],
     "ticket", "ticket_overtakes_no_rank", "a reader that must wait retains its position"),
    ("sync/ticket.c", [("    uint32_t readers = oriel_ticket_readers(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place)) {\n"
                        "        if (oriel_load_acquire(&lock->serving) == oriel_ticket_number(place)) {\n"
                        "            ticket_pass_on(lock);\n            oriel_delay();\n            place = oriel_ticket_draw(lock);\n        }\n"
                        "        oriel_delay();\n    }\n"
                        "    uint32_t readers = oriel_ticket_readers(place);\n")],
     "ticket", "ticket_overtakes_no_rank", "a writer that must wait for readers retains its position"),
    ("sync/ticket.c", [("    uint32_t readers = oriel_ticket_readers(place);\n",
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           oriel_load_acquire(&lock->departed) != oriel_ticket_readers(place)) {\n"
                        "        if (oriel_load_acquire(&lock->serving) == oriel_ticket_number(place)) {\n"
                        "            ticket_pass_on(lock);\n            oriel_delay();\n            place = oriel_ticket_draw(lock);\n        }\n"
                        "        oriel_delay();\n    }\n"
                        "    uint32_t readers = oriel_ticket_readers(place);\n")],
     "lock", "waiting_lock_is_not_overtaken", "an exclusive lock that must wait retains its position"),
    ("sync/ticket.c", [("        ticket_pass_on(lock); /* R4 */", "        (void)lock;")],
     "ticket", "ticket_counts_across_the_wrap", "R4: the ticket that a wrap makes is passed on"),
    ("sync/ticket.c", [("        ticket_pass_on(lock); /* R4 */",
                        "    {\n        status = oriel_ticket_await(lock, place, watch);\n        ticket_pass_on(lock);\n    }")],
     "ticket", "ticket_shares_across_the_wrap", "R4: the reader that passes it on waits for no other reader"),
    ("sync/ticket.c", [("    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))",
                        "    oriel_ticket_depart(lock);\n"
                        "    if (status == ORIEL_OK && oriel_unlikely(oriel_ticket_readers(place) == UINT32_MAX))"),
                       ("        oriel_ticket_depart(lock);\n}", "        (void)lock;\n}")],
     "ticket", "ticket_excludes", "R3: a reader departs when it leaves, not when it enters"),
    ("sync/ticket.h", [("    oriel_wake(&lock->serving, &lock->serving_sleepers);\n", "    (void)lock;\n")],
     "ticket", "ticket_wakes_sleepers", "X3 wakes"),
    ("sync/ticket.h", [("    oriel_wake(&lock->departed, &lock->departed_sleepers);\n", "")],
     "ticket", "ticket_wakes_sleepers", "R3 wakes the writer queued after the readers"),
    ("sync/ticket.h", [("    atomic_fetch_add_explicit(&lock->departed, 1, memory_order_seq_cst); /* R3, P2 */",
                        "    uint32_t departed = oriel_load_relaxed(&lock->departed);\n    oriel_delay();\n"
                        "    oriel_store_release(&lock->departed, departed + 1);")],
     "ticket", "ticket_excludes", "R3: readers leave at the same time"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, UINT64_C(1) << 32, memory_order_relaxed); /* T1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    atomic_store(&lock->queue, place + (UINT64_C(1) << 32));\n    return place;")],
     "ticket", "ticket_p1_publishes_stores", "T1: each ticket has one owner"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, UINT64_C(1) << 32, memory_order_relaxed); /* T1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n"
                        "    while (oriel_load_acquire(&lock->serving) != oriel_ticket_number(place) ||\n"
                        "           !atomic_compare_exchange_weak(&lock->queue, &place, place + (UINT64_C(1) << 32))) {\n"
                        "        place = atomic_load(&lock->queue);\n        oriel_delay();\n    }\n    return place;")],
     "ticket", "ticket_is_fifo", "T1: a waiting rank has a ticket"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed); /* R1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    atomic_store(&lock->queue, place + 1);\n    return place;")],
     "ticket", "ticket_excludes", "R1: every reader counts"),
    ("sync/ticket.h", [("    return atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed); /* R1 */",
                        "    uint64_t place = atomic_load(&lock->queue);\n    oriel_delay();\n"
                        "    return place - (uint32_t)place +\n"
                        "           (uint32_t)atomic_fetch_add_explicit(&lock->queue, 1, memory_order_relaxed);")],
     "ticket", "ticket_excludes", "R1: a reader counts at the position at which it has checked for writers"),

    ("sync/lock_all_gate.c", [("while ((uint32_t)word == 0) {", "while (word < UINT64_MAX) {")],
     "lock_all_gate", "gate_g1_g4_lock_all_and_exclusive_exclude_each_other", "G1: a reader checks for writers"),
    ("sync/lock_all_gate.c", [("    while ((uint32_t)word == 0) {\n        oriel_delay();\n"
                      "        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER, "
                      "memory_order_seq_cst,\n"
                      "                                                  memory_order_relaxed))\n"
                      "            return true;\n    }\n    return false;",
                      "    if ((uint32_t)word != 0)\n        return false;\n    oriel_delay();\n"
                      "    atomic_fetch_add_explicit(&gate->word, ORIEL_GATE_READER, memory_order_seq_cst);\n    return true;")],
     "lock_all_gate", "gate_g1_g4_lock_all_and_exclusive_exclude_each_other", "G1: check and count are one step"),
    ("sync/lock_all_gate.h", [("memory_order_seq_cst) < ORIEL_GATE_READER;", "memory_order_seq_cst) < UINT64_MAX;")],
     "lock_all_gate", "gate_g1_g4_lock_all_and_exclusive_exclude_each_other", "G4: a writer waits for the readers"),
    ("sync/lock_all_gate.h", [("    return atomic_fetch_add_explicit(&gate->word, ORIEL_GATE_WRITER, memory_order_seq_cst) < "
                      "ORIEL_GATE_READER;",
                      "    uint64_t before = atomic_load(&gate->word);\n    while (before >= ORIEL_GATE_READER ||\n"
                      "           !atomic_compare_exchange_weak(&gate->word, &before, before + ORIEL_GATE_WRITER))\n"
                      "        before = atomic_load(&gate->word);\n    return true;")],
     "lock_all_gate", "gate_readers_do_not_starve_writers", "G3: a waiting writer delays new readers"),
    ("sync/lock_all_gate.c", [("    if (!nested)\n", "    if (!nested && watch == NULL)\n")],
     "lock_all_gate", "gate_writers_do_not_starve_readers", "courtesy: writers let waiting readers enter first"),
    ("sync/lock_all_gate.c", [("    (void)context;\n    return ORIEL_E_AGAIN;", "    (void)context;\n    return ORIEL_OK;")],
     "lock_all_gate", "gate_courtesy_ends", "courtesy ends after 100 ms"),
    ("sync/lock_all_gate.c", [("    if (!nested)\n", "    if (!nested || watch != NULL)\n")],
     "lock_all_gate", "gate_nested_writer_does_not_wait_for_readers", "a writer for which a rank waits is not courteous"),
    ("sync/lock_all_gate.c", [("            inside = try_join_readers(gate);\n", "            inside = false;\n")],
     "lock_all_gate_joins", "gate_g6_lets_readers_join_readers", "G6: a reader whose patience has ended joins those inside"),
    ("sync/lock_all_gate.c", [("    while (word >= ORIEL_GATE_READER) {", "    while (word != 0) {")],
     "lock_all_gate_joins", "gate_g6_lets_readers_join_no_writer", "G6: it joins no one else"),
    ("sync/lock_all_gate.c", [("            atomic_fetch_add_explicit(&gate->joins, 1, memory_order_relaxed);\n", "")],
     "lock_all_gate_joins", "gate_g6_does_not_starve_writers", "G6: patience grows with each join"),
    ("sync/lock_all_gate.c", [("        atomic_store_explicit(&gate->joins, 0, memory_order_relaxed);\n", "        (void)gate;\n")],
     "lock_all_gate_joins", "gate_g6_lets_readers_join_readers", "patience is short again after a writer has entered"),
    ("internode/origin/liveness.c", [("    watched->patience -= watched->patience > 0;\n", "")],
     "lock_all_gate_joins", "gate_g6_lets_readers_join_readers", "patience ends"),
    ("sync/lock_all_gate.c", [("    oriel_wake(&gate->half.readers, &gate->writer_sleepers);\n", "")],
     "lock_all_gate", "gate_wakes_sleepers", "G2 wakes writers"),
    ("sync/lock_all_gate.h", [("    oriel_wake(&gate->half.writers, &gate->reader_sleepers);\n", "    (void)gate;\n")],
     "lock_all_gate", "gate_wakes_sleepers", "G5 wakes readers"),

    ("sync/lock.h", [("    if (oriel_unlikely(!oriel_gate_push_writer(gate)))",
                      "    if (target == 0 && oriel_unlikely(!oriel_gate_push_writer(gate)))"),
                     ("    oriel_gate_pull_writer(gate); /* G5 */", "    if (target == 0)\n        oriel_gate_pull_writer(gate);")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "every exclusive lock passes the gate"),
    ("sync/lock.h", [("    oriel_gate_pull_writer(gate); /* G5 */", "")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "G5 at every exclusive unlock"),
    ("sync/lock.h", [("    if (oriel_unlikely(!oriel_ticket_is_first(lock, *place)))",
                      "    if (oriel_ticket_is_first(lock, *place + 1))")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "X1, X2: the start of an exclusive lock checks the queue"),
    ("sync/lock.h", [("    if (oriel_unlikely(oriel_gate_has_waiting_readers(gate)))", "    if (window->n < 0)")],
     "lock_all_gate", "gate_writers_do_not_starve_readers", "courtesy begins when a lock begins"),
    ("sync/lock.h", [("oriel_ticket_has_sleepers(lock) || oriel_gate_has_sleeping_readers(gate)",
                      "oriel_ticket_has_sleepers(lock)")],
     "lock_all_gate", "gate_wakes_sleepers", "an exclusive unlock checks for readers that sleep at the gate"),
    ("sync/lock.h", [("oriel_ticket_has_sleepers(lock) || oriel_gate_has_sleeping_readers(gate)",
                      "oriel_gate_has_sleeping_readers(gate)")],
     "lock", "lock_wakes_sleepers", "and for ranks that sleep in the queue"),
    ("sync/lock.h", [("&none, ORIEL_ACCESS_STATE_WAITING,", "&none, ORIEL_ACCESS_STATE_NONE,")],
     "deaths", "killed_waiting_ticket_is_reported", "L1: the access word is set before its owner can block any rank"),
    ("sync/lock.h", [("atomic_store_explicit(access, ORIEL_ACCESS_STATE_EXCLUSIVE, memory_order_release); /* L2 */",
                      "atomic_store_explicit(access, ORIEL_ACCESS_STATE_SHARED, memory_order_release);")],
     "lock", "lock_kinds_exclude_as_in_the_standard", "L2: the access word records the lock that the unlock releases"),
    ("sync/lock.c", [("    oriel_store_release(&window->control->lock_all, 1);\n", "")],
     "deaths", "killed_lock_all_holder_is_reported", "lock_all is announced to ranks that wait for it"),
    ("sync/lock.c", [("at_gate = {oriel_liveness_lock_all_holders,", "at_gate = {oriel_liveness_lock,")],
     "deaths", "killed_lock_all_holder_is_reported", "writers at the gate watch readers"),
    ("sync/lock.c", [("in_queue = {oriel_liveness_lock,", "in_queue = {oriel_liveness_lock_all_holders,")],
     "deaths", "killed_shared_holder_is_reported", "writers in the queue watch the ranks that hold or wait for the lock"),

    ("sync/pscw.c", [("        oriel_event_signal(&posted->partners[i]->posts); /* C1 */",
                      "        if (i > 0)\n            oriel_event_signal(&posted->partners[i]->posts);")],
     "pscw", "pscw_c1_c3_publish_stores", "C1: a post counts for every origin"),
    ("sync/pscw.c", [("        oriel_event_signal(&posted->partners[i]->posts); /* C1 */",
                      "        for (int32_t j = 0; j < window->n; j++)\n"
                      "            if (oriel_pscw_counters_own(window, j) != NULL)\n"
                      "                oriel_event_signal(&oriel_pscw_counters_own(window, j)->posts);")],
     "pscw", "pscw_c1_c3_publish_stores", "C1: a post counts only for its origins"),
    ("sync/pscw.c", [("        status = await_post(window, window->started.partners[i]);",
                      "    {\n        if (window->started.partners[i]->peer == 2 && window->n == 3)\n"
                      "            oriel_pscw_counters_make(window, 2, &window->started.partners[i]);\n"
                      "        status = await_post(window, window->started.partners[i]);\n    }")],
     "pscw", "pscw_matches_by_peer", "C2: a start waits for the posts of its own group"),
    ("sync/pscw.c", [("    if (partners == NULL)\n        return;\n", "")],
     "pscw", "pscw_members_are_cached_for_the_next_epoch", "an epoch of the same group has the members of the last"),
    ("sync/pscw.c", [("    *members = (struct oriel_members){.partners = partners, .count = count};",
                      "    members->partners = partners;\n    members->count = count;")],
     "pscw", "pscw_members_are_cached_for_the_next_epoch", "the handle of the last group does not find members of another"),
    ("sync/pscw.c", [("    if (!locks && !oriel_load_acquire(&window->accessing))", "    if (!locks)")],
     "pscw", "pscw_members_are_cached_for_the_next_epoch", "a start leaves the members unchanged while another thread completes"),
    ("sync/pscw.c", [("    if (!oriel_load_acquire(&window->accessing) ||\n        ", "    if (")],
     "pscw", "pscw_members_are_cached_for_the_next_epoch", "a complete leaves the members unchanged while another thread starts"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */",
                      "oriel_load_relaxed(&own->completes.value), &watch);")],
     "pscw", "pscw_c2_consumes_one_post_for_each_start", "C2: a start waits for one post more than it has consumed"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */", "1, &watch);")],
     "pscw", "pscw_c2_consumes_one_post_for_each_start", "C2: a start consumes its post"),
    ("sync/pscw.c", [("    oriel_store_release(&window->accessing, 0);\n",
                      "    oriel_delay();\n    for (int32_t i = 0; i < targets->count; i++) {\n"
                      "        struct oriel_pscw_counter *own = targets->partners[i];\n"
                      "        own->completes.value = oriel_pscw_counters_theirs(window, own)->posts.value;\n    }\n"
                      "    oriel_store_release(&window->accessing, 0);\n")],
     "pscw", "pscw_stores_early_posts", "C2: an early post is stored"),
    ("sync/pscw.c", [("        oriel_event_signal(&targets->partners[i]->completes); /* C3 */",
                      "        if (i > 0)\n            oriel_event_signal(&targets->partners[i]->completes);")],
     "pscw", "pscw_c1_c3_publish_stores", "C3: a complete counts for every target"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */",
                      "oriel_load_relaxed(&own->posts.value) - 1, &watch);")],
     "pscw", "pscw_c4_consumes_one_complete_for_each_wait", "C4: a wait waits for its completes"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */", "1, &watch);")],
     "pscw", "pscw_c4_consumes_one_complete_for_each_wait", "C4: a wait consumes its completes"),
    ("sync/pscw.c", [("                                                oriel_load_relaxed(&own->posts.value)); /* C4 */",
                      "                                                oriel_load_relaxed(&own->posts.value) - 1);")],
     "pscw", "pscw_c4_consumes_one_complete_for_each_wait", "C4: a test checks for its completes"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->completes.value) + 1, &watch); /* C2 */",
                      "oriel_load_relaxed(&own->completes.value) + 1, NULL);")],
     "deaths", "killed_origin_or_poster_after_an_epoch_is_reported", "a start watches its target"),
    ("sync/pscw.c", [("oriel_load_relaxed(&own->posts.value), &watch); /* C4 */", "oriel_load_relaxed(&own->posts.value), NULL);")],
     "deaths", "killed_origin_is_reported_by_wait_and_test", "a wait watches its origin"),
    ("sync/pscw.c", [("    return oriel_polling_missed(&window->polling) ? oriel_liveness_rank(&watched) : ORIEL_OK;",
                      "    return oriel_polling_missed(&window->polling) && watched.win_rank < 0 ? oriel_liveness_rank(&watched) : ORIEL_OK;")],
     "deaths", "killed_origin_is_reported_by_wait_and_test", "a polling program checks for deaths"),

    ("sync/pscw_counters.c", [("    table->older = atomic_load_explicit(&partners->newest, memory_order_relaxed);\n", "")],
     "pscw_counters", "partners_of_any_number_have_an_entry_each", "N1: a table links to the one before"),
    ("sync/pscw_counters.c", [("    atomic_store_explicit(&partners->newest, offset, memory_order_release);\n    oriel_delay();\n",
                          "    atomic_store_explicit(&partners->newest, offset, memory_order_release);\n    oriel_delay();\n"
                          "    if (*newest != NULL) {\n        for (uint64_t i = 0; i < (*newest)->capacity; i++)\n"
                          "            if ((*newest)->entries[i].peer != 0) {\n"
                          "                *counter_slot(table, (int32_t)(*newest)->entries[i].peer - 1) = (*newest)->entries[i];\n"
                          "                table->count++;\n            }\n        oriel_delay();\n    }\n")],
     "pscw_counters", "partners_of_any_number_have_an_entry_each", "an entry never moves"),
    ("sync/pscw_counters.c", [("    if (newest == NULL || 2 * (newest->count + 1) > newest->capacity)",
                          "    if (newest == NULL || newest->count > newest->capacity)")],
     "pscw_counters", "partners_of_any_number_have_an_entry_each", "P2: a table always has free entries"),
    ("sync/pscw_counters.c", [("    oriel_store_release(&(*own)->peer, (uint32_t)peer + 1); /* N2 */\n"
                          "    oriel_delay();\n    oriel_event_signal(&partners->made); /* N3 */\n",
                          "    oriel_event_signal(&partners->made);\n    oriel_delay();\n"
                          "    oriel_store_release(&(*own)->peer, (uint32_t)peer + 1);\n")],
     "pscw_counters", "partners_p1_p2_are_found_while_tables_grow", "P1: N2 is before N3"),
    ("sync/pscw_counters.c", [("    oriel_event_signal(&partners->made); /* N3 */\n", "")],
     "pscw_counters", "partners_p1_p2_are_found_while_tables_grow", "N3: searching ranks are woken"),
    ("sync/pscw_counters.c", [("ORIEL_WAIT_NOT_EQUAL, v, watch); /* F3 */",
                          "ORIEL_WAIT_NOT_EQUAL, oriel_load_acquire(&made->value), watch);")],
     "pscw_counters", "partners_p1_p2_are_found_while_tables_grow", "F1 is before F2"),
    ("sync/pscw_counters.c", [("ORIEL_WAIT_NOT_EQUAL, v, watch); /* F3 */", "ORIEL_WAIT_NOT_EQUAL, v, NULL);")],
     "deaths", "killed_poster_is_reported_by_start", "F3: a rank that searches for an entry watches its owner"),
    ("sync/pscw_counters.c", [("    pthread_mutex_lock(&making);\n", ""), ("    pthread_mutex_unlock(&making);\n", "")],
     "pscw_counters", "partners_p3_are_made_once_by_many_threads", "P3: the mutex"),
    ("sync/pscw_counters.c", [("    if (*own != NULL)\n        return ORIEL_OK;\n    enum", "    enum")],
     "pscw_counters", "partners_p3_are_made_once_by_many_threads", "P3: the search is repeated under the mutex"),
    ("sync/pscw.c", [("    enum oriel_status status = ranks == NULL ? ORIEL_OK : make_entries(window, ranks, count, &targets);",
                      "    enum oriel_status status = oriel_epoch_leave_fence(window);\n    if (status == ORIEL_OK && ranks != NULL)\n"
                      "        status = make_entries(window, ranks, count, &targets);")],
     "pscw_counters", "partners_and_access_without_memory_change_nothing", "a start allocates before anything changes"),
    ("sync/lock.c", [("    if (status == ORIEL_OK)\n        status = oriel_access_words_require(window);\n    if (status == ORIEL_OK)\n"
                      "        status = oriel_epoch_leave_fence(window);\n",
                      "    if (status == ORIEL_OK)\n        status = oriel_epoch_leave_fence(window);\n    if (status == ORIEL_OK)\n"
                      "        status = oriel_access_words_require(window);\n")],
     "pscw_counters", "partners_and_access_without_memory_change_nothing", "a lock allocates before anything changes"),
    ("sync/access_words.c", [("    atomic_store_explicit(&window->control->access_offset, offset, memory_order_release);\n", "")],
     "deaths", "killed_shared_holder_is_reported", "access words are published before L1"),
    ("sync/access_words.c", [("    pthread_mutex_lock(&making);\n", ""), ("    pthread_mutex_unlock(&making);\n", "")],
     "pscw_counters", "access_words_are_created_once_by_two_threads", "access words are created once"),
    ("sync/access_words.c", [("    if (oriel_window_access(window) != window->group->absent)\n        return ORIEL_OK;\n    if (oriel_file_alloc",
                        "    if (oriel_file_alloc")],
     "pscw_counters", "partners_p3_are_made_once_by_many_threads", "access words: the check is repeated under the mutex"),

    ("sync/accumulate_mutex.c", [("    return atomic_compare_exchange_strong_explicit(&mutex->word, &free_word, as, memory_order_acquire,\n"
                       "                                                   memory_order_relaxed); /* M1 */",
                       "    free_word = oriel_load_relaxed(&mutex->word);\n    oriel_delay();\n    if (free_word == 0)\n"
                       "        oriel_store_relaxed(&mutex->word, as);\n    return free_word == 0;")],
     "accumulate_mutex", "mutex_p1_publishes_stores", "M1: check and acquire are one step"),
    ("sync/accumulate_mutex.c", [("        syscall(SYS_futex, &mutex->word, FUTEX_WAKE, 1, NULL, NULL, 0);", "        sched_yield();")],
     "accumulate_mutex", "mutex_m3_wakes_a_sleeper", "M3 wakes"),
    ("sync/accumulate_mutex.c", [("while (!try_lock(mutex, as | ASLEEP)) {", "while (!try_lock(mutex, as)) {")],
     "accumulate_mutex", "mutex_woken_holder_wakes_the_next", "a woken holder wakes the next one"),
    ("sync/accumulate_mutex.c", [("*status = name == 0 ? ORIEL_OK :", "*status = name <= (uint32_t)window->n ? ORIEL_OK :")],
     "deaths", "killed_mutex_holder_is_reported", "the word's holder is watched"),

    ("sync/atomic_mode.h", [("    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */\n", "")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "S1: a single announces itself"),
    ("sync/atomic_mode.h", [("    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst); /* S1 */\n    oriel_delay();\n"
                         "    if (oriel_likely(atomic_load_explicit(&window->common->bulk_targets, memory_order_seq_cst) == 0)) /* S2 */\n",
                         "    bool none = atomic_load_explicit(&window->common->bulk_targets, memory_order_seq_cst) == 0;\n"
                         "    oriel_delay();\n    atomic_store_explicit(&slot->inside, 1, memory_order_seq_cst);\n    if (none)\n")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "S1 is before S2"),
    ("sync/atomic_mode.h", [("memory_order_seq_cst) == 0)) /* S2 */", "memory_order_seq_cst) < 1000)) /* S2 */")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "S2 checks for bulk updates"),
    ("sync/atomic_mode.c", [("&oriel_window_control(window, target)->bulk, memory_order_seq_cst) == 0)",
                         "&oriel_window_control(window, target)->bulk, memory_order_seq_cst) < 2)")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "S2 checks its target's word, too"),
    ("sync/atomic_mode.c", [("    atomic_fetch_add_explicit(&common_of(window)->bulk_targets, 1, memory_order_seq_cst); /* B1 */\n", "")],
     "atomic_mode", "singles_p1_stay_out_of_bulk_updates", "B1 is announced to the window"),
    ("sync/atomic_mode.c", [("            await_slot(&oriel_file_atomic_modes(peer->base)[i], peer);", "            (void)await_slot;")],
     "atomic_mode", "singles_b2_waits_for_singles_inside", "B2 waits"),
    ("sync/atomic_mode.c", [("    for (int32_t rank = 0; rank < n; rank++) {", "    for (int32_t rank = 1; rank < n; rank++) {")],
     "atomic_mode", "singles_b2_waits_for_singles_inside", "B2 waits for every rank"),
    ("sync/atomic_mode.c", [("        for (uint32_t i = 0; i < count; i++)\n", "        for (uint32_t i = 1; i < count; i++)\n")],
     "atomic_mode", "singles_b2_waits_for_singles_inside", "B2 waits for every thread"),
    ("sync/atomic_mode.c", [("        if (!oriel_peer_alive(peer))\n            return;\n", "")],
     "atomic_mode", "singles_of_the_dead_are_passed_over", "B2 does not wait for the dead"),
    ("sync/atomic_mode.c", [("    control->single_updates_in_a_row = 0;\n", "")],
     "atomic_mode", "singles_c2_are_free_again_after_many", "C2: a bulk update restarts the count of singles"),
    ("sync/atomic_mode.c", [("        atomic_fetch_sub_explicit(&common_of(window)->bulk_targets, 1, memory_order_release);\n", "")],
     "atomic_mode", "singles_c2_are_free_again_after_many", "C2 subtracts what B1 added"),
    ("sync/atomic_mode.c", [("    atomic_fetch_and_explicit(&slots.taken, ~(UINT64_C(1) << ((struct oriel_atomic_mode *)slot - first)), "
                         "memory_order_release);\n", "    (void)slot;\n    (void)first;\n")],
     "atomic_mode", "singles_of_more_threads_than_slots_acquire_the_lock", "a thread that ends releases its slot"),
    ("sync/atomic_mode.c", [("    enum oriel_status status = oriel_accumulate_mutex_lock(window, target);\n    if (status != ORIEL_OK)\n"
                         "        return status;\n    oriel_delay();\n    oriel_store_release(&oriel_window_control(window, target)->wide, 1); /* W1 */\n"
                         "    oriel_accumulate_mutex_unlock(window, target);\n",
                         "    oriel_store_release(&oriel_window_control(window, target)->wide, 1);\n")],
     "atomic_mode", "singles_p4_swaps_stay_out_of_plain_updates", "W1 is under the lock"),
    ("sync/atomic_mode.h", [("    return oriel_load_acquire(&oriel_window_control(window, target)->wide) != 0;",
                         "    (void)window;\n    (void)target;\n    return false;")],
     "atomic_mode", "singles_p4_swaps_stay_out_of_plain_updates", "W2: plain updates exclude swaps"),

    ("sync/holder_epochs.c", [("    return oriel_handle_is_valid(holding->area, holding->key) /* H5 */\n", "    return holding->key != 0\n")],
     "holder_epochs", "withdrawal_p1_waits_for_epochs", "H5: a holder that has its lock checks again"),
    ("sync/holder_epochs.c", [("    atomic_store_explicit(&holding->entry->state, state, memory_order_seq_cst);\n    oriel_delay();\n",
                               "    oriel_delay();\n"
                               "    if (state != ORIEL_ACCESS_STATE_WAITING)\n"
                               "        atomic_store_explicit(&holding->entry->state, state, memory_order_seq_cst);\n")],
     "holder_epochs", "the_end_p2_waits_for_lock_calls", "H1: a holder that waits for its lock says so"),
    ("sync/holder_epochs.c", [("    if (oriel_handle_is_valid(holding->area, holding->key)) /* H2 */\n", "    if (holding->key != 0)\n")],
     "holder_epochs", "the_end_p2_waits_for_lock_calls", "H2: a withdrawn handle's lock is not touched"),
    ("sync/holder_epochs.c", [("        oriel_event_signal(&holding->area->left);\n", "        (void)0;\n")],
     "holder_epochs", "withdrawal_p3_is_woken", "H6: the end of an epoch wakes the owner"),
    ("sync/holder_epochs.c", [("(state >= ORIEL_ACCESS_STATE_SHARED ||\n", "(state == ORIEL_ACCESS_STATE_EXCLUSIVE ||\n")],
     "holder_epochs", "withdrawal_p1_waits_for_epochs", "W2: shared epochs count"),
    ("sync/holder_epochs.c", [("(waiting_too && state != ORIEL_ACCESS_STATE_NONE));", "(waiting_too && state > ORIEL_ACCESS_STATE_WAITING));")],
     "holder_epochs", "the_end_p2_waits_for_lock_calls", "W2: waiting lock calls count when the window ends"),
    ("sync/holder_epochs.c", [("return any_epoch(wanted->area, wanted->waiting_too, true) ?", "return any_epoch(wanted->area, wanted->waiting_too, false) ?")],
     "holder_epochs", "a_holder_that_dies_is_reported", "W2 does not wait for the dead"),
    ("sync/holder_epochs.c", [("        if ((oriel_identity_word_alive(process) && state != ORIEL_ACCESS_STATE_LOST) ||\n", "        if (\n")],
     "holder_epochs", "areas_are_reused_without_entries", "R: an area with entries is not used again"),
    ("sync/holder_epochs.c", [("(state != ORIEL_ACCESS_STATE_NONE && has_window))", "(state != ORIEL_ACCESS_STATE_NONE && !has_window))")],
     "holder_epochs", "a_holder_that_dies_is_reported", "R: nor is one in which a dead process has a lock"),
    ("window/holders.c", [("            if (entry_blocks(entry, no_readers) && process != 0 &&", "            if (false && entry_blocks(entry, no_readers) && process != 0 &&")],
     "holder_epochs", "a_holder_that_dies_is_reported", "dead holders in the queue are found"),
    ("sync/holder_epochs.c", [("    status = oriel_holding_check_members(window->holding, -1);", "    status = ORIEL_OK;")],
     "holder_epochs", "a_rank_that_dies_is_reported_to_holders", "a holder asks for the ranks of the owner's window"),
    ("sync/holder_epochs.c", [("    enum oriel_status status = check_owner(window);", "    enum oriel_status status = ORIEL_OK;"),
                              ("    status = oriel_holding_check_members(window->holding, -1);",
                               "    status = oriel_holding_check_members(window->holding, 1);")],
     "holder_epochs", "an_owner_that_dies_is_reported", "a holder asks for the owner"),
    ("sync/holder_epochs.c", [("    status = check_owner_life(window);", "    status = ORIEL_OK;")],
     "holder_epochs", "an_owner_that_dies_is_reported", "a lock that need not wait reports a dead owner"),
    ("sync/holder_epochs.c", [("    return check_owner_life(window);", "    return ORIEL_OK;")],
     "holder_epochs", "an_owner_that_dies_is_reported", "the end of an epoch reports a dead owner"),
    ("sync/atomic_mode.c", [("    if (slot == NULL || window->holding != NULL)\n", "    if (slot == NULL)\n")],
     "holder_epochs", "accumulates_of_holders_are_not_lost", "a holder has no slot that others know"),
    ("sync/atomic_mode.c", [("    const int32_t n = is_opened ? window->holding->member_count : window->n;", "    const int32_t n = is_opened ? 1 : window->n;")],
     "holder_epochs", "accumulates_of_holders_are_not_lost", "B2: a holder waits for all processes of the window"),
    ("sync/atomic_mode.c", [("    return oriel_window_is_opened(window) ? window->holding->owner_common : window->common;", "    return window->common;")],
     "holder_epochs", "accumulates_of_holders_are_not_lost", "B1: a holder announces bulk mode to the window"),
]
