/* Happens-before of the whole job, as far as the checker models it.  Holds this process's clock; gives and takes clocks through
 * the board under keys that both sides compute.  A thread's call changes the process's one clock: threads of one process count as
 * ordered among themselves (a possible miss, never false blame).
 * start.c starts it; windows*.c and messages*.c call; history.h reads. */
#ifndef ORIEL_CHECK_ORDER_ORDER_H
#define ORIEL_CHECK_ORDER_ORDER_H

#include "check/order/clock.h"
#include "check/shm/shm.h"

#include <limits.h>
#include <stdbool.h>

/* words[0] of a key; in its upper half the key's home (oriel_order_home) */
enum oriel_order_kind {
    ORIEL_ORDER_MESSAGE =
        1, /* communicator's id; source << 32 | destination (world ranks); tag << 32 | number, from 0 */
    ORIEL_ORDER_COLLECTIVE, /* communicator's id; number of the collective on it; 0 */
    ORIEL_ORDER_POST,       /* window's id; target << 32 | origin; number */
    ORIEL_ORDER_COMPLETE,   /* window's id; origin << 32 | target; number */
    ORIEL_ORDER_FENCE,      /* window's id; number; 0 */
    ORIEL_ORDER_LOCK,       /* window's id; target; 0 exclusive holders, 1 shared ones */
    ORIEL_ORDER_WORD,       /* window's id; target; offset in bytes: accumulates that order */
    ORIEL_ORDER_SYNC,       /* window's id; 0; 0: MPI_Win_sync */
    ORIEL_ORDER_UNKNOWN,    /* 0; 0; 0: calls that are not modelled */
    ORIEL_ORDER_COUNT,      /* window's id; which; 0: oriel_order_count */
    ORIEL_ORDER_CLOCKS,     /* 0; 0; 0: rank_clocks.c's own: where each process's clock lies */
};
enum { ORIEL_ORDER_HOME_SHIFT = 32 };

/* This process, world_rank of world_size; the board is mapped. */
enum oriel_status oriel_order_start(int world_rank, int world_size);
void oriel_order_stop(void);

int oriel_order_rank(void);

/* How other machines are reached (remote.c), from before anything is given or taken.  Each as order.c's own function of this board;
 * lost: there, a take that finds nothing takes all. */
struct oriel_order_far {
    uint64_t (*home)(int world_rank);
    void (*give)(const struct oriel_key *key, uint32_t takers, bool more, const oriel_tick *clock);
    bool (*take)(const struct oriel_key *key, uint32_t takers, unsigned how, oriel_tick *out,
                 bool *made, bool *lost);
    void (*forget)(const struct oriel_key *key);
    bool (*take_rank)(int world_rank, oriel_tick *out);
    void (*take_all)(oriel_tick *out);
    void (*floor)(oriel_tick *out);
    void (*doubt)(bool left);
    uint32_t (*count)(const struct oriel_key *key, uint32_t more);
};
void oriel_order_span(const struct oriel_order_far *far);

/* Added to words[0]: the key stands on the board of that rank's machine.  All who use a key must say the same rank, or one of
 * the same machine. */
uint64_t oriel_order_home(int world_rank);

/* The key's home machine, -1 where it says none; *there: the key as it stands on that one's board.  A key from another machine
 * may say any number, one beyond int too. */
static inline int oriel_order_machine(const struct oriel_key *key, struct oriel_key *there)
{
    *there = *key;
    there->words[0] &= (UINT64_C(1) << ORIEL_ORDER_HOME_SHIFT) - 1;
    uint64_t home = key->words[0] >> ORIEL_ORDER_HOME_SHIFT;
    return home > INT_MAX ? -1 : (int)home - 1;
}

/* --- giving and taking --- */

/* The own clock goes to the key, joined with what is there; then the own number is raised.  takers > 0: the entry goes when so
 * many have taken it; 0: it stays (locks, words) until oriel_order_forget. */
void oriel_order_give(const struct oriel_key *key, int takers);

/* The same where an entry stands already, else nothing. */
void oriel_order_give_more(const struct oriel_key *key);

/* What is at the key is taken into the own clock; false when nothing is there (not given yet, or given by one that is not
 * checked).
 */
bool oriel_order_take(const struct oriel_key *key);

/* The same without being counted as one of its takers. */
bool oriel_order_look(const struct oriel_key *key);

/* This process is done with the key, as one of so many takers, whether or not it takes, and whether or not somebody has given
 * yet: for calls that may return before the others have come. */
void oriel_order_end(const struct oriel_key *key, int takers, bool takes);

void oriel_order_forget(const struct oriel_key *key);

/* A number under the key, which orders nothing: adds to it, and answers what it is then. */
uint32_t oriel_order_count(const struct oriel_key *key, uint32_t more);

/* Everything that the rank has done so far comes before what this process does from now on: where it is not known exactly what it
 * gave.  False when the rank is not reached. */
bool oriel_order_take_rank(int world_rank);

/* Whether the rank is one of this machine, whose clock lies on this board; known once all its ranks have started. */
bool oriel_order_is_here(int world_rank);

/* Whether it is one that order is known of: of this machine or of one that is reached. */
bool oriel_order_reaches(int world_rank);

/* A call that is not modelled: everything that anyone has done before its end comes before everything that the caller does after
 * it. Two calls of which one waits for the other are then ordered, whichever ranks make them.  Before and after the call itself;
 * counted for the summary by its name (a literal; NULL: not counted). */
void oriel_order_unknown_begin(const char *call);
void oriel_order_unknown_end(void);

/* Messages and collectives whose numbers cannot be trusted any more, in the whole job: from now on who receives takes all of the
 * sender, or of all members. */
void oriel_order_doubt(void);
bool oriel_order_is_doubtful(void);

/* A call of this rank was left by a jump: nothing is known of the rank from now on, nor of order that passes through it.  In the
 * whole job messages and collectives are in doubt, and no conflict is reported (oriel_given_has_left). */
void oriel_order_leave(void);

/* --- for clocks that others keep (word_clocks.c) --- */

/* The own clock has been given: the own number is raised. */
void oriel_order_raise(void);

/* The clock is taken into the own one. */
void oriel_order_learn(const oriel_tick *clock);

/* Another number whenever something was learnt. */
uint64_t oriel_order_news(void);

/* --- what accesses are stamped with --- */

/* In the place of a moment: the own clock itself, as it is when it is looked at.  Nothing is to be released. */
enum { ORIEL_MOMENT_NOW = 1 };

/* The clock of this moment as an object in the board that stays as long as it has references: the same place until the clock
 * changes by taking or giving.  The caller owns a reference. */
oriel_shm_offset oriel_order_moment(void);
/* The same of another process's clock. */
oriel_shm_offset oriel_order_moment_of(const oriel_tick *clock);
void oriel_order_moment_release(oriel_shm_offset moment);
const oriel_tick *oriel_order_moment_clock(oriel_shm_offset moment);

/* The own number now: of completions. */
oriel_tick oriel_order_now(void);

/* The own clock as it is now, for tests.  out: world_size numbers. */
void oriel_order_clock(oriel_tick *out);

/* What every rank that is reached knows at least of each rank: accesses complete at or below it cannot conflict with anything
 * that is still to come.  out: world_size numbers. */
void oriel_order_floor(oriel_tick *out);

#endif
