/* The terminal to which a job's standard error leads. */
#ifndef ORIEL_CLI_JOB_TERMINAL_H
#define ORIEL_CLI_JOB_TERMINAL_H

#include <stdbool.h>

/* Whether this process's standard error is a terminal, or, if a launcher reads it, the launcher's.
 * Sets *columns to its width, if that is known. */
bool oriel_job_terminal(int *columns);

/* Opens the standard error of the launcher that is the process's parent; *launcher becomes its
 * process number. Returns -1 for any other parent, a daemon of a launcher among them, for a
 * terminal, and for what cannot be opened. */
int oriel_job_launcher_open(int process, int *launcher);

#endif
