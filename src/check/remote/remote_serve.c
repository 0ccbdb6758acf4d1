/* The server of a node, for ranks of other nodes: two threads of its first rank, each of which
 * serves one request after the other (remote_answer.c). They are not the program's threads, and
 * handle none of its signals. The argument is in remote.h. */
#include "check/remote/remote.h"

#include "base/options.h"
#include "base/reserve_fd.h"
#include "base/status.h"
#include "check/common/reentrancy.h"
#include "check/order/rank_clocks.h"
#include "check/remote/remote_answer.h"
#include "check/remote/remote_auth.h"
#include "check/remote/remote_socket.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS = 2, STACK_BYTES = 1 << 18, STRANGERS_MOST = 128, PATIENCE_S = 1, PAUSE_MS = 10 };
enum { LISTENER, BELL, CONNECTIONS }; /* indices in fds */

/* A connected client. */
struct client {
    bool proven;
    struct oriel_check_remote_challenge challenge; /* sent to it */
};

struct server {
    pthread_t thread;
    bool runs;
    int bell; /* closing it ends the thread */
    uint64_t key[2];
    struct pollfd *fds;     /* the listener, the bell, the clients */
    struct client *clients; /* by index in fds */
    size_t count, room;
    struct oriel_check_remote_worker worker;
};

static struct server servers[THREADS];

/* --- connections --- */

static void client_drop(struct server *server, size_t at)
{
    if (server->clients[at].proven)
        oriel_given_set_client_lost(); /* F4; at the end of the job it makes no difference */
    close(server->fds[at].fd);
    server->count--;
    server->fds[at] = server->fds[server->count];
    server->clients[at] = server->clients[server->count];
}

/* Clients that connect and send nothing do not use up the program's descriptors. */
static void stranger_drop(struct server *server)
{
    size_t strangers = 0;
    for (size_t i = CONNECTIONS; i < server->count; i++)
        strangers += !server->clients[i].proven;
    for (size_t i = CONNECTIONS; i < server->count && strangers >= STRANGERS_MOST; i++)
        if (!server->clients[i].proven) {
            client_drop(server, i);
            return;
        }
}

/* The kernel refuses a descriptor, or a poll of this many: the client waits, and the pause keeps
 * the retry from using a processor. */
static void server_pause(struct server *server)
{
    poll(&server->fds[BELL], 1, PAUSE_MS);
}

static void client_accept(struct server *server)
{
    stranger_drop(server);
    int fd =
        oriel_reserve_fd_move_high(accept4(server->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC));
    if (fd < 0) {
        server_pause(server);
        return;
    }
    struct client client = {.proven = false};
    if (!oriel_check_remote_challenge(fd, &client.challenge)) {
        close(fd);
        return;
    }
    oriel_check_remote_limit(
        fd, PATIENCE_S); /* a request comes in one piece: all other clients wait meanwhile */
    if (server->count == server->room) {
        size_t room = 2 * server->room;
        struct pollfd *fds = realloc(server->fds, room * sizeof *fds);
        struct client *clients = realloc(server->clients, room * sizeof *clients);
        if (fds != NULL)
            server->fds = fds;
        if (clients != NULL)
            server->clients = clients;
        if (fds == NULL || clients == NULL) {
            close(fd);
            return;
        }
        server->room = room;
    }
    server->clients[server->count] = client;
    server->fds[server->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void *server_run(void *closure)
{
    struct server *server = closure;
    oriel_check_enter(); /* calls of this thread are not the program's */
    while ((server->fds[BELL].revents & (POLLIN | POLLHUP)) == 0) {
        if (poll(server->fds, server->count, -1) < 0) {
            server_pause(server);
            continue;
        }
        for (size_t i = server->count; i-- > CONNECTIONS;) {
            if (server->fds[i].revents == 0)
                continue;
            struct client *client = &server->clients[i];
            int fd = server->fds[i].fd;
            if (client->proven
                    ? oriel_check_remote_answer(&server->worker, fd)
                    : oriel_check_remote_client_is_proven(fd, server->key, &client->challenge))
                client->proven = true;
            else
                client_drop(server, i);
        }
        if (server->fds[LISTENER].revents != 0)
            client_accept(server);
    }
    return NULL;
}

/* --- start and stop --- */

static void block_signals(sigset_t *before)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX;
         signal++) /* they stop threads for a short time */
        sigdelset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static bool server_start(struct server *server, const struct oriel_check_remote_address *address,
                         uint16_t *port)
{
    pthread_attr_t how;
    sigset_t before;
    int bell[2];
    int listener = oriel_check_remote_listen(port);
    *server = (struct server){.room = 16, .bell = -1};
    memcpy(server->key, address->key, sizeof server->key);
    server->fds = calloc(server->room, sizeof *server->fds);
    server->clients = calloc(server->room, sizeof *server->clients);
    bool worker = oriel_check_remote_worker_open(&server->worker, server == &servers[1]);
    if (server->fds == NULL || server->clients == NULL || !worker || listener < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bell) != 0) {
        if (listener >= 0)
            close(listener);
        return false;
    }
    server->bell = oriel_reserve_fd_move_high(bell[1]);
    server->fds[LISTENER] = (struct pollfd){.fd = listener, .events = POLLIN};
    server->fds[BELL] =
        (struct pollfd){.fd = oriel_reserve_fd_move_high(bell[0]), .events = POLLIN};
    server->count = CONNECTIONS;
    oriel_check_many_threads = true;
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    block_signals(&before);
    server->runs = pthread_create(&server->thread, &how, server_run, server) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (server->runs)
        pthread_setname_np(server->thread, "oriel-check-far");
    return server->runs;
}

bool oriel_check_remote_serve(struct oriel_check_remote_address *out)
{
    memset(out, 0, sizeof *out);
    if (oriel_options()->net == ORIEL_NET_OFF) {
        oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
        return false;
    }
    oriel_check_remote_addresses(out);
    bool serves =
        oriel_ranks_open() && getrandom(out->key, sizeof out->key, 0) == (ssize_t)sizeof out->key;
    for (int i = 0; i < THREADS && serves; i++)
        serves = server_start(&servers[i], out, &out->ports[i]);
    if (!serves)
        oriel_check_remote_serve_stop();
    return serves;
}

static void server_stop(struct server *server)
{
    if (server->runs || server->count > 0) /* while the thread runs, it owns the count */
        close(server->bell);
    if (server->runs)
        pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->count; i++)
        close(server->fds[i].fd);
    free(server->fds);
    free(server->clients);
    oriel_check_remote_worker_close(&server->worker);
    *server = (struct server){.runs = false};
}

void oriel_check_remote_serve_stop(void)
{
    if (oriel_shm_is_open()) /* a forked child has no such threads */
        for (int i = 0; i < THREADS; i++)
            server_stop(&servers[i]);
}
