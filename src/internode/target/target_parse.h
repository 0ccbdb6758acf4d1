/* What a message of a far origin wants of this process's window (origin_rma.h has the messages).  Reading one believes
 * nothing: what oriel_internode_order_read has passed is in the window, and as long as it says.  target_rma.c calls. */
#ifndef ORIEL_INTERNODE_TARGET_TARGET_PARSE_H
#define ORIEL_INTERNODE_TARGET_TARGET_PARSE_H

#include "internode/origin/origin_rma.h"

/* A message, taken apart. */
struct oriel_internode_order {
    struct oriel_window *window;
    const struct oriel_internode_head *head;
    enum oriel_operator operator;
    enum oriel_kind kind; /* of an accumulate's elements; ORIEL_KIND_CHAR of a put's and a get's */
    unsigned flags;
    uint64_t unit_bytes; /* that move of an element */
    uint64_t moved_bytes;
    uint32_t parts;
    const struct oriel_internode_batch *batches; /* each a part */
    const int64_t *places;                       /* or all one part: of blocks */
    const uint64_t *lengths;
    const char *operands;
    uint64_t operand_bytes;
};

/* What is done at once: a layout from a place of the window on. */
struct oriel_internode_part {
    int64_t at_bytes;
    struct oriel_node node;
    struct oriel_node run; /* the node's child, if it is a loop */
    struct oriel_type type;
};

/* A put, a get or an accumulate, whose window and head are set; the rest is filled in.  A status with its message for
 * what is wrong. */
enum oriel_status oriel_internode_order_read(struct oriel_internode_order *order,
                                             const struct oriel_net_arrived *message);

/* One of the parts; false for what is none. */
bool oriel_internode_part_make(const struct oriel_internode_order *order, uint32_t which,
                               struct oriel_internode_part *part);

/* One run of count elements at a byte of the window, or of the address space; false for none and too many. */
bool oriel_internode_part_run(struct oriel_internode_part *part, uint64_t at_bytes,
                              enum oriel_kind kind, uint64_t count);

/* ORIEL_E_RANGE where it leaves the window. */
enum oriel_status oriel_internode_part_check(const struct oriel_internode_order *order,
                                             const struct oriel_internode_part *part);

/* ORIEL_E_OTHER, with what is wrong with the message. */
enum oriel_status oriel_internode_malformed(const struct oriel_internode_order *order,
                                            const char *what);

#endif
