/* src/transport/agent/: origins die while they own slots, targets die or stop while they execute
 * requests, and slots run out. No wait is endless, and no slot changes its owner while it is still
 * in use. */
#include "agent_memory.h"
#include "sync/accumulate_mutex.h"

#include <sched.h>
#include <signal.h>
#include <string.h>

static uint64_t own_word(void)
{
    return oriel_file_identity()->start_time << 22 | (uint64_t)getpid();
}

/* One request of one byte, at the state that it had reached before its origin died. */
static void leave_request(struct oriel_agent_slot *slot, uint64_t address, uint32_t answer)
{
    slot->operation = ORIEL_AGENT_WRITE;
    slot->run_count = 1;
    slot->runs[0] = (struct oriel_agent_run){address, 1};
    slot->data_bytes = 1;
    slot->data[0] = 'x';
    atomic_store(&slot->answer.value, answer);
}

static void hold_all_slots(struct oriel_agent *agent)
{
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++)
        atomic_store(&agent->slots[i].owner, own_word());
}

static void release_all_slots(struct oriel_agent *agent)
{
    for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++)
        atomic_store(&agent->slots[i].owner, 0);
}

static uint32_t left_in; /* the state in which the victim leaves its slots */

/* The victim owns every slot. A later origin takes one over, after the request in it is executed
 * (the victim had not rung the agent). */
static void die_with_slots(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1) {
        hold_all_slots(there.agent);
        for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++)
            leave_request(&there.agent->slots[i], there.address + i, left_in);
        team_flag_set(0, 1);
        team_die();
    }
    team_flag_await(0, 1);
    for (int i = 0; window->rank > 1 && i < 30; i++)
        agent_memory_write_and_read(&there);
    team_expect(team_timeouts <= 10);
    if (window->rank == 2) {
        char byte = 0;
        there.address -= SHARE_BYTES; /* the victim's share */
        team_expect(oriel_transport_agent.read(&there, &byte, 1) == ORIEL_OK);
        team_expect((byte == 'x') == (left_in == ORIEL_AGENT_ASKED));
    }
    team_flag_set(1 + window->rank, 1);
    for (int32_t i = 2; i < window->n; i++)
        team_flag_await(1 + i, 1);
}

static void agent_slots_of_the_dead_are_reused(void **state)
{
    (void)state;
    for (left_in = ORIEL_AGENT_DONE; left_in <= ORIEL_AGENT_ASKED; left_in++) {
        team_run(3, die_with_slots);
        team_run(5, die_with_slots);
    }
}

/* For any length of time. */
static void hold_slots(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1)
        hold_all_slots(there.agent);
    team_barrier();
    if (window->rank == 1) {
        usleep(350000);
        for (unsigned i = 0; i < ORIEL_AGENT_SLOTS; i++)
            team_expect(atomic_load(&there.agent->slots[i].owner) == own_word());
        release_all_slots(there.agent);
        oriel_event_signal(&there.agent->freed);
    } else {
        agent_memory_write_and_read(&there);
    }
    team_barrier();
}

static void agent_slots_of_the_living_are_theirs(void **state)
{
    (void)state;
    team_run(3, hold_slots);
}

/* The target is stopped, so the origin falls asleep. */
static void ask_while_stopped(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    for (int round = 0; round < 10; round++) {
        if (window->rank == 2)
            team_stop(0);
        if (window->rank != 0)
            team_flag_set(window->rank, (uint32_t)round + 1);
        if (window->rank == 1) {
            team_flag_await(2, (uint32_t)round + 1);
            agent_memory_write_and_read(&there);
        } else if (window->rank == 2) {
            team_flag_await(1, (uint32_t)round + 1);
            usleep(5000);
            kill(team->members[0].process.pid, SIGCONT);
        }
        team_barrier();
    }
    team_expect(team_timeouts <= 3);
}

static void agent_z3_wakes_origins(void **state)
{
    (void)state;
    team_run(3, ask_while_stopped);
}

