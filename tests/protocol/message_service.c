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

struct addresses *service_shared; /* shared by the team */
static int32_t self;              /* the rank, also for the agent's thread */
struct oriel_net_peer *service_peers[TEAM_MOST];
static uint64_t next_index[STREAMS];
struct oriel_net_requester service_stored[ASKERS_MOST];
struct note service_stored_notes[ASKERS_MOST];
_Atomic uint32_t service_stored_count;
_Atomic int service_polls_left;
_Atomic uint32_t service_polls;
_Atomic bool service_lets_go;
struct oriel_event service_signals;
bool service_has_threads;

void service_fill(char *bytes, size_t len_bytes, uint64_t seed)
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

void service_answer(const struct oriel_net_requester *asker, const struct note *note,
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
    atomic_fetch_add(&service_shared->helped[self], gettid() == getpid());
    atomic_fetch_add(&service_shared->served[self], 1);
    if (note.op == ECHO) {
        service_answer(asker, &note, message->data, message->len_bytes);
    } else if (note.op == STORE) {
        uint32_t index = atomic_load(&service_stored_count);
        service_stored[index] = *asker;
        service_stored_notes[index] = note;
        atomic_store(&service_stored_count, index + 1);
    } else if (note.op == SLOWLY) {
        usleep(1000);
    } else if (note.op == VERY_SLOWLY) {
        usleep(6000);
    } else if (note.op == HELD) {
        while (!atomic_load(&service_lets_go))
            usleep(50);
    } else if (note.op == SIGNAL) {
        oriel_event_signal(&service_signals);
    }
}

static bool look(void)
{
    atomic_fetch_add(&service_polls, 1);
    return atomic_fetch_sub(&service_polls_left, 1) > 1;
}

static void lost(const struct oriel_identity *who)
{
    for (int32_t i = 0; i < team->n; i++)
        if (oriel_identity_equal(who, &team->members[i].process))
            atomic_fetch_add(&service_shared->lost[self], UINT64_C(1) << i);
}

const struct oriel_net_service service_functions = {.serve = serve, .look = look, .lost = lost};
static const struct oriel_net_service service_of_threads = {
    .serve = serve, .look = look, .lost = lost, .has_threads = true};

void service_begin(struct oriel_window *window)
{
    self = window->rank;
    memset(next_index, 0, sizeof next_index);
    atomic_store(&service_stored_count, 0);
    atomic_store(&service_signals.value, 0);
    struct sigaction before;
    struct sigaction after;
    char code[16];
    void *call = dlsym(RTLD_DEFAULT, "munmap");
    sigaction(SIGSEGV, NULL, &before);
    memcpy(code, call, sizeof code);
    const struct oriel_net_service *service =
        service_has_threads ? &service_of_threads : &service_functions;
    enum oriel_status status = oriel_net_start(&team->members[team_rank].process, NULL, service);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK && oriel_net_is_started());
    sigaction(SIGSEGV, NULL, &after);
    team_expect(after.sa_handler == before.sa_handler); /* UCX would have installed its own */
    team_expect(memcmp(code, call, sizeof code) == 0 || access("/sys/class/infiniband", F_OK) == 0);
    const void *address = oriel_net_address(&service_shared->len_bytes[team_rank]);
    memcpy(service_shared->bytes[team_rank], address, service_shared->len_bytes[team_rank]);
    team_barrier();
}

void service_open(int32_t rank)
{
    const struct oriel_identity *who = &team->members[rank].process;
    team_expect(oriel_net_open(who, service_shared->bytes[rank], service_shared->len_bytes[rank],
                               &service_peers[rank]) == ORIEL_OK);
    team_expect(oriel_net_find(who) == service_peers[rank]);
}

void service_start(struct oriel_window *window)
{
    service_begin(window);
    for (int32_t i = 0; i < team->n; i++)
        service_open(i);
}

void service_stop(void)
{
    team_barrier();
    oriel_net_stop();
    team_expect(!oriel_net_is_started());
}

/* --- all with all --- */

