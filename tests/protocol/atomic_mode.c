/* src/sync/atomic_mode.c: single updates by atomic instructions and bulk updates by plain loops
 * lose none of each other's updates. Singles are free again when bulk updates stop. Bulk updates
 * here pause between load and store. */
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"
#include "make_window.h"

#include <pthread.h>
#include <sched.h>

enum { ROUNDS = 3000, WORDS = 5, THREADS = ORIEL_ATOMIC_MODE_SLOTS + 6 };

static _Atomic uint64_t *word_at(const struct oriel_window *window, int32_t target, unsigned i)
{
    return (_Atomic uint64_t *)(void *)&window_memory(window, target)[i];
}

/* As rma/accumulate.c does it. */
static void update_single(struct oriel_window *window, int32_t target, unsigned i)
{
    _Atomic uint32_t *inside = oriel_atomic_mode_enter(window, target);
    if (inside == NULL)
        team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    oriel_delay();
    atomic_fetch_add_explicit(word_at(window, target, i), 1, memory_order_acq_rel);
    oriel_delay();
    if (inside != NULL) {
        oriel_store_release(inside, 0);
        return;
    }
    oriel_atomic_mode_count(window, target);
    oriel_accumulate_mutex_unlock(window, target);
}

/* As the first one: the target's state is reset, so singles are free soon. */
static void update_bulk_anew(struct oriel_window *window, int32_t target, bool anew)
{
    uint64_t *words = window_memory(window, target);
    team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    if (anew)
        oriel_window_control(window, target)->single_updates_to_leave_bulk = 0;
    oriel_bulk_begin(window, target);
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t value = words[i];
        oriel_delay();
        words[i] = value + 1;
    }
    oriel_accumulate_mutex_unlock(window, target);
}

static void update_bulk(struct oriel_window *window, int32_t target)
{
    update_bulk_anew(window, target, false);
}

static bool is_bulk(const struct oriel_window *window, int32_t target)
{
    return atomic_load(&oriel_window_control(window, target)->bulk) != 0;
}

/* The words of rank 0 and of the last rank, now and then with enough singles in a row to set them
 * free. */
static void update_both(struct oriel_window *window)
{
    uint64_t mine[2] = {0, 0};
    int32_t last = window->n - 1;
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        bool first = team_random() % 4 != 0;
        int32_t target = first ? 0 : last;
        unsigned singles = team_random() % 16 == 0 ? ORIEL_SINGLES_IN_A_ROW : 3;
        if (team_random() % 8 == 0) {
            update_bulk_anew(window, target, true);
            mine[!first] += WORDS;
        }
        for (unsigned k = 0; k < singles; k++)
            update_single(window, target, (unsigned)team_random() % WORDS);
        mine[!first] += singles;
    }
    atomic_fetch_add(&team->flags[0], (uint32_t)mine[0]);
    atomic_fetch_add(&team->flags[1], (uint32_t)mine[1]);
    team_barrier();
    for (int k = 0; k < 2; k++) {
        uint64_t sum = 0;
        for (unsigned i = 0; i < WORDS; i++)
            sum += atomic_load(word_at(window, k == 0 ? 0 : last, i));
        team_expect(sum == atomic_load(&team->flags[k]));
    }
    team_expect(atomic_load(&window->common->bulk_targets) ==
                (uint32_t)is_bulk(window, 0) + (uint32_t)is_bulk(window, last));
}

static void singles_p1_stay_out_of_bulk_updates(void **state)
{
    (void)state;
    team_run_sizes(update_both);
}

/* One rank is inside a single update when another begins a bulk update. */
static void wait_for_single(struct oriel_window *window)
{
    if (window->rank == 0) {
        _Atomic uint32_t *inside = oriel_atomic_mode_enter(window, 1);
        team_expect(inside != NULL);
        team_barrier();
        team_flag_await(2, 1); /* the other rank is about to check */
        for (int i = 0; i < 50; i++)
            sched_yield();
        atomic_store(&team->flags[3], 1);
        oriel_store_release(inside, 0);
    } else {
        team_barrier();
        team_expect(oriel_accumulate_mutex_lock(window, 1) == ORIEL_OK);
        team_flag_set(2, 1);
        oriel_bulk_begin(window, 1);
        team_expect(atomic_load(&team->flags[3]) == 1);
        oriel_accumulate_mutex_unlock(window, 1);
    }
    team_barrier();
}

static void singles_b2_waits_for_singles_inside(void **state)
{
    (void)state;
    team_run(2, wait_for_single);
}

static void set_free(struct oriel_window *window)
{
    if (window->rank == 0) {
        update_single(window, 1, 0);
        _Atomic uint32_t *free_one = oriel_atomic_mode_enter(window, 1);
        team_expect(free_one != NULL);
        oriel_store_release(free_one, 0);
        update_bulk(window, 1);
        team_expect(is_bulk(window, 1) && !is_bulk(window, 0));
        team_expect(oriel_atomic_mode_enter(window, 1) == NULL);
        free_one = oriel_atomic_mode_enter(window, 0); /* another target's are free all the time */
        team_expect(free_one != NULL);
        oriel_store_release(free_one, 0);
        for (int i = 0; i < ORIEL_SINGLES_IN_A_ROW - 1; i++)
            update_single(window, 1, 0);
        team_expect(is_bulk(window, 1));
        update_bulk(window, 1); /* restarts the count of singles */
        for (int i = 0; i < ORIEL_SINGLES_IN_A_ROW; i++) {
            team_expect(is_bulk(window, 1));
            update_single(window, 1, 0);
        }
        team_expect(!is_bulk(window, 1));
        team_expect(atomic_load(&window->common->bulk_targets) == 0);
        update_bulk(window, 1); /* arrives after all: the next wait is twice as long */
        for (int i = 0; i < 2 * ORIEL_SINGLES_IN_A_ROW; i++) {
            team_expect(is_bulk(window, 1));
            update_single(window, 1, 0);
        }
        team_expect(!is_bulk(window, 1));
        free_one = oriel_atomic_mode_enter(window, 1);
        team_expect(free_one != NULL);
        oriel_store_release(free_one, 0);
    }
    team_barrier();
}

