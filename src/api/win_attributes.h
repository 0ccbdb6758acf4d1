/* Notes that the host's handle of a window is not as it was made.  win_attributes.c has it; the hosts' names.c call, for Fortran. */
#ifndef ORIEL_API_WIN_ATTRIBUTES_H
#define ORIEL_API_WIN_ATTRIBUTES_H

#include <mpi.h>
#include <stdbool.h>

/* Before the host changes it.  False: it is no window, nor one of the host's. */
bool oriel_mark(MPI_Win win);

#endif
