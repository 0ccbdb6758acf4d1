/* The blocks of this process's memory file: which ranges are free, which are shared with forked
 * children, and when pages are reserved and released. Not thread-safe: file.c serialises all calls
 * under its mutex, and makes none in a forked child. */
#ifndef ORIEL_MEMORY_ALLOCATOR_H
#define ORIEL_MEMORY_ALLOCATOR_H

#include "base/hash_table.h"
#include "base/status.h"
#include "memory/core_dump.h"
#include "memory/file.h"
#include "memory/free_extents.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Flags of a block. They are stored in its entry in used, next to the length, a multiple of 64. */
enum {
    ORIEL_BLOCK_SHARED = 1,
    ORIEL_BLOCK_ADVISED = 2,
    ORIEL_BLOCK_USER =
        /* user memory: its pages are cached when freed, and may hold the contents of earlier
         * blocks */
        4,
    ORIEL_BLOCK_GIVEN = 8, /* allocated by MPI_Alloc_mem */
    ORIEL_BLOCK_FLAGS = 63
};

/* The cache of freed user pages, with their contents (allocator.c). */
struct oriel_kept {
    struct oriel_free_extents pages;
    uint64_t bytes;
    uint64_t most_bytes; /* computed by the last check */
    uint64_t flags;      /* ORIEL_BLOCK_ADVISED if it applies to any of the pages */
    int64_t look_ns;     /* time of the next check */
    bool is_used;        /* a block was made of cached pages since the last check */
    int64_t used_ns;     /* time of the last check that found is_used set */
};

struct oriel_blocks {
    int fd;
    dev_t device; /* device and inode of the memory file: */
    ino_t
        /* a program that closes descriptors in bulk may reuse the number fd for another file */
        inode;
    uid_t owner;
    char *base;
    uint64_t reserve_bytes; /* length of the mapping */
    uint64_t size_bytes;    /* length of the file; offsets from here on do not exist yet */
    struct oriel_free_extents large;
    struct oriel_free_extents small;
    struct oriel_free_extents small_shared;
    struct oriel_free_extents small_user;
    struct oriel_free_extents
        shared; /* in use, not free: blocks and slabs that forked children continue to share */
    struct oriel_core_dump dumps;
    struct oriel_kept kept;
    struct oriel_hash_table used; /* offset -> length and flags, stored in the pointer's bits */
};

/* An allocation request. */
struct oriel_wish {
    uint64_t len_bytes;
    uint64_t align_bytes;
    /* blocks up to this length are reserved, larger ones are not; 0: sparse */
    uint64_t reserved_bytes;
    uint64_t flags;
    bool is_dirty;                       /* output: the block may not be zero */
    const struct oriel_file_part *parts; /* NULL: one part, near the caller */
    size_t part_count;
};

/* Records which file fd refers to. Returns false with errno. */
bool oriel_blocks_take_file(struct oriel_blocks *blocks, int fd);

/* Whether fd still refers to that file. If not, fd must not be used. */
bool oriel_blocks_file_is_open(const struct oriel_blocks *blocks);

/* The largest length of the file. A longer one would exceed the mapping, or RLIMIT_FSIZE would end
 * the process. */
uint64_t oriel_blocks_largest_file(const struct oriel_blocks *blocks);

/* Returns ORIEL_E_NO_MEM when the node lacks the memory, ORIEL_E_OTHER when only this file lacks
 * the room. */
enum oriel_status oriel_blocks_alloc(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                     uint64_t *offset);

/* Returns false when offset is not the start of a block that has these flags. */
bool oriel_blocks_free(struct oriel_blocks *blocks, uint64_t offset, uint64_t flags);

/* Returns the cached pages to the system. */
void oriel_blocks_drop_kept(struct oriel_blocks *blocks);

#endif