static void singles_c2_are_free_again_after_many(void **state)
{
    (void)state;
    team_run(2, set_free);
}

/* --- swaps of 16 bytes --- */

/* As rma/compare_and_swap.c does it: the swap contains the word. */
static void update_wide(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_atomic_mode_widen(window, target) == ORIEL_OK);
    oriel_delay();
    update_single(window, target, 0);
}

/* As rma/accumulate.c does it for an element without an instruction, which contains the word. */
static void update_plain(struct oriel_window *window, int32_t target)
{
    uint64_t *words = window_memory(window, target);
    team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    oriel_delay();
    if (oriel_atomic_mode_is_wide(window, target))
        oriel_bulk_begin(window, target);
    uint64_t value = words[0];
    oriel_delay();
    words[0] = value + 1;
    oriel_accumulate_mutex_unlock(window, target);
}

/* Over and over from the state before the first swap. */
static void swap_among_plain_updates(struct oriel_window *window)
{
    const uint32_t rounds = (uint32_t)team_rounds(ROUNDS / 20);
    for (uint32_t i = 0; i < rounds && team_continues(i); i++) {
        int updates = 0;
        team_barrier();
        if (window->rank == 0) {
            struct oriel_control *control = oriel_window_control(window, 0);
            atomic_store(&control->wide, 0);
            atomic_store(&control->bulk, 0);
            atomic_store(&window->common->bulk_targets, 0);
            control->single_updates_to_leave_bulk = 0;
            atomic_store(word_at(window, 0, 0), 0);
            atomic_store(&team->flags[5], 0);
        }
        team_barrier();
        for (; updates < 6; updates++)
            if (window->rank % 2 == 0)
                update_plain(window, 0);
            else
                update_wide(window, 0);
        atomic_fetch_add(&team->flags[5], (uint32_t)updates);
        team_barrier();
        team_expect(atomic_load(word_at(window, 0, 0)) == atomic_load(&team->flags[5]));
    }
}

static void singles_p4_swaps_stay_out_of_plain_updates(void **state)
{
    (void)state;
    team_run_sizes(swap_among_plain_updates);
}

/* --- threads --- */

static struct {
    pthread_barrier_t barrier_of_threads;
    struct oriel_window *window;
} crowd;

static void *claim(void *with_slot)
{
    _Atomic uint32_t *inside = oriel_atomic_mode_enter(crowd.window, 1);
    pthread_barrier_wait(&crowd.barrier_of_threads);
    if (inside != NULL)
        oriel_store_release(inside, 0);
    *(bool *)with_slot = inside != NULL;
    update_single(crowd.window, 1, 0);
    return NULL;
}

/* Twice, so the second crowd needs the slots of the first. */
static void enter_in_crowds(struct oriel_window *window)
{
    for (int crowds = 0; crowds < 2 && window->rank == 0; crowds++) {
        pthread_t threads[THREADS];
        bool with_slot[THREADS];
        int slots = 0;
        crowd.window = window;
        pthread_barrier_init(&crowd.barrier_of_threads, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            team_expect(pthread_create(&threads[i], NULL, claim, &with_slot[i]) == 0);
        for (int i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
            slots += with_slot[i];
        }
        pthread_barrier_destroy(&crowd.barrier_of_threads);
        team_expect(slots <= ORIEL_ATOMIC_MODE_SLOTS &&
                    /* ranks that are threads have slots, too */
                    slots >= ORIEL_ATOMIC_MODE_SLOTS - 2);
        update_bulk(window, 1);
        for (int i = 0; i < ORIEL_SINGLES_IN_A_ROW; i++)
            update_single(window, 1, 0);
    }
    team_barrier();
    if (window->rank == 0)
        team_expect(atomic_load(word_at(window, 1, 0)) ==
                    2 * (THREADS + 1 + ORIEL_SINGLES_IN_A_ROW));
}

static void singles_of_more_threads_than_slots_acquire_the_lock(void **state)
{
    (void)state;
    team_run(2, enter_in_crowds);
}

/* --- death --- */

static void die_inside(struct oriel_window *window)
{
    if (window->rank == 0) {
        team_expect(oriel_atomic_mode_enter(window, 1) != NULL);
        team_flag_set(4, 1);
        team_die();
    }
    team_flag_await(4, 1);
    update_bulk(window, 1);
    team_expect(is_bulk(window, 1));
}

static void singles_of_the_dead_are_passed_over(void **state)
{
    (void)state;
    if (team_has_threads())
        skip();
    team_run(2, die_inside);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(singles_p1_stay_out_of_bulk_updates),
        cmocka_unit_test(singles_b2_waits_for_singles_inside),
        cmocka_unit_test(singles_c2_are_free_again_after_many),
        cmocka_unit_test(singles_p4_swaps_stay_out_of_plain_updates),
        cmocka_unit_test(singles_of_more_threads_than_slots_acquire_the_lock),
        cmocka_unit_test(singles_of_the_dead_are_passed_over),
    };
    return team_main(tests, argc, argv);
}
