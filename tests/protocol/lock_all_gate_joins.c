/* src/sync/lock_all_gate.c, G6: a reader whose patience has ended joins readers that are inside,
 * and only those. It sees the stores of earlier writers. Readers that return repeatedly do not
 * exclude writers. */
#include "gate_locks.h"

#include <sched.h>

/* Rank 0 is inside lock_all and waits for rank 1's lock_all, several in a row. Rank 2, which waits
 * for rank 0, blocks rank 1. */
static void wait_in_a_line(struct oriel_window *window)
{
    struct oriel_lock_all_gate *gate = &window->common->gate;
    if (window->rank == 0) {
        lock_all(window);
        team_flag_set(0, 1);
        team_flag_await(1, 1);
        unlock_all(window);
    } else if (window->rank == 1) {
        team_flag_await(0, 1);
        while (oriel_load_acquire(&gate->half.writers) == 0)
            sched_yield();
        for (int i = 0; i < 3; i++) {
            lock_all(window);
            unlock_all(window);
        }
        team_flag_set(1, 1);
    } else {
        team_flag_await(0, 1);
        lock_one(window, 2);
        team_expect(atomic_load(&team->flags[1]) == 1 && oriel_load_relaxed(&gate->joins) == 0);
        unlock_one(window, 2);
    }
}

static void gate_g6_lets_readers_join_readers(void **state)
{
    (void)state;
    team_run(3, wait_in_a_line);
}

static enum oriel_status be_tired(void *context)
{
    (void)context;
    return ORIEL_E_AGAIN;
}

/* No reader is inside when patience ends. */
static void wait_for_a_writer(struct oriel_window *window)
{
    static const struct oriel_watch tired = {be_tired, NULL, ORIEL_WAITING_NOTHING};
    struct oriel_lock_all_gate *gate = &window->common->gate;
    if (window->rank == 0) {
        team_expect(oriel_gate_enter_writer(gate, false, NULL) == ORIEL_OK);
        team_flag_set(0, 1);
        usleep(350000);
        team_flag_set(0, 2);
        oriel_gate_leave_writer(gate);
    } else {
        team_flag_await(0, 1);
        team_expect(oriel_gate_enter_reader(gate, &tired) == ORIEL_OK);
        team_expect(atomic_load(&team->flags[0]) == 2);
        oriel_gate_leave_reader(gate);
    }
}

static void gate_g6_lets_readers_join_no_writer(void **state)
{
    (void)state;
    team_run(4, wait_for_a_writer);
}

/* Relaxed words, so only the gate publishes the writer's stores. */
static void flag_set(int flag)
{
    atomic_store_explicit(&team->flags[flag], 1, memory_order_relaxed);
}

static void flag_await(int flag)
{
    while (atomic_load_explicit(&team->flags[flag], memory_order_relaxed) == 0)
        sched_yield();
}

enum { READING, JOINING, WRITTEN, READING_AGAIN, JOINED };

static _Thread_local bool is_joining;

static enum oriel_status begin_to_join(void *context)
{
    (void)context;
    is_joining = true;
    return ORIEL_E_AGAIN;
}

/* The writer enters and leaves between the reader's check of the gate and the step that depends on
 * it. */
static void join_late(void)
{
    if (!is_joining)
        return;
    is_joining = false;
    flag_set(JOINING);
    flag_await(READING_AGAIN);
}

/* Rank 2 joins rank 1, which entered after rank 0. */
static void join_after_a_writer(struct oriel_window *window)
{
    static const struct oriel_watch tired = {begin_to_join, NULL, ORIEL_WAITING_NOTHING};
    struct oriel_lock_all_gate *gate = &window->common->gate;
    volatile uint64_t *word = window_memory(window, 0);
    if (window->rank == 0) {
        flag_await(READING);
        team_expect(oriel_gate_enter_writer(gate, true, NULL) == ORIEL_OK);
        word[0] = 1;
        oriel_gate_leave_writer(gate);
        flag_set(WRITTEN);
    } else if (window->rank == 1) {
        team_expect(oriel_gate_enter_reader(gate, NULL) == ORIEL_OK);
        flag_set(READING);
        flag_await(JOINING);
        oriel_gate_leave_reader(gate);
        flag_await(WRITTEN);
        team_expect(oriel_gate_enter_reader(gate, NULL) == ORIEL_OK);
        flag_set(READING_AGAIN);
        flag_await(JOINED);
        oriel_gate_leave_reader(gate);
    } else {
        while (oriel_load_relaxed(&gate->half.writers) == 0)
            sched_yield();
        team_expect(oriel_gate_enter_reader(gate, &tired) == ORIEL_OK);
        team_expect(word[0] == 1 && oriel_load_relaxed(&gate->joins) == 1);
        flag_set(JOINED);
        oriel_gate_leave_reader(gate);
    }
}

static void gate_g6_sees_stores_of_writers(void **state)
{
    (void)state;
    team_at_delay = join_late;
    team_run(3, join_after_a_writer);
    team_at_delay = NULL;
}

/* One of two readers is always inside, unless the other's patience lasts longer than its epoch. */
static void read_in_turns(struct oriel_window *window)
{
    enum { EPOCH_US = 300000, EPOCHS = 12 };
    if (window->rank == 0) {
        team_flag_await(0, 1);
        usleep(EPOCH_US / 4);
        lock_one(window, 0);
        team_expect(atomic_load(&team->flags[2]) == 0);
        team_flag_set(1, 1);
        unlock_one(window, 0);
        return;
    }
    if (window->rank == 2) {
        team_flag_await(0, 1);
        usleep(EPOCH_US / 2);
    }
    for (int i = 0; i < EPOCHS && atomic_load(&team->flags[1]) == 0; i++) {
        lock_all(window);
        team_flag_set(0, 1);
        usleep(EPOCH_US);
        if (i == EPOCHS - 1)
            team_flag_set(2, 1);
        unlock_all(window);
    }
}

static void gate_g6_does_not_starve_writers(void **state)
{
    (void)state;
    team_run(3, read_in_turns);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gate_g6_lets_readers_join_readers),
        cmocka_unit_test(gate_g6_lets_readers_join_no_writer),
        cmocka_unit_test(gate_g6_sees_stores_of_writers),
        cmocka_unit_test(gate_g6_does_not_starve_writers),
    };
    return team_main(tests, argc, argv);
}
