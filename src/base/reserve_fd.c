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

enum { HIGH = 200, NONE = -1, LEAVES = 16, LOOKS_MOST = 1024, NUMBERS_MOST = 1 << 20 };

static _Atomic bool keeps_spare;
static atomic_flag is_at_hand = ATOMIC_FLAG_INIT;
static struct {
    int fd;
    dev_t device;
    ino_t inode;
    bool is_spent; /* it will be restored, however few descriptors are free then */
} spare = {.fd = NONE};
static _Thread_local bool is_elsewhere;

int oriel_reserve_fd_high(int fd)
{
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

/* True if at least LEAVES descriptors remain for a program that needs the last ones. The check
 * allocates none. */
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

static bool take(void)
{
    return !is_elsewhere && !atomic_flag_test_and_set_explicit(&is_at_hand, memory_order_acquire);
}

static void put_back(void)
{
    atomic_flag_clear_explicit(&is_at_hand, memory_order_release);
}

static bool is_there(void)
{
    struct stat info;
    return spare.fd >= 0 && fstat(spare.fd, &info) == 0 && info.st_dev == spare.device &&
           info.st_ino == spare.inode;
}

static void make(void)
{
    struct stat info = {.st_ino = 0};
    spare.fd = oriel_reserve_fd_high(memfd_create("oriel-spare", MFD_CLOEXEC));
    if (spare.fd < 0 || fstat(spare.fd, &info) != 0)
        return;
    spare.device = info.st_dev;
    spare.inode = info.st_ino;
    spare.is_spent = false;
}

void oriel_reserve_fd_keep_spare(void)
{
    atomic_store_explicit(&keeps_spare, true, memory_order_relaxed);
    if (!take())
        return;
    if (!is_there() && (spare.is_spent || has_room()))
        make();
    put_back();
}

void oriel_reserve_fd_restore_spare(void)
{
    if (atomic_load_explicit(&keeps_spare, memory_order_relaxed))
        oriel_reserve_fd_keep_spare();
}

bool oriel_reserve_fd_spend_spare(int reason)
{
    bool is_free = false;
    if ((reason == EMFILE || reason == ENFILE) && take()) {
        is_free = is_there();
        if (is_free)
            close(spare.fd);
        spare.is_spent |= is_free;
        spare.fd = NONE;
        put_back();
    }
    errno = reason;
    return is_free;
}

void oriel_reserve_fd_leave_spare(void)
{
    is_elsewhere = true;
}
