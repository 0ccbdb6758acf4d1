/* The service, the streams and the unreliable network of the tests of messages. A failure at the
 * receiver ends its process, as in all of these tests. */
#include "message_service.h"

#include "transport/ucx/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MESSAGES = 400 };

struct addresses *netting_shared; /* shared by the team */
static int32_t self;              /* the rank, also for the agent's thread */
struct oriel_net_peer *netting_peers[TEAM_MOST];
static uint64_t next_index[STREAMS];
struct oriel_net_requester netting_kept[ASKERS_MOST];
struct note netting_kept_notes[ASKERS_MOST];
_Atomic uint32_t netting_kept_count;
_Atomic int netting_looks_left;
_Atomic uint32_t netting_looks;
struct oriel_event netting_signals;
bool netting_has_threads;

void netting_fill(char *bytes, size_t len_bytes, uint64_t seed)
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

void netting_answer(const struct oriel_net_requester *asker, const struct note *note,
                    const char *data, size_t len_bytes)
{
    char *bytes = (char *)(uintptr_t)data;
    struct iovec pieces[] = {{bytes, len_bytes / 3},
                             {bytes + len_bytes / 3, len_bytes - len_bytes / 3}};
    oriel_net_answer(asker, &(struct oriel_net_bytes){note, sizeof *note, pieces, 2});
}

static void serve(const struct oriel_net_requester *asker, const struct oriel_identity *from,
                  const struct oriel_net_received *message)
{
    struct note note;
    team_expect(message->head_bytes == sizeof note);
    team_expect((uintptr_t)message->head % 8 == 0 && (uintptr_t)message->data % 8 == 0);
    memcpy(&note, message->head, sizeof note);
    team_expect(note.stream < STREAMS);
    team_expect(oriel_identity_equal(from, &team->members[note.stream / 2].process));
    team_expect(note.index == next_index[note.stream]++); /* N1 */
    team_expect(is_filled(message->data, message->len_bytes, note.seed));
    atomic_fetch_add(&netting_shared->helped[self], gettid() == getpid());
    atomic_fetch_add(&netting_shared->served[self], 1);
    if (note.op == ECHO) {
        netting_answer(asker, &note, message->data, message->len_bytes);
    } else if (note.op == KEEP) {
        uint32_t place = atomic_load(&netting_kept_count);
        netting_kept[place] = *asker;
        netting_kept_notes[place] = note;
        atomic_store(&netting_kept_count, place + 1);
    } else if (note.op == SLOWLY) {
        usleep(1000);
    } else if (note.op == VERY_SLOWLY) {
        usleep(6000);
    } else if (note.op == SIGNAL) {
        oriel_event_signal(&netting_signals);
    }
}

static bool look(void)
{
    atomic_fetch_add(&netting_looks, 1);
    return atomic_fetch_sub(&netting_looks_left, 1) > 1;
}

static void lost(const struct oriel_identity *who)
{
    for (int32_t i = 0; i < team->n; i++)
        if (oriel_identity_equal(who, &team->members[i].process))
            atomic_fetch_add(&netting_shared->lost[self], UINT64_C(1) << i);
}

const struct oriel_net_service netting_service = {.serve = serve, .look = look, .lost = lost};
static const struct oriel_net_service service_of_threads = {
    .serve = serve, .look = look, .lost = lost, .has_threads = true};

void netting_begin(struct oriel_window *window)
{
    self = window->rank;
    memset(next_index, 0, sizeof next_index);
    atomic_store(&netting_kept_count, 0);
    atomic_store(&netting_signals.value, 0);
    struct sigaction before;
    struct sigaction after;
    char code[16];
    void *call = dlsym(RTLD_DEFAULT, "munmap");
    sigaction(SIGSEGV, NULL, &before);
    memcpy(code, call, sizeof code);
    const struct oriel_net_service *service =
        netting_has_threads ? &service_of_threads : &netting_service;
    enum oriel_status status = oriel_net_start(&team->members[team_rank].process, NULL, service);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK && oriel_net_is_started());
    sigaction(SIGSEGV, NULL, &after);
    team_expect(after.sa_handler == before.sa_handler); /* UCX would have installed its own */
    team_expect(memcmp(code, call, sizeof code) == 0 || access("/sys/class/infiniband", F_OK) == 0);
    const void *address = oriel_net_address(&netting_shared->len_bytes[team_rank]);
    memcpy(netting_shared->bytes[team_rank], address, netting_shared->len_bytes[team_rank]);
    team_meet();
}

