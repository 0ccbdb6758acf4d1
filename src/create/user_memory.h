/* Memory that the program gives to a window, by MPI_Win_create or MPI_Win_attach: which parts of it every process reaches by load
 * and store, since they were allocated so or are shared where they lie (memory/promote/promote.h), which by copies alone, and why.
 * Creation, attachment and their ends call, from any thread. */
#ifndef ORIEL_CREATE_USER_MEMORY_H
#define ORIEL_CREATE_USER_MEMORY_H

#include "memory/promote/promote.h"
#include "memory/promote/registry.h"

#include <stddef.h>

enum { ORIEL_WAY_ARENA = 1, ORIEL_WAY_PROMOTED = 2, ORIEL_WAY_COPY = 4 };

struct oriel_own_memory {
    struct oriel_memory_range
        *stretches; /* in ascending order, without a gap; alike ones that touch are one */
    size_t stretch_count;
    struct oriel_memory_range first_stretch; /* the place of a single one */
    struct oriel_promoted *holds;
    size_t hold_count;
    uint64_t since_ns;
    uint64_t until_ns;   /* 0 until its end has begun */
    int32_t ranks;       /* of the window: so many wait while one of them promotes */
    uint64_t took_ns;    /* to promote */
    uint64_t charged_ns; /* of it */
    const char *
        reason; /* why some part is reached by copies; empty when none is, or when nobody else is there to reach it */
    char *reason_text; /* the place of one that is not always the same, or NULL */
};

/* Looks at [base, base + size_bytes), size_bytes above 0, and promotes what it may; others: the window has other ranks.
 * ORIEL_E_NO_MEM. */
enum oriel_status oriel_own_memory_take(uintptr_t base, uint64_t size_bytes, bool others,
                                        struct oriel_own_memory **out);

/* The window is there, or its end begins: what comes before and after, where ranks wait for each other's promotions, is not the
 * window's life.  NULL is nothing. */
void oriel_own_memory_begin(struct oriel_own_memory *memory, int32_t ranks);
void oriel_own_memory_end(struct oriel_own_memory *memory);

/* Gives up the holds: no other process may access the memory any more.  NULL is nothing.  How many bytes the program has unmapped
 * or replaced meanwhile; they are left alone. */
uint64_t oriel_own_memory_release(struct oriel_own_memory *memory);

/* ORIEL_WAY_* of all its parts. */
unsigned oriel_own_memory_ways(const struct oriel_own_memory *memory);

#endif
