/* Opens files by names that other users may control. Such a name may lead to a device or a pipe,
 * where the open alone has side effects. The file is checked first and then opened through the
 * checked descriptor. */
#ifndef ORIEL_BASE_CHECKED_OPEN_H
#define ORIEL_BASE_CHECKED_OPEN_H

#include <sys/stat.h>

/* Returns a descriptor that refers to a regular file but can neither read nor write, or -1 with
 * errno. errno is 0 if the name leads to something other than a regular file. */
int oriel_checked_path_open(int directory, const char *name, struct stat *out);

/* Opens the file that seen refers to, with open's flags, and closes seen. Returns -1 with errno on
 * failure. */
int oriel_checked_reopen(int checked_fd, int flags);

/* Opens another process's memory file for reading and writing, by its link /proc/PID/fd/N. Returns
 * -1 with errno on failure. errno is 0 if it is not a regular file, has a name, or belongs to
 * another owner. */
int oriel_checked_memory_open(const char *link, uid_t owner);

#endif
