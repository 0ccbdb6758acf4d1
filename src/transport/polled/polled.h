/* Requests: short transfers and updates that a thread of the target executes while it waits inside an MPI call.  They serve
 * memory that the kernel would have to copy: a request takes two trips of a cache line, a copy takes a system call.
 * struct oriel_polled lies in the target's memory file.  Origins (ask.c) write requests into its slots, and each thread of
 * the target that waits looks at them (answer.c): in the loop of base/wait.h, and in the host's progress.
 *
 * One request in one slot:
 *
 *   R1  the origin claims a slot: owner 0 -> its process's word, in one step (acquire)
 *   R2  it fills the slot: operation, place, and the data of a write or the operands of an update
 *   R3  state IDLE or DONE -> ASKED (release)
 *   T1  a thread of the target takes the request: state ASKED -> TAKEN, in one step (acquire)
 *   T2  it executes the request, and writes the error and what the origin wants back
 *   T3  state TAKEN -> DONE (release)
 *   R4  the origin sees DONE (acquire) and takes the answer; or, after PATIENCE_NS without T1, it withdraws the request:
 *       state ASKED -> IDLE, in one step
 *   R5  owner -> 0 (release)
 *
 * P1  A request is executed at most once, and a withdrawn one never: T1 and the withdrawal are single steps from the same value,
 *     so that one of them fails.  An origin whose withdrawal fails waits for T3.  An origin that has withdrawn does the operation
 *     by other means, so each operation is done exactly once.
 * P2  R3 -> T1: the target sees what the origin wrote.  T3 -> R4: the origin sees the answer, and what it does next comes after
 *     the operation: operations of one thread take effect in their order, by whatever means each is done.
 * P3  R5 -> R1: nobody fills a slot while another origin still reads it.
 * P4  An update is not atomic by itself.  Its origin holds the target's accumulate lock from before R1 until after R4, and keeps
 *     it where it withdraws and updates by copies: all updates of copied memory exclude each other, however each is done.
 * P5  A thread that executes takes no lock and waits for nobody.  It may so serve wherever it waits, also for its own request.
 *
 * Death.  Of the origin: owner names a process, and an origin that finds no free slot takes over those of dead ones (R1 from the
 * dead's word).  It withdraws what the dead has asked, or leaves the slot alone while a thread executes it.  A write of the dead
 * is done as a whole or not at all.  The accumulate lock stays with the dead (sync/mutex.c).  Of the target: before T1 the origin
 * withdraws, and the other means report the death; after T1 the origin asks every 100 ms whether the target lives.
 * A forked child serves nobody: it would do so in memory of its own.
 *
 * Memory that is not there must not end the target.  It loads and stores the program's memory itself, so it catches the fault
 * (SIGSEGV, SIGBUS) and answers EFAULT.  At any other fault the handler puts back the one that was there before, for good, and
 * the process serves no more: programs that live with faults of their own keep their handlers. */
#ifndef ORIEL_TRANSPORT_POLLED_POLLED_H
#define ORIEL_TRANSPORT_POLLED_POLLED_H

#include "base/atomic.h"
#include "base/identity.h"
#include "base/status.h"
#include "kernel/kind.h"
#include "transport/transport.h"

#include <stdalign.h>
#include <stdbool.h>

enum { ORIEL_POLLED_SLOTS = 16, ORIEL_POLLED_BYTES = 4096 };

/* The values of a slot's state. */
enum { ORIEL_POLLED_IDLE, ORIEL_POLLED_ASKED, ORIEL_POLLED_TAKEN, ORIEL_POLLED_DONE };

/* UPDATE: the elements become operator(element, operand).  SWAP: what lies in data after the first len_bytes replaces the
 * target's bytes if these equal those at the beginning of data. */
enum oriel_polled_operation { ORIEL_POLLED_WRITE, ORIEL_POLLED_READ, ORIEL_POLLED_UPDATE, ORIEL_POLLED_SWAP };

/* A short request and its answer fill one cache line. */
struct oriel_polled_slot {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t state;
    uint8_t operation; /* enum oriel_polled_operation; like all up to error, written before R3 */
    uint8_t kind;      /* of an update: enum oriel_kind, enum oriel_operator, and */
    uint8_t operator;
    uint8_t returns;   /* whether the answer has the old contents; a swap's always does */
    uint32_t len_bytes;
    int32_t error;     /* 0 or the errno, written before T3 */
    uint64_t address;  /* in the target's address space */
    char data[ORIEL_POLLED_BYTES];
};

struct oriel_polled_owner {
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t word; /* 0, or the process that holds the slot: start time above 22 bits of PID */
};

struct oriel_polled {
    struct oriel_identity process; /* the target; written before others learn of the area */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t used; /* slots from the first on that have ever been claimed; only grows */
    struct oriel_polled_owner owners[ORIEL_POLLED_SLOTS]; /* apart from the slots: the target never reads them */
    struct oriel_polled_slot slots[ORIEL_POLLED_SLOTS];
};

/* --- the origin --- */

/* One operation on len_bytes there, which are whole elements.  in: what is written, the operands, or what a swap compares with;
 * out: what is read, the old contents of an update (NULL: not wanted), or what a swap found. */
struct oriel_polled_wanted {
    enum oriel_polled_operation operation;
    enum oriel_kind kind;
    enum oriel_operator operator;
    const void *in;
    const void *desired; /* of a swap */
    void *out;
    uint64_t len_bytes;
};

/* Has the target execute it.  False: it has done nothing, since it does not poll now, or the operation is too long for a slot;
 * do it otherwise.  True: *status is ORIEL_OK, ORIEL_E_RANGE for memory that is not there, ORIEL_E_PEER.  there->polled may be
 * NULL: false.  For an update or a swap the caller holds the target's accumulate lock. */
bool oriel_polled_ask(const struct oriel_remote *there, const struct oriel_polled_wanted *wanted, enum oriel_status *status);

/* --- the target --- */

/* From now on this process's threads serve this area, and catch faults meanwhile; false without handlers for them. */
bool oriel_polled_begin(struct oriel_polled *area);
void oriel_polled_end(void);

extern _Atomic(struct oriel_polled *) oriel_polled_own; /* NULL: this process serves nobody */

/* Executes what was asked; how many requests that were. */
int oriel_polled_answer(struct oriel_polled *area);

/* For a thread of the program that waits. */
static inline int oriel_polled_turn(void)
{
    struct oriel_polled *own = atomic_load_explicit(&oriel_polled_own, memory_order_acquire);
    return oriel_likely(own == NULL) ? 0 : oriel_polled_answer(own);
}

#endif
