/* Faults of hosts that tests go around, where only a running program can tell the host: a program
 * of MPI's standard ABI runs on each of them. */
#ifndef TESTS_MPI_HOST_LIMITS_H
#define TESTS_MPI_HOST_LIMITS_H

#include <mpi.h>
#include <stdbool.h>
#include <string.h>

/* Open MPI 6.0 loses messages when several threads communicate. */
static inline bool host_loses_messages_of_threads(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len;
    MPI_Get_library_version(version, &len);
    return strncmp(version, "Open MPI v6", 11) == 0;
}

#endif
