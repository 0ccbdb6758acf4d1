/* Lines that Oriel writes to the user's standard error, each with the prefix "oriel[PID]: ". One
 * write per line keeps the lines of several ranks apart. */
#ifndef ORIEL_BASE_LOG_H
#define ORIEL_BASE_LOG_H

#include <stddef.h>

/* A warning, printed regardless of ORIEL_VERBOSE. */
void oriel_warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* A note, printed if ORIEL_VERBOSE is at least 1. */
void oriel_note(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* Writes the whole text to standard error with one write, unless signals or a full pipe split
 * it. */
void oriel_log_write(const char *text, size_t len_bytes);

#endif
