/* The head of the checker's shared memory and this process's mapping of it. Everything here has the
 * same offset in all processes. Private to check/shm/. */
#ifndef ORIEL_CHECK_SHM_SHM_INTERNAL_H
#define ORIEL_CHECK_SHM_SHM_INTERNAL_H

#include "check/shm/shm.h"

#include <stdatomic.h>

#define ORIEL_SHM_MAGIC UINT64_C(0x6472616f62726f00)

enum {
    ORIEL_SHM_VERSION = 1,
    ORIEL_SHM_CLASSES = 200, /* block sizes: shm_heap.c */
    ORIEL_SHM_STRIPES = 256, /* locks of the table of keys: shm_keys.c */
    ORIEL_SHM_PAGE = 4096,
};

/* Free blocks of one size. The first word of each is the next block's offset. Changed under the
 * lock, by a single store to `head`, so a process that dies meanwhile leaves a valid list, possibly
 * with blocks missing. */
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
    uint64_t buckets;     /* their number, a power of 2; the table follows this head */
    _Atomic uint64_t top; /* all bytes from here on were never used and are zero; only grows */
    _Atomic uint64_t refused;
    uint64_t unused[2];
    struct oriel_shm_class classes[ORIEL_SHM_CLASSES];
    struct oriel_shm_lock stripes[ORIEL_SHM_STRIPES];
    /* the first entry of each chain; bucket i has the lock stripes[i % ORIEL_SHM_STRIPES] */
    oriel_shm_offset bucket[];
};
_Static_assert(sizeof(struct oriel_shm_lock) == 64, "a lock is a cache line");
_Static_assert(sizeof(struct oriel_shm_class) == 128, "classes are two cache lines");
_Static_assert(offsetof(struct oriel_shm_head, classes) == 64, "locks start at cache lines");

/* This process's mapping; NULL: none. */
extern struct oriel_shm_head *oriel_shm_head __attribute__((visibility("hidden")));

/* Moves this process's free blocks to the shared lists, before the process leaves. In a forked
 * child the lists are only emptied. */
void oriel_shm_heap_leave(void);

#endif