void service_send_all(struct oriel_window *window, void (*between)(uint64_t random))
{
    struct stream streams[TEAM_MOST];
    struct question question;
    service_start(window);
    for (int32_t to = 0; to < team->n; to++)
        streams[to] = service_stream(to, 0);
    for (int i = team_rounds(MESSAGES); i > 0; i--) {
        uint64_t random = team_random();
        struct stream *stream = &streams[random % (uint64_t)team->n];
        if ((random >> 32) % 8 == 0) {
            service_send(stream, ECHO, service_size(team_random()), &question);
            service_await(&question);
        } else {
            service_send(stream, PASS, service_size(team_random()), NULL);
        }
        if (between != NULL)
            between(random);
    }
    for (int32_t to = 0; to < team->n; to++) {
        service_send(&streams[to], ECHO, 100, &question);
        service_await(&question);
        free(streams[to].data);
    }
    service_stop();
}

/* --- an unreliable network --- */

bool service_is_unreliable;
bool service_coalesces;

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
    if (!service_is_unreliable || worker != &oriel_net.origin)
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

unsigned long service_sleeps(void)
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

_Atomic uint32_t service_naps;
_Atomic uint32_t service_main_naps;

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(gettid() == getpid() ? &service_main_naps : &service_naps, 1);
    return __real_nanosleep(time, left);
}

/* --- a clock that does not advance --- */

bool service_has_limit = true;

int __real_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask);

int __wrap_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *limit,
                 const sigset_t *mask)
{
    return __real_ppoll(fds, count, count == 2 && !service_has_limit ? NULL : limit, mask);
}

/* --- asking --- */

void service_receive(struct oriel_net_request *request, const struct oriel_net_received *answer)
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

void service_end(struct oriel_net_request *request)
{
    struct question *question = (struct question *)request;
    question->ended++;
}

struct stream service_stream(int32_t rank, uint32_t half)
{
    struct stream stream = {.peer = service_peers[rank],
                            .number = (uint32_t)team_rank * 2 + half,
                            .random = team_random()};
    stream.data = malloc(ORIEL_NET_DATA_BYTES);
    team_expect(stream.data != NULL);
    return stream;
}

void service_send(struct stream *stream, enum op op, size_t len_bytes, struct question *question)
{
    struct note note = {op, stream->number, stream->index++,
                        stream->random = stream->random * 6364136223846793005u + 1};
    service_fill(stream->data, len_bytes, note.seed);
    size_t first = len_bytes == 0 ? 0 : (note.seed >> 20) % len_bytes;
    struct iovec pieces[] = {
        {stream->data, first}, {stream->data, 0}, {stream->data + first, len_bytes - first}};
    struct oriel_net_bytes bytes = {&note, sizeof note, pieces, 3};
    bool later = service_coalesces && (note.seed >> 50) % 4 != 0;
    if (question == NULL) {
        team_expect((later ? oriel_net_tell_later : oriel_net_tell)(stream->peer, &bytes) ==
                    ORIEL_OK);
    } else {
        *question =
            (struct question){.net = {.take = service_receive, .end = service_end}, .note = note};
        question->len_bytes = op == STORE ? 0 : len_bytes;
        team_expect((later ? oriel_net_ask_later : oriel_net_ask)(stream->peer, &bytes,
                                                                  &question->net) == ORIEL_OK);
    }
    memset(stream->data, 0x55, len_bytes); /* it has been copied */
}

size_t service_size(uint64_t random)
{
    static const size_t edges[] = {
        0, 1, 8, 200, 4000, 8100, 8192, 8193, 32768, 50001, ORIEL_NET_DATA_BYTES};
    return random % 4 == 0 ? edges[(random >> 8) % 11]
                           : (random >> 8) % (random % 4 == 1 ? 64 : 3000);
}

void service_await(struct question *question)
{
    enum oriel_status status = oriel_net_await(&question->net, NULL);
    if (status != ORIEL_OK)
        fprintf(stderr, "%s\n", oriel_fail_message());
    team_expect(status == ORIEL_OK);
    while (question->ended == 0)
        usleep(10);
    team_expect(question->taken == 1 && question->ended == 1);
}

void service_prepare(int argc, char **argv)
{
    team_prepare(argc, argv);
    if (team_has_threads()) {
        printf("skipped: a process has one net\n");
        exit(77);
    }
    service_shared = mmap(NULL, sizeof *service_shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(service_shared, MAP_FAILED);
}
