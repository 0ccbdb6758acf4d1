/* The host MPIs that Oriel supports, and detection of the host of a launcher (program_host.h has
 * that of a program). The table of hosts is constant. A host's name is its folder's name under
 * lib/oriel. MPI's standard ABI is a host without a launcher of its own. */
#ifndef ORIEL_CLI_HOSTS_H
#define ORIEL_CLI_HOSTS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct oriel_host {
    const char *name;  /* "mpich" */
    const char *title; /* "MPICH" */
    /* Its launcher, if it has one, sets at least one of these; NULL-terminated. */
    const char *variables[6];
};

/* An MPI with the interface of a host. */
struct oriel_interface {
    const char *soname; /* of its C library; a pattern of fnmatch */
    const char *host;
    const char *title; /* of the MPI: "Cray MPICH" */
    bool is_tested;    /* false: expected to work, not tested */
};

extern const struct oriel_interface oriel_interfaces[];
extern const size_t oriel_interfaces_count;

/* Returns the interface that a C library of this name has, or NULL. */
const struct oriel_interface *oriel_interface_of(const char *soname);

extern const struct oriel_host oriel_hosts[];
extern const size_t oriel_hosts_count;

/* Returns the host of that name, or NULL. */
const struct oriel_host *oriel_host_named(const char *name);

/* Returns the title of the host of that name; the name if there is none. */
const char *oriel_host_title(const char *name);

enum { ORIEL_HOST_TEXT = 192 };

/* The title of a job's host. Of the standard ABI, with the MPI that implements it, unless version
 * is "": "MPI's standard ABI, MPICH 5.0.2". Returns out. */
const char *oriel_host_text(const char *name, const char *version, char out[ORIEL_HOST_TEXT]);

/* Returns the host whose launcher set this process's environment, or NULL for none. Exits with a
 * message when two launchers did. */
const struct oriel_host *oriel_host_of_launcher(void);

/* Returns the only host with a launcher and an installed liboriel.so, or NULL for none or
 * several. */
const struct oriel_host *oriel_host_only_built(void);

/* Writes the path of the named Oriel library ("liboriel.so") for the host; false when that file is
 * not readable. */
bool oriel_host_library(const struct oriel_host *host, const char *name, char out[PATH_MAX]);

#endif
