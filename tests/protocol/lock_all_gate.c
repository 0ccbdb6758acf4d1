/* src/sync/lock_all_gate.c, through lock_all and exclusive locks: the two kinds exclude each other,
 * and each shares with its own kind where the tickets allow. Neither starves the other or waits
 * forever. Exclusive locks are of different targets unless a test says otherwise. Readers that join
 * others: lock_all_gate_joins.c. */
#include "gate_locks.h"
#include "exclusion_check.h"

#include <sched.h>

enum { ROUNDS = 8000, ADMISSIONS = 12, WAKES = 12 };

/* The gate alone, without tickets: writers share with writers. */
static void pass_gate(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    struct exclusion *exclusion = exclusion_at(window, 0, 0);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        if (team_random() % 2 == 0) {
            team_expect(oriel_gate_enter_reader(gate, NULL) == ORIEL_OK);
            exclusion_check_reader(exclusion);
            oriel_gate_leave_reader(gate);
        } else {
            team_expect(oriel_gate_enter_writer(gate, false, NULL) == ORIEL_OK);
            exclusion_check_gate_writer(exclusion);
            oriel_gate_leave_writer(gate);
        }
    }
    team_barrier();
    team_expect(gate->word == 0 && gate->readers_waiting == 0);
}

static void gate_g1_g4_lock_all_and_exclusive_exclude_each_other(void **state)
{
    (void)state;
    team_run_sizes(pass_gate);
}

static void count_up(struct oriel_window *window)
{
    uint64_t rounds = (uint64_t)team_rounds(ROUNDS) / 2;
    volatile uint64_t *word = window_memory(window, 0);
    volatile uint64_t *copies = window_memory(window, window->n - 1) + 8;
    for (uint64_t i = 0; i < rounds && !team_time_is_up(); i++) {
        int32_t target = i % 2 == 0 ? 0 : window->n - 1;
        if (window->rank > 0) {
            lock_all(window);
            team_expect(word[0] == word[1] && copies[0] == word[0]);
            oriel_delay();
            team_expect(word[0] == word[1] && copies[0] == word[0]);
            unlock_all(window);
        } else {
            lock_one(window, target);
            word[0]++;
            oriel_delay();
            copies[0]++;
            oriel_delay();
            word[1]++;
            unlock_one(window, target);
        }
    }
}

static void gate_g5_publishes_stores_to_lock_all(void **state)
{
    (void)state;
    team_run_sizes(count_up);
}

static void be_inside_together(struct oriel_window *window)
{
    for (uint32_t i = 0; i < 40 && team_continues(i); i++) {
        lock_all(window);
        team_barrier();
        unlock_all(window);
        team_barrier();
        lock_one(window, window->rank);
        team_barrier();
        unlock_one(window, window->rank);
        team_barrier();
    }
}

static void gate_shares_among_one_kind(void **state)
{
    (void)state;
    team_run_sizes(be_inside_together);
}

/* Shared locks do not pass the gate: lock_all and a shared lock are held together. */
static void be_inside_as_readers(struct oriel_window *window)
{
    for (uint32_t i = 0; i < 40 && team_continues(i); i++) {
        bool all = window->rank % 2 == 0;
        team_expect((all ? oriel_lock_all(window) : oriel_lock(window, 0, false)) == ORIEL_OK);
        team_barrier();
        team_expect((all ? oriel_unlock_all(window) : oriel_unlock(window, 0)) == ORIEL_OK);
    }
}

static void gate_lets_lock_all_and_shared_locks_be_inside_together(void **state)
{
    (void)state;
    team_run_sizes(be_inside_as_readers);
}

/* Until flag 0 is set, ranks above 0 hold the lock of their kind nearly all the time, so one of
 * them is always inside. */
static void crowd(struct oriel_window *window, bool exclusive)
{
    while (atomic_load(&team->flags[0]) == 0) {
        team_expect((exclusive ? oriel_lock(window, window->rank, true) : oriel_lock_all(window)) ==
                    ORIEL_OK);
        usleep(300);
        team_expect((exclusive ? oriel_unlock(window, window->rank) : oriel_unlock_all(window)) ==
                    ORIEL_OK);
    }
}

