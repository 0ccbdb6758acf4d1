/* Serves one request of the library or the checker. When the process also has a listening socket,
 * it then serves further requests, one connection at a time. It exits when the process that started
 * it ends, or when no request arrives for REQUEST_TIMEOUT_S.
 *
 * A malformed request, or one whose sender has closed the connection, gets no answer. An alarm ends
 * a helper that hangs. */
#include "cli/helper.h"

#include <errno.h>
#include <fcntl.h>
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
#include "cli/job_terminal.h"
#include "cli/statistics.h"

enum { REQUEST_TIMEOUT_S = 60, PEER_TIMEOUT_S = 5 };

static bool read_exactly(int fd, void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t got = read(fd, (char *)bytes + done, len_bytes - done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool write_exactly(int fd, const void *bytes, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t put = write(fd, (const char *)bytes + done, len_bytes - done);
        if (put < 0 && errno != EINTR)
            return false;
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool reply_write(int fd, const void *bytes, size_t len_bytes)
{
    struct oriel_helper_head head = {.magic = ORIEL_HELPER_MAGIC, .len_bytes = (uint32_t)len_bytes};
    return write_exactly(fd, &head, sizeof head) && write_exactly(fd, bytes, len_bytes);
}

/* The process that started this one; 0: unknown. */
static int starter_find(void)
{
    struct ucred starter;
    socklen_t len_bytes = sizeof starter;
    return getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &starter, &len_bytes) == 0 &&
                   starter.pid > 0
               ? starter.pid
               : 0;
}

/* Open MPI's launcher writes about ten lines after a job whose status is not 0. In a log the count
 * follows them, once more. This process waits for that, and for nothing longer. */
static void count_repeat(const char *line)
{
    int launcher;
    int starter = starter_find();
    int fd = starter == 0 ? -1 : oriel_job_launcher_open(starter, &launcher);
    int end = fd < 0 ? -1 : (int)syscall(SYS_pidfd_open, launcher, 0);
    struct pollfd ended = {.fd = end, .events = POLLIN};
    if (end < 0)
        return;
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    alarm(0);
    while (poll(&ended, 1, -1) < 0 && errno == EINTR)
        ;
    alarm(PEER_TIMEOUT_S);
    fcntl(fd, F_SETFL, O_APPEND); /* it may wait for the reader */
    write_exactly(fd, line, strlen(line));
}

static int request_serve(int from, int to, const char *what)
{
    struct oriel_helper_head head;
    alarm(REQUEST_TIMEOUT_S);
    if (!read_exactly(from, &head, sizeof head) || head.magic != ORIEL_HELPER_MAGIC ||
        head.len_bytes > ORIEL_HELPER_LEN_MAX)
        return ORIEL_EXIT_REFUSED;
    void *request = oriel_alloc((size_t)head.len_bytes + 1);
    bool done = false;
    if (!read_exactly(from, request, head.len_bytes)) {
        free(request);
        return ORIEL_EXIT_REFUSED;
    }
    if (strcmp(what, ORIEL_HELPER_PLACES) == 0) {
        oriel_dwarf_lookup(request, head.len_bytes / sizeof(struct oriel_code_address));
        done = reply_write(to, request, head.len_bytes);
    } else {
        size_t len_bytes = 0;
        void *answer;
        if (strcmp(what, ORIEL_HELPER_STATISTICS) == 0) {
            answer = oriel_statistics_write(request, head.len_bytes);
            len_bytes = strlen(answer);
        } else if (strcmp(what, ORIEL_HELPER_FINDING) == 0)
            answer = oriel_findings_answer_one(request, head.len_bytes, &len_bytes);
        else
            answer = oriel_findings_answer_all(request, head.len_bytes, &len_bytes);
        done = answer != NULL && reply_write(to, answer, len_bytes);
        char *count = done && strcmp(what, ORIEL_HELPER_FINDINGS) == 0
                          ? oriel_findings_count_after(request, answer, len_bytes)
                          : NULL;
        if (count != NULL)
            count_repeat(count);
        free(count);
        free(answer);
    }
    free(request);
    return done ? 0 : 1;
}

/* --- requests over the listening socket --- */

static bool is_listening(void)
{
    int is_it = 0;
    socklen_t len_bytes = sizeof is_it;
    return getsockopt(ORIEL_HELPER_LISTENS, SOL_SOCKET, SO_ACCEPTCONN, &is_it, &len_bytes) == 0 &&
           is_it != 0;
}

/* A descriptor that is readable when the starting process has ended; -1 when it cannot be
 * opened. */
static int starter_pidfd_open(void)
{
    int starter = starter_find();
    return starter == 0 ? -1 : (int)syscall(SYS_pidfd_open, starter, 0);
}

static void connection_serve(const char *what)
{
    struct timeval timeout = {.tv_sec = PEER_TIMEOUT_S}; /* other requests queue after this one */
    struct ucred peer;
    socklen_t len_bytes = sizeof peer;
    int fd = accept4(ORIEL_HELPER_LISTENS, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len_bytes) == 0 && peer.uid == geteuid() &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0)
        request_serve(fd, fd, what);
    close(fd);
}

static void connections_serve(const char *what)
{
    struct pollfd ready[] = {{.fd = ORIEL_HELPER_LISTENS, .events = POLLIN},
                             {.fd = starter_pidfd_open(), .events = POLLIN}};
    if (ready[1].fd < 0)
        return;
    signal(SIGPIPE, SIG_IGN); /* a closed connection must not end the helper for others */
    alarm(REQUEST_TIMEOUT_S);
    while (poll(ready, 2, -1) > 0 && ready[1].revents == 0) {
        connection_serve(what);
        alarm(REQUEST_TIMEOUT_S);
    }
}

int oriel_helper_serve(const char *what)
{
    bool known =
        strcmp(what, ORIEL_HELPER_PLACES) == 0 || strcmp(what, ORIEL_HELPER_STATISTICS) == 0 ||
        strcmp(what, ORIEL_HELPER_FINDING) == 0 || strcmp(what, ORIEL_HELPER_FINDINGS) == 0;
    if (!known)
        oriel_die("only the library and the checker start the helper");
    /* a write beyond the file size limit fails with an error, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    int status = request_serve(STDIN_FILENO, STDOUT_FILENO, what);
    if (status == 0 && is_listening())
        connections_serve(what);
    return status;
}
