/* src/transport/ucx/: messages between processes are served once, in order and with their bytes,
 * whatever the receiver's program does meanwhile, and answers arrive. */
#include "message_service.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 400 };

static void send_all(struct oriel_window *window)
{
    service_send_all(window, NULL);
}

static void net_n1_serves_messages_of_all_sizes_in_order(void **state)
{
    (void)state;
    team_run(2, send_all);
    team_run(4, send_all);
}

/* Two threads of each process send to the same process at once: each thread's messages stay in
 * order, and all are served. */
static void *send_stream(void *context)
{
    struct stream *stream = context;
    for (int i = 0; i < MESSAGES / 2; i++)
        service_send(stream, PASS, service_size(stream->random >> 16), NULL);
    struct question question;
    service_send(stream, ECHO, 8, &question);
    service_await(&question);
    return NULL;
}

static void send_by_threads(struct oriel_window *window)
{
    pthread_t thread;
    service_start(window);
    struct stream streams[] = {service_stream((team_rank + 1) % team->n, 0),
                               service_stream((team_rank + 1) % team->n, 1)};
    team_expect(pthread_create(&thread, NULL, send_stream, &streams[1]) == 0);
    send_stream(&streams[0]);
    pthread_join(thread, NULL);
    service_stop();
}

static void net_n1_holds_for_several_threads(void **state)
{
    (void)state;
    team_run(2, send_by_threads);
    team_run(3, send_by_threads);
}

/* The network delivers some messages late and some twice. */
static void net_n1_puts_late_and_double_messages_right(void **state)
{
    (void)state;
    service_is_unreliable = true;
    team_run(2, send_all);
    team_run(2, send_by_threads);
    service_is_unreliable = false;
}

/* Most small messages are sent coalesced, to several peers in turn, between others of all sizes. */
static void net_n1_holds_for_gathered_messages(void **state)
{
    (void)state;
    service_coalesces = true;
    team_run(2, send_all);
    team_run(4, send_all);
    team_run(3, send_by_threads);
    service_is_unreliable = true;
    team_run(2, send_all);
    service_is_unreliable = service_coalesces = false;
}

/* Questions sent together to two other ranks are all answered. Neither another rank's message nor a
 * ping ends the wait. */
static void ask_together(struct oriel_window *window)
{
    enum { EACH = 100 };
    static struct question questions[EACH];
    service_start(window);
    struct stream streams[] = {service_stream((team_rank + 1) % team->n, 0),
                               service_stream((team_rank + 2) % team->n, 1)};
    for (int i = 0; i < EACH; i++)
        service_send(&streams[team_random() % 2], ECHO, service_size(team_random()) % 600,
                     &questions[i]);
    for (int i = EACH; i-- > 0;)
        service_await(&questions[i]);
    for (int i = 0; i < 2; i++)
        free(streams[i].data);
    service_stop();
}

static void net_gathered_questions_are_all_answered(void **state)
{
    (void)state;
    service_coalesces = true;
    setenv("ORIEL_TIMEOUT", "600", 1); /* an eighth of it passes between pings */
    team_run(2, ask_together);
    team_run(4, ask_together);
    unsetenv("ORIEL_TIMEOUT");
    service_coalesces = false;
}

/* Rank 0 stores the askers, and its program answers them later, in reverse order. */
static void answer_later(struct oriel_window *window)
{
    enum { EACH = 20 };
    static struct question questions[EACH];
    service_start(window);
    struct stream stream = service_stream(0, 0);
    for (int i = 0; i < EACH; i++)
        service_send(&stream, STORE, service_size(team_random()), &questions[i]);
    if (team_rank == 0) {
        while (atomic_load(&service_stored_count) < (uint32_t)(EACH * team->n))
            usleep(100);
        for (int i = EACH * team->n; i-- > 0;)
            service_answer(&service_stored[i], &service_stored_notes[i], NULL, 0);
    }
    for (int i = EACH; i-- > 0;)
        service_await(&questions[i]);
    free(stream.data);
    service_stop();
}

static void net_answers_arrive_later_and_in_any_order(void **state)
{
    (void)state;
    team_run(2, answer_later);
    team_run(4, answer_later);
}

/* Rank 1 computes: its program makes no call until all is done. */
static void ask_the_busy(struct oriel_window *window)
{
    struct question question;
    service_start(window);
    struct stream stream = service_stream(1, 0);
    for (int i = 0; team_rank == 0 && i < 50; i++) {
        if (i % 10 == 0)
            usleep(20000); /* its agent sleeps by now */
        service_send(&stream, ECHO, service_size(team_random()), &question);
        service_await(&question);
    }
    if (team_rank == 0)
        team_flag_set(0, 1);
    team_flag_await(0, 1);
    free(stream.data);
    service_stop();
}

static void net_serves_while_the_receiver_computes(void **state)
{
    (void)state;
    team_run(2, ask_the_busy);
}

/* Rank 0 sends more than sockets hold, from the first message on, and then computes, as the
 * receiver does. */
static void send_and_compute(struct oriel_window *window)
{
    enum { COUNT = 15 };
    service_start(window);
    struct stream stream = service_stream(1, 0);
    for (int i = 0; team_rank == 0 && i < COUNT; i++)
        service_send(&stream, PASS, ORIEL_NET_DATA_BYTES, NULL);
    while (atomic_load(&service_shared->served[1]) < COUNT)
        usleep(500);
    team_barrier();
    free(stream.data);
    service_stop();
}

static void net_n3_sends_while_the_sender_computes(void **state)
{
    (void)state;
    atomic_store(&service_shared->served[1], 0);
    team_run(2, send_and_compute);
}

