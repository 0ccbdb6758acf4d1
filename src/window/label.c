/* Asks the host for the name: the program may change it at any time. */
#include "window/label.h"

#include "host/host.h"

#include <stdio.h>

const char *oriel_window_creator(enum oriel_flavour flavour)
{
    static const char *const calls[] = {
        [ORIEL_FLAVOUR_CREATE] = "MPI_Win_create",
        [ORIEL_FLAVOUR_ALLOCATE] = "MPI_Win_allocate",
        [ORIEL_FLAVOUR_SHARED] = "MPI_Win_allocate_shared",
        [ORIEL_FLAVOUR_DYNAMIC] = "MPI_Win_create_dynamic",
    };
    return calls[flavour];
}

void oriel_window_label(const struct oriel_window *window, char out[ORIEL_WINDOW_LABEL_BYTES])
{
    char name[MPI_MAX_OBJECT_NAME] = "";
    int name_bytes = 0;
    if (oriel_host()->Win_get_name(window->host->handle, name, &name_bytes) == MPI_SUCCESS &&
        name[0] != '\0')
        snprintf(out, ORIEL_WINDOW_LABEL_BYTES, "window \"%s\"", name);
    else
        snprintf(out, ORIEL_WINDOW_LABEL_BYTES, "window %lu (%s)",
                 (unsigned long)window->host->number,
                 window->holding != NULL ? "MPIX_Win_memory_open"
                                         : oriel_window_creator(window->flavour));
}
