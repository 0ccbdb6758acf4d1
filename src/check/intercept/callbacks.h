/* The program's functions that the host calls back inside a call: attributes' copy and delete functions, generalised requests'
 * functions, error handlers.  What they call is the program's, and looked at like all its calls: callbacks.c registers functions
 * of its own in their place (error_handlers.c: for error handlers), which take the thread out of the call and back in again (callback_scope.h).
 *
 * So a wrapper holds no lock while the call behind it runs, has noted by then what the call gives, and expects that windows,
 * messages and requests are others when it returns.  What it has noted that the call waits for does not stand meanwhile.  A window
 * that an error handler frees leaves what the wrapper around it still reads (callback_scope.h).
 *
 * Functions in Fortran are called by the host as they were given.  What they call comes from the host's functions for Fortran,
 * which no host calls itself: so it is known to be the program's, inside whatever call.  Only what the call around them waits for
 * is then forgotten for good.
 *
 * Users' reduction operators, which MPI forbids to communicate (MPI-4.1, 6.9.5), their conversions of files' data, and functions
 * that a host's own extensions take (MPIX_Grequest_start) stay as they are, and what they call is not looked at. */
#ifndef ORIEL_CHECK_INTERCEPT_CALLBACKS_H
#define ORIEL_CHECK_INTERCEPT_CALLBACKS_H

#include <stdbool.h>

/* While MPI_Finalize runs, NULL before: what has to be done at the latest when a function of the program's has failed with the end
 * of MPI_COMM_SELF, for Open MPI deletes no more of its attributes then. */
extern void (*oriel_callback_failed_at_end)(void);

/* Whether a function that is registered comes from Fortran; address: where the registering call returns to.  Or the call is not to
 * be looked at. */
bool oriel_callback_is_others(const void *address);

#endif
