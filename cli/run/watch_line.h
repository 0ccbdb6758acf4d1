/* The output of `oriel run --watch`: the last row of the launcher's terminal, or lines on standard
 * error. */
#ifndef ORIEL_CLI_RUN_WATCH_LINE_H
#define ORIEL_CLI_RUN_WATCH_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* Finds the terminal of the launcher that started the process. Returns false when there is none,
 * it is not in the foreground, or its standard error goes elsewhere. The caller then writes lines
 * to standard error. */
bool oriel_line_open(int32_t pid);

/* Replaces the line by the text; false when the terminal is closed. */
bool oriel_line_show(const char *text);

/* Of the terminal; 0 if unknown. */
int oriel_line_columns(void);

/* Returns the row to the terminal. */
void oriel_line_close(void);

#endif
