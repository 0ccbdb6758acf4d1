/* Creates this process's identity and checks whether another process is alive. The check uses a
 * pidfd because signal 0 succeeds on zombies. The start time distinguishes a reused PID. */
#include "base/identity.h"

#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PID_BITS = 22 };
_Static_assert((1 << PID_BITS) >= 4194304, "the kernel's largest number of a process");

static _Atomic uint64_t own_word;

static bool read_start_time(int32_t pid, uint64_t *out)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len_bytes = read(fd, text, sizeof text - 1);
    close(fd);
    if (len_bytes <= 0)
        return false;
    text[len_bytes] = '\0';
    /* field 2 is the command in parentheses, and may itself contain spaces and parentheses */
    char *field = strrchr(text, ')');
    for (int i = 2; i < 22 && field != NULL; i++)
        field = strchr(field + 1, ' ');
    if (field == NULL)
        return false;
    *out = strtoull(field + 1, NULL, 10);
    return true;
}

bool oriel_identity_make(struct oriel_identity *out)
{
    *out = (struct oriel_identity){.pid = (int32_t)getpid(), .memory_fd = -1};
    if (getrandom(out->id, sizeof out->id, 0) != (ssize_t)sizeof out->id ||
        !read_start_time(out->pid, &out->start_time))
        return false;
    atomic_store_explicit(&own_word, out->start_time << PID_BITS | (uint64_t)out->pid,
                          memory_order_relaxed);
    return true;
}

uint64_t oriel_identity_own_word(void)
{
    struct oriel_identity self;
    uint64_t word = atomic_load_explicit(&own_word, memory_order_relaxed);
    if (word == 0 && oriel_identity_make(&self))
        word = atomic_load_explicit(&own_word, memory_order_relaxed);
    return word;
}

int32_t oriel_identity_word_pid(uint64_t word)
{
    return (int32_t)(word & ((UINT64_C(1) << PID_BITS) - 1));
}

bool oriel_identity_word_alive(uint64_t word)
{
    struct oriel_identity identity = {.start_time = word >> PID_BITS,
                                      .pid = oriel_identity_word_pid(word)};
    return oriel_identity_alive(&identity);
}

static int open_process(int32_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    return fd < 0 && oriel_reserve_fd_release(errno) ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0)
                                                     : fd;
}

/* If the check fails for lack of a descriptor or because of a signal, the process counts as
 * alive. */
bool oriel_identity_alive(const struct oriel_identity *identity)
{
    uint64_t start_time = identity->start_time;
    int fd = open_process(identity->pid);
    if (fd < 0)
        /* EINVAL and ENOENT: the number now belongs to a thread that is not a process */
        return errno != ESRCH && errno != EINVAL && errno != ENOENT;
    struct pollfd exited = {.fd = fd, .events = POLLIN};
    bool alive = poll(&exited, 1, 0) <= 0;
    close(fd);
    alive = alive &&
            (!read_start_time(identity->pid, &start_time) || start_time == identity->start_time);
    oriel_reserve_fd_restore();
    return alive;
}
