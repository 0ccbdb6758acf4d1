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

/* Before the records arrive, only existing windows know the other processes. This code checks
 * whether a rank of such a window that is also in this communicator has died. Each rank checks the
 * next remote rank after it, and reports a dead one to the others through that window. So each dead
 * rank is checked by at least one other, whichever others have died as well. An incomplete window
 * cannot carry reports. */

/* The rank in the communicator; MPI_UNDEFINED if it is not a member. */
static int rank_here(const struct oriel_window *window, int32_t win_rank,
                     const struct attempt_watch *known)
{
    int there = win_rank;
    int here = MPI_UNDEFINED;
    if (oriel_host()->Group_translate_ranks(window->host->group, 1, &there, known->making.group,
                                            &here) != MPI_SUCCESS)
        return MPI_UNDEFINED;
    return here;
}

static void died(struct attempt_watch *known, int here, enum oriel_status status)
{
    known->watched.dead = here;
    known->status = status;
}

/* The rank that knows the location has died, or has left the window. That does not imply that this
 * rank is dead, so it is treated as silent. */
static void miss(struct attempt_watch *known, int here)
{
    if (oriel_now_ns() - known->since_ns >= oriel_timeout_ns())
        died(known, here,
             oriel_fail(ORIEL_E_PEER, "rank %d does not come, and nobody tells where it is", here));
}

/* Whether a remote rank can be checked; if so, checks it. */
static bool look_at_one(struct oriel_window *window, int32_t rank, struct attempt_watch *known)
{
    struct oriel_watched watched = {.window = window, .win_rank = rank};
    int here = window->group->peers[rank] != NULL ? MPI_UNDEFINED : rank_here(window, rank, known);
    if (here == MPI_UNDEFINED)
        return false;
    if (oriel_liveness_rank(&watched) != ORIEL_E_PEER)
        return true;
    if (watched.dead < 0) {
        miss(known, here);
        return false;
    }
    oriel_internode_break(window, watched.dead);
    here = rank_here(
        window, watched.dead,
        known); /* undefined if the dead rank is not a member of this communicator */
    if (here != MPI_UNDEFINED)
        died(known, here, oriel_fail(ORIEL_E_PEER, "rank %d has died, or is out of reach", here));
    return true;
}

/* Also checks one more rank each time: the rank that would have reported it may have left with an
 * error of another call. */
static void look_at_far(struct oriel_window *window, struct attempt_watch *known)
{
    static _Thread_local uint32_t turn;
    uint32_t broken = oriel_load_acquire(&window->common->broken);
    int here = broken == 0 ? MPI_UNDEFINED : rank_here(window, (int32_t)broken - 1, known);
    if (here != MPI_UNDEFINED)
        died(known, here, oriel_fail(ORIEL_E_PEER, "rank %d has died", here));
    for (int32_t i = 1; i < window->n && known->status == ORIEL_OK; i++)
        if (look_at_one(window, (int32_t)(((int64_t)window->rank + i) % window->n), known))
            break;
    if (known->status == ORIEL_OK)
        (void)look_at_one(window, (int32_t)(turn++ % (uint32_t)window->n), known);
}

static void look_at_known(struct oriel_window *window, void *context)
{
    struct attempt_watch *known = context;
    const bool is_far =
        window->far != NULL && atomic_load_explicit(&window->far->is_settled, memory_order_acquire);
    if (window == known->watched.window)
        return;
    for (int32_t i = 0; i < window->n && known->status == ORIEL_OK; i++) {
        const struct oriel_peer *peer = window->group->peers[i];
        if (peer == NULL || oriel_peer_alive(peer))
            continue;
        if (is_far)
            oriel_internode_break(
                window,
                /* ranks that wait for it elsewhere may learn of it only through its node's ranks */
                i);
        int here = rank_here(window, i, known);
        if (here != MPI_UNDEFINED)
            died(known, here,
                 oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", here,
                            (int)peer->identity.pid));
    }
    if (is_far && known->status == ORIEL_OK)
        look_at_far(window, known);
}

/* The window being created knows the processes once it has a group. */
static enum oriel_status watch_attempt(void *context)
{
    struct attempt_watch *known = context;
    known->status =
        known->watched.window->group != NULL ? oriel_liveness_all(&known->watched) : ORIEL_OK;
    if (known->status == ORIEL_OK && !known->is_board)
        oriel_handle_visit(look_at_known, known);
    return known->status;
}

void oriel_create_state_watch_open(struct attempt_watch *known, const struct attempt *attempt)
{
    *known = (struct attempt_watch){.making = {attempt->window, MPI_GROUP_NULL},
                                    .watched = {.window = attempt->window, .win_rank = -1},
                                    .watch = {watch_attempt, known, ORIEL_WAITING_AGREE},
                                    .is_board =
                                        attempt->window->group != NULL && attempt->machines == NULL,
                                    .since_ns = oriel_now_ns()};
    if (!known->is_board)
        oriel_host()->Comm_group(attempt->creation->comm, &known->making.group);
}

