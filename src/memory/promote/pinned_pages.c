/* Classifies each descriptor: one fstat and one more call for most. Files without O_DIRECT, pipes,
 * ordinary sockets, terminals, and the names listed below cannot pin pages. Every other device may.
 * AIO contexts have no descriptor, but each has a mapping.
 *
 * Not detected:
 * - an io_uring that never had a descriptor (IORING_SETUP_REGISTERED_FD_ONLY), or whose descriptor
 *   was closed while the ring stays registered
 * - descriptors of a thread that has its own descriptor table
 * - files without O_DIRECT whose file system bypasses the page cache (FUSE's direct I/O, CIFS
 *   without cache), while another thread reads from them
 *
 * ORIEL_PROMOTE=never covers these cases. */
#include "memory/promote/pinned_pages.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_listed(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static void read_link(int fd, char *name, size_t name_bytes)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(path, name, name_bytes - 1);
    name[got > 0 ? got : 0] = '\0';
}

/* Classifies devices by the kernel's list of numbers (Documentation/admin-guide/devices.txt).
 * Devices whose numbers vary between systems are recognised by name. */
static bool device_may_pin(int fd, dev_t device)
{
    enum {
        MEMORY = 1,
        TERMINAL = 4,
        CONSOLE = 5,
        MISCELLANEOUS = 10,
        INPUT = 13,
        PSEUDO = 136,
        PSEUDO_LAST = 143,
        MSR = 202
    };
    static const char *const known[] = {"/dev/userfaultfd", "/dev/cpu_dma_latency", "/dev/net/tun",
                                        "/dev/rtc0", "/dev/hpet"};
    unsigned number = major(device);
    if (number == MEMORY || number == TERMINAL || number == CONSOLE || number == INPUT ||
        number == MSR || (number >= PSEUDO && number <= PSEUDO_LAST))
        return false;
    char name[64];
    read_link(fd, name, sizeof name);
    return number != MISCELLANEOUS || !is_listed(name, known, sizeof known / sizeof known[0]);
}

static bool object_may_pin(int fd)
{
    static const char *const known[] = {
        "anon_inode:[eventpoll]",      "anon_inode:[eventfd]",     "anon_inode:[timerfd]",
        "anon_inode:[signalfd]",       "anon_inode:[userfaultfd]", "anon_inode:inotify",
        "anon_inode:[fanotify]",       "anon_inode:[pidfd]",       "anon_inode:[perf_event]",
        "anon_inode:bpf-prog",         "anon_inode:bpf-map",       "anon_inode:bpf_link",
        "anon_inode:[bpf_link]",       "anon_inode:btf",           "anon_inode:seccomp notify",
        "anon_inode:landlock-ruleset",
    };
    char name[64];
    read_link(fd, name, sizeof name);
    return !is_listed(name, known, sizeof known / sizeof known[0]);
}

/* RDS and AF_XDP sockets pin memory that is registered with them. AF_ALG sockets pin their output
 * buffers. */
static bool socket_may_pin(int fd)
{
    int domain = -1;
    socklen_t len_bytes = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len_bytes) != 0)
        return true;
    return domain != AF_UNIX && domain != AF_INET && domain != AF_INET6 && domain != AF_NETLINK &&
           domain != AF_PACKET && domain != AF_VSOCK;
}

static bool may_pin(int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return false; /* closed meanwhile */
    switch (info.st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFBLK: return (fcntl(fd, F_GETFL) & (O_DIRECT | O_PATH)) == O_DIRECT;
    case S_IFSOCK: return socket_may_pin(fd) && (fcntl(fd, F_GETFL) & O_PATH) == 0;
    case S_IFCHR: return device_may_pin(fd, info.st_rdev) && (fcntl(fd, F_GETFL) & O_PATH) == 0;
    case S_IFDIR:
    case S_IFLNK:
    case S_IFIFO: /* O_DIRECT has another meaning here */ return false;
    default: return object_may_pin(fd);
    }
}

/* Reads the start of a small file in /proc. */
static void read_text(const char *path, char *text, size_t text_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, text_bytes - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Whether the list of mappings contains the name. Lines are not parsed, which would cost more than
 * the rest. */
static bool is_mapped(const char *name)
{
    enum { ROOM = 8192 };
    char text[ROOM];
    size_t carried = 0;
    bool found = false;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t got; !found && fd >= 0 && (got = read(fd, text + carried, ROOM - carried)) > 0;) {
        size_t len_bytes = carried + (size_t)got;
        found = memmem(text, len_bytes, name, strlen(name)) != NULL;
        carried = len_bytes < strlen(name) ? len_bytes : strlen(name);
        memmove(text, text + len_bytes - carried, carried);
    }
    if (fd >= 0)
        close(fd);
    return found;
}

/* The system's count of AIO requests is usually 0, and cheaper to read than the list of
 * mappings. */
static bool has_aio_context(void)
{
    char text[32];
    read_text("/proc/sys/fs/aio-nr", text, sizeof text);
    return strcmp(text, "0\n") != 0 && is_mapped(" /[aio]");
}

bool oriel_pinned_pages_possible(char *reason, size_t reason_bytes)
{
    int found = -1;
    DIR *descriptors = opendir("/proc/self/fd");
    if (descriptors == NULL) {
        snprintf(reason, reason_bytes,
                 "open descriptors cannot be listed; one may have pinned pages");
        return true;
    }
    for (const struct dirent *entry; found < 0 && (entry = readdir(descriptors)) != NULL;) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && may_pin(fd))
            found = fd;
    }
    closedir(descriptors);
    if (found >= 0) {
        char name[200];
        read_link(found, name, sizeof name);
        snprintf(reason, reason_bytes, "descriptor %d (%s) may have pinned pages", found, name);
        return true;
    }
    if (!has_aio_context())
        return false;
    snprintf(reason, reason_bytes, "an AIO context (io_setup) may have pinned pages");
    return true;
}
