/* src/transport/ucx/: messages between processes are served once and in order, with their bytes, whatever the receiver's program
 * does meanwhile; answers come back; who dies or stands still is told to those who wait. */
#include "transport/ucx/inner.h"

#include "team.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MESSAGES = 400, STREAMS = TEAM_MOST * 2, ASKERS_MOST = 256 };

enum op { PASS, ECHO, KEEP, SLOWLY };

/* The head of every message. */
struct note {
    uint32_t op;
    uint32_t stream; /* of one sending thread */
    uint64_t index;  /* counted by stream */
    uint64_t seed;   /* of the data */
};

struct addresses {
    size_t len_bytes[TEAM_MOST];
    char bytes[TEAM_MOST][ORIEL_NET_ADDRESS_BYTES];
    _Atomic uint64_t served[TEAM_MOST]; /* messages */
    _Atomic uint64_t lost[TEAM_MOST];
};

static struct addresses *addresses; /* shared by the team */
static int32_t self;               /* the rank, also for the agent's thread */
static struct oriel_net_peer *peers[TEAM_MOST];
static uint64_t next_index[STREAMS];
static struct oriel_net_asker kept[ASKERS_MOST];
static struct note kept_notes[ASKERS_MOST];
static _Atomic uint32_t kept_count;
static _Atomic int looks_left;
static _Atomic uint32_t looks;

static void fill(char *bytes, size_t len_bytes, uint64_t seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        bytes[i] = (char)(seed + i * 7 + (i >> 9));
}

static bool is_filled(const char *bytes, size_t len_bytes, uint64_t seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (bytes[i] != (char)(seed + i * 7 + (i >> 9)))
            return false;
    return true;
}

static void answer_note(const struct oriel_net_asker *asker, const struct note *note, const char *data, size_t len_bytes)
{
    char *bytes = (char *)(uintptr_t)data;
    struct iovec pieces[] = {{bytes, len_bytes / 3}, {bytes + len_bytes / 3, len_bytes - len_bytes / 3}};
    oriel_net_answer(asker, &(struct oriel_net_bytes){note, sizeof *note, pieces, 2});
}

static void serve(const struct oriel_net_asker *asker, const struct oriel_identity *from, const struct oriel_net_arrived *message)
{
    struct note note;
    team_expect(message->head_bytes == sizeof note);
    team_expect((uintptr_t)message->head % 8 == 0 && (uintptr_t)message->data % 8 == 0);
    memcpy(&note, message->head, sizeof note);
    team_expect(note.stream < STREAMS);
    team_expect(oriel_identity_equal(from, &team->identities[note.stream / 2]));
    team_expect(note.index == next_index[note.stream]++); /* N1 */
    team_expect(is_filled(message->data, message->len_bytes, note.seed));
    atomic_fetch_add(&addresses->served[self], 1);
    if (note.op == ECHO) {
        answer_note(asker, &note, message->data, message->len_bytes);
    } else if (note.op == KEEP) {
        uint32_t place = atomic_load(&kept_count);
        kept[place] = *asker;
        kept_notes[place] = note;
        atomic_store(&kept_count, place + 1);
    } else if (note.op == SLOWLY) {
        usleep(1000);
    }
}

static bool look(void)
{
    atomic_fetch_add(&looks, 1);
    return atomic_fetch_sub(&looks_left, 1) > 1;
}

static void lost(const struct oriel_identity *who)
{
    for (int32_t i = 0; i < team->n; i++)
        if (oriel_identity_equal(who, &team->identities[i]))
            atomic_fetch_add(&addresses->lost[self], UINT64_C(1) << i);
}

static const struct oriel_net_service service = {serve, look, lost};

static void start(struct oriel_window *window)
{
    self = window->rank;
    memset(next_index, 0, sizeof next_index);
    atomic_store(&kept_count, 0);
    enum oriel_status status = oriel_net_start(&team->identities[team_rank], &service);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK && oriel_net_is_started());
    const void *address = oriel_net_address(&addresses->len_bytes[team_rank]);
    memcpy(addresses->bytes[team_rank], address, addresses->len_bytes[team_rank]);
    team_meet();
    for (int32_t i = 0; i < team->n; i++) {
        team_expect(oriel_net_open(&team->identities[i], addresses->bytes[i], addresses->len_bytes[i], &peers[i]) == ORIEL_OK);
        team_expect(oriel_net_find(&team->identities[i]) == peers[i]);
    }
}

