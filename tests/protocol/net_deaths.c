/* src/transport/ucx/: the death of a process, or a stop for longer than ORIEL_TIMEOUT, is reported
 * to all ranks that wait or send. A slow process is not reported. */
#include "message_service.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void expect_lost(struct oriel_net_peer *peer, enum oriel_status status)
{
    if (status != ORIEL_E_PEER)
        fprintf(stderr, "status %d: %s\n", (int)status, oriel_fail_message());
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), "process ") != NULL);
    struct note note = {PASS, 0, 0, 0};
    struct oriel_net_bytes bytes = {&note, sizeof note, NULL, 0};
    struct question question = {.net = {.take = service_receive, .end = service_end}};
    team_expect(oriel_net_tell(peer, &bytes) == ORIEL_E_PEER);
    team_expect(oriel_net_ask(peer, &bytes, &question.net) == ORIEL_E_PEER);
    team_expect(question.net.done && oriel_net_await(&question.net, NULL) == ORIEL_E_PEER);
    team_expect(oriel_net_check(peer) == ORIEL_E_PEER);
}

/* How the others detect it: each by its own call. */
static void detect_a_death(int32_t dead, bool is_reported)
{
    static struct question question;
    struct stream stream = service_stream(dead, 1);
    struct oriel_net_peer *peer = service_peers[dead];
    struct note stored_note = {STORE, stream.number, stream.index++, 0};
    question = (struct question){.net = {.take = service_receive, .end = service_end},
                                 .note = stored_note};
    struct oriel_net_bytes bytes = {&stored_note, sizeof stored_note, NULL, 0};
    enum oriel_status status = oriel_net_ask(peer, &bytes, &question.net);
    if (status != ORIEL_OK) { /* known already */
        expect_lost(peer, status);
        status = ORIEL_OK;
        question.ended = 1;
    }
    if (team_rank == 0) {
        team_flag_set(0, 1);
        status = oriel_net_await(&question.net, NULL);
        team_expect(question.taken == 0 && question.ended == 1);
    } else if (team_rank == 2) {
        while (status == ORIEL_OK) {
            struct note note = {PASS, stream.number, stream.index++, 0};
            status = oriel_net_tell(peer, &(struct oriel_net_bytes){&note, sizeof note, NULL, 0});
            usleep(1000);
        }
    } else {
        while (status == ORIEL_OK) {
            status = oriel_net_check(peer);
            usleep(10000);
        }
    }
    expect_lost(peer, status);
    team_expect(question.ended == 1);
    while (is_reported && atomic_load(&service_shared->lost[team_rank]) == 0)
        usleep(1000);
    team_expect(!is_reported || atomic_load(&service_shared->lost[team_rank]) == UINT64_C(1)
                                                                                     << dead);
    free(stream.data);
}

/* Rank 1 has exchanged messages with all; then it dies. */
static void die_connected(struct oriel_window *window)
{
    atomic_store(&service_shared->lost[team_rank], 0);
    service_start(window);
    for (int32_t to = 0; team_rank == 1 && to < team->n; to++) {
        struct stream stream = service_stream(to, 0);
        struct question question;
        service_send(&stream, ECHO, 5000, &question);
        service_await(&question);
    }
    team_barrier();
    if (team_rank == 1) {
        team_flag_await(0, 1);
        usleep(50000);
        team_die();
    }
    detect_a_death(1, true);
    oriel_net_stop();
}

static void net_n4_reports_a_killed_process(void **state)
{
    (void)state;
    team_run(4, die_connected);
}

/* No rank has a connection when it dies. */
static void die_unknown(struct oriel_window *window)
{
    service_start(window);
    team_barrier();
    if (team_rank == 1)
        team_die();
    usleep(50000);
    detect_a_death(1, false);
    oriel_net_stop();
}

static void net_n4_reports_a_process_that_died_before(void **state)
{
    (void)state;
    team_run(4, die_unknown);
}

/* A child that outlives its parent keeps the connections open: only the silence reveals the
 * death. */
static void die_with_a_child(struct oriel_window *window)
{
    service_start(window);
    team_barrier();
    if (team_rank == 1) {
        pid_t child = fork();
        if (child == 0) {
            team_expect(!oriel_net_is_started());
            team_expect(oriel_net_start(&team->members[1].process, NULL, &service_functions) ==
                        ORIEL_E_OTHER);
            oriel_net_stop();
            oriel_net_progress();
            team_flag_set(4, 1);
            sleep(6);
            _exit(0);
        }
        team_flag_await(4, 1);
        team_flag_await(0, 1);
        usleep(50000);
        team_die();
    }
    detect_a_death(1, false);
    oriel_net_stop();
}

static void net_n4_reports_a_killed_process_with_a_live_child(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(2, die_with_a_child);
    unsetenv("ORIEL_TIMEOUT");
}

