/* Order of collectives. Each call is numbered on its communicator, in the order of the calls.
 * Members give and take clocks under that number as the data flows (MPI-4.1, chapter 6). A member
 * that only gives still counts as done with the entry, which the last member removes. With a count
 * of 0 some members may return before others have arrived; the entry stays for these. */
#include "check/intercept/messages.h"

#include "check/intercept/messages_waits.h"
#include "check/intercept/request_table.h"
#include "host/host.h"

#include <stdlib.h>

/* --- buffers --- */

_Thread_local struct oriel_begun oriel_begun;

void oriel_uses_begin(struct oriel_uses *uses, const void *address, uint16_t call, bool pends)
{
    *uses = (struct oriel_uses){
        .site = oriel_site_here(address, call, (uint32_t)oriel_order_rank(), 0)};
    if (pends)
        uses->group = oriel_local_group_new();
}

void oriel_use(const struct oriel_uses *uses, bool writes, const void *buffer, MPI_Count count,
               MPI_Datatype datatype)
{
    if (buffer == MPI_IN_PLACE || count <= 0 || (uses->group == 0 && uses->is_after != writes))
        return;
    oriel_local_message(buffer, count, datatype, writes, uses->group, &uses->site);
}

void oriel_use_at(const struct oriel_uses *uses, bool writes, const void *buffer,
                  MPI_Aint displacement, MPI_Count count, MPI_Datatype datatype)
{
    MPI_Aint low, extent;
    if (buffer == MPI_IN_PLACE || datatype == MPI_DATATYPE_NULL ||
        oriel_host()->Type_get_extent(datatype, &low, &extent) != MPI_SUCCESS)
        return; /* an error that the host reports to the communicator's error handler */
    oriel_use(uses, writes, (const char *)buffer + displacement * extent, count, datatype);
}

/* --- order --- */

/* slot: 0 for the one entry of all, else the rank above 0 that owns the entry. */
static struct oriel_key collective_key(const struct oriel_collective *collective, int slot)
{
    uint64_t kind =
        ORIEL_ORDER_COLLECTIVE | oriel_order_home(oriel_comm_world_rank(collective->comm, 0));
    return (struct oriel_key){{kind, collective->comm->id, collective->number, (uint64_t)slot}};
}

void oriel_collective_begin_in(struct oriel_collective *collective, struct oriel_comm *entry,
                               enum oriel_flow flow, int root, const char *name)
{
    *collective = (struct oriel_collective){.flow = flow, .root = root};
    if (entry == NULL || !entry->is_reached) {
        collective->is_unknown = true;
        oriel_order_unknown_begin(name);
        return;
    }
    if (entry->size == 1)
        return;
    oriel_comm_retain(entry);
    oriel_begun.is_collective = true;
    collective->comm = entry;
    collective->number = atomic_fetch_add_explicit(&entry->collectives, 1, memory_order_relaxed);
    if (flow == ORIEL_FLOW_FROM_ROOT && entry->rank != root)
        return;
    bool up = flow == ORIEL_FLOW_UP;
    struct oriel_key key = collective_key(collective, up ? entry->rank + 1 : 0);
    oriel_order_give(&key, up ? entry->size - entry->rank : entry->size);
}

void oriel_collective_begin(struct oriel_collective *collective, MPI_Comm comm,
                            enum oriel_flow flow, int root, const char *name)
{
    if (comm == MPI_COMM_NULL) /* an error that the host reports */
        *collective = (struct oriel_collective){.flow = flow, .root = root};
    else
        oriel_collective_begin_in(collective, oriel_comm_find(comm), flow, root, name);
}

/* Numbers are in doubt: a member that takes, takes from every member that it may have met. */
static void members_take_all(const struct oriel_comm *comm)
{
    for (int rank = 0; rank < comm->size; rank++)
        oriel_order_take_rank(oriel_comm_world_rank(comm, rank));
}

