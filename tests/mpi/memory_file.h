/* The memory file of this process, found among its descriptors, and the parts of it and of others'
 * that core files would contain. */
#ifndef ORIEL_TESTS_MEMORY_FILE_H
#define ORIEL_TESTS_MEMORY_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The file's physical memory; -1 where no file exists. Oriel's other files, which have names with
 * the same prefix, contain no pages of windows. */
static inline long memory_file_kib(void)
{
    static const char wanted[] = "/memfd:oriel (deleted)";
    long kib = -1;
    DIR *descriptors = opendir("/proc/self/fd");
    for (const struct dirent *entry; kib < 0 && descriptors && (entry = readdir(descriptors));) {
        char path[300], name[64] = "";
        struct stat info;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, name, sizeof name - 1) > 0 && strcmp(name, wanted) == 0 &&
            stat(path, &info) == 0)
            kib = (long)info.st_blocks / 2;
    }
    if (descriptors)
        closedir(descriptors);
    return kib;
}

/* The KiB of memory files that core files of this process include. *has_address is set if they
 * include the byte at address. */
static inline long dumped_kib(const void *address, bool *has_address)
{
    static const char wanted[] = "/memfd:oriel (deleted)";
    char line[4400];
    unsigned long start = 0, end = 0;
    bool is_file = false;
    long kib = 0;
    FILE *mappings = fopen("/proc/self/smaps", "r");
    *has_address = false;
    while (mappings && fgets(line, sizeof line, mappings)) {
        unsigned long first, last;
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) {
            start = first;
            end = last;
            is_file = strstr(line, wanted) != NULL;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd") == NULL) {
            kib += is_file ? (long)((end - start) / 1024) : 0;
            *has_address =
                *has_address || ((uintptr_t)address >= start && (uintptr_t)address < end);
        }
    }
    if (mappings)
        fclose(mappings);
    return kib;
}

#endif
