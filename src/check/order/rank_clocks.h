/* The clocks of this node's ranks and the clocks that they gave, in the checker's shared memory.
 * Clocks are passed as plain arrays with the numbers of all ranks of MPI_COMM_WORLD. Where the
 * order of threads is tracked, each thread has a row; a row's index is that of its own number in a
 * clock. */
#ifndef ORIEL_CHECK_ORDER_RANK_CLOCKS_H
#define ORIEL_CHECK_ORDER_RANK_CLOCKS_H

#include "check/common/clock.h"
#include "check/shm/shm.h"

#include <stdatomic.h>

enum { ORIEL_RANK_ABSENT, ORIEL_RANK_RUNNING, ORIEL_RANK_STOPPED };

/* The clock of a process. known: written by this process only (order.c, O4). */
struct oriel_rank {
    _Atomic uint32_t state;
    uint32_t unused;
    _Atomic uint64_t asked; /* how often others have requested a larger number (order.c, O2) */
    uint64_t unused_too[6];
    _Atomic oriel_tick known[];
};
_Static_assert(offsetof(struct oriel_rank, known) == 64,
               "words that others write have a line of their own");

/* Merges a clock into another one: into[i] = max(into[i], from[i]). */
void oriel_clock_take(oriel_tick *into, const oriel_tick *from, int clock_width);

/* Opens the table once the shared memory is mapped; may be called several times. Returns false if
 * there is no room. */
bool oriel_ranks_open(void);

/* Adds a running row for a rank of this node, or one of its threads. Returns NULL if there is no
 * room. */
struct oriel_rank *oriel_ranks_add(int index);

/* The row of the rank's first thread. Returns NULL if the rank is on another node, or has not
 * started. */
struct oriel_rank *oriel_rank_at(int world_rank);

static inline oriel_tick oriel_rank_tick(const struct oriel_rank *rank, int of)
{
    return atomic_load_explicit(&rank->known[of], memory_order_relaxed);
}

/* Orders everything that the rank has done so far, in all its threads, before all further accesses
 * of the taker: requests larger numbers, and merges the rank's clocks with their present numbers
 * into out. Returns false if the rank is not on this node. */
bool oriel_rank_take(int world_rank, oriel_tick *out);

/* Does the same for one row, of which it returns false if there is none. */
bool oriel_row_take(int index, oriel_tick *out);

/* Does the same for all rows of this node but one (-1: none). */
void oriel_ranks_take_all(int but, oriel_tick *out);

/* Reduces out to the minimum with the clocks of all running ranks of this node. any: whether out is
 * valid, on entry and on return. */
void oriel_ranks_floor(oriel_tick *out, bool *any);

/* --- entries under keys of this node --- */

enum { ORIEL_GIVEN_TAKES = 1, ORIEL_GIVEN_COUNTS = 2 };

/* Merges the clock into the entry; more: only if the entry exists. Remembers when there is no
 * room. */
void oriel_given_join(const struct oriel_key *key, uint32_t takers, bool more,
                      const oriel_tick *clock);

/* Merges the entry's clock into out. takers 0: creates no entry. made: the entry is new, no clock
 * has been given yet. */
bool oriel_given_take(const struct oriel_key *key, uint32_t takers, unsigned how, oriel_tick *out,
                      bool *made);

/* Adds more to the counter under the key, and returns its new value. */
uint32_t oriel_given_count(const struct oriel_key *key, uint32_t more);

/* A given clock found no room: a taker that finds no entry takes all clocks. */
enum { ORIEL_GIVEN_LOST = 1, ORIEL_GIVEN_LOST_CLIENT = 2, ORIEL_GIVEN_LOST_RANK = 4 };
extern const _Atomic uint32_t *oriel_given_lost
    __attribute__((visibility("hidden"))); /* in this node's shared memory */
void oriel_given_set_lost(void);
static inline bool oriel_given_was_lost(void)
{
    return atomic_load_explicit(oriel_given_lost, memory_order_acquire) != 0;
}

/* The same, and a process that asks this node's server was lost: its counts will not arrive
 * here. */
void oriel_given_set_client_lost(void);
static inline bool oriel_given_client_was_lost(void)
{
    return (atomic_load_explicit(oriel_given_lost, memory_order_acquire) &
            ORIEL_GIVEN_LOST_CLIENT) != 0;
}

/* Message numbers are unreliable. */
void oriel_given_set_doubtful(void);
bool oriel_given_is_doubtful(void);

/* A rank is no longer checked (oriel_order_leave): order may be unknown from now on, and message
 * numbers are unreliable. */
void oriel_given_leave(void);
bool oriel_given_has_left(void);

#endif
