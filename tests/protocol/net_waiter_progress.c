/* src/transport/ucx/waiter_progress.c: a waiting thread of the program serves arriving messages, in
 * order with those that the agent's thread serves. The agent's thread serves again as soon as no
 * thread helps or the helper is delayed. progress_thread.c: how often it checks waits that need
 * more than messages, and when it naps. */
#include "message_service.h"

#include "transport/ucx/internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SERIES = 50, /* echoes or signals */
    SERIES_MOST = 100,
    SIGNAL_SERIES_MOST = 800, /* a signal takes less time */
    SERIES_OF_THREADS = 40,
    ECHOES_EACH = 20,
    STAYS = 180,
    LOOKS = 40,
    SETTLE_US = 50000,
    ARMS = 100
};

static uint64_t served(void)
{
    return atomic_load(&service_shared->served[team_rank]);
}

/* Helps until this number of messages is served: by waiting, or by repeated calls. */
static void help_until(uint64_t wanted, bool waits)
{
    oriel_net_help_begin(waits ? ORIEL_NET_WAITS : ORIEL_NET_ASKS);
    while (served() < wanted) {
        oriel_net_help();
        if (waits)
            continue;
        oriel_net_help_end();
        oriel_net_help_begin(ORIEL_NET_ASKS);
    }
    oriel_net_help_end();
}

static void forget_counts(void)
{
    memset(service_shared->served, 0, sizeof service_shared->served);
    memset(service_shared->helped, 0, sizeof service_shared->helped);
    memset(service_shared->was_undisturbed, 0, sizeof service_shared->was_undisturbed);
}

static void echo(struct stream *stream)
{
    struct question question;
    service_send(stream, ECHO, 8, &question);
    service_await(&question);
}

static uint64_t helped(void)
{
    return atomic_load(&service_shared->helped[team_rank]);
}

/* Runs series until each rank had one that was undisturbed: other programs use the same cores.
 * Returns whether there were. */
static bool is_undisturbed_once(struct stream *stream, bool (*series)(struct stream *, uint32_t),
                                uint32_t most)
{
    _Atomic bool *undisturbed = service_shared->was_undisturbed;
    bool is_over = false;
    for (uint32_t i = 0; !is_over && i < most; i++) {
        if (series(stream, i * SERIES + 1))
            undisturbed[team_rank] = true;
        team_barrier();
        is_over = undisturbed[0] && undisturbed[1];
        team_barrier();
    }
    return is_over;
}

/* Rank 0 serves the other's echoes, from this number on, while it waits for the last one. The
 * agent's thread may be first now and then. */
static bool help_series(struct stream *stream, uint32_t first)
{
    uint64_t before = helped();
    for (int i = 0; team_rank == 1 && i < SERIES; i++)
        echo(stream);
    if (team_rank == 0)
        help_until(first + SERIES - 1, true);
    team_expect(served() == (team_rank == 0 ? first + SERIES - 1 : 0));
    return team_rank == 1 || helped() - before >= SERIES / 2;
}

static void help_one(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    team_expect(is_undisturbed_once(&stream, help_series, SERIES_MOST));
    free(stream.data);
    service_stop();
}

static void net_helper_serves_arriving_messages(void **state)
{
    (void)state;
    service_has_limit = true;
    forget_counts();
    team_run(2, help_one);
}

/* Each rank waits for a signal in the other's messages, from this number on. Returns whether it
 * served them itself, and the agent's thread slept: nothing wakes that at the end of a wait. */
static bool signal_series(struct stream *stream, uint32_t first)
{
    unsigned long sleeps = service_sleeps();
    uint64_t before = helped();
    for (uint32_t i = first; i < first + SERIES; i++) {
        if (team_rank == 0)
            service_send(stream, SIGNAL, 8, NULL);
        team_expect(oriel_net_await_word(&service_signals.value, &service_signals.sleepers, i,
                                         NULL) == ORIEL_OK);
        if (team_rank == 1)
            service_send(stream, SIGNAL, 8, NULL);
    }
    return helped() - before >= SERIES / 2 && service_sleeps() - sleeps < SERIES / 2;
}

