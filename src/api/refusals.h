/* Errors common to the operations, apart from the checks: missing requests, and large counts on
 * windows of the host. */
#ifndef ORIEL_API_REFUSALS_H
#define ORIEL_API_REFUSALS_H

#include "api/api.h"

#include <limits.h>

/* The request argument is NULL: ORIEL_E_ARG, before any data moves. */
int oriel_error_no_request(struct oriel_window *window, const char *call);

/* A window of a host without large counts got counts that do not fit its functions. */
int oriel_error_large_count(const char *call);

static inline bool oriel_counts_fit_int(MPI_Count a, MPI_Count b, MPI_Count c)
{
    return a >= INT_MIN && a <= INT_MAX && b >= INT_MIN && b <= INT_MAX && c >= INT_MIN &&
           c <= INT_MAX;
}

#endif
