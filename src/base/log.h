/* Oriel's own lines on the user's standard error: "oriel: rank N: MESSAGE". The rank is that of the
 * process in MPI_COMM_WORLD, from the launcher's environment; lines about the whole job have none.
 * A message that several ranks of a node notice is printed once, by the first of them, and their
 * number follows when that process ends. One write per line keeps lines apart. */
#ifndef ORIEL_BASE_LOG_H
#define ORIEL_BASE_LOG_H

#include "base/log_claims.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What this process has noticed. A warning is printed regardless of ORIEL_VERBOSE, a note if it is
 * at least 1. */
void oriel_warn(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
void oriel_note(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* A note about an MPI call of the program: "oriel: rank N: CALL at FILE:LINE: MESSAGE". */
void oriel_note_call(const char *call, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The same about a whole window, without the rank; the caller chooses the rank that prints it. */
void oriel_note_job_call(const char *call, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* What concerns the whole job. The caller chooses the rank that prints it. */
void oriel_warn_job(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
void oriel_note_job(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

/* What this process has noticed in an MPI call: "oriel: rank N: CALL at FILE:LINEREST", where rest
 * begins with what follows the call. A fatal error ends the job. If another rank or thread prints
 * the same error, or another rank has caused this one (oriel_fail_of_other), this thread waits for
 * some seconds, in which the job ends. If it does not, one of the waiting ranks prints its line. */
void oriel_log_call(enum oriel_log_kind kind, const char *call, const char *rest)
    __attribute__((cold));

/* Call before an exit with the reason, a line of at most ORIEL_LOG_REFUSAL_BYTES. The job's other
 * ranks on this node start at about the same time: for a second they find that it is printed. */
enum { ORIEL_LOG_REFUSAL_BYTES = 4080 };
void oriel_log_refusal(const char *reason) __attribute__((cold));

/* Writes the whole text to standard error with one write, unless signals or a full pipe split
 * it. */
void oriel_log_write(const char *text, size_t len_bytes);

#endif