static void signal_each_other(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    if (!service_has_threads) {
        team_expect(is_undisturbed_once(&stream, signal_series, SIGNAL_SERIES_MOST));
    } else {
        for (uint32_t i = 0; i < SERIES_OF_THREADS; i++)
            (void)signal_series(&stream, i * SERIES + 1);
        team_expect(helped() == 0);
    }
    free(stream.data);
    service_stop();
}

static void net_wait_for_a_signal_serves(void **state)
{
    (void)state;
    service_has_limit = true;
    forget_counts();
    team_run(2, signal_each_other);
}

/* Not where several threads may be in calls. */
static void net_no_helper_serves_with_several_threads(void **state)
{
    (void)state;
    service_has_limit = true;
    service_has_threads = true;
    forget_counts();
    team_run(2, signal_each_other);
    service_has_threads = false;
}

/* Rank 0 helps for some echoes, and then sleeps outside the net for one more. While it is delayed,
 * it still counts as a helper. */
static bool is_delayed;

static void help_and_leave(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    for (uint32_t stay = 1; stay <= STAYS; stay++) {
        for (int i = 0; team_rank == 1 && i < ECHOES_EACH; i++)
            echo(&stream);
        if (team_rank == 1) {
            team_flag_await(0, stay);
            echo(&stream);
            team_flag_set(1, stay);
            continue;
        }
        oriel_net_help_begin(ORIEL_NET_WAITS);
        while (served() < (ECHOES_EACH + 1) * (stay - 1) + ECHOES_EACH)
            oriel_net_help();
        if (!is_delayed)
            oriel_net_help_end();
        team_flag_set(0, stay);
        team_flag_await(1, stay);
        if (is_delayed)
            oriel_net_help_end();
    }
    free(stream.data);
    service_stop();
}

static void net_helper_that_leaves_is_replaced(void **state)
{
    (void)state;
    service_has_limit = false;
    forget_counts();
    team_run(2, help_and_leave);
}

static void net_delayed_helper_is_replaced(void **state)
{
    (void)state;
    service_has_limit = true;
    is_delayed = true;
    forget_counts();
    team_run(2, help_and_leave);
}

/* The agent's thread has decided to sleep aside; the helper leaves before it does, and a message
 * arrives. */
static _Atomic bool is_about_to_sleep;
static _Atomic bool has_left;

/* Holds the agent's thread before A0: elsewhere it delays within oriel_net_arm, with the mutex. */
static void await_the_helpers_end(void)
{
    if (gettid() == getpid() || pthread_mutex_trylock(&oriel_net.agent.mutex) != 0)
        return;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    oriel_net_drain_wakes();
    atomic_store(&is_about_to_sleep, true);
    while (!atomic_load(&has_left))
        usleep(50);
}

static void leave_before_the_sleep(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    if (team_rank == 1) {
        team_flag_await(0, 1);
        echo(&stream);
        team_flag_set(1, 1);
    } else {
        usleep(SETTLE_US); /* the agent's thread sleeps by then */
        team_at_delay = await_the_helpers_end;
        oriel_net_help_begin(ORIEL_NET_SERVES);
        oriel_net_wake_agent();
        while (!atomic_load(&is_about_to_sleep))
            usleep(50);
        oriel_net_help_end();
        team_flag_set(0, 1);
        usleep(SETTLE_US); /* the echo has arrived by then */
        atomic_store(&has_left, true);
        team_flag_await(1, 1);
    }
    free(stream.data);
    service_stop();
}

static void net_helper_that_leaves_meanwhile_is_replaced(void **state)
{
    (void)state;
    service_has_limit = false;
    forget_counts();
    team_run(2, leave_before_the_sleep);
}

/* A thread that arms also polls, and could leave a message to a thread that has just served. */
static void arm_while_another_serves(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    if (team_rank == 1) {
        service_send(&stream, HELD, 8, NULL);
    } else {
        while (served() == 0)
            usleep(50);
        for (int i = 0; i < ARMS; i++) { /* UCX itself refuses some */
            team_expect(!oriel_net_arm_agent());
            usleep(200);
        }
        atomic_store(&service_lets_go, true);
    }
    free(stream.data);
    service_stop();
}

static void net_no_thread_arms_while_another_serves(void **state)
{
    (void)state;
    forget_counts();
    team_run(2, arm_while_another_serves);
}

