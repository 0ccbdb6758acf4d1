/* Knows launchers by name, and determines which one started this process. Variables alone are not
 * enough: jobs start scripts, scripts start jobs and single programs, and variables pass through
 * all of them. The launcher must therefore be the parent process according to the kernel. Without
 * that evidence no launcher is foreign. */
#include "cli/run/launcher.h"

#include "base/job.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool oriel_launcher_is_named(const char *path)
{
    static const char *const names[] = {"mpiexec", "mpirun",  "mpirun_rsh",
                                        "orterun", "prterun", "srun"};
    const char *base = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i]) == strcspn(base, ".") &&
            strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool variable_read_number(const char *variable, long *out)
{
    const char *text = getenv(variable);
    if (text == NULL || !isdigit((unsigned char)text[0]))
        return false;
    *out = strtol(text, NULL, 10);
    return true;
}

/* Hydra gives each process a socket that it created. The PMI of other launchers (Slurm) has none
 * of Hydra's variables. */
static bool is_child_of_hydra(void)
{
    const char *socket_text = getenv("PMI_FD");
    struct ucred other;
    socklen_t len_bytes = sizeof other;
    return socket_text != NULL && getenv("HYDI_CONTROL_FD") != NULL &&
           getsockopt(atoi(socket_text), SOL_SOCKET, SO_PEERCRED, &other, &len_bytes) == 0 &&
           other.pid > 0 && other.pid == getppid();
}

/* Open MPI's launchers pass nothing that only they could have created. They are recognised by name,
 * with Debian's suffixes. */
static bool is_child_of_orte(void)
{
    static const char *const names[] = {"mpiexec", "mpirun", "orterun", "orted",
                                        "prterun", "prte",   "prted"};
    char name[32];
    if (!oriel_job_parent_name(name, sizeof name))
        return false;
    name[strcspn(name, ".")] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const struct {
    const char *host;
    const char *rank, *size;
    bool (*is_parent)(void);
} launchers[] = {
    {"mpich", "PMI_RANK", "PMI_SIZE", is_child_of_hydra},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", is_child_of_orte},
};

static bool program_has(const struct oriel_program *program, const char *beginning)
{
    for (size_t i = 0; i < program->libraries_count; i++)
        if (strncmp(program->libraries[i].soname, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

/* True when the environment has something with which programs of this host may connect: variables
 * of its own launcher, or PMIx. Open MPI always uses PMIx; MPICH does when built with it, and a
 * program with unknown libraries might. */
static bool environment_may_connect(const struct oriel_host *host,
                                    const struct oriel_program *program)
{
    for (const char *const *name = host->variables; *name != NULL; name++)
        if (getenv(*name) != NULL)
            return true;
    bool has_pmix = getenv("PMIX_NAMESPACE") != NULL || getenv("PMIX_RANK") != NULL;
    return has_pmix && (strcmp(host->name, "openmpi") == 0 ||
                        oriel_host_of_program(program) == NULL || program_has(program, "libpmix."));
}

/* A program of the standard ABI connects as the MPI that implements the ABI for it. Open MPI's
 * implementation is in a library of its own. */
static const struct oriel_host *implementation_of(const struct oriel_host *host,
                                                  const struct oriel_program *program)
{
    if (host->variables[0] != NULL)
        return host;
    return oriel_host_named(program_has(program, "libopen_mpi.") ? "openmpi" : "mpich");
}

bool oriel_launcher_is_foreign(const struct oriel_host *host, const struct oriel_program *program,
                               struct oriel_launcher *out)
{
    host = implementation_of(host, program);
    if (environment_may_connect(host, program))
        return false;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        if (strcmp(launchers[i].host, host->name) != 0 &&
            variable_read_number(launchers[i].rank, &out->rank) &&
            variable_read_number(launchers[i].size, &out->size) && out->size > 1 &&
            launchers[i].is_parent()) {
            out->host = oriel_host_named(launchers[i].host);
            out->needed = host;
            return true;
        }
    return false;
}
