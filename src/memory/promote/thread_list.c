/* Lists the threads without stdio and without allocating. During a visit, their files are opened
 * relative to the listed folder, which halves the time.
 *
 * The kernel's list is not a snapshot. It proceeds from thread to thread. If the current thread
 * ends, listed or not, the list ends too, without the remaining threads. Therefore
 *
 *     L1 reads the list
 *     L2 reads the number of threads: the folder's links
 *     L3 checks that all threads of L1 are alive
 *
 * and starts again unless L2 counts as many as L1 has read. Each thread of L1 was alive at L2,
 * since it was alive before and after, and ids are not reused so soon. If the counts are equal, L1
 * has read all threads. */
#include "memory/promote/thread_list.h"

#include "transport/remote_writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LISTED_MAX = 16384, TRIES = 1000, VALUE_BYTES = 24 };

/* Of the current visit. */
static int folder = -1;
static int32_t listed[LISTED_MAX];
static size_t listed_count;

bool oriel_thread_list_read(int32_t tid, const char *name, char *text, size_t text_bytes)
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

static bool read_status(int32_t tid, const char *key, char *value)
{
    char text[2048];
    const char *found =
        oriel_thread_list_read(tid, "status", text, sizeof text) ? strstr(text, key) : NULL;
    if (found != NULL)
        snprintf(value, VALUE_BYTES, "%s", found + strlen(key));
    return found != NULL;
}

bool oriel_thread_list_read_blocked(int32_t tid, uint64_t *blocked)
{
    char mask[VALUE_BYTES];
    if (!read_status(tid, "\nSigBlk:\t", mask))
        return false;
    *blocked = strtoull(mask, NULL, 16);
    return true;
}

bool oriel_thread_list_has_ended(int32_t tid)
{
    char state[VALUE_BYTES];
    if (syscall(SYS_tgkill, getpid(), tid, 0) != 0)
        return errno == ESRCH;
    return read_status(tid, "\nState:\t", state) && (state[0] == 'Z' || state[0] == 'X');
}

bool oriel_thread_list_is_running(int32_t tid)
{
    char state[VALUE_BYTES];
    return read_status(tid, "\nState:\t", state) && state[0] == 'R';
}

uint64_t oriel_thread_list_cpu_ns(int32_t tid)
{
    char text[VALUE_BYTES];
    return oriel_thread_list_read(tid, "schedstat", text, sizeof text) ? strtoull(text, NULL, 10)
                                                                       : 0;
}

struct entry { /* the kernel's linux_dirent64 */
    uint64_t inode;
    int64_t next;
    uint16_t len_bytes;
    uint8_t type;
    char name[];
};

/* Adds the entries of one buffer of the folder's list. Returns false when there are too many. */
static bool add_entries(const char *buffer, long len_bytes)
{
    for (long at = 0; at < len_bytes; at += ((const struct entry *)(buffer + at))->len_bytes) {
        int32_t tid = (int32_t)strtol(((const struct entry *)(buffer + at))->name, NULL, 10);
        if (tid > 0 && listed_count == LISTED_MAX)
            return false;
        if (tid > 0)
            listed[listed_count++] = tid;
    }
    return true;
}

/* Returns 0 or an errno. */
static int read_list(void)
{
    _Alignas(8) char buffer[4096];
    listed_count = 0;
    if (syscall(SYS_lseek, folder, 0, SEEK_SET) != 0)
        return errno;
    for (;;) {
        long got = syscall(SYS_getdents64, folder, buffer, sizeof buffer);
        if (got <= 0)
            return got < 0 ? errno : 0;
        if (!add_entries(buffer, got))
            return EMFILE;
    }
}

/* L2, L3 */
static bool list_is_whole(void)
{
    struct stat info;
    if (fstat(folder, &info) != 0 || info.st_nlink != (nlink_t)listed_count + 2)
        return false;
    for (size_t i = 0; i < listed_count; i++)
        if (syscall(SYS_tgkill, getpid(), listed[i], 0) != 0)
            return false;
    return true;
}

static int list_read_whole(void)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int error = read_list();
        if (error != 0 || list_is_whole())
            return error;
    }
    return EAGAIN;
}

bool oriel_thread_list_visit(bool (*visit)(int32_t tid, void *context), void *context, int *error)
{
    int32_t self = (int32_t)syscall(SYS_gettid);
    folder =
        (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *error = folder >= 0 ? list_read_whole() : errno;
    bool wanted = *error == 0;
    for (size_t i = 0; wanted && i < listed_count; i++)
        if (listed[i] != self && !oriel_remote_writers_is_helper(listed[i]))
            wanted = visit(listed[i], context);
    if (folder >= 0)
        syscall(SYS_close, folder);
    folder = -1;
    return wanted;
}
