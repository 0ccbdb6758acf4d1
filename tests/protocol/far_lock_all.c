/* src/sync/far_shares.c (J1 to J4), far.c: epochs of lock_all that take locks of several targets of another machine, at which
 * exclusive locks wait.  The targets are ranks of machine 0, the origins ranks of machine 1. */
#include "apart.h"
#include "room.h"

#include <sched.h>

enum { TIMES = 5, ROUNDS = 300 };

/* A rank of a machine, in their order. */
static int32_t one_of(int32_t machine, int which)
{
    int32_t rank = 0;
    while (apart_machine(rank) != machine || which-- > 0)
        rank++;
    return rank;
}

/* Which of them this is, or -1. */
static int place_in(int32_t machine)
{
    int place = 0;
    for (int32_t rank = 0; rank < team_rank; rank++)
        place += apart_machine(rank) == machine;
    return apart_machine(team_rank) == machine ? place : -1;
}

static uint32_t writers(const struct oriel_window *whole, int32_t target)
{
    return (uint32_t)(atomic_load(apart_queue(whole, target)) >> 32);
}

static uint32_t readers(const struct oriel_window *whole, int32_t target)
{
    return (uint32_t)atomic_load(apart_queue(whole, target));
}

static void await_writer(const struct oriel_window *whole, int32_t target, uint32_t before)
{
    while (writers(whole, target) == before)
        sched_yield();
}

static void take(struct oriel_window *window, int32_t target)
{
    uint64_t got = UINT64_MAX;
    team_expect(apart_get(window, target, 0, &got) == ORIEL_OK);
    team_expect(oriel_far_flush(window, target) == ORIEL_OK && got == 0);
}

static void begin(struct oriel_window *window, int32_t first)
{
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    take(window, first);
}

static void lock_and_count(struct oriel_window *window, int32_t target, _Atomic uint32_t *inside)
{
    team_expect(oriel_lock(window, target, true) == ORIEL_OK);
    atomic_fetch_add(inside, 1);
    team_expect(oriel_unlock(window, target) == ORIEL_OK);
}

/* Each origin holds one target's lock and wants the other's, where an exclusive lock waits by then: of the target itself, or of a
 * rank of a third machine. */
