/* Errors common to the operations. */
#include "api/refusals.h"

int oriel_error_no_request(struct oriel_window *window, const char *call)
{
    return oriel_error_raise(window, call, oriel_fail(ORIEL_E_ARG, "the request argument is NULL"));
}

int oriel_error_large_count(const char *call)
{
    return oriel_error_raise_nowhere(
        call,
        oriel_fail(ORIEL_E_UNSUPPORTED,
                   "the host serves this window and has no functions for counts above INT_MAX"));
}