void netting_open(int32_t rank)
{
    const struct oriel_identity *who = &team->members[rank].process;
    team_expect(oriel_net_open(who, netting_shared->bytes[rank], netting_shared->len_bytes[rank],
                               &netting_peers[rank]) == ORIEL_OK);
    team_expect(oriel_net_find(who) == netting_peers[rank]);
}

void netting_start(struct oriel_window *window)
{
    netting_begin(window);
    for (int32_t i = 0; i < team->n; i++)
        netting_open(i);
}

void netting_stop(void)
{
    team_meet();
    oriel_net_stop();
    team_expect(!oriel_net_is_started());
}

/* --- all with all --- */

void netting_tell_all(struct oriel_window *window, void (*between)(uint64_t random))
{
    struct stream streams[TEAM_MOST];
    struct question question;
    netting_start(window);
    for (int32_t to = 0; to < team->n; to++)
        streams[to] = netting_stream(to, 0);
    for (int i = team_rounds(MESSAGES); i > 0; i--) {
        uint64_t random = team_random();
        struct stream *stream = &streams[random % (uint64_t)team->n];
        if ((random >> 32) % 8 == 0) {
            netting_send(stream, ECHO, netting_size(team_random()), &question);
            netting_await(&question);
        } else {
            netting_send(stream, PASS, netting_size(team_random()), NULL);
        }
        if (between != NULL)
            between(random);
    }
    for (int32_t to = 0; to < team->n; to++) {
        netting_send(&streams[to], ECHO, 100, &question);
        netting_await(&question);
        free(streams[to].data);
    }
    netting_stop();
}

/* --- an unreliable network --- */

bool netting_is_unruly;
bool netting_gathers;

ucs_status_t __real_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep,
                                   struct oriel_ucx_buffer *buffer);
ucs_status_t __wrap_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep,
                                   struct oriel_ucx_buffer *buffer);

/* Sends some messages after the next one, or at the end if there is none. Sends some messages,
 * including coalesced ones, twice. */
ucs_status_t __wrap_oriel_net_send(struct oriel_net_worker *worker, ucp_ep_h ep,
                                   struct oriel_ucx_buffer *buffer)
{
    static struct {
        ucp_ep_h ep;
        struct oriel_ucx_buffer *buffer;
    } late[8];
    static unsigned late_count;
    static uint64_t random = 88172645463325252u;
    if (!netting_is_unruly || worker != &oriel_net.origin)
        return __real_oriel_net_send(worker, ep, buffer);
    struct oriel_wire wire = {.kind = ORIEL_WIRE_COALESCED};
    if (buffer->front_bytes != 0)
        memcpy(&wire, buffer->front, sizeof wire);
    random = random * 6364136223846793005u + 1442695040888963407u;
    if (wire.kind == ORIEL_WIRE_TOLD && (random >> 40) % 3 == 0 && late_count < 8) {
        late[late_count].ep = ep;
        late[late_count++].buffer = buffer;
        return UCS_OK;
    }
    if ((wire.kind == ORIEL_WIRE_TOLD || wire.kind == ORIEL_WIRE_COALESCED) &&
        (random >> 40) % 7 == 0) {
        struct oriel_ucx_buffer *twin = oriel_pool_take(&worker->pool, buffer->len_bytes);
        memcpy(twin->front, buffer->front, sizeof twin->front);
        memcpy(twin->data, buffer->data, buffer->len_bytes);
        twin->front_bytes = buffer->front_bytes;
        twin->len_bytes = buffer->len_bytes;
        team_expect(__real_oriel_net_send(worker, ep, twin) == UCS_OK);
    }
    ucs_status_t status = __real_oriel_net_send(worker, ep, buffer);
    while (late_count > 0 && (wire.kind != ORIEL_WIRE_TOLD || (random >> 50) % 2 == 0)) {
        late_count--;
        team_expect(__real_oriel_net_send(worker, late[late_count].ep, late[late_count].buffer) ==
                    UCS_OK);
    }
    return status;
}

