/* Waits of ranks. Each process has a record in the checker's shared memory with the call that its
 * program waits in and its needs. Each need names ranks that must act before the call returns, in a
 * form that the reader turns into ranks: recording a wait costs only a few stores. A process
 * without a recorded wait computes, and is never taken for deadlocked. So calls that are not
 * modelled record nothing. */
#ifndef ORIEL_CHECK_DEADLOCK_WAIT_RECORDS_H
#define ORIEL_CHECK_DEADLOCK_WAIT_RECORDS_H

#include "base/status.h"
#include "check/common/access_types.h"
#include "check/shm/shm.h"

#include <stdbool.h>
#include <stdint.h>

/* --- progress of collective calls --- */

/* Progress of the collective calls on a communicator or window, in the checker's shared memory.
 * Each member counts its own calls and records the function of each. A member that called another
 * function instead never makes the expected call. */
struct oriel_collective_progress;

/* Finds the progress record; the first member creates it. is_window: it has locks. world_ranks
 * NULL: member i is rank i. Returns NULL if there is no room, perhaps for some members only; then
 * its waits are not recorded. */
struct oriel_collective_progress *oriel_collective_progress_find(uint64_t id, bool is_window, int n,
                                                                 const int *world_ranks);

/* This member no longer needs the record; the last one frees it. */
void oriel_collective_progress_leave(struct oriel_collective_progress *progress, uint64_t id);

/* Records that this member calls a collective function, blocking or not, before the call. Returns
 * its number, from 1. */
uint64_t oriel_collective_progress_arrive(struct oriel_collective_progress *progress, int member,
                                          uint16_t call);

/* Undoes the record: the call failed before it could synchronise with other members. */
void oriel_collective_progress_return(struct oriel_collective_progress *progress, int member);

/* Like oriel_collective_progress_arrive, for the call that frees the window. It has no number:
 * calls made on behalf of waiting ranks may come in between. */
enum { ORIEL_COLLECTIVE_PROGRESS_LAST = -1 };
uint64_t oriel_collective_progress_arrive_last(struct oriel_collective_progress *progress,
                                               int member);

enum oriel_holding { ORIEL_HOLDS_NOTHING, ORIEL_HOLDS_SHARED, ORIEL_HOLDS_EXCLUSIVE };

/* Records, after the lock call, that a member has locked a target (-1: all); ORIEL_HOLDS_NOTHING
 * before the unlock call. Locks with MPI_MODE_NOCHECK are not recorded. */
void oriel_collective_progress_hold(struct oriel_collective_progress *progress, int member,
                                    int target, enum oriel_holding how);

/* Records the call of the last lock, by its number (oriel_site_number), for texts. */
void oriel_collective_progress_lock_site(struct oriel_collective_progress *progress, int member,
                                         uint16_t number);

/* --- a wait --- */

enum oriel_wait_mode {
    ORIEL_WAIT_FOR_ALL, /* of the needs that are added */
    ORIEL_WAIT_FOR_ANY,
};

/* Starts to record a wait of this thread. After true the caller adds needs, then oriel_wait_begin
 * marks the process as waiting and oriel_wait_end marks the return of the call. Returns false if
 * the wait cannot be recorded: another thread of the process has waited before, or an enclosing
 * call is recorded. name: of the window or communicator, or NULL. site: from oriel_site_here, or
 * with a bare address. */
bool oriel_wait_open(const struct oriel_site *site, const char *name, enum oriel_wait_mode mode);
void oriel_wait_begin(void);
void oriel_wait_end(void);

/* A function of the program runs inside the call: suspends the wait of this thread until it is
 * resumed. Returns NULL if there is nothing to resume. */
struct oriel_wait_suspended;
struct oriel_wait_suspended *oriel_wait_suspend(void);
void oriel_wait_resume(struct oriel_wait_suspended *suspended);
/* instead of oriel_wait_resume: the call was left by a jump */
void oriel_wait_forget(struct oriel_wait_suspended *suspended);

/* Ends the recorded wait for good; the call continues unrecorded. */
void oriel_wait_interrupt(void);

/* Ends a wait if it was recorded. */
static inline void oriel_wait_done(bool noted)
{
    if (noted)
        oriel_wait_end();
}

