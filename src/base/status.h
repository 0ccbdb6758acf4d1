/* The result of a call inside Oriel. The first function that notices a failure writes the message
 * with oriel_fail, and every caller above passes the status on unchanged. Only api/ translates it
 * to an MPI error class. */
#ifndef ORIEL_BASE_STATUS_H
#define ORIEL_BASE_STATUS_H

#include <stdbool.h>

enum oriel_status {
    ORIEL_OK = 0,
#define STATUS(name, mpi_class) ORIEL_E_##name,
#include "base/status.def"
#undef STATUS
    ORIEL_STATUS_COUNT
};

/* Stores the message (at most 511 bytes) as this thread's last one and returns status. */
enum oriel_status oriel_fail(enum oriel_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The same for a failure of another rank, which reports its cause. */
enum oriel_status oriel_fail_of_other(enum oriel_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* Whether this thread's last failure is one of another rank. */
bool oriel_fail_is_of_other(void);

/* This thread's last message; empty if nothing has failed yet. */
const char *oriel_fail_message(void);

/* The first of several failures, with its message, which later ones must not replace. Initially
 * {ORIEL_OK}. */
struct oriel_first_failure {
    enum oriel_status status;
    char text[512];
};

/* After a call: keeps its failure, if it is the first. */
void oriel_first_failure_record(struct oriel_first_failure *first, enum oriel_status status);

/* Makes the first failure this thread's last one, and returns its status. */
enum oriel_status oriel_first_failure_raise(const struct oriel_first_failure *first);

#endif