static void stop(void)
{
    team_meet();
    oriel_net_stop();
    team_expect(!oriel_net_is_started());
}

/* --- a network without manners --- */

static bool is_unruly;

bool __real_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep, struct oriel_buffer *buffer);
bool __wrap_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep, struct oriel_buffer *buffer);

/* Some of what is told is sent after what comes next, which is no such message in the end, and some twice. */
bool __wrap_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep, struct oriel_buffer *buffer)
{
    static struct {
        ucp_ep_h ep;
        struct oriel_buffer *buffer;
    } late[8];
    static unsigned late_count;
    static uint64_t random = 88172645463325252u;
    if (!is_unruly || worker != &oriel_net.origin)
        return __real_oriel_net_send(worker, ep, buffer);
    struct oriel_wire wire;
    memcpy(&wire, buffer->front, sizeof wire);
    random = random * 6364136223846793005u + 1442695040888963407u;
    if (wire.kind == ORIEL_WIRE_TOLD && (random >> 40) % 3 == 0 && late_count < 8) {
        late[late_count].ep = ep;
        late[late_count++].buffer = buffer;
        return true;
    }
    if (wire.kind == ORIEL_WIRE_TOLD && (random >> 40) % 7 == 0) {
        struct oriel_buffer *twin = oriel_pool_take(&worker->pool, buffer->len_bytes);
        memcpy(twin->front, buffer->front, sizeof twin->front);
        memcpy(twin->data, buffer->data, buffer->len_bytes);
        twin->front_bytes = buffer->front_bytes;
        twin->len_bytes = buffer->len_bytes;
        team_expect(__real_oriel_net_send(worker, ep, twin));
    }
    bool is_sent = __real_oriel_net_send(worker, ep, buffer);
    while (late_count > 0 && (wire.kind != ORIEL_WIRE_TOLD || (random >> 50) % 2 == 0)) {
        late_count--;
        team_expect(__real_oriel_net_send(worker, late[late_count].ep, late[late_count].buffer));
    }
    return is_sent;
}

/* --- asking --- */

struct question {
    struct oriel_net_request net; /* first */
    struct note note;
    size_t len_bytes;
    int taken;
    int ended;
};

static void take(struct oriel_net_request *request, const struct oriel_net_arrived *answer)
{
    struct question *question = (struct question *)request;
    struct note note;
    team_expect(answer->head_bytes == sizeof note);
    team_expect((uintptr_t)answer->head % 8 == 0 && (uintptr_t)answer->data % 8 == 0);
    memcpy(&note, answer->head, sizeof note);
    team_expect(note.stream == question->note.stream && note.index == question->note.index);
    team_expect(answer->len_bytes == question->len_bytes && is_filled(answer->data, answer->len_bytes, note.seed));
    question->taken++;
}

static void end(struct oriel_net_request *request)
{
    struct question *question = (struct question *)request;
    question->ended++;
}

/* One stream of messages to one process. */
struct stream {
    struct oriel_net_peer *peer;
    uint32_t number;
    uint64_t index;
    uint64_t random;
    char *data;
};

static struct stream stream_to(int32_t rank, uint32_t half)
{
    struct stream stream = {.peer = peers[rank], .number = (uint32_t)team_rank * 2 + half, .random = team_random()};
    stream.data = malloc(ORIEL_NET_DATA_BYTES);
    team_expect(stream.data != NULL);
    return stream;
}

static void send_one(struct stream *stream, enum op op, size_t len_bytes, struct question *question)
{
    struct note note = {op, stream->number, stream->index++, stream->random = stream->random * 6364136223846793005u + 1};
    fill(stream->data, len_bytes, note.seed);
    size_t first = len_bytes == 0 ? 0 : (note.seed >> 20) % len_bytes;
    struct iovec pieces[] = {{stream->data, first}, {stream->data, 0}, {stream->data + first, len_bytes - first}};
    struct oriel_net_bytes bytes = {&note, sizeof note, pieces, 3};
    if (question == NULL) {
        team_expect(oriel_net_tell(stream->peer, &bytes) == ORIEL_OK);
    } else {
        *question = (struct question){.net = {.take = take, .end = end}, .note = note, .len_bytes = op == KEEP ? 0 : len_bytes};
        team_expect(oriel_net_ask(stream->peer, &bytes, &question->net) == ORIEL_OK);
    }
    memset(stream->data, 0x55, len_bytes); /* it has been copied */
}

