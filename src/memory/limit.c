/* Reads /proc/meminfo, /proc/self/statm, the cgroup's limits and the resource limits.  A file that cannot be read limits
 * nothing.  file.c and creation call. */
#include "memory/limit.h"

#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)

enum {
    LEAST_BYTES = 4 << 20,
    PEERS = 8, /* so many files of the least size must fit, or none is made: the host needs address space, too */
};

static uint64_t read_number(const char *path)
{
    uint64_t value = UINT64_MAX; /* "max" stays unlimited */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return value;
    if (fscanf(file, "%lu", &value) != 1)
        value = UINT64_MAX;
    fclose(file);
    return value;
}

static uint64_t machine_available(void)
{
    char line[128];
    uint64_t kib = UINT64_MAX / 1024;
    FILE *file = fopen("/proc/meminfo", "re");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "MemAvailable: %lu kB", &kib) != 1)
        continue;
    fclose(file);
    return kib * 1024;
}

/* The tightest of the own cgroup and its ancestors (version 2: one line "0::/path"). */
static uint64_t cgroup_available(void)
{
    char line[512];
    char path[1024];
    char *group = NULL;
    uint64_t available = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return UINT64_MAX;
    while (group == NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = '\0';
            group = line + 3;
        }
    }
    fclose(file);
    while (group != NULL) {
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        uint64_t limit = read_number(path);
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group);
        uint64_t used = read_number(path);
        if (limit != UINT64_MAX && used != UINT64_MAX && (limit <= used ? 0 : limit - used) < available)
            available = limit <= used ? 0 : limit - used;
        char *parent = strrchr(group, '/');
        if (parent == NULL)
            break;
        *parent = '\0';
    }
    return available;
}

uint64_t oriel_limit_available(void)
{
    uint64_t machine = machine_available();
    uint64_t cgroup = cgroup_available();
    return machine < cgroup ? machine : cgroup;
}

/* Address space that this process may still take; UINT64_MAX without a limit. */
static uint64_t space_left(const struct rlimit *space)
{
    uint64_t pages = 0;
    FILE *file = space->rlim_cur == RLIM_INFINITY ? NULL : fopen("/proc/self/statm", "re");
    if (file == NULL)
        return UINT64_MAX;
    if (fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    fclose(file);
    uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < space->rlim_cur ? space->rlim_cur - used : 0;
}

uint64_t oriel_limit_reserve(void)
{
    uint64_t wanted = (uint64_t)oriel_options()->reserve_bytes;
    if (wanted == 0) {
        uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        long processors = sysconf(_SC_NPROCESSORS_CONF);
        uint64_t sharers = processors > 16 ? (uint64_t)processors : 16;
        struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY};
        uint64_t cap = 65536 * GIB / sharers;
        getrlimit(RLIMIT_AS, &space);
        if (space_left(&space) / PEERS < LEAST_BYTES)
            return 0;
        if (space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 64 < cap)
            cap = space.rlim_cur / 64;
        for (wanted = GIB / 16; wanted < physical && wanted < cap;)
            wanted *= 2;
        if (wanted > cap)
            wanted = cap;
    }
    return (wanted > LEAST_BYTES ? wanted : LEAST_BYTES) & ~UINT64_C(0xfff);
}
