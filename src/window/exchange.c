/* How the ranks of a creation talk.  Over a communicator that has a board they meet there: the last to come looks at all records
 * and either finds that each rank has done its part, fills the table of targets, and the window is made; or tells all to go
 * through the other steps with copies of the records.  Over any other communicator they use the host's collectives, and where a
 * rank has left the board, as all find then.  create.c calls. */
#include "window/attempt.h"

#include "host/host.h"
#include "sync/watch.h"
#include "window/handle.h"

#include <stdlib.h>
#include <string.h>

/* --- by the host --- */

/* Before the records have come only windows that exist know who the others are: looks whether one of their ranks that is in
 * this communicator too has died. */
struct known {
    MPI_Group group; /* the communicator's */
    enum oriel_status status;
};

static void look_at_known(struct oriel_window *window, void *context)
{
    struct known *known = context;
    for (int32_t i = 0; i < window->n && known->status == ORIEL_OK; i++) {
        const struct oriel_peer *peer = window->group->peers[i];
        int there = i;
        int here = MPI_UNDEFINED;
        if (peer != NULL && !oriel_peer_alive(peer) &&
            oriel_host()->Group_translate_ranks(window->host->group, 1, &there, known->group, &here) == MPI_SUCCESS &&
            here != MPI_UNDEFINED)
            known->status = oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", here, (int)peer->identity.pid);
    }
}

static enum oriel_status watch_known(void *context)
{
    struct known *known = context;
    known->status = ORIEL_OK;
    oriel_handle_visit(look_at_known, known);
    return known->status;
}

static enum oriel_status gather(struct attempt *attempt)
{
    struct known known = {MPI_GROUP_NULL, ORIEL_OK};
    struct oriel_watched watched = {.window = attempt->window, .win_rank = -1};
    bool has_group = attempt->window->group != NULL; /* of a board that somebody has left */
    struct oriel_watch watch = has_group ? (struct oriel_watch){oriel_watch_all, &watched}
                                         : (struct oriel_watch){watch_known, &known};
    oriel_host()->Comm_group(attempt->creation->comm, &known.group);
    enum oriel_status status = oriel_host_gather(attempt->creation->comm, attempt->creation->call, &attempt->own,
                                                 sizeof attempt->own, attempt->records, &watch);
    oriel_host()->Group_free(&known.group);
    return status;
}

/* --- at a board --- */

enum { GO_ON, MADE }; /* what a meeting of records concludes */

static const struct record *record_at(void *board, int32_t rank)
{
    return oriel_board_record(board, rank);
}

/* Whether a rank has done all of its part, and reaches all targets if it reaches the others' memory by copies where need be. */
static bool is_plain(const struct oriel_creation *creation, const struct record *record)
{
    bool is_large = record->target.size_bytes > ORIEL_RESERVED_BYTES && creation->flavour != ORIEL_FLAVOUR_CREATE;
    bool is_contiguous = creation->flavour == ORIEL_FLAVOUR_SHARED && !record->noncontig;
    return record->version == RECORD_VERSION && record->status == ORIEL_OK && !record->wants_host && !is_large &&
           !is_contiguous && oriel_identity_equal(&record->memory, &record->member.process);
}

static uint32_t conclude_records(struct oriel_board *board, void *context)
{
    const struct oriel_creation *creation = context;
    bool some_by_copy = false;
    bool all_copy = true;
    for (int32_t i = 0; i < board->group->n; i++) {
        const struct record *record = oriel_board_record(board, i);
        if (!is_plain(creation, record))
            return GO_ON;
        some_by_copy = some_by_copy || record->target.mechanism != ORIEL_BY_ARENA;
        all_copy = all_copy && record->cma_known;
    }
    if (some_by_copy && !all_copy)
        return GO_ON;
    const struct record *first = oriel_board_record(board, 0);
    oriel_attempt_fill_common((struct oriel_common *)(board->group->bases[0] + first->common_offset), board->group->n, record_at,
                              board);
    return MADE;
}

static uint32_t conclude_bits(struct oriel_board *board, void *context)
{
    uint32_t agreed = UINT32_MAX;
    (void)context;
    for (int32_t i = 0; i < board->group->n; i++) {
        uint32_t bits;
        memcpy(&bits, oriel_board_record(board, i), sizeof bits);
        agreed &= bits;
    }
    return agreed;
}

/* Before the next meeting, which may change them. */
static void keep_records(struct attempt *attempt)
{
    for (int32_t i = 0; i < attempt->window->n; i++)
        attempt->records[i] = *record_at(attempt->board, i);
}

/* --- either way --- */

static bool make_room(struct attempt *attempt)
{
    uint32_t n = (uint32_t)attempt->window->n;
    attempt->records = n <= FEW ? attempt->few : calloc(n, sizeof *attempt->records);
    return attempt->records != NULL;
}

enum oriel_status oriel_attempt_exchange(struct attempt *attempt, bool *done)
{
    uint32_t verdict = GO_ON;
    enum oriel_status status = ORIEL_OK;
    *done = false;
    if (attempt->board != NULL) {
        status = oriel_board_meet(attempt->board, &attempt->own, sizeof attempt->own, conclude_records,
                                  (void *)attempt->creation, &verdict);
        *done = verdict == MADE;
        if (status == ORIEL_E_COMM)
            attempt->board = NULL;
        else if (status != ORIEL_OK || *done)
            return status;
    }
    if (!make_room(attempt)) {
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the records of %d ranks", (int)attempt->window->n);
        /* at a board all meet once more; by the host nothing can be told to so many: they will say that they wait */
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

enum oriel_status oriel_attempt_agree(struct attempt *attempt, uint32_t own, uint32_t *agreed)
{
    const struct oriel_creation *creation = attempt->creation;
    struct oriel_watched watched = {.window = attempt->window, .win_rank = -1};
    struct oriel_watch watch = {oriel_watch_all, &watched};
    *agreed = own;
    if (attempt->window->n == 1)
        return ORIEL_OK;
    if (attempt->board != NULL)
        return oriel_board_meet(attempt->board, &own, sizeof own, conclude_bits, NULL, agreed);
    return oriel_host_agree(creation->comm, creation->call, own, agreed, attempt->window->group != NULL ? &watch : NULL);
}
