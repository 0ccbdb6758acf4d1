/* src/transport/remote_writers.c: concurrent writers lose nothing while pages move, and the mover
 * waits for them no longer than it must. Rank 0 is the target; the others write. */
#include "moved_words.h"

#include <string.h>

static void move_or_write(struct oriel_window *window)
{
    uint64_t value = 0;
    while (!team_time_is_up()) {
        if (window->rank == 0) {
            team_expect(oriel_remote_writers_halt(writers_of(window), oriel_file_identity(),
                                                  true) == ORIEL_OK);
            move_words(moved_words_of(window));
            oriel_remote_writers_resume(writers_of(window));
        } else {
            write_word(window, ++value);
        }
    }
    team_barrier();
    if (window->rank > 0)
        write_word(window, ++value);
}

static void writers_p1_p2_p3_lose_no_write(void **state)
{
    (void)state;
    team_run_sizes(move_or_write);
}

static void move_now_and_then(struct oriel_window *window)
{
    for (uint64_t round = 1; round <= 30; round++) {
        if (window->rank == 0) {
            halt_at_last(writers_of(window));
            usleep(3000); /* the writers wait, asleep at the end */
            move_words(moved_words_of(window));
            oriel_remote_writers_resume(writers_of(window));
        } else {
            write_word(window, round);
        }
        team_barrier();
    }
    /* Of 30: a busy core allows for some, but a writer that is never woken sleeps to the limit each
     * time. */
    team_expect(team_timeouts < 15);
}

static void writers_m4_wakes_waiting_writers(void **state)
{
    (void)state;
    team_run(2, move_now_and_then);
    team_run(4, move_now_and_then);
}

/* Longer than any writer waits without a check whether the target lives. */
static void move_for_long(struct oriel_window *window)
{
    if (window->rank == 0) {
        halt_at_last(writers_of(window));
        team_flag_set(0, 1);
        usleep(350000);
        move_words(moved_words_of(window));
        oriel_remote_writers_resume(writers_of(window));
    } else {
        team_flag_await(0, 1);
        write_word(window, 1);
        team_expect(moved_words_of(window)->where == 1);
    }
    team_barrier();
}

static void writers_e3_waits_while_the_target_lives(void **state)
{
    (void)state;
    team_run(2, move_for_long);
    team_run(4, move_for_long);
}

/* The mover waits for a living writer, up to the limit. */
static void hold_for_long(struct oriel_window *window)
{
    for (uint32_t round = 1; round <= 3; round++) {
        if (window->rank == 1) {
            struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(writers_of(window));
            team_flag_set(0, round);
            usleep(20000);
            team_flag_set(1, round);
            oriel_remote_writers_leave(slot);
        } else if (window->rank == 0) {
            team_flag_await(0, round);
            team_expect(oriel_remote_writers_halt(writers_of(window), oriel_file_identity(),
                                                  true) == ORIEL_OK);
            team_expect(atomic_load(&team->flags[1]) == round);
            oriel_remote_writers_resume(writers_of(window));
        }
        team_barrier();
    }
}

static void writers_m2_waits_for_the_living(void **state)
{
    (void)state;
    team_run(2, hold_for_long);
}

/* A copy that does not end: pages move only if they must, and writers continue afterwards. */
static void hold_for_ever(struct oriel_window *window)
{
    struct oriel_remote_writers *writers = writers_of(window);
    if (window->rank == 1) {
        struct oriel_remote_writers_slot *slot = oriel_remote_writers_enter(writers);
        team_flag_set(0, 1);
        team_flag_await(1, 1);
        write_word(window, 1);
        team_flag_set(2, 1);
        team_flag_await(3, 1);
        oriel_remote_writers_leave(slot);
    } else {
        team_flag_await(0, 1);
        team_expect(oriel_remote_writers_halt(writers, oriel_file_identity(), false) ==
                    ORIEL_E_OTHER);
        team_expect(strstr(oriel_fail_message(), "do not end") != NULL);
        team_flag_set(1, 1);
        team_flag_await(2, 1);
        team_expect(oriel_remote_writers_halt(writers, oriel_file_identity(), true) == ORIEL_OK);
        oriel_remote_writers_resume(writers);
        team_flag_set(3, 1);
    }
    team_barrier();
}

static void copies_that_do_not_end_are_refused_and_reported(void **state)
{
    (void)state;
    puts("one warning about a process that copies for a second is to come:");
    team_run(2, hold_for_ever);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writers_p1_p2_p3_lose_no_write),
        cmocka_unit_test(writers_m4_wakes_waiting_writers),
        cmocka_unit_test(writers_e3_waits_while_the_target_lives),
        cmocka_unit_test(writers_m2_waits_for_the_living),
        cmocka_unit_test(copies_that_do_not_end_are_refused_and_reported),
    };
    return team_main(tests, argc, argv);
}