/* An origin is killed at a random step; the others continue. */
static void die_asking(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 0) {
        usleep((useconds_t)(team_random() % 5000));
        team_kill(1);
        team_flag_set(0, 1);
    }
    while (window->rank == 1)
        agent_memory_write_and_read(&there);
    team_flag_await(0, 1);
    for (int i = 0; window->rank > 1 && i < 50; i++)
        agent_memory_write_and_read(&there);
    if (window->rank > 1)
        team_flag_set(window->rank, 1);
    for (int32_t i = 2; i < window->n; i++)
        team_flag_await(i, 1);
}

static void agent_outlives_origins(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        team_run(4, die_asking);
}

/* The victim owns the accumulate lock, and its slot requests one more on every word (it had not
 * rung the agent). */
static void die_between_lock_and_answer(struct oriel_window *window)
{
    enum { WORDS = 1000 };
    static int64_t words[WORDS];
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    there.address = window_memory(window, 0)[0];
    if (window->rank == 1) {
        struct oriel_agent_slot *slot = &there.agent->slots[0];
        team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        hold_all_slots(there.agent);
        slot->operation = ORIEL_AGENT_UPDATE;
        slot->kind = ORIEL_KIND_INT64;
        slot->operator= ORIEL_OPERATOR_SUM;
        slot->run_count = 1;
        slot->runs[0] = (struct oriel_agent_run){there.address, sizeof words};
        slot->data_bytes = sizeof words;
        for (int i = 0; i < WORDS; i++)
            memcpy(slot->data + 8 * i, &(int64_t){1}, 8);
        atomic_store(&slot->answer.value, left_in);
        team_flag_set(0, 1);
        team_die();
    }
    team_flag_await(0, 1);
    if (window->rank == 2) {
        team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_E_PEER);
        for (unsigned i = 0; i < ORIEL_AGENT_SLOTS;
             i++) /* the slots still work, also the victim's */
            team_expect(oriel_transport_agent.read(&there, words, sizeof words) == ORIEL_OK);
        while (atomic_load(&there.agent->slots[0].owner) != 0 && left_in == ORIEL_AGENT_ASKED)
            team_expect(oriel_transport_agent.read(&there, words, sizeof words) == ORIEL_OK);
        team_expect(oriel_transport_agent.read(&there, words, sizeof words) == ORIEL_OK);
        for (int i = 0; i < WORDS; i++)
            team_expect(words[i] == (left_in == ORIEL_AGENT_ASKED));
        team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_E_PEER);
    }
    team_flag_set(1 + window->rank, 1);
    for (int32_t i = 2; i < window->n; i++)
        team_flag_await(1 + i, 1);
}

static void update_of_the_dead_is_done_once_and_the_lock_stays_with_it(void **state)
{
    (void)state;
    for (left_in = ORIEL_AGENT_DONE; left_in <= ORIEL_AGENT_ASKED; left_in++)
        team_run(3, die_between_lock_and_answer);
}

/* An origin is killed at a random step of its updates. Each of its requests is executed as a whole
 * or not at all. */
static void die_updating(struct oriel_window *window)
{
    enum { WORDS = 1000 };
    static int64_t words[WORDS];
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    there.address = window_memory(window, 0)[0];
    if (window->rank == 0) {
        usleep((useconds_t)(team_random() % 3000));
        team_kill(1);
        team_flag_set(0, 1);
    }
    for (int i = 0; i < WORDS; i++)
        words[i] = 1;
    while (window->rank == 1) {
        struct oriel_piece in = {0, words, sizeof words};
        team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        team_expect(oriel_agent_update(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, &in, NULL,
                                       1) == ORIEL_OK);
        oriel_accumulate_mutex_unlock(window, 0);
    }
    team_flag_await(0, 1);
    if (window->rank == 2) {
        enum oriel_status status = oriel_accumulate_mutex_lock(window, 0);
        team_expect(status == ORIEL_OK || status == ORIEL_E_PEER);
        team_expect(oriel_transport_agent.read(&there, words, sizeof words) == ORIEL_OK);
        for (int i = 0; i < WORDS; i++)
            team_expect(words[i] == words[0]);
        if (status == ORIEL_OK)
            oriel_accumulate_mutex_unlock(window, 0);
        team_flag_set(2, 1);
    }
    team_flag_await(2, 1);
}

