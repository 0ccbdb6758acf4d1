/* Completed requests and the refusal of large counts.  api/ calls. */
#include "api/elsewhere.h"

#include "sync/far.h"

int oriel_complete_request(struct oriel_window *window, const char *call, int code, int target_rank, bool reads,
                           MPI_Request *request)
{
    enum oriel_status status = ORIEL_OK;
    if (code != MPI_SUCCESS)
        return code;
    if (reads && target_rank != MPI_PROC_NULL && oriel_is_far(window, target_rank))
        status = oriel_far_flush(window, target_rank);
    if (status == ORIEL_OK)
        status = oriel_host_completed_request(request);
    return oriel_error_raise(window, call, status);
}

int oriel_error_no_request(struct oriel_window *window, const char *call)
{
    return oriel_error_raise(window, call, oriel_fail(ORIEL_E_ARG, "the place for the request is NULL"));
}

int oriel_error_large_count(const char *call)
{
    return oriel_error_raise_nowhere(
        call, oriel_fail(ORIEL_E_UNSUPPORTED, "the window belongs to a host without large counts"));
}
