/* src/internode/origin/origin_sync.c: threads of one process send, flush, lock and unlock
 * concurrently. */
#include "internode/origin/target_flags.h"

#include "simulated_nodes.h"

#include <pthread.h>
#include <stdlib.h>

enum { FLUSHES = 400, ROUNDS = 1500, LEAST = 100 };

/* Each rank has its own word at each target. */
static uint64_t own(void)
{
    return (uint64_t)team_rank;
}

struct helper {
    struct oriel_window *window;
    int32_t target;
    _Atomic uint64_t sent; /* by the other thread, after its put has returned */
    _Atomic bool ends;
};

static void *send_concurrently(void *context)
{
    struct helper *helper = context;
    team_rank = helper->window->rank;
    for (uint64_t i = 1; !atomic_load(&helper->ends); i++) {
        team_expect(nodes_put(helper->window, helper->target, own(), i) == ORIEL_OK);
        atomic_store(&helper->sent, i);
        if (i % 8 == 0)
            usleep(50);
        oriel_delay();
    }
    return NULL;
}

static void *flush_on(void *context)
{
    struct helper *helper = context;
    team_rank = helper->window->rank;
    while (!atomic_load(&helper->ends)) {
        team_expect(oriel_internode_flush(
                        helper->window, team_random() % 2 == 0 ? -1 : helper->target) == ORIEL_OK);
        oriel_delay();
    }
    return NULL;
}

/* F1 to F3: a flush completes what any thread has sent before it began, also when another thread
 * flushes meanwhile. */
static void two_threads_send_and_flush(struct oriel_window *whole)
{
    pthread_t threads[2];
    struct oriel_window *window = nodes_open();
    struct helper helper = {.window = window, .target = nodes_remote_rank(window)};
    team_expect(pthread_create(&threads[0], NULL, send_concurrently, &helper) == 0);
    team_expect(pthread_create(&threads[1], NULL, flush_on, &helper) == 0);
    for (int i = 0; i < FLUSHES && !(i > LEAST && team_time_is_up()); i++) {
        uint64_t sent = atomic_load(&helper.sent);
        team_expect(oriel_internode_flush(window, i % 2 == 0 ? -1 : helper.target) == ORIEL_OK);
        team_expect(nodes_peek(whole, helper.target, own()) >= sent);
        oriel_delay();
    }
    atomic_store(&helper.ends, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
    nodes_close(window);
    nodes_stop();
}

static void internode_f1_f3_flush_completes_messages_of_other_threads(void **state)
{
    (void)state;
    nodes_run(2, 2, two_threads_send_and_flush);
    nodes_run(4, 2, two_threads_send_and_flush);
}

static struct oriel_window *sender;
static _Thread_local unsigned delays_left; /* until this thread sends */

static void send_at_a_delay(void)
{
    if (delays_left > 0 && --delays_left == 0)
        team_expect(nodes_put(sender, nodes_remote_rank(sender), own(), 1) == ORIEL_OK);
}

/* F2: a message that is sent while a flush sends its request is marked for the next flush. It is
 * sent in each of the flush's first delays in turn, in place of another thread. */
static void send_during_flushes(struct oriel_window *whole)
{
    enum { DELAYS = 4 };
    struct oriel_window *window = nodes_open();
    int32_t target = nodes_remote_rank(window);
    sender = window;
    for (unsigned number = 1; number <= DELAYS && delays_left == 0; number++) {
        team_expect(nodes_put(window, target, own(), 0) == ORIEL_OK);
        delays_left = number;
        team_expect(oriel_internode_flush(window, target) == ORIEL_OK);
        bool is_sent = delays_left == 0;
        team_expect(is_sent || number > 1);
        int32_t marked = oriel_internode_flag_next(window->internode, -1, ORIEL_INTERNODE_SENT);
        team_expect(marked == (is_sent ? target : -1));
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
        team_expect(nodes_peek(whole, target, own()) == is_sent);
    }
    delays_left = 0;
    nodes_close(window);
    nodes_stop();
}

static void internode_f2_a_message_during_a_flush_is_marked(void **state)
{
    (void)state;
    team_at_delay = send_at_a_delay;
    nodes_run(2, 2, send_during_flushes);
    team_at_delay = NULL;
}

static void *flush_all_on(void *context)
{
    struct helper *helper = context;
    team_rank = helper->window->rank;
    while (!atomic_load(&helper->ends)) {
        team_expect(oriel_internode_flush(helper->window, -1) == ORIEL_OK);
        oriel_delay();
    }
    return NULL;
}

/* Another thread flushes everything: the lock is released nevertheless. */
static void unlock_during_flushes(struct oriel_window *whole)
{
    pthread_t thread;
    struct oriel_window *window = nodes_open();
    struct helper helper = {.window = window};
    (void)whole;
    team_expect(pthread_create(&thread, NULL, flush_all_on, &helper) == 0);
    for (int i = 0; i < ROUNDS && !(i > LEAST && team_time_is_up()); i++) {
        int32_t target = (int32_t)(team_random() % (uint64_t)window->n);
        team_expect(oriel_lock(window, target, true) == ORIEL_OK);
        team_expect(nodes_put(window, target, 1, 1) == ORIEL_OK);
        team_expect(oriel_unlock(window, target) == ORIEL_OK);
    }
    atomic_store(&helper.ends, true);
    pthread_join(thread, NULL);
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_unlock_during_another_threads_flushes_releases(void **state)
{
    (void)state;
    nodes_run(2, 2, unlock_during_flushes);
    nodes_run(4, 2, unlock_during_flushes);
}

static void *get_on(void *context)
{
    struct helper *helper = context;
    struct oriel_window *window = helper->window;
    uint64_t got = 1;
    team_rank = window->rank;
    for (int32_t i = 0; i < window->n; i++) {
        team_expect(nodes_get(window, i, 0, &got) == ORIEL_OK);
        team_expect(oriel_internode_flush(window, i) == ORIEL_OK);
        team_expect(got == 0);
    }
    return NULL;
}

/* HELD: with any number of threads entering at once, the target's lock is acquired once and
 * released once. */
static void enter_together(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    (void)whole;
    for (int i = 0; i < 50 && !team_time_is_up(); i++) {
        pthread_t threads[3];
        struct helper helper = {.window = window};
        team_expect(oriel_lock_all(window) == ORIEL_OK);
        for (int j = 0; j < 3; j++)
            team_expect(pthread_create(&threads[j], NULL, get_on, &helper) == 0);
        for (int j = 0; j < 3; j++)
            pthread_join(threads[j], NULL);
        team_expect(oriel_unlock_all(window) == ORIEL_OK);
    }
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_all_acquires_each_lock_once(void **state)
{
    (void)state;
    nodes_run(2, 2, enter_together);
    nodes_run(4, 3, enter_together);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_f1_f3_flush_completes_messages_of_other_threads),
        cmocka_unit_test(internode_f2_a_message_during_a_flush_is_marked),
        cmocka_unit_test(internode_unlock_during_another_threads_flushes_releases),
        cmocka_unit_test(internode_lock_all_acquires_each_lock_once),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