static size_t some_size(uint64_t random)
{
    static const size_t edges[] = {0, 1, 8, 200, 4000, 8100, 8192, 8193, 65536, 100001, ORIEL_NET_DATA_BYTES};
    return random % 4 == 0 ? edges[(random >> 8) % 11] : (random >> 8) % (random % 4 == 1 ? 64 : 3000);
}

static void await_well(struct question *question)
{
    enum oriel_status status = oriel_net_await(&question->net, NULL);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK);
    while (question->ended == 0)
        usleep(10);
    team_expect(question->taken == 1 && question->ended == 1);
}

/* All tell all, with an echo now and then; the last echo of each stream ends it. */
static void tell_all(struct oriel_window *window)
{
    struct stream streams[TEAM_MOST];
    struct question question;
    start(window);
    for (int32_t to = 0; to < team->n; to++)
        streams[to] = stream_to(to, 0);
    for (int i = team_rounds(MESSAGES); i > 0; i--) {
        uint64_t random = team_random();
        struct stream *stream = &streams[random % (uint64_t)team->n];
        if ((random >> 32) % 8 == 0) {
            send_one(stream, ECHO, some_size(team_random()), &question);
            await_well(&question);
        } else {
            send_one(stream, PASS, some_size(team_random()), NULL);
        }
    }
    for (int32_t to = 0; to < team->n; to++) {
        send_one(&streams[to], ECHO, 100, &question);
        await_well(&question);
        team_expect(oriel_net_is_quiet(peers[to])); /* N2 */
        free(streams[to].data);
    }
    stop();
}

static void net_n1_serves_messages_of_all_sizes_in_order(void **state)
{
    (void)state;
    team_run(2, tell_all);
    team_run(4, tell_all);
}

/* Two threads of each process tell the same one at once: each thread's messages stay in order, and all are served. */
static void *tell_stream(void *context)
{
    struct stream *stream = context;
    for (int i = 0; i < MESSAGES / 2; i++)
        send_one(stream, PASS, some_size(stream->random >> 16), NULL);
    struct question question;
    send_one(stream, ECHO, 8, &question);
    await_well(&question);
    return NULL;
}

static void tell_by_threads(struct oriel_window *window)
{
    pthread_t thread;
    start(window);
    struct stream streams[] = {stream_to((team_rank + 1) % team->n, 0), stream_to((team_rank + 1) % team->n, 1)};
    team_expect(pthread_create(&thread, NULL, tell_stream, &streams[1]) == 0);
    tell_stream(&streams[0]);
    pthread_join(thread, NULL);
    team_expect(oriel_net_is_quiet(peers[(team_rank + 1) % team->n]));
    stop();
}

static void net_n1_holds_for_several_threads(void **state)
{
    (void)state;
    team_run(2, tell_by_threads);
    team_run(3, tell_by_threads);
}

/* The network brings some messages late and some twice. */
static void net_n1_puts_late_and_double_messages_right(void **state)
{
    (void)state;
    is_unruly = true;
    team_run(2, tell_all);
    team_run(2, tell_by_threads);
    is_unruly = false;
}

/* Rank 0 keeps the askers, and its program answers them later, the last one first. */
static void answer_later(struct oriel_window *window)
{
    enum { EACH = 20 };
    static struct question questions[EACH];
    start(window);
    struct stream stream = stream_to(0, 0);
    for (int i = 0; i < EACH; i++)
        send_one(&stream, KEEP, some_size(team_random()), &questions[i]);
    if (team_rank == 0) {
        while (atomic_load(&kept_count) < (uint32_t)(EACH * team->n))
            usleep(100);
        for (int i = EACH * team->n; i-- > 0;)
            answer_note(&kept[i], &kept_notes[i], NULL, 0);
    }
    for (int i = EACH; i-- > 0;)
        await_well(&questions[i]);
    free(stream.data);
    stop();
}