/* --- asleep --- */

unsigned long netting_sleeps(void)
{
    unsigned long sum = 0;
    DIR *folder = opendir("/proc/self/task");
    team_expect(folder != NULL);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300];
        char line[128];
        bool is_meant = false;
        unsigned long count;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            is_meant = is_meant || strcmp(line, "Name:\toriel-net\n") == 0 ||
                       strcmp(line, "Name:\tasync\n") == 0;
            if (is_meant && sscanf(line, "voluntary_ctxt_switches: %lu", &count) == 1)
                sum += count;
        }
        if (file != NULL)
            fclose(file);
    }
    closedir(folder);
    return sum;
}

_Atomic uint32_t netting_naps;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(&netting_naps, gettid() != getpid());
    return __real_nanosleep(time, left);
}

/* --- a clock that does not advance --- */

bool netting_has_limit = true;

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask);

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask)
{
    return __real_ppoll(fds, count, count == 2 && !netting_has_limit ? NULL : limit, mask);
}

/* --- asking --- */

void netting_take(struct oriel_net_request *request, const struct oriel_net_received *answer)
{
    struct question *question = (struct question *)request;
    struct note note;
    team_expect(answer->head_bytes == sizeof note);
    team_expect((uintptr_t)answer->head % 8 == 0 && (uintptr_t)answer->data % 8 == 0);
    memcpy(&note, answer->head, sizeof note);
    team_expect(note.stream == question->note.stream && note.index == question->note.index);
    team_expect(answer->len_bytes == question->len_bytes &&
                is_filled(answer->data, answer->len_bytes, note.seed));
    question->taken++;
}

void netting_end(struct oriel_net_request *request)
{
    struct question *question = (struct question *)request;
    question->ended++;
}

struct stream netting_stream(int32_t rank, uint32_t half)
{
    struct stream stream = {.peer = netting_peers[rank],
                            .number = (uint32_t)team_rank * 2 + half,
                            .random = team_random()};
    stream.data = malloc(ORIEL_NET_DATA_BYTES);
    team_expect(stream.data != NULL);
    return stream;
}

void netting_send(struct stream *stream, enum op op, size_t len_bytes, struct question *question)
{
    struct note note = {op, stream->number, stream->index++,
                        stream->random = stream->random * 6364136223846793005u + 1};
    netting_fill(stream->data, len_bytes, note.seed);
    size_t first = len_bytes == 0 ? 0 : (note.seed >> 20) % len_bytes;
    struct iovec pieces[] = {
        {stream->data, first}, {stream->data, 0}, {stream->data + first, len_bytes - first}};
    struct oriel_net_bytes bytes = {&note, sizeof note, pieces, 3};
    bool later = netting_gathers && (note.seed >> 50) % 4 != 0;
    if (question == NULL) {
        team_expect((later ? oriel_net_tell_later : oriel_net_tell)(stream->peer, &bytes) ==
                    ORIEL_OK);
    } else {
        *question =
            (struct question){.net = {.take = netting_take, .end = netting_end}, .note = note};
        question->len_bytes = op == KEEP ? 0 : len_bytes;
        team_expect((later ? oriel_net_ask_later : oriel_net_ask)(stream->peer, &bytes,
                                                                  &question->net) == ORIEL_OK);
    }
    memset(stream->data, 0x55, len_bytes); /* it has been copied */
}

size_t netting_size(uint64_t random)
{
    static const size_t edges[] = {
        0, 1, 8, 200, 4000, 8100, 8192, 8193, 32768, 50001, ORIEL_NET_DATA_BYTES};
    return random % 4 == 0 ? edges[(random >> 8) % 11]
                           : (random >> 8) % (random % 4 == 1 ? 64 : 3000);
}

void netting_await(struct question *question)
{
    enum oriel_status status = oriel_net_await(&question->net, NULL);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK);
    while (question->ended == 0)
        usleep(10);
    team_expect(question->taken == 1 && question->ended == 1);
}

void netting_prepare(int argc, char **argv)
{
    team_prepare(argc, argv);
    if (team_has_threads()) {
        printf("skipped: a process has one net\n");
        exit(77);
    }
    netting_shared = mmap(NULL, sizeof *netting_shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(netting_shared, MAP_FAILED);
}
