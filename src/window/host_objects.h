/* The host's objects of a window, kept apart from window.h so that sync/ and the data path need no mpi.h.  Made by creation,
 * given back by free; api/ and window/ use them. */
#ifndef ORIEL_WINDOW_HOST_OBJECTS_H
#define ORIEL_WINDOW_HOST_OBJECTS_H

#include "window/hints.h"
#include "window/window.h"

#include <mpi.h>

struct oriel_window_host {
    MPI_Win handle; /* the carrier */
    _Atomic bool
        is_marked; /* the program has given the handle an attribute, a name or an error handler */
    MPI_Group group;
    struct oriel_hints hints;
    char name[MPI_MAX_OBJECT_NAME]; /* as it was when the window's end began */
    char no_cma[160]; /* why the kernel refuses this rank copies; empty when it does not */
    /* what the predefined attributes point to (MPI-4.1, 13.2.6) */
    MPI_Aint size_bytes;
    int disp_unit;
    int create_flavor;
    int model;
};

#endif
