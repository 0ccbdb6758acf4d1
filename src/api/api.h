/* The functions that programs call: Oriel's own (oriel_entry_*), one per FUNCTION row of
 * functions.def and row of extensions.def, and the table that the exported names jump through. A
 * tool of Oriel's (checker, observation) replaces entries of the table before the first window is
 * created. A run without one pays one indirect jump. */
#ifndef ORIEL_API_API_H
#define ORIEL_API_API_H

#include "host/function_table.h"
#include "host/host.h"
#include "window/window.h"

#include <limits.h>

/* All other symbols are hidden. */
#define ORIEL_EXPORT __attribute__((visibility("default")))

extern struct oriel_api oriel_api;

#define FUNCTION(name, parameters, arguments) int oriel_entry_##name parameters;
#define FORWARD(name, parameters, arguments)
#define LARGE FUNCTION
#define EXTENSION FUNCTION
#include "host/extensions.def"
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef EXTENSION

int oriel_error_raise_failed(struct oriel_window *window, const char *call,
                             enum oriel_status status) __attribute__((cold, noinline));

/* Raises status on the window's error handler, with "call: message" for the user, and returns the
 * MPI error class. ORIEL_OK raises nothing and is MPI_SUCCESS. */
static inline int oriel_error_raise(struct oriel_window *window, const char *call,
                                    enum oriel_status status)
{
    return __builtin_expect(status == ORIEL_OK, 1) ? MPI_SUCCESS
                                                   : oriel_error_raise_failed(window, call, status);
}

/* The same on a communicator's error handler, for creation. */
int oriel_error_raise_comm(MPI_Comm comm, const char *call, enum oriel_status status);

/* The same on the handler that the standard defines for errors without an object. */
int oriel_error_raise_nowhere(const char *call, enum oriel_status status);

/* A handle that is no window (MPI_WIN_NULL, freed): MPI_ERR_WIN, raised without an object. In a
 * forked child: MPI_ERR_OTHER with the message, and no handler is called. */
int oriel_error_not_a_window(const char *call);

/* The request argument is NULL: ORIEL_E_ARG, before any data moves. */
int oriel_error_no_request(struct oriel_window *window, const char *call);

/* Counts above INT_MAX on a window of a host without large counts: ORIEL_E_UNSUPPORTED. */
int oriel_error_large_count(const char *call);

/* An extension was called for a window that the host serves: ORIEL_E_UNSUPPORTED. For a handle that
 * is no window, as above. */
int oriel_error_no_extension(const char *call, MPI_Win win);

static inline bool oriel_counts_fit_int(MPI_Count a, MPI_Count b, MPI_Count c)
{
    return a >= INT_MIN && a <= INT_MAX && b >= INT_MIN && b <= INT_MAX && c >= INT_MIN &&
           c <= INT_MAX;
}

#endif
