/* The environment of the program's children. By default they run without Oriel; programs that
 * MPI_Comm_spawn starts run under it. */
#ifndef ORIEL_API_SPAWN_ENV_H
#define ORIEL_API_SPAWN_ENV_H

#include <stdbool.h>

/* The first step of every way to start MPI. Removes the entries of `oriel run` from LD_PRELOAD
 * (ORIEL_PRELOADED), and then that variable: children of the program start without Oriel. It has no
 * effect without `oriel run`. Before that it ends a program of another host (host/confirm.h);
 * caller is the address of the program's call, ORIEL_CALLER. */
void oriel_spawn_env_enter(const void *caller);

/* Whether MPI was started through Oriel. */
bool oriel_spawn_env_has_entered(void);

/* For entries, which exported names jump to. Without compiler optimisation this is an address in
 * Oriel. */
#define ORIEL_CALLER __builtin_return_address(0)

/* A command line of MPI_Comm_spawn under `oriel run`. */
struct oriel_spawn {
    char *command;
    char **argv;
};

/* Rewrites command and argv (MPI_ARGV_NULL is NULL) to run under `oriel run`. False if this program
 * was not started by it, or the command is not next to the library. */
bool oriel_spawn_env_wrap(const char *command, char **argv, struct oriel_spawn *out);
void oriel_spawn_env_unwrap(struct oriel_spawn *spawn);

#endif
