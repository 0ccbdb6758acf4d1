/* The server of a machine, for the ranks of others: two threads of its first rank, of which each answers one question after the
 * other, on this machine's board.  They are not the program's, and handle none of its signals.  afar.h has the argument and says
 * who may call. */
#include "check/afar.h"

#include "base/options.h"
#include "base/status.h"
#include "check/afar_socket.h"
#include "check/afar_waits.h"
#include "check/guard.h"
#include "check/notes.h"
#include "check/order.h"
#include "check/parts.h"
#include "check/ranks.h"
#include "check/sites.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS = 2, STACK_BYTES = 1 << 18, LISTENER = 0, BELL = 1, CONNECTIONS = 2, CONFLICTS = 16, PATIENCE_S = 1 };

#define DATA_MOST (UINT64_C(1) << 32)

struct server {
    pthread_t thread;
    bool runs;
    int bell; /* closing it ends the thread */
    uint64_t proof[2];
    struct pollfd *fds; /* the listener, the bell, who asks */
    bool *proven;       /* by place in fds */
    size_t count, room;
    char *data; /* of the request */
    size_t data_bytes;
    oriel_tick *clock; /* of the answer */
};

static struct server servers[THREADS];

/* --- what is asked --- */

struct told {
    struct oriel_conflict conflicts[CONFLICTS];
    size_t count;
};

static void collect(const struct oriel_conflict *conflict, void *closure)
{
    struct told *told = closure;
    if (told->count < CONFLICTS)
        told->conflicts[told->count++] = *conflict;
}

static uint64_t add(const struct oriel_afar_request *request, char *data, struct told *told)
{
    size_t clock_bytes = (size_t)oriel_board_world_size() * sizeof(oriel_tick);
    struct oriel_access *access = (struct oriel_access *)(void *)data;
    struct oriel_extent *extents = (struct oriel_extent *)(void *)(data + sizeof *access + clock_bytes);
    if (request->len_bytes < sizeof *access + clock_bytes)
        return 0;
    access->moment = oriel_order_moment_of((const oriel_tick *)(const void *)(data + sizeof *access));
    uint64_t ticket = oriel_history_add(request->words[0], access, extents,
                                        (request->len_bytes - sizeof *access - clock_bytes) / sizeof *extents, collect, told);
    oriel_order_moment_release(access->moment);
    return ticket;
}

static void work_on_history(const struct oriel_afar_request *request)
{
    const uint64_t *words = request->words;
    switch (request->kind) {
    case ORIEL_AFAR_COMPLETE:
        oriel_history_complete(words[0], (int32_t)words[1], words[3], words[2]);
        break;
    case ORIEL_AFAR_COMPLETE_ONE: oriel_history_complete_one(words[0], words[1], words[2]); break;
    case ORIEL_AFAR_FLAG: oriel_history_flag(words[0], (int32_t)words[1], (uint8_t)words[2]); break;
    default: oriel_history_flag_one(words[0], words[1], (uint8_t)words[2]); break;
    }
}

static struct iovec answer_note(struct server *server, const struct oriel_afar_request *request, uint64_t *answered)
{
    struct oriel_note_ask ask;
    struct oriel_note_answer *out = (struct oriel_note_answer *)(void *)server->data;
    if (request->len_bytes != sizeof ask)
        return (struct iovec){.iov_len = 0};
    memcpy(&ask, server->data, sizeof ask);
    *answered = oriel_note_answer(request->words[0], &ask, out);
    return (struct iovec){.iov_base = out, .iov_len = *answered ? sizeof *out : 0};
}

