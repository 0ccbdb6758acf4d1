/* Two ranks of a window on two machines, in one process: what one tells or asks is served by the other at once, and answers wait
 * until they are delivered, in any order.  The window of the target lies between guards. */
#ifndef ORIEL_TESTS_UNIT_FAR_WIRE_H
#define ORIEL_TESTS_UNIT_FAR_WIRE_H

#include "internode/origin/origin_rma.h"

enum {
    WIRE_WINDOW_BYTES = 3 << 20,
    WIRE_GUARD_BYTES = 4096,
    WIRE_ALL_BYTES = WIRE_WINDOW_BYTES + 2 * WIRE_GUARD_BYTES
};

struct wire {
    struct oriel_window here;  /* of rank 0, the origin */
    struct oriel_window there; /* of rank 1, the target */
    char *memory;              /* the target's, with its guards */
    unsigned messages;         /* so far; this and the next three: set to 0 at will */
    unsigned answers;
    uint64_t data_bytes;
    unsigned failures;
    enum oriel_status failure;        /* the last */
    const void *last_piece;           /* of the last message's data, at the origin */
    struct oriel_internode_head head; /* of the last message, and its data */
    char *data;
    uint64_t len_bytes;
    bool has_devices;       /* that put and get by themselves */
    unsigned by_devices;    /* so often they did; as messages */
    uint64_t attached_from; /* of a dynamic window */
    uint64_t attached_to;
};

extern struct wire wire;

void wire_open(enum oriel_mechanism mechanism);
void wire_close(void);

/* All that was asked is answered now. */
void wire_deliver(void);

/* A message that nobody has made. */
void wire_serve(const struct oriel_internode_head *head, const char *data, uint64_t len_bytes);

#endif
