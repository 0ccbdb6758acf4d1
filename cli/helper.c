/* Serves one request of the library or the checker, and, where it got a socket that listens, those that come there: one after
 * the other, each on a connection of its own, until who has started it ends or nobody has asked for a while.
 * A request that is not understood, or an asker that has gone, gets no answer; an alarm ends it when it hangs.
 * Called by `oriel check` through helper.h. */
#include "cli/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/helper_process.h"
#include "cli/cli.h"
#include "cli/statistics.h"

enum { PATIENCE_S = 60, ASKER_S = 5 };

static bool read_all(int fd, void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t got = read(fd, (char *)bytes + done, len_bytes - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t put = write(fd, (const char *)bytes + done, len_bytes - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool answer(int fd, const void *bytes, size_t len_bytes)
{
    struct oriel_helper_head head = {.magic = ORIEL_HELPER_MAGIC, .len_bytes = (uint32_t)len_bytes};
    return write_all(fd, &head, sizeof head) && write_all(fd, bytes, len_bytes);
}

static int serve_one(int from, int to, const char *what)
{
    struct oriel_helper_head head;
    alarm(PATIENCE_S);
    if (!read_all(from, &head, sizeof head) || head.magic != ORIEL_HELPER_MAGIC ||
        head.len_bytes > ORIEL_HELPER_LEN_MAX)
        return ORIEL_EXIT_REFUSED;
    void *request = oriel_alloc((size_t)head.len_bytes + 1);
    bool done = false;
    if (!read_all(from, request, head.len_bytes)) {
        free(request);
        return ORIEL_EXIT_REFUSED;
    }
    if (strcmp(what, ORIEL_HELPER_PLACES) == 0) {
        oriel_code_addresses_find(request, head.len_bytes / sizeof(struct oriel_code_address));
        done = answer(to, request, head.len_bytes);
    } else {
        char *text = strcmp(what, ORIEL_HELPER_STATISTICS) == 0
                         ? oriel_statistics_write(request, head.len_bytes)
                         : oriel_findings_write(request, head.len_bytes);
        done = answer(to, text, strlen(text));
        free(text);
    }
    free(request);
    return done ? 0 : 1;
}

/* --- kept for others --- */

static bool listens(void)
{
    int is_it = 0;
    socklen_t len_bytes = sizeof is_it;
    return getsockopt(ORIEL_HELPER_LISTENS, SOL_SOCKET, SO_ACCEPTCONN, &is_it, &len_bytes) == 0 &&
           is_it != 0;
}

/* Ready when the other end's process has ended; -1: that cannot be seen. */
static int starter_watch(void)
{
    struct ucred starter;
    socklen_t len_bytes = sizeof starter;
    if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &starter, &len_bytes) != 0 ||
        starter.pid <= 0)
        return -1;
    return (int)syscall(SYS_pidfd_open, starter.pid, 0);
}

static void serve_connection(const char *what)
{
    struct timeval patience = {.tv_sec = ASKER_S}; /* others wait behind this one */
    struct ucred asker;
    socklen_t len_bytes = sizeof asker;
    int fd = accept4(ORIEL_HELPER_LISTENS, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &asker, &len_bytes) == 0 &&
        asker.uid == geteuid() &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0)
        serve_one(fd, fd, what);
    close(fd);
}

static void serve_others(const char *what)
{
    struct pollfd ready[] = {{.fd = ORIEL_HELPER_LISTENS, .events = POLLIN},
                             {.fd = starter_watch(), .events = POLLIN}};
    if (ready[1].fd < 0)
        return;
    signal(SIGPIPE, SIG_IGN); /* an asker that has gone is none of the others' business */
    alarm(PATIENCE_S);
    while (poll(ready, 2, -1) > 0 && ready[1].revents == 0) {
        serve_connection(what);
        alarm(PATIENCE_S);
    }
}

int oriel_helper_serve(const char *what)
{
    bool known = strcmp(what, ORIEL_HELPER_PLACES) == 0 ||
                 strcmp(what, ORIEL_HELPER_STATISTICS) == 0 || strcmp(what, ORIEL_HELPER_JSON) == 0;
    if (!known)
        oriel_die("the helper is started by the library and the checker alone");
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is told, like a disk that is full */
    int status = serve_one(STDIN_FILENO, STDOUT_FILENO, what);
    if (status == 0 && listens())
        serve_others(what);
    return status;
}
