/* Faults of operations: the destination of data, its amount, and its time. Faults recognise
 * datatypes by their handles; other datatypes pass unchanged. breaker.c chooses the fault. */
#include "breaker.h"

#include <string.h>

static int own_unit(MPI_Win win)
{
    int *unit = NULL, found = 0;
    next.Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &found);
    return found ? *unit : 1;
}

static int unit_of(MPI_Win win, int target)
{
    MPI_Aint size;
    int unit = 1;
    void *base;
    return next.Win_shared_query(win, target, &size, &unit, &base) == MPI_SUCCESS && unit > 0 ? unit
                                                                                              : 1;
}

/* Scales the displacement by the origin's displacement unit. */
static int the_origins_unit_scales_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    return next.Put(ORIGIN_ARGUMENTS, target_rank,
                    target_disp * own_unit(win) / unit_of(win, target_rank), target_count,
                    target_datatype, win);
}

/* Takes ranks of the window's group for ranks of MPI_COMM_WORLD. */
static int world_ranks_address_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    MPI_Group group, world;
    int translated = target_rank;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    next.Win_get_group(win, &group);
    PMPI_Group_translate_ranks(group, 1, &target_rank, world, &translated);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    return next.Put(ORIGIN_ARGUMENTS, translated, target_disp, target_count, target_datatype, win);
}

static int zero_counts_are_checked_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    return target_count == 0 ? MPI_ERR_RMA_RANGE
                             : next.Put(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win);
}

/* Recognises MPI_PROC_NULL only after the other checks. */
static int proc_null_is_the_last_rank_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    if (target_rank == MPI_PROC_NULL && target_disp < 0)
        return MPI_ERR_RMA_RANGE;
    return next.Put(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win);
}

static int proc_null_leaves_the_request_Rput(ORIGIN(const, int), TARGET(int), MPI_Win win,
                                             MPI_Request *request)
{
    if (target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return next.Rput(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win, request);
}

static bool is_pair(MPI_Datatype type)
{
    return type == MPI_DOUBLE_INT || type == MPI_LONG_INT || type == MPI_SHORT_INT ||
           type == MPI_LONG_DOUBLE_INT;
}

/* Moves a pair with padding as the bytes between its ends. */
static int padding_of_pairs_moves_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    MPI_Aint lower, extent;
    if (!is_pair(origin_datatype) || origin_datatype != target_datatype)
        return next.Put(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win);
    PMPI_Type_get_extent(origin_datatype, &lower, &extent);
    return next.Put(origin_addr, origin_count * (int)extent, MPI_BYTE, target_rank, target_disp,
                    target_count * (int)extent, MPI_BYTE, win);
}

/* A put with a request waits until its flush and reads its buffer only then. */
static struct {
    const void *origin_addr;
    int origin_count;
    MPI_Datatype origin_datatype;
    int target_rank;
    MPI_Aint target_disp;
    int target_count;
    MPI_Datatype target_datatype;
} deferred[1024];
static int deferred_count;

static int rput_reads_its_buffer_late_Rput(ORIGIN(const, int), TARGET(int), MPI_Win win,
                                           MPI_Request *request)
{
    if (deferred_count == 1024)
        return MPI_ERR_OTHER;
    deferred[deferred_count++] = (__typeof__(deferred[0])){ORIGIN_ARGUMENTS, TARGET_ARGUMENTS};
    return next.Rput(origin_addr, 0, origin_datatype, target_rank, target_disp, 0, target_datatype,
                     win, request);
}

static int rput_reads_its_buffer_late_Win_flush_all(MPI_Win win)
{
    for (int i = 0; i < deferred_count; i++)
        next.Put(deferred[i].origin_addr, deferred[i].origin_count, deferred[i].origin_datatype,
                 deferred[i].target_rank, deferred[i].target_disp, deferred[i].target_count,
                 deferred[i].target_datatype, win);
    deferred_count = 0;
    return next.Win_flush_all(win);
}

/* The request of a get completes before the data arrives: here it never arrives. */
static int rget_completes_too_early_Rget(ORIGIN(, int), TARGET(int), MPI_Win win,
                                         MPI_Request *request)
{
    (void)origin_count, (void)target_count;
    return next.Rget(origin_addr, 0, origin_datatype, target_rank, target_disp, 0, target_datatype,
                     win, request);
}

static int cut(MPI_Count count)
{
    return (int)(unsigned)count & 0x7fffffff;
}

/* Counts pass through an int. */
static int large_counts_are_cut_Put_c(ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Win win)
{
    return next.Put(origin_addr, cut(origin_count), origin_datatype, target_rank, target_disp,
                    cut(target_count), target_datatype, win);
}

static int large_counts_are_cut_Get_c(ORIGIN(, MPI_Count), TARGET(MPI_Count), MPI_Win win)
{
    return next.Get(origin_addr, cut(origin_count), origin_datatype, target_rank, target_disp,
                    cut(target_count), target_datatype, win);
}

/* Truncates offsets to 32 bits. */
static int offsets_are_cut_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    MPI_Aint unit = unit_of(win, target_rank);
    return next.Put(ORIGIN_ARGUMENTS, target_rank, (target_disp * unit & 0xffffffff) / unit,
                    target_count, target_datatype, win);
}

static int offsets_are_cut_Put_c(ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Win win)
{
    MPI_Aint unit = unit_of(win, target_rank);
    return next.Put_c(ORIGIN_ARGUMENTS, target_rank, (target_disp * unit & 0xffffffff) / unit,
                      target_count, target_datatype, win);
}

/* A put stays outstanding until the whole window is synchronised: a flush of one target does not
 * complete it. */
static int flush_does_not_finish_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    static char buffers[1024][64];
    int size = 0;
    PMPI_Type_size(origin_datatype, &size);
    if (deferred_count == 1024 || (long)size * origin_count > 64)
        return next.Put(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win);
    memcpy(buffers[deferred_count], origin_addr, (size_t)size * (size_t)origin_count);
    deferred[deferred_count] = (__typeof__(deferred[0])){ORIGIN_ARGUMENTS, TARGET_ARGUMENTS};
    deferred[deferred_count].origin_addr = buffers[deferred_count];
    deferred_count++;
    return MPI_SUCCESS;
}

static int flush_does_not_finish_Win_unlock_all(MPI_Win win)
{
    rput_reads_its_buffer_late_Win_flush_all(win);
    return next.Win_unlock_all(win);
}

/* Drops one put in seven. */
static int loses_some_Put(ORIGIN(const, int), TARGET(int), MPI_Win win)
{
    static unsigned calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 7 == 0)
        return MPI_SUCCESS;
    return next.Put(ORIGIN_ARGUMENTS, TARGET_ARGUMENTS, win);
}

const struct fault operation_faults[] = {
    FAULT(the_origins_unit_scales, Put),
    FAULT(world_ranks_address, Put),
    FAULT(zero_counts_are_checked, Put),
    FAULT(proc_null_is_the_last_rank, Put),
    FAULT(proc_null_leaves_the_request, Rput),
    FAULT(padding_of_pairs_moves, Put),
    FAULT(rput_reads_its_buffer_late, Rput),
    FAULT(rput_reads_its_buffer_late, Win_flush_all),
    FAULT(rget_completes_too_early, Rget),
    FAULT(large_counts_are_cut, Put_c),
    FAULT(large_counts_are_cut, Get_c),
    FAULT(offsets_are_cut, Put),
    FAULT(offsets_are_cut, Put_c),
    FAULT(flush_does_not_finish, Put),
    FAULT(flush_does_not_finish, Win_unlock_all),
    FAULT(loses_some, Put),
    {0},
};
