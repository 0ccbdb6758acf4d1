/* The clocks of this machine's ranks and what they gave, as they stand in its board: worked on by order.c for this process, and
 * by remote_serve.c for processes of other machines that ask.  Clocks come and go as plain arrays of one number for each rank of
 * MPI_COMM_WORLD.  Of others, windows_access.c and word_clocks.c say and ask what was lost. */
#ifndef ORIEL_CHECK_ORDER_RANK_CLOCKS_H
#define ORIEL_CHECK_ORDER_RANK_CLOCKS_H

#include "check/order/clock.h"
#include "check/shm/shm.h"

#include <stdatomic.h>

enum { ORIEL_RANK_ABSENT, ORIEL_RANK_RUNNING, ORIEL_RANK_STOPPED };

/* A process's clock.  known: written by the process alone, under its lock; its own number also without. */
struct oriel_rank {
    _Atomic uint32_t state;
    uint32_t unused;
    _Atomic uint64_t asked; /* how often others have asked for a larger number (order.c, O2) */
    uint64_t unused_too[6];
    _Atomic oriel_tick known[];
};
_Static_assert(offsetof(struct oriel_rank, known) == 64, "what others write has a line of its own");

/* Once the board is mapped; any number of times.  False: there is no room. */
bool oriel_ranks_open(void);

/* A row for this rank of the machine, which runs from now on; NULL: there is no room. */
struct oriel_rank *oriel_ranks_add(int world_rank);

/* NULL: it is of another machine, or has not started. */
struct oriel_rank *oriel_rank_at(int world_rank);

static inline oriel_tick oriel_rank_tick(const struct oriel_rank *rank, int of)
{
    return atomic_load_explicit(&rank->known[of], memory_order_relaxed);
}

/* All that the rank has done so far comes before what the taker does from now on: it is asked for a larger number, and its clock
 * with the number that it had goes into out by oriel_clock_take.  False: it is none of this machine. */
bool oriel_rank_take(int world_rank, oriel_tick *out);

/* The same of all ranks of this machine but one (-1: none). */
void oriel_ranks_take_all(int but, oriel_tick *out);

/* What every running rank of this machine knows at least, into out as the lesser; any: whether out has something already, and
 * whether it has now. */
void oriel_ranks_floor(oriel_tick *out, bool *any);

/* --- what was given under keys of this board --- */

enum { ORIEL_GIVEN_TAKES = 1, ORIEL_GIVEN_COUNTS = 2 };

/* Joins the clock with what stands there; more: only where something does.  Where there is no room, that is remembered. */
void oriel_given_join(const struct oriel_key *key, uint32_t takers, bool more,
                      const oriel_tick *clock);

/* Takes what stands there into out.  takers 0: nothing is made where nothing is.  made: nobody has given yet. */
bool oriel_given_take(const struct oriel_key *key, uint32_t takers, unsigned how, oriel_tick *out,
                      bool *made);

/* A number that stands there: adds to it, and answers what it is then. */
uint32_t oriel_given_count(const struct oriel_key *key, uint32_t more);

/* Something that was given has found no room: who finds nothing takes all that there is. */
enum { ORIEL_GIVEN_LOST = 1, ORIEL_GIVEN_LOST_ASKER = 2, ORIEL_GIVEN_LOST_RANK = 4 };
extern const _Atomic uint32_t *oriel_given_lost
    __attribute__((visibility("hidden"))); /* of this board */
void oriel_given_lose(void);
static inline bool oriel_given_was_lost(void)
{
    return atomic_load_explicit(oriel_given_lost, memory_order_acquire) != 0;
}

/* The same; and one who asks this machine's server has been lost, so that what it would have counted here will not come. */
void oriel_given_lose_asker(void);
static inline bool oriel_given_lost_asker(void)
{
    return (atomic_load_explicit(oriel_given_lost, memory_order_acquire) &
            ORIEL_GIVEN_LOST_ASKER) != 0;
}

/* Numbers of messages are in doubt. */
void oriel_given_doubt(void);
bool oriel_given_is_doubtful(void);

/* A rank is no longer checked (oriel_order_leave).  Order may be unknown from now on, and numbers of messages are in doubt. */
void oriel_given_leave(void);
bool oriel_given_has_left(void);

#endif
