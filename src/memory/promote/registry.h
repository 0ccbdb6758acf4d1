/* The registry classifies this process's addresses by how peers can reach them. A result is valid
 * while the caller keeps the memory: an allocation that is not freed, or a reference on promoted
 * pages (promote.h). Thread-safe. */
#ifndef ORIEL_MEMORY_PROMOTE_REGISTRY_H
#define ORIEL_MEMORY_PROMOTE_REGISTRY_H

#include <stdint.h>

enum oriel_sharing {
    ORIEL_SHARING_PRIVATE,  /* reached only by copies: CMA, or the agent */
    ORIEL_SHARING_ARENA,    /* allocated in this process's memory file: load and store */
    ORIEL_SHARING_PROMOTED, /* shared in place: load and store */
    ORIEL_SHARING_DEVICE,   /* of a GPU: copied by its driver */
};

/* Bytes [start, end) that are reached the same way. */
struct oriel_memory_range {
    uintptr_t start;
    uintptr_t end;
    enum oriel_sharing place;
    /* of start, in this process's memory file; 0 for private memory. Of device memory: of its
     * struct oriel_gpu_shared */
    uint64_t offset;
};

/* The longest uniform range from start on, at most up to end. end is above start. Memory in peers'
 * files counts as private: mechanism.h finds whole windows of it. */
struct oriel_memory_range oriel_registry_find(uintptr_t start, uintptr_t end);

#endif
