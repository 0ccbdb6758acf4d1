/* Rounds at a rendezvous: a barrier that transfers a record from each rank, and one conclusion
 * back.
 *
 *   N1: a rank writes its record on the side of this turn (sides alternate)
 *   N2: it arrives, one read-modify-write
 *   N3: the last to arrive draws the conclusion from all records and writes it
 *   N4: it resets the counter, then advances turn
 *   N5: the others see the new turn, then read the conclusion, and optionally records
 *
 * Argument. As in sync/barrier.c, the turn cannot advance before this rank has arrived, so the
 * value that it reads before N2 is the current one. No rank arrives at the next round before it has
 * seen N4. N1 of every rank precedes its N2 (release), and N2 of the last rank acquires them all:
 * N3 sees every record of this turn. N3 precedes N4 (release), which N5 acquires.
 *
 * Records stay until their reader arrives at its next round. The same side is written again two
 * rounds later. Its writer has then left the round in between, where the reader has arrived after
 * its reading. With only one side, a fast rank could overwrite records for the next round while
 * others still read. The conclusion needs no second side: it is written when all ranks have
 * arrived, hence after all have read the previous one.
 *
 * All ranks participate in the same rounds in the same order: a rendezvous belongs to one
 * communicator, and MPI orders the collectives of one communicator.
 *
 * Leaving. N6: a rank that has finished the last round in which it participates sets left
 * (release). A rank that arrives at a round, or waits there, and sees left (acquire) reads the turn
 * once more. If the turn has advanced, the other rank participated in that round. If not, the round
 * never ends: it is the first one without the other rank, and no round ends without all. So a round
 * ends for all ranks that arrive or for none.
 *
 * Death. As in sync/barrier.c, through broken; a rank that dies in N3 is among those that the
 * others check. Checking a process costs some system calls. If many ranks all checked all others at
 * once, they would do nothing else. Each rank therefore checks a few at a time, first the ones
 * after it. Together the waiting ranks check every rank in the first pass. A rank that finds a dead
 * one sets broken, which all read at each check. A rank that waits alone completes a pass within a
 * second. */
#include "create/shm_rendezvous.h"

#include "base/delay.h"
#include "base/log.h"
#include "internode/origin/liveness.h"

#include <stdio.h>
#include <string.h>

enum { PATIENCE_S = 10 };

/* Checks the count ranks after first. */
static enum oriel_status peers_check(const struct oriel_shm_rendezvous *rendezvous, int32_t first,
                                     int32_t count)
{
    for (int32_t i = 1; i <= count; i++) {
        int32_t rank = (int32_t)(((int64_t)first + i) % rendezvous->group->n);
        const struct oriel_peer *peer = rendezvous->group->peers[rank];
        if (rank != rendezvous->rank && !oriel_peer_alive(peer))
            return oriel_fail(ORIEL_E_PEER, "rank %d (process %d) has died [O18]", (int)rank,
                              (int)peer->identity.pid);
    }
    return ORIEL_OK;
}

/* A rank has left because of a death. */
static enum oriel_status dead_rank_error(const struct oriel_shm_rendezvous *rendezvous)
{
    enum oriel_status dead = peers_check(rendezvous, rendezvous->rank, rendezvous->group->n);
    return dead != ORIEL_OK ? dead
                            : oriel_fail(ORIEL_E_PEER, "a rank of the communicator has died");
}

static bool any_rank_left(const struct oriel_shm_rendezvous *rendezvous)
{
    return oriel_load_acquire(&rendezvous->words->left) != 0;
}

static enum oriel_status rank_left_error(struct oriel_shm_rendezvous *rendezvous)
{
    rendezvous->is_over = true;
    return oriel_fail(ORIEL_E_COMM, "a rank has freed the communicator, or tried to");
}

static void warn_if_late(struct oriel_shm_rendezvous *rendezvous)
{
    if (rendezvous->since_ns == 0 ||
        oriel_now_ns() - rendezvous->since_ns < PATIENCE_S * UINT64_C(1000000000))
        return;
    char rest[100];
    snprintf(rest, sizeof rest, " has waited %d s for the other ranks: is one of them late? [O14]",
             PATIENCE_S);
    oriel_log_call(ORIEL_LOG_WARNING, "creating a window", rest);
    rendezvous->since_ns = 0;
}

/* Each rank starts after itself and continues where it stopped the last time. */
static enum oriel_status rendezvous_watch(void *context)
{
    struct oriel_shm_rendezvous *rendezvous = context;
    int32_t count = oriel_liveness_share(rendezvous->group->n);
    warn_if_late(rendezvous);
    if (oriel_load_acquire(&rendezvous->words->broken) != 0)
        return dead_rank_error(rendezvous);
    if (any_rank_left(rendezvous))
        return rank_left_error(rendezvous); /* oriel_wait reads the turn after this */
    enum oriel_status status = peers_check(rendezvous, rendezvous->checked_up_to, count);
    rendezvous->checked_up_to = (rendezvous->checked_up_to + count) % rendezvous->group->n;
    return status;
}

static char *record_slot(const struct oriel_shm_rendezvous *rendezvous, int32_t rank)
{
    size_t at = (size_t)rendezvous->side * (size_t)rendezvous->group->n + (size_t)rank;
    return rendezvous->words->records + at * ORIEL_RENDEZVOUS_RECORD_BYTES;
}

const void *oriel_shm_rendezvous_record(const struct oriel_shm_rendezvous *rendezvous, int32_t rank)
{
    return record_slot(rendezvous, rank);
}

enum oriel_status oriel_shm_rendezvous_meet(struct oriel_shm_rendezvous *rendezvous,
                                            const void *record, size_t len_bytes,
                                            oriel_shm_rendezvous_conclude *conclude, void *context,
                                            uint32_t *verdict)
{
    struct oriel_shm_rendezvous_words *words = rendezvous->words;
    struct oriel_watch watch = {rendezvous_watch, rendezvous, ORIEL_WAITING_CREATE};
    if (oriel_unlikely(oriel_load_acquire(&words->broken) != 0))
        return dead_rank_error(rendezvous);
    /* this rank has seen the turn of all earlier rounds */
    if (oriel_unlikely(any_rank_left(rendezvous)))
        return rank_left_error(rendezvous);
    rendezvous->side ^= 1;
    rendezvous->checked_up_to = rendezvous->rank;
    memcpy(record_slot(rendezvous, rendezvous->rank), record, len_bytes); /* N1 */
    uint32_t turn = oriel_load_acquire(&words->turn.value);
    oriel_delay();
    uint32_t arrived =
        atomic_fetch_add_explicit(&words->arrived, 1, memory_order_seq_cst) + 1; /* N2 */
    if (arrived == (uint32_t)rendezvous->group->n) {
        *verdict = conclude(rendezvous, context);
        oriel_delay();
        oriel_store_relaxed(&words->verdict, *verdict); /* N3 */
        oriel_store_relaxed(&words->arrived, 0);
        oriel_delay();
        oriel_event_signal(&words->turn); /* N4 */
        return ORIEL_OK;
    }
    rendezvous->since_ns = oriel_now_ns();
    enum oriel_status status =
        oriel_wait(&words->turn.value, &words->turn.sleepers, ORIEL_WAIT_NOT_EQUAL, turn, &watch);
    oriel_delay();
    if (status == ORIEL_OK)
        *verdict = oriel_load_relaxed(&words->verdict); /* N5 */
    else if (status == ORIEL_E_PEER)
        oriel_store_release(&words->broken, 1);
    return status;
}
