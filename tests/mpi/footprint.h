/* The kernel's counts of this process's resources, for tests that must leave nothing. */
#ifndef ORIEL_TESTS_FOOTPRINT_H
#define ORIEL_TESTS_FOOTPRINT_H

#include <dirent.h>
#include <stdio.h>

/* The additional growth of memory that is allowed under a sanitiser, which retains freed memory for
 * a while. The check then proves nothing. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { FREED_CACHED_KIB = 1 << 24 };
#else
enum { FREED_CACHED_KIB = 0 };
#endif

/* A sanitiser's allocator maps memory for each size at its first allocation, on x86-64 in these 4
 * TiB. ThreadSanitizer's mappings may be anywhere: under it mappings are not counted. */
static inline int footprint_is_sanitisers(const char *mapping)
{
#if defined __SANITIZE_ADDRESS__ && defined __x86_64__
    unsigned long start = 0;
    sscanf(mapping, "%lx", &start);
    return start >> 42 == 0x600000000000 >> 42;
#elif defined __SANITIZE_THREAD__
    (void)mapping;
    return 1;
#else
    (void)mapping;
    return 0;
#endif
}

struct footprint {
    long mappings;
    long descriptors;
    long resident_kib;
};

static inline struct footprint footprint_read(void)
{
    struct footprint print = {0, 0, 0};
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        print.mappings += !footprint_is_sanitisers(line);
    fclose(maps);
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmRSS: %ld", &print.resident_kib);
    fclose(status);
    DIR *descriptors = opendir("/proc/self/fd");
    while (readdir(descriptors))
        print.descriptors++;
    closedir(descriptors);
    return print;
}

#endif
