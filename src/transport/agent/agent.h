/* The agent: a thread of the target that executes transfers and updates for origins which the kernel lets neither map nor copy
 * the target's memory.  struct oriel_agent lies in the target's memory file; origins (agent.c) write requests into its slots, the
 * thread (agent_thread.c) executes them (execute.c).  memory/ starts and stops the thread, rma/ uses the transport and the updates.
 *
 * One request in one slot:
 *
 *   Q1  the origin claims a slot: owner 0 -> who it is, in one step (acquire)
 *   Q2  it fills the slot: operation, runs, and the data of a write or the operands of an update
 *   Q3  answer DONE -> ASKED (release): now the request is there
 *   Q4  it sets the slot's bit in asked (seq_cst) and wakes the agent: the doorbell
 *   Z1  the agent takes all bits of asked at once (seq_cst)
 *   Z2  of each such slot that is ASKED (acquire) it executes the request and writes the error; of no other
 *   Z3  answer ASKED -> DONE (seq_cst), and wakes the origin
 *   Q5  the origin sees DONE (acquire) and takes the error, and after a read the data, after an update the old contents
 *   Q6  owner -> 0 (release), then it counts in freed and wakes those who wait for a slot
 *
 * P1  Q3 -> Z2: what the origin wrote into the slot is there.  P2  Z3 -> Q5: so is what the agent wrote.  P3  Q6 -> Q1: nobody
 *     writes into a slot while another still reads there.
 * P4  No request is forgotten: Q4 follows Q3, so an agent that takes the bit sees ASKED.  Sleeping and waking is argued in
 *     base/wait.h, with asked as the word (W1 is Q4, S2 compares with 0: nothing asked).
 * P5  A bit without a request is harmless (Z2).  It comes about when an agent takes the bit of an earlier Q4 late, or as
 *     a take-over rings once more.
 *
 * U   An update (UPDATE, SWAP) is one request: the agent reads the elements, computes, writes them and answers with what they
 *     were.  It is not atomic by itself: the target's own updates come from other threads.  Its origin holds the target's
 *     accumulate lock from before Q1 until after Q5, and so it is alone with the elements.
 *
 * Neither side spins where the other waits for the same processor: each says on which it runs, and gives it up at once.
 *
 * Death.  owner says which process holds a slot: its number and start time, so that another process with this number is
 * another one.  Who waits for a free slot longer than 100 ms looks for slots of the dead and takes one over in one step: owner
 * dead -> itself.  DONE: the request of the dead was never asked, or has been answered; nobody looks at the slot.  ASKED: the bit
 * may never have been set (death between Q3 and Q4), so the heir rings (Q4) and awaits Z3, after which nobody looks at the
 * slot.  Whoever claims a slot does so, not the heir alone, since an origin that was told of the target's death leaves ASKED
 * behind.  An update of the dead is thereby done as a whole or not at all, and nobody comes in between: the accumulate lock stays
 * with the dead, and who asks for it is told (sync/accumulate_mutex.c).  The area's process is told apart in the same way: who waits for an
 * answer, or for a slot, asks whether it lives. */
#ifndef ORIEL_TRANSPORT_AGENT_AGENT_H
#define ORIEL_TRANSPORT_AGENT_AGENT_H

#include "base/identity.h"
#include "base/status.h"
#include "base/wait.h"
#include "reduce/kind.h"
#include "transport/transport.h"

#include <stdalign.h>
#include <stddef.h>

struct oriel_remote_writers;

enum {
    ORIEL_AGENT_SLOTS = 16,
    ORIEL_AGENT_RUNS = 256,         /* of one request */
    ORIEL_AGENT_DATA_BYTES = 32768, /* of one request */
};

/* The values of a slot's answer. */
enum { ORIEL_AGENT_DONE, ORIEL_AGENT_ASKED };

/* UPDATE: the elements in the runs become operator(element, operand), the operands lie in data.  SWAP: the one run becomes what
 * lies in data behind its length if it is, byte for byte, what lies at the beginning of data. */
enum oriel_agent_operation {
    ORIEL_AGENT_WRITE,
    ORIEL_AGENT_READ,
    ORIEL_AGENT_UPDATE,
    ORIEL_AGENT_SWAP
};

