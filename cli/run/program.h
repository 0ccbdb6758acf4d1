/* A program to start: its path, whether a preload works for it, and the libraries it will load. All
 * of this is known before any of the program's code runs. */
#ifndef ORIEL_CLI_RUN_PROGRAM_H
#define ORIEL_CLI_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct oriel_library {
    const char *soname;
    const char *path; /* NULL when the loader does not find it */
};

struct oriel_program {
    char path[PATH_MAX]; /* as passed to execve */
    const char *advice;  /* last part of the error message for a program that Oriel cannot serve */
    struct oriel_library *libraries;
    size_t libraries_count;
    bool is_unlisted; /* the loader does not list them; false for a script without a first line */
    char *problem;    /* NULL, or why a preload cannot serve it; to be freed */
};

/* Finds the program as a shell does, with PATH unless the name has a slash. Exits with a message
 * when it is missing or not executable, or a script whose interpreter is. */
void oriel_program_find(const char *name, const char *advice, struct oriel_program *out);

/* True if the name is found like that. */
bool oriel_program_exists(const char *name);

/* True for an executable file. */
bool oriel_file_is_program(const char *path);

/* Sets the problem of a program that a preload does not affect: static, with MPI linked into it,
 * with privileges of its own, or for another architecture. Otherwise lists the libraries it needs,
 * directly and indirectly. For a script, these are its interpreter's. */
void oriel_program_inspect(struct oriel_program *program);

/* Lists the libraries that a library of Oriel needs, the same way. */
void oriel_liboriel_inspect(const char *path, struct oriel_program *out);

#endif
