/* Who takes the spare descriptor's number owns it until it is put back: nobody else finds one meanwhile, and two threads never
 * close or keep the same.  The program may close it, too, and have something else at the number: it is known by its file's name. */
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SPARE_NAME "oriel-spare"
enum { HIGH = 200, NONE = -1, LEAVES = 16, LOOKS_MOST = 1024, NUMBERS_MOST = 1 << 20 };

static _Atomic bool keeps_spare;
static _Atomic int spare = NONE;
static _Atomic bool is_spent; /* and is put back, however few are free by then */
static _Thread_local bool is_elsewhere;

int oriel_descriptor_high(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static bool is_spare(int fd)
{
    static const char wanted[] = "/memfd:" SPARE_NAME " (deleted)";
    char path[64];
    char target[sizeof wanted];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
    return fd >= 0 && readlink(path, target, sizeof target) == (ssize_t)sizeof wanted - 1 &&
           memcmp(target, wanted, sizeof wanted - 1) == 0;
}

/* So many are left to a program that needs its last ones.  Numbers are looked at, not taken. */
static bool has_room(void)
{
    struct rlimit limit;
    int left = LEAVES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    int end = limit.rlim_cur < NUMBERS_MOST ? (int)limit.rlim_cur : NUMBERS_MOST;
    for (int fd = end - 1; fd >= 0 && fd >= end - LOOKS_MOST && left > 0; fd--)
        left -= fcntl(fd, F_GETFD) < 0;
    return left == 0;
}

static int take_spare(void)
{
    int fd = atomic_exchange(&spare, NONE);
    return is_spare(fd) ? fd : NONE;
}

void oriel_descriptor_keep_spare(void)
{
    int none = NONE;
    if (is_elsewhere)
        return;
    atomic_store_explicit(&keeps_spare, true, memory_order_relaxed);
    int fd = take_spare();
    if (fd < 0 && (atomic_load_explicit(&is_spent, memory_order_relaxed) || has_room()))
        fd = oriel_descriptor_high(memfd_create(SPARE_NAME, MFD_CLOEXEC));
    if (fd >= 0)
        atomic_store_explicit(&is_spent, false, memory_order_relaxed);
    if (fd >= 0 && !atomic_compare_exchange_strong(&spare, &none, fd))
        close(fd);
}

void oriel_descriptor_restore_spare(void)
{
    if (atomic_load_explicit(&keeps_spare, memory_order_relaxed))
        oriel_descriptor_keep_spare();
}

bool oriel_descriptor_spend_spare(int reason)
{
    int fd = (reason == EMFILE || reason == ENFILE) && !is_elsewhere ? take_spare() : NONE;
    if (fd >= 0) {
        close(fd);
        atomic_store_explicit(&is_spent, true, memory_order_relaxed);
    }
    errno = reason;
    return fd >= 0;
}

void oriel_descriptor_leave_spare(void)
{
    is_elsewhere = true;
}
