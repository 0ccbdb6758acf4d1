/* Reads /proc/meminfo, /proc/self/statm, the limits of the memory cgroups and the resource limits.
 * A file that cannot be read limits nothing.
 *
 * Which memory is reserved at allocation, and which is populated at first touch:
 * 1. Memory of the host MPI is populated at first touch. A program may therefore allocate more than
 *    its cgroup allows if it touches little of it. The same holds here: a cgroup's limit never
 *    fails an allocation, it only makes the pages come at first touch.
 * 2. A cgroup and each of its ancestors may have a limit. The smallest remainder counts. Inactive
 *    file pages in the page cache count as available.
 * 3. All ranks of a node may allocate the same length concurrently, each before it sees the
 *    allocations of the others. The length is therefore multiplied by the number of ranks on the
 *    node.
 * 4. At most half of the remainder is reserved. A rank that is still in its previous allocation can
 *    use no more than the other half, and the program needs other memory, too. */
#include "memory/memory_limits.h"

#include "base/options.h"
#include "base/valgrind.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define GIB (UINT64_C(1) << 30)
/* version 1 reports a number of this magnitude where there is no limit */
#define NO_LIMIT (UINT64_C(1) << 60)

enum {
    LEAST_BYTES = 4 << 20,
    /* this many files of the minimum size must fit, or none is created: the host needs address
     * space, too */
    PEERS = 8,
    PATH_BYTES = 1200,
    LINE_BYTES = 4200,
};

const char *oriel_memory_limits_root = "";
static _Atomic uint32_t ranks = 1;

static FILE *proc_file_open(const char *folder, const char *name)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s%s%s", oriel_memory_limits_root, folder, name);
    return fopen(path, "re");
}

static uint64_t read_number(const char *folder, const char *name)
{
    uint64_t value = UINT64_MAX; /* "max" remains unlimited */
    FILE *file = proc_file_open(folder, name);
    if (file == NULL)
        return value;
    if (fscanf(file, "%lu", &value) != 1)
        value = UINT64_MAX;
    fclose(file);
    return value;
}

/* The number in the line that starts with word, or otherwise if there is none. */
static uint64_t read_row(const char *folder, const char *name, const char *word, uint64_t otherwise)
{
    char line[128];
    size_t word_len = strlen(word);
    FILE *file = proc_file_open(folder, name);
    if (file == NULL)
        return otherwise;
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t value;
        if (strncmp(line, word, word_len) == 0 && sscanf(line + word_len, "%lu", &value) == 1) {
            fclose(file);
            return value;
        }
    }
    fclose(file);
    return otherwise;
}

/* --- memory cgroups --- */

/* A cgroup hierarchy as this process sees it: the mounted root and the mount point. */
struct hierarchy {
    bool is_mounted;
    char root[PATH_BYTES];
    char mount_point[PATH_BYTES];
};

static struct hierarchy cgroup_v1, cgroup_v2;
static pthread_once_t hierarchies_once = PTHREAD_ONCE_INIT;

/* Whether a comma-separated list contains the word. */
static bool has_word(const char *list, const char *word)
{
    size_t word_len = strlen(word);
    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",\n ");
        if (len == word_len && memcmp(at, word, len) == 0)
            return true;
        at += len + (at[len] != '\0');
    }
    return false;
}

/* Parses a line of mountinfo. */
static void mount_line_parse(const char *line)
{
    struct hierarchy hierarchy = {.is_mounted = true};
    char kind[16];
    char options[512];
    const char *rest = strstr(line, " - ");
    if (rest == NULL || sscanf(rest, " - %15s %*s %511s", kind, options) != 2 ||
        sscanf(line, "%*s %*s %*s %1199s %1199s", hierarchy.root, hierarchy.mount_point) != 2)
        return;
    if (strcmp(kind, "cgroup2") == 0 && !cgroup_v2.is_mounted)
        cgroup_v2 = hierarchy;
    else if (strcmp(kind, "cgroup") == 0 && has_word(options, "memory") && !cgroup_v1.is_mounted)
        cgroup_v1 = hierarchy;
}

static void find_hierarchies(void)
{
    char line[LINE_BYTES];
    FILE *file = proc_file_open("/proc/self/", "mountinfo");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        mount_line_parse(line);
    fclose(file);
}

/* The remaining bytes of one cgroup, or UINT64_MAX without a limit. */
static uint64_t cgroup_left(const char *folder, bool is_v1)
{
    uint64_t limit = read_number(folder, is_v1 ? "/memory.limit_in_bytes" : "/memory.max");
    if (limit >= NO_LIMIT)
        return UINT64_MAX;
    uint64_t used = read_number(folder, is_v1 ? "/memory.usage_in_bytes" : "/memory.current");
    if (used == UINT64_MAX)
        return UINT64_MAX;
    uint64_t cache =
        read_row(folder, "/memory.stat", is_v1 ? "total_inactive_file " : "inactive_file ", 0);
    used -= cache < used ? cache : used;
    return limit <= used ? 0 : limit - used;
}

