/* Looks at what a name leads to by O_PATH, which opens nothing, and opens it by the link in /proc of that descriptor, which leads
 * there whatever has become of the name. */
#include "base/checked_open.h"

#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int open_at(int directory, const char *name, int flags)
{
    int fd = openat(directory, name, flags | O_CLOEXEC);
    if (fd < 0 && oriel_reserve_fd_spend_spare(errno))
        fd = openat(directory, name, flags | O_CLOEXEC);
    return fd;
}

int oriel_seen_file(int directory, const char *name, struct stat *out)
{
    int seen = open_at(directory, name, O_PATH);
    if (seen < 0 || (fstat(seen, out) == 0 && S_ISREG(out->st_mode)))
        return seen;
    close(seen);
    errno = 0;
    return -1;
}

int oriel_seen_open(int seen, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d",
             seen); /* a thread may have descriptors of its own */
    int fd = open_at(AT_FDCWD, path, flags);
    int reason = errno;
    close(seen);
    errno = reason;
    return fd;
}

static int open_memory(const char *link, uid_t owner)
{
    struct stat about;
    int seen = oriel_seen_file(AT_FDCWD, link, &about);
    if (seen < 0)
        return -1;
    if (about.st_nlink == 0 && about.st_uid == owner)
        return oriel_seen_open(seen, O_RDWR);
    close(seen);
    errno = 0;
    return -1;
}

int oriel_seen_open_memory(const char *link, uid_t owner)
{
    int fd = open_memory(link, owner);
    int reason = errno;
    if (fd < 0)
        oriel_reserve_fd_restore_spare(); /* what it was spent for is closed again */
    errno = reason;
    return fd;
}
