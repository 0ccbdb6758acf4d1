/* MPI_Put, MPI_Get and their request-based and large-count forms (MPI-4.1, 13.3.1, 13.3.2, 13.3.6).  The plain form with one
 * datatype on both sides is the fast path; all share one body.  Programs call, through entries.c. */
#include "api/api.h"
#include "api/check.h"
#include "api/elsewhere.h"
#include "window/handle.h"

static inline int put(struct oriel_window *window, const char *call, const void *origin, const struct oriel_sides *sides)
{
    struct oriel_span span;
    if (oriel_unlikely(sides->target_rank == MPI_PROC_NULL))
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_transfer(window, sides, true, &span);
    if (oriel_likely(status == ORIEL_OK))
        status = oriel_put(window, &span, origin);
    return oriel_error_raise(window, call, status);
}

static inline int get(struct oriel_window *window, const char *call, void *origin, const struct oriel_sides *sides)
{
    struct oriel_span span;
    if (oriel_unlikely(sides->target_rank == MPI_PROC_NULL))
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_transfer(window, sides, false, &span);
    if (oriel_likely(status == ORIEL_OK))
        status = oriel_get(window, &span, origin);
    return oriel_error_raise(window, call, status);
}

int oriel_entry_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)
                   : oriel_error_not_a_window("MPI_Put");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return put(window, "MPI_Put", origin_addr, &sides);
}

int oriel_entry_Put_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Put_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Put_c != NULL))
        return oriel_host()->Put_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Put(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, win)
                   : oriel_error_large_count("MPI_Put_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return put(window, "MPI_Put_c", origin_addr, &sides);
}

int oriel_entry_Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request)
                   : oriel_error_not_a_window("MPI_Rput");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return oriel_complete_request(window, "MPI_Rput", put(window, "MPI_Rput", origin_addr, &sides), request);
}

int oriel_entry_Rput_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Rput_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Rput_c != NULL))
        return oriel_host()->Rput_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Rput(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, win, request)
                   : oriel_error_large_count("MPI_Rput_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return oriel_complete_request(window, "MPI_Rput_c", put(window, "MPI_Rput_c", origin_addr, &sides), request);
}

int oriel_entry_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)
                   : oriel_error_not_a_window("MPI_Get");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return get(window, "MPI_Get", origin_addr, &sides);
}

int oriel_entry_Get_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Get_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Get_c != NULL))
        return oriel_host()->Get_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Get(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, win)
                   : oriel_error_large_count("MPI_Get_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return get(window, "MPI_Get_c", origin_addr, &sides);
}

int oriel_entry_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Rget(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request)
                   : oriel_error_not_a_window("MPI_Rget");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return oriel_complete_request(window, "MPI_Rget", get(window, "MPI_Rget", origin_addr, &sides), request);
}

int oriel_entry_Rget_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL && !oriel_handle_is_forwarded(win)))
        return oriel_error_not_a_window("MPI_Rget_c");
    if (oriel_unlikely(window == NULL && oriel_host()->Rget_c != NULL))
        return oriel_host()->Rget_c(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win, request);
    if (oriel_unlikely(window == NULL))
        return oriel_counts_fit_int(origin_count, target_count, 0)
                   ? oriel_host()->Rget(origin_addr, (int)origin_count, origin_datatype, target_rank, target_disp, (int)target_count, target_datatype, win, request)
                   : oriel_error_large_count("MPI_Rget_c");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return oriel_complete_request(window, "MPI_Rget_c", get(window, "MPI_Rget_c", origin_addr, &sides), request);
}