static void net_answers_come_later_and_in_any_order(void **state)
{
    (void)state;
    team_run(2, answer_later);
    team_run(4, answer_later);
}

/* Rank 1 computes: no call of its program until all is done. */
static void ask_the_busy(struct oriel_window *window)
{
    struct question question;
    start(window);
    struct stream stream = stream_to(1, 0);
    for (int i = 0; team_rank == 0 && i < 50; i++) {
        if (i % 10 == 0)
            usleep(20000); /* its agent sleeps by now */
        send_one(&stream, ECHO, some_size(team_random()), &question);
        await_well(&question);
    }
    if (team_rank == 0)
        team_flag_set(0, 1);
    team_flag_await(0, 1);
    free(stream.data);
    stop();
}

static void net_serves_while_the_receiver_computes(void **state)
{
    (void)state;
    team_run(2, ask_the_busy);
}

/* Rank 0 tells more than sockets hold, from the first message on, and then computes, as the receiver does. */
static void tell_and_compute(struct oriel_window *window)
{
    enum { COUNT = 15 };
    start(window);
    struct stream stream = stream_to(1, 0);
    for (int i = 0; team_rank == 0 && i < COUNT; i++)
        send_one(&stream, PASS, ORIEL_NET_DATA_BYTES, NULL);
    while (atomic_load(&addresses->served[1]) < COUNT)
        usleep(500);
    team_meet();
    free(stream.data);
    stop();
}

static void net_n3_sends_while_the_sender_computes(void **state)
{
    (void)state;
    atomic_store(&addresses->served[1], 0);
    team_run(2, tell_and_compute);
}

/* A receiver that takes its time does not have to keep all that is sent. */
static void tell_the_slow(struct oriel_window *window)
{
    enum { COUNT = 2500, MOST = 1100, LARGE = 60, MOST_LARGE = 36 };
    start(window);
    struct stream stream = stream_to(1, 0);
    struct question question;
    for (uint64_t i = 0; team_rank == 0 && i < COUNT; i++) {
        send_one(&stream, i % 16 == 0 ? SLOWLY : PASS, 8, NULL);
        team_expect(i - atomic_load(&addresses->served[1]) <= MOST || atomic_load(&addresses->served[1]) > i);
    }
    for (uint64_t i = COUNT; team_rank == 0 && i < COUNT + LARGE; i++) {
        send_one(&stream, SLOWLY, ORIEL_NET_DATA_BYTES, NULL);
        uint64_t served = atomic_load(&addresses->served[1]);
        team_expect(served > i || i - served <= MOST_LARGE || served < COUNT);
    }
    if (team_rank == 0) {
        send_one(&stream, ECHO, 8, &question);
        await_well(&question);
        team_flag_set(0, 1);
    }
    team_flag_await(0, 1);
    free(stream.data);
    stop();
}

static void net_sender_waits_for_a_slow_receiver(void **state)
{
    (void)state;
    atomic_store(&addresses->served[1], 0);
    team_run(2, tell_the_slow);
}

/* --- deaths --- */

static void expect_lost(struct oriel_net_peer *peer, enum oriel_status status)
{
    if (status != ORIEL_E_PEER)
        fprintf(stderr, "status %d: %s\n", (int)status, oriel_fail_message());
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), "process ") != NULL);
    struct note note = {PASS, 0, 0, 0};
    struct oriel_net_bytes bytes = {&note, sizeof note, NULL, 0};
    struct question question = {.net = {.take = take, .end = end}};
    team_expect(oriel_net_tell(peer, &bytes) == ORIEL_E_PEER);
    team_expect(oriel_net_ask(peer, &bytes, &question.net) == ORIEL_E_PEER);
    team_expect(question.net.done && oriel_net_await(&question.net, NULL) == ORIEL_E_PEER);
    team_expect(oriel_net_check(peer) == ORIEL_E_PEER);
}

/* How the others notice: each in its own way. */
static void meet_a_death(int32_t dead, bool is_told)
{
    static struct question question;
    struct stream stream = stream_to(dead, 1);
    struct oriel_net_peer *peer = peers[dead];
    struct note kept_note = {KEEP, stream.number, stream.index++, 0};
    question = (struct question){.net = {.take = take, .end = end}, .note = kept_note};
    struct oriel_net_bytes bytes = {&kept_note, sizeof kept_note, NULL, 0};
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
    while (is_told && atomic_load(&addresses->lost[team_rank]) == 0)
        usleep(1000);
    team_expect(!is_told || atomic_load(&addresses->lost[team_rank]) == UINT64_C(1) << dead);
    free(stream.data);
}

