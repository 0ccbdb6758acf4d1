/* Which host's interface a program was compiled for, judged by the libraries it loads, and whether
 * Oriel can serve it. Relatives of MPICH have MPICH's interface under other names. */
#ifndef ORIEL_CLI_PROGRAM_HOST_H
#define ORIEL_CLI_PROGRAM_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/hosts.h"
#include "cli/run/program.h"

struct oriel_program_host {
    const struct oriel_host *host;       /* NULL: no library names one */
    const struct oriel_library *library; /* the one that does */
    const struct oriel_interface *interface;
    char *problem; /* NULL, or why Oriel cannot serve it; to be freed */
};

/* Finds the program's host. For an MPI that Oriel is not tested with, it looks up in the library
 * what Oriel calls. */
void oriel_program_host_find(const struct oriel_program *program, struct oriel_program_host *out);

/* Returns the host whose library the program uses, or NULL for none. Exits with a message if Oriel
 * cannot serve the program. */
const struct oriel_host *oriel_host_of_program(const struct oriel_program *program);

/* True for libraries of an MPI itself, including its language bindings; false for tools layered on
 * it. */
bool oriel_host_owns(const char *soname);

#endif
