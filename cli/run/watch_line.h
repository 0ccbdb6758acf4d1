/* Where `oriel run --watch` shows its line: in the last row of the launcher's terminal, or as lines on standard error.
 * watch.c calls. */
#ifndef ORIEL_CLI_RUN_WATCH_LINE_H
#define ORIEL_CLI_RUN_WATCH_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the terminal of the launcher that has started the process.  False: there is none, or it is not in the foreground, or its
 * standard error goes elsewhere; then lines are for standard error. */
bool oriel_line_open(int32_t pid);

/* Shows the text in the place of the one before; false when the terminal has gone. */
bool oriel_line_show(const char *text);

/* The row is the terminal's again. */
void oriel_line_close(void);

#endif
