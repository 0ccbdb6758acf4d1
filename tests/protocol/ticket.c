/* src/sync/ticket.c alone: a writer is alone, readers share, and all enter in the order of their
 * positions. The lock is that of rank 0's control words; no gate and no access words are involved.
 */
#include "exclusion_check.h"
#include "sync/ticket.h"

#include <sched.h>

enum { ROUNDS = 8000, WAKES = 12, MEMBERS = 6 };

static struct oriel_ticket *the_lock(const struct oriel_window *window)
{
    return &oriel_window_control(window, 0)->lock;
}

/* The number of arrivals so far, while neither half has wrapped around. */
static uint32_t arrived(struct oriel_ticket *lock)
{
    uint64_t queue = atomic_load(&lock->queue);
    return oriel_ticket_number(queue) + oriel_ticket_readers(queue);
}

static void expect_free(struct oriel_ticket *lock)
{
    uint64_t queue = atomic_load(&lock->queue);
    team_expect(atomic_load(&lock->serving) == oriel_ticket_number(queue));
    team_expect(atomic_load(&lock->departed) == oriel_ticket_readers(queue));
}

static void acquire(struct oriel_ticket *lock, bool exclusive)
{
    team_expect(oriel_ticket_lock(lock, exclusive, NULL) == ORIEL_OK);
}

/* All ranks increment a plain word: every increment must see the one before. */
static void count_up(struct oriel_window *window)
{
    volatile uint64_t *word = window_memory(window, 0);
    uint64_t rounds = 0;
    for (; rounds < (uint64_t)team_rounds(ROUNDS) && !team_time_is_up(); rounds++) {
        acquire(the_lock(window), true);
        uint64_t value = *word;
        oriel_delay();
        *word = value + 1;
        oriel_ticket_unlock(the_lock(window), true);
    }
    atomic_fetch_add(&team->flags[0], (uint32_t)rounds);
    team_barrier();
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
            exclusion_check_writer(exclusion_at(window, 0, 0));
        else
            exclusion_check_reader(exclusion_at(window, 0, 0));
        oriel_ticket_unlock(the_lock(window), exclusive);
        oriel_delay();
    }
}

static void visit_often(struct oriel_window *window)
{
    visit(window, team_rounds(ROUNDS));
    team_barrier();
    expect_free(the_lock(window));
}

static void ticket_excludes(void **state)
{
    (void)state;
    team_run_sizes(visit_often);
}

/* Both halves of the queue are about to wrap around. */
static void start_before_the_wrap(struct oriel_ticket *lock, uint32_t rounds)
{
    uint32_t count = UINT32_MAX - rounds;
    atomic_store(&lock->queue, (uint64_t)count << 32 | count);
    atomic_store(&lock->serving, count);
    atomic_store(&lock->departed, count);
}

static void visit_across_the_wrap(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    for (uint32_t round = 0; round < 20 && team_continues(round); round++) {
        if (window->rank == 0)
            start_before_the_wrap(lock, 5);
        team_barrier();
        visit(window, 20);
        team_barrier();
        expect_free(lock);
        /* all arrivals, and the ticket that the wrap of the readers has added */
        team_expect(arrived(lock) == 2 * (UINT32_MAX - 5) + (uint32_t)window->n * 20 + 1);
        team_barrier();
    }
}

static void ticket_counts_across_the_wrap(void **state)
{
    (void)state;
    team_run(3, visit_across_the_wrap);
    team_run(MEMBERS, visit_across_the_wrap);
}

/* All are inside before one leaves. */
static void share(struct oriel_window *window)
{
    for (uint32_t i = 0; i < 50 && team_continues(i); i++) {
        acquire(the_lock(window), false);
        team_barrier();
        oriel_ticket_unlock(the_lock(window), false);
    }
}

static void ticket_shares(void **state)
{
    (void)state;
    team_run_sizes(share);
}

/* The reader whose count wraps around waits for no other reader, and a writer after it waits for
 * all of them. */
static void share_across_the_wrap(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    struct exclusion *exclusion = exclusion_at(window, 0, 0);
    for (uint32_t round = 0; round < 50 && team_continues(round); round++) {
        if (window->rank == 0)
            start_before_the_wrap(lock, (uint32_t)(round % (uint32_t)window->n));
        team_barrier();
        acquire(lock, false);
        team_barrier();
        exclusion_check_reader(exclusion);
        oriel_ticket_unlock(lock, false);
        acquire(lock, true);
        exclusion_check_writer(exclusion);
        oriel_ticket_unlock(lock, true);
        team_barrier();
        expect_free(lock);
        team_barrier();
    }
}

static void ticket_shares_across_the_wrap(void **state)
{
    (void)state;
    team_run_sizes(share_across_the_wrap);
}

/* Rank 0 holds the lock while the others queue one after the other. Each rank counts the ranks that
 * entered before it. No two readers are adjacent, so there is only one right order. */
