#ifndef ORIEL_TESTS_OBSERVE_LAYER_H
#define ORIEL_TESTS_OBSERVE_LAYER_H

#include <mpi.h>

/* Puts to a rank, and ends the window's epoch with a fence, for which a late rank sleeps first. */
__attribute__((visibility("default"))) void layer_exchange(MPI_Win win, int to, int is_late);

#endif
