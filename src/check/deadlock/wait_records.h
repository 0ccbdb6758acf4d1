/* Who waits for whom.  Each process has a record in the board that says what its program waits for now: the call, and needs,
 * each of which names ranks that must act before the call returns, in a form that whoever looks turns into ranks: what the wait
 * itself costs is a few stores.  A process that says nothing computes, and is never taken for stuck; so a call that is not
 * modelled says nothing. windows*.c and messages*.c note; deadlock.c looks; start.c starts and ends. */
#ifndef ORIEL_CHECK_DEADLOCK_WAIT_RECORDS_H
#define ORIEL_CHECK_DEADLOCK_WAIT_RECORDS_H

#include "base/status.h"
#include "check/access/history.h"
#include "check/shm/shm.h"

#include <stdbool.h>
#include <stdint.h>

/* --- who meets where --- */

/* A communicator or window as its members come to its collective calls; in the board.  Each member counts its own calls, and says
 * which function each was: one that has called another in its place does not come any more. */
struct oriel_collective_progress;

/* Made by the first member that asks.  is_window: it has locks.  NULL without room: then nothing is said of it, which may be so
 * for some members only.  world_ranks NULL: members are the ranks themselves. */
struct oriel_collective_progress *oriel_collective_progress_find(uint64_t id, bool is_window, int n,
                                                                 const int *world_ranks);

/* This member needs it no more; the last one frees it. */
void oriel_collective_progress_leave(struct oriel_collective_progress *gathering, uint64_t id);

/* This member calls a collective function: its number, from 1.  Before the call, blocking or not. */
uint64_t oriel_collective_progress_arrive(struct oriel_collective_progress *gathering, int member,
                                          uint16_t call);

/* The call failed before it could meet others: it was none. */
void oriel_collective_progress_return(struct oriel_collective_progress *gathering, int member);

/* As oriel_collective_progress_arrive, of the call that frees the window, which has no number: others may come meanwhile, made for those that
 * wait. */
enum { ORIEL_COLLECTIVE_PROGRESS_LAST = -1 };
uint64_t oriel_collective_progress_arrive_last(struct oriel_collective_progress *gathering,
                                               int member);

enum oriel_holding { ORIEL_HOLDS_NOTHING, ORIEL_HOLDS_SHARED, ORIEL_HOLDS_EXCLUSIVE };

/* A window's member has locked a target (-1: all), behind the call that did; ORIEL_HOLDS_NOTHING before the one that unlocks.
 * Locks with MPI_MODE_NOCHECK are none. */
void oriel_collective_progress_hold(struct oriel_collective_progress *gathering, int member,
                                    int target, enum oriel_holding how);

/* --- a wait --- */

enum oriel_wait_mode {
    ORIEL_WAIT_FOR_ALL, /* of the needs that are added */
    ORIEL_WAIT_FOR_ANY,
};

/* Begins to note a wait of this thread: true, and needs are added, then oriel_wait_begin says that it waits, and oriel_wait_end
 * that the call has returned.  False when it is not noted: another thread of the process has waited once, or a call around this
 * one is noted.  name: of the window or communicator; NULL: none.  Site as oriel_site_here makes it, or of a bare address. */
bool oriel_wait_open(const struct oriel_site *site, const char *name, enum oriel_wait_mode mode);
void oriel_wait_begin(void);
void oriel_wait_end(void);

/* A function of the program's runs inside the call: what this thread has noted does not stand meanwhile, and does again when it
 * is resumed.  NULL: there is nothing to resume. */
struct oriel_wait_suspended;
struct oriel_wait_suspended *oriel_wait_suspend(void);
void oriel_wait_resume(struct oriel_wait_suspended *suspended);
void oriel_wait_forget(struct oriel_wait_suspended *suspended); /* instead: it stays ended */

/* The same for good: the call goes on unseen. */
void oriel_wait_interrupt(void);

