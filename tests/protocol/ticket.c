/* src/sync/ticket.c by itself: a writer is alone, readers share, and all come in the order of their tickets.
 * The lock is that of rank 0's control; no gate and no access words are involved. */
#include "room.h"
#include "sync/ticket.h"

#include <sched.h>

enum { ROUNDS = 8000, WAKES = 12, MEMBERS = 6 };

static struct oriel_ticket *the_lock(const struct oriel_window *window)
{
    return &oriel_window_control(window, 0)->lock;
}

static void acquire(struct oriel_ticket *lock, bool exclusive)
{
    team_expect(oriel_ticket_lock(lock, exclusive, NULL) == ORIEL_OK);
}

/* A plain word, incremented by everybody: every increment must see the one before. */
static void count_up(struct oriel_window *window)
{
    volatile uint64_t *word = fabricate_memory(window, 0);
    uint64_t rounds = 0;
    for (; rounds < (uint64_t)team_rounds(ROUNDS) && !team_time_is_up(); rounds++) {
        acquire(the_lock(window), true);
        uint64_t value = *word;
        oriel_delay();
        *word = value + 1;
        oriel_ticket_unlock(the_lock(window), true);
    }
    atomic_fetch_add(&team->flags[0], (uint32_t)rounds);
    team_meet();
    team_expect(*word == atomic_load(&team->flags[0]));
}

static void ticket_p1_publishes_stores(void **state)
{
    (void)state;
    team_run_sizes(count_up);
}

static void visit(struct oriel_window *window, int rounds)
{
    for (int i = 0; i < rounds && (i < 20 || !team_time_is_up()); i++) {
        bool exclusive = team_random() % 3 == 0;
        acquire(the_lock(window), exclusive);
        if (exclusive)
            room_write(room_at(window, 0, 0));
        else
            room_read(room_at(window, 0, 0));
        oriel_ticket_unlock(the_lock(window), exclusive);
        oriel_delay();
    }
}

static void visit_often(struct oriel_window *window)
{
    visit(window, team_rounds(ROUNDS));
    team_meet();
    team_expect(the_lock(window)->read == the_lock(window)->next);
    team_expect(the_lock(window)->write == the_lock(window)->next);
}

static void ticket_excludes(void **state)
{
    (void)state;
    team_run_sizes(visit_often);
}

static void visit_across_the_wrap(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    if (window->rank == 0)
        lock->next = lock->read = lock->write = UINT32_MAX - 5;
    team_meet();
    visit(window, 20);
    team_meet();
    team_expect(lock->next == 54 && lock->read == 54 && lock->write == 54); /* 3 times 20 from there */
}

static void ticket_counts_across_the_wrap(void **state)
{
    (void)state;
    team_run(3, visit_across_the_wrap);
}

/* All are inside before one leaves. */
static void share(struct oriel_window *window)
{
    for (uint32_t i = 0; i < 50 && team_goes_on(i); i++) {
        acquire(the_lock(window), false);
        team_meet();
        oriel_ticket_unlock(the_lock(window), false);
    }
}

static void ticket_shares(void **state)
{
    (void)state;
    team_run_sizes(share);
}

/* Rank 0 holds the lock while the others queue up one after the other; everybody counts how many came in before.  No two
 * readers stand next to each other, so that there is only one right order. */
static void queue_up(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    _Atomic uint32_t *entered = (_Atomic uint32_t *)fabricate_memory(window, 0);
    uint32_t place = (uint32_t)window->rank;
    bool exclusive = window->rank % 3 != 2;
    for (uint32_t round = 0; round < 20 && team_goes_on(round); round++) {
        if (window->rank == 0) {
            atomic_store(entered, 0);
            lock->next = lock->read = lock->write = 0;
            acquire(lock, true);
        }
        team_meet();
        while (oriel_load_acquire(&lock->next) < place)
            sched_yield();
        if (window->rank > 0)
            acquire(lock, exclusive);
        else
            while (oriel_load_acquire(&lock->next) < (uint32_t)window->n)
                sched_yield();
        team_expect(atomic_fetch_add(entered, 1) == place);
        oriel_delay();
        oriel_ticket_unlock(lock, exclusive);
        team_meet();
    }
}

static void ticket_is_fifo(void **state)
{
    (void)state;
    team_run(3, queue_up);
    team_run(MEMBERS, queue_up);
}

/* A reader that comes behind a waiting writer does not overtake it, though a reader holds the lock. */
static void come_behind(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    struct room *room = room_at(window, 0, 0);
    for (uint32_t round = 0; round < 20 && team_goes_on(round); round++) {
        uint32_t first = 3 * round;
        while (oriel_load_acquire(&lock->next) != first + (uint32_t)window->rank)
            sched_yield();
        acquire(lock, window->rank == 1);
        if (window->rank == 0)
            while (oriel_load_acquire(&lock->next) != first + 3)
                sched_yield();
        if (window->rank == 1)
            room_write(room);
        if (window->rank == 2)
            team_expect(room->plain[0] == round + 1);
        oriel_ticket_unlock(lock, window->rank == 1);
        team_meet();
    }
}

static void ticket_readers_do_not_overtake(void **state)
{
    (void)state;
    team_run(3, come_behind);
}

/* A sleeper is woken, not found out by its time limit: of many sleeps, few last to the limit. */
static void wake(struct oriel_window *window, bool exclusive)
{
    struct oriel_ticket *lock = the_lock(window);
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 0) {
            acquire(lock, true);
            team_meet();
            while (atomic_load(&lock->read_sleepers) + atomic_load(&lock->write_sleepers) == 0)
                sched_yield();
            usleep(3000);
        } else {
            team_meet();
            acquire(lock, exclusive);
        }
        oriel_ticket_unlock(lock, window->rank == 0 || exclusive);
        team_meet();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void wake_writer(struct oriel_window *window)
{
    wake(window, true);
}

static void wake_reader(struct oriel_window *window)
{
    wake(window, false);
}

static void ticket_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, wake_writer);
    team_run(2, wake_reader);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_p1_publishes_stores),
        cmocka_unit_test(ticket_excludes),
        cmocka_unit_test(ticket_counts_across_the_wrap),
        cmocka_unit_test(ticket_shares),
        cmocka_unit_test(ticket_is_fifo),
        cmocka_unit_test(ticket_readers_do_not_overtake),
        cmocka_unit_test(ticket_wakes_sleepers),
    };
    return team_main(tests, argc, argv);
}
