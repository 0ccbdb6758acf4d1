/* How messages name a window. */
#ifndef ORIEL_WINDOW_LABEL_H
#define ORIEL_WINDOW_LABEL_H

#include "window/host_objects.h"

/* The name that the program has set, as in 'window "halo"'. Without one, the number of the window
 * among those that its rank 0 has created, and the call: "window 2 (MPI_Win_allocate)". The
 * handle must exist. */
void oriel_window_label(const struct oriel_window *window, char out[ORIEL_WINDOW_LABEL_BYTES]);

/* The MPI function that creates windows of the flavour. */
const char *oriel_window_creator(enum oriel_flavour flavour);

#endif
