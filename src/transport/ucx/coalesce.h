/* Sends several small messages or answers to one process as one: the cost of a send and a receive
 * does not depend on their small size. Each consists of wire, head and data, the latter two padded
 * to multiples of 8. Nothing precedes the first: UCX sends a message without a header from one
 * piece of memory. Used with the worker's mutex held. */
#ifndef ORIEL_TRANSPORT_UCX_COALESCE_H
#define ORIEL_TRANSPORT_UCX_COALESCE_H

#include "transport/ucx/buffers.h"
#include "transport/ucx/wire.h"

struct oriel_coalesce {
    /* the struct oriel_net_peer or oriel_net_sender to which it is sent; NULL if empty */
    void *destination;
    struct oriel_ucx_buffer *buffer;
    size_t used_bytes;
};

/* Adds a message for destination. Returns false if there is no room for it, or no memory. */
bool oriel_coalesce_add(struct oriel_coalesce *coalesce, struct oriel_pool *pool, void *destination,
                        const struct oriel_wire *wire, const struct oriel_net_bytes *bytes);

/* Returns the coalesced message, which the caller owns, and empties the struct. */
struct oriel_ucx_buffer *oriel_coalesce_take(struct oriel_coalesce *coalesce);

/* Returns the next of the received messages, of which left_bytes remain. False if there is none, or
 * it is malformed. */
bool oriel_coalesce_next(const char **at, size_t *left_bytes, struct oriel_wire *wire,
                         const char **head, const char **data);

#endif
