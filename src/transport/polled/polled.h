/* Requests: short transfers and updates that a thread of the target executes while it waits inside
 * an MPI call. They are for memory that otherwise the kernel would copy: a request takes two
 * transfers of a cache line, a copy takes a system call. struct oriel_polled is in the target's
 * memory file. Origins (polled_origin.c) write requests into its slots. Each waiting thread of the
 * target polls them (polled_target.c), in the loop of base/wait.h and in the host's progress.
 *
 * One request in one slot:
 * R1: the origin claims a slot: owner 0 -> its process word, in one step (acquire)
 * R2: it fills the slot: operation, address, and the data of a write or the operands of an update
 * R3: state IDLE or DONE -> ASKED (release)
 * T1: a thread of the target takes the request: state ASKED -> TAKEN, in one step (acquire)
 * T2: it executes the request and writes the answer, or refuses it and writes an errno
 * T3: state TAKEN -> DONE (release)
 * R4: the origin sees DONE (acquire) and takes the answer. After PATIENCE_NS without T1 it
 *     withdraws the request instead: state ASKED -> IDLE, in one step
 * R5: owner -> 0 (release)
 *
 * P1: A request is executed at most once. A withdrawn or refused one is never executed: T1 and the
 *     withdrawal are single steps from the same value, so one of them fails, and T2 refuses before
 *     it accesses memory. An origin whose withdrawal fails waits for T3. The origin uses another
 *     path for a withdrawn or refused operation, so each operation is executed exactly once.
 * P2: R3 -> T1: the target sees what the origin wrote. T3 -> R4: the origin sees the answer, and
 *     its next operation follows this one. So operations of one thread take effect in order,
 *     whichever path each takes.
 * P3: R5 -> R1: no origin fills a slot while another one still reads it.
 * P4: An update alone is not atomic. Its origin holds the target's accumulate lock from before R1
 *     until after R4, and keeps it if it updates on another path. So all updates of copied memory
 *     exclude each other, whichever path each takes.
 * P5: A thread that executes a request acquires no lock and does not wait. So it may serve wherever
 *     it waits.
 * P6: Unmapped memory must not end the target. T2 asks the kernel whether the pages are mapped and
 *     accessible (MADV_POPULATE), and refuses if not; the other path then finds the error. The call
 *     takes longer than the request, so T2 caches the pages of a slot's requests. Three events
 *     invalidate the cache: another origin uses the slot, the origin has waited in MPI since its
 *     last request, or this process has started a wait in base/wait.h. The target can inform the
 *     origin of unmapped memory only in two ways. The receiver of a message waits in the host. In a
 *     window synchronisation the earlier process waits. So the cache is invalid for the next
 *     request. Not covered is memory of an open window that disappears at any other time: between
 *     two requests of an origin that does not wait, or after the origin learns of it through a lock
 *     or a flag in memory. MPI forbids all of that. The target then ends with SIGSEGV, as after its
 *     own store. A handler for that signal would cover the case, but handlers belong to the program
 *     (docs/design/adr/040-refuted-per-request-page-checks.md).
 *
 * Death of the origin: owner names a process, and an origin that finds no free slot takes over a
 * slot of a dead process (R1 from the dead word). It withdraws the dead process's request, or
 * leaves the slot alone while a thread executes it. A write of a dead process is executed
 * completely or not at all. The accumulate lock stays with the dead process
 * (sync/accumulate_mutex.c). Death of the target: before T1 the origin withdraws, and the other
 * path reports the death. After T1 the origin checks every 100 ms whether the target lives. A
 * forked child serves no requests: it would access its own memory. */
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

/* UPDATE: the elements become operator(element, operand). SWAP: data holds len_bytes to compare,
 * then len_bytes of new contents. The new contents replace the target's bytes if these equal the
 * compared ones. */
enum oriel_polled_operation {
    ORIEL_POLLED_WRITE,
    ORIEL_POLLED_READ,
    ORIEL_POLLED_UPDATE,
    ORIEL_POLLED_SWAP
};

/* A short request and its answer fill one cache line. */
struct oriel_polled_slot {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t state;
    /* enum oriel_polled_operation; this and all fields up to error are written before R3 */
    uint8_t operation;
    uint8_t kind; /* of an update: enum oriel_kind; operator: enum oriel_operator */
    uint8_t operator;
    uint8_t returns; /* the answer has the old contents; always for a swap */
    uint32_t len_bytes;
    int32_t error;    /* 0, or the reason for the refusal in T2; written before T3 */
    uint64_t address; /* in the target's address space */
    uint32_t waits;   /* changes when the origin has waited since its last request */
    uint32_t origin;  /* differs between origins (P6): the lower bits of the process word */
    char data[ORIEL_POLLED_BYTES];
};

struct oriel_polled_owner {
    /* 0, or the process that holds the slot: start time above 22 bits of PID */
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t word;
};

struct oriel_polled {
    /* the target; written before other processes learn of the area */
    struct oriel_identity process;
    /* number of leading slots that have ever been claimed; only grows */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t used;
    /* separate from the slots: the target never reads them */
    struct oriel_polled_owner owners[ORIEL_POLLED_SLOTS];
    struct oriel_polled_slot slots[ORIEL_POLLED_SLOTS];
};

/* --- the origin --- */

/* One operation on len_bytes at the remote address, which are whole elements. in: the data to
 * write, the operands, or the compared value of a swap. out: the data read, the old contents of an
 * update (NULL if not wanted), or the value that a swap found. */
struct oriel_polled_request {
    enum oriel_polled_operation operation;
    enum oriel_kind kind;
    enum oriel_operator operator;
    const void *in;
    const void *desired; /* of a swap */
    void *out;
    uint64_t len_bytes;
};

/* Requests the operation from the target. Returns false without side effects if no thread serves
 * now, the memory is unmapped, or the operation is too long for a slot; the caller then uses
 * another path. Also false if target->polled is NULL. Returns true after execution, with *status
 * ORIEL_OK, or if the target died meanwhile (ORIEL_E_PEER). For an update or a swap the caller
 * holds the target's accumulate lock. */
bool oriel_polled_submit(const struct oriel_remote *target,
                         const struct oriel_polled_request *request, enum oriel_status *status);

/* Number of this process's turns in waits, counted from its first request on. */
extern _Atomic uint32_t oriel_polled_waits;
extern _Atomic bool oriel_polled_has_requested;

/* Set by each request of this thread that was served; statistics clear it
 * (observe/stats/observed_operations.c). */
extern _Thread_local bool oriel_polled_served;

/* --- the target --- */

/* Makes this process's waits serve requests and count themselves. Called before a window over the
 * program's memory is used. */
void oriel_polled_install(void);

/* From now on this process's threads serve this area. Returns false if forked children would serve
 * it, too. */
bool oriel_polled_start(struct oriel_polled *area);
void oriel_polled_stop(void);

/* NULL if this process serves no requests */
extern _Atomic(struct oriel_polled *) oriel_polled_own;

/* Executes all outstanding requests; returns their number. */
int oriel_polled_serve(struct oriel_polled *area);

/* For a thread of the program that waits for anything except an answer of polled.h. */
static inline int oriel_polled_poll(void)
{
    struct oriel_polled *own = atomic_load_explicit(&oriel_polled_own, memory_order_acquire);
    if (atomic_load_explicit(&oriel_polled_has_requested, memory_order_relaxed) &&
        !oriel_wait_is_polling)
        atomic_fetch_add_explicit(&oriel_polled_waits, 1, memory_order_relaxed);
    return own == NULL ? 0 : oriel_polled_serve(own);
}

#endif
