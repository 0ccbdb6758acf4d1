/* The name and version of a host MPI, and which versions Oriel is tested with. */
#ifndef ORIEL_BASE_HOST_VERSION_H
#define ORIEL_BASE_HOST_VERSION_H

#include <stdbool.h>
#include <stddef.h>

enum { ORIEL_HOST_VERSION = 128 }; /* bytes for one, in files and shared memory */

/* Writes "MPICH 4.0.2" for a text of MPI_Get_library_version that begins with
 * "MPICH Version:\t4.0.2\n", "Open MPI v4.1.4" for "Open MPI v4.1.4, ...", and
 * "CRAY MPICH version 8.1" for "MPI VERSION    : CRAY MPICH version 8.1\n". */
void oriel_host_version_format(const char *text, char *out, size_t room);

/* Returns false for a version that Oriel is not tested with, and writes "MPICH 4 to 5", the tested
 * ones. MPIs derived from a host have names of their own, and their versions say nothing: true. */
bool oriel_host_version_is_tested(const char *version, char *tested, size_t room);

#endif
