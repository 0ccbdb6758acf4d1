/* What shm.c, shm_heap.c and shm_keys.c share: the board's first bytes and this process's view of it.  Everything here
 * lies at the same place for all processes; fields say who may change them.  Nobody else includes it. */
#ifndef ORIEL_CHECK_SHM_SHM_INTERNAL_H
#define ORIEL_CHECK_SHM_SHM_INTERNAL_H

#include "check/shm/shm.h"

#include <stdatomic.h>

#define ORIEL_SHM_MAGIC UINT64_C(0x6472616f62726f00)

enum {
    ORIEL_SHM_VERSION = 1,
    ORIEL_SHM_CLASSES = 200, /* sizes of blocks: shm_heap.c */
    ORIEL_SHM_STRIPES = 256, /* locks of the table of keys: shm_keys.c */
    ORIEL_SHM_PAGE = 4096,
};

/* Free blocks of one size, each with the next one's place in its first word.  Changed under the lock, by one store of head each,
 * so that one who dies at it leaves a list, if with blocks missing. */
struct oriel_shm_class {
    struct oriel_shm_lock lock;
    oriel_shm_offset head;
    uint64_t unused[7];
};

struct oriel_shm_head {
    uint64_t magic;
    uint32_t version;
    int32_t world_size;
    uint64_t size_bytes;
    uint64_t buckets;     /* how many, a power of 2; the table lies behind this head */
    _Atomic uint64_t top; /* what lies behind was never used: zero; only grows */
    _Atomic uint64_t refused;
    uint64_t unused[2];
    struct oriel_shm_class classes[ORIEL_SHM_CLASSES];
    struct oriel_shm_lock stripes[ORIEL_SHM_STRIPES];
    oriel_shm_offset bucket[]; /* the first of a chain; of stripe i % ORIEL_SHM_STRIPES */
};
_Static_assert(sizeof(struct oriel_shm_lock) == 64, "a lock is a cache line");
_Static_assert(sizeof(struct oriel_shm_class) == 128, "classes are lines apart");
_Static_assert(offsetof(struct oriel_shm_head, classes) == 64, "locks begin lines");

/* This process's view; NULL without a board. */
extern struct oriel_shm_head *oriel_shm_head __attribute__((visibility("hidden")));

/* Forgets this process's free blocks, which stay where they are: the board is left. */
void oriel_shm_heap_leave(void);

#endif
