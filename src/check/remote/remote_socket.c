/* TCP between the checkers of a job. A connection counts only after both sides have proven that
 * they have the key, which the ranks of the job exchange over MPI (remote_auth.c). Nothing is
 * encrypted. */
#include "check/remote/remote_socket.h"

#include "base/options.h"
#include "base/reserve_fd.h"
#include "base/status.h"
#include "base/wait.h"
#include "check/remote/remote_auth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 3000, BACKLOG = 128 };

/* --- listening --- */

static int listener_bind(int family)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int no = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    const void *address = family == AF_INET6 ? (const void *)&six : (const void *)&four;
    if (bind(fd, address, family == AF_INET6 ? sizeof six : sizeof four) == 0 &&
        listen(fd, BACKLOG) == 0)
        return fd;
    close(fd);
    return -1;
}

int oriel_check_remote_listen(uint16_t *port)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t len_bytes = sizeof bound;
    int fd = listener_bind(AF_INET6);
    if (fd < 0)
        fd = listener_bind(AF_INET);
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &len_bytes) != 0) {
        oriel_fail(ORIEL_E_OTHER, "cannot listen for the checkers of other nodes: %s",
                   strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname has written the port */
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return oriel_reserve_fd_move_high(fd);
}

static void address_add(struct oriel_check_remote_address *out, const struct sockaddr *address)
{
    const struct sockaddr_in6 *six = (const void *)address;
    const struct sockaddr_in *four = (const void *)address;
    if (out->count == ORIEL_CHECK_REMOTE_ADDRESSES ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6) ||
        (address->sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr)))
        return;
    out->families[out->count] = address->sa_family;
    if (address->sa_family == AF_INET6)
        memcpy(out->addresses[out->count], &six->sin6_addr, sizeof six->sin6_addr);
    else
        memcpy(out->addresses[out->count], &four->sin_addr, sizeof four->sin_addr);
    out->count++;
}

void oriel_check_remote_addresses(struct oriel_check_remote_address *out)
{
    struct ifaddrs *all;
    out->count = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next)
            if (one->ifa_addr != NULL && (one->ifa_flags & IFF_UP) &&
                !(one->ifa_flags & IFF_LOOPBACK) == !loopback)
                address_add(out, one->ifa_addr);
    freeifaddrs(all);
}

/* --- waiting --- */

/* Waits for PATIENCE_MS by the clock, because a signal ends each poll. */
int oriel_check_remote_await(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};
    uint64_t until_ns = oriel_now_ns() + PATIENCE_MS * UINT64_C(1000000);
    for (;;) {
        uint64_t now_ns = oriel_now_ns();
        int answer =
            now_ns < until_ns ? poll(&ready, 1, (int)((until_ns - now_ns) / 1000000) + 1) : 0;
        if (answer >= 0 || errno != EINTR)
            return answer;
    }
}

/* After a signal a call would start its whole time limit again. */
static bool is_in_time(int fd, int option, uint64_t since_ns)
{
    struct timeval limit = {.tv_sec = 0};
    socklen_t len_bytes = sizeof limit;
    if (getsockopt(fd, SOL_SOCKET, option, &limit, &len_bytes) != 0)
        return false;
    uint64_t limit_ns =
        (uint64_t)limit.tv_sec * UINT64_C(1000000000) + (uint64_t)limit.tv_usec * 1000;
    if (limit_ns == 0 || oriel_now_ns() - since_ns < limit_ns)
        return true;
    errno = EAGAIN;
    return false;
}

/* --- connecting --- */

static bool connection_wait(int fd)
{
    int error = 0;
    socklen_t len_bytes = sizeof error;
    int answer = oriel_check_remote_await(fd, POLLOUT);
    if (answer == 0)
        errno = ETIMEDOUT;
    if (answer <= 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len_bytes) != 0)
        return false;
    errno = error;
    return error == 0;
}

static int address_connect(const struct oriel_check_remote_address *to, int which, int thread)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(to->ports[thread])};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(to->ports[thread])};
    bool is_six = to->families[which] == AF_INET6;
    const void *address = is_six ? (const void *)&six : (const void *)&four;
    memcpy(&six.sin6_addr, to->addresses[which], sizeof six.sin6_addr);
    memcpy(&four.sin_addr, to->addresses[which], sizeof four.sin_addr);
    int fd = socket(to->families[which], SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    bool connected = connect(fd, address, is_six ? sizeof six : sizeof four) == 0 ||
                     (errno == EINPROGRESS && connection_wait(fd));
    if (connected && fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int oriel_check_remote_connect(const struct oriel_check_remote_address *to, int thread)
{
    int yes = 1;
    if (to->ports[thread] == 0 || to->count == 0) {
        oriel_fail(ORIEL_E_OTHER, "its server is not running");
        return -1;
    }
    for (int i = 0; i < to->count; i++) {
        int fd = address_connect(to, i, thread);
        /* a foreign process may listen there */
        if (fd >= 0 && oriel_check_remote_prove(fd, to->key)) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            oriel_check_remote_limit(fd, oriel_options()->timeout_s);
            return oriel_reserve_fd_move_high(fd);
        }
        if (fd >= 0)
            close(fd);
    }
    oriel_fail(ORIEL_E_OTHER, "none of its %d addresses answers: %s", to->count, strerror(errno));
    return -1;
}

/* --- messages --- */

void oriel_check_remote_limit(int fd, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

bool oriel_check_remote_write(int fd, struct iovec *parts, int count)
{
    for (uint64_t since_ns = oriel_now_ns(); count > 0; since_ns = oriel_now_ns()) {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        ssize_t sent;
        do
            sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        while (sent < 0 && errno == EINTR && is_in_time(fd, SO_SNDTIMEO, since_ns));
        if (sent < 0)
            return false;
        while (count > 0 && (size_t)sent >= parts->iov_len) {
            sent -= (ssize_t)parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + sent;
            parts->iov_len -= (size_t)sent;
        }
    }
    return true;
}

bool oriel_check_remote_read(int fd, void *data, size_t len_bytes)
{
    char *at = data;
    for (uint64_t since_ns = oriel_now_ns(); len_bytes > 0; since_ns = oriel_now_ns()) {
        ssize_t got;
        do
            got = recv(fd, at, len_bytes, MSG_WAITALL);
        while (got < 0 && errno == EINTR && is_in_time(fd, SO_RCVTIMEO, since_ns));
        if (got <= 0)
            return false;
        at += got;
        len_bytes -= (size_t)got;
    }
    return true;
}
