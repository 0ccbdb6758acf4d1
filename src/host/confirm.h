/* Checks that the program's MPI is the host for which this library was compiled. The check runs
 * when MPI is started, and when memory or a window is created. That may be first, because this
 * library does not know the session functions of all hosts. */
#ifndef ORIEL_HOST_CONFIRM_H
#define ORIEL_HOST_CONFIRM_H

/* Ends the process with one line and status 2 if the functions after Oriel are of another host, or
 * if the caller is linked to another host: their handles are incompatible. caller is an address in
 * the caller's code, or NULL if unknown. */
void oriel_host_confirm(const void *caller);

/* The same check, only at the first call and without a caller. */
void oriel_host_confirm_once(void);

#endif
