/* src/sync/pscw_counters.c and src/sync/access_words.c: entries for partners and targets are
 * created at first use, found by peers that search at the same time, and never moved. A failure for
 * lack of memory leaves no trace. */
#include "make_window.h"
#include "memory/file.h"
#include "sync/access_words.h"
#include "sync/pscw_counters.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { MANY = 3000, THREADS = 4, WAKES = 12, MOST_BLOCKS = 16384 };

static struct oriel_pscw_counter *make(struct oriel_window *window, int32_t peer)
{
    struct oriel_pscw_counter *own;
    team_expect(oriel_pscw_counters_make(window, peer, &own) == ORIEL_OK &&
                own == oriel_pscw_counters_own(window, peer));
    return own;
}

/* A window of its own for one rank with any number of peers: entries are only created, and no rank
 * waits for them. */
static void make_many(struct oriel_window *window)
{
    static struct oriel_pscw_counter *entries[MANY];
    for (int32_t i = 0; i < MANY; i++) {
        int32_t peer = i * 64; /* the distance of neighbours in a grid */
        team_expect(oriel_pscw_counters_own(window, peer) == NULL);
        entries[i] = make(window, peer);
        team_expect(entries[i]->posts.value == 0 && entries[i]->completes.value == 0);
        entries[i]->posts.value = (uint32_t)i;
        team_expect(make(window, peer) == entries[i]);
    }
    for (int32_t i = 0; i < MANY; i++) {
        team_expect(oriel_pscw_counters_own(window, i * 64) == entries[i]);
        team_expect(entries[i]->posts.value == (uint32_t)i);
        team_expect(oriel_pscw_counters_own(window, i * 64 + 1) == NULL);
    }
    team_expect(window->control->partners.made.value == MANY);
}

static void partners_of_any_number_have_an_entry_each(void **state)
{
    (void)state;
    team_run(1, make_many);
}

/* Whether the size of a table depends on the partners, not on the ranks: 2 of 1000 need only the
 * first table. */
static void make_two(struct oriel_window *window)
{
    make(window, 3);
    make(window, 999);
    struct oriel_pscw_counter_table *table =
        (struct oriel_pscw_counter_table *)(oriel_file_base() + window->control->partners.newest);
    team_expect(table->older == 0 && table->capacity == 8 && table->count == 2);
}

static void partners_cost_nothing_before_their_first_epoch(void **state)
{
    (void)state;
    team_run(1, make_two);
}

/* Rank 0 creates entries for strangers and, between them, for the other ranks, which search all the
 * time. They find the entry with its counter, and find it at the same location ever after. */
static void look_while_it_grows(struct oriel_window *window)
{
    for (uint32_t round = 0; team_continues(round); round++) {
        struct oriel_pscw_counters *partners = &window->control->partners;
        if (window->rank == 0) {
            uint32_t strangers = (uint32_t)(team_random() % 40);
            for (uint32_t i = 0; i < strangers; i++)
                make(window, 1000 + (int32_t)i);
            for (int32_t i = window->n - 1; i > 0; i--) {
                make(window, 2000 + i);
                /* the last one created is for rank 1 */
                oriel_event_signal(&make(window, i)->posts);
            }
        } else {
            struct oriel_pscw_counter *theirs;
            struct oriel_pscw_counter *own = make(window, 0);
            team_expect(oriel_pscw_counters_look(window, own, NULL, &theirs) == ORIEL_OK);
            team_expect(theirs->peer == (uint32_t)window->rank + 1);
            team_expect(oriel_event_wait(&theirs->posts, 1, NULL) == ORIEL_OK);
            team_expect(oriel_pscw_counters_theirs(window, own) == theirs);
            own->theirs = 0;
            team_expect(oriel_pscw_counters_theirs(window, own) == theirs);
        }
        team_barrier();
        oriel_pscw_counters_close(window);
        partners->newest = 0;
        partners->made.value = 0;
        team_barrier();
    }
}

