/* Claims of messages, between the processes of a job on one node. They need no shared memory, so
 * that they work before the first window, after the last, and in an error of either.
 *
 * A claim is a listening socket whose name, in no folder, is made of the job and the message. The
 * kernel gives a name to one socket only and removes it with that socket, however its process ends.
 *
 *   1. A process that notices a message binds its name. If that succeeds, it prints the message.
 *   2. Otherwise it tries once to connect, without waiting, and prints nothing. The closed
 *      connection stays in the owner's queue, which so counts the processes.
 *   3. When the owner ends, it empties the queue and counts.
 *
 * Where this fails (no descriptor, no socket, another user's socket, a network namespace for each
 * process), a process prints its message: lines too many, none too few. The program may close or
 * replace a descriptor, so its name is checked before each use. A process without a launcher is a
 * job of its own and opens no socket. */
#include "base/log_claims.h"

#include "base/job.h"
#include "base/siphash.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    CLAIMS = 16, /* the oldest is dropped for a new one */
    TEXT_BYTES = 400,
    QUEUE = 4096,
    YIELDS = 100, /* the first tries yield, the others sleep */
    TRIES = 1000,
    NAP_NS = 100000,
};

struct claim {
    uint64_t name;
    int fd; /* -1: none */
    pid_t pid;
    bool is_counted;
    char text[TEXT_BYTES];
};

static struct claim claims[CLAIMS];
static unsigned claims_count; /* in all; claim i is at i % CLAIMS */
/* A thread that does not get it continues without: a fork may have copied it locked. */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void pause_before(int next_try)
{
    if (next_try < YIELDS)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

static bool busy_enter(void)
{
    for (int tries = 0; tries < TRIES; tries++) {
        if (!atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
            return true;
        pause_before(tries);
    }
    return false;
}

static void busy_leave(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

static bool has_any_numbers(enum oriel_log_kind kind)
{
    return kind == ORIEL_LOG_FATAL || kind == ORIEL_LOG_LATE;
}

/* Without the digits of addresses, or without any. */
static uint64_t name_make(enum oriel_log_kind kind, uint64_t site, const char *text)
{
    static const uint64_t key[2] = {UINT64_C(0x6f7269656c206c6f), UINT64_C(0x6720636c61696d73)};
    char words[1024];
    size_t used = 0;
    const uint64_t head[2] = {kind, site};
    memcpy(words, head, sizeof head);
    used += sizeof head;
    for (const char *at = text; *at != '\0' && used < sizeof words;) {
        if (strncmp(at, "0x", 2) == 0)
            at += 2 + strspn(at + 2, "0123456789abcdef");
        else if (has_any_numbers(kind) && *at >= '0' && *at <= '9')
            at++;
        else
            words[used++] = *at++;
    }
    return oriel_siphash(key, words, used);
}

/* The launcher's socket, which identifies a job, is closed in MPI_Finalize. */
static uint64_t job_find(void)
{
    static uint64_t job;
    if (job == 0)
        job = oriel_job_find();
    return job;
}

static socklen_t address_make(uint64_t name, struct sockaddr_un *out)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "oriel-line-%016llx-%016llx",
                       (unsigned long long)job_find(), (unsigned long long)name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static bool is_own_user(int fd)
{
    struct ucred peer;
    socklen_t len_bytes = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len_bytes) == 0 && peer.uid == geteuid();
}

/* Steps 1 and 2. *fd: the owner's socket, or -1. */
static enum oriel_log_claim socket_claim(uint64_t name, int *fd)
{
    struct sockaddr_un address;
    socklen_t len_bytes = address_make(name, &address);
    enum oriel_log_claim claim = ORIEL_LOG_CLAIM_OWN;
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0)
        return claim;
    for (int tries = 0; tries < TRIES; tries++) {
        if (bind(*fd, (struct sockaddr *)&address, len_bytes) == 0) {
            if (listen(*fd, QUEUE) == 0)
                return claim;
            break;
        }
        if (errno != EADDRINUSE)
            break;
        if (connect(*fd, (struct sockaddr *)&address, len_bytes) == 0) {
            if (is_own_user(*fd))
                claim = ORIEL_LOG_CLAIM_OTHER;
            break;
        }
        pause_before(tries); /* the owner does not listen yet, or has just ended */
    }
    close(*fd);
    *fd = -1;
    return claim;
}

/* Whether the claim's descriptor is still its socket, and not another file of the program. */
static bool is_open(const struct claim *claim)
{
    struct sockaddr_un expected;
    struct sockaddr_un found;
    socklen_t len_bytes = sizeof found;
    return claim->fd >= 0 && claim->pid == getpid() &&
           getsockname(claim->fd, (struct sockaddr *)&found, &len_bytes) == 0 &&
           len_bytes == address_make(claim->name, &expected) &&
           memcmp(&found, &expected, len_bytes) == 0;
}

static struct claim *claim_find(uint64_t name)
{
    for (unsigned i = 0; i < CLAIMS && i < claims_count; i++)
        if (claims[i].name == name)
            return &claims[i];
    return NULL;
}

enum oriel_log_claim oriel_log_claim(enum oriel_log_kind kind, uint64_t site, const char *text)
{
    int error = errno;
    enum oriel_log_claim answer = ORIEL_LOG_CLAIM_OWN;
    if (!busy_enter())
        return answer;
    uint64_t name = name_make(kind, site, text);
    if (claim_find(name) != NULL) {
        answer = ORIEL_LOG_CLAIM_REPEATED;
    } else {
        struct claim *claim = &claims[claims_count++ % CLAIMS];
        if (is_open(claim))
            close(claim->fd);
        *claim = (struct claim){.name = name, .fd = -1, .pid = getpid()};
        claim->is_counted = kind == ORIEL_LOG_WARNING;
        snprintf(claim->text, sizeof claim->text, "%s", text);
        if (oriel_job_rank() >= 0)
            answer = socket_claim(name, &claim->fd);
    }
    busy_leave();
    errno = error;
    return answer;
}

bool oriel_log_claims_any(void)
{
    bool any = false;
    if (!busy_enter())
        return false;
    for (unsigned i = 0; i < CLAIMS; i++)
        any = any || is_open(&claims[i]);
    busy_leave();
    return any;
}

void oriel_log_claims_count(void (*print)(int others, const char *text))
{
    if (claims_count == 0 || !busy_enter())
        return;
    for (unsigned i = 0; i < CLAIMS; i++) {
        int others = 0;
        int fd;
        while (is_open(&claims[i]) && (fd = accept4(claims[i].fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
            others += is_own_user(fd);
            close(fd);
        }
        if (others > 0 && claims[i].is_counted)
            print(others, claims[i].text);
    }
    busy_leave();
}
