/* Shared parts of the dynamic window tests: memory of a kind, a window, all ranks' addresses.
 * Displacements are addresses, so each rank distributes the address of its memory. */
#ifndef ORIEL_TESTS_DYNAMIC_H
#define ORIEL_TESTS_DYNAMIC_H

#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { MANY_RANKS = 64, KINDS_MEMORY = KIND_ARENA | KIND_HEAP };

static inline void *memory_make(enum window_kind kind, size_t len_bytes)
{
    void *memory = NULL;
    if (kind == KIND_ARENA)
        MPI_Alloc_mem((MPI_Aint)len_bytes, MPI_INFO_NULL, &memory);
    else
        memory = malloc(len_bytes);
    memset(memory, 0, len_bytes);
    return memory;
}

static inline void memory_free(enum window_kind kind, void *memory)
{
    if (kind == KIND_ARENA)
        MPI_Free_mem(memory);
    else
        free(memory);
}

static inline MPI_Win dynamic_make(MPI_Comm comm)
{
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    window_watch(win);
    return win;
}

/* Each rank's address of an object, by rank. */
static inline void addresses_share(const void *mine, MPI_Aint addresses[MANY_RANKS])
{
    MPI_Aint address;
    MPI_Get_address(mine, &address);
    MPI_Allgather(&address, 1, MPI_AINT, addresses, 1, MPI_AINT, MPI_COMM_WORLD);
}

static inline int next_rank(void)
{
    return (world_rank + 1) % world_size;
}
static inline int previous_rank(void)
{
    return (world_rank + world_size - 1) % world_size;
}

#endif
