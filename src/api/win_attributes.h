/* Records that the host's handle of a window has been modified. */
#ifndef ORIEL_API_WIN_ATTRIBUTES_H
#define ORIEL_API_WIN_ATTRIBUTES_H

#include "host/host.h"

#include <mpi.h>
#include <stdbool.h>

/* Before the host changes it. Returns false if it is neither a window nor one of the host's. */
bool oriel_win_attributes_mark(MPI_Win win, enum oriel_carrier_change change);

#endif
