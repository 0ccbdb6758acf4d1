/* The end of persistent requests (host/persistent.h), for the functions that complete them. */
#ifndef ORIEL_API_START_H
#define ORIEL_API_START_H

#include "host/persistent.h"

/* After a function of the host has completed the request. If it is a persistent one of Oriel with a
 * failure, raises that on its window, outputs the class and returns true. */
bool oriel_persistent_complete(const char *call, MPI_Request request, int *error_class);

#endif
