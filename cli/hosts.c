/* Detects hosts by the names of their libraries and their launchers' variables. An ambiguous case
 * is an error with a message; the command never guesses. */
#include "cli/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* MPICH derivatives have its binary interface under the name libmpi.so.12. */
const struct oriel_host oriel_hosts[] = {
    {
        .name = "mpich",
        .title = "MPICH",
        .sonames = {"libmpich.so.12", "libmpi.so.12"},
        .variables = {"PMI_RANK", "PMI_FD", "MPI_LOCALNRANKS", "HYDI_CONTROL_FD"},
    },
    {
        .name = "openmpi",
        .title = "Open MPI",
        .sonames = {"libmpi.so.40"},
        .variables = {"OMPI_COMM_WORLD_SIZE", "OMPI_UNIVERSE_SIZE"},
    },
};
const size_t oriel_hosts_count = sizeof oriel_hosts / sizeof oriel_hosts[0];

static bool list_has(const char *const *list, const char *word)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

const struct oriel_host *oriel_host_named(const char *name)
{
    for (size_t i = 0; i < oriel_hosts_count; i++)
        if (strcmp(oriel_hosts[i].name, name) == 0)
            return &oriel_hosts[i];
    return NULL;
}

bool oriel_host_owns(const char *soname)
{
    /* Exact stems, because tools often have names such as libmpi-something. */
    static const char *const stems[] = {
        "libmpi",           "libmpich",     "libmpichcxx",   "libmpichfort",
        "libmpichf90",      "libmpicxx",    "libmpifort",    "libmpi_cxx",
        "libmpi_java",      "libmpi_mpifh", "libmpi_usempi", "libmpi_usempi_ignore_tkr",
        "libmpi_usempif08", NULL,
    };
    char stem[64];
    const char *end = strstr(soname, ".so");
    if (end == NULL || (size_t)(end - soname) >= sizeof stem)
        return false;
    snprintf(stem, sizeof stem, "%.*s", (int)(end - soname), soname);
    return list_has(stems, stem);
}

static const struct oriel_host *host_by_soname(const char *soname)
{
    for (size_t i = 0; i < oriel_hosts_count; i++)
        if (list_has(oriel_hosts[i].sonames, soname))
            return &oriel_hosts[i];
    return NULL;
}

/* True for a library with a host's name and a version number that no supported host has. */
static bool is_unknown_host(const char *soname)
{
    return strncmp(soname, "libmpich.so", 11) == 0 || strncmp(soname, "libmpi.so", 9) == 0;
}

const struct oriel_host *oriel_host_of_program(const struct oriel_program *program)
{
    const struct oriel_host *found = NULL;
    const struct oriel_library *found_library = NULL;
    for (size_t i = 0; i < program->libraries_count; i++) {
        const struct oriel_library *library = &program->libraries[i];
        const struct oriel_host *host = host_by_soname(library->soname);
        if (host == NULL && is_unknown_host(library->soname))
            oriel_die("%s uses %s, a host MPI that Oriel does not support (supported: MPICH from "
                      "version 4 on, Open MPI from version 4 on); %s [O1]",
                      program->path, library->soname, program->advice);
        if (host == NULL)
            continue;
        if (found != NULL && found != host)
            oriel_die("%s uses two host MPIs, through %s and %s [O7]", program->path,
                      found_library->soname, library->soname);
        found = host;
        found_library = library;
    }
    return found;
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
        if (!oriel_host_library(&oriel_hosts[i], "liboriel.so", path))
            continue;
        if (found != NULL)
            return NULL;
        found = &oriel_hosts[i];
    }
    return found;
}
