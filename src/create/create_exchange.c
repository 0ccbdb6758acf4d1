/* Communication between the ranks of a creation. Over a communicator that has a rendezvous, the
 * ranks meet there. The last to arrive reads all records. If each rank has finished its part, it
 * fills the table of targets, and the window is created. Otherwise all ranks continue with the
 * other steps, with copies of the records. Over any other communicator, and if a rank has left the
 * rendezvous, they use the host's collectives. */
#include "create/create_state.h"

#include "base/options.h"
#include "host/host.h"
#include "internode/origin/origin_sync.h"
#include "window/handle.h"

#include <stdlib.h>
#include <string.h>

/* --- through the host --- */

/* Before the records arrive, only existing windows know the other processes. The functions below
 * check whether a rank that is in such a window and in this communicator has died. Each rank checks
 * the next remote rank after it, and reports a dead one to the others through that window. So at
 * least one other rank checks each dead rank, whichever ranks have died as well. An incomplete
 * window cannot carry reports. */

/* The rank in the communicator; MPI_UNDEFINED if it is not a member. */
static int rank_in_comm(const struct oriel_window *window, int32_t win_rank,
                        const struct create_watch *known)
{
    int window_rank = win_rank;
    int comm_rank = MPI_UNDEFINED;
    if (oriel_host()->Group_translate_ranks(window->host->group, 1, &window_rank,
                                            known->making.group, &comm_rank) != MPI_SUCCESS)
        return MPI_UNDEFINED;
    return comm_rank;
}

static void dead_rank_store(struct create_watch *known, int comm_rank, enum oriel_status status)
{
    known->watched.dead = comm_rank;
    known->status = status;
}

/* The process that knows this rank's address has died, or has left the window. That does not imply
 * that this rank is dead, so only the timeout counts it as dead. */
static void silent_rank_check(struct create_watch *known, int comm_rank)
{
    if (oriel_now_ns() - known->since_ns >= oriel_timeout_ns())
        dead_rank_store(known, comm_rank,
                        oriel_fail(ORIEL_E_PEER,
                                   "rank %d does not respond, and no rank knows its address",
                                   comm_rank));
}

/* Whether a remote rank can be checked; if so, checks it. */
static bool remote_rank_check(struct oriel_window *window, int32_t rank, struct create_watch *known)
{
    struct oriel_watched watched = {.window = window, .win_rank = rank};
    int comm_rank =
        window->group->peers[rank] != NULL ? MPI_UNDEFINED : rank_in_comm(window, rank, known);
    if (comm_rank == MPI_UNDEFINED)
        return false;
    if (oriel_liveness_rank(&watched) != ORIEL_E_PEER)
        return true;
    if (watched.dead < 0) {
        silent_rank_check(known, comm_rank);
        return false;
    }
    oriel_internode_window_break(window, watched.dead);
    /* undefined if the dead rank is not a member of this communicator */
    comm_rank = rank_in_comm(window, watched.dead, known);
    if (comm_rank != MPI_UNDEFINED)
        dead_rank_store(
            known, comm_rank,
            oriel_fail(ORIEL_E_PEER, "rank %d has died or is unreachable [O18]", comm_rank));
    return true;
}

/* Also checks one more rank in each call, in turn. The rank that would have reported a death may
 * have left with an error of another call. */
static void remote_ranks_check(struct oriel_window *window, struct create_watch *known)
{
    static _Thread_local uint32_t turn;
    uint32_t broken = oriel_load_acquire(&window->common->broken);
    int comm_rank = broken == 0 ? MPI_UNDEFINED : rank_in_comm(window, (int32_t)broken - 1, known);
    if (comm_rank != MPI_UNDEFINED)
        dead_rank_store(known, comm_rank,
                        oriel_fail(ORIEL_E_PEER, "rank %d has died [O18]", comm_rank));
    for (int32_t i = 1; i < window->n && known->status == ORIEL_OK; i++)
        if (remote_rank_check(window, (int32_t)(((int64_t)window->rank + i) % window->n), known))
            break;
    if (known->status == ORIEL_OK)
        (void)remote_rank_check(window, (int32_t)(turn++ % (uint32_t)window->n), known);
}

static void window_ranks_check(struct oriel_window *window, void *context)
{
    struct create_watch *known = context;
    const bool is_internode =
        window->internode != NULL &&
        atomic_load_explicit(&window->internode->is_settled, memory_order_acquire);
    if (window == known->watched.window || window->holding != NULL)
        return;
    for (int32_t i = 0; i < window->n && known->status == ORIEL_OK; i++) {
        const struct oriel_peer *peer = window->group->peers[i];
        if (peer == NULL || oriel_peer_alive(peer))
            continue;
        /* ranks on other nodes may learn of the death only through the ranks of this node */
        if (is_internode)
            oriel_internode_window_break(window, i);
        int comm_rank = rank_in_comm(window, i, known);
        if (comm_rank != MPI_UNDEFINED)
            dead_rank_store(known, comm_rank,
                            oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died [O18]",
                                       comm_rank, (int)peer->identity.pid));
    }
    if (is_internode && known->status == ORIEL_OK)
        remote_ranks_check(window, known);
}

/* The window being created knows the processes once it has a group. */
static enum oriel_status creation_watch(void *context)
{
    struct create_watch *known = context;
    known->status =
        known->watched.window->group != NULL ? oriel_liveness_all(&known->watched) : ORIEL_OK;
    if (known->status == ORIEL_OK && !known->is_rendezvous)
        oriel_handle_visit(window_ranks_check, known);
    return known->status;
}

