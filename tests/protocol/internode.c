/* src/internode/origin/origin_sync.c: operations on other nodes are complete after their flush;
 * each failure is reported once. */
#include "internode/origin/flush_several.h"
#include "internode/origin/target_flags.h"

#include "simulated_nodes.h"
#include "no_memory.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, OPEN_MOST = 1024 };

/* Each rank has its own word at each target. */
static uint64_t own(void)
{
    return (uint64_t)team_rank;
}

static int32_t any_rank(const struct oriel_window *window)
{
    return (int32_t)(team_random() % (uint64_t)window->n);
}

/* Data put before a flush is there for any rank that learns of the flush by other means. */
static void put_flush_look(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (uint32_t round = 0; team_continues(round) && round < ROUNDS; round++) {
        int32_t shift = 1 + (int32_t)(round % (uint32_t)(window->n - 1));
        int32_t target = (window->rank + shift) % window->n;
        for (uint64_t i = 0; i < 3; i++)
            team_expect(nodes_put(window, target, own(), round * 3 + i + 1) == ORIEL_OK);
        team_expect(oriel_internode_flush(window, round % 2 == 0 ? target : -1) == ORIEL_OK);
        team_barrier();
        team_expect(nodes_load(window, (uint64_t)((window->rank + window->n - shift) %
                                                  window->n)) == round * 3 + 3);
        team_barrier();
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_flush_completes_earlier_messages(void **state)
{
    (void)state;
    nodes_run_sizes(put_flush_look);
}

static void list_flush_look(struct oriel_window *whole)
{
    int ranks[TEAM_MOST];
    struct oriel_window *window = nodes_open();
    for (int32_t i = 0; i < window->n; i++)
        ranks[i] = (window->rank + i) % window->n;
    for (uint32_t round = 1; team_continues(round) && round < ROUNDS; round++) {
        for (int32_t i = 0; i < window->n; i++)
            team_expect(nodes_put(window, i, own(), round) == ORIEL_OK);
        team_expect(oriel_internode_flush_list(window, window->n, ranks) == ORIEL_OK);
        team_barrier();
        for (int32_t i = 0; i < window->n; i++)
            team_expect(nodes_load(window, (uint64_t)i) == round);
        team_barrier();
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_list_completes_its_ranks(void **state)
{
    (void)state;
    nodes_run_sizes(list_flush_look);
}

static void windows_flush_look(struct oriel_window *whole)
{
    struct oriel_window *windows[3], *failed;
    for (int w = 0; w < 3; w++)
        windows[w] = nodes_open();
    const int32_t n = windows[0]->n;
    for (uint32_t round = 1; team_continues(round) && round < ROUNDS; round++) {
        for (int w = 0; w < 3; w++)
            for (int32_t i = 0; i < n; i++)
                team_expect(nodes_put(windows[w], i, own(), round + (uint32_t)w) == ORIEL_OK);
        team_expect(oriel_internode_flush_windows(windows, 3, &failed) == ORIEL_OK);
        team_barrier();
        for (int w = 0; w < 3; w++)
            for (int32_t i = 0; i < n; i++)
                team_expect(nodes_load(windows[w], (uint64_t)i) == round + (uint32_t)w);
        team_barrier();
    }
    /* one of them reports, once; all are flushed */
    const int32_t target = nodes_remote_rank(windows[0]);
    team_expect(nodes_put(windows[1], target, NODES_BEYOND, 1) == ORIEL_OK);
    team_expect(nodes_put(windows[2], target, own(), 7) == ORIEL_OK);
    team_expect(oriel_internode_flush_windows(windows, 3, &failed) != ORIEL_OK);
    team_expect(failed == windows[1] && nodes_peek(whole, target, own()) == 7);
    team_expect(oriel_internode_flush_windows(windows, 3, &failed) == ORIEL_OK && failed == NULL);
    for (int w = 3; w-- > 0;)
        nodes_close(windows[w]);
    nodes_stop();
}

static void internode_several_windows_are_completed(void **state)
{
    (void)state;
    nodes_run_sizes(windows_flush_look);
}

/* Until the flush has ended nothing is known; then the put is there, and the get has arrived. */
static void begin_and_look(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    const int32_t target = nodes_remote_rank(window);
    struct oriel_internode_flush flush[2];
    for (uint32_t round = 1; team_continues(round) && round < ROUNDS; round++) {
        uint64_t got = 0;
        enum oriel_status status[2] = {ORIEL_OK, ORIEL_OK};
        bool ended[2] = {false, false};
        team_expect(nodes_put(window, target, own(), round) == ORIEL_OK);
        team_expect(nodes_get(window, target, own(), &got) == ORIEL_OK);
        team_expect(oriel_internode_flush_begin(window, target, &flush[0]) == ORIEL_OK);
        team_expect(nodes_put(window, target, own(), round + ROUNDS) == ORIEL_OK);
        team_expect(oriel_internode_flush_begin(window, -1, &flush[1]) == ORIEL_OK);
        while (!ended[0] || !ended[1]) {
            oriel_net_progress();
            for (int i = 0; i < 2; i++)
                ended[i] =
                    ended[i] || oriel_internode_flush_has_ended(window, &flush[i], &status[i]);
            team_expect(!ended[0] || got == round);
        }
        team_expect(status[0] == ORIEL_OK && status[1] == ORIEL_OK);
        team_expect(nodes_peek(whole, target, own()) == round + ROUNDS);
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_flush_without_waiting_ends_last(void **state)
{
    (void)state;
    nodes_run_sizes(begin_and_look);
}

/* Answers arrive at their destination, with any number outstanding, and all of them before the
 * flush returns. */
static void get_many(struct oriel_window *whole)
{
    static uint64_t got[3 * OPEN_MOST];
    struct oriel_window *window = nodes_open();
    for (int32_t i = 0; i < window->n; i++)
        team_expect(nodes_put(window, i, own(), own() * 1000 + (uint64_t)i + 1) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
    team_barrier();
    for (int round = 0; round < 6 && !(round > 2 && team_time_is_up()); round++) {
        int32_t target = nodes_remote_rank(window);
        int32_t count = round == 0 ? OPEN_MOST : 1 + (int32_t)(team_random() % (3 * OPEN_MOST));
        memset(got, 0, sizeof got);
        for (int32_t i = 0; i < count; i++)
            team_expect(nodes_get(window, target, (uint64_t)(i % window->n), &got[i]) == ORIEL_OK);
        if (round % 2 == 0) /* the flush has something to send as well */
            team_expect(nodes_put(window, target, own(), own() * 1000 + (uint64_t)target + 1) ==
                        ORIEL_OK);
        if (round % 3 == 1)
            team_expect(oriel_internode_flush_local(window, target) == ORIEL_OK);
        else
            team_expect(oriel_internode_flush(window, round % 2 == 0 ? -1 : target) == ORIEL_OK);
        for (int32_t i = 0; i < count; i++)
            team_expect(got[i] == (uint64_t)(i % window->n) * 1000 + (uint64_t)target + 1);
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_flush_awaits_all_requests(void **state)
{
    (void)state;
    nodes_run(2, 2, get_many);
    nodes_run(4, 3, get_many);
}

/* The maximum number of answers is outstanding, of two targets, so none has necessarily arrived;
 * then the flush sends its request. */
static void get_as_many_as_may_be(struct oriel_window *whole)
{
    static uint64_t got[2][OPEN_MOST / 2];
    struct oriel_window *window = nodes_open();
    for (uint64_t round = 1; round <= 4; round++) {
        memset(got, 0, sizeof got);
        for (int32_t i = 0; i < 2; i++)
            team_expect(nodes_put(window, (team_rank + 1 + i) % 3, own(), round) == ORIEL_OK);
        for (int32_t i = 0; i < OPEN_MOST; i++)
            team_expect(nodes_get(window, (team_rank + 1 + i % 2) % 3, own(), &got[i % 2][i / 2]) ==
                        ORIEL_OK);
        team_expect(oriel_internode_flush(window, round % 2 == 0 ? -1 : (team_rank + 1) % 3) ==
                    ORIEL_OK);
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
        for (int32_t i = 0; i < OPEN_MOST; i++)
            team_expect(got[i % 2][i / 2] == round);
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_flush_may_exceed_the_open_requests_by_one(void **state)
{
    (void)state;
    nodes_run(3, 3, get_as_many_as_may_be);
}

/* --- failures --- */

static void fail_and_flush(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (int i = 0; i < 16; i++) {
        int32_t target = nodes_remote_rank(window);
        uint64_t got = 0;
        team_expect(nodes_put(window, target, own(), (uint64_t)i + 1) == ORIEL_OK);
        team_expect(nodes_put(window, target, NODES_BEYOND + own(), 1) == ORIEL_OK);
        team_expect(nodes_put(window, target, NODES_BEYOND + 20, 1) == ORIEL_OK);
        if (i % 3 == 1)
            team_expect(nodes_get(window, target, own(), &got) == ORIEL_OK);
        enum oriel_status status = i % 4 == 3
                                       ? oriel_barrier(window)
                                       : oriel_internode_flush(window, i % 2 == 0 ? target : -1);
        char expected[100];
        snprintf(expected, sizeof expected, "access to rank %d: word %d is not there", (int)target,
                 (int)(NODES_BEYOND + own()));
        team_expect(status == ORIEL_E_RANGE && strcmp(oriel_fail_message(), expected) == 0);
        team_expect(got == 0); /* the answer reported the failure */
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK); /* once */
        team_expect(nodes_read(window, target, own()) == (uint64_t)i + 1);
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_failure_is_reported_by_the_next_flush_once(void **state)
{
    (void)state;
    nodes_run(2, 2, fail_and_flush);
    nodes_run(4, 2, fail_and_flush);
}

/* A local flush waits for outstanding answers and reports their failure; a failed put is left to
 * the next flush. */
static void get_in_vain(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (int i = 0; i < 8; i++) {
        int32_t target = nodes_remote_rank(window);
        uint64_t got = 7;
        char expected[100];
        snprintf(expected, sizeof expected, "access to rank %d: word %d is not there", (int)target,
                 (int)(NODES_BEYOND + own()));
        team_expect(nodes_get(window, target, NODES_BEYOND + own(), &got) == ORIEL_OK);
        team_expect(oriel_internode_flush_local(window, i % 2 == 0 ? target : -1) == ORIEL_E_RANGE);
        team_expect(strcmp(oriel_fail_message(), expected) == 0 && got == 7);
        team_expect(oriel_internode_flush_local(window, -1) == ORIEL_OK); /* once */
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
        team_expect(nodes_put(window, target, NODES_BEYOND + own(), 1) == ORIEL_OK);
        team_expect(oriel_internode_flush_local(window, target) == ORIEL_OK);
        team_expect(oriel_internode_flush(window, target) == ORIEL_E_RANGE);
    }
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_failure_of_a_get_is_reported_by_a_local_flush(void **state)
{
    (void)state;
    nodes_run(2, 2, get_in_vain);
    nodes_run(4, 2, get_in_vain);
}

/* One more request than may be outstanding, all refused: the operations succeed, and the flush
 * reports the failure. */
static void get_much_in_vain(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    uint64_t got = 7;
    (void)whole;
    atomic_store(&nodes_serve_nothing, window->rank != 0);
    team_barrier();
    for (int32_t i = 0; i < OPEN_MOST + 1 && window->rank == 0; i++) {
        if (i == OPEN_MOST)
            team_flag_set(0, 1);
        team_expect(nodes_get(window, 1 + i % 2, NODES_BEYOND, &got) == ORIEL_OK);
    }
    if (window->rank != 0) {
        team_flag_await(0, 1);
        usleep(20000); /* it waits */
        atomic_store(&nodes_serve_nothing, false);
    }
    team_expect(oriel_internode_flush_local(window, -1) ==
                (window->rank == 0 ? ORIEL_E_RANGE : ORIEL_OK));
    team_expect(got == 7);
    team_barrier();
    nodes_close(window);
    nodes_stop();
}

static void internode_failures_of_many_gets_are_left_to_the_flush(void **state)
{
    (void)state;
    nodes_run(3, 3, get_much_in_vain);
}

/* Returns when the target has refused the put. */
static void fail_once(struct oriel_window *whole, struct oriel_window *window)
{
    team_expect(nodes_put(window, 0, NODES_BEYOND + own(), 1) == ORIEL_OK);
    team_expect(nodes_put(window, 0, own(), 1000) == ORIEL_OK);
    while (nodes_peek(whole, 0, own()) != 1000) /* served after it */
        oriel_net_progress();
}

static void expect_own_failure(struct oriel_window *window)
{
    char expected[100];
    snprintf(expected, sizeof expected, "access to rank 0: word %d is not there",
             (int)(NODES_BEYOND + own()));
    team_expect(oriel_internode_flush(window, 0) == ORIEL_E_RANGE &&
                strcmp(oriel_fail_message(), expected) == 0);
    team_expect(oriel_internode_flush(window, 0) == ORIEL_OK);
}

/* A failure belongs to its origin, whichever rank flushes first or fails last. */
static void fail_alone(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    if (window->rank == 1) {
        fail_once(whole, window);
        team_flag_set(0, 1);
        team_flag_await(1, 1);
        expect_own_failure(window);
        team_flag_set(0, 2);
    } else if (window->rank == 2) {
        team_flag_await(0, 1);
        for (uint64_t i = 0; i < 20; i++) {
            team_expect(nodes_put(window, 0, own(), i) == ORIEL_OK);
            team_expect(oriel_internode_flush(window, 0) == ORIEL_OK);
        }
        fail_once(whole, window);
        team_flag_set(1, 1);
        team_flag_await(0, 2);
        expect_own_failure(window);
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_failure_is_reported_to_its_origin(void **state)
{
    (void)state;
    nodes_run(3, 3, fail_alone);
}

/* The first operation on a rank asks its node's leader for the address; another operation has
 * failed at the leader before. */
static void fail_at_the_leader(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t leader = nodes_remote_rank(window);
    int32_t other = leader + 1;
    while (nodes_node_of(other) != nodes_node_of(leader))
        other++;
    team_expect(nodes_put(window, leader, NODES_BEYOND, 1) == ORIEL_OK);
    team_expect(nodes_put(window, other, own(), 1) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_E_RANGE);
    team_expect(nodes_read(window, other, own()) == 1);
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_failure_at_a_leader_does_not_separate_its_node(void **state)
{
    (void)state;
    nodes_run(4, 2, fail_at_the_leader);
}

/* Without memory no rank is declared dead: an operation or a flush reports the lack, and the next
 * flush completes all operations that were sent. */
static void lack_memory(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    for (uint64_t i = 1; i <= 3; i++) {
        for (int32_t rank = 0; rank < window->n; rank++)
            if (oriel_is_internode(window, rank))
                team_expect(nodes_put(window, rank, own(), i) == ORIEL_OK);
        team_expect(i > 1 || oriel_internode_flush(window, -1) ==
                                 ORIEL_OK); /* coalescing still has a buffer */
        no_buffers_here = true;
        team_expect(i > 1 ||
                    nodes_put(window, nodes_remote_rank(window), own(), 9) == ORIEL_E_NO_MEM);
        enum oriel_status status = oriel_internode_flush(window, -1);
        no_buffers_here = false;
        team_expect(status == (i > 1 && window->n > 2 ? ORIEL_E_NO_MEM : ORIEL_OK));
        int32_t marked = oriel_internode_flag_next(window->internode, -1, ORIEL_INTERNODE_SENT);
        /* the first target, for which there was no memory, is still to be flushed */
        team_expect(marked == (status == ORIEL_OK ? -1 : nodes_remote_rank(window)));
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
        for (int32_t rank = 0; rank < window->n; rank++)
            team_expect(!oriel_is_internode(window, rank) || nodes_peek(whole, rank, own()) == i);
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_lack_of_memory_is_no_loss_of_a_rank(void **state)
{
    (void)state;
    nodes_run(2, 2, lack_memory);
    nodes_run(4, 4, lack_memory);
}

/* The status is reported nevertheless, with the next answer and once. */
static void fail_in_poverty(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t target = nodes_remote_rank(window);
    team_expect(nodes_put(window, target, own(), 1) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
    team_barrier();
    atomic_store(&no_heap_of_agent, true);
    team_barrier();
    team_expect(nodes_put(window, target, NODES_BEYOND, 2) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_E_RANGE);
    team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
    team_barrier();
    atomic_store(&no_heap_of_agent, false);
    (void)whole;
    nodes_close(window);
    nodes_stop();
}

static void internode_failure_is_reported_without_memory_for_it(void **state)
{
    (void)state;
    nodes_run(2, 2, fail_in_poverty);
    nodes_run(4, 2, fail_in_poverty);
}

/* The reserve suffices when the heap is exhausted. If nothing can be sent, the lock remains held
 * and is released later. */
static void unlock_in_poverty(struct oriel_window *whole)
{
    struct oriel_window *window = nodes_open();
    int32_t target = nodes_remote_rank(window);
    for (uint64_t i = 1; i <= 4; i++) {
        bool all = i % 2 == 0;
        team_expect((all ? oriel_lock_all(window) : oriel_lock(window, target, true)) == ORIEL_OK);
        team_expect(nodes_put(window, target, own(), i) == ORIEL_OK);
        team_expect(oriel_internode_flush(window, -1) == ORIEL_OK);
        no_heap_here = true;
        if (i > 2) {
            no_buffers_here = true;
            team_expect((all ? oriel_unlock_all(window) : oriel_unlock(window, target)) ==
                        ORIEL_E_NO_MEM);
            no_heap_here = no_buffers_here = false;
        }
        team_expect((all ? oriel_unlock_all(window) : oriel_unlock(window, target)) == ORIEL_OK);
        no_heap_here = false;
        team_barrier();
        team_expect(nodes_peek(whole, target, own()) == i);
        nodes_expect_free(window);
        team_barrier();
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_lock_is_released_without_memory(void **state)
{
    (void)state;
    nodes_run(2, 2, unlock_in_poverty);
    nodes_run(4, 2, unlock_in_poverty);
}

/* Windows are created and freed over one net; messages find their windows. */
static void make_windows(struct oriel_window *whole)
{
    for (uint64_t round = 1; round <= 5; round++) {
        struct oriel_window *first = nodes_open();
        struct oriel_window *second = nodes_open();
        for (int32_t i = 0; i < first->n; i++) {
            team_expect(nodes_put(first, i, own(), round) == ORIEL_OK);
            team_expect(nodes_put(second, i, own(), 100 * round) == ORIEL_OK);
        }
        team_expect(oriel_barrier(first) == ORIEL_OK && oriel_barrier(second) == ORIEL_OK);
        for (int32_t i = 0; i < first->n; i++) {
            team_expect(nodes_load(first, (uint64_t)i) == round);
            team_expect(nodes_load(second, (uint64_t)i) == 100 * round);
        }
        int32_t target = any_rank(first);
        team_expect(oriel_lock(second, target, true) == ORIEL_OK &&
                    oriel_unlock(second, target) == ORIEL_OK);
        nodes_close(round % 2 == 0 ? first : second);
        nodes_close(round % 2 == 0 ? second : first);
    }
    (void)whole;
    nodes_stop();
}

static void internode_windows_are_made_and_freed_over_one_net(void **state)
{
    (void)state;
    nodes_run(4, 2, make_windows);
    nodes_run(6, 3, make_windows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_flush_completes_earlier_messages),
        cmocka_unit_test(internode_list_completes_its_ranks),
        cmocka_unit_test(internode_several_windows_are_completed),
        cmocka_unit_test(internode_flush_without_waiting_ends_last),
        cmocka_unit_test(internode_flush_awaits_all_requests),
        cmocka_unit_test(internode_flush_may_exceed_the_open_requests_by_one),
        cmocka_unit_test(internode_failure_is_reported_by_the_next_flush_once),
        cmocka_unit_test(internode_failure_of_a_get_is_reported_by_a_local_flush),
        cmocka_unit_test(internode_failures_of_many_gets_are_left_to_the_flush),
        cmocka_unit_test(internode_failure_is_reported_to_its_origin),
        cmocka_unit_test(internode_failure_at_a_leader_does_not_separate_its_node),
        cmocka_unit_test(internode_lack_of_memory_is_no_loss_of_a_rank),
        cmocka_unit_test(internode_failure_is_reported_without_memory_for_it),
        cmocka_unit_test(internode_lock_is_released_without_memory),
        cmocka_unit_test(internode_windows_are_made_and_freed_over_one_net),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