/* The answer, and what follows it. */
static struct iovec work(struct server *server, const struct oriel_afar_request *request, struct oriel_afar_answer *answer,
                         struct told *told)
{
    const uint64_t *words = request->words;
    size_t clock_bytes = (size_t)oriel_board_world_size() * sizeof(oriel_tick);
    struct iovec clock = {.iov_base = memset(server->clock, 0, clock_bytes), .iov_len = clock_bytes};
    struct iovec nothing = {.iov_len = 0};
    bool any = false;
    bool made = false;
    switch (request->kind) {
    case ORIEL_AFAR_GIVE:
        if (request->len_bytes == clock_bytes)
            oriel_given_join(&request->key, (uint32_t)words[0], words[1] != 0, (const oriel_tick *)(const void *)server->data);
        return nothing;
    case ORIEL_AFAR_TAKE:
        any = oriel_given_take(&request->key, (uint32_t)words[0], (unsigned)words[1], server->clock, &made);
        answer->word = (uint64_t)any | (uint64_t)made << 1 | (uint64_t)oriel_given_was_lost() << 2;
        return any ? clock : nothing;
    case ORIEL_AFAR_FORGET: oriel_board_drop(&request->key); return nothing;
    case ORIEL_AFAR_TAKE_RANK: answer->word = oriel_rank_take((int)words[0], server->clock); return clock;
    case ORIEL_AFAR_TAKE_ALL: oriel_ranks_take_all(-1, server->clock); return clock;
    case ORIEL_AFAR_DOUBT: oriel_given_doubt(); return nothing;
    case ORIEL_AFAR_COUNT: answer->word = oriel_given_count(&request->key, (uint32_t)words[0]); return nothing;
    case ORIEL_AFAR_FLOOR:
        oriel_ranks_floor(server->clock, &any);
        answer->word = any;
        return clock;
    case ORIEL_AFAR_NOTE: return answer_note(server, request, &answer->word);
    case ORIEL_AFAR_SITE:
        return (struct iovec){.iov_base = server->data,
                              .iov_len = oriel_site_slot((uint32_t)words[0], (uint32_t)words[1], server->data,
                                                         (size_t)request->len_bytes, &answer->word)};
    case ORIEL_AFAR_WAITS:
    case ORIEL_AFAR_GATHERING:
    case ORIEL_AFAR_GIVEN:
        return (struct iovec){.iov_base = server->data,
                              .iov_len = oriel_afar_waits_answer(request, server->data, &answer->word)};
    default: break;
    }
    if (!oriel_part_is_open(words[0])) /* freed by a program that is wrong */
        return nothing;
    if (request->kind != ORIEL_AFAR_ADD) {
        work_on_history(request);
        return nothing;
    }
    answer->word = add(request, server->data, told);
    return (struct iovec){.iov_base = told->conflicts, .iov_len = told->count * sizeof told->conflicts[0]};
}

static bool make_room(struct server *server, size_t len_bytes)
{
    if (len_bytes <= server->data_bytes)
        return true;
    char *more = realloc(server->data, len_bytes);
    if (more == NULL)
        return false;
    server->data = more;
    server->data_bytes = len_bytes;
    return true;
}

static size_t answer_room_bytes(const struct oriel_afar_request *request)
{
    return request->kind < ORIEL_AFAR_QUIET ? ORIEL_SITE_SLOT_BYTES : oriel_afar_waits_bytes();
}

/* Whether the connection stays. */
static bool answer_one(struct server *server, int fd)
{
    struct oriel_afar_request request;
    struct oriel_afar_answer answer = {.word = 0};
    struct told told = {.count = 0};
    bool leaf = server == &servers[1];
    if (!oriel_afar_read(fd, &request, sizeof request) || request.kind >= ORIEL_AFAR_KINDS ||
        (request.kind >= ORIEL_AFAR_LEAVES) != leaf || request.len_bytes > DATA_MOST ||
        !make_room(server, request.len_bytes + answer_room_bytes(&request)) ||
        !oriel_afar_read(fd, server->data, request.len_bytes))
        return false;
    struct iovec parts[2] = {{.iov_base = &answer, .iov_len = sizeof answer}};
    parts[1] = work(server, &request, &answer, &told);
    answer.len_bytes = parts[1].iov_len;
    return oriel_afar_write(fd, parts, 2);
}

/* --- connections --- */

