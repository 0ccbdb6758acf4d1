/* The agent: a thread of the target that executes transfers and updates for origins that may
 * neither map nor copy the target's memory. struct oriel_agent is in the target's memory file.
 * Origins (agent.c) write requests into its slots, and the thread (agent_thread.c) executes them
 * (execute.c).
 *
 * One request in one slot:
 * Q1: the origin claims a slot: owner 0 -> its process word, in one step (acquire)
 * Q2: it fills the slot: operation, runs, and the data of a write or the operands of an update
 * Q3: answer DONE -> ASKED (release): the request is published
 * Q4: it sets the slot's bit in asked (seq_cst) and wakes the agent: the doorbell
 * Z1: the agent takes all bits of asked at once (seq_cst)
 * Z2: for each such slot that is ASKED (acquire) it executes the request and writes the error
 * Z3: answer ASKED -> DONE (seq_cst), and it wakes the origin
 * Q5: the origin sees DONE (acquire) and takes the error, the data of a read, or the old contents
 *     of an update
 * Q6: owner -> 0 (release), then it increments freed and wakes processes that wait for a slot
 *
 * P1: Q3 -> Z2: the agent sees all that the origin wrote into the slot.
 * P2: Z3 -> Q5: the origin sees all that the agent wrote.
 * P3: Q6 -> Q1: no origin writes into a slot while another still reads it.
 * P4: No request is lost: Q4 follows Q3, so an agent that takes the bit sees ASKED. Sleeping and
 *     waking follow the argument in base/wait.h, with asked as the word (W1 is Q4, S2 compares with
 *     0: no requests).
 * P5: A bit without a request is harmless (Z2). It occurs if an agent takes the bit of an earlier
 *     Q4 late, or if a take-over repeats the doorbell.
 *
 * U: An update (UPDATE, SWAP) is one request: the agent reads the elements, computes, writes them
 * and returns the old values. It alone is not atomic, because other threads execute the target's
 * own updates. Its origin holds the target's accumulate lock from before Q1 until after Q5, so it
 * has exclusive access to the elements.
 *
 * Neither side spins while the other waits for the same processor: each publishes the processor on
 * which it runs, and yields at once if they are equal.
 *
 * Death. owner names the process that holds a slot by PID and start time, so a later process with
 * the same PID differs. A process that waits for a free slot longer than 100 ms looks for slots of
 * dead processes and takes one over in one step: owner dead -> itself. If the slot is DONE, the
 * dead process's request was never submitted, or was answered; the agent does not access the slot.
 * If it is ASKED, the bit may never have been set (death between Q3 and Q4). So the new owner
 * repeats the doorbell (Q4) and waits for Z3, after which the agent does not access the slot. Every
 * process that claims a slot does so, not only after a take-over, because an origin that finds the
 * target dead leaves ASKED in the slot. An update of a dead process is therefore executed
 * completely or not at all, and no other update interferes. The accumulate lock stays with the dead
 * process, and a process that requests it gets an error (sync/accumulate_mutex.c). The area's
 * process is identified in the same way: a process that waits for an answer or a slot checks
 * whether it lives. */
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

/* A slot's error, no errno: its data have the reason as text. */
enum { ORIEL_AGENT_HAS_REASON = -1 };

/* The values of a slot's answer. */
enum { ORIEL_AGENT_DONE, ORIEL_AGENT_ASKED };

/* UPDATE: the elements in the runs become operator(element, operand), with the operands in data.
 * SWAP: data holds the compared value, then the new value. The one run is set to the new value if
 * it equals the compared value, byte for byte. */
enum oriel_agent_operation {
    ORIEL_AGENT_WRITE,
    ORIEL_AGENT_READ,
    ORIEL_AGENT_UPDATE,
    ORIEL_AGENT_SWAP
};

/* Bytes of the target, in its address space; whole elements for an update. */
struct oriel_agent_run {
    uint64_t address;
    uint64_t len_bytes;
};

