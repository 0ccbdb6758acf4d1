/* Properties that the host keeps per window handle: attributes, a name, an error handler. All calls
 * go to the host. Each first marks the window, since such a handle is not reused for another window
 * (host/carrier.c). The handle of a freed window is rejected: the next window may have it. */
#include "api/api.h"
#include "api/win_attributes.h"
#include "window/handle.h"
#include "window/host_objects.h"

#include <string.h>

bool oriel_win_attributes_mark(MPI_Win win, enum oriel_carrier_change change)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (window == NULL)
        return oriel_handle_is_forwarded(win);
    atomic_fetch_or_explicit(&window->host->changes, change, memory_order_release);
    return true;
}

int oriel_entry_Win_set_attr(MPI_Win win, int win_keyval, void *attribute_val)
{
    return oriel_win_attributes_mark(win, ORIEL_CARRIER_ATTRIBUTED)
               ? oriel_host()->Win_set_attr(win, win_keyval, attribute_val)
               : oriel_error_not_a_window("MPI_Win_set_attr");
}

int oriel_entry_Win_set_name(MPI_Win win, const char *win_name)
{
    return oriel_win_attributes_mark(win, ORIEL_CARRIER_NAMED)
               ? oriel_host()->Win_set_name(win, win_name)
               : oriel_error_not_a_window("MPI_Win_set_name");
}

/* MPI_WIN_NULL has a name from MPI-4.1 on (7.8), which older hosts do not know. */
int oriel_entry_Win_get_name(MPI_Win win, char *win_name, int *resultlen)
{
    static const char null_name[] = "MPI_WIN_NULL";
    if (win != MPI_WIN_NULL)
        return oriel_host()->Win_get_name(win, win_name, resultlen);
    memcpy(win_name, null_name, sizeof null_name);
    *resultlen = (int)sizeof null_name - 1;
    return MPI_SUCCESS;
}

int oriel_entry_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler)
{
    return oriel_win_attributes_mark(win, ORIEL_CARRIER_NAMED)
               ? oriel_host()->Win_set_errhandler(win, errhandler)
               : oriel_error_not_a_window("MPI_Win_set_errhandler");
}
