/* How a program got Oriel and how its children do or do not get it.  environment.c calls. */
#ifndef ORIEL_API_LAUNCH_H
#define ORIEL_API_LAUNCH_H

#include <stdbool.h>

/* What every way of starting MPI does first.  Removes from LD_PRELOAD what `oriel run` put there (ORIEL_PRELOADED), and then
 * that variable too: children of the program start without Oriel.  Harmless when `oriel run` was not used.  With
 * ORIEL_VERBOSE the options in effect are printed, once per process. */
void oriel_launch_enter(void);


/* A command line of MPI_Comm_spawn under `oriel run`. */
struct oriel_spawn {
    char *command;
    char **argv;
};

/* Rewrites command and argv (MPI_ARGV_NULL is NULL) to run under `oriel run`; false when this program did not come by it, or
 * the command cannot be found beside the library. */
bool oriel_launch_wrap(const char *command, char **argv, struct oriel_spawn *out);
void oriel_launch_unwrap(struct oriel_spawn *spawn);

#endif
