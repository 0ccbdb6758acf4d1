/* Whether the program's MPI is the host that this library was compiled for.  api/ calls, where MPI is started, and where memory
 * or a window is made, which may come first: this library does not know the sessions of all hosts. */
#ifndef ORIEL_HOST_CONFIRM_H
#define ORIEL_HOST_CONFIRM_H

/* Ends the process with one line and status 2 where another host's functions stand behind Oriel, or where what called (an
 * address in it; NULL for unknown) is linked to another host: their handles mean nothing to each other. */
void oriel_host_confirm(const void *caller);

/* The same, at the first call alone, and of what stands behind. */
void oriel_host_confirm_once(void);

#endif
