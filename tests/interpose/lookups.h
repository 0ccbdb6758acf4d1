/* Declarations that lookups.c shares with the libraries that it loads. */
#ifndef TESTS_INTERPOSE_LOOKUPS_H
#define TESTS_INTERPOSE_LOOKUPS_H

#include <mpi.h>

enum { ALONE = 77 }; /* returned by the MPI_Put of the library without MPI */

#endif
