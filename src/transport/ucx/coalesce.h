/* Several small messages, or answers, to one process as one: what a send and a receive cost does not depend on how little they
 * carry.  Each lies in it as wire, head and data, the latter two filled up to multiples of 8, and nothing in front of the first:
 * UCX sends what has no header from one piece of memory.  transport/ucx/ alone uses it, with the mutex of the worker held. */
#ifndef ORIEL_TRANSPORT_UCX_COALESCE_H
#define ORIEL_TRANSPORT_UCX_COALESCE_H

#include "transport/ucx/buffers.h"
#include "transport/ucx/wire.h"

struct oriel_gather {
    void *
        whose; /* struct oriel_net_peer or oriel_net_caller to which it goes; NULL when there is nothing */
    struct oriel_ucx_buffer *buffer;
    size_t used_bytes;
};

/* Adds a message to what is gathered for whose; false where there is no room for it, or no memory. */
bool oriel_gather_add(struct oriel_gather *gather, struct oriel_pool *pool, void *whose,
                      const struct oriel_wire *wire, const struct oriel_net_bytes *bytes);

/* What is gathered as one message, which is the caller's; nothing is gathered then. */
struct oriel_ucx_buffer *oriel_gather_take(struct oriel_gather *gather);

/* The next message of what came, of which left_bytes are left; false where they are none, or make no sense. */
bool oriel_gather_next(const char **at, size_t *left_bytes, struct oriel_wire *wire,
                       const char **head, const char **data);

#endif
