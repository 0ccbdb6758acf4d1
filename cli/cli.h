/* What the files of the command line share: the subcommands, how they refuse, and where Oriel's libraries lie.
 * A refusal is one line on stderr and status 2, and nothing has been started when it is made.
 * Only files in cli/ include this. */
#ifndef ORIEL_CLI_CLI_H
#define ORIEL_CLI_CLI_H

#include <limits.h>
#include <stddef.h>

struct stat;

enum { ORIEL_EXIT_REFUSED = 2 };

/* The subcommands: argv[0] is "oriel NAME". They return the exit status; run and bench only return by refusing,
 * and check where it runs a program. */
int oriel_command_run(int argc, char **argv);
int oriel_command_check(int argc, char **argv);
int oriel_command_report(int argc, char **argv);
int oriel_command_bench(int argc, char **argv);
int oriel_command_info(int argc, char **argv);
int oriel_command_top(int argc, char **argv);

/* Prints "oriel: " and the message as one line on stderr and exits with status 2. */
_Noreturn void oriel_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same line, and the command goes on. */
void oriel_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory that must be there, and what is made of it: these end the command when it is not. */
void *oriel_needed(void *memory);
void *oriel_alloc(size_t len_bytes);
char *oriel_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void oriel_variable_set(const char *name, const char *value);

/* Runs a command without a shell and with LD_PRELOAD unset, and returns all that it wrote to stdout; NULL when it
 * could not be started or ended with a status other than 0. The caller frees it. */
char *oriel_output_of(char *const argv[]);

/* Once, from main: where not all that went to standard output could be written, the command ends with status 2 and a line. */
void oriel_output_watch(void);

/* What could only be written in part is taken away, unless it is a device or a pipe. */
void oriel_take_away(const char *path);

/* The path of this executable. */
const char *oriel_self(void);

#endif