static void partners_p1_p2_are_found_while_tables_grow(void **state)
{
    (void)state;
    team_run_sizes(look_while_it_grows);
}

/* Of many sleeps few last to the time limit: N3 wakes ranks that search for an entry. */
static void look_asleep(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    struct oriel_pscw_counters *partners = &oriel_window_control(window, 0)->partners;
    make(window, 20 + window->rank);
    for (int32_t i = 0; i < WAKES; i++) {
        if (window->rank == 0) {
            while (atomic_load(&partners->made.sleepers) == 0)
                sched_yield();
            usleep(3000);
            make(window, i < WAKES - 1 ? 100 + i : other);
        } else {
            uint32_t wanted = (uint32_t)i + 2;
            team_expect(oriel_event_wait(&partners->made, wanted, NULL) == ORIEL_OK);
            bool last = i == WAKES - 1;
            team_expect((oriel_pscw_counters_theirs(window, make(window, other)) != NULL) == last);
        }
        team_barrier();
    }
    team_expect(team_timeouts < WAKES / 2);
}

static void partners_n3_wakes_sleepers(void **state)
{
    (void)state;
    team_run(2, look_asleep);
}

static struct oriel_window *threads_window;
static _Atomic uint32_t threads_ready;
static _Atomic uint32_t threads_locked;

/* The same entries by all threads, each starting at another one; and the first locks of the
 * window. */
static void *make_in_thread(void *context)
{
    int32_t first = *(const int32_t *)context;
    atomic_fetch_add(&threads_ready, 1);
    while (atomic_load(&threads_ready) < THREADS)
        sched_yield();
    for (int32_t i = 0; i < 64; i++) {
        int32_t peer = (first * 16 + i) % 64;
        oriel_event_signal(&make(threads_window, peer)->posts);
    }
    if (oriel_lock(threads_window, 0, false) ==
        ORIEL_OK) /* the others: this process has locked it already */
        atomic_fetch_add(&threads_locked, 1);
    return NULL;
}