/* Rank 1 has sent to all and been sent to; then it dies. */
static void die_connected(struct oriel_window *window)
{
    atomic_store(&addresses->lost[team_rank], 0);
    start(window);
    for (int32_t to = 0; team_rank == 1 && to < team->n; to++) {
        struct stream stream = stream_to(to, 0);
        struct question question;
        send_one(&stream, ECHO, 5000, &question);
        await_well(&question);
    }
    team_meet();
    if (team_rank == 1) {
        team_flag_await(0, 1);
        usleep(50000);
        team_die();
    }
    meet_a_death(1, true);
    oriel_net_stop();
}

static void net_n4_tells_of_a_killed_process(void **state)
{
    (void)state;
    team_run(4, die_connected);
}

/* Nobody has a connection when it dies. */
static void die_unknown(struct oriel_window *window)
{
    start(window);
    team_meet();
    if (team_rank == 1)
        team_die();
    usleep(50000);
    meet_a_death(1, false);
    oriel_net_stop();
}

static void net_n4_tells_of_a_process_that_died_before(void **state)
{
    (void)state;
    team_run(4, die_unknown);
}

/* A child that outlives its parent keeps the connections open: the silence tells. */
static void die_with_a_child(struct oriel_window *window)
{
    start(window);
    team_meet();
    if (team_rank == 1) {
        pid_t child = fork();
        if (child == 0) {
            team_expect(!oriel_net_is_started());
            team_expect(oriel_net_start(&team->identities[1], &service) == ORIEL_E_OTHER);
            oriel_net_stop();
            oriel_net_progress();
            sleep(6);
            _exit(0);
        }
        team_flag_await(0, 1);
        usleep(50000);
        team_die();
    }
    meet_a_death(1, false);
    oriel_net_stop();
}

static void net_n4_tells_of_a_killed_process_whose_child_lives(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(2, die_with_a_child);
    unsetenv("ORIEL_TIMEOUT");
}

/* Rank 1 stands still for ever, as a machine does whose cable is out. */
static void stand_still(struct oriel_window *window)
{
    start(window);
    if (team_rank == 1) {
        team_flag_await(1, 2);
        team_die();
    }
    struct stream stream = stream_to(1, 0);
    struct question question;
    send_one(&stream, ECHO, 8, &question);
    await_well(&question);
    free(stream.data);
    team_flag_set(2 + (team_rank != 0), 1);
    team_flag_await(2, 1);
    team_flag_await(3, 1);
    if (team_rank == 0)
        kill(team->identities[1].pid, SIGSTOP);
    meet_a_death(1, false);
    atomic_fetch_add(&team->flags[1], 1);
    team_flag_await(1, 2);
    kill(team->identities[1].pid, SIGCONT);
    oriel_net_stop();
}

static void net_n4_gives_up_who_is_silent(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(3, stand_still);
    unsetenv("ORIEL_TIMEOUT");
}

/* Who takes longer than the limit for one answer, and lives, is waited for. */
static void take_long(struct oriel_window *window)
{
    start(window);
    static struct question question;
    struct stream stream = stream_to(1, 0);
    if (team_rank == 0) {
        send_one(&stream, KEEP, 8, &question);
        await_well(&question);
    } else {
        while (atomic_load(&kept_count) == 0)
            usleep(1000);
        usleep(2500000);
        answer_note(&kept[0], &kept_notes[0], NULL, 0);
    }
    free(stream.data);
    stop();
}

static void net_n4_waits_for_who_lives(void **state)
{
    (void)state;
    setenv("ORIEL_TIMEOUT", "1", 1);
    team_run(2, take_long);
    unsetenv("ORIEL_TIMEOUT");
}

/* --- the rest --- */

