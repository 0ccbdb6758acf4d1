/* Reads the limit at each call because the program may change it. */
#include "base/file_limit.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t oriel_file_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                                                   : limit.rlim_cur;
}

bool oriel_file_resize(int fd, uint64_t len_bytes)
{
    if (len_bytes > oriel_file_limit()) {
        errno = EFBIG;
        return false;
    }
    return ftruncate(fd, (off_t)len_bytes) == 0;
}
