/* What of a host MPI this machine has: its library as the loader finds it, and Oriel's library for it.
 * A host's library is only ever loaded in a child process, which may crash or hang without harm.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_INFO_INSTALLED_H
#define ORIEL_CLI_INFO_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

#include "cli/hosts.h"

struct oriel_installed {
    bool found;             /* the loader finds the host's library and its version could be asked */
    char library[PATH_MAX]; /* its path */
    char version[256];      /* the first line of what MPI_Get_library_version says */
    char refused[256];      /* why it was not found, in the loader's words */
    bool served;            /* liboriel.so for the host can be read */
    char liboriel[PATH_MAX]; /* where it is, or would be */
};

void oriel_installed_find(const struct oriel_host *host, struct oriel_installed *out);

#endif
