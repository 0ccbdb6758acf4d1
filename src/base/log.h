/* Lines that Oriel writes to the user's standard error, each starting with "oriel:".  A line is written by one write
 * so that lines of several ranks do not mix.  Any layer may call. */
#ifndef ORIEL_BASE_LOG_H
#define ORIEL_BASE_LOG_H

#include <stddef.h>

/* Something the user must see, whatever ORIEL_VERBOSE says. */
void oriel_warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Something that is written from ORIEL_VERBOSE=1 on. */
void oriel_note(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* All of a text, to standard error, by one write unless signals or a full pipe cut it. */
void oriel_log_write(const char *text, size_t len_bytes);

#endif