static void queue_up(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    _Atomic uint32_t *entered = (_Atomic uint32_t *)window_memory(window, 0);
    uint32_t position = (uint32_t)window->rank;
    bool exclusive = window->rank % 3 != 2;
    for (uint32_t round = 0; round < 20 && team_continues(round); round++) {
        if (window->rank == 0) {
            atomic_store(entered, 0);
            atomic_store(&lock->queue, 0);
            lock->serving = lock->departed = 0;
            acquire(lock, true);
        }
        team_barrier();
        while (arrived(lock) < position)
            sched_yield();
        if (window->rank > 0)
            acquire(lock, exclusive);
        else
            while (arrived(lock) < (uint32_t)window->n)
                sched_yield();
        team_expect(atomic_fetch_add(entered, 1) == position);
        oriel_delay();
        oriel_ticket_unlock(lock, exclusive);
        team_barrier();
    }
}

static void ticket_is_fifo(void **state)
{
    (void)state;
    team_run(3, queue_up);
    team_run(MEMBERS, queue_up);
}

/* A reader queued after a waiting writer does not overtake it, though a reader holds the lock. */
static void enter_after(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    struct exclusion *exclusion = exclusion_at(window, 0, 0);
    for (uint32_t round = 0; round < 20 && team_continues(round); round++) {
        uint32_t first = 3 * round;
        while (arrived(lock) != first + (uint32_t)window->rank)
            sched_yield();
        acquire(lock, window->rank == 1);
        if (window->rank == 0)
            while (arrived(lock) != first + 3)
                sched_yield();
        if (window->rank == 1)
            exclusion_check_writer(exclusion);
        if (window->rank == 2)
            team_expect(exclusion->plain[0] == round + 1);
        oriel_ticket_unlock(lock, window->rank == 1);
        team_barrier();
    }
}

static void ticket_readers_do_not_overtake(void **state)
{
    (void)state;
    team_run(3, enter_after);
}

/* The number of times each rank has been inside, by kind. Counted inside. */
struct shares {
    _Atomic uint32_t visits[2][TEAM_MOST];
};

/* No rank overtakes a rank in the queue: until its turn, each of the others enters
 * at most once, from the position that it had already. The order among readers does not count as
 * overtaking. */
static void count_overtakers(struct oriel_window *window)
{
    struct oriel_ticket *lock = the_lock(window);
    struct shares *shares = (struct shares *)window_memory(window, 0);
    uint32_t before[2][TEAM_MOST];
    for (int round = team_rounds(ROUNDS); round > 0 && !team_time_is_up(); round--) {
        bool exclusive = team_random() % 2 == 0;
        uint64_t position = exclusive ? oriel_ticket_draw(lock) : oriel_ticket_enter_reader(lock);
        for (int32_t i = 0; i < 2 * window->n; i++)
            before[i % 2][i / 2] = atomic_load(&shares->visits[i % 2][i / 2]);
        oriel_delay();
        enum oriel_status status = exclusive ? oriel_ticket_await(lock, position, NULL)
                                             : oriel_ticket_await_writers(lock, position, NULL);
        team_expect(status == ORIEL_OK);
        for (int32_t i = 0; i < window->n; i++) {
            uint32_t writes = atomic_load(&shares->visits[1][i]) - before[1][i];
            uint32_t reads = atomic_load(&shares->visits[0][i]) - before[0][i];
            team_expect(writes + (exclusive ? reads : 0) <= 1);
        }
        atomic_fetch_add(&shares->visits[exclusive][window->rank], 1);
        oriel_ticket_unlock(lock, exclusive);
    }
}

static void ticket_overtakes_no_rank(void **state)
{
    (void)state;
    team_run_sizes(count_overtakers);
}

/* A sleeper is woken, rather than ended by its time limit: of many sleeps, few last to the
 * limit. */
static void wake(struct oriel_window *window, bool holder_is_exclusive, bool exclusive)
{
    struct oriel_ticket *lock = the_lock(window);
    for (int i = 0; i < WAKES; i++) {
        if (window->rank == 0) {
            acquire(lock, holder_is_exclusive);
            team_barrier();
            while (atomic_load(&lock->serving_sleepers) + atomic_load(&lock->departed_sleepers) ==
                   0)
                sched_yield();
            usleep(3000);
        } else {
            team_barrier();
            acquire(lock, exclusive);
        }
        oriel_ticket_unlock(lock, window->rank == 0 ? holder_is_exclusive : exclusive);
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void wake_writer(struct oriel_window *window)
{
    wake(window, true, true);
}

static void wake_reader(struct oriel_window *window)
{
    wake(window, true, false);
}

static void wake_writer_after_reader(struct oriel_window *window)
{
    wake(window, false, true);
}

static void ticket_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, wake_writer);
    team_run(2, wake_reader);
    team_run(2, wake_writer_after_reader);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticket_p1_publishes_stores),
        cmocka_unit_test(ticket_excludes),
        cmocka_unit_test(ticket_counts_across_the_wrap),
        cmocka_unit_test(ticket_shares),
        cmocka_unit_test(ticket_shares_across_the_wrap),
        cmocka_unit_test(ticket_is_fifo),
        cmocka_unit_test(ticket_readers_do_not_overtake),
        cmocka_unit_test(ticket_overtakes_no_rank),
        cmocka_unit_test(ticket_wakes_sleepers),
    };
    return team_main(tests, argc, argv);
}
