/* Whether a program is started by the launcher of another host, under which each of its processes would be a job of one rank.
 * Told only where nothing else could be meant: a launcher that this process's variables come from through a script is none.
 * Only become.c calls. */
#ifndef ORIEL_CLI_RUN_LAUNCHER_H
#define ORIEL_CLI_RUN_LAUNCHER_H

#include <stdbool.h>

#include "cli/hosts.h"
#include "cli/run/program.h"

struct oriel_launcher {
    const struct oriel_host *host; /* whose launcher it is */
    long rank, size;               /* by its own count: size is more than 1 */
};

/* True where this process is a child of another host's launcher, which started several, and nothing that host's programs find
 * each other by is there. */
bool oriel_launcher_is_foreign(const struct oriel_host *host, const struct oriel_program *program,
                               struct oriel_launcher *out);

#endif
