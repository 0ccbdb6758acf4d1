/* The predefined attributes for the hosts' own getters, which Fortran uses. */
#ifndef ORIEL_API_QUERY_H
#define ORIEL_API_QUERY_H

#include "window/window.h"

#include <mpi.h>

/* A predefined attribute as MPI_Win_get_attr returns it in C; false for any other key. */
bool oriel_query_attribute(struct oriel_window *window, int win_keyval, void **value);

/* The same as an integer, as in Fortran. */
bool oriel_query_attribute_integer(struct oriel_window *window, int win_keyval, MPI_Aint *value);

#endif