/* The end of a wait that may have been noted. */
static inline void oriel_wait_done(bool noted)
{
    if (noted)
        oriel_wait_end();
}

/* Who must act, and until what is seen of it. */
struct oriel_wait_need {
    uint32_t kind; /* enum oriel_need */
    int32_t rank;  /* of MPI_COMM_WORLD; in a gathering a member; -1: any */
    uint64_t words[4];
};

enum oriel_need {
    ORIEL_NEED_UNKNOWN, /* may be fulfilled by anybody: nobody is stuck for it */
    ORIEL_NEED_RANK,    /* the rank must act */
    ORIEL_NEED_KEY,     /* the rank must give what order.h calls so; words: the key */
    ORIEL_NEED_CALL, /* members must make that collective call: gathering, number, call << 1 | whether only lower members |
                           ORIEL_NEED_OF_WINDOW, gathering's id */
    ORIEL_NEED_LOCK, /* holders must unlock: gathering, target, exclusive, gathering's id */
    ORIEL_NEED_SEND, /* the rank must receive what this process sends: communicator's id, tag */
    ORIEL_NEED_RECEIVE, /* the rank must send: communicator's id, tag (-1: any), gathering, of rank -1 (whose members may) */
    ORIEL_NEED_MAYBE = 1 << 16, /* beside a kind: it may be fulfilled already, unseen */
};
#define ORIEL_NEED_OF_WINDOW (UINT64_C(1) << 32)

/* More needs than a record has room for make a wait for any unknown; of a wait for all they are left out. */
void oriel_wait_add(const struct oriel_wait_need *need);

/* The usual ones. */
void oriel_wait_for_rank(int world_rank);
struct oriel_key;
void oriel_wait_for_key(int world_rank, const struct oriel_key *key);
void oriel_wait_for_call(const struct oriel_collective_progress *gathering, int member,
                         uint64_t number, uint16_t call, bool below);
void oriel_wait_for_lock(const struct oriel_collective_progress *gathering, int target,
                         bool exclusive);
struct oriel_wait_need oriel_need_call(const struct oriel_collective_progress *gathering,
                                       int member, uint64_t number, uint16_t call, bool below);
struct oriel_wait_need oriel_need_send(int world_rank, uint64_t comm, int tag);
struct oriel_wait_need oriel_need_receive(int world_rank, uint64_t comm, int tag,
                                          const struct oriel_collective_progress *gathering);

/* --- messages that go on by themselves --- */

/* Sends and receives with requests from before their start until their completion was seen: while there is one that may fit, the
 * other side's call is not stuck for it.  peer -1: any.  count: 1 or -1. */
void oriel_wait_sending(int peer, int count);
void oriel_wait_receiving(int peer, int count);

/* --- start and end --- */

/* Before MPI_Init is passed on: threads that come up meanwhile are the host's. */
void oriel_waits_before(void);

/* Behind it, with the board and order.h there.  threads: whether the program may call MPI from several threads. */
enum oriel_status oriel_waits_start(int world_rank, int world_size, bool threads);

/* The program is in MPI_Finalize: nobody's wait is ended by it any more. */
void oriel_waits_finish(const struct oriel_site *site);
void oriel_waits_stop(void);

/* Whether the process of a rank of this machine has died before it came to MPI_Finalize; not of one that cannot be asked. */
bool oriel_waits_has_died(int world_rank);

/* The thread that looks for deadlocks: in one process of each machine, from behind oriel_waits_start and oriel_finding_start
 * until the findings have met.  Of several machines that reach each other one looks at all ranks, and the others say of theirs
 * which wait steadily. */
enum oriel_deadlock_reach { ORIEL_DEADLOCK_HERE, ORIEL_DEADLOCK_ALL, ORIEL_DEADLOCK_MARKS };
void oriel_deadlock_start(enum oriel_deadlock_reach reach);
void oriel_deadlock_stop(void);

#endif