static void one_reader_in_a_crowd(struct oriel_window *window)
{
    if (window->rank > 0) {
        crowd(window, true);
        return;
    }
    for (int i = 0; i < 2 || (i < ADMISSIONS && !team_time_is_up()); i++) {
        lock_all(window);
        unlock_all(window);
        usleep(1000);
    }
    team_flag_set(0, 1);
}

static void gate_writers_do_not_starve_readers(void **state)
{
    (void)state;
    team_run(8, one_reader_in_a_crowd);
    team_run(16, one_reader_in_a_crowd);
}

static void one_writer_in_a_crowd(struct oriel_window *window)
{
    if (window->rank > 0) {
        crowd(window, false);
        return;
    }
    for (int i = 0; i < 2 || (i < ADMISSIONS && !team_time_is_up()); i++) {
        lock_one(window, 0);
        unlock_one(window, 0);
        usleep(1000);
    }
    team_flag_set(0, 1);
}

static void gate_readers_do_not_starve_writers(void **state)
{
    (void)state;
    team_run(8, one_writer_in_a_crowd);
    team_run(16, one_writer_in_a_crowd);
}

/* Rank 1's lock_all waits for rank 0, which waits for rank 2. Rank 2's exclusive lock of another
 * target conflicts with no rank inside, so courtesy towards rank 1 must end. */
static void wait_in_a_cycle(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    if (window->rank == 0) {
        lock_one(window, 0);
        team_flag_set(0, 1);
        team_flag_await(1, 1);
        unlock_one(window, 0);
    } else if (window->rank == 1) {
        team_flag_await(0, 1);
        lock_all(window);
        unlock_all(window);
    } else {
        team_flag_await(0, 1);
        while (atomic_load(&gate->readers_waiting) == 0)
            sched_yield();
        lock_one(window, 2);
        team_flag_set(1, 1);
        unlock_one(window, 2);
    }
}

static void gate_courtesy_ends(void **state)
{
    (void)state;
    team_run(3, wait_in_a_cycle);
}

/* Rank 0's second lock is not courteous at all: the reader waits for rank 0's first lock. */
static void lock_a_second(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    if (window->rank == 0) {
        lock_one(window, 0);
        team_flag_set(0, 1);
        while (atomic_load(&gate->readers_waiting) == 0)
            sched_yield();
        lock_one(window, 1);
        team_expect(team_timeouts == 0);
        unlock_one(window, 1);
        unlock_one(window, 0);
    } else {
        team_flag_await(0, 1);
        lock_all(window);
        unlock_all(window);
    }
}

static void gate_nested_writer_does_not_wait_for_readers(void **state)
{
    (void)state;
    team_run(2, lock_a_second);
}

/* Of many sleeps few last to the time limit: G5 wakes readers, G2 wakes writers. */
static void hand_over(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    for (int i = 0; i < 2 * WAKES; i++) {
        bool reads = (i + window->rank) % 2 == 0;
        if (window->rank == 1)
            team_barrier();
        team_expect((reads ? oriel_lock_all(window) : oriel_lock(window, 0, true)) == ORIEL_OK);
        if (window->rank == 0) {
            team_barrier();
            while (atomic_load(&gate->reader_sleepers) + atomic_load(&gate->writer_sleepers) == 0)
                sched_yield();
            usleep(3000);
        }
        team_expect((reads ? oriel_unlock_all(window) : oriel_unlock(window, 0)) == ORIEL_OK);
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void gate_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, hand_over);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gate_g1_g4_lock_all_and_exclusive_exclude_each_other),
        cmocka_unit_test(gate_g5_publishes_stores_to_lock_all),
        cmocka_unit_test(gate_shares_among_one_kind),
        cmocka_unit_test(gate_lets_lock_all_and_shared_locks_be_inside_together),
        cmocka_unit_test(gate_writers_do_not_starve_readers),
        cmocka_unit_test(gate_readers_do_not_starve_writers),
        cmocka_unit_test(gate_courtesy_ends),
        cmocka_unit_test(gate_nested_writer_does_not_wait_for_readers),
        cmocka_unit_test(gate_wakes_sleepers),
    };
    return team_main(tests, argc, argv);
}