void oriel_collective_end(struct oriel_collective *collective, bool failed)
{
    struct oriel_comm *comm = collective->comm;
    bool takes = true;
    if (collective->is_unknown)
        oriel_order_unknown_end();
    if (comm == NULL)
        return;
    oriel_begun.is_collective = false;
    if (failed)
        oriel_order_set_doubtful();
    if (collective->flow == ORIEL_FLOW_UP) {
        for (int rank = 0; rank <= comm->rank; rank++) {
            struct oriel_key key = collective_key(collective, rank + 1);
            oriel_order_end(&key, comm->size - rank, rank < comm->rank);
        }
    } else {
        struct oriel_key key = collective_key(collective, 0);
        bool is_root = comm->rank == collective->root;
        takes = collective->flow == ORIEL_FLOW_ALL ||
                is_root == (collective->flow == ORIEL_FLOW_TO_ROOT);
        oriel_order_end(&key, comm->size, takes);
    }
    if (takes && oriel_order_is_doubtful())
        members_take_all(comm);
    oriel_comm_release(comm);
    collective->comm = NULL;
}

/* --- with requests --- */

struct oriel_collective_request {
    struct oriel_collective collective;
    oriel_local_group buffers;
};

static void collective_request_end(struct oriel_collective_request *pending, bool failed)
{
    oriel_collective_end(&pending->collective, failed);
    oriel_local_complete(pending->buffers);
    free(pending);
}

static void collective_request_done(void *closure, const MPI_Status *status)
{
    (void)status;
    collective_request_end(closure, false);
}

static void collective_request_release(void *closure)
{
    const struct oriel_collective_request *pending = closure;
    oriel_local_complete(pending->buffers);
}

static const struct oriel_request_kind collective_request_kind = {collective_request_done,
                                                                  collective_request_release};

struct oriel_collective_request *oriel_collective_request_begin(MPI_Comm comm, enum oriel_flow flow,
                                                                int root, const char *name,
                                                                oriel_local_group buffers)
{
    struct oriel_collective_request *pending = malloc(sizeof *pending);
    if (pending == NULL) {
        oriel_order_set_doubtful();
        oriel_order_unknown_begin(name);
        oriel_local_complete(buffers);
        return NULL;
    }
    pending->buffers = buffers;
    oriel_collective_begin(&pending->collective, comm, flow, root, name);
    return pending;
}

void oriel_collective_request_arrived(struct oriel_collective_request *pending,
                                      const struct oriel_site *site, MPI_Comm comm)
{
    struct oriel_collective alone = {
        .comm = pending == NULL && comm != MPI_COMM_NULL ? oriel_comm_find(comm) : NULL};
    oriel_collective_arrived(site, pending == NULL ? &alone : &pending->collective);
}

int oriel_collective_request_needs(const struct oriel_request_record *record,
                                   struct oriel_wait_need *needs)
{
    const struct oriel_collective_request *pending =
        oriel_request_closure(record, &collective_request_kind);
    return pending == NULL ? 0 : oriel_collective_needs(&pending->collective, needs);
}

void oriel_collective_request_started(struct oriel_collective_request *pending, bool failed,
                                      MPI_Request *request)
{
    oriel_begun = (struct oriel_begun){0};
    if (pending == NULL)
        oriel_unknown_started(failed, *request);
    else if (failed)
        collective_request_end(pending, true);
    else
        oriel_checked_request_add_own(request, &collective_request_kind, pending);
}

static void unknown_request_done(void *closure, const MPI_Status *status)
{
    (void)closure;
    (void)status;
    oriel_order_unknown_end();
}

static const struct oriel_request_kind unknown_request_kind = {.done = unknown_request_done};

void oriel_unknown_started(bool failed, MPI_Request request)
{
    oriel_order_unknown_end();
    if (!failed)
        oriel_checked_request_add(request, &unknown_request_kind, NULL);
}
