/* Stateless: the memory file is one range of addresses, and promote.c has the list of promoted
 * pages. */
#include "memory/promote/registry.h"

#include "memory/file.h"
#include "memory/promote/promote.h"

struct oriel_memory_range oriel_registry_find(uintptr_t start, uintptr_t end)
{
    struct oriel_memory_range found = {.start = start, .end = end, .place = ORIEL_SHARING_PRIVATE};
    uintptr_t base = (uintptr_t)oriel_file_base();
    uintptr_t base_end = base + oriel_file_reserve();
    uint64_t extent_bytes;
    if (base != 0 && start >= base && start < base_end) {
        found.place = ORIEL_SHARING_ARENA;
        found.offset = start - base;
        found.end = end < base_end ? end : base_end;
        return found;
    }
    if (base != 0 && start < base && base < end)
        found.end = base;
    if (oriel_promote_find(start, found.end - start, &found.offset, &extent_bytes))
        found.place = ORIEL_SHARING_PROMOTED;
    else
        found.offset = 0;
    found.end = start + extent_bytes;
    return found;
}
