/* User memory of a window, from MPI_Win_create or MPI_Win_attach. Some parts can be loaded and
 * stored by every process, because they were allocated that way or are promoted
 * (memory/promote/promote.h). Other parts are reached only by copies, for a recorded reason.
 * Thread-safe. */
#ifndef ORIEL_CREATE_USER_MEMORY_H
#define ORIEL_CREATE_USER_MEMORY_H

#include "memory/promote/promote.h"
#include "memory/promote/registry.h"

#include <stddef.h>

enum {
    ORIEL_PATH_DIRECT = 1,
    ORIEL_PATH_PROMOTED = 2,
    ORIEL_PATH_COPY = 4,
    ORIEL_PATH_GPU = 8,
    ORIEL_PATH_AGENT = 16, /* memory of a GPU that only its owner accesses */
};

struct oriel_user_memory {
    /* in ascending order, without gaps; adjacent ranges of the same kind are joined */
    struct oriel_memory_range *ranges;
    size_t range_count;
    struct oriel_memory_range first_range; /* storage for a single range */
    struct oriel_promoted *references;
    size_t reference_count;
    /* of struct oriel_gpu_shared, of device and managed memory; 0: it is neither */
    uint64_t shared_offset;
    bool is_mapped_by_none; /* of that memory */
    uint64_t since_ns;
    uint64_t until_ns;   /* 0 until freeing the window begins */
    int32_t ranks;       /* of the window: they wait while one of them promotes */
    uint64_t took_ns;    /* time to promote */
    uint64_t charged_ns; /* part of it that was charged at once */
    /* why some part is reached by copies, or memory of a GPU by its owner only; empty if neither
     * is, or if there are no other ranks */
    const char *reason;
    char *reason_text; /* storage for a reason that is not a constant, or NULL */
};

/* Classifies [base, base + size_bytes), size_bytes above 0, and promotes what it may. others: the
 * window has other ranks. ORIEL_E_NO_MEM; ORIEL_E_BASE if it is a GPU's memory that was freed or
 * exceeds its allocation; ORIEL_E_OTHER if the GPU has failed. */
enum oriel_status oriel_user_memory_open(uintptr_t base, uint64_t size_bytes, bool others,
                                         struct oriel_user_memory **out);

/* Mark the creation of the window and the start of its end. Ranks wait for each other's promotions
 * before and after; that time is not part of the window's lifetime. No effect for NULL. */
void oriel_user_memory_begin(struct oriel_user_memory *memory, int32_t ranks);
void oriel_user_memory_end(struct oriel_user_memory *memory);

/* Releases the references: no other process may access the memory any more. No effect for NULL.
 * Returns the number of bytes that the program has unmapped or replaced meanwhile; they are left
 * alone. */
uint64_t oriel_user_memory_close(struct oriel_user_memory *memory);

/* Appends why other ranks have no faster path, unless the text has it already. */
void oriel_user_memory_reason(const struct oriel_user_memory *memory, char *text, size_t room);

/* The ORIEL_PATH_* of all its parts. */
unsigned oriel_user_memory_paths(const struct oriel_user_memory *memory);

#endif
