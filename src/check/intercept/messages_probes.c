/* Probes (MPI-4.1, 3.8). One that leaves its message in place takes the clocks of every message
 * that it may have seen. A matching probe is the receive. */
#include "check/intercept/messages_point.h"

static void probe_take(int code, MPI_Comm comm, const MPI_Status *status)
{
    struct oriel_comm *entry = oriel_comm_find(comm);
    if (code != MPI_SUCCESS)
        return;
    if (entry == NULL) {
        oriel_order_unknown_end();
    } else if (oriel_comm_has(entry, status->MPI_SOURCE)) {
        int world_rank = oriel_comm_world_rank(entry, status->MPI_SOURCE);
        oriel_message_seen(&entry->matching, (struct oriel_envelope){world_rank, status->MPI_TAG});
        if (!oriel_order_reaches(world_rank))
            oriel_order_unknown_end();
    }
}

ORIEL_CHECK_WRAP(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status))
{
    MPI_Status own;
    int code;
    if (!oriel_check_looks())
        return NEXT(Probe)(source, tag, comm, status);
    status = oriel_status_prepare(status, &own);
    struct oriel_site site = oriel_site_here(__builtin_return_address(0), ORIEL_CALL_Probe,
                                             (uint32_t)oriel_order_rank(), 0);
    bool waits = oriel_wait_probe(&site, comm, source, tag);
    ORIEL_CHECK_PASS(code, Probe, (source, tag, comm, status));
    oriel_wait_done(waits);
    probe_take(code, comm, status);
    return code;
}

ORIEL_CHECK_WRAP(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status))
{
    MPI_Status own;
    int code;
    if (!oriel_check_looks())
        return NEXT(Iprobe)(source, tag, comm, flag, status);
    status = oriel_status_prepare(status, &own);
    ORIEL_CHECK_PASS(code, Iprobe, (source, tag, comm, flag, status));
    if (code == MPI_SUCCESS && *flag)
        probe_take(code, comm, status);
    return code;
}

ORIEL_CHECK_WRAP(Mprobe,
                 (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status))
{
    struct oriel_receive_half half;
    MPI_Status own;
    int code;
    if (!oriel_check_looks())
        return NEXT(Mprobe)(source, tag, comm, message, status);
    status = oriel_status_prepare(status, &own);
    oriel_receive_half_begin(&half, comm, source, tag, "MPI_Mprobe");
    struct oriel_site site = oriel_site_here(__builtin_return_address(0), ORIEL_CALL_Mprobe,
                                             (uint32_t)oriel_order_rank(), 0);
    bool waits = oriel_wait_message(&site, NULL, &half);
    ORIEL_CHECK_PASS(code, Mprobe, (source, tag, comm, message, status));
    oriel_wait_done(waits);
    oriel_receive_half_done(&half, code, status);
    return code;
}

ORIEL_CHECK_WRAP(Improbe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message,
                           MPI_Status *status))
{
    struct oriel_receive_half half;
    MPI_Status own;
    int code;
    if (!oriel_check_looks())
        return NEXT(Improbe)(source, tag, comm, flag, message, status);
    status = oriel_status_prepare(status, &own);
    oriel_receive_half_begin(&half, comm, source, tag, NULL);
    ORIEL_CHECK_PASS(code, Improbe, (source, tag, comm, flag, message, status));
    if (code == MPI_SUCCESS && *flag)
        oriel_receive_half_done(&half, code, status);
    else
        oriel_receive_half_none(&half);
    return code;
}
