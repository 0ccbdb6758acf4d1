/* Faults of info keys: the key that the argument names is unknown, or its value is ignored. The
 * window is created with a copy of the info without the key, and MPI_Win_get_info does not return
 * it. breaker.c chooses the fault. */
#include "breaker.h"

/* A copy of the info without the key, which the caller frees, or MPI_INFO_NULL. */
static MPI_Info without(MPI_Info info)
{
    char value[MPI_MAX_INFO_VAL + 1];
    MPI_Info copy;
    int found = 0;
    if (info == MPI_INFO_NULL)
        return MPI_INFO_NULL;
    PMPI_Info_dup(info, &copy);
    PMPI_Info_get(copy, breaker_argument, MPI_MAX_INFO_VAL, value, &found);
    if (found)
        PMPI_Info_delete(copy, breaker_argument);
    return copy;
}

static int free_and_return(MPI_Info info, int code)
{
    if (info != MPI_INFO_NULL)
        PMPI_Info_free(&info);
    return code;
}

static int info_is_unknown_Win_get_info(MPI_Win win, MPI_Info *info_used)
{
    MPI_Info whole;
    int code = next.Win_get_info(win, &whole);
    if (code != MPI_SUCCESS)
        return code;
    *info_used = without(whole);
    return free_and_return(whole, code);
}

static int info_is_ignored_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info,
                                      MPI_Comm comm, MPI_Win *win)
{
    MPI_Info rest = without(info);
    return free_and_return(rest, next.Win_create(base, size, disp_unit, rest, comm, win));
}

static int info_is_ignored_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                        void *baseptr, MPI_Win *win)
{
    MPI_Info rest = without(info);
    return free_and_return(rest, next.Win_allocate(size, disp_unit, rest, comm, baseptr, win));
}

static int info_is_ignored_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info,
                                               MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    MPI_Info rest = without(info);
    return free_and_return(rest,
                           next.Win_allocate_shared(size, disp_unit, rest, comm, baseptr, win));
}

static int info_is_ignored_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
    MPI_Info rest = without(info);
    return free_and_return(rest, next.Alloc_mem(size, rest, baseptr));
}

static int info_is_ignored_Win_set_info(MPI_Win win, MPI_Info info)
{
    MPI_Info rest = without(info);
    return free_and_return(rest, next.Win_set_info(win, rest));
}

const struct fault info_faults[] = {
    FAULT(info_is_unknown, Win_get_info),
    FAULT(info_is_ignored, Win_create),
    FAULT(info_is_ignored, Win_allocate),
    FAULT(info_is_ignored, Win_allocate_shared),
    FAULT(info_is_ignored, Alloc_mem),
    FAULT(info_is_ignored, Win_set_info),
    {0},
};
