/* The command lines of `oriel run` and `oriel check`: options, then a program with its arguments.
 * Recognises what is written in the wrong order. */
#ifndef ORIEL_CLI_RUN_COMMAND_LINE_H
#define ORIEL_CLI_RUN_COMMAND_LINE_H

#include <argp.h>
#include <stddef.h>

/* Refuses words in the wrong order with the right one, and parses the options. An option of Oriel
 * after the program gets a note on rank 0, unless "--" precedes the program. */
void oriel_command_line_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Ends the command, whose arguments have no program. */
void oriel_program_missing(const struct argp_state *state);

/* Ends the command with the right order for "oriel COMMAND [OURS...] mpiexec ... PROGRAM ...". The
 * words begin with the launcher and end with NULL. */
_Noreturn void oriel_launcher_order_die(const char *command, char *const *ours, size_t ours_count,
                                        char *const *words);

#endif