static void close_circle(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    int origin = place_in(1);
    int writer = place_in(apart_machines == 2 ? 0 : 2);
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        const int32_t targets[] = {one_of(0, 0), one_of(0, 1)};
        const uint32_t before[] = {writers(whole, targets[0]), writers(whole, targets[1])};
        if (origin >= 0)
            begin(window, targets[origin]);
        team_meet();
        if (writer >= 0)
            lock_and_count(window, targets[writer], inside);
        if (origin >= 0) {
            await_writer(whole, targets[0], before[0]);
            await_writer(whole, targets[1], before[1]);
            take(window, targets[1 - origin]);
            team_expect(atomic_load(inside) == 2 * (i - 1));
            team_flag_set(origin, i);
            team_flag_await(1 - origin, i);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_meet();
        team_expect(atomic_load(inside) == 2 * i);
    }
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_all_and_waiting_locks_close_no_circle(void **state)
{
    (void)state;
    apart_run(4, 2, close_circle);
    apart_run(6, 3, close_circle);
}

/* One origin holds the lock of the third target, for which the target waits, and another one shares it: the limit there grows by
 * one, and is told the latter. */
static void raise_limit(struct oriel_window *whole, struct oriel_window *window, int holder, int passer, uint32_t step)
{
    int32_t target = one_of(0, 2);
    uint32_t before = writers(whole, target);
    team_meet();
    if (place_in(1) == holder)
        begin(window, target);
    team_meet();
    if (team_rank == target) {
        team_expect(oriel_lock(window, target, true) == ORIEL_OK && oriel_unlock(window, target) == ORIEL_OK);
    } else if (place_in(1) == passer) {
        await_writer(whole, target, before);
        begin(window, one_of(0, 1));
        take(window, target);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
        team_flag_set(0, step);
    } else if (place_in(1) == holder) {
        team_flag_await(0, step);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_meet();
}

/* Origins 0 and 1 hold the lock of target 0 and 1 and want the other's, as in close_circle, with numbers that are not 0. */
static void close_numbered(struct oriel_window *whole, struct oriel_window *window, bool takes_third)
{
    const uint32_t before[] = {writers(whole, one_of(0, 0)), writers(whole, one_of(0, 1))};
    int origin = place_in(1);
    bool is_origin = origin == 0 || origin == 1;
    team_meet();
    if (is_origin)
        begin(window, one_of(0, origin));
    if (origin == 0 && takes_third)
        take(window, one_of(0, 2));
    team_meet();
    if (place_in(0) == 0 || place_in(0) == 1)
        team_expect(oriel_lock(window, team_rank, true) == ORIEL_OK && oriel_unlock(window, team_rank) == ORIEL_OK);
    if (is_origin) {
        await_writer(whole, one_of(0, 0), before[0]);
        await_writer(whole, one_of(0, 1), before[1]);
        take(window, one_of(0, 1 - origin));
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

/* Origin 1 has number 1; origin 0 has number 0 and is told a limit of 2 when it holds a lock already. */
static void told_in_between(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    raise_limit(whole, window, 2, 1, 1);
    raise_limit(whole, window, 1, 2, 2);
    close_numbered(whole, window, true);
}

static void far_lock_all_keeps_its_number(void **state)
{
    (void)state;
    apart_run(6, 2, told_in_between);
}

/* Origin 1 has number 1, origin 0 number 2, which the limits of the first two targets must be above. */
static void numbered(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    raise_limit(whole, window, 2, 1, 1);
    raise_limit(whole, window, 2, 0, 2);
    close_numbered(whole, window, false);
}

static void far_lock_all_limits_are_above_all_numbers(void **state)
{
    (void)state;
    apart_run(6, 2, numbered);
}

/* One target's lock is held all the time, by one epoch or another that holds the other target's, while its own rank waits for
 * it. */
static void overtake(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    int32_t target = one_of(0, 0);
    int32_t other = one_of(0, 1);
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        uint32_t writers_before = writers(whole, target);
        uint32_t readers_before = readers(whole, target);
        team_meet();
        if (team_rank == target) {
            team_flag_await(0, i * 10);
            lock_and_count(window, target, inside);
        } else if (place_in(1) == 0) {
            begin(window, other);
            take(window, target);
            team_flag_set(0, i * 10);
            team_flag_await(1, i * 10);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
            begin(window, other);
            take(window, target); /* its first epoch had come before */
            team_expect(atomic_load(inside) == i - 1);
            team_flag_set(0, i * 10 + 1);
            while (readers(whole, target) - readers_before < 2) /* the other's second epoch stands behind */
                sched_yield();
            team_expect(atomic_load(inside) == i - 1);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        } else if (place_in(1) == 1) {
            await_writer(whole, target, writers_before);
            begin(window, other);
            take(window, target);
            team_expect(atomic_load(inside) == i - 1);
            team_flag_set(1, i * 10);
            team_flag_await(0, i * 10 + 1);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
            begin(window, other);
            take(window, target);
            team_expect(atomic_load(inside) == i);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_meet();
    }
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_all_overtakes_once(void **state)
{
    (void)state;
    apart_run(4, 2, overtake);
}

/* An epoch's first lock is wanted where another epoch holds it and an exclusive lock waits. */
static void come_first(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    int32_t target = one_of(0, 0);
    _Atomic uint32_t *inside = (_Atomic uint32_t *)fabricate_memory(whole, 0);
    for (uint32_t i = 1; i <= TIMES; i++) {
        uint32_t writers_before = writers(whole, target);
        uint32_t readers_before = readers(whole, target);
        team_meet();
        if (team_rank == target) {
            team_flag_await(0, i);
            lock_and_count(window, target, inside);
        } else if (place_in(1) == 0) {
            begin(window, target);
            team_flag_set(0, i);
            while (readers(whole, target) - readers_before < 2)
                sched_yield();
            team_expect(atomic_load(inside) == i - 1);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        } else if (place_in(1) == 1) {
            await_writer(whole, target, writers_before);
            begin(window, target);
            team_expect(atomic_load(inside) == i);
            team_expect(oriel_unlock_all(window) == ORIEL_OK);
        }
        team_meet();
    }
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_all_that_holds_nothing_overtakes_nobody(void **state)
{
    (void)state;
    apart_run(4, 2, come_first);
}

/* All at random: half of the locks are exclusive, the others' epochs take four targets' in any order. */
static void mix(struct oriel_window *whole)
{
    struct oriel_window *window = apart_open();
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        bool exclusive = team_random() % 2 != 0;
        int32_t first = (int32_t)(team_random() % (uint64_t)window->n);
        if (exclusive) {
            team_expect(oriel_lock(window, first, true) == ORIEL_OK);
            room_write(room_at(whole, first, 0));
            team_expect(oriel_unlock(window, first) == ORIEL_OK);
            continue;
        }
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        for (int32_t step = 0; step < 4; step++) {
            int32_t target = (first + step * 3) % window->n;
            take(window, target);
            room_read(room_at(whole, target, 0));
        }
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_meet();
    apart_expect_free(window);
    apart_close(window);
    apart_stop();
}

static void far_lock_all_of_many_targets_excludes_and_ends(void **state)
{
    (void)state;
    apart_run(4, 2, mix);
    apart_run(5, 3, mix);
    apart_run(8, 4, mix);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(far_lock_all_and_waiting_locks_close_no_circle),
        cmocka_unit_test(far_lock_all_keeps_its_number),
        cmocka_unit_test(far_lock_all_limits_are_above_all_numbers),
        cmocka_unit_test(far_lock_all_overtakes_once),
        cmocka_unit_test(far_lock_all_that_holds_nothing_overtakes_nobody),
        cmocka_unit_test(far_lock_all_of_many_targets_excludes_and_ends),
    };
    apart_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
