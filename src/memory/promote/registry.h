/* The registry: what lies at each address of this process, as far as others may reach it.  What it answers holds while the asker
 * holds the memory: an allocation that is not freed, a hold on promoted pages (promote.h).  Window creation and attachment ask,
 * from any thread. */
#ifndef ORIEL_MEMORY_PROMOTE_REGISTRY_H
#define ORIEL_MEMORY_PROMOTE_REGISTRY_H

#include <stdint.h>

enum oriel_sharing {
    ORIEL_SHARING_PRIVATE,  /* reached by copies alone: CMA, or the agent */
    ORIEL_SHARING_ARENA,    /* allocated in the own memory file: load and store */
    ORIEL_SHARING_PROMOTED, /* shared in place: load and store */
};

/* Bytes [start, end) that are reached alike. */
struct oriel_memory_range {
    uintptr_t start;
    uintptr_t end;
    enum oriel_sharing place;
    uint64_t offset; /* of start, in the own memory file; 0 for private memory */
};

/* The longest stretch from start on, at most to end, which is above start.  Memory in the files of others counts as private:
 * whole windows of it are found by mechanism.h. */
struct oriel_memory_range oriel_registry_find(uintptr_t start, uintptr_t end);

#endif
