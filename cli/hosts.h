/* The host MPIs that Oriel knows, and how to tell which one a program or a launcher belongs to.
 * The table of hosts is constant; a host is named like its folder under lib/oriel.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_HOSTS_H
#define ORIEL_CLI_HOSTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/run/program.h"

struct oriel_host {
    const char *name;  /* "mpich" */
    const char *title; /* "MPICH" */
    const char *
        sonames[4]; /* of its C library, derivatives included; ends with NULL, as the next two do */
    const char *versions[4];  /* exported texts that begin with its version */
    const char *variables[6]; /* of which its launcher sets at least one */
    int tested_major;         /* the major version that Oriel is tested with */
};

extern const struct oriel_host oriel_hosts[];
extern const size_t oriel_hosts_count;

/* The host of that name, or NULL. */
const struct oriel_host *oriel_host_named(const char *name);

/* Whether a library belongs to a host itself, its language bindings included, and is no tool on top of it. */
bool oriel_host_owns(const char *soname);

/* The host whose library is among the program's, or NULL for none. Two hosts in one program and untested versions of
 * a host are refused. */
const struct oriel_host *oriel_host_of_program(const struct oriel_program *program);

/* The host whose launcher set this process's environment, or NULL for none. Both at once are refused. */
const struct oriel_host *oriel_host_of_launcher(void);

/* The only host that liboriel.so is there for, or NULL for none or several. */
const struct oriel_host *oriel_host_only_built(void);

/* Where the library of Oriel with that name is for the host ("liboriel.so"), or would be; false when it cannot be read. */
bool oriel_host_library(const struct oriel_host *host, const char *name, char out[PATH_MAX]);

#endif