/* Bytes of the target, in its address space; of an update whole elements. */
struct oriel_agent_run {
    uint64_t address;
    uint64_t len_bytes;
};

struct oriel_agent_slot {
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t
        owner;                 /* 0, or who holds the slot: start time above 22 bits of PID */
    struct oriel_event answer; /* ASKED by the owner (Q3), DONE by the agent (Z3) */
    uint32_t
        operation; /* enum oriel_agent_operation; like all up to cpu but error, written before Q3 */
    uint32_t run_count;
    uint64_t data_bytes; /* of all runs */
    uint32_t kind;       /* of an update: enum oriel_kind, enum oriel_operator, and */
    uint32_t operator;
    uint32_t returns; /* whether the answer's data are the old contents; a swap's always are */
    int32_t error;    /* 0 or the errno, written before Z3 */
    int32_t cpu;      /* on which the origin asks: a hint */
    alignas(ORIEL_CACHE_LINE) struct oriel_agent_run runs[ORIEL_AGENT_RUNS];
    char data[ORIEL_AGENT_DATA_BYTES]; /* of the runs, one after the other */
};
_Static_assert(offsetof(struct oriel_agent_slot, runs) == ORIEL_CACHE_LINE,
               "the words of a slot fill one line");

enum { ORIEL_AGENT_STOPPED, ORIEL_AGENT_RUNNING };
#define ORIEL_AGENT_STOP                                                                           \
    (UINT32_C(1) << 31) /* in asked, by the area's own process: serve what is there and end */
_Static_assert(ORIEL_AGENT_SLOTS < 31, "each slot has its bit in asked");

struct oriel_agent {
    struct oriel_identity process; /* whose area it is; written before anybody is told of it */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t
        asked; /* bit i: look at slot i; set by origins (Q4), taken by the agent (Z1) */
    _Atomic uint32_t sleepers; /* of asked: the agent, when it sleeps */
    _Atomic uint32_t state;    /* STOPPED or RUNNING, by the agent's process */
    _Atomic int32_t cpu;       /* where the agent ran last: a hint */
    alignas(ORIEL_CACHE_LINE) struct oriel_event
        freed; /* how often a slot was given back; wraps around */
    struct oriel_agent_slot slots[ORIEL_AGENT_SLOTS];
    char stage
        [ORIEL_AGENT_DATA_BYTES]; /* where the agent computes, and nobody else looks: the kernel copies to files only */
};

/* The elements at count places become operator(element, operand), in as few requests as slots hold: in says the places and has
 * the operands (NULL for NO_OP), out has room for the old contents (NULL: they are not wanted), both with the same offsets and
 * lengths, which are whole elements.  The padding of pairs is written neither there nor here, and none is touched behind the last
 * field.  The caller holds the target's accumulate lock.  Statuses are those of the transport. */
enum oriel_status oriel_agent_update(const struct oriel_remote *there, enum oriel_kind kind,
                                     enum oriel_operator operator, const struct oriel_piece * in,
                                     const struct oriel_piece *out, unsigned count);

/* The len_bytes (at most half of ORIEL_AGENT_DATA_BYTES) there become those at desired if they are those at wanted; found gets
 * what they were.  One request; the caller holds the target's accumulate lock. */
enum oriel_status oriel_agent_swap(const struct oriel_remote *there, const void *desired,
                                   const void *wanted, void *found, uint64_t len_bytes);

/* Starts the thread that serves this area, which lies at offset of the calling process's memory file fd.  ORIEL_E_OTHER with
 * the reason when there can be no thread or fd is not that file any more. */
enum oriel_status oriel_agent_start(struct oriel_agent *agent, struct oriel_remote_writers *writers,
                                    int fd, uint64_t offset);

/* Has the thread serve what was asked and waits for its end.  Nothing where none runs, as in a forked child. */
void oriel_agent_stop(void);

/* Executes what a slot asks for: 0 or an errno.  fd and offset are where the area lies in its file.  agent_thread.c calls, in the one
 * thread. */
int oriel_agent_execute(struct oriel_agent *agent, struct oriel_agent_slot *slot, int fd,
                        uint64_t offset);

#endif
