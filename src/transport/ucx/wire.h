/* The header of every message between two processes, and the format of their addresses. The
 * receiver validates both: no field of another process is trusted. */
#ifndef ORIEL_TRANSPORT_UCX_WIRE_H
#define ORIEL_TRANSPORT_UCX_WIRE_H

#include "transport/ucx/net.h"

enum { ORIEL_WIRE_VERSION = 0x4f524e35 }; /* "ORN5": other layouts get other numbers */

enum oriel_wire_kind {
    /* the first message to each process: data is the sender's identity, then the address of its
     * origin's worker */
    ORIEL_WIRE_HELLO,
    ORIEL_WIRE_TOLD,
    ORIEL_WIRE_ASKED,
    /* sent by the net itself: answered when all earlier messages have been served */
    ORIEL_WIRE_SYNC,
    ORIEL_WIRE_BYE,  /* the same, and the last message */
    ORIEL_WIRE_PING, /* unordered; the answer returns number */
    ORIEL_WIRE_PONG,
    ORIEL_WIRE_ANSWER,
    /* never sent as a kind: a message without a header is several coalesced ones (coalesce.h) */
    ORIEL_WIRE_COALESCED,
};

struct oriel_wire {
    uint32_t version;
    uint16_t kind; /* enum oriel_wire_kind */
    uint16_t head_bytes;
    uint64_t from;      /* the session of the sender: a random number, new with each start */
    uint64_t to;        /* the session of the receiver */
    uint64_t sequence;  /* of ordered messages, from 0; unused in an answer */
    uint64_t number;    /* of the request */
    uint64_t len_bytes; /* of the data of a coalesced message; else 0 */
};
_Static_assert(sizeof(struct oriel_wire) == 48, "it is sent as bytes");

/* The address of one start of a process. */
struct oriel_wire_address {
    uint32_t version;
    uint32_t agent_bytes; /* of the address of the agent's worker, which follows */
    uint64_t session;
};

#endif
