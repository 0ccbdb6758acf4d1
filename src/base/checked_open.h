/* Files that others name, who may have led the name to a device or a pipe, whose opening alone does something: what is there is
 * looked at first, and opened by what was looked at. */
#ifndef ORIEL_BASE_CHECKED_OPEN_H
#define ORIEL_BASE_CHECKED_OPEN_H

#include <sys/stat.h>

/* A descriptor that stands for a regular file and neither reads nor writes, or -1: there is none, and errno is 0 where there is
 * something else. */
int oriel_seen_file(int directory, const char *name, struct stat *out);

/* What that stands for, with open's flags; closes seen.  -1 with errno. */
int oriel_seen_open(int seen, int flags);

/* A memory file of another process, by its link /proc/PID/fd/N, for reading and writing; -1 with errno, 0 where there is something
 * else: no file, one that has a name, or one of another owner. */
int oriel_seen_open_memory(const char *link, uid_t owner);

#endif
