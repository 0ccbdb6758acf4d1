/* Two ranks of a window on two nodes, in one process. The other rank serves each message at once;
 * answers wait until the test delivers them, in any order. The target's window is between guards.
 */
#ifndef ORIEL_TESTS_UNIT_INTERNODE_WIRE_H
#define ORIEL_TESTS_UNIT_INTERNODE_WIRE_H

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
    unsigned messages;         /* so far; the test may reset this and the next three to 0 */
    unsigned answers;
    uint64_t data_bytes;
    unsigned failures;
    enum oriel_status failure;        /* the last */
    const void *last_piece;           /* of the last message's data, at the origin */
    struct oriel_internode_head head; /* of the last message, and its data */
    char *data;
    uint64_t len_bytes;
    bool has_devices;       /* RDMA devices execute puts and gets */
    unsigned by_devices;    /* operations of the devices; counted as messages are */
    uint64_t attached_from; /* of a dynamic window */
    uint64_t attached_to;
};

extern struct wire wire;

void wire_open(enum oriel_placement placement);
void wire_close(void);

/* Delivers all outstanding answers now. */
void wire_deliver(void);

/* Serves a message made by the test. */
void wire_serve(const struct oriel_internode_head *head, const char *data, uint64_t len_bytes);

#endif
