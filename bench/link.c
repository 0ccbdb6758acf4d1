/* The cost of waking a thread compared with the link: bytes over one TCP connection, answered by a
 * thread that sleeps in epoll, that sleeps while another one computes, or that polls.  Each answer
 * must be the byte's successor; otherwise no figure is printed. link.py starts it on both nodes. By
 * hand: `link serve` on one prints its port; `link ask HOST PORT asleep|busy|awake` on the other
 * prints the nanoseconds of a round trip: of the best batch, or with a busy target the median of
 * single ones. */
#define _GNU_SOURCE
#include "schedule.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ONCES = 32, PAUSE_NS = 20000000 };

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "link: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void send_at_once(int fd)
{
    const int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        fail("TCP_NODELAY");
}

/* Receives a byte without sleeping; false at the end of the connection. */
static bool poll_byte(int fd, unsigned char *out)
{
    for (;;) {
        ssize_t len_bytes = recv(fd, out, 1, MSG_DONTWAIT);
        if (len_bytes >= 0)
            return len_bytes == 1;
        if (errno != EAGAIN && errno != EINTR)
            fail("recv");
    }
}

static bool sleep_byte(int epoll_fd, int fd, unsigned char *out)
{
    struct epoll_event event;
    while (epoll_wait(epoll_fd, &event, 1, -1) != 1)
        if (errno != EINTR)
            fail("epoll_wait");
    return poll_byte(fd, out);
}

static _Atomic bool computes;

static void *compute(void *unused)
{
    while (atomic_load_explicit(&computes, memory_order_relaxed))
        continue;
    return unused;
}

static void answer_all(int fd, int epoll_fd, bool sleeps)
{
    unsigned char byte;

    while (sleeps ? sleep_byte(epoll_fd, fd, &byte) : poll_byte(fd, &byte)) {
        byte++;
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            fail("send");
    }
}

static void connection_answer(int fd)
{
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    unsigned char how;
    pthread_t thread = pthread_self();

    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll");
    send_at_once(fd);
    if (!poll_byte(fd, &how))
        return;
    atomic_store(&computes, how == 'b');
    if (how == 'b' && pthread_create(&thread, NULL, compute, NULL) != 0)
        fail("pthread_create");
    answer_all(fd, epoll_fd, how != 'a');
    if (!atomic_exchange(&computes, false))
        return;
    pthread_join(thread, NULL);
}

static int server_run(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len_bytes = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len_bytes) != 0)
        fail("no port");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        fail("accept");
    close(listener);
    connection_answer(fd);
    return 0;
}

static int reach(const char *host, const char *port)
{
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    if (getaddrinfo(host, port, &wanted, &found) != 0)
        fail("no such host");
    const int fd = socket(found->ai_family, found->ai_socktype, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
        fail("connect");
    freeaddrinfo(found);
    return fd;
}

/* Does `times` round trips; false for a wrong answer. */
static bool exchange(int fd, uint64_t times, unsigned char *byte)
{
    unsigned char came;

    for (uint64_t i = 0; i < times; i++) {
        if (send(fd, byte, 1, MSG_NOSIGNAL) != 1)
            fail("send");
        if (!poll_byte(fd, &came) || came != (unsigned char)(*byte + 1))
            return false;
        *byte = came;
    }
    return true;
}

static bool measure_batches(int fd, double *best_s)
{
    const struct schedule_limits limits = {
        .batch_s = 0.01, .budget_s = 0.3, .batches = 10, .least = 16};
    struct schedule plan;
    unsigned char byte = 0;

    for (schedule_start(&plan, &limits, limits.least); plan.count != 0;) {
        const double start_s = schedule_clock_s();
        if (!exchange(fd, plan.count, &byte))
            return false;
        schedule_advance(&plan, schedule_clock_s() - start_s);
    }
    *best_s = plan.best_s;
    return true;
}

/* One round trip at a time with a pause before each, like the benchmark's busy target: caches are
 * cold. */
static bool measure_once(int fd, double *median_s)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    double took_s[ONCES];
    unsigned char byte = 0;

    for (int i = 0; i < ONCES; i++) {
        nanosleep(&pause, NULL);
        const double start_s = schedule_clock_s();
        if (!exchange(fd, 1, &byte))
            return false;
        took_s[i] = schedule_clock_s() - start_s;
    }
    *median_s = schedule_median(took_s, ONCES);
    return true;
}

/* The server receives the first letter of how. */
static int client_run(const char *host, const char *port, const char *how)
{
    const int fd = reach(host, port);
    double took_s = 0;

    send_at_once(fd);
    if (send(fd, how, 1, MSG_NOSIGNAL) != 1)
        fail("send");
    if (*how == 'b' ? !measure_once(fd, &took_s) : !measure_batches(fd, &took_s))
        return 1;
    printf("%.2f\n", took_s * 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return server_run();
    if (argc == 5 && strcmp(argv[1], "ask") == 0 &&
        (strcmp(argv[4], "asleep") == 0 || strcmp(argv[4], "busy") == 0 ||
         strcmp(argv[4], "awake") == 0))
        return client_run(argv[2], argv[3], argv[4][1] == 's' ? &argv[4][1] : argv[4]);
    fprintf(stderr, "usage: link serve | link ask HOST PORT asleep|busy|awake\n");
    return 2;
}
