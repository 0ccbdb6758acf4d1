/* What waking a thread costs beside the same link: bytes over one TCP connection, answered by a thread that is asleep in epoll
 * or that polls.  Each answer must be the byte's successor; else there is no figure.
 * Started by link.py in both machines, by hand: `link serve` in one prints its port, `link ask HOST PORT asleep|awake` in the
 * other prints the nanoseconds of a round trip in the best batch. */
#define _GNU_SOURCE
#include "schedule.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Takes a byte without sleeping; false at the connection's end. */
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

static void answer(int fd)
{
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    unsigned char how, byte;

    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll");
    send_at_once(fd);
    if (!poll_byte(fd, &how))
        return;
    while (how == 's' ? sleep_byte(epoll_fd, fd, &byte) : poll_byte(fd, &byte)) {
        byte++;
        if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
            fail("send");
    }
}

static int serve(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len_bytes = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &len_bytes) != 0)
        fail("no port");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    const int fd = accept(listener, NULL, NULL);
    if (fd < 0)
        fail("accept");
    answer(fd);
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

static int ask(const char *host, const char *port, char how)
{
    const struct schedule_limits limits = {.batch_s = 0.01, .budget_s = 0.3, .batches = 10, .least = 16};
    const int fd = reach(host, port);
    struct schedule plan;
    unsigned char byte = 0, came;

    send_at_once(fd);
    if (send(fd, &how, 1, MSG_NOSIGNAL) != 1)
        fail("send");
    for (schedule_start(&plan, &limits, limits.least); plan.count != 0;) {
        const double start_s = schedule_clock_s();
        for (uint64_t i = 0; i < plan.count; i++) {
            if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
                fail("send");
            if (!poll_byte(fd, &came) || came != (unsigned char)(byte + 1))
                return 1;
            byte = came;
        }
        schedule_advance(&plan, schedule_clock_s() - start_s);
    }
    printf("%.2f\n", plan.best_s * 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "serve") == 0)
        return serve();
    if (argc == 5 && strcmp(argv[1], "ask") == 0)
        return ask(argv[2], argv[3], strcmp(argv[4], "asleep") == 0 ? 's' : 'p');
    fprintf(stderr, "usage: link serve | link ask HOST PORT asleep|awake\n");
    return 2;
}
