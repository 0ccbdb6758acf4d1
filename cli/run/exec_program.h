/* Executes the program: the common part of `oriel run` and `oriel check`, after their options are
 * parsed. Every error is reported before anything is started. */
#ifndef ORIEL_CLI_RUN_EXEC_PROGRAM_H
#define ORIEL_CLI_RUN_EXEC_PROGRAM_H

#include <stdbool.h>

struct oriel_exec_plan {
    const char *host; /* the argument of --host, or NULL */
    bool checked;     /* with the checker preloaded before Oriel */
};

/* Replaces this process by the program, with Oriel preloaded. command ends with NULL. */
_Noreturn void oriel_exec_program(const struct oriel_exec_plan *plan, char **command);

#endif
