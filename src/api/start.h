/* The failures of persistent requests (host/persistent.h), for the functions that complete them. */
#ifndef ORIEL_API_START_H
#define ORIEL_API_START_H

#include "host/persistent.h"

/* After a function of the host has completed the request: raises its failure on its window, if it
 * has one, and outputs the class. Returns whether it has. */
bool oriel_persistent_raise(const char *call, MPI_Request request, int *error_class);

#endif