/* Rank 1 stops forever, as on hardware whose cable is unplugged. */
static void be_stopped_for(struct oriel_window *window)
{
    service_start(window);
    if (team_rank == 1) {
        team_flag_await(1, 2);
        team_die();
    }
    struct stream stream = service_stream(1, 0);
    struct question question;
    service_send(&stream, ECHO, 8, &question);
    service_await(&question);
    free(stream.data);
    team_flag_set(2 + (team_rank != 0), 1);
    team_flag_await(2, 1);
    team_flag_await(3, 1);
    if (team_rank == 0)
        team_stop(1);
    detect_a_death(1, false);
    atomic_fetch_add(&team->flags[1], 1);
    team_flag_await(1, 2);
    kill(team->members[1].process.pid, SIGCONT);
    oriel_net_stop();
}

static void net_n4_gives_up_a_silent_process(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(3, be_stopped_for);
    unsetenv("ORIEL_TIMEOUT");
}

static uint64_t processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Rank 1 stops before any message to it. Its kernel accepts the connection nevertheless, and UCX
 * then reports permanent work for it. Neither a rank that waits for an answer nor, if no rank
 * waits, the agent's thread uses a processor for that; rank 1 might need it to continue. */
static void wait_for_a_first_contact(struct oriel_window *window)
{
    enum { RESUMED = 2 };
    service_start(window);
    team_barrier();
    if (team_rank == 0) {
        struct question question;
        struct stream stream = service_stream(1, 0);
        team_stop(1);
        uint64_t begin_ns = processor_ns();
        service_send(&stream, ECHO, 8, &question);
        usleep(500000);
        /* the agent's thread; one that polls on a busy machine may get as little of the processor,
         * but does not nap */
        team_expect(processor_ns() - begin_ns < 200000000 && atomic_load(&service_naps) > 0);
        begin_ns = processor_ns();
        team_flag_set(RESUMED, 1);
        service_await(&question);
        /* both, in 1 s */
        team_expect(processor_ns() - begin_ns < 500000000 && atomic_load(&service_main_naps) > 0);
        free(stream.data);
    } else if (team_rank == 2) {
        team_flag_await(RESUMED, 1);
        usleep(1000000);
        kill(team->members[1].process.pid, SIGCONT);
    }
    team_barrier();
    service_stop();
}

static void net_first_contact_with_a_slow_process_is_fast(void **state)
{
    (void)state;
    team_run(3, wait_for_a_first_contact);
}

/* Rank 0 is stopped for longer than the limit while it waits for rank 1, and finds no message from
 * it when it continues: the silence was its own. Rank 2, which waits for rank 0 meanwhile, declares
 * it dead. */
static void be_stopped(struct oriel_window *window)
{
    enum { ASKED = 2, STOPPED = 3, GIVEN_UP = 4, REPORTED = 5 };
    service_start(window);
    struct question question;
    struct stream stream = service_stream(team_rank == 0 ? 1 : 0, 0);
    if (team_rank == 0) {
        service_send(&stream, STORE, 8, &question);
        team_flag_set(ASKED, 1);
        service_await(&question);
        team_expect(oriel_net_check(service_peers[1]) == ORIEL_OK);
        team_flag_set(REPORTED, 1);
    } else if (team_rank == 1) {
        team_flag_await(ASKED, 1);
        usleep(300000); /* it has sent its liveness check, and sleeps */
        team_stop(0);
        team_flag_set(STOPPED, 1);
        usleep(1500000);
        team_flag_await(GIVEN_UP, 1);
        kill(team->members[0].process.pid, SIGCONT);
        usleep(500000);
        service_answer(&service_stored[0], &service_stored_notes[0], NULL, 0);
    } else {
        service_send(&stream, ECHO, 8, &question);
        service_await(&question);
        team_flag_await(STOPPED, 1);
        service_send(&stream, ECHO, 8, &question);
        expect_lost(stream.peer, oriel_net_await(&question.net, NULL));
        team_flag_set(GIVEN_UP, 1);
    }
    team_flag_await(REPORTED, 1);
    free(stream.data);
    service_stop();
}

static void net_n4_own_silence_is_no_loss_of_others(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(3, be_stopped);
    unsetenv("ORIEL_TIMEOUT");
}

/* A living rank that needs longer than the limit for one answer is waited for. */
static void be_slow(struct oriel_window *window)
{
    service_start(window);
    static struct question question;
    struct stream stream = service_stream(1, 0);
    if (team_rank == 0) {
        service_send(&stream, STORE, 8, &question);
        service_await(&question);
    } else {
        while (atomic_load(&service_stored_count) == 0)
            usleep(1000);
        usleep(2500000);
        service_answer(&service_stored[0], &service_stored_notes[0], NULL, 0);
    }
    free(stream.data);
    service_stop();
}

static void net_n4_waits_for_a_live_process(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(2, be_slow);
    unsetenv("ORIEL_TIMEOUT");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_n4_reports_a_killed_process),
        cmocka_unit_test(net_n4_reports_a_process_that_died_before),
        cmocka_unit_test(net_n4_reports_a_killed_process_with_a_live_child),
        cmocka_unit_test(net_n4_gives_up_a_silent_process),
        cmocka_unit_test(net_first_contact_with_a_slow_process_is_fast),
        cmocka_unit_test(net_n4_own_silence_is_no_loss_of_others),
        cmocka_unit_test(net_n4_waits_for_a_live_process),
    };
    service_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
