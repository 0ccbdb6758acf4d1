/* Happens-before order of the whole job, as far as the checker models it. Holds this process's
 * clock, and gives and takes clocks through the checker's shared memory under keys that both sides
 * compute. Where the order of threads is tracked (thread_order.h), each thread has a clock of its
 * own, and "own" below means the calling thread's. Elsewhere all threads of a process share its
 * clock: they count as ordered among themselves (a possible miss, never a false finding). */
#ifndef ORIEL_CHECK_ORDER_ORDER_H
#define ORIEL_CHECK_ORDER_ORDER_H

#include "check/common/clock.h"
#include "check/shm/shm.h"

#include <limits.h>
#include <stdbool.h>

/* words[0] of a key; its upper half is the key's home (oriel_order_home) */
enum oriel_order_kind {
    /* communicator's id; source << 32 | destination (world ranks); tag << 32 | number, from 0 */
    ORIEL_ORDER_MESSAGE = 1,
    ORIEL_ORDER_COLLECTIVE, /* communicator's id; number of the collective on it; 0 */
    ORIEL_ORDER_POST,       /* window's id; target << 32 | origin; number */
    ORIEL_ORDER_COMPLETE,   /* window's id; origin << 32 | target; number */
    ORIEL_ORDER_FENCE,      /* window's id; number; 0 */
    /* window's id; target; 0 exclusive holders, 1 shared holders, 2 holders by memory handles */
    ORIEL_ORDER_LOCK,
    ORIEL_ORDER_WORD,    /* window's id; target; offset in bytes: ordering accumulates */
    ORIEL_ORDER_SYNC,    /* window's id; 0; 0: MPI_Win_sync */
    ORIEL_ORDER_UNKNOWN, /* 0; 0; 0: calls that are not modelled */
    /* window's id; origin << 32 | target; counter << 32 | turn (notified.c) */
    ORIEL_ORDER_NOTIFICATION,
    ORIEL_ORDER_COUNT,  /* window's id; which counter; 0: oriel_order_count */
    ORIEL_ORDER_CLOCKS, /* 0; 0; 0: table of the processes' clocks (rank_clocks.h) */
};
enum { ORIEL_ORDER_HOME_SHIFT = 32 };

/* Starts the clock of world_rank, of world_size ranks. The checker's shared memory is mapped. */
enum oriel_status oriel_order_start(int world_rank, int world_size);
void oriel_order_stop(void);

int oriel_order_rank(void);

/* The index of the own number in clocks. */
uint32_t oriel_order_index(void);

/* The count of numbers in a clock. */
static inline int oriel_order_width(void)
{
    return (int)((unsigned)oriel_shm_world_size() << oriel_clock_shift);
}

/* Access to other nodes (remote.c), set before the first give or take. Each function does what
 * order.c's function of that name does for this node. lost: the shared memory there has lost
 * entries, so a take that finds nothing takes all clocks. */
