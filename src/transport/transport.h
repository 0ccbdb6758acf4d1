/* Moves bytes to and from memory that another process owns. A transport is a constant table with
 * every slot filled.
 *
 * Contract of all four slots: the calling thread copies all len_bytes before it returns. Completion
 * is local and remote at once, and calls of one thread take effect in order. Any number of threads
 * may use them concurrently. Bytes move in any order and size, so a concurrent reader of the same
 * bytes sees no order. On failure any part may have been transferred. ORIEL_E_RANGE: the memory is
 * not mapped, or no longer mapped. ORIEL_E_PEER: the process has died. */
#ifndef ORIEL_TRANSPORT_TRANSPORT_H
#define ORIEL_TRANSPORT_TRANSPORT_H

#include "base/status.h"

#include <stdint.h>

struct oriel_agent;
struct oriel_gpu_copies;
struct oriel_polled;
struct oriel_remote_writers;

/* An address in a process of this node. */
struct oriel_remote {
    void *direct;     /* its address in this process; shared and GPU transport only */
    uint64_t address; /* its address in the owner; CMA and agent only */
    /* the owner's agent area, as mapped in this process; agent only. NULL: there is none, and this
     * thread's last message has the reason */
    struct oriel_agent *agent;
    int32_t pid; /* of the owner; CMA and agent only */
    /* announces copies to the owner; CMA only, NULL if the memory is in the owner's memory file */
    struct oriel_remote_writers *writers;
    /* request area that the owner's threads serve while they wait; NULL if there is none. CMA and
     * agent only */
    struct oriel_polled *polled;
    /* NULL, or the copies may be left to the end of these; GPU transport only */
    struct oriel_gpu_copies *begun;
};

/* The address offset_bytes after base. Computed with integers, because base alone may be outside
 * any object (displacement 0 of a datatype with absolute addresses). */
static inline char *oriel_at(const void *base, int64_t offset_bytes)
{
    return (char *)((uintptr_t)base + (uintptr_t)offset_bytes);
}

/* A part of a transfer: len_bytes between here and offset_bytes after the remote address. The
 * offset may be negative. */
struct oriel_piece {
    int64_t offset_bytes;
    void *here;
    uint64_t len_bytes;
};

struct oriel_transport {
    const char *name;
    enum oriel_status (*write)(const struct oriel_remote *to, const void *from, uint64_t len_bytes);
    enum oriel_status (*read)(const struct oriel_remote *from, void *to, uint64_t len_bytes);
    /* the same for count pieces, in order, at most 1,024 */
    enum oriel_status (*write_pieces)(const struct oriel_remote *to,
                                      const struct oriel_piece *pieces, unsigned count);
    enum oriel_status (*read_pieces)(const struct oriel_remote *from,
                                     const struct oriel_piece *pieces, unsigned count);
};

extern const struct oriel_transport oriel_transport_shared; /* load and store */
extern const struct oriel_transport oriel_transport_cma;    /* process_vm_writev and readv */
/* requests to a thread of the owner: agent/agent.h */
extern const struct oriel_transport oriel_transport_agent;
/* the driver of a GPU, to and from its memory; here may be device memory, too */
extern const struct oriel_transport oriel_transport_gpu;

#endif
