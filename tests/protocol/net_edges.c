/* src/transport/ucx/: what comes at a bad moment: calls while the net stops and starts, messages and answers without memory. */
#include "netting.h"
#include "poor.h"

#include "transport/ucx/inner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STARTS = 12 };

static _Atomic bool is_over;

/* As a thread in MPI_Wait does, which knows nothing of windows. */
static void *go_on(void *unused)
{
    const struct oriel_net_asker nobody = {{0}};
    (void)unused;
    while (!atomic_load(&is_over)) {
        oriel_net_progress();
        oriel_net_answer(&nobody, &(struct oriel_net_bytes){.pieces = 0});
    }
    return NULL;
}

static void stop_beside_others(struct oriel_window *window)
{
    pthread_t threads[2];
    struct question question;
    atomic_store(&is_over, false);
    for (int i = 0; i < 2; i++)
        team_expect(pthread_create(&threads[i], NULL, go_on, NULL) == 0);
    for (int i = 0; i < STARTS; i++) {
        netting_start(window);
        struct stream stream = netting_stream(1 - team_rank, 0);
        netting_send(&stream, ECHO, 100, &question);
        netting_await(&question);
        free(stream.data);
        netting_stop();
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void net_progress_beside_stops_and_starts_is_harmless(void **state)
{
    (void)state;
    team_run(2, stop_beside_others);
}

/* An answer comes to this process while it has no memory, and where UCX has put it at an odd address. */
static void answer_oneself(struct question *question, uint64_t from)
{
    struct oriel_wire wire = {.version = ORIEL_WIRE_VERSION,
                              .kind = ORIEL_WIRE_ANSWER,
                              .head_bytes = sizeof question->note,
                              .from = from,
                              .to = oriel_net.session,
                              .number = question->net.number};
    char header[sizeof wire + sizeof question->note];
    const ucp_am_recv_param_t how = {.recv_attr = 0};
    memcpy(header, &wire, sizeof wire);
    memcpy(header + sizeof wire, &question->note, sizeof question->note);
    char *data = malloc(question->len_bytes + 1);
    team_expect(data != NULL);
    netting_fill(data + 1, question->len_bytes, question->note.seed);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    poor_here = true;
    team_expect(oriel_net_take_reply(NULL, header, sizeof header, data + 1, question->len_bytes, &how) == UCS_OK);
    poor_here = false;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    free(data);
}

static void take_in_poverty(struct oriel_window *window)
{
    struct question question;
    netting_start(window);
    struct stream stream = netting_stream(1 - team_rank, 0);
    netting_send(&stream, KEEP, 60001, &question);
    question.len_bytes = 60001;
    answer_oneself(&question, stream.peer->session);
    netting_await(&question);
    free(stream.data);
    netting_stop();
}

static void net_answer_is_taken_where_there_is_no_memory(void **state)
{
    (void)state;
    team_run(2, take_in_poverty);
}

/* What cannot be sent says so; the peer is as it was, and hears the next message. */
static void begin_in_poverty(struct oriel_window *window)
{
    struct question question;
    const struct oriel_net_bytes nothing = {.pieces = 0};
    netting_start(window);
    struct stream stream = netting_stream(1 - team_rank, 0);
    for (int i = 0; i < 2; i++) {
        poor_here = true;
        team_expect(oriel_net_tell(stream.peer, &nothing) == ORIEL_E_NO_MEM);
        team_expect(oriel_net_tell_later(stream.peer, &nothing) == ORIEL_E_NO_MEM);
        poor_here = false;
        netting_send(&stream, ECHO, 100, &question);
        netting_await(&question);
    }
    free(stream.data);
    netting_stop();
}

static void net_lack_of_memory_is_told_and_over_when_there_is_some(void **state)
{
    (void)state;
    team_run(2, begin_in_poverty);
}

/* Rank 1's net stops and starts again and again, while rank 0 keeps its own: it tells with a new session each time. */
enum { AGAIN = 24 };

static unsigned count_known(void)
{
    unsigned count = 0;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (const struct oriel_net_caller *caller = oriel_net.callers; caller != NULL; caller = caller->next)
        count++;
    for (const struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        count++;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return count;
}

static void open_anew(int32_t rank)
{
    team_expect(oriel_net_open(&team->members[rank].process, netting_shared->bytes[rank], netting_shared->len_bytes[rank],
                               &netting_peers[rank]) == ORIEL_OK);
}

static void echo_by(struct stream *stream, int32_t to)
{
    struct question question;
    stream->peer = netting_peers[to];
    netting_send(stream, ECHO, 100, &question);
    netting_await(&question);
}

static void start_beside_one_that_stays(struct oriel_window *window)
{
    netting_start(window);
    struct stream stream = netting_stream(1 - team_rank, 0);
    for (uint32_t i = 0; i < AGAIN; i++) {
        if (team_rank == 0 ? i % 4 != 0 : i < 8) /* now and then one has sent nothing, in the end rank 1 never */
            echo_by(&stream, 1 - team_rank);
        team_meet();
        if (team_rank == 1) {
            oriel_net_stop();
            team_expect(oriel_net_start(&team->members[1].process, NULL, &netting_service) == ORIEL_OK);
            memcpy(netting_shared->bytes[1], oriel_net_address(&netting_shared->len_bytes[1]), netting_shared->len_bytes[1]);
        } else if (i % 4 != 1) {
            for (int turns = 0; turns < 100 && !atomic_load(&netting_peers[1]->is_shunned); turns++) {
                oriel_net_progress(); /* which finds the other's connections broken */
                usleep(500);
            }
        }
        team_meet();
        open_anew(1 - team_rank);
        team_expect(team_rank == 1 || count_known() <= 6);
    }
    free(stream.data);
    netting_stop();
}

static void net_knows_no_more_of_one_that_starts_again_and_again(void **state)
{
    (void)state;
    team_run(2, start_beside_one_that_stays);
}

/* What rank 1 has told before it stops is served, though that takes seconds. */
static void stop_before_a_slow_one(struct oriel_window *window)
{
    enum { MANY = 400 };
    netting_start(window);
    struct stream stream = netting_stream(0, 0);
    uint64_t before = atomic_load(&netting_shared->served[0]);
    team_meet();
    for (int i = 0; team_rank == 1 && i < MANY; i++)
        netting_send(&stream, VERY_SLOWLY, 8, NULL);
    if (team_rank == 1)
        oriel_net_stop();
    team_meet();
    team_expect(atomic_load(&netting_shared->served[0]) == before + MANY);
    free(stream.data);
    oriel_net_stop();
}

static void net_stop_waits_for_a_slow_receiver(void **state)
{
    (void)state;
    team_run(2, stop_before_a_slow_one);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_progress_beside_stops_and_starts_is_harmless),
        cmocka_unit_test(net_answer_is_taken_where_there_is_no_memory),
        cmocka_unit_test(net_lack_of_memory_is_told_and_over_when_there_is_some),
        cmocka_unit_test(net_stop_waits_for_a_slow_receiver),
        cmocka_unit_test(net_knows_no_more_of_one_that_starts_again_and_again),
    };
    netting_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
