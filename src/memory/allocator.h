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
#include "memory/pages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Flags of a block. They are stored in its entry in used, next to the length, a multiple of 64. */
enum {
    ORIEL_BLOCK_SHARED = 1,
    ORIEL_BLOCK_ADVISED = 2,
    /* user memory: its pages are cached when freed, and may hold the contents of earlier blocks */
    ORIEL_BLOCK_USER = 4,
    ORIEL_BLOCK_ALLOC_MEM = 8, /* allocated by MPI_Alloc_mem */
    /* some of its pages have a NUMA policy (oriel_pages_place); they are not cached when freed */
    ORIEL_BLOCK_PLACED = 16,
    ORIEL_BLOCK_FLAGS = 63
};

/* The cache of freed user pages, with their contents (allocator.c). */
struct oriel_page_cache {
    struct oriel_free_extents pages;
    uint64_t bytes;
    uint64_t most_bytes;   /* computed by the last check */
    uint64_t flags;        /* ORIEL_BLOCK_ADVISED if it applies to any of the pages */
    int64_t next_check_ns; /* time of the next check */
    bool is_used;          /* a block was made of cached pages since the last check */
    int64_t used_ns;       /* time of the last check that found is_used set */
};

struct oriel_allocator {
    int fd;
    /* device and inode of the memory file: a program that closes descriptors in bulk may reuse the
     * number fd for another file */
    dev_t device;
    ino_t inode;
    uid_t owner;
    char *base;
    uint64_t reserve_bytes; /* length of the mapping */
    uint64_t size_bytes;    /* length of the file; offsets from here on do not exist yet */
    struct oriel_free_extents large;
    struct oriel_free_extents small;
    struct oriel_free_extents small_shared;
    struct oriel_free_extents small_user;
    /* in use, not free: blocks and slabs that forked children continue to share */
    struct oriel_free_extents shared;
    struct oriel_core_dump dumps;
    struct oriel_page_cache cache;
    struct oriel_hash_table used; /* offset -> length and flags, stored in the pointer's bits */
    uint64_t used_bytes;          /* lengths of the blocks in use */
};

/* An allocation request. */
struct oriel_alloc_request {
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
bool oriel_allocator_set_file(struct oriel_allocator *allocator, int fd);

/* Whether fd still refers to that file. If not, fd must not be used. */
bool oriel_allocator_file_is_open(const struct oriel_allocator *allocator);

/* The largest length of the file. A longer one would exceed the mapping, or RLIMIT_FSIZE would end
 * the process. */
uint64_t oriel_allocator_max_file_bytes(const struct oriel_allocator *allocator);

/* Returns ORIEL_E_NO_MEM when the node lacks the memory, ORIEL_E_OTHER when only this file lacks
 * the room. */
enum oriel_status oriel_allocator_alloc(struct oriel_allocator *allocator,
                                        struct oriel_alloc_request *request, uint64_t *offset);

/* Returns false when offset is not the start of a block that has these flags. */
bool oriel_allocator_free(struct oriel_allocator *allocator, uint64_t offset, uint64_t flags);

/* Sets the placement of the pages that start in len_bytes from at on, in the block at offset, and
 * allocates them anew, as zeroes. Returns false without side effects if the block is no whole
 * pages, no page starts there, or the kernel refuses. */
bool oriel_allocator_place(struct oriel_allocator *allocator, uint64_t offset, uint64_t at,
                           uint64_t len_bytes, struct oriel_pages_placement placement);

/* Returns the cached pages to the system. */
void oriel_allocator_drop_cache(struct oriel_allocator *allocator);

#endif
