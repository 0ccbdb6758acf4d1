/* How a program got Oriel and how its children do or do not get it.  environment.c calls. */
#ifndef ORIEL_API_SPAWN_ENV_H
#define ORIEL_API_SPAWN_ENV_H

#include <stdbool.h>

/* What every way of starting MPI does first.  Removes from LD_PRELOAD what `oriel run` put there (ORIEL_PRELOADED), and then
 * that variable too: children of the program start without Oriel.  Harmless when `oriel run` was not used.  With
 * ORIEL_VERBOSE the options that are set are printed, once per process.  Before all that, a program of another host is ended
 * (host/confirm.h); caller is where the program called, ORIEL_CALLER. */
void oriel_launch_enter(const void *caller);

/* Whether MPI was started by way of Oriel. */
bool oriel_launch_has_entered(void);

/* In an entry, to which exported names jump; where compilers do not optimise this is an address of Oriel's own. */
#define ORIEL_CALLER __builtin_return_address(0)

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