void oriel_create_state_watch_close(struct attempt_watch *known)
{
    if (known->making.group != MPI_GROUP_NULL)
        oriel_host()->Group_free(&known->making.group);
}

static enum oriel_status gather(struct attempt *attempt)
{
    struct attempt_watch known;
    oriel_create_state_watch_open(&known, attempt);
    enum oriel_status status =
        oriel_host_gather(attempt->creation->comm, attempt->creation->call, &attempt->own,
                          sizeof attempt->own, attempt->records, &known.watch);
    oriel_create_state_watch_close(&known);
    return status;
}

/* --- through a rendezvous --- */

enum { GO_ON, MADE }; /* conclusions of a round of records */

static const struct record *record_at(void *board, int32_t rank)
{
    return oriel_shm_rendezvous_record(board, rank);
}

/* Whether a rank has finished its part, provided that it can copy to and from the other ranks'
 * memory where needed. */
static bool is_plain(const struct oriel_creation *creation, const struct record *record)
{
    bool is_large = record->target.size_bytes > ORIEL_RESERVED_BYTES &&
                    creation->flavour != ORIEL_FLAVOUR_CREATE;
    bool is_contiguous = creation->flavour == ORIEL_FLAVOUR_SHARED && !record->noncontig;
    return record->version == RECORD_VERSION && record->status == ORIEL_OK && !record->wants_host &&
           !is_large && !is_contiguous &&
           oriel_identity_equal(&record->memory, &record->member.process);
}

static uint32_t conclude_records(struct oriel_shm_rendezvous *board, void *context)
{
    const struct oriel_creation *creation = context;
    bool some_by_copy = false;
    bool all_copy = true;
    for (int32_t i = 0; i < board->group->n; i++) {
        const struct record *record = oriel_shm_rendezvous_record(board, i);
        if (!is_plain(creation, record))
            return GO_ON;
        some_by_copy = some_by_copy || record->target.mechanism != ORIEL_BY_ARENA;
        all_copy = all_copy && record->cma_known;
    }
    if (some_by_copy && !all_copy)
        return GO_ON;
    const struct record *first = oriel_shm_rendezvous_record(board, 0);
    oriel_create_state_fill_common(
        (struct oriel_common *)(board->group->bases[0] + first->common_offset), board->group->n,
        record_at, board);
    return MADE;
}

static uint32_t conclude_bits(struct oriel_shm_rendezvous *board, void *context)
{
    uint32_t agreed = UINT32_MAX;
    (void)context;
    for (int32_t i = 0; i < board->group->n; i++) {
        uint32_t bits;
        memcpy(&bits, oriel_shm_rendezvous_record(board, i), sizeof bits);
        agreed &= bits;
    }
    return agreed;
}

/* Call before the next round, which may overwrite them. */
static void keep_records(struct attempt *attempt)
{
    for (int32_t i = 0; i < attempt->window->n; i++)
        attempt->records[i] = *record_at(attempt->board, i);
}

/* --- both --- */

static bool make_room(struct attempt *attempt)
{
    uint32_t n = (uint32_t)attempt->window->n;
    attempt->records = n <= FEW ? attempt->few : calloc(n, sizeof *attempt->records);
    return attempt->records != NULL;
}

enum oriel_status oriel_create_state_exchange(struct attempt *attempt, bool *done)
{
    uint32_t verdict = GO_ON;
    enum oriel_status status = ORIEL_OK;
    *done = false;
    if (attempt->board != NULL) {
        status = oriel_shm_rendezvous_meet(attempt->board, &attempt->own, sizeof attempt->own,
                                           conclude_records, (void *)attempt->creation, &verdict);
        *done = verdict == MADE;
        if (status == ORIEL_E_COMM)
            attempt->board = NULL;
        else if (status != ORIEL_OK || *done)
            return status;
    }
    if (!make_room(attempt)) {
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the records of %d ranks",
                            (int)attempt->window->n);
        /* at a rendezvous all ranks meet once more; through the host, the other ranks cannot be
         * notified, and will report that they wait */
        return attempt->board != NULL ? ORIEL_OK : status;
    }
    if (attempt->board == NULL && attempt->window->n > 1)
        return gather(attempt);
    if (attempt->board != NULL)
        keep_records(attempt);
    else
        attempt->records[0] = attempt->own;
    return ORIEL_OK;
}

enum oriel_status oriel_create_state_agree(struct attempt *attempt, uint32_t own, uint32_t *agreed)
{
    const struct oriel_creation *creation = attempt->creation;
    struct attempt_watch known;
    *agreed = own;
    if (attempt->window->n == 1)
        return ORIEL_OK;
    if (attempt->board != NULL)
        return oriel_shm_rendezvous_meet(attempt->board, &own, sizeof own, conclude_bits, NULL,
                                         agreed);
    oriel_create_state_watch_open(&known, attempt);
    enum oriel_status status =
        oriel_host_agree(creation->comm, creation->call, own, agreed, &known.watch);
    oriel_create_state_watch_close(&known);
    attempt->dead = known.watched.dead;
    return status;
}
