/* Detects a program under another host's launcher, where each of its processes would be a job of
 * one rank. The result is true only when no other explanation exists. A launcher whose variables
 * arrive through a script does not count. */
#ifndef ORIEL_CLI_RUN_LAUNCHER_H
#define ORIEL_CLI_RUN_LAUNCHER_H

#include <stdbool.h>

#include "cli/hosts.h"
#include "cli/program_host.h"
#include "cli/run/program.h"

struct oriel_launcher {
    const struct oriel_host *host;   /* the launcher's host */
    const struct oriel_host *needed; /* the one whose launcher the program needs */
    long rank, size;               /* from the launcher's variables; size is more than 1 */
};

/* True for the path or name of a launcher's command, such as mpiexec.mpich or srun. */
bool oriel_launcher_is_named(const char *path);

/* Returns true when this process is a child of another host's launcher that started several
 * processes, and the environment has nothing that lets this host's programs connect. */
bool oriel_launcher_is_foreign(const struct oriel_host *host, const struct oriel_program *program,
                               struct oriel_launcher *out);

#endif
