/* MPI_Put, MPI_Get and their request-based and large-count forms (MPI-4.1, 13.3.1, 13.3.2, 13.3.6).  The plain form with one
 * datatype on both sides is the fast path; all share one body.  Programs call, through entries.c. */
#include "api/api.h"
#include "api/check.h"
#include "api/elsewhere.h"
#include "api/fast.h"
#include "transport/shared/copy.h"
#include "window/handle.h"

static int put(struct oriel_window *window, const char *call, const void *origin, const struct oriel_sides *sides)
{
    struct oriel_span target;
    struct oriel_side here;
    if (sides->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_transfer(window, sides, true, &target, &here);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", origin, &here);
    if (status == ORIEL_OK)
        status = oriel_put(window, &target, origin, &here);
    return oriel_error_raise(window, call, status);
}

static int get(struct oriel_window *window, const char *call, void *origin, const struct oriel_sides *sides)
{
    struct oriel_span target;
    struct oriel_side here;
    if (sides->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status = oriel_check_transfer(window, sides, false, &target, &here);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", origin, &here);
    if (status == ORIEL_OK)
        status = oriel_get(window, &target, origin, &here);
    return oriel_error_raise(window, call, status);
}

static __attribute__((noinline)) int put_general(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)
                   : oriel_error_not_a_window("MPI_Put");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return put(window, "MPI_Put", origin_addr, &sides);
}

/* Out of the way of words of 8 bytes, which then need no frame. */
static __attribute__((noinline)) int copy_any(void *to, const void *from, uint64_t len_bytes)
{
    oriel_copy(to, from, len_bytes);
    return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int copy(void *to, const void *from, uint64_t len_bytes)
{
    if (oriel_unlikely(len_bytes != 8))
        return copy_any(to, from, len_bytes);
    oriel_copy(to, from, 8);
    return MPI_SUCCESS;
}

/* The recent window and datatype with a target, a place or a buffer that are not the usual ones. */
static __attribute__((noinline)) int put_unusual(const void *origin_addr, int count, int target_rank, MPI_Aint target_disp)
{
    MPI_Datatype datatype = oriel_fast_datatype();
    struct oriel_sides sides = {count, datatype, target_rank, target_disp, count, datatype};
    return put(oriel_recent.window, "MPI_Put", origin_addr, &sides);
}

int oriel_entry_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    uint64_t len_bytes;
    if (oriel_unlikely(!oriel_fast_known(win, origin_datatype)) || oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != target_count))
        return put_general(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                           target_datatype, win);
    if (oriel_unlikely(origin_addr == NULL) ||
        oriel_unlikely(!oriel_fast_place(target_count, target_rank, target_disp, &there, &len_bytes)))
        return put_unusual(origin_addr, target_count, target_rank, target_disp);
    oriel_recent_mark();
    return copy(there, origin_addr, len_bytes);
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
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rput");
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
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rput_c");
    return oriel_complete_request(window, "MPI_Rput_c", put(window, "MPI_Rput_c", origin_addr, &sides), request);
}

static __attribute__((noinline)) int get_general(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return oriel_handle_is_forwarded(win)
                   ? oriel_host()->Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win)
                   : oriel_error_not_a_window("MPI_Get");
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype};
    return get(window, "MPI_Get", origin_addr, &sides);
}

/* The recent window and datatype with a target, a place or a buffer that are not the usual ones. */
static __attribute__((noinline)) int get_unusual(void *origin_addr, int count, int target_rank, MPI_Aint target_disp)
{
    MPI_Datatype datatype = oriel_fast_datatype();
    struct oriel_sides sides = {count, datatype, target_rank, target_disp, count, datatype};
    return get(oriel_recent.window, "MPI_Get", origin_addr, &sides);
}

int oriel_entry_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    uint64_t len_bytes;
    if (oriel_unlikely(!oriel_fast_known(win, origin_datatype)) || oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != target_count))
        return get_general(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                           target_datatype, win);
    if (oriel_unlikely(origin_addr == NULL) ||
        oriel_unlikely(!oriel_fast_place(target_count, target_rank, target_disp, &there, &len_bytes)))
        return get_unusual(origin_addr, target_count, target_rank, target_disp);
    return copy(origin_addr, there, len_bytes);
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
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rget");
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
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, "MPI_Rget_c");
    return oriel_complete_request(window, "MPI_Rget_c", get(window, "MPI_Rget_c", origin_addr, &sides), request);
}
