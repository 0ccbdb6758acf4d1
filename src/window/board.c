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
 * one communicator.  Death: as in sync/barrier.c, by broken; who dies in N3 is one of those that the others look at. */
#include "window/board.h"

#include "base/delay.h"

#include <string.h>

static enum oriel_status look_at_all(void *context)
{
    const struct oriel_board *board = context;
    for (int32_t i = 0; i < board->group->n; i++)
        if (i != board->rank && !oriel_peer_alive(board->group->peers[i]))
            return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died", (int)i,
                              (int)board->group->peers[i]->identity.pid);
    return ORIEL_OK;
}

static char *record_of(const struct oriel_board *board, int32_t rank)
{
    size_t at = (size_t)board->side * (size_t)board->group->n + (size_t)rank;
    return board->words->records + at * ORIEL_BOARD_RECORD_BYTES;
}

const void *oriel_board_record(const struct oriel_board *board, int32_t rank)
{
    return record_of(board, rank);
}

enum oriel_status oriel_board_meet(struct oriel_board *board, const void *record, size_t len_bytes,
                                   oriel_board_conclude *conclude, void *context, uint32_t *verdict)
{
    struct oriel_board_words *words = board->words;
    struct oriel_watch watch = {look_at_all, board};
    if (oriel_unlikely(oriel_load_acquire(&words->broken) != 0)) {
        enum oriel_status dead = look_at_all(board);
        return dead != ORIEL_OK ? dead : oriel_fail(ORIEL_E_PEER, "a rank of the communicator has died");
    }
    board->side ^= 1;
    memcpy(record_of(board, board->rank), record, len_bytes); /* N1 */
    uint32_t turn = oriel_load_acquire(&words->turn.value);
    oriel_delay();
    uint32_t arrived = atomic_fetch_add_explicit(&words->arrived, 1, memory_order_seq_cst) + 1; /* N2 */
    if (arrived == (uint32_t)board->group->n) {
        *verdict = conclude(board, context);
        oriel_delay();
        oriel_store_relaxed(&words->verdict, *verdict); /* N3 */
        oriel_store_relaxed(&words->arrived, 0);
        oriel_delay();
        oriel_event_signal(&words->turn); /* N4 */
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_wait(&words->turn.value, &words->turn.sleepers, ORIEL_WAIT_NOT_EQUAL, turn, &watch);
    oriel_delay();
    if (status == ORIEL_OK)
        *verdict = oriel_load_relaxed(&words->verdict); /* N5 */
    else
        oriel_store_release(&words->broken, 1);
    return status;
}
