/* Detects whether the file of a descriptor is opened. O_PATH does not count as opening. */
#ifndef ORIEL_TESTS_UNIT_OPEN_WATCH_H
#define ORIEL_TESTS_UNIT_OPEN_WATCH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/types.h>
#include <unistd.h>

/* A watch of descriptor fd of process pid; -1 if it cannot be watched. */
static inline int opened_watch(pid_t pid, int fd)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    return watch >= 0 && inotify_add_watch(watch, link, IN_OPEN) >= 0 ? watch : -1;
}

/* Since the watch was created or last queried. */
static inline bool opened_since(int watch)
{
    char events[4096];
    return read(watch, events, sizeof events) > 0;
}

#endif
