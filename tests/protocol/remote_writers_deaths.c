/* src/transport/remote_writers.c: writers die at random steps, and targets die while pages move. No
 * wait is endless, and living writers lose no write. */
#include "moved_words.h"

#include "../unit/many_signals.h"

/* Killed while it owns a slot, which the mover takes back at once. */
static void die_inside(struct oriel_window *window)
{
    struct oriel_remote_writers *writers = writers_of(window);
    if (window->rank == 1) {
        oriel_remote_writers_enter(writers);
        team_flag_set(0, 1);
        team_die();
    }
    team_flag_await(0, 1);
    if (window->rank == 0) {
        halt_at_last(writers);
        for (int i = 0; i < ORIEL_REMOTE_WRITERS_SLOTS; i++)
            team_expect(atomic_load(&writers->slots[i].owner) == 0);
        oriel_remote_writers_resume(writers);
        team_flag_set(1, 1);
    }
    team_flag_await(1, 1);
    if (window->rank == 2)
        write_word(window, 1);
}

static void writers_that_are_dead_are_not_waited_for(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        team_run(3, die_inside);
    team_leaves_zombies = false;
    team_run(3, die_inside);
    team_leaves_zombies = true;
}

/* A slot whose process id belongs to another process now. */
static void leave_slots_of_the_past(struct oriel_window *window)
{
    struct oriel_remote_writers *writers = writers_of(window);
    uint64_t past = (oriel_file_identity()->start_time - 1) << 22 | (uint64_t)getpid();
    for (int i = 0; window->rank == 1 && i < ORIEL_REMOTE_WRITERS_SLOTS; i++)
        atomic_store(&writers->slots[i].owner, past);
    team_barrier();
    if (window->rank == 0) {
        halt_at_last(writers);
        oriel_remote_writers_resume(writers);
    }
    team_barrier();
}

static void another_process_with_the_number_is_another(void **state)
{
    (void)state;
    team_run(2, leave_slots_of_the_past);
}

/* Dead processes own all slots: the next writer takes one over. */
static void die_with_all_slots(struct oriel_window *window)
{
    struct oriel_remote_writers *writers = writers_of(window);
    if (window->rank == 1) {
        uint64_t word = oriel_file_identity()->start_time << 22 | (uint64_t)getpid();
        for (int i = 0; i < ORIEL_REMOTE_WRITERS_SLOTS; i++)
            atomic_store(&writers->slots[i].owner, word);
        team_flag_set(0, 1);
        team_die();
    }
    team_flag_await(0, 1);
    for (uint64_t value = 1; window->rank > 1 && value <= 20; value++)
        write_word(window, value);
    if (window->rank > 1)
        team_flag_set(window->rank, 1);
    for (int32_t i = 2; i < window->n; i++)
        team_flag_await(i, 1);
}

static void slots_of_the_dead_are_reused(void **state)
{
    (void)state;
    team_run(3, die_with_all_slots);
    team_run(4, die_with_all_slots);
}

/* Writers are killed at random steps: pages move nevertheless, and the others lose nothing. */
static void kill_writers(struct oriel_window *window)
{
    uint64_t value = 0;
    if (window->rank == 1) {
        usleep((useconds_t)(team_random() % 4000));
        team_kill(2);
        team_flag_set(0, 1);
    }
    while (window->rank == 2)
        write_word(window, ++value);
    while (window->rank == 0 && atomic_load(&team->flags[0]) < 3) {
        halt_at_last(writers_of(window));
        move_words(moved_words_of(window));
        oriel_remote_writers_resume(writers_of(window));
    }
    if (window->rank == 3) {
        while (atomic_load(&team->flags[0]) < 1 || value < 50)
            write_word(window, ++value);
        team_flag_set(0, 3);
    }
    team_flag_await(0, 3);
}

static void writers_killed_anywhere_block_no_other_rank(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++)
        team_run(4, kill_writers);
}

/* The target is killed while pages move. Writers are let in, and the kernel returns an error to
 * them. */
static void die_moving(struct oriel_window *window)
{
    struct oriel_remote_writers *writers = writers_of(window);
    if (window->rank == 0) {
        halt_at_last(writers);
        team_flag_set(0, 1);
        usleep(5000);
        team_die();
    }
    team_flag_await(0, 1);
    for (int i = 0; i < 3; i++) {
        struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(writers);
        team_expect(slot != NULL);
        oriel_remote_writers_leave(slot);
    }
    team_expect(team_timeouts <= 10);
    team_flag_set(window->rank, 2);
    for (int32_t i = 1; i < window->n; i++)
        team_flag_await(i, 2);
}

static void writers_do_not_wait_for_a_dead_target(void **state)
{
    (void)state;
    team_run(2, die_moving);
    team_run(4, die_moving);
}

/* The same for writers whose sleeps are all interrupted. */
static void die_moving_amid_signals(struct oriel_window *window)
{
    if (window->rank != 0)
        many_signals_begin(2000, 5000);
    die_moving(window);
    team_expect(window->rank == 0 || many_signals_end());
}

static void interrupted_writers_do_not_wait_for_a_dead_target(void **state)
{
    (void)state;
    team_run(2, die_moving_amid_signals);
    team_run(4, die_moving_amid_signals);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_that_are_dead_are_not_waited_for),
        cmocka_unit_test(another_process_with_the_number_is_another),
        cmocka_unit_test(slots_of_the_dead_are_reused),
        cmocka_unit_test(writers_killed_anywhere_block_no_other_rank),
        cmocka_unit_test(writers_do_not_wait_for_a_dead_target),
        cmocka_unit_test(interrupted_writers_do_not_wait_for_a_dead_target),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: a rank that dies needs a process of its own");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