static void killed_origins_leave_complete_updates(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        team_run(3, die_updating);
}

/* The target is killed while it serves a request. Every later request fails, too. */
static void ask_the_dead(struct oriel_window *window)
{
    char byte = 1;
    enum oriel_status status = ORIEL_OK;
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1) {
        usleep((useconds_t)(team_random() % 3000));
        team_kill(0);
        team_flag_set(0, 1);
    }
    while (window->rank == 0)
        sched_yield();
    while (status == ORIEL_OK)
        status = oriel_transport_agent.write(&there, &byte, 1);
    team_expect(status == ORIEL_E_PEER);
    team_expect(oriel_transport_agent.read(&there, &byte, 1) == ORIEL_E_PEER);
    team_expect(team_timeouts <= 20);
}

static void killed_target_is_reported_to_origins(void **state)
{
    (void)state;
    team_run(2, ask_the_dead);
    team_run(4, ask_the_dead);
}

/* A living rank owns all slots. A rank that waits for a slot still gets the target's death
 * reported. */
static void wait_for_slots_of_the_dead(struct oriel_window *window)
{
    char byte = 1;
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1)
        hold_all_slots(there.agent);
    team_barrier();
    if (window->rank == 0)
        team_die();
    if (window->rank == 2)
        team_expect(oriel_transport_agent.write(&there, &byte, 1) == ORIEL_E_PEER);
    team_expect(team_timeouts <= 10);
    team_flag_set(window->rank, 1);
    team_flag_await(3 - window->rank, 1); /* the owner lives */
}

static void killed_target_is_reported_to_waits_for_a_slot(void **state)
{
    (void)state;
    team_run(3, wait_for_slots_of_the_dead);
}

/* A request of rank 3 to a stopped target owns the last slot. Rank 2 waits for that slot,
 * asleep. */
static void wait_for_a_slot(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    for (uint32_t round = 1; round <= 10; round++) {
        if (window->rank == 1) {
            uint32_t freed = atomic_load(&there.agent->freed.value);
            hold_all_slots(there.agent);
            atomic_store(&there.agent->slots[round].owner, 0);
            kill(team->members[0].process.pid, SIGSTOP);
            team_flag_set(1, round);
            while (atomic_load(&there.agent->slots[round].owner) == 0 &&
                   atomic_load(&there.agent->freed.value) == freed)
                /* the agent may have stopped late, after it had served the request */
                sched_yield();
            team_flag_set(2, round);
            usleep(5000);
            kill(team->members[0].process.pid, SIGCONT);
        } else if (window->rank > 1) {
            char byte = 1;
            team_flag_await(window->rank == 3 ? 1 : 2, round);
            team_expect(oriel_transport_agent.write(&there, &byte, 1) == ORIEL_OK);
        }
        team_barrier();
        if (window->rank == 1)
            release_all_slots(there.agent);
    }
    team_barrier();
    team_expect(team_timeouts <= 3);
}

static void agent_q6_wakes_waits_for_a_slot(void **state)
{
    (void)state;
    team_run(4, wait_for_a_slot);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_slots_of_the_dead_are_reused),
        cmocka_unit_test(agent_slots_of_the_living_are_theirs),
        cmocka_unit_test(agent_z3_wakes_origins),
        cmocka_unit_test(agent_outlives_origins),
        cmocka_unit_test(update_of_the_dead_is_done_once_and_the_lock_stays_with_it),
        cmocka_unit_test(killed_origins_leave_complete_updates),
        cmocka_unit_test(killed_target_is_reported_to_origins),
        cmocka_unit_test(killed_target_is_reported_to_waits_for_a_slot),
        cmocka_unit_test(agent_q6_wakes_waits_for_a_slot),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: a rank that dies needs a process of its own");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
