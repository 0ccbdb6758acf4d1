/* Detects hosts by their launchers' variables and Oriel's installed libraries. An ambiguous case is
 * an error with a message; the command never guesses. */
#include "cli/hosts.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

const struct oriel_host oriel_hosts[] = {
    {
        .name = "mpich",
        .title = "MPICH",
        .variables = {"PMI_RANK", "PMI_FD", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD"},
    },
    {
        .name = "openmpi",
        .title = "Open MPI",
        .variables = {"OMPI_COMM_WORLD_SIZE", "OMPI_UNIVERSE_SIZE"},
    },
    {
        .name = "abi",
        .title = "MPI's standard ABI",
    },
};
const size_t oriel_hosts_count = sizeof oriel_hosts / sizeof oriel_hosts[0];

/* A host's own library comes before those of its relatives. Those with MPICH's interface agreed on
 * libmpi.so.12 (the MPICH ABI initiative); Cray's has one for each compiler. */
const struct oriel_interface oriel_interfaces[] = {
    {"libmpich.so.12", "mpich", "MPICH", true},
    {"libmpi.so.12", "mpich", "MPICH, or an MPI with its interface (Intel MPI, MVAPICH)", false},
    {"libmpi_cray.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_gnu*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_intel*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_amd*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_aocc*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_nvidia*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi_pgi*.so.12", "mpich", "Cray MPICH", false},
    {"libmpi.so.40", "openmpi", "Open MPI", true},
    {"libmpi_abi.so.1", "abi", "MPI's standard ABI", true},
};
const size_t oriel_interfaces_count = sizeof oriel_interfaces / sizeof oriel_interfaces[0];

const struct oriel_interface *oriel_interface_of(const char *soname)
{
    for (size_t i = 0; i < oriel_interfaces_count; i++)
        if (fnmatch(oriel_interfaces[i].soname, soname, 0) == 0)
            return &oriel_interfaces[i];
    return NULL;
}

const struct oriel_host *oriel_host_named(const char *name)
{
    for (size_t i = 0; i < oriel_hosts_count; i++)
        if (strcmp(oriel_hosts[i].name, name) == 0)
            return &oriel_hosts[i];
    return NULL;
}

const char *oriel_host_title(const char *name)
{
    const struct oriel_host *host = oriel_host_named(name);
    return host != NULL ? host->title : name;
}

const char *oriel_host_text(const char *name, const char *version, char out[ORIEL_HOST_TEXT])
{
    const bool has_version = strcmp(name, "abi") == 0 && version[0] != '\0';
    snprintf(out, ORIEL_HOST_TEXT, "%s%s%s", oriel_host_title(name), has_version ? ", " : "",
             has_version ? version : "");
    return out;
}

const struct oriel_host *oriel_host_of_launcher(void)
{
    const struct oriel_host *found = NULL;
    for (size_t i = 0; i < oriel_hosts_count; i++) {
        bool is_set = false;
        for (const char *const *name = oriel_hosts[i].variables; *name != NULL; name++)
            is_set = is_set || getenv(*name) != NULL;
        if (is_set && found != NULL)
            oriel_die("the environment has variables of two launchers, %s's and %s's; choose with "
                      "--host %s or --host %s [O7]",
                      found->title, oriel_hosts[i].title, found->name, oriel_hosts[i].name);
        if (is_set)
            found = &oriel_hosts[i];
    }
    return found;
}

bool oriel_host_library(const struct oriel_host *host, const char *name, char out[PATH_MAX])
{
    /* bin/oriel and lib/oriel/<host>/liboriel.so have the same parent, in the build folder and when
     * installed. */
    char *folder = oriel_format("%s", oriel_executable_path());
    for (int up = 0; up < 2; up++)
        *strrchr(folder, '/') = '\0';
    int len = snprintf(out, PATH_MAX, "%s/lib/oriel/%s/%s", folder, host->name, name);
    free(folder);
    if (len >= PATH_MAX)
        oriel_die("the path of Oriel's library is too long: %s", out);
    return access(out, R_OK) == 0;
}

const struct oriel_host *oriel_host_only_built(void)
{
    const struct oriel_host *found = NULL;
    char path[PATH_MAX];
    for (size_t i = 0; i < oriel_hosts_count; i++) {
        const bool has_launcher = oriel_hosts[i].variables[0] != NULL;
        if (!has_launcher || !oriel_host_library(&oriel_hosts[i], "liboriel.so", path))
            continue;
        if (found != NULL)
            return NULL;
        found = &oriel_hosts[i];
    }
    return found;
}