static void make_in_threads(struct oriel_window *window)
{
    for (uint32_t round = 0; team_continues(round); round++) {
        pthread_t threads[THREADS];
        int32_t firsts[THREADS];
        threads_window = window;
        threads_ready = threads_locked = 0;
        for (int32_t i = 0; i < THREADS; i++) {
            firsts[i] = i;
            team_expect(pthread_create(&threads[i], NULL, make_in_thread, &firsts[i]) == 0);
        }
        for (int32_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        team_expect(threads_locked == 1 && oriel_unlock(window, 0) == ORIEL_OK);
        for (int32_t i = 0; i < 64; i++)
            team_expect(oriel_pscw_counters_own(window, i)->posts.value == THREADS);
        team_expect(window->control->partners.made.value == 64);
        team_expect(window->group->absent[0] == ORIEL_ACCESS_STATE_ABSENT);
        oriel_pscw_counters_close(window);
        oriel_access_words_close(window);
        window->control->partners.newest = window->control->access_offset = 0;
        window->control->partners.made.value = 0;
        window->access = window->group->absent;
    }
}

static void partners_p3_are_made_once_by_many_threads(void **state)
{
    (void)state;
    team_run(1, make_in_threads);
}

/* Between the creation of access words and their use by the window: long enough for another thread
 * to create some, too. */
static void create_late(void)
{
    uint64_t begin_ns = oriel_now_ns();
    atomic_fetch_add(&threads_locked, 1);
    while (atomic_load(&threads_ready) < 2)
        sched_yield();
    while (atomic_load(&threads_locked) < 2 && oriel_now_ns() - begin_ns < 100000000)
        sched_yield();
}

static void *create_in_thread(void *context)
{
    atomic_fetch_add(&threads_ready, 1);
    team_expect(oriel_access_words_create(context) == ORIEL_OK);
    return NULL;
}

static void create_in_threads(struct oriel_window *window)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        team_expect(pthread_create(&threads[i], NULL, create_in_thread, window) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    team_expect(threads_locked == 1);
    oriel_access_words_close(window);
    window->control->access_offset = 0;
    window->access = window->group->absent;
}

static void access_words_are_created_once_by_two_threads(void **state)
{
    (void)state;
    team_at_delay = create_late;
    team_run(1, create_in_threads);
    team_at_delay = NULL;
}

/* Allocates all of this process's memory file, or frees it. */
static void exhaust(bool take)
{
    static uint64_t blocks[MOST_BLOCKS];
    static size_t count;
    for (uint64_t len_bytes = UINT64_C(1) << 46; take && len_bytes >= 64; len_bytes /= 2)
        while (oriel_file_alloc_sparse(len_bytes, &blocks[count]) == ORIEL_OK)
            team_expect(++count < MOST_BLOCKS);
    while (!take && count > 0)
        team_expect(oriel_file_free(blocks[--count]));
}

static void expect_no_memory(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    team_expect(window->epoch == ORIEL_EPOCH_FENCE);
    team_expect(oriel_lock(window, other, true) == ORIEL_E_NO_MEM);
    team_expect(oriel_lock(window, other, false) == ORIEL_E_NO_MEM);
    team_expect(oriel_start(window, window_ranks(&other, 1), 1) == ORIEL_E_NO_MEM);
    team_expect(oriel_post(window, window_ranks(&other, 1), 1) == ORIEL_E_NO_MEM);
    team_expect(window->epoch == ORIEL_EPOCH_FENCE && window->exposed == 0 &&
                window->control->access_offset == 0);
    team_expect(!oriel_locks_held(window) && oriel_epochs_closed(window) == ORIEL_OK);
    team_expect(oriel_wait_exposure(window) == ORIEL_E_SYNC &&
                oriel_complete(window) == ORIEL_E_SYNC);
    team_expect(oriel_start(window, window_ranks(NULL, 0), 0) == ORIEL_OK &&
                oriel_complete(window) == ORIEL_OK);
}

static void epochs_of_both_kinds(struct oriel_window *window)
{
    const int32_t other = 1 - window->rank;
    team_expect(oriel_post(window, window_ranks(&other, 1), 1) == ORIEL_OK);
    team_expect(oriel_start(window, window_ranks(&other, 1), 1) == ORIEL_OK);
    team_expect(oriel_complete(window) == ORIEL_OK && oriel_wait_exposure(window) == ORIEL_OK);
    team_barrier();
    team_expect(oriel_lock(window, other, true) == ORIEL_OK &&
                oriel_unlock(window, other) == ORIEL_OK);
}

/* Both fail; then there is room for all, and at last for no further partner, and the existing ones
 * remain. */
static void run_out(struct oriel_window *window)
{
    int32_t stranger = 100;
    struct oriel_pscw_counter *own;
    team_expect(oriel_fence(window, false) == ORIEL_OK);
    exhaust(true);
    expect_no_memory(window);
    exhaust(false);
    team_barrier();
    epochs_of_both_kinds(window);
    exhaust(true);
    enum oriel_status status = ORIEL_OK;
    for (; status == ORIEL_OK; stranger++)
        status = oriel_pscw_counters_make(window, stranger, &own);
    team_expect(status == ORIEL_E_NO_MEM && window->control->partners.made.value == 4);
    team_barrier();
    epochs_of_both_kinds(window);
    exhaust(false);
}

static void partners_and_access_without_memory_change_nothing(void **state)
{
    (void)state;
    if (!team_has_threads()) /* threads share one memory file */
        team_run(2, run_out);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partners_of_any_number_have_an_entry_each),
        cmocka_unit_test(partners_cost_nothing_before_their_first_epoch),
        cmocka_unit_test(partners_p1_p2_are_found_while_tables_grow),
        cmocka_unit_test(partners_n3_wakes_sleepers),
        cmocka_unit_test(partners_p3_are_made_once_by_many_threads),
        cmocka_unit_test(access_words_are_created_once_by_two_threads),
        cmocka_unit_test(partners_and_access_without_memory_change_nothing),
    };
    return team_main(tests, argc, argv);
}
