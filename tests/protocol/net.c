/* src/transport/ucx/: messages between processes are served once and in order, with their bytes, whatever the receiver's program
 * does meanwhile; answers come back; who dies or stands still is told to those who wait. */
#include "transport/ucx/net.h"
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
    struct iovec pieces[] = {{(void *)(uintptr_t)data, len_bytes / 3}, {(void *)(uintptr_t)(data + len_bytes / 3), len_bytes - len_bytes / 3}};
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
    atomic_fetch_add(&addresses->served[team_rank], 1);
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
            atomic_fetch_add(&addresses->lost[team_rank], UINT64_C(1) << i);
}

static const struct oriel_net_service service = {serve, look, lost};

static void start(struct oriel_window *window)
{
    static int starts;
    (void)window;
    memset(next_index, 0, sizeof next_index);
    atomic_store(&kept_count, 0);
    enum oriel_status status = oriel_net_start(&team->identities[team_rank], &service);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK && oriel_net_is_started());
    starts++;
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_n1_serves_messages_of_all_sizes_in_order),
    };
    (void)kept;
    (void)kept_notes;
    addresses = mmap(NULL, sizeof *addresses, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return team_main(tests, argc, argv);
}
