/* The terminal to which a job's standard error leads. */
#ifndef ORIEL_CLI_JOB_TERMINAL_H
#define ORIEL_CLI_JOB_TERMINAL_H

#include <stdbool.h>

/* Whether this process's standard error is a terminal, or, if a launcher reads it, the launcher's.
 * Sets *columns to its width, if that is known. */
bool oriel_job_terminal(int *columns);

#endif
