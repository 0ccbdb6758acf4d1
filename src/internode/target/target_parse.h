/* A parsed message of an internode origin (origin_rma.h has the messages). The parser trusts
 * nothing: a message that oriel_internode_order_read accepts is inside the window and as long as it
 * claims. */
#ifndef ORIEL_INTERNODE_TARGET_TARGET_PARSE_H
#define ORIEL_INTERNODE_TARGET_TARGET_PARSE_H

#include "internode/origin/origin_rma.h"

/* A parsed message. */
struct oriel_internode_order {
    struct oriel_window *window;
    const struct oriel_internode_head *head;
    enum oriel_operator op;
    enum oriel_kind kind; /* of an accumulate's elements; ORIEL_KIND_CHAR of a put or get */
    unsigned flags;
    uint64_t unit_bytes; /* bytes that an element moves */
    uint64_t moved_bytes;
    uint32_t parts;
    const struct oriel_internode_batch *batches; /* each is a part */
    const int64_t *places;                       /* or all are one part, of blocks */
    const uint64_t *lengths;
    const char *operands;
    uint64_t operand_bytes;
};

/* One step of the operation: a layout at an offset of the window. */
struct oriel_internode_part {
    int64_t at_bytes;
    struct oriel_node node;
    struct oriel_node run; /* the node's child if it is a loop */
    struct oriel_type type;
};

/* Parses a put, get or accumulate. The caller sets window and head; the rest is output. Returns a
 * status with its message if the message is malformed. */
enum oriel_status oriel_internode_order_read(struct oriel_internode_order *order,
                                             const struct oriel_net_received *message);

/* One of the parts; false if it is invalid. */
bool oriel_internode_part_make(const struct oriel_internode_order *order, uint32_t which,
                               struct oriel_internode_part *part);

/* One run of count elements at a byte of the window or address space; false if count is 0 or too
 * large. */
bool oriel_internode_part_run(struct oriel_internode_part *part, uint64_t at_bytes,
                              enum oriel_kind kind, uint64_t count);

/* ORIEL_E_RANGE if it leaves the window. */
enum oriel_status oriel_internode_part_check(const struct oriel_internode_order *order,
                                             const struct oriel_internode_part *part);

/* ORIEL_E_OTHER, with the malformed field. */
enum oriel_status oriel_internode_malformed(const struct oriel_internode_order *order,
                                            const char *what);

#endif
