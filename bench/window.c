/* Windows of the benchmark's MPI program: one for each pattern, of each kind of memory, and their
 * buffers. Window memory begins on a page of its own, or at the run's alignment, and ends in a
 * guard. */
#include "rma.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *pages(size_t len_bytes)
{
    void *block = aligned_alloc(4096, (len_bytes + 4095) / 4096 * 4096);
    if (!block)
        rma_fail("out of memory");
    memset(block, 0, len_bytes);
    return block;
}

/* Hosts ignore the key. */
static MPI_Info info_make(int counters)
{
    MPI_Info info = MPI_INFO_NULL;
    char text[16];

    if (counters > 0) {
        snprintf(text, sizeof text, "%d", counters);
        MPI_Info_create(&info);
        MPI_Info_set(info, "oriel_notifications", text);
    }
    return info;
}

static void window_open_dynamic(struct rma_run *run, size_t len_bytes, MPI_Info info)
{
    MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &run->win);
    MPI_Alloc_mem((MPI_Aint)len_bytes, MPI_INFO_NULL, &run->base);
    memset(run->base, 0, len_bytes);
    MPI_Win_attach(run->win, run->base, (MPI_Aint)len_bytes);
}

void rma_window_open(struct rma_run *run, size_t len_bytes)
{
    const MPI_Aint len = (MPI_Aint)len_bytes;
    MPI_Info info = info_make(run->pattern->counters);

    run->block = run->base = NULL;
    switch (run->memory) {
    case RMA_ALLOCATE: MPI_Win_allocate(len, 1, info, MPI_COMM_WORLD, &run->base, &run->win); break;
    case RMA_SHARED:
        MPI_Win_allocate_shared(len, 1, info, MPI_COMM_WORLD, &run->base, &run->win);
        break;
    case RMA_DYNAMIC: window_open_dynamic(run, len_bytes, info); break;
    case RMA_CREATE:
    default:
        run->base = run->block = pages(len_bytes);
        MPI_Win_create(run->base, len, 1, info, MPI_COMM_WORLD, &run->win);
        break;
    }
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    run->mine = run->base;
}

void rma_window_exchange(struct rma_run *run)
{
    MPI_Aint address;

    memset(run->begin, 0, sizeof run->begin);
    if (run->memory != RMA_DYNAMIC)
        return;
    MPI_Get_address(run->base, &address); /* displacements are addresses */
    MPI_Allgather(&address, 1, MPI_AINT, run->begin, 1, MPI_AINT, MPI_COMM_WORLD);
}

void rma_window_close(struct rma_run *run)
{
    if (run->memory == RMA_DYNAMIC)
        MPI_Win_detach(run->win, run->base);
    MPI_Win_free(&run->win);
    if (run->memory == RMA_DYNAMIC)
        MPI_Free_mem(run->base);
    free(run->block);
}

/* Moves `mine` to its alignment, and exchanges the displacements. */
static void run_align(struct rma_run *run, size_t offset_bytes)
{
    const size_t found = (size_t)((uintptr_t)run->base % RMA_HUGE_BYTES);
    MPI_Aint shift = (MPI_Aint)((offset_bytes + RMA_HUGE_BYTES - found) % RMA_HUGE_BYTES),
             shifts[RMA_RANKS];

    run->mine = (char *)run->base + shift;
    MPI_Allgather(&shift, 1, MPI_AINT, shifts, 1, MPI_AINT, MPI_COMM_WORLD);
    for (int rank = 0; rank < run->ranks; rank++)
        run->begin[rank] += shifts[rank];
}

void rma_run_open(struct rma_run *run)
{
    const struct rma_pattern *pattern = run->pattern;
    size_t len_bytes;

    run->span_bytes = pattern->span ? pattern->span(run) : RMA_SLOTS * sizeof(uint64_t);
    run->origin_type = run->target_type = MPI_DATATYPE_NULL;
    run->to = run->from = MPI_GROUP_NULL;
    len_bytes = run->span_bytes + RMA_GUARD_BYTES + (run->place ? RMA_HUGE_BYTES : 0);
    if (len_bytes < RMA_LEAST_BYTES)
        len_bytes = RMA_LEAST_BYTES; /* typical of programs: memory that malloc maps separately */
    /* for other sizes MPICH 4.0.2 loses puts of 8 bytes to allocated memory */
    len_bytes = (len_bytes + 4095) / 4096 * 4096;
    run->buffer = run->buffer_block = pages(run->span_bytes + RMA_GUARD_BYTES);
    rma_window_open(run, len_bytes);
    rma_window_exchange(run);
    if (run->place)
        run_align(run, (size_t)run->place->offset_bytes);
    if (pattern->setup)
        pattern->setup(run);
}

void rma_run_close(struct rma_run *run)
{
    MPI_Datatype *types[] = {&run->origin_type, &run->target_type};
    MPI_Group *groups[] = {&run->to, &run->from};

    for (int i = 0; i < 2; i++) {
        if (*types[i] != MPI_DATATYPE_NULL)
            MPI_Type_free(types[i]);
        if (*groups[i] != MPI_GROUP_NULL)
            MPI_Group_free(groups[i]);
    }
    if (run->pattern->finish)
        run->pattern->finish(run);
    rma_window_close(run);
    free(run->buffer_block);
}

MPI_Group rma_group_make(const int *ranks, int count)
{
    MPI_Group all, group;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks, &group);
    MPI_Group_free(&all);
    return group;
}

/* Rank 1's info, distributed to all ranks. */
static bool info_of_target(const struct rma_run *run, const char *key, char *out, size_t size)
{
    MPI_Info info;
    int known;

    memset(out, 0, size);
    MPI_Win_get_info(run->win, &info);
    MPI_Info_get(info, key, (int)size - 1, out, &known);
    MPI_Info_free(&info);
    MPI_Bcast(out, (int)size, MPI_CHAR, 1, MPI_COMM_WORLD);
    return out[0] != '\0';
}

void rma_path_print(const struct rma_run *run, const char *name)
{
    char text[256];

    if (info_of_target(run, "oriel_memory", text, sizeof text) && run->rank == 0)
        printf("path %s %s\n", name, text);
    if (info_of_target(run, "oriel_memory_reason", text, sizeof text) && run->rank == 0)
        printf("reason %s %s\n", name, text);
}
