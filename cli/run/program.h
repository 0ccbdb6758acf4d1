/* A program that is to be started: where it is, whether a preload can reach it, and which libraries it will load.
 * Nothing of the program has run when this is known.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_RUN_PROGRAM_H
#define ORIEL_CLI_RUN_PROGRAM_H

#include <limits.h>
#include <stddef.h>

struct oriel_library {
    const char *soname;
    const char *path; /* NULL when the loader does not find it */
};

struct oriel_program {
    char path[PATH_MAX]; /* as execve takes it */
    const char *way_out; /* ends the refusal of a program that Oriel cannot serve */
    struct oriel_library *libraries;
    size_t libraries_count;
};

/* Finds the program as a shell would, by PATH unless the name has a slash. Refuses what is not there or cannot be
 * executed. */
void oriel_program_find(const char *name, const char *way_out, struct oriel_program *out);

/* Refuses a program that a preload does not reach: static, with an MPI linked into it, with privileges of its own, for another
 * architecture.
 * Otherwise lists the libraries it needs, and those that they need. Those of a script are its interpreter's. */
void oriel_program_inspect(struct oriel_program *program);

#endif
