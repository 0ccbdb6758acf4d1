/* The host's objects of a window. They are separate from window.h, so sync/ and the data path do
 * not need mpi.h. */
#ifndef ORIEL_WINDOW_HOST_OBJECTS_H
#define ORIEL_WINDOW_HOST_OBJECTS_H

#include "window/hints.h"
#include "window/window.h"

#include <mpi.h>

/* of a name in quotes, or of a number and a call (window/label.h) */
enum { ORIEL_WINDOW_LABEL_BYTES = MPI_MAX_OBJECT_NAME + 64 };

struct oriel_window_host {
    MPI_Win handle; /* the carrier: the host's window that provides the handle */
    _Atomic uint32_t changes; /* enum oriel_carrier_change, by the program */
    MPI_Group group;
    struct oriel_hints hints;
    char label[ORIEL_WINDOW_LABEL_BYTES]; /* saved when freeing the window begins */
    char no_cma[160]; /* why the kernel refuses copies to this rank; empty if it allows them */
    uint64_t number;  /* among the windows that rank 0 of this one has created, from 1 */
    /* values of the predefined attributes (MPI-4.1, 13.2.6) */
    MPI_Aint size_bytes;
    int disp_unit;
    int create_flavor;
    int model;
};

#endif
