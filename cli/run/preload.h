/* The order of LD_PRELOAD: the sanitizer runtime that must be first, the user's entries, the
 * program's own MPI tools, the checker, Oriel. ORIEL_PRELOADED always names exactly the entries
 * that Oriel added to LD_PRELOAD. */
#ifndef ORIEL_CLI_RUN_PRELOAD_H
#define ORIEL_CLI_RUN_PRELOAD_H

#include "cli/run/program.h"

/* Paths of the libraries other than the user's and the tools. */
struct oriel_preload {
    const char *asan_runtime; /* the program's own -fsanitize=address runtime, or NULL */
    const char *tsan_runtime; /* the replacement for the -fsanitize=thread runtime, or NULL */
    const char *checker;      /* liboriel_check.so, or NULL for a program that is not checked */
    const char *liboriel;
};

/* Sets LD_PRELOAD and ORIEL_PRELOADED in this process's environment, for the program that replaces
 * it. Entries that an outer `oriel run` added are replaced; entries already in LD_PRELOAD are not
 * added again. */
void oriel_preload_set(const struct oriel_program *program, const struct oriel_preload *libraries);

#endif
