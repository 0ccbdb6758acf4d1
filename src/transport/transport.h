/* How bytes move to and from memory that another process owns.  A transport is a constant table with every slot filled.
 *
 * Contract of all four: the calling thread copies all len_bytes before it returns (completion is local and remote at
 * once, and calls of one thread take effect in their order); any number of threads may call at a time; bytes move in any
 * order and size, so a concurrent reader of the same bytes sees no order; on failure any part may have been transferred.
 * ORIEL_E_RANGE: the memory is not mapped (any more).  ORIEL_E_PEER: the process is gone. */
#ifndef ORIEL_TRANSPORT_TRANSPORT_H
#define ORIEL_TRANSPORT_TRANSPORT_H

#include "base/status.h"

#include <stdint.h>

struct oriel_agent;
struct oriel_polled;
struct oriel_remote_writers;

/* A place in a process of this machine. */
struct oriel_remote {
    void *direct;              /* where this process has it mapped; shared transport only */
    uint64_t address;          /* where its owner has it; CMA and agent only */
    struct oriel_agent *agent; /* its owner's, as this process has it mapped; agent only */
    int32_t pid;               /* of the owner; CMA and agent only */
    struct oriel_remote_writers *
        writers; /* where copies are announced to the owner; CMA only, NULL for the owner's memory file */
    struct oriel_polled *
        polled; /* that its owner's threads serve while they wait; NULL: none.  CMA and agent only */
};

/* The place offset_bytes from base: a sum of numbers, since base alone may lie outside of any object (displacement 0 of a
 * datatype with absolute addresses). */
static inline char *oriel_at(const void *base, int64_t offset_bytes)
{
    return (char *)((uintptr_t)base + (uintptr_t)offset_bytes);
}

/* A part of a transfer: len_bytes between offset_bytes from the remote place (it may be negative) and here. */
struct oriel_piece {
    int64_t offset_bytes;
    void *here;
    uint64_t len_bytes;
};

struct oriel_transport {
    const char *name;
    enum oriel_status (*write)(const struct oriel_remote *to, const void *from, uint64_t len_bytes);
    enum oriel_status (*read)(const struct oriel_remote *from, void *to, uint64_t len_bytes);
    /* the same for count pieces, in their order, at most 1,024 */
    enum oriel_status (*write_pieces)(const struct oriel_remote *to,
                                      const struct oriel_piece *pieces, unsigned count);
    enum oriel_status (*read_pieces)(const struct oriel_remote *from,
                                     const struct oriel_piece *pieces, unsigned count);
};

extern const struct oriel_transport oriel_transport_shared; /* load and store */
extern const struct oriel_transport oriel_transport_cma;    /* process_vm_writev and readv */
extern const struct oriel_transport
    oriel_transport_agent; /* asked of a thread of the owner: agent/agent.h */

#endif