/* Messages that a helper has left unfinished are completed after it has left. */
static void leave_something(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    for (uint32_t stay = 1; stay <= STAYS; stay++) {
        if (team_rank == 1) {
            team_flag_await(0, stay);
            service_send(&stream, SLOWLY, 8,
                         NULL); /* the agent's thread sleeps again before it is served */
            team_flag_await(1, stay);
            continue;
        }
        atomic_store(&service_polls, 0);
        atomic_store(&service_polls_left, LOOKS);
        team_flag_set(0, stay);
        help_until(stay, stay % 2 == 0);
        while (atomic_load(&service_polls) < LOOKS)
            usleep(50);
        team_flag_set(1, stay);
    }
    free(stream.data);
    service_stop();
}

static void net_helper_leaves_its_looks_to_the_agent(void **state)
{
    (void)state;
    service_has_limit = false;
    forget_counts();
    team_run(2, leave_something);
}

static void help_now_and_then(uint64_t random)
{
    if ((random >> 40) % 4 != 0)
        return;
    oriel_net_help_begin((random >> 44) % 3); /* any kind */
    for (uint64_t turns = (random >> 48) % 64; turns > 0; turns--)
        oriel_net_help();
    oriel_net_help_end();
}

static void send_and_help(struct oriel_window *window)
{
    service_send_all(window, help_now_and_then);
}

static void net_n1_holds_with_helpers(void **state)
{
    (void)state;
    service_has_limit = false;
    team_run(2, send_and_help);
    team_run(4, send_and_help);
    service_coalesces = true;
    team_run(3, send_and_help);
    service_coalesces = false;
}

/* Checks within that time, none of which finds enough; a message arrives first. */
static uint32_t looks_in(struct stream *stream, useconds_t time_us)
{
    struct question question;
    team_barrier();
    atomic_store(&service_polls_left, INT_MAX);
    service_send(stream, ECHO, 8, &question);
    service_await(&question);
    usleep(200); /* it spins at first */
    atomic_store(&service_polls, 0);
    usleep(time_us);
    uint32_t count = atomic_load(&service_polls);
    atomic_store(&service_polls_left, 0);
    return count;
}

/* With one check per 50 us, 300 ms allow some 4,000 checks. In 2 ms there are some 20 if the cores
 * are not too busy, and 2 if the thread still sleeps. */
static void be_looked_after_for_long(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    uint32_t most = 0;
    uint32_t count = looks_in(&stream, 300000);
    team_expect(count >= 10 && count < 1500);
    for (int i = 0; i < 50; i++) {
        count = looks_in(&stream, 2000);
        most = count > most ? count : most;
    }
    team_expect(most >= 10);
    free(stream.data);
    service_stop();
}

static void net_polls_less_often_after_long_waits(void **state)
{
    (void)state;
    team_run(2, be_looked_after_for_long);
}

/* Rank 1 asks so seldom that the agent's thread of rank 0 is asleep each time. */
static bool ask_series(struct stream *stream, uint32_t first)
{
    (void)first;
    uint32_t before = atomic_load(&service_naps);
    for (int i = 0; team_rank == 1 && i < SERIES; i++) {
        echo(stream);
        usleep(300);
    }
    team_barrier();
    return atomic_load(&service_naps) - before < SERIES / 10;
}

static void ask_now_and_then(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    team_expect(is_undisturbed_once(&stream, ask_series, SERIES_MOST));
    free(stream.data);
    service_stop();
}

static void net_no_thread_naps_after_a_message(void **state)
{
    (void)state;
    forget_counts();
    team_run(2, ask_now_and_then);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_helper_serves_arriving_messages),
        cmocka_unit_test(net_helper_that_leaves_is_replaced),
        cmocka_unit_test(net_helper_that_leaves_meanwhile_is_replaced),
        cmocka_unit_test(net_no_thread_arms_while_another_serves),
        cmocka_unit_test(net_delayed_helper_is_replaced),
        cmocka_unit_test(net_helper_leaves_its_looks_to_the_agent),
        cmocka_unit_test(net_n1_holds_with_helpers),
        cmocka_unit_test(net_wait_for_a_signal_serves),
        cmocka_unit_test(net_no_helper_serves_with_several_threads),
        cmocka_unit_test(net_polls_less_often_after_long_waits),
        cmocka_unit_test(net_no_thread_naps_after_a_message),
    };
    service_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
