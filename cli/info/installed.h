/* The installed parts for a host MPI: the library that Oriel's library for it loads, else the one
 * that the loader finds, and Oriel's library. A host's library is only loaded in a child process,
 * whose crash or hang does no harm. */
#ifndef ORIEL_CLI_INFO_INSTALLED_H
#define ORIEL_CLI_INFO_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

#include "cli/hosts.h"

struct oriel_installed {
    bool found;              /* the host's library is found, and returned its version */
    char library[PATH_MAX];  /* path of the host's library */
    char version[256];       /* first line of MPI_Get_library_version */
    char refused[256];       /* the loader's or library's error when found is false */
    bool served;             /* liboriel.so for the host is readable */
    char liboriel[PATH_MAX]; /* path of liboriel.so, whether it exists or not */
};

void oriel_installed_find(const struct oriel_host *host, struct oriel_installed *out);

/* Writes the first line of what the library's MPI_Get_library_version returns; "" without one. */
void oriel_library_version_find(const char *library, char out[256]);

#endif