struct oriel_order_remote {
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
void oriel_order_remote_set(const struct oriel_order_remote *remote);

/* Added to words[0]: the key's entry is in the shared memory of that rank's node. All users of a
 * key must name the same rank, or ranks of the same node. */
uint64_t oriel_order_home(int world_rank);

/* Returns the key's home node, -1 if it names none; *there: the key as it is stored on that node. A
 * key from another node may contain any number, also one beyond int. */
static inline int oriel_order_key_home(const struct oriel_key *key, struct oriel_key *there)
{
    *there = *key;
    there->words[0] &= (UINT64_C(1) << ORIEL_ORDER_HOME_SHIFT) - 1;
    uint64_t home = key->words[0] >> ORIEL_ORDER_HOME_SHIFT;
    return home > INT_MAX ? -1 : (int)home - 1;
}

/* --- give and take --- */

/* Merges the own clock into the key's entry, then raises the own number. takers > 0: the entry is
 * freed after that many takes; 0: it stays (locks, words) until oriel_order_forget. */
void oriel_order_give(const struct oriel_key *key, int takers);

/* Does the same if an entry exists, otherwise nothing. */
void oriel_order_give_again(const struct oriel_key *key);

/* Merges the key's clock into the own clock. Returns false if there is none: not given yet, or by a
 * rank that is not checked. */
bool oriel_order_take(const struct oriel_key *key);

/* Does the same without counting as one of the takers. */
bool oriel_order_peek(const struct oriel_key *key);

/* Ends this process's use of the key as one of takers, whether or not it takes and whether or not
 * the entry exists yet: for calls that may return before other ranks have given. */
void oriel_order_end(const struct oriel_key *key, int takers, bool takes);

void oriel_order_forget(const struct oriel_key *key);

/* Adds more to a counter under the key, which orders nothing, and returns its new value. */
uint32_t oriel_order_count(const struct oriel_key *key, uint32_t more);

/* Orders everything that the rank has done so far before all further accesses of this process: for
 * calls that may have given any of it. Returns false if the rank is not reached. */
bool oriel_order_take_rank(int world_rank);

/* Does the same for threads of this process: those of these slots, one bit for each. */
void oriel_order_take_threads(uint32_t slots);

/* Whether the rank is on this node, with its clock in this shared memory. Known once all ranks of
 * the node have started. */
bool oriel_order_is_here(int world_rank);

/* Whether order is known of the rank: it is on this node, or on one that is reached. */
bool oriel_order_reaches(int world_rank);

/* Brackets a call that is not modelled: everything that any rank does before the end of the call
 * comes before everything that the caller does after it. If one of two such calls waits for the
 * other, they are ordered, whichever ranks make them. The name, a literal, counts the call for the
 * summary; NULL: not counted. */
void oriel_order_unknown_begin(const char *call);
void oriel_order_unknown_end(void);

/* Marks the numbers of messages and collectives as unreliable in the whole job: from now on a
 * receiver takes everything from the sender, or from all members. */
void oriel_order_set_doubtful(void);
bool oriel_order_is_doubtful(void);

/* A call of this rank was left by a jump: from now on the rank's own order, and order that passes
 * through it, is unknown. In the whole job, messages and collectives are in doubt and no conflict
 * is reported (oriel_given_has_left). */
void oriel_order_leave(void);

/* --- the steps of give and take --- */

/* Merges the own clock into a clock of this process, then raises the own number; merges such a
 * clock into the own one. Only where the order of threads is tracked. A signal handler may call
 * them, whatever its thread does (order.c, O4). */
void oriel_order_give_to(_Atomic oriel_tick *clock);
void oriel_order_merge_from(const _Atomic oriel_tick *clock);

/* Raises the own number after the own clock was given. */
void oriel_order_raise(void);

/* Merges the clock into the own clock. */
void oriel_order_merge(const oriel_tick *clock);

/* Returns a number that changes whenever a clock was merged with effect. */
uint64_t oriel_order_merge_count(void);

/* --- snapshots for accesses --- */

/* In place of a snapshot: the own clock itself, with its value at the time of the look. Needs no
 * release. */
enum { ORIEL_SNAPSHOT_LIVE = 1 };

/* Returns a snapshot of the current clock in shared memory, with a reference for the caller. The
 * snapshot is the same until the clock changes by a give or a take. */
oriel_shm_offset oriel_order_snapshot(void);
/* Makes a snapshot of another process's clock. */
oriel_shm_offset oriel_order_snapshot_of(const oriel_tick *clock);
void oriel_order_snapshot_release(oriel_shm_offset snapshot);
const oriel_tick *oriel_order_snapshot_clock(oriel_shm_offset snapshot);

/* Returns the own number now, for completions. */
oriel_tick oriel_order_now(void);

/* Returns the rank's number in the own clock, where the order of threads is not tracked. */
oriel_tick oriel_order_known(int world_rank);

/* Copies the own clock, for tests. out: world_size numbers. */
void oriel_order_clock(oriel_tick *out);

/* Computes the number of each rank that every reached rank knows at least: accesses complete at or
 * below it cannot conflict with later ones. out: world_size numbers. */
void oriel_order_floor(oriel_tick *out);

#endif
