/* The order of the preload: the sanitizer's runtime that must be first, what the user had, then the program's own MPI tools, then
 * the checker, then Oriel.
 * ORIEL_PRELOADED always names exactly the entries of LD_PRELOAD that Oriel itself added.
 * Only files in cli/ include this, and only become.c calls it. */
#ifndef ORIEL_CLI_RUN_PRELOAD_H
#define ORIEL_CLI_RUN_PRELOAD_H

#include "cli/run/program.h"

/* The libraries beside the user's and the tools, by path. */
struct oriel_preload {
    const char *first;     /* the program's own runtime of -fsanitize=address; NULL for none */
    const char *sanitizer; /* the stand-in for the runtime of -fsanitize=thread; NULL for none */
    const char *checker;   /* liboriel_check.so; NULL for a program that is not checked */
    const char *liboriel;
};

/* Sets LD_PRELOAD and ORIEL_PRELOADED in this process's environment for the program that it is about to become.
 * What an `oriel run` around this one added is replaced; what is in LD_PRELOAD already is not added again. */
void oriel_preload_set(const struct oriel_program *program, const struct oriel_preload *libraries);

#endif