void oriel_create_state_watch_open(struct create_watch *known, const struct create_state *state)
{
    *known = (struct create_watch){.making = {state->window, MPI_GROUP_NULL},
                                   .watched = {.window = state->window, .win_rank = -1},
                                   .watch = {creation_watch, known, ORIEL_WAITING_AGREE},
                                   .is_rendezvous =
                                       state->window->group != NULL && state->node_map == NULL,
                                   .since_ns = oriel_now_ns()};
    if (!known->is_rendezvous)
        oriel_host()->Comm_group(state->creation->comm, &known->making.group);
}

void oriel_create_state_watch_close(struct create_watch *known)
{
    if (known->making.group != MPI_GROUP_NULL)
        oriel_host()->Group_free(&known->making.group);
}

static enum oriel_status records_gather(struct create_state *state)
{
    struct create_watch known;
    oriel_create_state_watch_open(&known, state);
    enum oriel_status status =
        oriel_host_allgather(state->creation->comm, state->creation->call, &state->own,
                             sizeof state->own, state->records, &known.watch);
    oriel_create_state_watch_close(&known);
    return status;
}

/* --- through a rendezvous --- */

enum { CONTINUE_STEPS, WINDOW_CREATED }; /* conclusions of a round of records */

static const struct create_record *rendezvous_record(void *rendezvous, int32_t rank)
{
    return oriel_shm_rendezvous_record(rendezvous, rank);
}

/* Whether a rank has finished its part, provided that it can copy to and from the other ranks'
 * memory where needed. */
static bool record_is_complete(const struct oriel_creation *creation,
                               const struct create_record *record)
{
    bool is_large = record->target.size_bytes > ORIEL_RESERVED_BYTES &&
                    creation->flavour != ORIEL_FLAVOUR_CREATE;
    bool is_contiguous = creation->flavour == ORIEL_FLAVOUR_SHARED && !record->noncontig;
    return record->version == RECORD_VERSION && record->status == ORIEL_OK && !record->wants_host &&
           !is_large && !is_contiguous &&
           oriel_identity_equal(&record->memory, &record->member.process);
}

static uint32_t conclude_records(struct oriel_shm_rendezvous *rendezvous, void *context)
{
    const struct oriel_creation *creation = context;
    bool some_by_copy = false;
    bool all_copy = true;
    for (int32_t i = 0; i < rendezvous->group->n; i++) {
        const struct create_record *record = oriel_shm_rendezvous_record(rendezvous, i);
        if (!record_is_complete(creation, record) ||
            record->target.placement == ORIEL_PLACEMENT_DEVICE)
            return CONTINUE_STEPS;
        some_by_copy = some_by_copy || record->target.placement != ORIEL_PLACEMENT_DIRECT;
        all_copy = all_copy && record->cma_known;
    }
    if (some_by_copy && !all_copy)
        return CONTINUE_STEPS;
    const struct create_record *first = oriel_shm_rendezvous_record(rendezvous, 0);
    oriel_create_state_fill_common(
        (struct oriel_common *)(rendezvous->group->bases[0] + first->common_offset),
        rendezvous->group->n, rendezvous_record, rendezvous);
    return WINDOW_CREATED;
}

static uint32_t conclude_bits(struct oriel_shm_rendezvous *rendezvous, void *context)
{
    uint32_t agreed = UINT32_MAX;
    (void)context;
    for (int32_t i = 0; i < rendezvous->group->n; i++) {
        uint32_t bits;
        memcpy(&bits, oriel_shm_rendezvous_record(rendezvous, i), sizeof bits);
        agreed &= bits;
    }
    return agreed;
}

/* Call before the next round, which may overwrite them. */
static void records_copy(struct create_state *state)
{
    for (int32_t i = 0; i < state->window->n; i++)
        state->records[i] = *rendezvous_record(state->rendezvous, i);
}

/* --- both --- */

static bool records_alloc(struct create_state *state)
{
    uint32_t n = (uint32_t)state->window->n;
    state->records =
        n <= INLINE_RECORDS ? state->inline_records : calloc(n, sizeof *state->records);
    return state->records != NULL;
}

enum oriel_status oriel_create_state_exchange(struct create_state *state, bool *done)
{
    uint32_t verdict = CONTINUE_STEPS;
    enum oriel_status status = ORIEL_OK;
    *done = false;
    if (state->rendezvous != NULL) {
        status = oriel_shm_rendezvous_meet(state->rendezvous, &state->own, sizeof state->own,
                                           conclude_records, (void *)state->creation, &verdict);
        *done = verdict == WINDOW_CREATED;
        if (status == ORIEL_E_COMM)
            state->rendezvous = NULL;
        else if (status != ORIEL_OK || *done)
            return status;
    }
    if (!records_alloc(state)) {
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the records of %d ranks",
                            (int)state->window->n);
        /* at a rendezvous all ranks meet once more; through the host, the other ranks cannot be
         * notified, and will report that they wait */
        return state->rendezvous != NULL ? ORIEL_OK : status;
    }
    if (state->rendezvous == NULL && state->window->n > 1)
        return records_gather(state);
    if (state->rendezvous != NULL)
        records_copy(state);
    else
        state->records[0] = state->own;
    return ORIEL_OK;
}

enum oriel_status oriel_create_state_agree(struct create_state *state, uint32_t own,
                                           uint32_t *agreed)
{
    const struct oriel_creation *creation = state->creation;
    struct create_watch known;
    *agreed = own;
    if (state->window->n == 1)
        return ORIEL_OK;
    if (state->rendezvous != NULL)
        return oriel_shm_rendezvous_meet(state->rendezvous, &own, sizeof own, conclude_bits, NULL,
                                         agreed);
    oriel_create_state_watch_open(&known, state);
    enum oriel_status status =
        oriel_host_agree(creation->comm, creation->call, own, agreed, &known.watch);
    oriel_create_state_watch_close(&known);
    state->dead = known.watched.dead;
    return status;
}
