/* Requests that Oriel returns to the program. A completed request is an empty send to
 * MPI_PROC_NULL: it costs half of a generalised request, every completion function accepts it, and
 * the host checks the datatype. Outstanding operations use generalised requests. */
#include "host/host.h"

_Atomic uint32_t oriel_requests_open;

enum oriel_status oriel_host_completed_request(MPI_Request *out)
{
    if (oriel_host()->Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, oriel_host_singleton(), out) !=
        MPI_SUCCESS)
        return oriel_fail(ORIEL_E_OTHER, "the host cannot create a completed request");
    return ORIEL_OK;
}

bool oriel_host_type_is_committed(MPI_Datatype datatype)
{
    MPI_Request request;
    int done;
    char nothing; /* not read: hosts check the datatype only if the count is above 0 */
    return oriel_host()->Isend(&nothing, 1, datatype, MPI_PROC_NULL, 0, oriel_host_singleton(),
                               &request) == MPI_SUCCESS &&
           oriel_host()->Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

static int request_cancel(void *extra_state, int complete)
{
    (void)extra_state, (void)complete;
    return MPI_SUCCESS;
}

enum oriel_status oriel_host_request_start(MPI_Grequest_query_function *query,
                                           MPI_Grequest_free_function *drop, void *extra_state,
                                           MPI_Request *out)
{
    if (oriel_host()->Grequest_start(query, drop, request_cancel, extra_state, out) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_NO_MEM, "the host cannot create a request");
    return ORIEL_OK;
}

void oriel_host_request_complete(MPI_Request request)
{
    oriel_host()->Grequest_complete(request);
}

void oriel_host_fill_status(MPI_Status *status)
{
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    oriel_host()->Status_set_elements(status, MPI_BYTE, 0);
    oriel_host()->Status_set_cancelled(status, 0);
}