/* The smallest remainder of the group and its ancestors. A container may see its own group as the
 * root. */
static uint64_t cgroup_chain_left(const struct hierarchy *hierarchy, const char *group, bool is_v1)
{
    char folder[2 * PATH_BYTES];
    uint64_t least = UINT64_MAX;
    size_t root_len = strcmp(hierarchy->root, "/") == 0 ? 0 : strlen(hierarchy->root);
    size_t mount_point_len = strlen(hierarchy->mount_point);
    if (!hierarchy->is_mounted)
        return UINT64_MAX;
    bool is_below = strncmp(group, hierarchy->root, root_len) == 0 &&
                    (group[root_len] == '/' || group[root_len] == '\0');
    snprintf(folder, sizeof folder, "%s%s", hierarchy->mount_point,
             is_below ? group + root_len : "");
    for (;;) {
        uint64_t left = cgroup_left(folder, is_v1);
        least = left < least ? left : least;
        char *last = strrchr(folder, '/');
        if (last == NULL || (size_t)(last - folder) < mount_point_len)
            return least;
        *last = '\0';
    }
}

/* Parses a line of /proc/self/cgroup: number, controllers, group. */
static uint64_t cgroup_line_left(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (group == NULL)
        return UINT64_MAX;
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    if (controllers[1] == '\0')
        return cgroup_chain_left(&cgroup_v2, group, false);
    return has_word(controllers + 1, "memory") ? cgroup_chain_left(&cgroup_v1, group, true)
                                               : UINT64_MAX;
}

static uint64_t cgroups_left(void)
{
    char line[LINE_BYTES];
    uint64_t least = UINT64_MAX;
    pthread_once(&hierarchies_once, find_hierarchies);
    FILE *file = proc_file_open("/proc/self/", "cgroup");
    if (file == NULL)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file) != NULL) {
        uint64_t left = cgroup_line_left(line);
        least = left < least ? left : least;
    }
    fclose(file);
    return least;
}

/* --- queries --- */

static uint64_t memory_left(void)
{
    uint64_t kib = read_row("/proc/", "meminfo", "MemAvailable:", UINT64_MAX);
    return kib == UINT64_MAX ? UINT64_MAX : kib * 1024;
}

static uint64_t with_swap(uint64_t memory)
{
    return memory == UINT64_MAX ? UINT64_MAX
                                : memory + read_row("/proc/", "meminfo", "SwapFree:", 0) * 1024;
}

uint64_t oriel_memory_limits_available(void)
{
    return with_swap(memory_left());
}

void oriel_memory_limits_set_ranks(uint32_t ranks_here)
{
    ranks = ranks_here > 0 ? ranks_here : (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

enum oriel_room oriel_memory_limits_room(uint64_t len_bytes, bool of_all)
{
    uint64_t memory = memory_left();
    if (len_bytes > memory && len_bytes > with_swap(memory))
        return ORIEL_ROOM_NONE;
    uint64_t cgroups = cgroups_left();
    uint64_t left = memory < cgroups ? memory : cgroups;
    return len_bytes <= left / 2 / (of_all ? 1 : ranks) ? ORIEL_ROOM_RESERVED : ORIEL_ROOM_AT_TOUCH;
}

/* Remaining address space of this process, or UINT64_MAX without a limit. */
static uint64_t address_space_left(const struct rlimit *space)
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

uint64_t oriel_memory_limits_reserve(void)
{
    uint64_t wanted = (uint64_t)oriel_options()->reserve_bytes;
    if (wanted == 0) {
        uint64_t physical = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        long processors = sysconf(_SC_NPROCESSORS_CONF);
        uint64_t sharers = processors > 16 ? (uint64_t)processors : 16;
        struct rlimit space = {RLIM_INFINITY, RLIM_INFINITY};
        uint64_t cap = 65536 * GIB / sharers;
        getrlimit(RLIMIT_AS, &space);
        if (address_space_left(&space) / PEERS < LEAST_BYTES)
            return 0;
        if (space.rlim_cur != RLIM_INFINITY && space.rlim_cur / 64 < cap)
            cap = space.rlim_cur / 64;
        for (wanted = GIB / 16; wanted < physical && wanted < cap;)
            wanted *= 2;
        if (wanted > cap)
            wanted = cap;
        if (wanted > ORIEL_VALGRIND_RESERVE && oriel_is_under_valgrind())
            wanted = ORIEL_VALGRIND_RESERVE;
    }
    return (wanted > LEAST_BYTES ? wanted : LEAST_BYTES) & ~UINT64_C(0xfff);
}
