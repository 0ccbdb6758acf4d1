/* What a send of nothing to nobody is good for: as a completed request it costs half of a generalised one and every
 * completion function knows it, and the host checks its datatype.  ops/ and api/ call. */
#include "host/host.h"

enum oriel_status oriel_host_completed_request(MPI_Request *out)
{
    if (oriel_host()->Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, oriel_host_singleton(), out) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_OTHER, "the host cannot make a completed request");
    return ORIEL_OK;
}

bool oriel_host_type_is_committed(MPI_Datatype datatype)
{
    MPI_Request request;
    int done;
    char nothing; /* is not read: hosts check the datatype of a count above 0 only */
    return oriel_host()->Isend(&nothing, 1, datatype, MPI_PROC_NULL, 0, oriel_host_singleton(), &request) == MPI_SUCCESS &&
           oriel_host()->Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}