struct oriel_agent_slot {
    /* 0, or the process that holds the slot: start time above 22 bits of PID */
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t owner;
    struct oriel_event answer; /* ASKED by the owner (Q3), DONE by the agent (Z3) */
    /* enum oriel_agent_operation; this and all fields up to cpu except error are written before
     * Q3 */
    uint32_t operation;
    uint32_t run_count;
    uint64_t data_bytes; /* of all runs */
    uint32_t kind;       /* of an update: enum oriel_kind; operator: enum oriel_operator */
    uint32_t operator;
    uint32_t returns; /* the answer's data are the old contents; always for a swap */
    int32_t error;    /* 0, the errno or ORIEL_AGENT_HAS_REASON, written before Z3 */
    int32_t cpu;      /* the origin's processor: a hint */
    alignas(ORIEL_CACHE_LINE) struct oriel_agent_run runs[ORIEL_AGENT_RUNS];
    char data[ORIEL_AGENT_DATA_BYTES]; /* of the runs, contiguous */
};
_Static_assert(offsetof(struct oriel_agent_slot, runs) == ORIEL_CACHE_LINE,
               "the words of a slot fill one line");

enum { ORIEL_AGENT_STOPPED, ORIEL_AGENT_RUNNING };
/* in asked, set by the area's own process: serve the outstanding requests and exit */
#define ORIEL_AGENT_STOP (UINT32_C(1) << 31)
_Static_assert(ORIEL_AGENT_SLOTS < 31, "each slot has its bit in asked");

struct oriel_agent {
    /* owner of the area; written before other processes learn of the area */
    struct oriel_identity process;
    /* bit i: check slot i; set by origins (Q4), taken by the agent (Z1) */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t asked;
    _Atomic uint32_t sleepers; /* of asked: the agent, while it sleeps */
    _Atomic uint32_t state;    /* STOPPED or RUNNING, written by the agent's process */
    _Atomic int32_t cpu;       /* the agent's last processor: a hint */
    alignas(ORIEL_CACHE_LINE) struct oriel_event freed; /* number of slot releases; wraps around */
    struct oriel_agent_slot slots[ORIEL_AGENT_SLOTS];
    /* the agent's private buffer for computation, in the file because the kernel's calls copy only
     * between memory and a file */
    char stage[ORIEL_AGENT_DATA_BYTES];
};

/* Sets the elements in count pieces to operator(element, operand), in as few requests as the slots
 * allow. in holds the offsets and the operands (NULL for NO_OP), out receives the old contents
 * (NULL if not wanted). Both have the same offsets and lengths, which are whole elements. The
 * padding of pairs is written on neither side, and the padding after the last field is not
 * accessed. The caller holds the target's accumulate lock. The statuses are those of the transport.
 */
enum oriel_status oriel_agent_update(const struct oriel_remote *target, enum oriel_kind kind,
                                     enum oriel_operator operator, const struct oriel_piece * in,
                                     const struct oriel_piece *out, unsigned count);

/* Replaces len_bytes (at most half of ORIEL_AGENT_DATA_BYTES) at `target` by the bytes at desired,
 * if they equal the bytes at compared; found receives the old bytes. One request; the caller holds
 * the target's accumulate lock. */
enum oriel_status oriel_agent_swap(const struct oriel_remote *target, const void *desired,
                                   const void *compared, void *found, uint64_t len_bytes);

/* Starts the thread that serves this area, which is at offset in the calling process's memory file
 * fd. Returns ORIEL_E_OTHER with the reason if no thread can be created or fd no longer refers to
 * that file. */
enum oriel_status oriel_agent_start(struct oriel_agent *agent, struct oriel_remote_writers *writers,
                                    int fd, uint64_t offset);

/* Lets the thread serve all outstanding requests and waits for its end. Does nothing if no thread
 * runs, as in a forked child. */
void oriel_agent_stop(void);

/* Ends the thread and starts another one, which has the process's descriptors: the GPU's driver
 * needs those that it has opened. Requests wait meanwhile. No effect if the thread has them, or if
 * there is none. */
void oriel_agent_share_descriptors(void);

/* Whether the agent's thread has the process's descriptors, so that it may call a GPU's driver.
 * Only that thread uses it. Until it has them, no window has device memory that it could be asked
 * for. */
extern bool oriel_agent_has_descriptors __attribute__((visibility("hidden")));

/* Executes the request of a slot. Returns 0, an errno or ORIEL_AGENT_HAS_REASON. fd and offset
 * locate the area in its file. Runs only in the agent's thread. */
int oriel_agent_execute(struct oriel_agent *agent, struct oriel_agent_slot *slot, int fd,
                        uint64_t offset);

#endif
