/* A sorted list of addresses. It is compared with the kernel's list of mappings only when it has
 * become long. A full list accepts no further addresses; promotion is already refused then.
 * promote.c's mutex protects it. */
#include "memory/promote/split_mappings.h"

#include "memory/proc_maps.h"

#include <string.h>

/* the limit, plus what the ranges that are promoted at one time may add */
enum { ROOM = 3 * ORIEL_SPLIT_MAPPINGS_MAX };

static uintptr_t boundaries[ROOM];
static size_t count;

static size_t first_from(uintptr_t address)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (boundaries[middle] < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void boundary_insert(uintptr_t address)
{
    size_t at = first_from(address);
    if (count == ROOM || (at < count && boundaries[at] == address))
        return;
    memmove(&boundaries[at + 1], &boundaries[at], (count - at) * sizeof *boundaries);
    boundaries[at] = address;
    count++;
}

void oriel_split_mappings_add(uintptr_t start, uintptr_t end)
{
    boundary_insert(start);
    boundary_insert(end);
}

struct sweep {
    struct oriel_mapping before;
    size_t next; /* next address to compare */
    size_t kept;
};

/* Mappings whose visible properties differ were never one mapping. */
static bool boundary_compare(const struct oriel_mapping *mapping, void *context)
{
    struct sweep *sweep = context;
    bool is_like = sweep->before.end == mapping->start && mapping->inode == sweep->before.inode &&
                   mapping->access[3] == 'p' &&
                   strcmp(mapping->access, sweep->before.access) == 0 &&
                   strcmp(mapping->name, sweep->before.name) == 0;
    while (sweep->next < count && boundaries[sweep->next] < mapping->start)
        sweep->next++;
    if (is_like && sweep->next < count && boundaries[sweep->next] == mapping->start)
        boundaries[sweep->kept++] = boundaries[sweep->next++];
    sweep->before = *mapping;
    return true;
}

bool oriel_split_mappings_exceed(size_t most)
{
    struct sweep sweep = {.kept = 0};
    if (count <= most)
        return false;
    if (!oriel_proc_maps_visit(0, UINTPTR_MAX, false, boundary_compare, &sweep))
        return true;
    count = sweep.kept;
    return count > most;
}