/* A rank that must act, and the condition to check for it. */
struct oriel_wait_need {
    uint32_t kind; /* enum oriel_need */
    int32_t rank;  /* of MPI_COMM_WORLD, or a member of a progress record; -1: any */
    uint64_t words[4];
};

enum oriel_need {
    ORIEL_NEED_UNKNOWN, /* any rank may fulfil it: no rank is deadlocked by it */
    ORIEL_NEED_KEY,     /* the rank must give the order key (order.h); words: the key */
    /* members must make that collective call; words: progress record, number, call << 1 | lower
     * members only | ORIEL_NEED_OF_WINDOW, id of the progress record */
    ORIEL_NEED_CALL,
    /* lock holders must unlock; words: progress record, target, exclusive, id of the progress
     * record */
    ORIEL_NEED_LOCK,
    /* the rank must receive a message of this process; words: communicator's id, tag */
    ORIEL_NEED_SEND,
    /* the rank must send; words: communicator's id, tag (-1: any), progress record whose members
     * may send (rank -1) */
    ORIEL_NEED_RECEIVE,
    /* a member must notify: any; words: progress record, 0, ORIEL_NEED_OF_WINDOW, id of the
     * progress record */
    ORIEL_NEED_NOTIFICATION,
    /* any rank must change a value in memory, also one that is no member of the window; or any
     * thread of a process of this node, by a store */
    ORIEL_NEED_VALUE,
    ORIEL_NEED_MAYBE = 1 << 16, /* flag: the need may already be fulfilled, unseen */
};
#define ORIEL_NEED_OF_WINDOW (UINT64_C(1) << 32)

/* Adds a need. If the record is full, a wait for any need becomes unknown, and a wait for all needs
 * drops the new one. */
void oriel_wait_add(const struct oriel_wait_need *need);

/* Shorthands for common needs. */
struct oriel_key;
void oriel_wait_for_key(int world_rank, const struct oriel_key *key);
void oriel_wait_for_call(const struct oriel_collective_progress *progress, int member,
                         uint64_t number, uint16_t call, bool below);
void oriel_wait_for_lock(const struct oriel_collective_progress *progress, int target,
                         bool exclusive);
struct oriel_wait_need oriel_need_notification(const struct oriel_collective_progress *progress);
struct oriel_wait_need oriel_need_call(const struct oriel_collective_progress *progress, int member,
                                       uint64_t number, uint16_t call, bool below);
struct oriel_wait_need oriel_need_send(int world_rank, uint64_t comm, int tag);
struct oriel_wait_need oriel_need_receive(int world_rank, uint64_t comm, int tag,
                                          const struct oriel_collective_progress *progress);

/* --- messages with requests --- */

/* Count sends and receives with requests, from before their start until their completion is seen.
 * While one may match, the call of the other side is not deadlocked. peer -1: any; count: 1 or -1.
 */
void oriel_wait_sending(int peer, int count);
void oriel_wait_receiving(int peer, int count);

/* --- start and end --- */

/* Call before MPI_Init: threads that start during MPI_Init are the host's. */
void oriel_wait_records_before_init(void);

/* Call after MPI_Init, with the checker's shared memory and order.h ready. threads: the program may
 * call MPI from several threads. */
enum oriel_status oriel_wait_records_start(int world_rank, int world_size, bool threads);

/* The program is in MPI_Finalize: it ends no more waits. */
void oriel_wait_records_finish(const struct oriel_site *site);
void oriel_wait_records_stop(void);

/* Whether the process of a rank of this node died before MPI_Finalize. False if that cannot be
 * found out. */
bool oriel_wait_rank_has_died(int world_rank);

/* The thread that looks for deadlocks. It runs in one process of each node, from after
 * oriel_wait_records_start and oriel_finding_start until findings are merged. Of several nodes that
 * reach each other, one looks at all ranks, and the others mark their own ranks that wait
 * steadily. */
enum oriel_deadlock_reach { ORIEL_DEADLOCK_HERE, ORIEL_DEADLOCK_ALL, ORIEL_DEADLOCK_MARKS };
void oriel_deadlock_start(enum oriel_deadlock_reach reach);
void oriel_deadlock_stop(void);

#endif
