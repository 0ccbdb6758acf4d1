/* Becoming the program: what `oriel run` and `oriel check` do alike, once their options are read.
 * Whatever stands in the way is refused before anything is started.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_RUN_EXEC_PROGRAM_H
#define ORIEL_CLI_RUN_EXEC_PROGRAM_H

#include <stdbool.h>

struct oriel_exec_plan {
    const char *host; /* what --host said, or NULL */
    bool checked;     /* with the checker in front of Oriel */
};

/* This process turns into the program, with Oriel preloaded; command ends with NULL. */
_Noreturn void oriel_become(const struct oriel_exec_plan *way, char **command);

#endif
