/* From halves of messages, collectives and requests to needs. A receive whose number is known waits
 * until that send has given its clock. A receive that may match several sends waits for any rank
 * that may send. A collective waits for the members whose part it needs, as its data flows, and
 * that have not entered it. */
#include "check/intercept/messages_waits.h"

#include "check/intercept/messages_point.h"

enum { NEEDS = 2 };

/* --- messages --- */

static struct oriel_wait_need receive_need(struct oriel_comm *comm,
                                           const struct oriel_receiving *receiving)
{
    struct oriel_envelope from = receiving->wanted;
    struct oriel_wait_need need = {.kind = ORIEL_NEED_UNKNOWN};
    uint32_t number;
    if (from.peer != ORIEL_ANY && !oriel_order_reaches(from.peer))
        return need;
    if (from.peer != ORIEL_ANY && from.tag != ORIEL_ANY &&
        oriel_receive_is_numbered(&comm->matching, receiving, &number))
        return (struct oriel_wait_need){
            .kind = ORIEL_NEED_KEY,
            .rank = from.peer,
            .words = {ORIEL_ORDER_MESSAGE, comm->id,
                      (uint64_t)(uint32_t)from.peer << 32 | (uint32_t)oriel_order_rank(),
                      (uint64_t)(uint32_t)from.tag << 32 | number}};
    need = oriel_need_receive(from.peer, comm->id, from.tag, comm->progress);
    need.kind |= ORIEL_NEED_MAYBE;
    return need;
}

int oriel_half_needs(const struct oriel_send_half *send, const struct oriel_receive_half *receive,
                     struct oriel_wait_need *needs)
{
    static const struct oriel_wait_need unknown = {.kind = ORIEL_NEED_UNKNOWN};
    int count = 0;
    if (send != NULL &&
        (send->is_unknown || (send->destination >= 0 && !oriel_order_reaches(send->destination))))
        needs[count++] = unknown;
    else if (send != NULL && send->destination >= 0) {
        needs[count] = oriel_need_send(send->destination, send->id, send->tag);
        needs[count++].kind |= ORIEL_NEED_MAYBE;
    }
    if (receive != NULL &&
        (receive->is_unknown || (receive->comm != NULL && receive->receiving == NULL)))
        needs[count++] = unknown;
    else if (receive != NULL && receive->comm != NULL)
        needs[count++] = receive_need(receive->comm, receive->receiving);
    return count;
}

static bool wait_record(const struct oriel_site *site, const struct oriel_wait_need *needs,
                        int count)
{
    if (count == 0 || !oriel_wait_open(site, NULL, ORIEL_WAIT_FOR_ALL))
        return false;
    for (int i = 0; i < count; i++)
        oriel_wait_add(&needs[i]);
    oriel_wait_begin();
    return true;
}

bool oriel_wait_message(const struct oriel_site *site, const struct oriel_send_half *send,
                        const struct oriel_receive_half *receive)
{
    struct oriel_wait_need needs[NEEDS];
    return wait_record(site, needs, oriel_half_needs(send, receive, needs));
}

bool oriel_wait_probe(const struct oriel_site *site, MPI_Comm comm, int source, int tag)
{
    const struct oriel_comm *entry =
        source == MPI_PROC_NULL || comm == MPI_COMM_NULL ? NULL : oriel_comm_find(comm);
    if (entry == NULL || (source != MPI_ANY_SOURCE && (source < 0 || source >= entry->size)))
        return false;
    int peer = source == MPI_ANY_SOURCE ? -1 : oriel_comm_world_rank(entry, source);
    if (peer >= 0 && !oriel_order_reaches(peer))
        return false;
    struct oriel_wait_need need =
        oriel_need_receive(peer, entry->id, tag == MPI_ANY_TAG ? -1 : tag, entry->progress);
    return wait_record(site, &need, 1);
}

/* --- collectives --- */

/* A member waits for its neighbours only, and these are not known here. */
static bool is_neighbour_collective(uint16_t call)
{
    return call >= ORIEL_CALL_Neighbor_allgather && call <= ORIEL_CALL_Ineighbor_alltoallw;
}

int oriel_collective_needs(const struct oriel_collective *collective, struct oriel_wait_need *need)
{
    const struct oriel_comm *comm = collective->comm;
    *need = (struct oriel_wait_need){.kind = ORIEL_NEED_UNKNOWN};
    if (comm == NULL || comm->progress == NULL || is_neighbour_collective(collective->call))
        return 1;
    bool is_root = comm->rank == collective->root;
    if (collective->flow == ORIEL_FLOW_FROM_ROOT && is_root)
        return 1;
    bool all =
        collective->flow == ORIEL_FLOW_ALL || (collective->flow == ORIEL_FLOW_TO_ROOT && is_root);
    bool up = collective->flow == ORIEL_FLOW_UP;
    int member = all ? -1 : up ? comm->rank : collective->root;
    *need = oriel_need_call(comm->progress, member, collective->arrival, collective->call, up);
    if (collective->flow == ORIEL_FLOW_TO_ROOT && !is_root)
        need->kind |= ORIEL_NEED_MAYBE;
    return 1;
}

void oriel_collective_arrived(const struct oriel_site *site, struct oriel_collective *collective)
{
    collective->call = site->call;
    if (collective->comm != NULL && collective->comm->progress != NULL)
        collective->arrival = oriel_collective_progress_arrive(collective->comm->progress,
                                                               collective->comm->rank, site->call);
}

bool oriel_wait_collective(const struct oriel_site *site, struct oriel_collective *collective)
{
    struct oriel_wait_need need;
    oriel_collective_arrived(site, collective);
    return oriel_collective_needs(collective, &need) > 0 && need.kind != ORIEL_NEED_UNKNOWN &&
           wait_record(site, &need, 1);
}

bool oriel_wait_creation(const struct oriel_site *site, MPI_Comm comm, uint16_t call)
{
    const struct oriel_comm *entry = oriel_comm_find(comm);
    if (entry == NULL || entry->progress == NULL)
        return false;
    struct oriel_wait_need need = oriel_need_call(
        entry->progress, -1, oriel_collective_progress_arrive(entry->progress, entry->rank, call),
        call, false);
    return wait_record(site, &need, 1);
}

/* --- requests --- */

bool oriel_wait_requests(const struct oriel_site *site, const MPI_Request *requests,
                         struct oriel_request_record *const *records, int count,
                         enum oriel_wait_mode mode)
{
    struct oriel_wait_need needs[NEEDS] = {{.kind = ORIEL_NEED_UNKNOWN}};
    if (!oriel_wait_open(site, NULL, mode))
        return false;
    for (int i = 0; i < count; i++) {
        if (records[i] == NULL && requests[i] == MPI_REQUEST_NULL)
            continue;
        int found = records[i] == NULL ? 0 : oriel_message_needs(records[i], needs);
        if (found == 0 && records[i] != NULL)
            found = oriel_collective_request_needs(records[i], needs);
        if (found == 0 && records[i] != NULL)
            found = oriel_notify_request_needs(records[i], needs);
        if (found == 0)
            needs[found++] = (struct oriel_wait_need){.kind = ORIEL_NEED_UNKNOWN};
        for (int k = 0; k < found; k++)
            oriel_wait_add(&needs[k]);
    }
    oriel_wait_begin();
    return true;
}