static void admit(struct server *server)
{
    int fd = oriel_afar_high(accept4(server->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC));
    if (fd < 0)
        return;
    oriel_afar_limit(fd, PATIENCE_S); /* a question comes in one piece: all others wait meanwhile */
    if (server->count == server->room) {
        size_t room = 2 * server->room;
        struct pollfd *fds = realloc(server->fds, room * sizeof *fds);
        bool *proven = realloc(server->proven, room * sizeof *proven);
        if (fds != NULL)
            server->fds = fds;
        if (proven != NULL)
            server->proven = proven;
        if (fds == NULL || proven == NULL) {
            close(fd);
            return;
        }
        server->room = room;
    }
    server->proven[server->count] = false;
    server->fds[server->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* A stranger is let in by the number that the job's ranks know; it comes in one piece, or not at all. */
static bool prove(const struct server *server, int fd)
{
    struct oriel_afar_hello hello;
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    if (recv(fd, &hello, sizeof hello, MSG_DONTWAIT) != (ssize_t)sizeof hello || hello.proof != server->proof[0])
        return false;
    hello.proof = server->proof[1];
    return oriel_afar_write(fd, &part, 1);
}

static void drop(struct server *server, size_t at)
{
    if (server->proven[at])
        oriel_given_lose(); /* F4; at the job's end it makes no difference */
    close(server->fds[at].fd);
    server->count--;
    server->fds[at] = server->fds[server->count];
    server->proven[at] = server->proven[server->count];
}

static void *serve(void *closure)
{
    struct server *server = closure;
    oriel_check_enter(); /* what it calls is not the program's */
    while ((server->fds[BELL].revents & (POLLIN | POLLHUP)) == 0) {
        if (poll(server->fds, server->count, -1) < 0)
            continue;
        for (size_t i = server->count; i-- > CONNECTIONS;) {
            if (server->fds[i].revents == 0)
                continue;
            bool stays = server->proven[i] ? answer_one(server, server->fds[i].fd) : prove(server, server->fds[i].fd);
            if (stays)
                server->proven[i] = true;
            else
                drop(server, i);
        }
        if (server->fds[LISTENER].revents != 0)
            admit(server);
    }
    return NULL;
}

/* --- start and stop --- */

static void block_signals(sigset_t *before)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) /* by which threads are stopped for a moment */
        sigdelset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static bool start_one(struct server *server, const struct oriel_afar_address *address, uint16_t *port)
{
    pthread_attr_t how;
    sigset_t before;
    int bell[2];
    int listener = oriel_afar_listen(port);
    *server = (struct server){.room = 16, .bell = -1};
    memcpy(server->proof, address->proof, sizeof server->proof);
    server->fds = calloc(server->room, sizeof *server->fds);
    server->proven = calloc(server->room, sizeof *server->proven);
    server->clock = calloc((size_t)oriel_board_world_size(), sizeof *server->clock);
    if (server->fds == NULL || server->proven == NULL || server->clock == NULL || listener < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell) != 0) {
        if (listener >= 0)
            close(listener);
        return false;
    }
    server->bell = oriel_afar_high(bell[1]);
    server->fds[LISTENER] = (struct pollfd){.fd = listener, .events = POLLIN};
    server->fds[BELL] = (struct pollfd){.fd = oriel_afar_high(bell[0]), .events = POLLIN};
    server->count = CONNECTIONS;
    oriel_check_several = true;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    block_signals(&before);
    server->runs = pthread_create(&server->thread, &how, serve, server) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (server->runs)
        pthread_setname_np(server->thread, "oriel-check-far");
    return server->runs;
}

bool oriel_afar_serve(struct oriel_afar_address *out)
{
    memset(out, 0, sizeof *out);
    if (oriel_options()->net == ORIEL_NET_OFF) {
        oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
        return false;
    }
    oriel_afar_addresses(out);
    bool serves = oriel_ranks_open() && getrandom(out->proof, sizeof out->proof, 0) == (ssize_t)sizeof out->proof;
    for (int i = 0; i < THREADS && serves; i++)
        serves = start_one(&servers[i], out, &out->ports[i]);
    if (!serves)
        oriel_afar_serve_stop();
    return serves;
}

static void stop_one(struct server *server)
{
    if (server->count > 0)
        close(server->bell);
    if (server->runs)
        pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->count; i++)
        close(server->fds[i].fd);
    free(server->fds);
    free(server->proven);
    free(server->clock);
    free(server->data);
    *server = (struct server){.runs = false};
}

void oriel_afar_serve_stop(void)
{
    if (oriel_board_is_open()) /* a forked child has no such threads */
        for (int i = 0; i < THREADS; i++)
            stop_one(&servers[i]);
}
