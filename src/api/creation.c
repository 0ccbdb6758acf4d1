/* MPI_Win_create, _allocate, _allocate_shared, _create_dynamic, their large-count forms, attach and
 * detach, and MPI_Win_free (MPI-4.1, 13.2). If Oriel cannot serve a window, the host creates it and
 * Oriel records its handle as forwarded. */
#include "api/api.h"
#include "api/requests.h"
#include "api/unserved_calls.h"
#include "base/log.h"
#include "base/options.h"
#include "create/attach.h"
#include "create/create.h"
#include "create/memory_handle.h"
#include "create/path_info.h"
#include "host/confirm.h"
#include "internode/origin/liveness.h"
#include "observe/observe.h"
#include "sync/sync.h"
#include "window/handle.h"

#include <limits.h>

/* Whether Oriel may create windows on this communicator; raises an error of the communicator. */
static int check_comm(const char *call, MPI_Comm comm, bool *to_host)
{
    int inter = 0;
    *to_host = false;
    if (oriel_options()->bypass) {
        *to_host = true;
        return MPI_SUCCESS;
    }
    if (oriel_handle_in_child())
        return oriel_error_not_a_window(call);
    oriel_host_confirm_once();
    oriel_unserved_calls_check();
    if (comm == MPI_COMM_NULL)
        return oriel_error_raise_nowhere(
            call, oriel_fail(ORIEL_E_COMM, "the communicator is MPI_COMM_NULL"));
    /* the host raises other errors */
    int code = oriel_host()->Comm_test_inter(comm, &inter);
    if (code == MPI_SUCCESS && inter)
        return oriel_error_raise_comm(
            comm, call, oriel_fail(ORIEL_E_COMM, "the communicator is an intercommunicator"));
    return code;
}

/* Creates the window. *to_host: the caller must call the host's function and then
 * note_forwarded. */
static int create_or_forward(const struct oriel_creation *creation, void *baseptr, MPI_Win *win,
                             bool *to_host)
{
    struct oriel_window *window = NULL;
    int code = check_comm(creation->call, creation->comm, to_host);
    if (code != MPI_SUCCESS || *to_host)
        return code;
    oriel_state_open();
    enum oriel_status status = oriel_window_create(creation, &window, to_host);
    if (status != ORIEL_OK || *to_host)
        return oriel_error_raise_comm(creation->comm, creation->call, status);
    *win = oriel_window_handle(window);
    if (baseptr != NULL)
        *(void **)baseptr = window->base;
    return MPI_SUCCESS;
}

static int note_forwarded(int code, MPI_Win *win)
{
    if (code == MPI_SUCCESS && oriel_handle_add_forwarded(*win) != ORIEL_OK)
        oriel_warn("%s", oriel_fail_message());
    return code;
}

/* The displacement unit of a large-count call for a host that has only the int function. */
static int disp_unit_to_int(MPI_Aint disp_unit)
{
    return disp_unit > INT_MAX ? -1 : (int)disp_unit;
}

int oriel_entry_Win_create_c(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                             MPI_Comm comm, MPI_Win *win)
{
    bool to_host;
    struct oriel_creation creation = {
        "MPI_Win_create", ORIEL_FLAVOUR_CREATE, base, size, disp_unit, info, comm};
    int code = create_or_forward(&creation, NULL, win, &to_host);
    if (!to_host)
        return code;
    code = oriel_host()->Win_create_c != NULL
               ? oriel_host()->Win_create_c(base, size, disp_unit, info, comm, win)
               : oriel_host()->Win_create(base, size, disp_unit_to_int(disp_unit), info, comm, win);
    return note_forwarded(code, win);
}

int oriel_entry_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                           MPI_Win *win)
{
    return oriel_entry_Win_create_c(base, size, disp_unit, info, comm, win);
}

int oriel_entry_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                               void *baseptr, MPI_Win *win)
{
    bool to_host;
    struct oriel_creation creation = {
        "MPI_Win_allocate", ORIEL_FLAVOUR_ALLOCATE, NULL, size, disp_unit, info, comm};
    int code = create_or_forward(&creation, baseptr, win, &to_host);
    if (!to_host)
        return code;
    code = oriel_host()->Win_allocate_c != NULL
               ? oriel_host()->Win_allocate_c(size, disp_unit, info, comm, baseptr, win)
               : oriel_host()->Win_allocate(size, disp_unit_to_int(disp_unit), info, comm, baseptr,
                                            win);
    return note_forwarded(code, win);
}

int oriel_entry_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                             void *baseptr, MPI_Win *win)
{
    return oriel_entry_Win_allocate_c(size, disp_unit, info, comm, baseptr, win);
}

int oriel_entry_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info,
                                      MPI_Comm comm, void *baseptr, MPI_Win *win)
{
    bool to_host;
    struct oriel_creation creation = {
        "MPI_Win_allocate_shared", ORIEL_FLAVOUR_SHARED, NULL, size, disp_unit, info, comm};
    int code = create_or_forward(&creation, baseptr, win, &to_host);
    if (!to_host)
        return code;
    code = oriel_host()->Win_allocate_shared_c != NULL
               ? oriel_host()->Win_allocate_shared_c(size, disp_unit, info, comm, baseptr, win)
               : oriel_host()->Win_allocate_shared(size, disp_unit_to_int(disp_unit), info, comm,
                                                   baseptr, win);
    return note_forwarded(code, win);
}

