/* Lists the threads without stdio and without allocating.  During a visit their files are opened from the folder that is being
 * listed, which takes half the time.  quiesce.c, waiters.c and interrupted.c call, under promote.c's mutex. */
#include "memory/threads.h"

#include "transport/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int folder = -1; /* of the visit under way */

bool oriel_threads_read(int32_t tid, const char *name, char *text, size_t text_bytes)
{
    char path[64];
    snprintf(path, sizeof path, folder >= 0 ? "%d/%s" : "/proc/self/task/%d/%s", (int)tid, name);
    int fd = (int)syscall(SYS_openat, folder >= 0 ? folder : AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    long got = syscall(SYS_read, fd, text, text_bytes - 1);
    syscall(SYS_close, fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

bool oriel_threads_read_blocked(int32_t tid, uint64_t *blocked)
{
    char text[2048];
    if (!oriel_threads_read(tid, "status", text, sizeof text))
        return false;
    const char *state = strstr(text, "\nState:\t");
    const char *mask = strstr(text, "\nSigBlk:\t");
    if (state == NULL || mask == NULL || state[8] == 'Z' || state[8] == 'X')
        return false;
    *blocked = strtoull(mask + 9, NULL, 16);
    return true;
}

struct entry { /* the kernel's linux_dirent64 */
    uint64_t inode;
    int64_t next;
    uint16_t len_bytes;
    uint8_t type;
    char name[];
};

bool oriel_threads_visit(bool (*visit)(int32_t tid, void *context), void *context, int *error)
{
    _Alignas(8) char buffer[4096];
    int32_t self = (int32_t)syscall(SYS_gettid);
    folder = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool wanted = folder >= 0;
    *error = wanted ? 0 : errno;
    for (long got = 1; wanted && got > 0;) {
        got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        for (long at = 0; wanted && at < got;) {
            const struct entry *entry = (const struct entry *)(buffer + at);
            int32_t tid = (int32_t)strtol(entry->name, NULL, 10);
            at += entry->len_bytes;
            if (tid > 0 && tid != self && !oriel_writers_is_helper(tid))
                wanted = visit(tid, context);
        }
    }
    if (folder >= 0)
        syscall(SYS_close, folder);
    folder = -1;
    return wanted;
}
