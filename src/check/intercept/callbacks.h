/* Functions of the program that the host calls inside a call: attribute copy and delete functions,
 * functions of generalised requests, error handlers. Their MPI calls are the program's, and are
 * checked like all its calls. callbacks.c registers functions of its own in their place
 * (error_handlers.c for error handlers), which take the thread out of the call and back into it
 * (callback_scope.h).
 *
 * So a wrapper holds no lock while the next function runs. It has given its clock before, and
 * expects that windows, messages and requests have changed when that function returns. The wait
 * that it has recorded is suspended meanwhile. If an error handler frees a window, the entry stays
 * for the wrapper around the handler.
 *
 * Functions in Fortran are called by the host as they were registered. Their calls enter through
 * the host's Fortran functions, which no host calls itself: such a call is the program's, inside
 * any call. Only the recorded wait of the outer call is then lost.
 *
 * These functions stay as they are, and their calls are not checked: users' reduction operators,
 * which MPI forbids to communicate (MPI-4.1, 6.9.5), conversions of file data, and functions that a
 * host's own extensions take (MPIX_Grequest_start). */
#ifndef ORIEL_CHECK_INTERCEPT_CALLBACKS_H
#define ORIEL_CHECK_INTERCEPT_CALLBACKS_H

#include "check/common/reentrancy.h"
#include "check/report/call_sites.h"

/* NULL except while MPI_Finalize runs. After a delete function of MPI_COMM_SELF has failed, Open
 * MPI deletes no more of its attributes, directly and through the standard ABI. The checker of
 * every host therefore ends at that failure. */
extern void (*oriel_callback_failed_at_end)(void);

/* Whether a function is registered by a Fortran call, or the registering call is not checked.
 * address: to which that call returns. In an exported function only: its frame shows whether an
 * earlier call was left by a jump. */
ORIEL_CHECK_INLINE bool oriel_callback_is_others(const void *address)
{
    return !oriel_check_is_programs(address) || oriel_site_is_bound(address);
}

#endif