int oriel_entry_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                                    void *baseptr, MPI_Win *win)
{
    return oriel_entry_Win_allocate_shared_c(size, disp_unit, info, comm, baseptr, win);
}

/* A rank that has died, as far as this process or others have found; or -1. The thread's message
 * names it. */
static int32_t dead_member(const struct oriel_window *window)
{
    uint32_t broken = oriel_load_acquire(&window->common->broken);
    int32_t dead = oriel_liveness_members(window);
    if (dead >= 0 || broken == 0)
        return dead;
    (void)oriel_fail(ORIEL_E_PEER, "rank %d has died [O18]", (int)broken - 1);
    return (int32_t)broken - 1;
}

/* Raises the error while the window exists, and then frees the window. */
static int free_after_death(MPI_Win *win, struct oriel_window *window, int32_t dead)
{
    bool gone;
    int code = oriel_error_raise(window, "MPI_Win_free", ORIEL_E_PEER);
    oriel_requests_window_ends(window);
    oriel_window_abandon(window, dead, &gone);
    if (gone)
        *win = MPI_WIN_NULL;
    return code;
}

/* A window that was opened from a memory handle: no other process takes part. */
static int free_opened(MPI_Win *win, struct oriel_window *window)
{
    bool gone;
    enum oriel_status status = oriel_epochs_closed(window);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, "MPI_Win_free", status);
    oriel_requests_window_ends(window);
    status = oriel_memory_close(window, &gone);
    if (!gone)
        return oriel_error_raise(window, "MPI_Win_free", status);
    *win = MPI_WIN_NULL;
    return MPI_SUCCESS;
}

int oriel_entry_Win_free(MPI_Win *win)
{
    if (win == NULL)
        return oriel_error_not_a_window("MPI_Win_free");
    struct oriel_window *window = oriel_handle_find(*win);
    if (window == NULL) {
        MPI_Win handle = *win;
        if (!oriel_handle_is_forwarded(handle))
            return oriel_error_not_a_window("MPI_Win_free");
        /* NULL when Oriel is bypassed */
        struct oriel_window *forwarded = oriel_handle_forwarded(handle);
        int code = oriel_host()->Win_free(win);
        if (code == MPI_SUCCESS && forwarded != NULL)
            oriel_handle_remove(handle, forwarded);
        return code;
    }
    if (oriel_window_is_opened(window))
        return free_opened(win, window);
    enum oriel_status status = oriel_epochs_closed(window);
    if (status == ORIEL_OK)
        status = oriel_memory_handles_closed(window);
    oriel_window_free_begin(window);
    if (status == ORIEL_OK && !window->parted) {
        window->ending = true;
        status = oriel_barrier(window);
    }
    bool gone;
    /* a death may keep epochs open, which is no error of the program */
    if (status == ORIEL_E_PEER || status == ORIEL_E_SYNC) {
        int32_t dead = dead_member(window);
        if (dead >= 0)
            return free_after_death(win, window, dead);
    }
    if (status != ORIEL_OK)
        return oriel_error_raise(window, "MPI_Win_free", status);
    window->parted = true;
    oriel_requests_window_ends(window);
    status = oriel_window_free(window, &gone);
    if (gone)
        *win = MPI_WIN_NULL;
    return gone ? oriel_error_raise_nowhere("MPI_Win_free", status)
                : oriel_error_raise(window, "MPI_Win_free", status);
}

int oriel_entry_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    bool to_host;
    struct oriel_creation creation = {
        "MPI_Win_create_dynamic", ORIEL_FLAVOUR_DYNAMIC, NULL, 0, 1, info, comm};
    int code = create_or_forward(&creation, NULL, win, &to_host);
    return to_host ? note_forwarded(oriel_host()->Win_create_dynamic(info, comm, win), win) : code;
}

static enum oriel_status attach_checked(struct oriel_window *window, const void *base,
                                        MPI_Aint size)
{
    if (window->flavour != ORIEL_FLAVOUR_DYNAMIC)
        return oriel_fail(ORIEL_E_FLAVOR, "the window is not dynamic");
    if (size < 0)
        return oriel_fail(ORIEL_E_SIZE, "size %ld is negative", (long)size);
    if (base == NULL && size > 0)
        return oriel_fail(ORIEL_E_BASE, "base is NULL, size is %ld", (long)size);
    enum oriel_status status = oriel_attach(window, (uint64_t)(uintptr_t)base, (uint64_t)size);
    if (status == ORIEL_OK)
        oriel_path_info_report_attached(window);
    return status;
}

int oriel_entry_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_attach(win, base, size)
                                              : oriel_error_not_a_window("MPI_Win_attach");
    return oriel_error_raise(window, "MPI_Win_attach", attach_checked(window, base, size));
}

int oriel_entry_Win_detach(MPI_Win win, const void *base)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win) ? oriel_host()->Win_detach(win, base)
                                              : oriel_error_not_a_window("MPI_Win_detach");
    enum oriel_status status = window->flavour == ORIEL_FLAVOUR_DYNAMIC
                                   ? oriel_detach(window, (uint64_t)(uintptr_t)base)
                                   : oriel_fail(ORIEL_E_FLAVOR, "the window is not dynamic");
    return oriel_error_raise(window, "MPI_Win_detach", status);
}
