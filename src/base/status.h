/* What a call inside Oriel returns.  The first function that notices a failure writes the message with oriel_fail and
 * every caller above passes the status on unchanged; only api/ turns it into an MPI error class.  Any layer may use it. */
#ifndef ORIEL_BASE_STATUS_H
#define ORIEL_BASE_STATUS_H

enum oriel_status {
    ORIEL_OK = 0,
#define STATUS(name, mpi_class) ORIEL_E_##name,
#include "base/status.def"
#undef STATUS
    ORIEL_STATUS_COUNT
};

/* Keeps the message (at most 511 bytes) as this thread's last one and returns status. */
enum oriel_status oriel_fail(enum oriel_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* This thread's last message; empty when nothing has failed yet. */
const char *oriel_fail_message(void);

#endif
