/* Meetings at a board: a barrier that carries a record of each rank there and one conclusion back.
 *
 *   N1: a rank writes its record on the side of this turn (sides alternate)
 *   N2: it arrives, one read-modify-write
 *   N3: the last to arrive draws the conclusion from all records and writes it    N4: it resets the counter, then moves turn on
 *   N5: the others see the new turn, then read the conclusion, and records if they like
 *
 * Argument.  As in sync/barrier.c the turn cannot move on before this rank has arrived, so what it reads before N2 is the present
 * one; and nobody arrives at the next meeting before it has seen N4.  N1 of every rank comes before its N2 (release), and N2 of
 * the last acquires them all: N3 sees every record of this turn.  N3 comes before N4 (release), which N5 acquires.
 * Records stay until their reader comes to its next meeting: the same side is written again two meetings later, by a rank that
 * has left the one in between, where the reader has arrived after its reading.  One side only would be written by a rank that
 * hurries to the next meeting while others still read.  The conclusion needs no second side: it is written when all
 * have arrived, hence after all have read the one before.
 *
 * All ranks come to the same meetings in the same order: a board belongs to one communicator, and MPI orders the collectives of
 * one communicator.
 *
 * Leaving.  N6: a rank that is through with the last meeting to which it will come sets left (release).  Who comes to a meeting,
 * or waits there, and sees it (acquire) looks at the turn once more: if that has moved on, the meeting was one of those to which
 * the other had come.  If not, it never ends: it is the first without the other, since no meeting ends without all.  So a
 * meeting ends for all who come or for none.
 *
 * Death.  As in sync/barrier.c, by broken; who dies in N3 is one of those that the others look at.  A look at a process costs
 * some system calls, and all ranks at once looking at all would be busy with that alone where they are many: each looks at few
 * at a time, first at those behind it, so that of all who wait some look at any rank the first time; who finds one dead says so
 * by broken, which all read at each look.  A rank that waits alone comes round within a second. */
#include "create/shm_rendezvous.h"

#include "base/delay.h"
#include "base/log.h"
#include "internode/origin/liveness.h"

#include <string.h>

enum { PATIENCE_S = 10 };

/* At count ranks behind rank first. */
static enum oriel_status look_at(const struct oriel_shm_rendezvous *board, int32_t first,
                                 int32_t count)
{
    for (int32_t i = 1; i <= count; i++) {
        int32_t rank = (int32_t)(((int64_t)first + i) % board->group->n);
        const struct oriel_peer *peer = board->group->peers[rank];
        if (rank != board->rank && !oriel_peer_alive(peer))
            return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", (int)rank,
                              (int)peer->identity.pid);
    }
    return ORIEL_OK;
}

/* Some rank has left in vain. */
static enum oriel_status name_dead(const struct oriel_shm_rendezvous *board)
{
    enum oriel_status dead = look_at(board, board->rank, board->group->n);
    return dead != ORIEL_OK ? dead
                            : oriel_fail(ORIEL_E_PEER, "a rank of the communicator has died");
}

static bool is_left(const struct oriel_shm_rendezvous *board)
{
    return oriel_load_acquire(&board->words->left) != 0;
}

static enum oriel_status somebody_left(struct oriel_shm_rendezvous *board)
{
    board->is_over = true;
    return oriel_fail(ORIEL_E_COMM, "a rank has freed the communicator, or tried to");
}

static void tell_user(struct oriel_shm_rendezvous *board)
{
    if (board->since_ns == 0 ||
        oriel_now_ns() - board->since_ns < PATIENCE_S * UINT64_C(1000000000))
        return;
    oriel_warn("the making of a window has waited %d s for the other ranks: is one of them late?",
               PATIENCE_S);
    board->since_ns = 0;
}

/* Each rank begins behind itself and goes on where it stopped the last time. */
static enum oriel_status look_at_some(void *context)
{
    struct oriel_shm_rendezvous *board = context;
    int32_t count = oriel_liveness_share(board->group->n);
    tell_user(board);
    if (oriel_load_acquire(&board->words->broken) != 0)
        return name_dead(board);
    if (is_left(board))
        return somebody_left(board); /* oriel_wait looks at the turn after this */
    enum oriel_status status = look_at(board, board->looked_at, count);
    board->looked_at = (board->looked_at + count) % board->group->n;
    return status;
}

static char *record_of(const struct oriel_shm_rendezvous *board, int32_t rank)
{
    size_t at = (size_t)board->side * (size_t)board->group->n + (size_t)rank;
    return board->words->records + at * ORIEL_BOARD_RECORD_BYTES;
}

const void *oriel_shm_rendezvous_record(const struct oriel_shm_rendezvous *board, int32_t rank)
{
    return record_of(board, rank);
}

enum oriel_status oriel_shm_rendezvous_meet(struct oriel_shm_rendezvous *board, const void *record,
                                            size_t len_bytes,
                                            oriel_shm_rendezvous_conclude *conclude, void *context,
                                            uint32_t *verdict)
{
    struct oriel_shm_rendezvous_words *words = board->words;
    struct oriel_watch watch = {look_at_some, board, ORIEL_WAITING_CREATE};
    if (oriel_unlikely(oriel_load_acquire(&words->broken) != 0))
        return name_dead(board);
    if (oriel_unlikely(is_left(board))) /* this rank has seen the turn of all meetings before */
        return somebody_left(board);
    board->side ^= 1;
    board->looked_at = board->rank;
    memcpy(record_of(board, board->rank), record, len_bytes); /* N1 */
    uint32_t turn = oriel_load_acquire(&words->turn.value);
    oriel_delay();
    uint32_t arrived =
        atomic_fetch_add_explicit(&words->arrived, 1, memory_order_seq_cst) + 1; /* N2 */
    if (arrived == (uint32_t)board->group->n) {
        *verdict = conclude(board, context);
        oriel_delay();
        oriel_store_relaxed(&words->verdict, *verdict); /* N3 */
        oriel_store_relaxed(&words->arrived, 0);
        oriel_delay();
        oriel_event_signal(&words->turn); /* N4 */
        return ORIEL_OK;
    }
    board->since_ns = oriel_now_ns();
    enum oriel_status status =
        oriel_wait(&words->turn.value, &words->turn.sleepers, ORIEL_WAIT_NOT_EQUAL, turn, &watch);
    oriel_delay();
    if (status == ORIEL_OK)
        *verdict = oriel_load_relaxed(&words->verdict); /* N5 */
    else if (status == ORIEL_E_PEER)
        oriel_store_release(&words->broken, 1);
    return status;
}
