/* One thread at a time owns the spare descriptor. A thread that finds it owned continues as if
 * there were no spare, which every caller handles. So no thread waits, and neither does a child
 * that was forked meanwhile. The program may close the descriptor and reuse its number. The spare
 * is therefore identified by its file. */
#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGH = 200, NONE = -1, FREE_MIN = 16, PROBES_MAX = 1024, FDS_MAX = 1 << 20 };

static _Atomic bool spare_is_enabled;
static atomic_flag spare_is_locked = ATOMIC_FLAG_INIT;
static struct {
    int fd;
    dev_t device;
    ino_t inode;
    bool is_spent; /* it will be restored, however few descriptors are free then */
} spare = {.fd = NONE};
static _Thread_local bool has_own_fd_table;

int oriel_reserve_fd_move_high(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* True if at least FREE_MIN descriptors remain for a program that needs the last ones. The check
 * allocates none. */
static bool fds_are_plentiful(void)
{
    struct rlimit limit;
    int left = FREE_MIN;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return false;
    int end = limit.rlim_cur < FDS_MAX ? (int)limit.rlim_cur : FDS_MAX;
    for (int fd = end - 1; fd >= 0 && fd >= end - PROBES_MAX && left > 0; fd--)
        left -= fcntl(fd, F_GETFD) < 0;
    return left == 0;
}

static bool spare_lock(void)
{
    return !has_own_fd_table &&
           !atomic_flag_test_and_set_explicit(&spare_is_locked, memory_order_acquire);
}

static void spare_unlock(void)
{
    atomic_flag_clear_explicit(&spare_is_locked, memory_order_release);
}

static bool spare_is_open(void)
{
    struct stat info;
    return spare.fd >= 0 && fstat(spare.fd, &info) == 0 && info.st_dev == spare.device &&
           info.st_ino == spare.inode;
}

static void spare_create(void)
{
    struct stat info = {.st_ino = 0};
    spare.fd = oriel_reserve_fd_move_high(memfd_create("oriel-spare", MFD_CLOEXEC));
    if (spare.fd < 0 || fstat(spare.fd, &info) != 0)
        return;
    spare.device = info.st_dev;
    spare.inode = info.st_ino;
    spare.is_spent = false;
}

void oriel_reserve_fd_reserve(void)
{
    atomic_store_explicit(&spare_is_enabled, true, memory_order_relaxed);
    if (!spare_lock())
        return;
    if (!spare_is_open() && (spare.is_spent || fds_are_plentiful()))
        spare_create();
    spare_unlock();
}

void oriel_reserve_fd_restore(void)
{
    if (atomic_load_explicit(&spare_is_enabled, memory_order_relaxed))
        oriel_reserve_fd_reserve();
}

bool oriel_reserve_fd_release(int reason)
{
    bool is_free = false;
    if ((reason == EMFILE || reason == ENFILE) && spare_lock()) {
        is_free = spare_is_open();
        if (is_free)
            close(spare.fd);
        spare.is_spent |= is_free;
        spare.fd = NONE;
        spare_unlock();
    }
    errno = reason;
    return is_free;
}

void oriel_reserve_fd_detach_thread(void)
{
    has_own_fd_table = true;
}