static void start_again(struct oriel_window *window)
{
    struct question question;
    for (int i = 0; i < 3; i++) {
        start(window);
        struct stream stream = stream_to((team_rank + 1) % team->n, 0);
        send_one(&stream, PASS, 70000, NULL);
        send_one(&stream, ECHO, 8, &question);
        await_well(&question);
        free(stream.data);
        team_meet();
        if (i == 1)
            usleep((useconds_t)team_rank * 30000); /* not all at once */
        oriel_net_stop();
        team_expect(atomic_load(&addresses->lost[team_rank]) == 0);
        team_meet();
    }
}

static void net_stops_and_starts_again(void **state)
{
    (void)state;
    memset(addresses, 0, sizeof *addresses);
    team_run(3, start_again);
}

static enum oriel_status no_longer(void *context)
{
    (void)context;
    return oriel_fail(ORIEL_E_SYNC, "no longer");
}

/* Messages for an earlier start of the receiver are not served, and the wait for their answer ends with the watch. */
static void miss(struct oriel_window *window)
{
    start(window);
    if (team_rank == 0) {
        char other[ORIEL_NET_ADDRESS_BYTES];
        struct oriel_net_peer *peer;
        memcpy(other, addresses->bytes[1], addresses->len_bytes[1]);
        other[8] ^= 1; /* the session */
        team_expect(oriel_net_open(&team->identities[1], other, 7, &peer) == ORIEL_E_OTHER);
        team_expect(oriel_net_open(&team->identities[1], other, addresses->len_bytes[1], &peer) == ORIEL_OK);
        static struct question question = {.net = {.take = take}};
        struct note note = {ECHO, 0, 0, 0};
        team_expect(oriel_net_ask(peer, &(struct oriel_net_bytes){&note, sizeof note, NULL, 0}, &question.net) == ORIEL_OK);
        struct oriel_watch watch = {no_longer, NULL};
        team_expect(oriel_net_await(&question.net, &watch) == ORIEL_E_SYNC && question.taken == 0);
        team_expect(!oriel_net_is_quiet(peer));
    }
    stop();
}

static void messages_for_an_earlier_start_are_dropped(void **state)
{
    (void)state;
    team_run(2, miss);
}

static void be_nudged(struct oriel_window *window)
{
    start(window);
    atomic_store(&looks, 0);
    atomic_store(&looks_left, 100);
    oriel_net_nudge();
    while (atomic_load(&looks) < 100)
        usleep(100);
    usleep(20000);
    team_expect(atomic_load(&looks) == 100);
    stop();
}

static void net_looks_until_there_is_nothing_to_see(void **state)
{
    (void)state;
    team_run(2, be_nudged);
}

/* How often the threads of this process that are not the main one have gone to sleep. */
static unsigned long switches(void)
{
    unsigned long sum = 0;
    for (pid_t thread = getpid() + 1; thread < getpid() + 60; thread++) {
        char path[64];
        char line[128];
        unsigned long count;
        snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            continue;
        while (fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1)
                sum += count;
        fclose(file);
    }
    return sum;
}

static void be_idle(struct oriel_window *window)
{
    struct question question;
    start(window);
    struct stream stream = stream_to(1 - team_rank, 0);
    send_one(&stream, ECHO, 8, &question);
    await_well(&question);
    team_meet();
    usleep(300000);
    unsigned long before = switches();
    usleep(1000000);
    team_expect(before > 0 && switches() - before <= 6);
    free(stream.data);
    stop();
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
        cmocka_unit_test(net_answers_come_later_and_in_any_order),
        cmocka_unit_test(net_serves_while_the_receiver_computes),
        cmocka_unit_test(net_n3_sends_while_the_sender_computes),
        cmocka_unit_test(net_sender_waits_for_a_slow_receiver),
        cmocka_unit_test(net_n4_tells_of_a_killed_process),
        cmocka_unit_test(net_n4_tells_of_a_process_that_died_before),
        cmocka_unit_test(net_n4_tells_of_a_killed_process_whose_child_lives),
        cmocka_unit_test(net_n4_gives_up_who_is_silent),
        cmocka_unit_test(net_n4_waits_for_who_lives),
        cmocka_unit_test(net_stops_and_starts_again),
        cmocka_unit_test(messages_for_an_earlier_start_are_dropped),
        cmocka_unit_test(net_looks_until_there_is_nothing_to_see),
        cmocka_unit_test(net_sleeps_when_nothing_is_sent),
    };
    addresses = mmap(NULL, sizeof *addresses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return team_main(tests, argc, argv);
}
