/* Memory handles (include/oriel/ext.h): made, withdrawn, and opened as windows. */
#include "api/api.h"
#include "create/create.h"
#include "create/memory_handle.h"
#include "host/confirm.h"
#include "observe/observe.h"
#include "window/handle.h"

#include <string.h>

_Static_assert(sizeof(struct oriel_memory_handle) == sizeof(MPIX_Memory_handle),
               "each byte of the program's type is checked");

int oriel_entry_Win_memory_handle_create(MPI_Win win, MPI_Aint disp, MPI_Aint size,
                                         MPIX_Memory_handle *handle)
{
    struct oriel_window *window = oriel_handle_find(win);
    struct oriel_memory_handle made;
    if (window == NULL)
        return oriel_error_no_extension("MPIX_Win_memory_handle_create", win);
    enum oriel_status status = handle != NULL
                                   ? oriel_memory_handle_make(window, disp, size, &made)
                                   : oriel_fail(ORIEL_E_ARG, "the handle argument is NULL");
    if (status == ORIEL_OK)
        memcpy(handle, &made, sizeof made);
    return oriel_error_raise(window, "MPIX_Win_memory_handle_create", status);
}

static enum oriel_status handle_read(const MPIX_Memory_handle *handle,
                                     struct oriel_memory_handle *out)
{
    if (handle == NULL)
        return oriel_fail(ORIEL_E_ARG, "the handle argument is NULL");
    memcpy(out, handle, sizeof *out);
    return ORIEL_OK;
}

int oriel_entry_Win_memory_handle_free(MPIX_Memory_handle *handle)
{
    struct oriel_memory_handle given;
    if (oriel_handle_in_child())
        return oriel_error_not_a_window("MPIX_Win_memory_handle_free");
    enum oriel_status status = handle_read(handle, &given);
    if (status == ORIEL_OK)
        status = oriel_memory_handle_free(&given);
    return oriel_error_raise_nowhere("MPIX_Win_memory_handle_free", status);
}

int oriel_entry_Win_memory_open(const MPIX_Memory_handle *handle, MPI_Info info, MPI_Win *win)
{
    struct oriel_memory_handle given;
    struct oriel_window *window = NULL;
    if (oriel_handle_in_child())
        return oriel_error_not_a_window("MPIX_Win_memory_open");
    oriel_host_confirm_once();
    enum oriel_status status = handle_read(handle, &given);
    if (status == ORIEL_OK && win == NULL)
        status = oriel_fail(ORIEL_E_ARG, "the window argument is NULL");
    if (status == ORIEL_OK) {
        oriel_state_open();
        status = oriel_memory_open(&given, info, &window);
    }
    if (status == ORIEL_OK)
        *win = oriel_window_handle(window);
    return oriel_error_raise_nowhere("MPIX_Win_memory_open", status);
}
