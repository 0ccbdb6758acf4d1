/* What lies before the head of every message between two processes, and what their addresses are.  Both are checked by who
 * receives them: nothing of another process is believed.  transport/ucx/ alone uses it. */
#ifndef ORIEL_TRANSPORT_UCX_WIRE_H
#define ORIEL_TRANSPORT_UCX_WIRE_H

#include "transport/ucx/net.h"

enum { ORIEL_WIRE_VERSION = 0x4f524e34 }; /* "ORN4": other layouts get other numbers */

enum oriel_wire_kind {
    ORIEL_WIRE_HELLO, /* the first to each process: data is the sender's identity, then the address of its origin's worker */
    ORIEL_WIRE_TOLD,
    ORIEL_WIRE_ASKED,
    ORIEL_WIRE_SYNC, /* asked by the net itself: answered when all before has been served */
    ORIEL_WIRE_BYE,  /* the same, and the last */
    ORIEL_WIRE_PING, /* in no order; number comes back */
    ORIEL_WIRE_PONG,
    ORIEL_WIRE_ANSWER,
    ORIEL_WIRE_GATHERED, /* of no message: what came without a header is several of these (coalesce.h) */
};

struct oriel_wire {
    uint32_t version;
    uint16_t kind; /* enum oriel_wire_kind */
    uint16_t head_bytes;
    uint64_t from;      /* the session of the sender: a random number, new with each start */
    uint64_t to;        /* the session of the receiver */
    uint64_t sequence;  /* of what is served in order, from 0; of an answer nothing */
    uint64_t number;    /* of the request */
    uint64_t len_bytes; /* of the data of a message among gathered ones; else 0 */
};
_Static_assert(sizeof(struct oriel_wire) == 48, "it is sent as it lies");

/* An address: of a start of a process. */
struct oriel_wire_address {
    uint32_t version;
    uint32_t agent_bytes; /* of the address of the agent's worker, which follows */
    uint64_t session;
};

#endif
