/* Requests: short transfers and updates that a thread of the target executes while it waits inside an
 * MPI call.  They are for memory that the kernel would have to copy: a request takes two trips of a
 * cache line, a copy takes a system call.  struct oriel_polled lies in the target's memory file.
 * Origins (polled_origin.c) write requests into its slots, and each waiting thread of the target looks at them
 * (polled_target.c): in the loop of base/wait.h, and in the host's progress.
 *
 * One request in one slot:
 *
 *   R1  the origin claims a slot: owner 0 -> its process's word, in one step (acquire)
 *   R2  it fills the slot: operation, place, and the data of a write or the operands of an update
 *   R3  state IDLE or DONE -> ASKED (release)
 *   T1  a thread of the target takes the request: state ASKED -> TAKEN, in one step (acquire)
 *   T2  it executes the request and writes the answer, or refuses it and writes an errno
 *   T3  state TAKEN -> DONE (release)
 *   R4  the origin sees DONE (acquire) and takes the answer; or, after PATIENCE_NS without T1, it
 *       withdraws the request: state ASKED -> IDLE, in one step
 *   R5  owner -> 0 (release)
 *
 * P1  A request is executed at most once.  A withdrawn or refused one is never executed: T1 and the
 *     withdrawal are single steps from the same value, so one of them fails, and T2 refuses before it
 *     touches memory.  An origin whose withdrawal fails waits for T3.  The origin does what was
 *     withdrawn or refused by other means, so each operation is done exactly once.
 * P2  R3 -> T1: the target sees what the origin wrote.  T3 -> R4: the origin sees the answer, and its
 *     next operation comes after this one.  So operations of one thread take effect in their order,
 *     by whatever means each is done.
 * P3  R5 -> R1: no origin fills a slot while another one still reads it.
 * P4  An update is not atomic by itself.  Its origin holds the target's accumulate lock from before R1
 *     until after R4, and keeps it where it updates by other means.  So all updates of copied memory
 *     exclude each other, however each is done.
 * P5  A thread that executes takes no lock and waits for nothing.  So it may serve wherever it waits.
 * P6  Memory that is gone must not end the target.  T2 asks the kernel whether the pages are there and
 *     may be accessed (MADV_POPULATE), and refuses where they are not; the other means then find the
 *     error.  The call takes longer than the request, so T2 remembers the pages of a slot's requests.
 *     It forgets them when another origin has the slot, when the origin has waited in MPI since its
 *     last request, and when this process has begun a wait in base/wait.h.  The target can only tell the
 *     origin that it has unmapped memory by a message, whose receiver waits in the host, or by a synchronisation of windows, where the
 *     earlier of both waits; so such a request finds the pages forgotten.  Not covered is memory of an
 *     open window that disappears at any other time: between two requests of an origin that does not
 *     wait, or after it has learnt of it by a lock or a flag in memory.  MPI forbids all of that.  The
 *     target then ends by SIGSEGV, as by a store of its own.  A handler for that signal would cover it,
 *     but handlers belong to the program
 *     (docs/adr/040-refuted-per-request-page-checks.md).
 *
 * Death.  Of the origin: owner names a process, and an origin that finds no free slot takes over those
 * of dead ones (R1 from the dead's word).  It withdraws the dead's request, or leaves the slot alone
 * while a thread executes it.  A write of the dead is done as a whole or not at all.  The accumulate
 * lock stays with the dead (sync/accumulate_mutex.c).  Of the target: before T1 the origin withdraws, and the
 * other means report the death; after T1 the origin checks every 100 ms whether the target lives.
 * A forked child serves nobody: it would do so in memory of its own. */
#ifndef ORIEL_TRANSPORT_POLLED_POLLED_H
#define ORIEL_TRANSPORT_POLLED_POLLED_H

#include "base/atomic.h"
#include "base/identity.h"
#include "base/status.h"
#include "base/wait.h"
#include "reduce/kind.h"
#include "transport/transport.h"

#include <stdalign.h>
#include <stdbool.h>

enum { ORIEL_POLLED_SLOTS = 16, ORIEL_POLLED_BYTES = 4096 };

/* The values of a slot's state. */
enum { ORIEL_POLLED_IDLE, ORIEL_POLLED_ASKED, ORIEL_POLLED_TAKEN, ORIEL_POLLED_DONE };

/* UPDATE: the elements become operator(element, operand).  SWAP: what lies in data after the first len_bytes replaces the
 * target's bytes if these equal those at the beginning of data. */
enum oriel_polled_operation {
    ORIEL_POLLED_WRITE,
    ORIEL_POLLED_READ,
    ORIEL_POLLED_UPDATE,
    ORIEL_POLLED_SWAP
};

/* A short request and its answer fill one cache line. */
struct oriel_polled_slot {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t state;
    uint8_t operation; /* enum oriel_polled_operation; like all up to error, written before R3 */
    uint8_t kind;      /* of an update: enum oriel_kind, enum oriel_operator, and */
    uint8_t operator;
    uint8_t returns; /* whether the answer has the old contents; a swap's always does */
    uint32_t len_bytes;
    int32_t error;    /* 0, or why T2 has refused it; written before T3 */
    uint64_t address; /* in the target's address space */
    uint32_t waits;   /* another value if the origin has waited since its last request, and */
    uint32_t origin;  /* another one for each origin (P6): the lower bits of its process's word */
    char data[ORIEL_POLLED_BYTES];
};

struct oriel_polled_owner {
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t
        word; /* 0, or the process that holds the slot: start time above 22 bits of PID */
};

struct oriel_polled {
    struct oriel_identity process; /* the target; written before others learn of the area */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t
        used; /* slots from the first on that have ever been claimed; only grows */
    struct oriel_polled_owner
        owners[ORIEL_POLLED_SLOTS]; /* apart from the slots: the target never reads them */
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

/* Has the target execute it.  False: nothing is done, since no thread serves now, the memory is gone, or
 * the operation is too long for a slot; the caller uses other means.  True: it is done, and *status is
 * ORIEL_OK, or the target has died meanwhile (ORIEL_E_PEER).  there->polled may be NULL: false.  For an
 * update or a swap the caller holds the target's accumulate lock. */
bool oriel_polled_ask(const struct oriel_remote *there, const struct oriel_polled_wanted *wanted,
                      enum oriel_status *status);

/* Turns of waits, once this process has asked. */
extern _Atomic uint32_t oriel_polled_waits;
extern _Atomic bool oriel_polled_asks;

/* Set by each request of this thread that was served; statistics clear it (observe/stats/observed_operations.c). */
extern _Thread_local bool oriel_polled_served;

/* --- the target --- */

/* Has this process's waits serve, and counts them.  To be called before a window over the program's memory is used. */
void oriel_polled_watch(void);

/* From now on this process's threads serve this area; false where forked children would do so, too. */
bool oriel_polled_begin(struct oriel_polled *area);
void oriel_polled_end(void);

extern _Atomic(struct oriel_polled *) oriel_polled_own; /* NULL: this process serves nobody */

/* Executes what was asked; returns the number of requests. */
int oriel_polled_answer(struct oriel_polled *area);

/* For a thread of the program that waits for anything but an answer of polled.h. */
static inline int oriel_polled_turn(void)
{
    struct oriel_polled *own = atomic_load_explicit(&oriel_polled_own, memory_order_acquire);
    if (atomic_load_explicit(&oriel_polled_asks, memory_order_relaxed) && !oriel_wait_passes)
        atomic_fetch_add_explicit(&oriel_polled_waits, 1, memory_order_relaxed);
    return own == NULL ? 0 : oriel_polled_answer(own);
}

#endif
