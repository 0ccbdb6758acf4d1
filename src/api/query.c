/* Queries of a window: group, info, predefined attributes, shared addresses (MPI-4.1, 13.2). The
 * host answers all other queries of the handle. */
#include "api/api.h"
#include "api/query.h"
#include "create/path_info.h"
#include "rma/device_buffers.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <limits.h>

int oriel_entry_Win_get_group(MPI_Win win, MPI_Group *group)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_get_group(win, group)
                                              : oriel_error_not_a_window("MPI_Win_get_group");
    /* excludes no rank, so the result is a duplicate */
    if (oriel_host()->Group_excl(window->host->group, 0, NULL, group) == MPI_SUCCESS)
        return MPI_SUCCESS;
    return oriel_error_raise(window, "MPI_Win_get_group",
                             oriel_fail(ORIEL_E_OTHER, "the host cannot copy the group"));
}

int oriel_entry_Win_set_info(MPI_Win win, MPI_Info info)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_set_info(win, info)
                                              : oriel_error_not_a_window("MPI_Win_set_info");
    enum oriel_status status = oriel_hints_update(&window->host->hints, info);
    uint64_t stream;
    if (status == ORIEL_OK && oriel_hints_stream(&window->host->hints, &stream))
        status = oriel_device_name_stream(window, stream);
    return oriel_error_raise(window, "MPI_Win_set_info", status);
}

int oriel_entry_Win_get_info(MPI_Win win, MPI_Info *info_used)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_get_info(win, info_used)
                                              : oriel_error_not_a_window("MPI_Win_get_info");
    const struct oriel_path_info paths = oriel_path_info_get(window);
    return oriel_error_raise(window, "MPI_Win_get_info",
                             oriel_hints_write(&window->host->hints, &paths, info_used));
}

bool oriel_query_attribute(struct oriel_window *window, int win_keyval, void **value)
{
    struct oriel_window_host *host = window->host;
    switch (win_keyval) {
    case MPI_WIN_BASE: *value = window->base; return true;
    case MPI_WIN_SIZE: *value = &host->size_bytes; return true;
    case MPI_WIN_DISP_UNIT: *value = &host->disp_unit; return true;
    case MPI_WIN_CREATE_FLAVOR: *value = &host->create_flavor; return true;
    case MPI_WIN_MODEL: *value = &host->model; return true;
    default: return false;
    }
}

bool oriel_query_attribute_integer(struct oriel_window *window, int win_keyval, MPI_Aint *value)
{
    void *pointer;
    if (!oriel_query_attribute(window, win_keyval, &pointer))
        return false;
    if (win_keyval == MPI_WIN_BASE)
        *value = (MPI_Aint)(uintptr_t)pointer;
    else if (win_keyval == MPI_WIN_SIZE)
        *value = *(MPI_Aint *)pointer;
    else
        *value = *(int *)pointer;
    return true;
}

int oriel_entry_Win_get_attr(MPI_Win win, int win_keyval, void *attribute_val, int *flag)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL && !oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window("MPI_Win_get_attr");
    if (window == NULL || !oriel_query_attribute(window, win_keyval, attribute_val))
        return oriel_host()->Win_get_attr(win, win_keyval, attribute_val, flag);
    *flag = 1;
    return MPI_SUCCESS;
}

/* Whether this process can load from and store to the rank's window. */
static bool is_shared(const struct oriel_window *window, int rank)
{
    return window->targets[rank].placement == ORIEL_PLACEMENT_DIRECT || rank == window->rank;
}

/* In shared memory a part of no bytes has an address, too: MPI_Win_allocate_shared returned it to
 * its own rank, and in one contiguous block all ranks know it. Other memory of no bytes has none.
 */
static bool has_address(const struct oriel_window *window, int rank)
{
    return window->targets[rank].size_bytes > 0 ||
           (window->flavour == ORIEL_FLAVOUR_SHARED &&
            (rank == window->rank || !oriel_hint_is_true(window->host->hints.noncontig)));
}

/* MPI_PROC_NULL selects the lowest rank with memory, or rank 0 if none has any (MPI-4.1,
 * 13.2.4). */
static enum oriel_status shared_query(const struct oriel_window *window, int rank, MPI_Aint *size,
                                      MPI_Aint *disp_unit, void *baseptr)
{
    if (rank == MPI_PROC_NULL) {
        rank = 0;
        while (rank < window->n - 1 &&
               (window->targets[rank].size_bytes == 0 || !is_shared(window, rank)))
            rank++;
        if (window->targets[rank].size_bytes == 0)
            rank = 0;
    }
    if (rank < 0 || rank >= window->n)
        return oriel_fail(ORIEL_E_RANK, "rank %d is outside the window (ranks 0 to %d)", rank,
                          window->n - 1);
    const struct oriel_target *target = &window->targets[rank];
    bool shared = is_shared(window, rank) && has_address(window, rank);
    *size = shared ? (MPI_Aint)target->size_bytes : 0;
    *disp_unit = (MPI_Aint)target->disp_unit;
    if (!shared)
        *(void **)baseptr = NULL;
    else if (rank == window->rank)
        *(void **)baseptr = window->base;
    else
        *(void **)baseptr = oriel_window_direct(window, rank, 0);
    return ORIEL_OK;
}

int oriel_entry_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit,
                                   void *baseptr)
{
    int narrow = 0;
    struct oriel_window *window = oriel_handle_find(win);
    if (window != NULL)
        return oriel_error_raise(window, "MPI_Win_shared_query",
                                 shared_query(window, rank, size, disp_unit, baseptr));
    if (!oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window("MPI_Win_shared_query");
    if (oriel_host()->Win_shared_query_c != NULL)
        return oriel_host()->Win_shared_query_c(win, rank, size, disp_unit, baseptr);
    int code = oriel_host()->Win_shared_query(win, rank, size, &narrow, baseptr);
    *disp_unit = narrow;
    return code;
}

int oriel_entry_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit,
                                 void *baseptr)
{
    MPI_Aint wide = 0;
    int code = oriel_entry_Win_shared_query_c(win, rank, size, &wide, baseptr);
    if (code == MPI_SUCCESS)
        *disp_unit = (int)wide;
    return code;
}