/* A slow receiver does not have to buffer all that is sent. */
static void send_to_slow(struct oriel_window *window)
{
    enum { COUNT = 2500, MOST = 1100, LARGE = 200, MOST_LARGE = 136 };
    service_start(window);
    struct stream stream = service_stream(1, 0);
    struct question question;
    for (uint64_t i = 0; team_rank == 0 && i < COUNT; i++) {
        service_send(&stream, i % 16 == 0 ? SLOWLY : PASS, 8, NULL);
        team_expect(i - atomic_load(&service_shared->served[1]) <= MOST ||
                    atomic_load(&service_shared->served[1]) > i);
    }
    for (uint64_t i = COUNT; team_rank == 0 && i < COUNT + LARGE; i++) {
        service_send(&stream, SLOWLY, ORIEL_NET_DATA_BYTES, NULL);
        uint64_t served = atomic_load(&service_shared->served[1]);
        team_expect(served > i || i - served <= MOST_LARGE || served < COUNT);
    }
    if (team_rank == 0) {
        service_send(&stream, ECHO, 8, &question);
        service_await(&question);
        team_flag_set(0, 1);
    }
    team_flag_await(0, 1);
    free(stream.data);
    service_stop();
}

static void net_sender_waits_for_a_slow_receiver(void **state)
{
    (void)state;
    atomic_store(&service_shared->served[1], 0);
    team_run(2, send_to_slow);
}

static void start_again(struct oriel_window *window)
{
    struct question question;
    for (int i = 0; i < 3; i++) {
        service_start(window);
        struct stream stream = service_stream((team_rank + 1) % team->n, 0);
        service_send(&stream, PASS, ORIEL_NET_DATA_BYTES, NULL);
        service_send(&stream, ECHO, 8, &question);
        service_await(&question);
        free(stream.data);
        team_barrier();
        if (i == 1)
            usleep((useconds_t)team_rank * 30000); /* not all at once */
        oriel_net_stop();
        team_expect(atomic_load(&service_shared->lost[team_rank]) == 0);
        team_barrier();
    }
}

static void net_stops_and_starts_again(void **state)
{
    (void)state;
    memset(service_shared, 0, sizeof *service_shared);
    team_run(3, start_again);
}

static enum oriel_status no_longer(void *context)
{
    (void)context;
    return oriel_fail(ORIEL_E_SYNC, "no longer");
}

/* Messages for an earlier service_start of the receiver are not served, and the watch ends the wait
 * for their answer. */
static void miss(struct oriel_window *window)
{
    service_start(window);
    uint64_t before = atomic_load(&service_shared->served[1]);
    team_barrier();
    if (team_rank == 0) {
        char other[ORIEL_NET_ADDRESS_BYTES];
        struct oriel_net_peer *peer;
        memcpy(other, service_shared->bytes[1], service_shared->len_bytes[1]);
        other[8] ^= 1; /* the session */
        team_expect(oriel_net_open(&team->members[1].process, other, 7, &peer) == ORIEL_E_OTHER);
        team_expect(oriel_net_open(&team->members[1].process, other, service_shared->len_bytes[1],
                                   &peer) == ORIEL_OK);
        static struct question question = {.net = {.take = service_receive}};
        struct note note = {ECHO, 0, 0, 0};
        team_expect(oriel_net_ask(peer, &(struct oriel_net_bytes){&note, sizeof note, NULL, 0},
                                  &question.net) == ORIEL_OK);
        struct oriel_watch watch = {.check = no_longer};
        team_expect(oriel_net_await(&question.net, &watch) == ORIEL_E_SYNC && question.taken == 0);
        team_expect(atomic_load(&service_shared->served[1]) == before);
    }
    service_stop();
}

static void messages_for_an_earlier_start_are_dropped(void **state)
{
    (void)state;
    team_run(2, miss);
}

static void be_looked_after(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    struct question question;
    service_send(&stream, ECHO, 8, &question);
    service_await(&question);
    team_barrier();
    usleep(20000);
    atomic_store(&service_polls, 0);
    atomic_store(&service_polls_left, 100);
    team_barrier();
    service_send(&stream, PASS, 8, NULL);
    while (atomic_load(&service_polls) < 100)
        usleep(100);
    usleep(20000);
    team_expect(atomic_load(&service_polls) == 100);
    free(stream.data);
    service_stop();
}

static void net_polls_until_no_message_is_left(void **state)
{
    (void)state;
    team_run(2, be_looked_after);
}

static void be_idle(struct oriel_window *window)
{
    struct question question;
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    service_send(&stream, ECHO, 8, &question);
    service_await(&question);
    team_barrier();
    usleep(300000);
    unsigned long before = service_sleeps();
    usleep(1000000);
    team_expect(before > 0 && service_sleeps() - before <= 6);
    free(stream.data);
    service_stop();
}

static void net_sleeps_when_nothing_is_sent(void **state)
{
    (void)state;
    team_run(2, be_idle);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_n1_serves_messages_of_all_sizes_in_order),
        cmocka_unit_test(net_n1_holds_for_several_threads),
        cmocka_unit_test(net_n1_puts_late_and_double_messages_right),
        cmocka_unit_test(net_n1_holds_for_gathered_messages),
        cmocka_unit_test(net_gathered_questions_are_all_answered),
        cmocka_unit_test(net_answers_arrive_later_and_in_any_order),
        cmocka_unit_test(net_serves_while_the_receiver_computes),
        cmocka_unit_test(net_n3_sends_while_the_sender_computes),
        cmocka_unit_test(net_sender_waits_for_a_slow_receiver),
        cmocka_unit_test(net_stops_and_starts_again),
        cmocka_unit_test(messages_for_an_earlier_start_are_dropped),
        cmocka_unit_test(net_polls_until_no_message_is_left),
        cmocka_unit_test(net_sleeps_when_nothing_is_sent),
    };
    service_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
