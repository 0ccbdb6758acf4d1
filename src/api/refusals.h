/* What the operations share beyond the checks: refused requests, and large counts on windows that are the host's.  api/ calls. */
#ifndef ORIEL_API_REFUSALS_H
#define ORIEL_API_REFUSALS_H

#include "api/api.h"

#include <limits.h>

/* The place for a request is NULL: ORIEL_E_ARG, before anything moves. */
int oriel_error_no_request(struct oriel_window *window, const char *call);

/* A window of a host without large counts was given counts that its functions cannot take. */
int oriel_error_large_count(const char *call);

static inline bool oriel_counts_fit_int(MPI_Count a, MPI_Count b, MPI_Count c)
{
    return a >= INT_MIN && a <= INT_MAX && b >= INT_MIN && b <= INT_MAX && c >= INT_MIN &&
           c <= INT_MAX;
}

#endif
