/* The blocks of the own memory file: which ranges are free, which are shared with forked children, how pages come and go.
 * Not thread-safe: file.c alone calls, under its mutex, and never in a forked child. */
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

/* Flags of a block; they go into its entry in used, where lengths are multiples of 64. */
enum {
    ORIEL_BLOCK_SHARED = 1,
    ORIEL_BLOCK_ADVISED = 2,
    ORIEL_BLOCK_USER =
        4, /* the program's memory: its pages are kept when it is freed, and may be others' before */
    ORIEL_BLOCK_GIVEN = 8, /* by MPI_Alloc_mem */
    ORIEL_BLOCK_FLAGS = 63
};

/* Freed pages of the program's memory, with what is in them (allocator.c). */
struct oriel_kept {
    struct oriel_free_extents pages;
    uint64_t bytes;
    uint64_t most_bytes; /* as of the last look */
    uint64_t flags;      /* ORIEL_BLOCK_ADVISED if that is true of any of them */
    int64_t look_ns;     /* when to look again */
    bool is_used;        /* a block was made of them since the last look */
    int64_t used_ns;     /* the last look that found so */
};

struct oriel_blocks {
    int fd;
    dev_t device; /* of the memory file, and */
    ino_t
        inode; /* its number: a program that closes descriptors in bulk may make fd another file's */
    uid_t owner;
    char *base;
    uint64_t reserve_bytes; /* mapped */
    uint64_t size_bytes;    /* of the file; what lies behind it does not exist yet */
    struct oriel_free_extents large;
    struct oriel_free_extents small;
    struct oriel_free_extents small_shared;
    struct oriel_free_extents small_user;
    struct oriel_free_extents
        shared; /* not free: blocks and slabs that forked children go on sharing */
    struct oriel_core_dump dumps;
    struct oriel_kept kept;
    struct oriel_hash_table used; /* offset -> length and flags, in the pointer's bits */
};

/* What is wanted of a block. */
struct oriel_wish {
    uint64_t len_bytes;
    uint64_t align_bytes;
    uint64_t reserved_bytes; /* only blocks up to this length are reserved; 0: sparse */
    uint64_t flags;
    bool is_dirty;                       /* what came may not be zero; set by oriel_blocks_alloc */
    const struct oriel_file_part *parts; /* NULL: one, near the caller */
    size_t part_count;
};

/* Remembers which file fd is; false with errno. */
bool oriel_blocks_take_file(struct oriel_blocks *blocks, int fd);

/* Whether fd still is that file: else nothing may be done with it. */
bool oriel_blocks_file_is_open(const struct oriel_blocks *blocks);

/* How large the file may become: a longer one would not fit the reserve, or end the process (RLIMIT_FSIZE). */
uint64_t oriel_blocks_largest_file(const struct oriel_blocks *blocks);

/* ORIEL_E_NO_MEM when the machine cannot give them, ORIEL_E_OTHER when only this file cannot. */
enum oriel_status oriel_blocks_alloc(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                     uint64_t *offset);

/* False when offset is not the start of a block that has these flags. */
bool oriel_blocks_free(struct oriel_blocks *blocks, uint64_t offset, uint64_t flags);

/* Gives kept pages back to the system. */
void oriel_blocks_drop_kept(struct oriel_blocks *blocks);

#endif
