/* Opens a name with O_PATH first, which has no side effect, and checks what the descriptor refers
 * to. The real open uses the descriptor's link in /proc. That link leads to the same file even if
 * the name has been replaced. */
#include "base/checked_open.h"

#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int openat_with_spare(int directory, const char *name, int flags)
{
    int fd = openat(directory, name, flags | O_CLOEXEC);
    if (fd < 0 && oriel_reserve_fd_release(errno))
        fd = openat(directory, name, flags | O_CLOEXEC);
    return fd;
}

int oriel_checked_path_open(int directory, const char *name, struct stat *out)
{
    int checked_fd = openat_with_spare(directory, name, O_PATH);
    if (checked_fd < 0 || (fstat(checked_fd, out) == 0 && S_ISREG(out->st_mode)))
        return checked_fd;
    close(checked_fd);
    errno = 0;
    return -1;
}

int oriel_checked_reopen(int checked_fd, int flags)
{
    char path[64];
    /* thread-self: a thread may have its own descriptor table */
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", checked_fd);
    int fd = openat_with_spare(AT_FDCWD, path, flags);
    int reason = errno;
    close(checked_fd);
    errno = reason;
    return fd;
}

static int memory_file_open(const char *link, uid_t owner)
{
    struct stat about;
    int checked_fd = oriel_checked_path_open(AT_FDCWD, link, &about);
    if (checked_fd < 0)
        return -1;
    if (about.st_nlink == 0 && about.st_uid == owner)
        return oriel_checked_reopen(checked_fd, O_RDWR);
    close(checked_fd);
    errno = 0;
    return -1;
}

int oriel_checked_memory_open(const char *link, uid_t owner)
{
    int fd = memory_file_open(link, owner);
    int reason = errno;
    if (fd < 0)
        oriel_reserve_fd_restore(); /* the descriptor that needed the spare is closed again */
    errno = reason;
    return fd;
}
