/* Texts of files and of other processes on their way to terminals and pages.  trace_file.c, found.c, info.c, statistics.c
 * and jobs.c call. */
#ifndef ORIEL_CLI_TRACE_TEXT_H
#define ORIEL_CLI_TRACE_TEXT_H

#include <stddef.h>

/* Makes it end within room, and puts '?' in the place of control characters and of what is not UTF-8. */
void oriel_trace_text_clean(char *text, size_t room);

#endif
