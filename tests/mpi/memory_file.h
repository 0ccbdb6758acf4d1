/* The memory file of this process, as it stands among its descriptors.
 * Called by the tests of this folder. */
#ifndef ORIEL_TESTS_MEMORY_FILE_H
#define ORIEL_TESTS_MEMORY_FILE_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What it holds physically; -1 where there is none.  Oriel's other files, which begin with the same name, have no pages of
 * windows. */
static inline long memory_file_kib(void)
{
    static const char wanted[] = "/memfd:oriel (deleted)";
    long kib = -1;
    DIR *descriptors = opendir("/proc/self/fd");
    for (const struct dirent *entry; kib < 0 && descriptors && (entry = readdir(descriptors));) {
        char path[300], name[64] = "";
        struct stat info;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, name, sizeof name - 1) > 0 && strcmp(name, wanted) == 0 && stat(path, &info) == 0)
            kib = (long)info.st_blocks / 2;
    }
    if (descriptors)
        closedir(descriptors);
    return kib;
}

#endif
