/* Shared by the files of the command: the subcommands, error messages, memory, and paths of Oriel's
 * files. A usage or set-up error is one line on stderr and status 2. Nothing has been started at
 * that point. */
#ifndef ORIEL_CLI_CLI_H
#define ORIEL_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct stat;

enum { ORIEL_EXIT_REFUSED = 2 };

/* The subcommands; argv[0] is "oriel NAME". They return the exit status. `run` and `bench` replace
 * this process and return only on error; so does `check` when it runs a program. */
int oriel_command_run(int argc, char **argv);
int oriel_command_check(int argc, char **argv);
int oriel_command_report(int argc, char **argv);
int oriel_command_bench(int argc, char **argv);
int oriel_command_info(int argc, char **argv);
int oriel_command_top(int argc, char **argv);
int oriel_command_demo(int argc, char **argv);

/* Prints "oriel: " and the message as one line on stderr and exits with status 2. Of several ranks
 * of a job with the same message, one on each node prints it. */
_Noreturn void oriel_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the same line and returns. */
void oriel_warning_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory allocation and what uses it. These functions end the command when there is no memory. */
void *oriel_alloc_checked(void *memory);
void *oriel_alloc(size_t len_bytes);
char *oriel_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void oriel_env_set(const char *name, const char *value);

/* Runs a command without a shell and with LD_PRELOAD unset, and returns all of its standard output.
 * Returns NULL when the command cannot start or its status is not 0. The caller frees the text. */
char *oriel_command_output(char *const argv[]);

/* Called once, from main. When the command ends and standard output could not be written
 * completely, it prints an error and exits with status 2. */
void oriel_stdout_check_at_exit(void);

/* Removes a partly written file, unless it is a device or a pipe. */
void oriel_file_discard(const char *path);

/* Closes a file whose writing went well or not; out is NULL if it did not open. errno was 0 before.
 * Returns "", or the reason for a failure after discarding the file; to be freed. */
char *oriel_file_finish(FILE *out, bool fine, const char *path);

/* The path of this executable. */
const char *oriel_executable_path(void);

#endif
