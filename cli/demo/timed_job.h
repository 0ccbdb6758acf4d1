/* One MPI job with a time limit. The launcher is this process's child and ends with it. When a job
 * is over, none of its processes is left. */
#ifndef ORIEL_CLI_DEMO_TIMED_JOB_H
#define ORIEL_CLI_DEMO_TIMED_JOB_H

#include <stdbool.h>

enum { ORIEL_TIMED_JOB_OUTPUT = 65536 };

struct oriel_timed_job {
    bool is_late; /* it reached the limit and was ended */
    int status;   /* of the launcher; 128 and a signal's number when that ended it */
    char output[ORIEL_TIMED_JOB_OUTPUT]; /* the beginning of stdout and stderr together */
};

/* Runs the command, whose name is looked up in PATH, with these "NAME=VALUE" entries added to its
 * environment. Both lists end with NULL. The time counts from the output that begins the measured
 * part of the program: the ranks' start, which takes long on busy nodes, has a limit of its own. */
void oriel_timed_job_run(char *const command[], char *const settings[], const char *beginning,
                         int limit_s, struct oriel_timed_job *out);

#endif
